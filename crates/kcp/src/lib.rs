//! kcp without I/O: its API kinds as types, names and paths of workspaces, URLs and hashes.
//!
//! ```text
//!  apis      APIExport, APIBinding (v1alpha1, v1alpha2), APIResourceSchema, APIExportEndpointSlice
//!  core      LogicalCluster, Shard                ┐
//!  tenancy   Workspace, WorkspaceType             ├─ serde types on top of  meta       metadata, selectors
//!  topology  Partition                            ┘                         condition  conditions as kcp sets them
//!  convert   APIExport and APIBinding from one version to the other, without loss
//!  object    how the types are declared, for types of others
//!  kinds     group, version, kind and plural of each
//!  names     labels, annotations, finalizers, types of conditions
//!  path      root:orgs:acme   ──▶ logical cluster names, the check that a string is one
//!  url       https://host/clusters/root:orgs   ──▶ retarget to another workspace, build virtual-workspace URLs
//!  token     what the token of a ServiceAccount says about itself
//!  hash      export, claim, identity and binding-name hashes exactly as kcp computes them
//! ```
//!
//! # Types that lose nothing
//!
//! Reading an object and writing it again gives the same JSON at every level, whatever a newer kcp has added to it: each struct has a
//! field `rest` for what it does not know. Fields are plain values instead of options, so that `binding.status.phase` is all it takes: a
//! missing field reads as empty, and an empty field is not written unless it was present before. Where "missing" and "empty" mean
//! different things, the field is an `Option`. A field of an unexpected type is an error that names the field.
//!
//! ```
//! use carrick_kcp::apis::v1alpha1::{ApiExport, PermissionClaim};
//! use serde_json::json;
//!
//! let mut export: ApiExport = serde_json::from_value(json!({
//!     "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport",
//!     "metadata": {"name": "example.io", "managedFields": []},
//!     "spec": {"latestResourceSchemas": ["v1.widgets.example.io"], "fromTheFuture": true},
//! }))?;
//! export.spec.permission_claims.push(PermissionClaim::all("", "secrets", ""));
//! assert_eq!(serde_json::to_value(&export)?["spec"], json!({
//!     "latestResourceSchemas": ["v1.widgets.example.io"], "fromTheFuture": true,
//!     "permissionClaims": [{"resource": "secrets", "all": true}],
//! }));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Together with kube-rs
//!
//! [`ObjectMeta`](meta::ObjectMeta) is a type of this crate: k8s-openapi's makes every binary choose a version of Kubernetes, and loses
//! fields that are newer than this choice. The feature `kube` brings both together: `kube::Api` reads and writes
#![cfg_attr(feature = "kube", doc = "the aliases in [`kube`],")]
#![cfg_attr(not(feature = "kube"), doc = "the aliases in its module `kube`,")]
//! which are `kube_core::Object` with specs and statuses of this crate.

pub mod apis;
pub mod condition;
pub mod convert;
pub mod core;
pub mod hash;
pub mod kinds;
#[cfg(feature = "kube")]
pub mod kube;
pub mod meta;
pub mod names;
pub mod object;
pub mod path;
pub mod tenancy;
pub mod token;
pub mod topology;
pub mod url;

pub use names::{CLAIM_LABEL_PREFIX, CLUSTER_ANNOTATION, LOGICAL_CLUSTER_NAME, PATH_ANNOTATION};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
