use super::world::{BINDINGS, WIDGETS, World, widget};
use crate::config::{Config, Mode};
use serde_json::json;

#[tokio::test]
async fn a_restart_keeps_everything_and_writes_nothing() {
    let folder = std::env::temp_dir().join(format!("carrick-plane-restart-{}", std::process::id()));
    let mut config = Config::new(Mode::Kcp);
    config.data_dir = Some(folder.clone());
    let world = World::with(config.clone()).await;
    config.bind = world.plane.url().trim_start_matches("https://").parse().unwrap();
    world.workspace("root", "prov").await;
    let cluster = world.workspace("root", "cons").await;
    world.export("root:prov", json!([{"group": "", "resource": "secrets", "verbs": ["*"]}])).await;
    world.bind("root:cons", "root:prov", json!([])).await;
    world.at("root:cons").create(widget("w", json!({}))).unwrap();
    let endpoint = world.endpoint("root:prov").await;
    let revision = world.quiet().await;
    world.plane.stop().await;

    let world = World::with(config).await;
    assert_eq!(world.quiet().await, revision);
    let all = world.through(&endpoint, "*");
    assert_eq!(all.names(WIDGETS), [format!("{cluster}/default/w")]);
    assert_eq!(all.names(BINDINGS), [format!("{cluster}//example")]);
    world.at("root:cons").create(widget("another", json!({}))).unwrap();
    world.plane.stop().await;
    std::fs::remove_dir_all(folder).unwrap();
}
