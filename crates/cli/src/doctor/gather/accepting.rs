//! AcceptAPIs, where a PublishedResource asks for one.

use carrick_client::discovery::find_kind;
use carrick_client::{ListOptions, Server};

use super::super::facts::{Facts, Lookup};
use super::super::needs;
use super::TimedRequests;
use crate::mesh::broker;

impl TimedRequests {
    /// Those in the export's workspace, and whether the agent may keep them.
    pub(super) async fn look_at_broker(&self, kcp: &Server, facts: &mut Facts) {
        let asks = facts.published().iter().any(|one| !one.object["spec"]["implements"]["accept"].is_null());
        let Ok(workspace) = kcp.at_url(&facts.export_url) else { return };
        if !asks || facts.export.object().is_none() {
            return;
        }
        let kind = broker::accept_apis();
        // Whoever may not list them learns all the same whether they are served.
        facts.accepting = Lookup::of(match self.within(find_kind(&workspace, &kind.group, &kind.kind)).await {
            Ok(Some(_)) => self.within(workspace.list(&kind, None, &ListOptions::default())).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        });
        let rights = self.review(&workspace, vec![needs::of_accept_apis()]).await;
        facts.rights.extend(rights);
    }
}
