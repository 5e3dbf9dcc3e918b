//! `carrick provider up` on Platform Mesh, whose part a task plays here: it makes a workspace and a kubeconfig for a Provider.

#![cfg(unix)] // stopping needs signals

use std::time::Duration;

use crate::running::{Folder, Running, carrick};
use carrick_client::{Client, Overrides, Resource, Server};
use carrick_kcp::core::v1alpha1::LogicalCluster;
use carrick_kcp::tenancy::v1alpha1::Workspace;
use serde_json::{Value, json};

const PAUSE: Duration = Duration::from_millis(50);

pub fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub fn crd(group: &str, kind: &str, plural: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Cluster",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{ "name": version, "served": true, "storage": true, "subresources": { "status": {} }, "schema": {
                "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } }],
        },
    })
}

pub fn kind(group: &str, kind: &str, plural: &str) -> Resource {
    Resource::cluster_wide(group, "v1alpha1", kind, plural)
}

pub async fn workspace(admin: &Server, parent: &str, name: &str) -> Client {
    let above = admin.at_path(&format!("/clusters/{parent}"));
    above.create_kcp(&Workspace::new(name)).await.unwrap();
    while !above.get_kcp::<Workspace>(name).await.unwrap().unwrap().is_ready() {
        tokio::time::sleep(PAUSE).await;
    }
    admin.at_path(&format!("/clusters/{parent}:{name}"))
}

/// Waits for something.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.unwrap_or_else(|_| panic!("{what} is not there"))
}

