//! Decide: what was seen → what has to be written. No client, no clock, no randomness.
//!
//! ```text
//!   terms, objects                 what the backend was told, what there is
//!   contract    namespace ──▶ ClusterBinding, account, token, kubeconfig        request    BindableResourcesRequest ──▶ Secret
//!   exports     request ──▶ BoundSchemas ──▶ export                             breaking   which change of a schema breaks consumers
//!   namespaces  APIServiceNamespace ──▶ Namespace                               rights     who may do what, and where
//!   sharing     contracts that come to a namespace of another one, and go
//!   health      heartbeat ──▶ Healthy                                           cluster    what a cluster needs once
//!   withdrawal  an export that is deleted ──▶ its consumer is told before it goes
//!   templates   APIBinding ──▶ template, copies of schemas (kcp)
//!   roles       what the backend itself needs
//!   plan        the writes that all of these return
//! ```

pub mod breaking;
pub mod cluster;
pub mod contract;
pub mod exports;
pub mod health;
pub mod kubeconfig;
pub mod namespaces;
pub mod objects;
pub mod offers;
pub mod ordered;
pub mod plan;
pub mod request;
pub mod requests;
pub mod rights;
pub mod roles;
pub mod sharing;
pub mod templates;
pub mod terms;
pub mod withdrawal;
