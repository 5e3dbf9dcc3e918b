use carrick_plane::{Config, Mode};
use serde_json::json;

use super::client::{MAPS, WIDGETS, World, map, widget, widget_crd};

#[tokio::test]
async fn a_restarted_plane_has_its_objects_and_credentials() {
    let folder = std::env::temp_dir().join(format!("carrick-plane-{}", uuid::Uuid::new_v4()));
    let mut config = Config::new(Mode::Kube);
    config.data_dir = Some(folder.clone());
    let world = World::with(config.clone()).await;
    world.admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widget_crd()).await.expect(201);
    let made = world.admin.post(WIDGETS, widget("w", json!({"size": 1}))).await.expect(201);
    world.admin.post(MAPS, map("gone", json!({}))).await.expect(201);
    world.admin.delete(&format!("{MAPS}/gone")).await.expect(200);
    let (token, authority) = (world.plane.token("admin"), world.plane.ca_pem().to_owned());
    world.plane.stop().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.join("commits.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds tokens and Secrets");
    }

    let again = World::with(config).await;
    assert_eq!(again.plane.token("admin"), token);
    assert_eq!(again.plane.ca_pem(), authority);
    assert_eq!(again.admin.get(&format!("{WIDGETS}/w")).await.expect(200), made);
    again.admin.get(&format!("{MAPS}/gone")).await.expect(404);
    let next = again.admin.post(MAPS, map("next", json!({}))).await.expect(201);
    let number =
        |object: &serde_json::Value| object["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number(&next) > number(&made) + 2);
    again.plane.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}
