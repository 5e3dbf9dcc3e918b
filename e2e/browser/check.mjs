// What must be true of the dashboard in a real browser. Prints a line for each; ends with 1 if one of them is not so.
import { setTimeout as pause } from "node:timers/promises";
import { Chromium } from "./chromium.mjs";
import { Demo, Program } from "./demo.mjs";
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
  await until(browser, "both workspaces are shown with one order each, by path and by cluster", () => {
    const rows = [...document.querySelectorAll("#workspaces tr")].map(row => [row.firstChild.innerText, row.lastChild.innerText]);
    return (rows.length === 2 && rows.every(([name, orders]) => /^root:\S+ \(\w+\)$/.test(name) && orders === "1")) || rows;
  });
  await until(browser, "each workspace has its binding and the claims that it has accepted", () => {
    const cells = [...document.querySelectorAll("#workspaces tr")].map(row => row.children[1].innerText);
    return cells.every(text => text.includes("✓ httpbins") && text.includes("✓ secrets accepted")) || cells;
  });
  await until(browser, "lag and throughput are drawn over time", () => ["chart-lag", "chart-steps"].every(id => document.querySelector("#" + id + " polyline").getAttribute("points").trim().split(" ").length > 2) || document.querySelector("#chart-steps polyline").getAttribute("points"));
  await until(browser, "nothing needs attention", () => document.getElementById("problems").hidden || document.getElementById("problems").innerText);

  // By keyboard alone: what can be reached, in which order, and whether one sees where one is.
  const stops = await tabs(browser, 12);
  const names = stops.map(stop => stop.name);
  check("Tab goes from top to bottom", JSON.stringify(names.slice(0, 8)) === JSON.stringify(["skip", "pause", "scroll", "q", "show", "BUTTON", "scroll", "link id"]), names);
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
  await browser.run(() => document.querySelector("#found .tools button").focus());
  await browser.press("Enter");
  await until(browser, "an order is compared with its copy, and where they differ says why", () => {
    const cells = [...document.querySelectorAll("#found table tbody tr")].map(row => row.innerText);
    return cells.some(text => text.includes("metadata.namespace") && text.includes("by the rules")) || cells;
  });
  check("the comparison stands in the address, and the focus stays", await browser.run(() => location.hash.includes("compare=httpbins+") && document.activeElement.innerText === "Hide the comparison"), await browser.run(() => location.hash + " " + document.activeElement.innerText));
  await photo(browser, "dashboard-compare", 900);
  await browser.press("Enter");
  await until(browser, "it can be hidden again", () => document.querySelector("#found table") === null);
  await browser.run(() => [...document.querySelectorAll("#found .tools button")].find(it => it.innerText === "Show as a tree").focus());
  await browser.press("Enter");
  await until(browser, "an order is shown as the tree of carrick trace, with its copy and its Secret below it", () => {
    const nodes = [...document.querySelectorAll("#found .tree .tree > li")].map(item => item.innerText);
    return (nodes.length === 2 && nodes[0].startsWith("HttpBin ") && nodes[0].includes("on the service cluster, since ") && nodes[0].includes("carrick trace default/demo --workspace ") && nodes[1].includes("credentials")) || nodes;
  });
  check("the tree stands in the address, and the focus stays", await browser.run(() => location.hash.includes("trace=httpbins+") && document.activeElement.innerText === "Hide the tree"), await browser.run(() => location.hash + " " + document.activeElement.innerText));
  const faint = await browser.run(dim);
  check("contrast is at least 4.5, with a tree", faint.length === 0, faint);
  await browser.press("Enter");
  await until(browser, "the tree can be hidden again", () => document.querySelector("#found .tree") === null);
  await browser.run(() => document.getElementById("pause").focus());
  await browser.press(" ");
  check("updates can be paused by keyboard", await browser.run(() => document.getElementById("pause").getAttribute("aria-pressed") === "true"));
  check("who is paused does not say that it works", await browser.run(() => document.getElementById("badge").innerText.startsWith("● paused at ")));
  await browser.press(" ");
  await until(browser, "going on, it says how it is", () => document.getElementById("badge").innerText === "✓ works");

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
  for (const width of [360, 420, 1200, 1280, 1920]) {
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
    return (!document.getElementById("problems").hidden && told.includes("forbidden") && told.includes("What to do:") && told.includes("carrick doctor") && told.includes("Show it")) || told;
  });
  await until(browser, "the badge does not say that it works", () => ["✗ 1 order fails", "✗ not ready"].includes(document.getElementById("badge").innerText) || document.getElementById("badge").innerText);
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
  await browser.run(() => [...document.querySelectorAll("#problem-list a")].find(link => link.innerText === "Show it").focus());
  await browser.press("Enter");
  const stopped = () => {
    const found = [...document.querySelectorAll("#found > li")].map(item => item.innerText);
    return (found.length === 1 && found[0].includes("✗ stopped here: copy") && found[0].includes("forbidden") && found[0].includes("What to do:")) || found;
  };
  await until(browser, "the order is shown with the station at which it stopped, and why", stopped);
  const shared = await browser.run(() => location.href);
  check("what is shown has an address", shared.endsWith("/#show=Forbidden"), shared);
  await browser.run(() => document.getElementById("h-find").scrollIntoView());
  await photo(browser, "dashboard-stopped", 1750);
  await browser.send("Page.navigate", { url: "about:blank" });
  await browser.send("Page.navigate", { url: shared });
  await until(browser, "the address shows the same to whoever gets it", stopped);
  check("the filter says what is shown", await browser.run(() => document.getElementById("show").value === "Forbidden"));
  for (const value of ["light", "dark"]) {
    await scheme(browser, value);
    const low = await browser.run(dim);
    check(`contrast is at least 4.5 in ${value}, with an order that stopped`, low.length === 0, low);
  }
  await scheme(browser, "light");
  const { metadata: { name }, roleRef, subjects } = right;
  await demo.ask("service", "POST", bindings, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name }, roleRef, subjects });
  await until(browser, "healed, nothing needs attention any more, and it works", () => (document.getElementById("problems").hidden && document.getElementById("badge").innerText === "✓ works") || document.getElementById("badge").innerText + ": " + document.getElementById("problem-list").innerText);
  await until(browser, "and nothing is in the list of what fails", () => document.getElementById("found-count").innerText === "Nothing found." || document.getElementById("found-count").innerText);

  // An order that goes while the agent cannot work: its copy stays, and is listed.
  const orders = order.slice(0, order.lastIndexOf("/")), lost = orders + "/lost";
  const { apiVersion, kind, spec } = await demo.ask("team-a", "GET", order);
  await demo.ask("team-a", "POST", orders, { apiVersion, kind, metadata: { name: "lost" }, spec });
  await until(browser, "there is a copy of one more order", async () => (await (await fetch("find.json?q=/lost")).json()).found.some(found => found.copy));
  await demo.ask("service", "DELETE", bindings + "/api-syncagent");
  await demo.ask("team-a", "DELETE", lost);
  await demo.ask("team-a", "PATCH", lost, { metadata: { finalizers: null } });
  await demo.ask("service", "POST", bindings, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding", metadata: { name }, roleRef, subjects });
  await until(browser, "a copy whose order is gone is listed, with the command that deletes it", () => {
    const told = document.getElementById("orphan-list").innerText;
    return (!document.getElementById("orphans").hidden && told.includes(":team-a/default/lost") && told.includes("kubectl delete httpbins.")) || told;
  });
  const dimmed = await browser.run(dim);
  check("contrast is at least 4.5, with such a copy", dimmed.length === 0, dimmed);
  const { orphans: [{ resource, copy }] } = await browser.run(async () => (await fetch("state.json")).json());
  const [plural, ...group] = resource.split(".");
  await demo.ask("service", "DELETE", `/apis/${group.join(".")}/${apiVersion.split("/")[1]}/namespaces/${copy.namespace}/${plural}/${copy.name}`);
  await until(browser, "once it is deleted, it is listed no more", () => document.getElementById("orphans").hidden);

  // What must not be there.
  const secret = await demo.ask("team-a", "GET", "/api/v1/namespaces/default/secrets/demo-credentials");
  // The user name is that of the kind.
  const values = [...Object.values(secret.data), Buffer.from(secret.data.password, "base64").toString()];
  const everything = await browser.run(async () => document.documentElement.outerHTML + await (await fetch("state.json")).text() + await (await fetch("find.json?q=")).text());
  check("no value of a Secret is anywhere in the page", values.length > 3 && values.every(value => !everything.includes(value)));
  const elsewhere = asked.filter(url => !url.startsWith(origin + "/") && url !== "about:blank");
  check("nothing is asked of any other host", asked.length > 5 && elsewhere.length === 0, elsewhere);
  check("the console is empty", complaints.length === 0, complaints);
}

