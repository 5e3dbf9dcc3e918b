// What must be true of the dashboard in a real browser. Prints a line for each; ends with 1 if one of them is not so.
import { setTimeout as pause } from "node:timers/promises";
import { Chromium } from "./chromium.mjs";
import { Demo } from "./demo.mjs";
import { check, dim, end, nameless, overhear, photo, photos, scheme, size, tabs, tree, until } from "./look.mjs";

async function look(demo, browser) {
  const order = "/apis/orchestrate.platform-mesh.io/v1alpha1/namespaces/default/httpbins/demo";
  const origin = demo.url, { asked, complaints } = await overhear(browser);
  await size(browser, 1200, 900);
  await scheme(browser, "light");
  await browser.send("Page.navigate", { url: origin + "/" });

  await until(browser, "the agent works, and its export is named", () => document.getElementById("badge").innerText === "✓ works" && document.getElementById("where").innerText.includes("orchestrate.platform-mesh.io"));
  await until(browser, "a PublishedResource is shown with conditions, orders and copies", () => {
    const cells = [...document.querySelectorAll("#published tr:first-child > *")].map(cell => cell.innerText);
    return (cells[0] === "httpbins" && cells[1].startsWith("HttpBin.") && cells[2].includes("✓ ExportUpdated") && cells[2].includes("v") && cells[3] === "2" && cells[4] === "2") || cells;
  });
  await until(browser, "both workspaces are shown with one order each", () => {
    const rows = [...document.querySelectorAll("#workspaces tr")].map(row => row.lastChild.innerText);
    return JSON.stringify(rows) === '["1","1"]' || rows;
  });
  await until(browser, "lag and throughput are drawn over time", () => ["chart-lag", "chart-steps"].every(id => document.querySelector("#" + id + " polyline").getAttribute("points").trim().split(" ").length > 2) || document.querySelector("#chart-steps polyline").getAttribute("points"));
  await until(browser, "nothing needs attention", () => document.getElementById("problems").hidden || document.getElementById("problems").innerText);

  // By keyboard alone: what can be reached, in which order, and whether one sees where one is.
  const stops = await tabs(browser, 12);
  const names = stops.map(stop => stop.name);
  check("Tab goes from top to bottom", JSON.stringify(names.slice(0, 6)) === JSON.stringify(["skip", "pause", "scroll", "q", "BUTTON", "link id"]), names);
  check("where the focus is can be seen", stops.every(stop => stop.seen), stops);
  await browser.run(() => document.getElementById("q").focus());
  await browser.type("default/demo");
  await browser.press("Enter");
  await until(browser, "search by keyboard finds both orders with their journeys", () => {
    const found = [...document.querySelectorAll("#found > li")].map(item => item.innerText);
    return (found.length === 2 && found.every(one => ["✓ order", "✓ copy", "✓ status is back", "credentials", "after "].every(part => one.includes(part)))) || found;
  });
  check("the number of hits is announced", await browser.run(() => document.getElementById("found-count").getAttribute("aria-live") === "polite" && document.getElementById("found-count").innerText.startsWith("2 found")));
  await browser.run(() => document.querySelector("#workspaces button").focus());
  await browser.press("Enter");
  await until(browser, "a workspace shows its orders", () => document.querySelectorAll("#found > li").length === 1 || document.getElementById("found-count").innerText);
  await browser.run(() => document.getElementById("pause").focus());
  await browser.press(" ");
  check("updates can be paused by keyboard", await browser.run(() => document.getElementById("pause").getAttribute("aria-pressed") === "true"));
  await browser.press(" ");

  // For screen readers.
  const all = await tree(browser);
  const has = (role, name) => all.some(node => node.role === role && node.name.includes(name));
  const wanted = [["banner", ""], ["main", ""], ["contentinfo", ""], ["search", ""], ["status", ""], ["heading", "Published resources"], ["region", "Find an object"],
    ["table", "One row for each PublishedResource"], ["columnheader", "Copies"], ["rowheader", "httpbins"], ["searchbox", "Workspace, namespace or name"], ["img", "throughput over"]];
  // Chromium's name for the role of pictures has changed over time.
  const role = wantedRole => wantedRole === "img" ? ["img", "image"] : [wantedRole];
  check("landmarks, headings, tables and fields have roles and names", wanted.every(([kind, name]) => role(kind).some(one => has(one, name))), wanted.filter(([kind, name]) => !role(kind).some(one => has(one, name))));
  check("everything that can be used has a name", nameless(all).length === 0, nameless(all));

  for (const value of ["light", "dark"]) {
    await scheme(browser, value);
    const low = await browser.run(dim);
    check(`contrast is at least 4.5 in ${value}`, low.length === 0, low);
  }
  await browser.run(() => { document.getElementById("q").value = ""; document.getElementById("find").requestSubmit(); document.activeElement.blur(); });
  await until(browser, "an empty search shows everything", () => document.querySelectorAll("#found > li").length === 2);
  for (const width of [360, 1200]) {
    await size(browser, width, 900);
    const wide = await browser.run(() => document.documentElement.scrollWidth);
    check(`at ${width} pixels nothing sticks out`, wide <= width, wide);
  }
  if (photos) {
    await size(browser, 1000, 900);
    for (const end = Date.now() + 40_000; Date.now() < end; await pause(100 + 900 * Math.random())) {
      await demo.ask("team-b", "PATCH", order, { spec: { region: "r" + Math.floor(1000 * Math.random()) } });
    }
    for (const value of ["light", "dark"]) {
      await scheme(browser, value);
      await photo(browser, "dashboard-" + value, 1170);
    }
  }

  // Something that fails: the agent loses its rights on the service cluster.
  const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  const right = await demo.ask("service", "GET", bindings + "/api-syncagent");
  await demo.ask("service", "DELETE", bindings + "/api-syncagent");
  await demo.ask("team-a", "PATCH", order, { spec: { region: "mars" } });
  await until(browser, "an error is shown with the way out", () => {
    const told = document.getElementById("problem-list").innerText;
    return (!document.getElementById("problems").hidden && told.includes("forbidden") && told.includes("What to do:") && told.includes("carrick doctor")) || told;
  });
  for (const value of ["light", "dark"]) {
    await scheme(browser, value);
    const low = await browser.run(dim);
    check(`contrast is at least 4.5 in ${value}, with errors`, low.length === 0, low);
  }
  await size(browser, 360, 900);
  const wide = await browser.run(() => document.documentElement.scrollWidth);
  check("at 360 pixels nothing sticks out, with errors", wide <= 360, wide);
  await size(browser, 1000, 900);
  await scheme(browser, "light");
  await photo(browser, "dashboard-error", 330);
  const { metadata: { name }, roleRef, subjects } = right;
  await demo.ask("service", "POST", bindings, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name }, roleRef, subjects });

  // What must not be there.
  const secret = await demo.ask("team-a", "GET", "/api/v1/namespaces/default/secrets/demo-credentials");
  // The user name is that of the kind.
  const values = [...Object.values(secret.data), Buffer.from(secret.data.password, "base64").toString()];
  const everything = await browser.run(async () => document.documentElement.outerHTML + await (await fetch("state.json")).text() + await (await fetch("find.json?q=")).text());
  check("no value of a Secret is anywhere in the page", values.length > 3 && values.every(value => !everything.includes(value)));
  check("nothing is asked of any other host", asked.length > 5 && asked.every(url => url.startsWith(origin + "/")), asked.filter(url => !url.startsWith(origin + "/")));
  check("the console is empty", complaints.length === 0, complaints);
}

const demo = await Demo.start(process.env.CARRICK);
let browser;
try {
  browser = await Chromium.start(process.env.CHROMIUM);
  await look(demo, browser);
} catch (error) {
  check("the check comes to its end", false, String(error.stack));
} finally {
  await browser?.stop();
  await demo.stop();
}
end("the dashboard is as it should be");
