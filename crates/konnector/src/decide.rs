//! Decide: what was seen → what has to be written. No client, no clock, no randomness.

pub mod binding;
pub mod bundle;
pub mod claims;
pub mod contract;
pub mod core;
pub mod export;
#[cfg(test)]
mod model;
pub mod namespaces;
pub mod objects;
pub mod pin;
mod seen;
pub mod tenant_namespaces;
pub mod tenants;
pub mod unbind;

pub use seen::Seen;