/** Several agents on one page: one that works, and one that is down. */
async function lookAtMany(demo, browser) {
  const many = await Program.start(process.env.CARRICK, ["dashboard", "--address", "127.0.0.1:0", demo.url, "127.0.0.1:1"], /at (http:\/\/127\.0\.0\.1:\d+);/);
  try {
    await browser.send("Page.navigate", { url: many.found + "/" });
    await until(browser, "both agents are listed, and the one that is down says so", () => {
      const rows = [...document.querySelectorAll("#agents tr")].map(row => row.innerText);
      return (rows.length === 2 && rows[0].includes("✓ works") && rows[0].includes("httpbins") && rows[1].includes("✗ no answer")) || rows;
    });
    check("the badge tells the worst", await browser.run(() => document.getElementById("badge").innerText === "✗ no answer from 1"), await browser.run(() => document.getElementById("badge").innerText));
    const all = await tree(browser);
    check("everything on it that can be used has a name", nameless(all).length === 0, nameless(all));
    const low = await browser.run(dim);
    check("contrast on it is at least 4.5", low.length === 0, low);
    await size(browser, 1000, 900);
    await photo(browser, "dashboard-agents", 480);
    await browser.run(() => document.querySelector("#agents a").focus());
    await browser.press("Enter");
    await until(browser, "an agent's own page opens from it, with a way back", () => location.pathname === "/agents/1/" && document.getElementById("badge").innerText === "✓ works" && document.getElementById("all").innerText === "All agents");
    await browser.run(() => document.getElementById("find").requestSubmit());
    await until(browser, "there too, orders are found", () => document.querySelectorAll("#found > li").length === 2);
  } finally { await many.stop(); }
}

