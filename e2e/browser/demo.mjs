// `carrick demo --keep`, and its two servers as an administrator sees them.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:https";

/** A program that says when it is ready, on stdout or stderr. */
export class Program {
  static async start(program, flags, ready) {
    const it = new Program();
    it.process = spawn(program, flags, { stdio: ["ignore", "pipe", "pipe"] });
    it.told = "";
    await new Promise((resolve, reject) => {
      it.process.on("exit", code => reject(new Error(program + " ended with " + code + ":\n" + it.told)));
      for (const output of [it.process.stdout, it.process.stderr]) {
        output.on("data", data => {
          it.told += data;
          it.found = it.told.match(ready)?.[1];
          if (ready.test(it.told)) resolve();
        });
      }
    });
    return it;
  }

  async stop() {
    this.process.removeAllListeners("exit");
    const ended = new Promise(resolve => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }
}

export class Demo {
  static async start(program) {
    const it = new Demo();
    it.process = spawn(program, ["demo", "--keep"], { stdio: ["ignore", "pipe", "inherit"] });
    it.told = "";
    await new Promise((resolve, reject) => {
      it.process.on("exit", code => reject(new Error("the demo ended with " + code + ":\n" + it.told)));
      it.process.stdout.on("data", data => {
        it.told += data;
        if (it.told.includes("Running until Ctrl-C")) resolve();
      });
    });
    it.url = it.told.match(/^\s*(http:\/\/127\.0\.0\.1:\d+)$/m)?.[1];
    it.folder = it.told.match(/kubeconfigs are in (.*)$/m)?.[1];
    if (!it.url || !it.folder) throw new Error("the demo does not say where its dashboard is:\n" + it.told);
    return it;
  }

  /** Sends a request to the server of a kubeconfig. */
  ask(who, method, path, body) {
    const config = readFileSync(`${this.folder}/${who}.kubeconfig`, "utf8");
    const field = name => config.match(new RegExp(`${name}:\\s*"?([^"\\s]+)"?`))[1];
    const ca = Buffer.from(field("certificate-authority-data"), "base64");
    const headers = { authorization: "Bearer " + field("token"), "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" };
    return new Promise((resolve, reject) => {
      const sent = request(field("server") + path, { method, headers, ca }, answer => {
        let text = "";
        answer.on("data", data => { text += data; });
        answer.on("end", () => answer.statusCode < 300 ? resolve(JSON.parse(text)) : reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`)));
      });
      sent.on("error", reject);
      sent.end(body && JSON.stringify(body));
    });
  }

  async stop() {
    this.process.removeAllListeners("exit");
    const ended = new Promise(resolve => this.process.once("exit", resolve));
    this.process.kill("SIGINT");
    await ended;
  }
}
