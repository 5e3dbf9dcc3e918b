//! AcceptAPIs, where a PublishedResource asks for one.

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
        let found = self.within(workspace.list(&broker::accept_apis(), None, &ListOptions::default())).await;
        facts.accepting = Lookup::of(match found {
            Err(error) if error.is_not_found() => Ok(None),
            found => found.map(Some),
        });
        let rights = self.review(&workspace, vec![needs::of_accept_apis()]).await;
        facts.rights.extend(rights);
    }
}
