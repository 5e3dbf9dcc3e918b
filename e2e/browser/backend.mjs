// A provider: an embedded cluster, and kube-bind-backend with its embedded issuer.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:http";
import { request } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const GROUP = "/apis/kube-bind.io/v1alpha2";

function freePort() {
  return new Promise(resolve => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class Backend {
  #started = [];

  static async start(carrick, backend) {
    const it = new Backend();
    try {
      await it.#begin(carrick, backend);
    } catch (error) {
      await it.stop();
      throw error;
    }
    return it;
  }

  async #begin(carrick, backend) {
    this.folder = mkdtempSync(join(tmpdir(), "carrick-bind-"));
    this.kubeconfig = join(this.folder, "service.kubeconfig");
    this.#run(carrick, ["plane", "--data-dir", this.folder, "--port-kcp", "0", "--port-service", "0"]);
    await this.#until("the plane", () => readFileSync(this.kubeconfig) && this.ask("GET", "/api/v1/namespaces/default"));
    const done = spawnSync(backend, ["--kubeconfig", this.kubeconfig, "init"], { encoding: "utf8" });
    if (done.status !== 0) throw new Error("init: " + done.stderr);
    await this.offer();
    this.url = "http://127.0.0.1:" + await freePort();
    this.#run(backend, ["--kubeconfig", this.kubeconfig, "--listen-address", this.url.slice(7), "--pretty-name", "Widgets & Sons",
      "--namespace-prefix", "kube-bind-", "--oidc-type", "embedded", "--oidc-issuer-url", this.url + "/oidc", "--oidc-callback-url", this.url + "/api/callback"]);
    await this.#until("the backend", () => new Promise((resolve, reject) => get(this.url + "/healthz", resolve).on("error", reject)));
    // Who has logged in may bind: the backend writes that when it begins to lead.
    await this.#until("the right to bind", () => this.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kube-bind-oidc-user"));
  }

  /** Services in the catalogue. */
  async offer() {
    const crd = { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "widgets.wild.io", labels: { "kube-bind.io/exported": "true" } },
      spec: { group: "wild.io", scope: "Namespaced", names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } };
    await this.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    const resources = [{ group: "wild.io", resource: "widgets", versions: ["v1"] }];
    const secrets = [{ group: "", resource: "secrets", selector: { labelSelector: { matchLabels: { app: "widget" } } } }];
    await this.template("widgets", { description: "Widgets with their credentials, made by our operator", scope: "Namespaced", resources, permissionClaims: secrets, namespaces: [{ name: "widgets" }] });
    await this.template("plain-widgets", { scope: "Namespaced", resources });
    await this.template("ghosts", { description: "An API that nobody has", scope: "Namespaced", resources, permissionClaims: [{ ...secrets[0], resource: "pods" }] });
    const collection = { apiVersion: "kube-bind.io/v1alpha2", kind: "Collection", metadata: { name: "everyday" }, spec: { description: "What most teams need", templates: [{ name: "widgets" }, { name: "gone" }] } };
    await this.#until("the collection", () => this.ask("POST", GROUP + "/collections", collection));
  }

  template(name, spec) {
    const template = { apiVersion: "kube-bind.io/v1alpha2", kind: "APIServiceExportTemplate", metadata: { name }, spec };
    return this.#until("template " + name, () => this.ask("POST", GROUP + "/apiserviceexporttemplates", template));
  }

  /** Sends a request to the provider's cluster, as its administrator. */
  ask(method, path, body) {
    const config = readFileSync(this.kubeconfig, "utf8");
    const field = name => config.match(new RegExp(`${name}:\\s*"?([^"\\s]+)"?`))[1];
    const ca = Buffer.from(field("certificate-authority-data"), "base64");
    const headers = { authorization: "Bearer " + field("token"), "content-type": "application/json" };
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

  #run(program, args) {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
    child.told = "";
    child.stderr.on("data", data => { child.told += data; });
    this.#started.push(child);
  }

  /** What the programs have logged. */
  get log() { return this.#started.map(child => child.told).join("\n"); }

  async #until(what, look) {
    const end = Date.now() + 60_000;
    for (let problem; ; await pause(50)) {
      try { return await look(); } catch (error) { problem = error; }
      const ended = this.#started.find(child => child.exitCode !== null);
      if (ended || Date.now() > end) throw new Error(`${what} does not come: ${problem}\n${this.log}`);
    }
  }

  async stop() {
    for (const child of this.#started.reverse()) {
      if (child.exitCode !== null) continue;
      const ended = new Promise(resolve => child.once("exit", resolve));
      child.kill("SIGINT");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
