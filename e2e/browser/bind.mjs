// What must be true of the backend's catalogue in a real browser. Prints a line for each; ends with 1 if one of them is not so.
import { createServer } from "node:http";
import { Backend } from "./backend.mjs";
import { Chromium } from "./chromium.mjs";
import { check, dim, end, nameless, overhear, photo, scheme, size, tabs, tree, until } from "./look.mjs";

/** Checks that hold on every page. */
async function everywhere(browser, where) {
  const all = await tree(browser);
  check(`${where}: everything that can be used has a name`, nameless(all).length === 0, nameless(all));
  const told = await browser.run(() => ({
    lang: document.documentElement.lang, title: document.title, mains: document.querySelectorAll("main").length, banners: document.querySelectorAll("body > header").length,
    tops: document.querySelectorAll("h1").length, empty: [...document.querySelectorAll("p, li, dd, h1, h2")].filter(it => !it.innerText.trim() && !it.querySelector("img, input")).length,
    levels: [...document.querySelectorAll("h1, h2, h3")].map(it => Number(it.tagName[1])), unlabelled: [...document.querySelectorAll("input:not([type=hidden]), textarea")].filter(it => !it.labels.length).length,
  }));
  const jumps = told.levels.some((level, index) => index > 0 && level > told.levels[index - 1] + 1);
  check(`${where}: language, landmarks, one main heading, no level left out`, told.lang === "en" && told.mains === 1 && told.banners === 1 && told.tops === 1 && !jumps, told);
  check(`${where}: the title says what this is, and whose`, /^.+ – Widgets & Sons$/.test(told.title), told.title);
  check(`${where}: nothing is empty, every field has a label`, told.empty === 0 && told.unlabelled === 0, told);
  for (const value of ["light", "dark"]) {
    await scheme(browser, value);
    const low = await browser.run(dim);
    check(`${where}: contrast is at least 4.5 in ${value}`, low.length === 0, low);
  }
  await scheme(browser, "light");
  for (const width of [320, 1000]) {
    await size(browser, width, 800);
    const wide = await browser.run(() => document.documentElement.scrollWidth);
    check(`${where}: at ${width} pixels nothing sticks out`, wide <= width, wide);
  }
}

async function photos(browser, name, height) {
  await size(browser, 1000, 800);
  for (const value of ["light", "dark"]) {
    await scheme(browser, value);
    await photo(browser, `${name}-${value}`, height);
  }
  await scheme(browser, "light");
}

const text = browser => browser.run(() => document.body.innerText);
const at = (browser, what, words) => until(browser, what, words => (document.readyState === "complete" && document.querySelector("h1")?.innerText === words) || document.body?.innerText, words);

/** Presses Tab until the focus is on something with this text or id. */
async function tabTo(browser, wanted) {
  for (let number = 0; number < 20; number += 1) {
    const found = await browser.run(wanted => [document.activeElement.id, document.activeElement.innerText?.trim()].includes(wanted), wanted);
    if (found) return;
    await browser.press("Tab");
  }
  throw new Error(`Tab never comes to ${wanted}: ${await text(browser)}`);
}

