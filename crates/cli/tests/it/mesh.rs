//! `carrick provider up` in workspaces as Platform Mesh makes them: of its types, with its exports, one of which may have to be bound.

#![cfg(unix)] // stopping needs signals

use carrick_client::{Client, Error, Overrides, Resource, Server};
use serde_json::{Value, json};

use crate::provider::{crd, crds, kind, workspace};
use crate::running::{Folder, Running, carrick};

const SYSTEM: &str = "root:platform-mesh-system";
const UI: &str = "ui.platform-mesh.io";
const PROVIDERS: &str = "providers.platform-mesh.io";

/// A kcp and a service cluster, with what the mesh has in kcp.
struct Stage {
    folder: Folder,
    plane: Running,
    login: String,
    service_login: String,
    admin: Server,
    service: Client,
    crd: String,
}

fn types() -> Resource {
    Resource::cluster_wide("tenancy.kcp.io", "v1alpha1", "WorkspaceType", "workspacetypes")
}

fn workspaces() -> Resource {
    Resource::cluster_wide("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces")
}

/// A type that extends the usual one.
fn workspace_type(name: &str, more: &Value) -> Value {
    let mut spec = json!({ "extend": { "with": [{ "name": "universal", "path": "root" }] } });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({ "metadata": { "name": name }, "spec": spec })
}

/// Creates an object, with the words that servers want of it.
async fn create(place: &Client, resource: &Resource, namespace: Option<&str>, object: &Value) -> Result<Value, Error> {
    let mut object = object.clone();
    object["apiVersion"] = json!(format!("{}/{}", resource.group, resource.version));
    object["kind"] = json!(*resource.kind);
    place.create(resource, namespace, &object).await
}

/// An export of kinds whose objects may contain anything.
async fn export(place: &Client, name: &str, kinds: &[(&str, &str)]) {
    let schemas = Resource::cluster_wide("apis.kcp.io", "v1alpha1", "APIResourceSchema", "apiresourceschemas");
    let mut resources = Vec::new();
    for (kind, plural) in kinds {
        let mut schema = crd(name, kind, plural, "v1alpha1")["spec"].clone();
        let open = schema["versions"][0]["schema"]["openAPIV3Schema"].take();
        schema["versions"][0]["schema"] = open;
        let called = format!("v1.{plural}.{name}");
        create(place, &schemas, None, &json!({ "metadata": { "name": called }, "spec": schema })).await.unwrap();
        resources.push(json!({ "name": plural, "group": name, "schema": called, "storage": { "crd": {} } }));
    }
    let exports = Resource::cluster_wide("apis.kcp.io", "v1alpha2", "APIExport", "apiexports");
    create(place, &exports, None, &json!({ "metadata": { "name": name }, "spec": { "resources": resources } }))
        .await
        .unwrap();
}

impl Stage {
    async fn set(name: &str) -> Self {
        let folder = Folder::new(name);
        let data = folder.path("data");
        let mut plane = Running::start(&["plane", "--data-dir", &data, "--port-kcp", "0", "--port-service", "0"]);
        plane.until("Running until Ctrl-C");
        let (login, service_login) = (format!("{data}/kcp-admin.kubeconfig"), format!("{data}/service.kubeconfig"));
        let server = |login: &str| Server::from_kubeconfig(login.as_ref(), &Overrides::default()).unwrap();
        let (admin, service) = (server(&login), server(&service_login).client());
        let system = workspace(&admin, "root", "platform-mesh-system").await;
        export(&system, PROVIDERS, &[("ProviderPermissions", "providerpermissions")]).await;
        export(
            &system,
            UI,
            &[("ProviderMetadata", "providermetadatas"), ("ContentConfiguration", "contentconfigurations")],
        )
        .await;
        let root = admin.at_path("/clusters/root");
        let bound = json!([{ "path": SYSTEM, "export": PROVIDERS }]);
        let provider = workspace_type("provider", &json!({ "defaultAPIBindings": bound }));
        create(&root, &types(), None, &provider).await.unwrap();
        let only = json!({ "types": [{ "name": "provider", "path": "root" }] });
        let providers = workspace_type("providers", &json!({ "limitAllowedChildren": only }));
        create(&root, &types(), None, &providers).await.unwrap();
        let home =
            json!({ "metadata": { "name": "providers" }, "spec": { "type": { "name": "providers", "path": "root" } } });
        create(&root, &workspaces(), None, &home).await.unwrap();
        ready(&root, "providers").await;
        let bucket = crd("example.com", "Bucket", "buckets", "v1");
        service.create(&crds(), None, &bucket).await.unwrap();
        let crd = folder.path("crd.yaml");
        std::fs::write(&crd, bucket.to_string()).unwrap();
        Self { folder, plane, login, service_login, admin, service, crd }
    }

