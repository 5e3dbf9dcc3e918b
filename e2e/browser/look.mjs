// What all checks of pages need: findings, waiting, contrast, screenshots.
import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

export const photos = process.argv[2] === "--photos" ? process.argv[3] : null;
let failed = 0;
export function check(what, good, seen) {
  console.log((good ? "ok      " : "FAILED  ") + what + (good || seen === undefined ? "" : ": " + JSON.stringify(seen)));
  if (!good) failed += 1;
}

/** Looks until the page says so. */
export async function until(browser, what, look, ...given) {
  const end = Date.now() + 60_000;
  for (let seen; ; await pause(200)) {
    try { seen = await browser.run(look, ...given); } catch (error) { seen = String(error); }
    if (seen === true) return check(what, true);
    if (Date.now() > end) return check(what, false, seen);
  }
}

/** Text whose contrast with what lies behind it is too low. Runs in the page. */
export function dim() {
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

export async function photo(browser, name, height) {
  if (!photos) return;
  const { data } = await browser.send("Page.captureScreenshot", { format: "png", clip: { x: 0, y: 0, width: 1000, height, scale: 1 }, captureBeyondViewport: true });
  writeFileSync(`${photos}/${name}.png`, Buffer.from(data, "base64"));
}

export async function scheme(browser, value) {
  await browser.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
}

export async function size(browser, width, height) {
  await browser.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
}

/** What screen readers are told: roles and names. */
export async function tree(browser) {
  const { nodes } = await browser.send("Accessibility.getFullAXTree");
  return nodes.filter(node => !node.ignored).map(node => ({ role: node.role.value, name: node.name?.value ?? "" }));
}

/** Whatever can be used and has no name. */
export function nameless(all) {
  return all.filter(node => ["button", "link", "searchbox", "textbox", "img", "image", "table", "region"].includes(node.role) && !node.name);
}

/** Where Tab leads to, from where the focus is: up to so many stops. */
export async function tabs(browser, most) {
  const stops = [];
  for (let number = 0; number < most; number += 1) {
    await browser.press("Tab");
    const stop = await browser.run(() => {
      const it = document.activeElement, style = getComputedStyle(it);
      return { name: it.id || it.className || it.tagName, text: it.innerText?.slice(0, 20), seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 };
    });
    if (stop.name === "BODY") break;
    stops.push(stop);
  }
  return stops;
}

/** Collects what the browser asks for and what its console says. */
export async function overhear(browser) {
  const asked = [], complaints = [];
  browser.listen((method, params) => {
    if (method === "Network.requestWillBeSent") asked.push(params.request.url);
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) complaints.push(params.args.map(arg => arg.value).join(" "));
    if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) complaints.push(params.entry.text + " " + (params.entry.url ?? ""));
  });
  for (const domain of ["Network", "Runtime", "Log", "Page", "Accessibility"]) await browser.send(domain + ".enable");
  return { asked, complaints };
}

/** Says how it went, and ends. */
export function end(what) {
  console.log(failed === 0 ? what : failed + " checks failed");
  process.exit(failed === 0 ? 0 : 1);
}