/** An agent that others can reach: one logs in. */
async function logIn(demo, browser) {
  const port = 20_000 + Math.floor(20_000 * Math.random());
  const flags = ["--namespace", "default", "--kubeconfig", `${demo.folder}/service.kubeconfig`, "--kcp-kubeconfig", `${demo.folder}/provider.kubeconfig`, "--apiexport-ref", "orchestrate.platform-mesh.io",
    "--agent-name", "second", "--published-resource-selector", "nobody=here", "--metrics-address", "0", "--health-address", "0", "--dashboard-address", `*:${port}`];
  const agent = await Program.start(process.env.AGENT, flags, /Starting kcp Sync Agent/);
  try {
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "dashboard-viewer" } };
    await demo.ask("service", "POST", "/api/v1/namespaces/default/serviceaccounts", account);
    const rbac = "/apis/rbac.authorization.k8s.io/v1/", about = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "dashboard-viewer" } };
    await demo.ask("service", "POST", rbac + "clusterroles", { ...about, kind: "ClusterRole", rules: [{ apiGroups: ["syncagent.kcp.io"], resources: ["publishedresources"], verbs: ["get"] }] });
    await demo.ask("service", "POST", rbac + "clusterrolebindings", { ...about, kind: "ClusterRoleBinding", roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "dashboard-viewer" }, subjects: [{ kind: "ServiceAccount", name: "dashboard-viewer", namespace: "default" }] });
    const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const { status: { token } } = await demo.ask("service", "POST", "/api/v1/namespaces/default/serviceaccounts/dashboard-viewer/token", request);

    await browser.send("Page.navigate", { url: `http://127.0.0.1:${port}/#q=` });
    await until(browser, "whoever comes from elsewhere is asked to log in, and told how to get a token", () => document.title.startsWith("Log in") && document.activeElement.id === "token" && document.querySelector("pre").innerText.includes("kubectl -n default create token"));
    for (const value of ["dark", "light"]) {
      await scheme(browser, value);
      const low = await browser.run(dim);
      check(`contrast of the login is at least 4.5 in ${value}`, low.length === 0, low);
    }
    await size(browser, 360, 900);
    const wide = await browser.run(() => document.documentElement.scrollWidth);
    check("at 360 pixels nothing of the login sticks out", wide <= 360, wide);
    await size(browser, 1000, 900);
    await photo(browser, "dashboard-login", 430);
    await browser.type("wrong");
    await browser.press("Enter");
    await until(browser, "a wrong token is refused with the reason", () => document.getElementById("problem").innerText.includes("does not accept this token") && document.getElementById("token").value === "");
    await browser.type(token);
    await browser.press("Enter");
    await until(browser, "a good one opens the page, at the address that was asked for", () => document.getElementById("title")?.innerText === "second" && location.hash === "#q=");
    check("no script can read the session", await browser.run(() => document.cookie === ""));
    await browser.run(() => document.getElementById("logout").focus());
    await browser.press("Enter");
    await until(browser, "logged out, one is asked to log in again", () => document.title.startsWith("Log in"));
    check("the token is in no line of the log", !agent.told.includes(token));
  } finally { await agent.stop(); }
}

const demo = await Demo.start(process.env.CARRICK);
let browser;
try {
  browser = await Chromium.start(process.env.CHROMIUM);
  await look(demo, browser);
  await lookAtMany(demo, browser);
  await logIn(demo, browser);
} catch (error) {
  check("the check comes to its end", false, String(error.stack));
} finally {
  await browser?.stop();
  await demo.stop();
}
end("the dashboard is as it should be");
