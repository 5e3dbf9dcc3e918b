//! Providers of clusters.
//!
//! | provider | clusters |
//! | --- | --- |
//! | [`Single`] | one that is always there |
//! | [`Static`] | those that code adds and removes |
//! | [`KubeconfigSecrets`] | kubeconfigs in labelled Secrets |
//! | [`KubeconfigFiles`] | contexts of kubeconfig files |
//! | [`FromObjects`] | objects of any kind, such as those of Cluster API |
//! | [`Namespaces`] | namespaces that pose as clusters |
//! | [`Multi`] | those of several providers |
//! | [`Nop`] | none |
//! | [`kcp::ApiExport`] | workspaces that bind an APIExport |
//! | [`kcp::InitializingWorkspaces`], [`kcp::TerminatingWorkspaces`] | workspaces at their begin and end |

pub mod kcp;

mod cluster_api;
mod files;
mod from_objects;
mod multi;
mod namespaces;
mod pushed;
mod roll;
mod secrets;
mod single;
mod teller;

pub use files::KubeconfigFiles;
pub use from_objects::FromObjects;
pub use multi::Multi;
pub use namespaces::Namespaces;
pub use pushed::Static;
pub use secrets::KubeconfigSecrets;
pub use single::{Nop, Single};