    fn at(&self, path: &str) -> Client {
        self.admin.at_path(&format!("/clusters/{path}"))
    }

    /// Runs the command, and returns whether it went well and what it said.
    async fn up(&self, more: &[&str]) -> (bool, String) {
        let fixed = ["provider", "up", "--platform-mesh", "--kubeconfig", &self.service_login];
        run(&[&fixed[..], more].concat()).await
    }
}

/// Runs a command, and returns whether it went well and what it said.
async fn run(args: &[&str]) -> (bool, String) {
    let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
    let output = tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        carrick(&args).output().unwrap()
    });
    let output = output.await.unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), said)
}

/// The arguments of the Job that the chart renders, and the files that are mounted for it, with paths of this machine.
fn chart_job(folder: &Folder, login: &str) -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/tests/managed-provider.yaml");
    let objects = carrick_json::yaml::values(&std::fs::read_to_string(file).unwrap()).unwrap();
    let of_kind = |kind: &str| {
        let ours = |object: &&Value| {
            object["kind"] == kind && object["metadata"]["name"].as_str().unwrap().contains("bootstrap")
        };
        objects.iter().find(ours).unwrap_or_else(|| panic!("no {kind} for bootstrap"))
    };
    for (name, content) in of_kind("ConfigMap")["data"].as_object().unwrap() {
        std::fs::write(folder.path(name), content.as_str().unwrap()).unwrap();
    }
    let args = of_kind("Job")["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let mounted = folder.path("");
    let here = |arg: &Value| {
        let arg = arg.as_str().unwrap().replace("/etc/api-syncagent/kcp/kubeconfig", login);
        arg.replace("/etc/bootstrap/", &mounted)
    };
    args.iter().map(here).collect()
}

