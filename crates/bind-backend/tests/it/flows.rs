//! Whole flows on embedded planes: a provider with a backend, and consumers with konnectors.

pub mod world;

mod existing;
mod input;
mod isolation;
mod kills;
mod kube_binds;
mod orders;
mod portal;
mod portal_fields;
mod readiness;
mod replicas;
mod sharing;
mod withdrawal;
