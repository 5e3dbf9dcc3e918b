//! In kcp: templates of all APIs that a workspace has bound, and copies of their schemas.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::carrick_kcp::apis::v1alpha1::{ApiBinding, ApiResourceSchema};
use carrick_client::{Client, Error};

use super::resources;
use super::session::ClusterSession;
use crate::decide::plan::Plan;
use crate::decide::templates;

impl ClusterSession {
    /// What the catalogue of a workspace needs; nothing outside of kcp.
    pub(super) async fn catalogue(&self) -> Result<Plan, Error> {
        let (Some(cache), Some(workspace)) = (&self.bindings, &self.terms.workspace) else {
            return Ok(Plan::default());
        };
        let mut plan = Plan::default();
        if let Some(user) = &workspace.backend {
            for wanted in templates::reader(user) {
                let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
                let Some(resource) = resources::of_object(&wanted) else { continue };
                plan.ensure(self.client.get(&resource, None, name).await?.as_ref(), &wanted);
            }
        }
        let mut bindings: Vec<ApiBinding> = cache.typed("");
        bindings.retain(|binding| templates::is_offered(binding, &workspace.ignored));
        let shown = self.schemas_of_bindings(&workspace.cluster);
        let (mut schemas, mut present) = (BTreeMap::new(), BTreeSet::new());
        for name in bindings.iter().flat_map(templates::schemas_of) {
            if let Some(schema) = self.client.get_kcp::<ApiResourceSchema>(name).await? {
                present.insert(name.to_owned());
                schemas.insert(name.to_owned(), schema);
                continue;
            }
            let Some(shown) = &shown else { continue };
            match shown.get_kcp::<ApiResourceSchema>(name).await {
                Ok(Some(schema)) => drop(schemas.insert(name.to_owned(), schema)),
                Ok(None) => {
                    tracing::warn!(schema = name, "The schema of a bound API is not shown, so it is not offered.");
                }
                // The right to read it may only just be coming.
                Err(error) if error.is_forbidden() => {
                    tracing::info!(schema = name, "The schema of a bound API may not be read yet.");
                    plan.look_again_after(std::time::Duration::from_secs(1));
                }
                Err(error) => return Err(error),
            }
        }
        plan.add(templates::decide(&bindings, &schemas, &present, &self.templates.typed("")));
        Ok(plan)
    }

    /// The virtual workspace that shows the schemas behind the bindings of a workspace.
    fn schemas_of_bindings(&self, cluster: &str) -> Option<Client> {
        let url = self.client.url();
        let host = url.find("/services/").map_or(url, |end| &url[..end]);
        self.client.at_url(&format!("{host}/services/apiresourceschema/{cluster}/clusters/{cluster}")).ok()
    }
}
