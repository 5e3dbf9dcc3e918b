//! The generic providers on the embedded plane.

mod inventories;
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use carrick_client::{DeleteOptions, Resource};
use carrick_multicluster::Fleet;
use carrick_multicluster::providers::{
    FromObjects, KubeconfigFiles, KubeconfigSecrets, Multi, Namespaces, Single, Static,
};
use data_encoding::BASE64;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use parking_lot::Mutex;
use serde_json::json;
use world::{EventLog, create_namespace, has_namespace, namespaces, plane, secrets};

#[tokio::test]
async fn one_cluster_and_clusters_pushed_by_code_can_be_used() {
    let (_plane, client) = plane().await;
    let mut log = EventLog::of(&Single::new("local", client.kube()));
    assert_eq!(log.until("synced").await, ["up local", "engage local", "synced"]);
    assert!(has_namespace(&log.engaged[0], "default").await);
    let pushed = Static::new();
    let mut log = EventLog::of(&pushed);
    pushed.insert("a", client).unwrap();
    assert_eq!(log.until("engage a").await, ["synced", "up a", "engage a"]);
    assert!(has_namespace(&log.engaged[0], "default").await);
}

#[tokio::test]
async fn namespaces_pose_as_clusters() {
    let (_plane, client) = plane().await;
    let mut log = EventLog::of(&Namespaces::new(client.clone()));
    let start = log.until("synced").await;
    assert!(start[0] == "up namespaces" && start.contains(&"engage default".to_owned()), "{start:?}");
    create_namespace(&client, "tenant").await;
    assert_eq!(log.next().await, "engage tenant");
    let tenant = log.engaged.last().unwrap();
    assert_eq!(tenant.client().default_namespace(), "tenant");
    assert!(
        Api::<ConfigMap>::default_namespaced(tenant.client()).list(&kube::api::ListParams::default()).await.is_ok()
    );
    client.delete(&namespaces(), None, "tenant", &DeleteOptions::default()).await.unwrap();
    assert_eq!(log.next().await, "disengage tenant");
}

fn secret(name: &str, kubeconfig: &str) -> serde_json::Value {
    json!({
        "metadata": {"name": name, "labels": {"sigs.k8s.io/multicluster-runtime-kubeconfig": "true"}},
        "data": {"kubeconfig": BASE64.encode(kubeconfig.as_bytes())},
    })
}

#[tokio::test]
async fn kubeconfigs_in_secrets_come_change_and_go_and_a_broken_one_harms_only_itself() {
    let (_hub_plane, hub) = plane().await;
    let ((first, _), (second, second_client)) = (plane().await, plane().await);
    create_namespace(&second_client, "only-in-second").await;
    create_namespace(&hub, "fleet").await;
    let create = async |object| hub.create(&secrets(), Some("fleet"), &object).await.unwrap();
    create(secret("a", &first.kubeconfig("admin", None).unwrap())).await;
    create(secret("broken", "apiVersion: v1\nusers: [{name: x, user: {token: very-secret")).await;
    create(json!({"metadata": {"name": "not-labelled"}, "data": {"kubeconfig": "YQ=="}})).await;

    let mut log = EventLog::of(&KubeconfigSecrets::new(hub.clone(), "fleet"));
    let mut start = log.until("synced").await;
    start.sort();
    assert_eq!(start[0], "engage a");
    assert!(start[1].starts_with("failing Secret fleet/broken: ") && !start[1].contains("very-secret"), "{start:?}");
    assert_eq!(start[2..], ["synced", "up a"]);
    assert!(has_namespace(&log.engaged[0], "default").await);

    let patch = |text: &str| json!({"data": {"kubeconfig": BASE64.encode(text.as_bytes())}});
    let change = patch(&second.kubeconfig("admin", None).unwrap());
    hub.merge_patch(&secrets(), Some("fleet"), "a", &change).await.unwrap();
    assert_eq!(log.until("engage a").await, ["up a", "engage a"]);
    assert!(log.engaged[0].epoch() < log.engaged[1].epoch());
    assert!(has_namespace(&log.engaged[1], "only-in-second").await);

    hub.merge_patch(&secrets(), Some("fleet"), "broken", &change).await.unwrap();
    let mended = ["recovered Secret fleet/broken", "up broken", "engage broken"];
    assert_eq!(log.until("engage broken").await, mended);
    hub.delete(&secrets(), Some("fleet"), "broken", &DeleteOptions::default()).await.unwrap();
    assert_eq!(log.until("down broken").await, ["disengage broken", "down broken"]);
}

