//! Where the whole definition of a kind can be read again.

use std::sync::Arc;

use carrick_client::{Client, Error, Object, Resource};

use crate::rules::crd::{Crd, CrdError};

/// Where a definition comes from. It may take megabytes and is needed only when something about it changes, so catalogs do not hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// A CRD of that name.
    Crd(String),
    /// The API server's description of a kind without a CRD, as JSON.
    Served(Arc<[u8]>),
}

impl Definition {
    /// The whole definition as it is now; `None` if it is gone.
    pub(crate) async fn read(&self, local: &Client) -> Result<Option<Result<Crd, CrdError>>, Error> {
        match self {
            Self::Crd(name) => Ok(fetch(local, name).await?.map(|object| Crd::from_text(&object.bytes()))),
            Self::Served(text) => Ok(Some(Crd::from_text(text))),
        }
    }
}

/// CRDs as the client knows them.
pub(super) fn crds() -> Resource {
    Resource::cluster_wide("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

/// Reads one CRD as text: the order of keys in defaults is part of the schema's name, so decoded JSON will not do.
pub(crate) async fn fetch(local: &Client, name: &str) -> Result<Option<Object>, Error> {
    local.get_compact(&crds(), None, name).await
}
