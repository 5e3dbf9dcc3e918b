// What must be true of the dashboard in a real browser. Prints a line for each; ends with 1 if one of them is not so.
import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Chromium } from "./chromium.mjs";
import { Demo } from "./demo.mjs";

const photos = process.argv[2] === "--photos" ? process.argv[3] : null;
let failed = 0;
function check(what, good, seen) {
  console.log((good ? "ok      " : "FAILED  ") + what + (good || seen === undefined ? "" : ": " + JSON.stringify(seen)));
  if (!good) failed += 1;
}

/** Looks until the page says so. */
async function until(browser, what, look, ...given) {
  const end = Date.now() + 60_000;
  for (let seen; ; await pause(200)) {
    try { seen = await browser.run(look, ...given); } catch (error) { seen = String(error); }
    if (seen === true) return check(what, true);
    if (Date.now() > end) return check(what, false, seen);
  }
}

/** Text whose contrast with what lies behind it is too low. Runs in the page. */
function dim() {
  const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const behind = element => {
    for (let it = element; it; it = it.parentElement) {
      const colour = rgba(getComputedStyle(it).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(element.tagName) || !element.checkVisibility() || element.className === "skip") continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(element.tagName + "." + element.className + " " + ratio.toFixed(2));
  }
  return found;
}

async function photo(browser, name, height) {
  if (!photos) return;
  const { data } = await browser.send("Page.captureScreenshot", { format: "png", clip: { x: 0, y: 0, width: 1000, height, scale: 1 }, captureBeyondViewport: true });
  writeFileSync(`${photos}/${name}.png`, Buffer.from(data, "base64"));
}

async function scheme(browser, value) {
  await browser.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
}

async function size(browser, width, height) {
  await browser.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
}

async function look(demo, browser) {
  const order = "/apis/orchestrate.platform-mesh.io/v1alpha1/namespaces/default/httpbins/demo";
  const origin = demo.url, asked = [], complaints = [];
  browser.listen((method, params) => {
    if (method === "Network.requestWillBeSent") asked.push(params.request.url);
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) complaints.push(params.args.map(arg => arg.value).join(" "));
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) complaints.push(params.entry.text + " " + (params.entry.url ?? ""));
  });
  for (const domain of ["Network", "Runtime", "Log", "Page", "Accessibility"]) await browser.send(domain + ".enable");
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
  const stops = [];
  for (let number = 0; number < 12; number += 1) {
    await browser.press("Tab");
    const stop = await browser.run(() => {
      const it = document.activeElement, style = getComputedStyle(it);
      return { name: it.id || it.className || it.tagName, text: it.innerText?.slice(0, 20), seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (stop.name === "BODY") break;
    stops.push(stop);
  }
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
  const { nodes } = await browser.send("Accessibility.getFullAXTree");
  const all = nodes.filter(node => !node.ignored).map(node => ({ role: node.role.value, name: node.name?.value ?? "" }));
  const has = (role, name) => all.some(node => node.role === role && node.name.includes(name));
  const wanted = [["banner", ""], ["main", ""], ["contentinfo", ""], ["search", ""], ["status", ""], ["heading", "Published resources"], ["region", "Find an object"],
    ["table", "One row for each PublishedResource"], ["columnheader", "Copies"], ["rowheader", "httpbins"], ["searchbox", "Workspace, namespace or name"], ["img", "throughput over"]];
  // Chromium's name for the role of pictures has changed over time.
  const role = wantedRole => wantedRole === "img" ? ["img", "image"] : [wantedRole];
  check("landmarks, headings, tables and fields have roles and names", wanted.every(([kind, name]) => role(kind).some(one => has(one, name))), wanted.filter(([kind, name]) => !role(kind).some(one => has(one, name))));
  const nameless = all.filter(node => ["button", "link", "searchbox", "textbox", "img", "image", "table", "region"].includes(node.role) && !node.name);
  check("everything that can be used has a name", nameless.length === 0, nameless);

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
console.log(failed === 0 ? "the dashboard is as it should be" : failed + " checks failed");
process.exit(failed === 0 ? 0 : 1);
