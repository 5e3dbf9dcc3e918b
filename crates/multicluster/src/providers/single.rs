//! One cluster that is always there.

use carrick_client::Client;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::engagements::Engagements;
use crate::endpoint::{ClusterKey, Endpoint};
use crate::event::FleetEvent;
use crate::name::{ClusterName, EmptyName, EndpointId};
use crate::provider::Provider;

/// One cluster that is always there, such as the one the process runs in.
///
/// ```
/// # use carrick_multicluster::providers::{KubeconfigSecrets, Multi, Single};
/// # fn provider(client: kube::Client) -> Multi {
/// // The management cluster and those whose kubeconfigs are stored there.
/// Multi::new().with("host", Single::new("local", client.clone())).with("fleet", KubeconfigSecrets::new(client, "fleet"))
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Single {
    name: Result<ClusterName, EmptyName>,
    client: Client,
}

impl Single {
    /// A cluster under a name of your choice, usually `local`. Without a name it is a fleet of no clusters.
    pub fn new(name: &str, client: impl Into<Client>) -> Self {
        Self { name: ClusterName::new(name), client: client.into() }
    }
}

impl Provider for Single {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        let mut events = Vec::new();
        if let Ok(name) = self.name.clone() {
            let id = EndpointId::new(name.to_arc());
            events.push(FleetEvent::EndpointUp(Endpoint {
                id: id.clone(),
                client: self.client.clone(),
                key: ClusterKey::Fixed(name.clone()),
            }));
            events.push(Engagements::default().engage(name, id, self.client.clone(), None));
        }
        events.push(FleetEvent::Synced);
        futures::stream::iter(events).boxed()
    }
}

/// No clusters at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nop;

impl Provider for Nop {
    fn events(&self) -> BoxStream<'static, FleetEvent> {
        futures::stream::iter([FleetEvent::Synced]).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::super::engagements::describe;
    use super::*;
    use crate::testing::unreachable_client;

    #[tokio::test]
    async fn a_single_cluster_is_there_from_the_start() {
        let single = Single::new("local", unreachable_client());
        for _ in 0..2 {
            let reported: Vec<String> = single.events().map(|event| describe(&event)).collect().await;
            assert_eq!(reported, ["up local", "engage local at local", "synced"]);
        }
    }

    #[tokio::test]
    async fn nothing_is_complete_at_once() {
        for provider in [Box::new(Nop) as Box<dyn Provider>, Box::new(Single::new("", unreachable_client()))] {
            let reported: Vec<String> = provider.events().map(|event| describe(&event)).collect().await;
            assert_eq!(reported, ["synced"]);
        }
    }
}