#[tokio::test]
async fn a_kubeconfig_in_a_secret_reads_no_file_of_this_machine_unless_its_author_is_trusted() {
    let (plane, hub) = plane().await;
    create_namespace(&hub, "fleet").await;
    let folder: PathBuf = std::env::temp_dir().join(format!("carrick-token-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let token = folder.join("token");
    std::fs::write(&token, plane.token("admin").unwrap()).unwrap();
    let mut config = kube::config::Kubeconfig::from_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap();
    config.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"tokenFile": token})).unwrap());
    let object = secret("hostile", &serde_json::to_string(&config).unwrap());
    hub.create(&secrets(), Some("fleet"), &object).await.unwrap();

    let provider = KubeconfigSecrets::new(hub.clone(), "fleet");
    let start = EventLog::of(&provider).until("synced").await;
    let [failing, _] = &start[..] else { panic!("{start:?}") };
    assert!(failing.contains("Secret fleet/hostile") && failing.contains("names a file in tokenFile"), "{failing}");

    let mut log = EventLog::of(&provider.trust_authors());
    assert_eq!(log.until("synced").await.len(), 3);
    assert!(has_namespace(&log.engaged[0], "default").await);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn any_object_can_stand_for_a_cluster_as_soon_as_it_is_ready() {
    let (plane, hub) = plane().await;
    let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    let data = json!({"kubeconfig": plane.kubeconfig("admin", None).unwrap(), "ready": "no"});
    hub.create(&maps, Some("default"), &json!({"metadata": {"name": "m"}, "data": data})).await.unwrap();
    let provider = FromObjects::new(hub.clone(), |map: ConfigMap, _| async move {
        let kubeconfig = map.data.and_then(|mut data| data.remove("kubeconfig"));
        kubeconfig.ok_or_else(|| "there is none".into())
    });
    let ready = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data.get("ready").is_some_and(|it| it == "yes"));
    let mut log = EventLog::of(&provider.namespace("default").ready(ready));
    assert_eq!(log.until("synced").await, ["synced"]);
    let patch = json!({"data": {"ready": "yes"}});
    hub.merge_patch(&maps, Some("default"), "m", &patch).await.unwrap();
    assert_eq!(log.until("engage default/m").await, ["up default/m", "engage default/m"]);
    assert!(has_namespace(&log.engaged[0], "default").await);
}

