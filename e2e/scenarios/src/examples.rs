//! The examples of the repository.

use std::sync::Arc;

use carrick_e2e_stage::world::{User, World};
use example_mongodb::walkthrough::{Servers, play};
use kube::config::Kubeconfig;

pub(super) async fn one_operator_runs_databases_for_two_workspaces(world: Arc<dyn World>) -> anyhow::Result<()> {
    let kcp = Kubeconfig::from_yaml(&world.kcp_kubeconfig(User::Admin, "root"))?;
    let service = Kubeconfig::from_yaml(&world.service_kubeconfig(User::Admin))?;
    play(&Servers::given(kcp, service).await?).await
}
