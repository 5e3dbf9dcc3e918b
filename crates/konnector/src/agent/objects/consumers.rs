//! Where consumers' objects are: in one cluster, or in the workspaces of an APIExport.

use std::sync::Arc;

use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::FIELD_MANAGER;
use carrick_client::{Client, Object};

use crate::agent::workspaces::Workspaces;
use crate::decide::tenants::FlatKeys;

/// Where consumers' objects are.
#[derive(Clone)]
pub enum Consumers {
    /// In one cluster.
    Cluster(Client),
    /// In the workspaces that bind an APIExport.
    Workspaces(Arc<Workspaces>),
}

impl From<Client> for Consumers {
    fn from(client: Client) -> Self {
        Self::Cluster(client)
    }
}

impl Consumers {
    /// The same, writing under the konnector's name.
    pub(super) fn writing(self) -> Self {
        match self {
            Self::Cluster(client) => Self::Cluster(client.writing_as(FIELD_MANAGER)),
            workspaces @ Self::Workspaces(_) => workspaces,
        }
    }

    /// The workspaces, if there are many.
    pub(super) fn workspaces(&self) -> Option<&Arc<Workspaces>> {
        match self {
            Self::Cluster(_) => None,
            Self::Workspaces(workspaces) => Some(workspaces),
        }
    }
}

/// How the objects of one watch are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::agent) enum Keys {
    /// By namespace and name.
    #[default]
    Plain,
    /// By workspace, namespace and name.
    Flat(FlatKeys),
    /// The same for namespaces, which are called as in the keys of what is in them.
    FlatNamespaces(FlatKeys),
}

impl Keys {
    /// The key of an object.
    pub fn of(&self, object: &Object) -> ObjectKey {
        let namespace = (!object.namespace.is_empty()).then_some(&*object.namespace);
        match self {
            Self::Plain => ObjectKey { namespace: namespace.map(str::to_owned), name: object.name.to_string() },
            Self::Flat(flat) => flat.of(&object.cluster, namespace, &object.name),
            Self::FlatNamespaces(flat) => ObjectKey::cluster(flat.namespace(&object.cluster, &object.name)),
        }
    }
}

/// Where one object of a consumer is, and how to reach it.
#[derive(Clone)]
pub(super) struct Place {
    /// Namespace and name there.
    pub key: ObjectKey,
    /// The logical cluster, if there are many.
    pub cluster: Option<String>,
    /// The server.
    pub client: Client,
}
