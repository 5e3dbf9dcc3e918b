//! From a login to an object and its status: `kubectl-bind`, a backend, a konnector, and two clusters; nothing is a model.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "whole/kills.rs"]
mod kills;
#[path = "whole/story.rs"]
mod story;
#[path = "whole/world.rs"]
mod world;

use carrick_plane::{Config, Mode, Plane, User};
use world::World;

/// Whoever types `kubectl bind`.
const PERSON: &str = "person";

/// A world of two planes: the provider, and the consumer.
async fn on_planes() -> (World, [Plane; 2]) {
    let provider = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let mut config = Config::new(Mode::Kube);
    config.users = vec![User::new("token-of-person", PERSON, &["system:masters"])];
    let consumer = Plane::start(config).await.unwrap();
    let kubeconfig = |plane: &Plane, user: &str| plane.kubeconfig(user, None).unwrap();
    let (person, admin) = (kubeconfig(&consumer, PERSON), kubeconfig(&consumer, "admin"));
    (World::on(&kubeconfig(&provider, "admin"), &admin, &person).await, [provider, consumer])
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_login_to_an_object_and_its_status() {
    let (world, _planes) = on_planes().await;
    story::from_a_login_to_an_object_and_its_status(&world).await;
}
