//! A konnector that lacks rights on its own cluster.

use carrick_bind_api::install::{self, HostAliases};
use carrick_konnector::agent::roles;

use carrick_bind_api::kinds;
use carrick_client::{DeleteOptions, Resource};
use serde_json::json;

use super::{World, of};

const CHECK: &str = "Rights of the konnector";

fn rbac(kind: &str, plural: &str, namespaced: bool) -> Resource {
    let make = if namespaced { Resource::namespaced } else { Resource::cluster_wide };
    make("rbac.authorization.k8s.io", "v1", kind, plural)
}

/// What `konnector roles | kubectl apply -f -` does.
async fn grant(world: &World) {
    let subject = install::subject();
    let mut all = carrick_bind_api::roles::base(&subject);
    all.extend(roles::of_cluster(&world.consumer, &subject, None).await.unwrap());
    for role in all {
        let (kind, namespace) = (role["kind"].as_str().unwrap(), role["metadata"]["namespace"].as_str());
        let resource = rbac(kind, &format!("{}s", kind.to_lowercase()), namespace.is_some());
        world.consumer.apply_as(&resource, namespace, &role, "test").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_the_konnector_lacks_here_are_named_with_the_line_that_grants_them() {
    let world = World::start("rights").await;
    world.is_well().await;
    // Somebody installs a konnector without its roles.
    let deployments = Resource::namespaced("apps", "v1", "Deployment", "deployments");
    let deployment = install::konnector("example.io/konnector:v1", &HostAliases::default()).pop().unwrap();
    world.consumer.create(&deployments, Some("kube-bind"), &deployment).await.unwrap();
    let file = world.folder.join("consumer");
    let file = file.display();
    let line = format!("konnector roles --kubeconfig {file} | kubectl --kubeconfig {file} apply -f -");
    world.sees(CHECK, "red", "ServiceAccount kube-bind/konnector may not", &line).await;
    grant(&world).await;
    world.is_well().await;
    // The role of one binding is gone.
    let roles = rbac("ClusterRole", "clusterroles", false);
    world.consumer.delete(&roles, None, "kube-bind-konnector-law", &DeleteOptions::default()).await.unwrap();
    world.sees(CHECK, "red", "get, list, patch, update, watch sheriffs.wild.io", &line).await;
    grant(&world).await;
    world.is_well().await;
    // What a konnector with another Lease says of itself.
    let status = |message: &str| {
        json!({"status": {"conditions": [{"type": "SchemaInSync", "status": "False", "severity": "Error", "reason": "X",
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    };
    let bindings = of(kinds::API_SERVICE_BINDING);
    let said = status("no; grant it with: konnector roles --lease-namespace l | kubectl apply -f -");
    world.consumer.merge_patch_status(&bindings, None, "law", &said).await.unwrap();
    let line = format!("konnector roles --kubeconfig {file} --lease-namespace l | kubectl --kubeconfig {file} apply");
    world.sees("Bindings", "red", "law: X: no", &line).await;
    let said = status("konnector roles; rm -rf / | kubectl apply -f -");
    world.consumer.merge_patch_status(&bindings, None, "law", &said).await.unwrap();
    let (_, found) = world.doctor().await;
    assert!(found.iter().all(|it| !it[3].contains("rm -rf")), "{found:#?}");
}
