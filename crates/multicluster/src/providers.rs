//! Providers of clusters.
//!
//! | provider | clusters |
//! | --- | --- |
//! | [`Single`] | one that is always there |
//! | [`Static`] | those that code adds and removes |
//! | [`KubeconfigSecrets`] | kubeconfigs in labelled Secrets |
//! | [`KubeconfigFiles`] | contexts of kubeconfig files |
//! | [`Kind`] | clusters of kind, Kubernetes in containers |
//! | [`ClusterApi`] | clusters of Cluster API that are ready |
//! | [`ClusterProfiles`] | ClusterProfiles of the Cluster Inventory API |
//! | [`FromObjects`] | objects of any other kind |
//! | [`Namespaces`] | namespaces as clusters |
//! | [`Multi`] | those of several providers |
//! | [`Nop`] | none |
//! | [`kcp::ApiExport`] | workspaces that bind an APIExport |
//! | [`kcp::InitializingWorkspaces`], [`kcp::TerminatingWorkspaces`] | workspaces that are being set up or torn down |

#[cfg(feature = "kcp")]
pub mod kcp;

mod cluster_api;
mod cluster_profiles;
mod engagements;
mod files;
mod from_objects;
mod kind;
mod known_objects;
mod multi;
mod namespaces;
mod pushed;
mod secrets;
mod servers;
mod single;

pub use cluster_api::{
    ClusterApi, ClusterApiCluster, ClusterApiCondition, ClusterApiInitialization, ClusterApiSpec, ClusterApiStatus,
};
pub use cluster_profiles::{AccessConfig, AccessConfigError, ClusterProfiles};
pub use files::KubeconfigFiles;
pub use from_objects::FromObjects;
pub use kind::Kind;
pub use multi::Multi;
pub use namespaces::Namespaces;
pub use pushed::Static;
pub use secrets::KubeconfigSecrets;
pub use single::{Nop, Single};
