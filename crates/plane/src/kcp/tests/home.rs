//! Home workspaces, as `kubectl ws ~` asks for them.

use std::time::Duration;

use crate::config::{Config, Mode, User};
use crate::plane::Plane;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

const HOME: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces/~";

async fn client(plane: &Plane, user: &str, workspace: &str) -> kube::Client {
    let kubeconfig = plane.kubeconfig(user, Some(workspace)).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn get(client: &kube::Client, path: &str) -> (u16, String) {
    let answer = client.send(Request::get(path).body(kube::client::Body::empty()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// Asks like a client that retries when it is asked to.
async fn home(client: &kube::Client) -> Value {
    loop {
        match get(client, HOME).await {
            (200, body) => return serde_json::from_str(&body).unwrap(),
            (429, body) => assert_eq!(body, "Creating the home workspace\n"),
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn everybody_has_a_home_that_nobody_else_may_enter() {
    let mut config = Config::new(Mode::Kcp);
    config
        .users
        .extend([User::new("a", "alice", &["system:authenticated"]), User::new("b", "bob", &["system:authenticated"])]);
    let plane = Plane::start(config).await.unwrap();
    let alice = client(&plane, "alice", "root").await;
    let found = home(&alice).await;
    assert_eq!(found["spec"]["cluster"], "v1u4alow0iv9");
    assert_eq!(found["spec"]["URL"], format!("{}/clusters/v1u4alow0iv9", plane.url()));
    assert_eq!(found["metadata"]["name"], "cluster");
    assert_eq!(found["status"]["phase"], "Ready");
    assert_eq!(home(&alice).await, found, "the second question finds it");
    for path in ["v1u4alow0iv9", "user:alice"] {
        let inside = client(&plane, "alice", path).await;
        let (code, namespaces) = get(&inside, "/api/v1/namespaces").await;
        assert!(code == 200 && namespaces.contains("\"default\""), "{path}: {code} {namespaces}");
        let stranger = client(&plane, "bob", path).await;
        assert_eq!(get(&stranger, "/api/v1/namespaces").await.0, 403, "{path}");
    }
    let bob = home(&client(&plane, "bob", "root").await).await;
    assert_ne!(bob["spec"]["cluster"], found["spec"]["cluster"]);
}

#[tokio::test]
async fn somebody_unknown_has_no_home_and_other_workspaces_have_none_to_give() {
    let plane = Plane::start(Config::new(Mode::Kcp)).await.unwrap();
    let anonymous = {
        let kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig("kcp-admin", Some("root")).unwrap()).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.auth_info = kube::config::AuthInfo::default();
        kube::Client::try_from(config).unwrap()
    };
    let (code, body) = get(&anonymous, HOME).await;
    assert_eq!(code, 403);
    let said: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        said["message"],
        "workspaces.tenancy.kcp.io \"~\" is forbidden: User \"system:anonymous\" cannot create resource \"workspaces\" in API group \
         \"tenancy.kcp.io\" at the cluster scope: workspace access not permitted"
    );
    let admin = client(&plane, "kcp-admin", "root").await;
    let cluster = home(&admin).await["spec"]["cluster"].as_str().unwrap().to_owned();
    assert_eq!(get(&client(&plane, "kcp-admin", &cluster).await, HOME).await.0, 404);
}