async function look(backend, browser) {
  const { asked, complaints } = await overhear(browser);
  await size(browser, 1000, 800);
  await scheme(browser, "light");

  // A stranger sees nothing but the way in.
  await browser.send("Page.navigate", { url: backend.url + "/" });
  await at(browser, "a stranger is asked to log in", "Widgets & Sons");
  check("a stranger sees no service", !(await text(browser)).includes("credentials"));
  await everywhere(browser, "welcome");
  await tabTo(browser, "Log in");
  await browser.press("Enter");

  // The catalogue.
  await at(browser, "login by keyboard leads to the catalogue", "Services");
  const cookie = (await browser.send("Network.getCookies")).cookies.find(cookie => cookie.name === "kube-bind");
  check("the session's cookie is for this server and no script", cookie?.httpOnly && cookie.sameSite === "Lax" && cookie.path === "/", cookie);
  const shown = await text(browser);
  check("who is logged in, services and collections are shown", ["kube-bind-embedded-user", "widgets", "plain-widgets", "1 permission claim", "everyday", "What most teams need"].every(part => shown.includes(part)), shown);
  check("what a collection names and is not there is no link", await browser.run(() => ![...document.querySelectorAll("a")].some(link => link.innerText === "gone")));
  const stops = await tabs(browser, 12);
  check("Tab goes from top to bottom", JSON.stringify(stops.map(stop => stop.text)) === JSON.stringify(["Skip to content", "ghosts", "plain-widgets", "widgets", "widgets", "Log out"]), stops);
  check("where the focus is can be seen", stops.every(stop => stop.seen), stops);
  const roles = await tree(browser);
  const wanted = [["banner", ""], ["main", ""], ["heading", "Services"], ["list", ""], ["listitem", ""], ["link", "widgets"], ["button", "Log out"]];
  const missing = wanted.filter(([role, name]) => !roles.some(node => node.role === role && node.name.includes(name)));
  check("landmarks, lists, links and buttons have roles and names", missing.length === 0, missing);
  await everywhere(browser, "catalogue");
  await photos(browser, "catalogue", 560);

  // One service, and a mistake in the form.
  await browser.run(() => document.activeElement.blur());
  await tabTo(browser, "widgets");
  await browser.press("Enter");
  await at(browser, "a service has a page", "widgets");
  const details = await text(browser);
  check("it says what will be on the consumer's cluster, and what the provider gets", ["widgets.wild.io", "secrets", "Namespaces that are created"].every(part => details.includes(part)), details);
  await everywhere(browser, "service");
  const about = (await tree(browser)).find(node => node.role === "textbox");
  check("the field has a name", about?.name === "Name of the binding", about);
  await photos(browser, "bind", 800);
  await tabTo(browser, "name");
  await browser.run(() => document.getElementById("name").select());
  await browser.type("my..widgets");
  await browser.press("Enter");
  await until(browser, "a wrong name is told beside the form", () => document.querySelector("[role=alert]")?.innerText.includes("The name \"my..widgets\"") || document.body?.innerText);
  const after = await browser.run(() => {
    const field = document.getElementById("name");
    return { value: field.value, invalid: field.ariaInvalid, points: document.getElementById(field.getAttribute("aria-errormessage") ?? field.getAttribute("aria-describedby"))?.innerText, focused: document.activeElement === field, title: document.title, words: document.querySelector("[role=alert]").innerText };
  });
  check("what was typed is still there, marked as wrong, in focus, and points at the reason", after.value === "my..widgets" && after.invalid === "true" && after.points?.includes("lower-case") && after.focused, after);
  check("the title says that something is wrong", after.title.startsWith("Error"), after.title);
  check("the reason is in words of the page", !after.words.includes("metadata."), after.words);
  await everywhere(browser, "mistake");
  await photos(browser, "bind-error", 860);

  // The order.
  await browser.run(() => document.getElementById("name").select());
  await browser.type("my-widgets");
  await browser.press("Enter");
  await at(browser, "the order by keyboard succeeds", "my-widgets is bound");
  const told = await browser.run(() => ({ yaml: document.querySelector("textarea").value, label: document.querySelector("textarea").labels[0].innerText, text: document.body.innerText }));
  check("the result can be applied", told.yaml.includes("kind: APIServiceBindingBundle") && told.yaml.includes("kube-bind.io/provider-kubeconfig") && told.text.includes("kubectl apply"), told.text);
  check("it is said that it holds credentials", told.label.includes("credentials"), told.label);
  check("and that the konnector needs rights on what is bound", told.text.includes("konnector roles"), told.text);
  await everywhere(browser, "bound");
  await browser.run(() => { document.querySelector("textarea").value = document.querySelector("textarea").value.replace(/[A-Za-z0-9+/=]{60,}/, "ewogICJhcGlWZXJzaW9uIjogInYxIiwKICAia2luZCI6ICJDb25maWci…"); });
  await photos(browser, "bound", 900);
  const kubeconfigs = (await backend.ask("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dkubeconfig")).items;
  check("the provider has a contract", kubeconfigs.length === 1, kubeconfigs.length);
  await tabTo(browser, "All services");
  await browser.press("Enter");
  await at(browser, "back to the catalogue", "Services");

  // What goes wrong elsewhere.
  await tabTo(browser, "ghosts");
  await browser.press("Enter");
  await at(browser, "a service that cannot be bound", "ghosts");
  await tabTo(browser, "Bind");
  await browser.press("Enter");
  await until(browser, "what the provider's cluster says is told beside the form", () => document.querySelector("[role=alert]")?.innerText.includes("pods") || document.body?.innerText);
  for (const [path, words] of [["/bind?template=nothing", "There is no template"], ["/nowhere", "There is nothing at /nowhere"], ["/api/callback?code=x&state=y", "log in again"], ["/?cluster_id=%3C", "not the name of a cluster"]]) {
    await browser.send("Page.navigate", { url: backend.url + path });
    await until(browser, `${path}: an error has a page with the reason and the way back`, words => (document.querySelector("[role=alert]")?.innerText.includes(words) && document.querySelector("main a")?.innerText === "Back to the catalogue") || document.body?.innerText, words);
    await everywhere(browser, path);
  }

  // The command line waits for what is chosen.
  let heard;
  const waits = new Promise(resolve => { heard = resolve; });
  const line = createServer((request, answer) => {
    if (request.url.startsWith("/callback")) heard(new URL(request.url, "http://127.0.0.1"));
    answer.writeHead(200, { "content-type": "text/html" }).end("<title>done</title><h1>done</h1><link rel=icon href='data:,'>");
  });
  await new Promise(resolve => line.listen(0, "127.0.0.1", resolve));
  const back = `http://127.0.0.1:${line.address().port}/callback`;
  const query = new URLSearchParams({ redirect_url: back, session_id: "s-1", consumer_id: "my-cluster" });
  await browser.send("Page.navigate", { url: `${backend.url}/?${query}` });
  await at(browser, "the command line opens the catalogue", "Services");
  check("it is said which cluster it is for", (await text(browser)).includes("my-cluster"));
  await tabTo(browser, "plain-widgets");
  await browser.press("Enter");
  await at(browser, "the service's page knows it too", "plain-widgets");
  await tabTo(browser, "Bind");
  await browser.press("Enter");
  const answer = await waits;
  const response = JSON.parse(Buffer.from(answer.searchParams.get("binding_response"), "base64"));
  check("the command line gets the answer, and nobody else", answer.searchParams.get("session_id") === "s-1" && response.kind === "BindingResponse" && response.requests[0].spec.resources[0].resource === "widgets", response.kind);

  // The end.
  await browser.send("Page.navigate", { url: backend.url + "/" });
  await at(browser, "the catalogue once more", "Services");
  await tabTo(browser, "Log out");
  await browser.press("Enter");
  await at(browser, "logout by keyboard", "Widgets & Sons");
  await browser.send("Page.navigate", { url: backend.url + "/bind?template=widgets" });
  await at(browser, "a page that needs a login leads through it and back", "widgets");

  line.close();
  const elsewhere = asked.filter(url => !url.startsWith(backend.url + "/") && !url.startsWith(new URL(back).origin + "/") && !url.startsWith("data:"));
  check("nothing is asked of any other host", asked.length > 20 && elsewhere.length === 0, elsewhere);
  // That a page says 400 or 404 is told in the console, and meant.
  const others = complaints.filter(words => !/status of 4\d\d/.test(words) || /favicon|style|icon/.test(words));
  check("the console is empty", others.length === 0, others);
  const secret = Buffer.from(kubeconfigs[0].data.kubeconfig, "base64").toString().match(/token"?:\s*"?([^"\s,}]+)/)[1];
  check("no credentials are in the log", secret.length > 20 && !backend.log.includes(secret) && !backend.log.includes(cookie.value));
}

const backend = await Backend.start(process.env.CARRICK, process.env.BACKEND);
let browser;
try {
  browser = await Chromium.start(process.env.CHROMIUM);
  await look(backend, browser);
} catch (error) {
  check("the check comes to its end", false, String(error.stack));
} finally {
  await browser?.stop();
  await backend.stop();
}
end("catalogue and bind pages are as they should be");
