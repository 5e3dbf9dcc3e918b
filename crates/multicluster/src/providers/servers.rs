//! The servers of clusters that are known by their kubeconfigs.

use std::collections::HashMap;

use carrick_client::{ConnectError, Error, Server};

use crate::name::ClusterName;

/// The servers of the engaged clusters.
#[derive(Default)]
pub(super) struct Servers(HashMap<ClusterName, Server>);

impl Servers {
    /// The server of a cluster's kubeconfig. `None` if it is the known one: that uses the new credentials from now on, and nobody has to
    /// connect again. Some kubeconfigs have a new token every time they are read.
    pub(super) fn open(&mut self, name: &ClusterName, kubeconfig: &str) -> Result<Option<Server>, ConnectError> {
        if let Some(known) = self.0.get(name)
            && known.renew_from_kubeconfig_yaml(kubeconfig)?
        {
            return Ok(None);
        }
        let server = Server::from_kubeconfig_yaml(kubeconfig)?;
        self.0.insert(name.clone(), server.clone());
        Ok(Some(server))
    }

    /// A cluster is disengaged.
    pub(super) fn forget(&mut self, name: &ClusterName) {
        self.0.remove(name);
    }
}

/// The error of an object or file whose cluster cannot be reached.
pub(super) fn unusable(what: &str, problem: &dyn std::fmt::Display) -> Error {
    Error::Request { request: format!("requests to the cluster of {what}"), problem: problem.to_string() }
}
