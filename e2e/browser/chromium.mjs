// Chromium without a window, driven over a pipe by the DevTools protocol: messages in JSON, each ended by a zero byte.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export class Chromium {
  #next = 1;
  #waiting = new Map();
  #listeners = [];

  static async start(program) {
    const it = new Chromium();
    it.profile = mkdtempSync(join(tmpdir(), "carrick-browser-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir=" + it.profile, "about:blank"];
    it.process = spawn(program, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    it.process.on("exit", code => it.#waiting.forEach(({ reject }) => reject(new Error("Chromium ended with " + code))));
    let rest = Buffer.alloc(0);
    it.process.stdio[4].on("data", data => {
      rest = Buffer.concat([rest, data]);
      for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) it.#take(JSON.parse(rest.subarray(0, end).toString()));
    });
    const { targetInfos } = await it.send("Target.getTargets");
    const page = targetInfos.find(target => target.type === "page");
    it.session = (await it.send("Target.attachToTarget", { targetId: page.targetId, flatten: true })).sessionId;
    return it;
  }

  #take(message) {
    if (message.id === undefined) return this.#listeners.forEach(listener => listener(message.method, message.params));
    const { resolve, reject } = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
  }

  listen(listener) { this.#listeners.push(listener); }

  send(method, params = {}) {
    const id = this.#next++;
    const message = { id, method, params };
    if (this.session) message.sessionId = this.session;
    this.process.stdio[3].write(JSON.stringify(message) + "\0");
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Runs a function in the page and returns what it returns. */
  async run(work, ...given) {
    const expression = `(${work})(...${JSON.stringify(given)})`;
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async press(key) {
    const codes = { Tab: 9, Enter: 13, " ": 32 };
    const about = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: codes[key] };
    const text = key === "Enter" ? "\r" : key === " " ? " " : undefined;
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...about, text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...about });
  }

  async type(text) { await this.send("Input.insertText", { text }); }

  async stop() {
    const ended = new Promise(resolve => this.process.once("exit", resolve));
    this.process.kill();
    await ended;
    // Its children may still write for a moment; what they leave is no reason to fail.
    for (let tries = 0; tries < 20; tries += 1, await pause(100)) {
      try { return rmSync(this.profile, { recursive: true, force: true }); } catch { /* again */ }
    }
  }
}