#[tokio::test]
async fn contexts_of_kubeconfig_files_are_followed_through_links_as_mounted_secrets_have_them() {
    let ((first, _), (second, second_client)) = (plane().await, plane().await);
    create_namespace(&second_client, "only-in-second").await;
    let folder: PathBuf = std::env::temp_dir().join(format!("carrick-files-{}", uuid::Uuid::new_v4()));
    for (version, plane) in [("v1", &first), ("v2", &second)] {
        std::fs::create_dir_all(folder.join(version)).unwrap();
        std::fs::write(folder.join(version).join("kubeconfig"), plane.kubeconfig("admin", None).unwrap()).unwrap();
    }
    // As the kubelet does it: the file is a link into a folder that is itself a link, which is replaced in one go.
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, folder.join("..new")).unwrap();
        std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    };
    link("v1");
    std::os::unix::fs::symlink("..data/kubeconfig", folder.join("kubeconfig")).unwrap();

    let missing = folder.join("later.kubeconfig");
    let provider = KubeconfigFiles::new([folder.clone(), missing.clone()]).interval(Duration::from_millis(20));
    let mut log = EventLog::of(&provider);
    let start = log.until("synced").await;
    assert_eq!(start.len(), 3, "{start:?}");
    let name = log.engaged[0].name().clone();
    assert!(name.starts_with(&format!("{}+", folder.join("kubeconfig").display())), "{name}");
    assert!(!has_namespace(&log.engaged[0], "only-in-second").await);

    link("v2");
    assert_eq!(log.until(&format!("engage {name}")).await.len(), 2);
    assert!(has_namespace(&log.engaged[1], "only-in-second").await);

    write_whole(&missing, "clusters: [");
    assert!(log.next().await.starts_with(&format!("failing {}: ", missing.display())));
    std::fs::remove_file(&missing).unwrap();
    assert_eq!(log.next().await, format!("recovered {}", missing.display()));
    std::fs::remove_file(folder.join("kubeconfig")).unwrap();
    let end = format!("down {name}");
    assert_eq!(log.until(&end).await, [format!("disengage {name}"), end.clone()]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn several_providers_are_one_fleet_with_one_store() {
    let ((_a, a), (_b, b)) = (plane().await, plane().await);
    for (client, name) in [(&a, "in-a"), (&b, "in-b")] {
        create_namespace(client, name).await;
    }
    let multi = Multi::new().with("a", Single::new("x", a)).with("tenants", Namespaces::new(b));
    let fleet = Fleet::builder(multi.clone()).build();
    let patience = Duration::from_mins(1);
    let tenant = fleet.wait_cluster("tenants#in-b", patience).await.unwrap();
    assert_eq!(tenant.client().default_namespace(), "in-b");
    let x = fleet.wait_cluster("a#x", patience).await.unwrap();
    assert!(has_namespace(&x, "in-a").await);
    assert!(multi.remove("tenants"));
    let mut events = fleet.subscribe();
    tokio::time::timeout(patience, async {
        while fleet.cluster("tenants#in-b").is_ok() {
            events.next().await;
        }
    })
    .await
    .unwrap();
    assert!(fleet.cluster("a#x").is_ok());
}

/// Writes a file as a whole: whoever reads it now and then sees all of it or nothing.
fn write_whole(path: &Path, content: impl AsRef<[u8]>) {
    let beside = path.with_extension("beside");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(beside, path).unwrap();
}

/// A kubeconfig as it is minted anew at every look: the same server, another token.
fn with_token(kubeconfig: &str, token: &str) -> String {
    let mut config = kube::config::Kubeconfig::from_yaml(kubeconfig).unwrap();
    config.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"token": token})).unwrap());
    serde_json::to_string(&config).unwrap()
}

