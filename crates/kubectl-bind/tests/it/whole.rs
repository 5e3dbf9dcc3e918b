//! From a login to an object and its status: `kubectl-bind`, a backend, a konnector, and two clusters; nothing is a model.

mod kills;
pub mod story;
pub mod upgrade;
pub mod v2;
pub mod world;

use carrick_bind_api::v1alpha2::Isolation;
use carrick_plane::{Config, Mode, Plane, User};
use world::World;

/// Whoever types `kubectl bind`.
const PERSON: &str = "person";

/// A world of two planes: the provider, and the consumer.
async fn on_planes() -> (World, [Plane; 2]) {
    isolated(Isolation::Prefixed).await
}

/// The same, with another isolation of its contracts.
async fn isolated(isolation: Isolation) -> (World, [Plane; 2]) {
    let provider = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let mut config = Config::new(Mode::Kube);
    config.users = vec![User::new("token-of-person", PERSON, &["system:masters"])];
    let consumer = Plane::start(config).await.unwrap();
    let kubeconfig = |plane: &Plane, user: &str| plane.kubeconfig(user, None).unwrap();
    let (person, admin) = (kubeconfig(&consumer, PERSON), kubeconfig(&consumer, "admin"));
    (World::isolated(&kubeconfig(&provider, "admin"), &admin, &person, isolation).await, [provider, consumer])
}

#[tokio::test(flavor = "multi_thread")]
async fn one_command_leads_to_a_binding_that_works_with_a_konnector_that_has_no_more_than_it_needs() {
    let provider = Plane::start(Config::new(Mode::Kube)).await.unwrap();
    let mut config = Config::new(Mode::Kube);
    config.users = vec![
        User::new("token-of-person", PERSON, &["system:masters"]),
        User::new("token-of-konnector", "system:serviceaccount:kube-bind:konnector", &[]),
    ];
    let consumer = Plane::start(config).await.unwrap();
    let kubeconfig = |plane: &Plane, user: &str| plane.kubeconfig(user, None).unwrap();
    let konnector = kubeconfig(&consumer, "system:serviceaccount:kube-bind:konnector");
    let world = World::on(&kubeconfig(&provider, "admin"), &konnector, &kubeconfig(&consumer, PERSON)).await;
    let world = world.seen_by(&kubeconfig(&consumer, "admin"));
    story::one_command(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_login_to_an_object_and_its_status() {
    let (world, _planes) = on_planes().await;
    story::from_a_login_to_an_object_and_its_status(&world).await;
}