/// The id of a workspace's cluster once it is ready.
async fn ready(parent: &Client, name: &str) -> String {
    loop {
        let found = parent.get(&workspaces(), None, name).await.unwrap().unwrap();
        if found["status"]["phase"] == "Ready" {
            return found["spec"]["cluster"].as_str().unwrap().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_workspace_gets_the_meshs_type_its_kinds_and_all_that_its_portal_reads() {
    let stage = Stage::set("mesh-workspace").await;
    let (icon, roles) = (stage.folder.path("icon.svg"), stage.folder.path("roles.yaml"));
    std::fs::write(&icon, "<svg/>").unwrap();
    let role = "{id: auditor, displayName: Auditor, description: Reads, definition: '[user] or owner'}";
    std::fs::write(&roles, format!("roles:\n- groupResource: buckets\n  roles: [{role}]\n")).unwrap();
    let portal = ["--icon", &icon, "--detail-view", "https://ui.example.com/page.js", "--roles", &roles];
    let told = [&["--kcp-kubeconfig", &stage.login, "--crd", &stage.crd][..], &portal].concat();
    let here = [&told[..], &["--workspace", "root:providers:storage"]].concat();

    // What would be made is printed, with the type, and nothing is done.
    let (fine, printed) = stage.up(&[&here[..], &["--dry-run", "-o", "yaml"]].concat()).await;
    assert!(fine, "{printed}");
    for wanted in [
        "# in workspace root:providers\n",
        "kind: Workspace\n",
        "kind: ProviderPermissions\n",
        "kind: ProviderMetadata\n",
    ] {
        assert!(printed.contains(wanted), "{wanted}\n{printed}");
    }
    let home = stage.at("root:providers");
    assert_eq!(home.get(&workspaces(), None, "storage").await.unwrap(), None);

    let (fine, said) = stage.up(&here).await;
    assert!(fine, "{said}");
    let made = home.get(&workspaces(), None, "storage").await.unwrap().unwrap();
    assert_eq!(made["spec"]["type"], json!({ "name": "provider", "path": "root" }));
    let own = stage.at("root:providers:storage");
    let bindings = Resource::cluster_wide("apis.kcp.io", "v1alpha2", "APIBinding", "apibindings");
    let binding = own.get(&bindings, None, UI).await.unwrap().expect(&said);
    assert_eq!(binding["spec"]["reference"]["export"], json!({ "path": SYSTEM, "name": UI }));
    let metadata =
        own.get(&kind(UI, "ProviderMetadata", "providermetadatas"), None, "example.com").await.unwrap().unwrap();
    assert_eq!(metadata["spec"]["icon"]["dark"]["data"], "data:image/svg+xml;base64,PHN2Zy8+");
    assert_eq!(metadata["spec"]["detailViewExtensions"], json!([{ "url": "https://ui.example.com/page.js" }]));
    let permissions = kind(PROVIDERS, "ProviderPermissions", "providerpermissions");
    let permissions = own.get(&permissions, None, "example.com").await.unwrap().unwrap();
    assert_eq!(permissions["spec"]["apiExport"]["ref"]["name"], "example.com");
    assert_eq!(permissions["spec"]["roles"][0]["groupResource"], "bucket.example.com");
    let pages = kind(UI, "ContentConfiguration", "contentconfigurations");
    assert!(own.get(&pages, None, "buckets").await.unwrap().is_some(), "{said}");
    let (fine, said) = stage.up(&here).await;
    assert!(fine && said.matches("0 of them new or changed").count() == 2, "{said}");

    // Elsewhere nobody binds what a role needs.
    let (fine, said) = stage.up(&[&told[..], &["--workspace", "root:plain", "--agent", "plain"]].concat()).await;
    assert!(!fine && said.contains("bind providers.platform-mesh.io of root:platform-mesh-system there"), "{said}");

    let (fine, said) = stage.up(&[&here[..], &["--undo", "--yes"]].concat()).await;
    assert!(fine, "{said}");
    assert_eq!(home.get(&workspaces(), None, "storage").await.unwrap(), None, "{said}");
    assert_eq!(stage.plane.stop("TERM").0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_workspace_of_a_managed_provider_is_prepared_again_and_again() {
    let stage = Stage::set("mesh-managed").await;
    let home = stage.at("root:providers");
    let empty = json!({ "metadata": { "name": "p-2ab3" }, "spec": { "type": { "name": "provider", "path": "root" } } });
    create(&home, &workspaces(), None, &empty).await.unwrap();
    let id = ready(&home, "p-2ab3").await;
    // The chart has installed the CRD, and the mesh has written a login that leads to the workspace by its id.
    stage.service.create(&crds(), None, &carrick_syncagent::api::crd()).await.unwrap();
    let text = std::fs::read_to_string(&stage.login).unwrap();
    let url = stage.admin.url().split("/clusters/").next().unwrap().to_owned();
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.split_once("server: ") {
            Some((before, _)) => format!("{before}server: {url}/clusters/{id}"),
            None => line.to_owned(),
        })
        .collect();
    let login = stage.folder.path("provider.kubeconfig");
    std::fs::write(&login, lines.join("\n")).unwrap();
    // As the chart's Job does it, word for word.
    let pail = crd("example.com", "Pail", "pails", "v1");
    stage.service.create(&crds(), None, &pail).await.unwrap();
    let job = chart_job(&stage.folder, &login);
    let job: Vec<&str> = job.iter().map(String::as_str).chain(["--kubeconfig", &stage.service_login]).collect();
    let (fine, said) = run(&job).await;
    assert!(fine, "{said}");
    let own = stage.at("root:providers:p-2ab3");
    let exports = Resource::cluster_wide("apis.kcp.io", "v1alpha2", "APIExport", "apiexports");
    for (place, resource, name) in [
        (&own, &exports, "example.com"),
        (&own, &kind(UI, "ProviderMetadata", "providermetadatas"), "example.com"),
        (&own, &kind(PROVIDERS, "ProviderPermissions", "providerpermissions"), "example.com"),
        (&stage.service, &kind("syncagent.kcp.io", "PublishedResource", "publishedresources"), "buckets"),
        (&stage.service, &kind("syncagent.kcp.io", "PublishedResource", "publishedresources"), "pails"),
    ] {
        assert!(place.get(resource, None, name).await.unwrap().is_some(), "no {resource} {name}: {said}");
    }
    // The agent and its login are the chart's and the mesh's.
    let accounts = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    assert_eq!(own.get(&accounts, Some("default"), "example.com-syncagent").await.unwrap(), None);
    assert_eq!(stage.service.get(&accounts, Some("kcp-system"), "example.com-syncagent").await.unwrap(), None);
    let (fine, said) = run(&job).await;
    assert!(fine && said.matches("0 of them new or changed").count() == 2, "{said}");

    // What has the mesh do all that.
    let managed = ["--managed-by", "default/main", "--chart", "oci://registry.example.com/charts/api-syncagent"];
    let managed = [&managed[..], &["--crd", &stage.crd]].concat();
    let (fine, said) = stage.up(&managed).await;
    assert!(!fine && said.contains("does not serve ManagedProvider"), "{said}");
    let mut definition = crd(PROVIDERS, "ManagedProvider", "managedproviders", "v1alpha1");
    definition["spec"]["scope"] = json!("Namespaced");
    stage.service.create(&crds(), None, &definition).await.unwrap();
    let kind = Resource::namespaced(PROVIDERS, "v1alpha1", "ManagedProvider", "managedproviders");
    let flux = json!({ "flux": { "chart": "elsewhere/api-syncagent" } });
    let other = json!({ "metadata": { "name": "other" }, "spec": { "runtimeDeployments": [flux] } });
    while create(&stage.service, &kind, Some("default"), &other).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (fine, said) = stage.up(&managed).await;
    assert!(!fine && said.contains("ManagedProvider default/other installs a chart of the same name"), "{said}");
    stage.service.delete(&kind, Some("default"), "other", &carrick_client::DeleteOptions::default()).await.unwrap();
    let (fine, said) = stage.up(&managed).await;
    assert!(fine && said.contains("kubectl wait managedprovider/example-com -n default"), "{said}");
    let found = stage.service.get(&kind, Some("default"), "example-com").await.unwrap().unwrap();
    let values = &found["spec"]["runtimeDeployments"][0]["flux"]["values"];
    assert_eq!(values["bootstrap"]["publishedResources"][0]["metadata"]["name"], "buckets");
    let (fine, said) = stage.up(&[&managed[..], &["--undo", "--yes"]].concat()).await;
    assert!(fine, "{said}");
    assert_eq!(stage.service.get(&kind, Some("default"), "example-com").await.unwrap(), None);
    assert_eq!(stage.plane.stop("TERM").0, Some(0));
}

/// A PublishedResource that serves a platform's API and takes every order of it.
const TAKING: &str = "\
apiVersion: syncagent.kcp.io/v1alpha1
kind: PublishedResource
metadata: {name: pails}
spec:
  resource: {apiGroup: example.com, kind: Bucket, versions: [v1]}
  implements:
    resource: pails.platform.example
    kind: Pail
    scope: Cluster
    accept: {}
    versions:
    - name: v1alpha1
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
    spec:
    - move: {from: spec.size, to: spec.size}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_finds_a_provider_whose_workspace_has_bound_the_platforms_accept_apis() {
    const BROKER: &str = "broker.platform-mesh.io";
    let stage = Stage::set("mesh-broker").await;
    let platform = workspace(&stage.admin, "root", "platform").await;
    export(&platform, BROKER, &[("AcceptAPI", "acceptapis")]).await;
    let exports = Resource::cluster_wide("apis.kcp.io", "v1alpha2", "APIExport", "apiexports");
    let claim = json!({ "group": "", "resource": "secrets", "verbs": ["get", "list", "watch"] });
    let schema = format!("v1.acceptapis.{BROKER}");
    let resource = json!({ "name": "acceptapis", "group": BROKER, "schema": schema, "storage": { "crd": {} } });
    let object = json!({
        "metadata": { "name": "acceptapis" }, "spec": { "resources": [resource], "permissionClaims": [claim] },
    });
    create(&platform, &exports, None, &object).await.unwrap();
    let own = workspace(&stage.admin, "root", "mine").await;
    let file = stage.folder.path("pails.yaml");
    std::fs::write(&file, TAKING).unwrap();
    let fixed = ["provider", "up", "--kcp-kubeconfig", &stage.login, "--kubeconfig", &stage.service_login];
    let fixed = [&fixed[..], &["--workspace", "root:mine", "--published-resource", &file]].concat();
    let up = async |more: &[&str]| run(&[&fixed[..], more].concat()).await;

    // Without a broker nobody finds the provider, and the doctor says so.
    let (fine, said) = up(&[]).await;
    assert!(
        fine && said.contains("[broker-not-bound]") && said.contains("acceptapis.broker.platform-mesh.io;"),
        "{said}"
    );
    let (fine, said) = up(&["--broker", "root:mine"]).await;
    assert!(!fine && said.contains("no APIExport acceptapis to be seen in workspace root:mine"), "{said}");

    let brokered = ["--broker", "root:platform"];
    let (fine, said) = up(&brokered).await;
    assert!(fine && said.contains("the workspace serves AcceptAPIs"), "{said}");
    assert!(!said.contains("[broker-not-bound]") && !said.contains("[right-missing]"), "{said}");
    // Its orders say nothing that a broker waits for.
    assert!(said.contains("[broker-no-word]"), "{said}");
    let bindings = Resource::cluster_wide("apis.kcp.io", "v1alpha2", "APIBinding", "apibindings");
    let bound = async || own.get(&bindings, None, "acceptapis").await.unwrap();
    let binding = bound().await.expect(&said);
    assert_eq!(binding["spec"]["reference"]["export"], json!({ "path": "root:platform", "name": "acceptapis" }));
    let claim = &binding["spec"]["permissionClaims"][0];
    assert_eq!((&claim["resource"], &claim["state"]), (&json!("secrets"), &json!("Accepted")));
    let (fine, said) = up(&brokered).await;
    assert!(fine && said.matches("0 of them new or changed").count() == 2, "{said}");

    // The binding goes with the last provider of the workspace, although nobody names the platform any more.
    create(&own, &exports, None, &json!({ "metadata": { "name": "other" }, "spec": {} })).await.unwrap();
    let (fine, said) = up(&["--undo", "--yes"]).await;
    assert!(fine && said.contains("kept      APIBinding acceptapis: there are other APIExports"), "{said}");
    assert!(bound().await.is_some(), "{said}");
    own.delete(&exports, None, "other", &carrick_client::DeleteOptions::default()).await.unwrap();
    let (fine, said) = up(&["--undo", "--yes"]).await;
    assert!(fine && bound().await.is_none(), "{said}");
    assert_eq!(stage.plane.stop("TERM").0, Some(0));
}