#[tokio::test]
async fn minted_kubeconfigs_bring_new_credentials_and_no_new_lists() {
    let (plane, hub) = plane().await;
    let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    let object = json!({"metadata": {"name": "m", "labels": {"fleet": "true"}}});
    hub.create(&maps, Some("default"), &object).await.unwrap();
    let good = plane.kubeconfig("admin", None).unwrap();
    let handed_out = Arc::new(Mutex::new(good.clone()));
    let minted = Arc::new(AtomicUsize::new(0));
    let (counting, handing) = (minted.clone(), handed_out.clone());
    let provider = FromObjects::new(hub.clone(), move |_: ConfigMap, _| {
        counting.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = handing.lock().clone();
        async move { Ok(kubeconfig) }
    });
    let provider = provider.labels("fleet=true").refresh(Duration::from_secs(1));
    let mut log = EventLog::of(&provider);
    log.until("synced").await;
    let cluster = log.engaged.last().unwrap().clone();
    let engaged = log.engaged.len();
    // What is told meanwhile would be a new watch, hence a new list. The provider goes on while somebody listens.
    let more = Arc::new(Mutex::new(Vec::new()));
    let listening = tokio::spawn({
        let more = more.clone();
        async move {
            while let Some(event) = log.events.next().await {
                more.lock().push(format!("{event:?}"));
            }
        }
    });
    assert!(has_namespace(&cluster, "default").await);
    *handed_out.lock() = with_token(&good, "nobody");
    let refused = async {
        while Api::<Namespace>::all(cluster.client()).get_opt("default").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), refused).await.expect("the new credentials are not used");
    *handed_out.lock() = good;
    let accepted = async {
        while Api::<Namespace>::all(cluster.client()).get_opt("default").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), accepted).await.expect("the new credentials are not used");
    assert!(minted.load(Ordering::Relaxed) >= 3 && engaged == 1);
    assert!(more.lock().is_empty(), "{:?}", more.lock());
    listening.abort();
    assert!(!cluster.gone().is_cancelled());
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_yet_is_tried_again_and_its_new_token_is_taken_over() {
    let (plane, _client) = plane().await;
    let folder: PathBuf = std::env::temp_dir().join(format!("carrick-later-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut config = kube::config::Kubeconfig::from_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap();
    let authority = folder.join("ca.pem");
    let cluster = config.clusters[0].cluster.as_mut().unwrap();
    let data = cluster.certificate_authority_data.take().unwrap();
    cluster.certificate_authority = Some(authority.display().to_string());
    let path = folder.join("kubeconfig");
    std::fs::write(&path, serde_json::to_string(&config).unwrap()).unwrap();

    let mut log = EventLog::of(&KubeconfigFiles::new([folder.clone()]).interval(Duration::from_millis(20)));
    let start = log.until("synced").await;
    assert!(start.len() == 2 && start[0].starts_with("failing "), "{start:?}");
    // The kubeconfig stays as it is; what it refers to comes later.
    write_whole(&authority, BASE64.decode(data.as_bytes()).unwrap());
    let name = format!("{}+{}", path.display(), config.current_context.clone().unwrap());
    let mended = log.until(&format!("engage {name}")).await;
    assert_eq!(mended, [format!("recovered {name}"), format!("up {name}"), format!("engage {name}")]);
    let cluster = log.engaged[0].clone();
    assert!(has_namespace(&cluster, "default").await);

    // Another token in the file is another token, not another cluster.
    config.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"token": "nobody"})).unwrap());
    write_whole(&path, serde_json::to_string(&config).unwrap());
    let refused = async {
        while Api::<Namespace>::all(cluster.client()).get_opt("default").await.is_ok() {
            // Looks at the files go on while somebody listens.
            let _ = tokio::time::timeout(Duration::from_millis(50), log.events.next())
                .await
                .map(|event| panic!("{event:?}"));
        }
    };
    tokio::time::timeout(Duration::from_mins(1), refused).await.expect("the new credentials are not used");
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn functions_of_a_provider_that_panic_harm_one_object_only() {
    let (plane, hub) = plane().await;
    let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
    for name in ["early", "good", "late", "unready"] {
        let object = json!({"metadata": {"name": name, "labels": {"fleet": "true"}}});
        hub.create(&maps, Some("default"), &object).await.unwrap();
    }
    let kubeconfig = plane.kubeconfig("admin", None).unwrap();
    let provider = FromObjects::new(hub.clone(), move |map: ConfigMap, _| {
        let name = map.metadata.name.unwrap_or_default();
        assert!(name != "early", "no kubeconfig");
        let kubeconfig = kubeconfig.clone();
        async move {
            assert!(name != "late", "still no kubeconfig");
            Ok(kubeconfig)
        }
    });
    let provider = provider.labels("fleet=true").bare_names().ready(|map: &ConfigMap| {
        assert!(map.metadata.name.as_deref() != Some("unready"), "who knows");
        true
    });
    let mut log = EventLog::of(&provider);
    let mut start = log.until("synced").await;
    start.sort();
    assert_eq!(start.len(), 6, "{start:?}");
    assert_eq!(start[0], "engage good");
    for (event, (name, words)) in
        start[1..4].iter().zip([("early", "no kubeconfig"), ("late", "still no kubeconfig"), ("unready", "who knows")])
    {
        assert!(event.starts_with(&format!("failing ConfigMap default/{name}: ")) && event.contains(words), "{event}");
    }
    assert!(has_namespace(&log.engaged[0], "default").await);
}