/// What Platform Mesh does for a Provider.
async fn platform(admin: Server, mine: Client, kubeconfig: String) {
    let providers = kind("providers.platform-mesh.io", "Provider", "providers");
    let provider = until("the Provider", async || mine.get(&providers, None, "example-com").await.ok().flatten()).await;
    assert_eq!(provider["spec"], json!({}));
    let home: LogicalCluster = mine.get_kcp("cluster").await.unwrap().unwrap();
    let name = format!("example-com-{}", home.metadata.annotation("kcp.io/cluster").unwrap());
    let own = workspace(&admin, "root:providers", &name).await;
    for (kind, plural) in [("ProviderMetadata", "providermetadatas"), ("ContentConfiguration", "contentconfigurations")]
    {
        own.create(&crds(), None, &crd("ui.platform-mesh.io", kind, plural, "v1alpha1")).await.unwrap();
    }
    let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
    let secret = json!({
        "metadata": { "name": "example-com-provider-kubeconfig" }, "stringData": { "kubeconfig": kubeconfig },
    });
    mine.create(&secrets, Some("default"), &secret).await.unwrap();
    let ready = json!({ "status": { "phase": "Ready" } });
    mine.merge_patch_status(&providers, None, "example-com", &ready).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn platform_mesh_makes_the_workspace_and_gets_what_its_portal_shows() {
    let folder = Folder::new("provider-mesh");
    let data = folder.path("data");
    let mut plane = Running::start(&["plane", "--data-dir", &data, "--port-kcp", "0", "--port-service", "0"]);
    plane.until("Running until Ctrl-C");
    let login = format!("{data}/kcp-admin.kubeconfig");
    let admin = Server::from_kubeconfig(login.as_ref(), &Overrides::default()).unwrap();
    let mine = workspace(&admin, "root", "mine").await;
    let orgs = workspace(&admin, "root", "orgs").await;
    workspace(&admin, "root", "providers").await;
    mine.create(&crds(), None, &crd("providers.platform-mesh.io", "Provider", "providers", "v1alpha1")).await.unwrap();
    let policy = crd("core.platform-mesh.io", "APIExportPolicy", "apiexportpolicies", "v1alpha1");
    orgs.create(&crds(), None, &policy).await.unwrap();
    let bucket = folder.path("crd.yaml");
    std::fs::write(&bucket, crd("example.com", "Bucket", "buckets", "v1").to_string()).unwrap();
    let service = format!("{data}/service.kubeconfig");
    let on_service = Server::from_kubeconfig(service.as_ref(), &Overrides::default()).unwrap().client();
    on_service.create(&crds(), None, &crd("example.com", "Bucket", "buckets", "v1")).await.unwrap();
    let args = [
        ["provider", "up"],
        ["--kcp-kubeconfig", &login],
        ["--kubeconfig", &service],
        ["--crd", &bucket],
        ["--provider-in", "root:mine"],
        ["--allow-path", ":root:orgs:*"],
    ];
    let up = async |more: &[&str]| {
        let args: Vec<String> =
            args.iter().flatten().chain(["--platform-mesh"].iter()).chain(more).map(|it| (*it).to_owned()).collect();
        let output = tokio::task::spawn_blocking(move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            carrick(&args).output().unwrap()
        });
        let output = output.await.unwrap();
        let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}");
        told
    };

    let kubeconfig = std::fs::read_to_string(&login).unwrap();
    let ((), told) = tokio::join!(platform(admin.clone(), mine.clone(), kubeconfig), up(&[]));
    assert!(told.contains("create    Provider example-com in workspace root:mine"), "{told}");

    let home: LogicalCluster = mine.get_kcp("cluster").await.unwrap().unwrap();
    let path = format!("root:providers:example-com-{}", home.metadata.annotation("kcp.io/cluster").unwrap());
    let own = admin.at_path(&format!("/clusters/{path}"));
    let metadata = kind("ui.platform-mesh.io", "ProviderMetadata", "providermetadatas");
    let content = kind("ui.platform-mesh.io", "ContentConfiguration", "contentconfigurations");
    let export = Resource::cluster_wide("apis.kcp.io", "v1alpha1", "APIExport", "apiexports");
    let label = "ui.platform-mesh.io/content-for";
    for (resource, name) in [(&metadata, "example.com"), (&content, "buckets"), (&export, "example.com")] {
        let found = own.get(resource, None, name).await.unwrap().unwrap_or_else(|| panic!("no {resource}: {told}"));
        assert_eq!(found["metadata"]["labels"][label], "example.com", "{resource}");
    }
    let policies = kind("core.platform-mesh.io", "APIExportPolicy", "apiexportpolicies");
    let policy = orgs.get(&policies, None, "example.com").await.unwrap().unwrap();
    let wanted = json!({
        "apiExportRef": { "name": "example.com", "clusterPath": path }, "allowPathExpressions": [":root:orgs:*"],
    });
    assert_eq!(policy["spec"], wanted);

    // What people have completed stays.
    let mended = json!({ "spec": { "displayName": "Buckets for all" } });
    own.merge_patch(&metadata, None, "example.com", &mended).await.unwrap();
    let told = up(&[]).await;
    assert_eq!(told.matches("0 of them new or changed").count(), 2, "{told}");
    let found = own.get(&metadata, None, "example.com").await.unwrap().unwrap();
    assert_eq!(found["spec"]["displayName"], "Buckets for all");

    let told = up(&["--undo", "--yes"]).await;
    let providers = kind("providers.platform-mesh.io", "Provider", "providers");
    assert!(mine.get(&providers, None, "example-com").await.unwrap().is_none(), "{told}");
    assert!(orgs.get(&policies, None, "example.com").await.unwrap().is_none(), "{told}");
    assert!(own.get(&export, None, "example.com").await.unwrap().is_none(), "{told}");
    assert_eq!(plane.stop("TERM").0, Some(0));
}

#[test]
fn what_cannot_work_is_refused_with_the_way_out() {
    let folder = Folder::new("provider-refused");
    let bucket = folder.path("crd.yaml");
    std::fs::write(&bucket, crd("example.com", "Bucket", "buckets", "v1").to_string()).unwrap();
    let up = ["provider", "up", "--kcp-kubeconfig", "missing.kubeconfig"];
    for (more, wanted) in [
        (&["--crd", &bucket][..], "name another kubeconfig with --kcp-kubeconfig"),
        (&["--crd", &bucket, "--workspace", "Root"], "--workspace \"Root\" is no path of a workspace"),
        (&["--crd", "missing.yaml"], "cannot read missing.yaml"),
        (&["--crd", &bucket, "--apiexport-hostport-override", "a"], "original-host:port=new-host:port"),
        (&["--crd", &bucket, "--agent-kcp-server", "kcp:6443"], "say https://<host>:<port>"),
        (&["--crd", &bucket, "--platform-mesh", "--allow-path", "root:orgs"], "write it as :root:orgs:acme"),
        (&["--crd", &bucket, "--token-duration", "soon"], "write it as 30d"),
        (&["--crd", &bucket, "--force"], "--undo"),
        (&[], "--crd"),
    ] {
        let args: Vec<&str> = up.iter().chain(more).copied().collect();
        let output = carrick(&args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(wanted), "{more:?}: {told}");
    }
}
