//! The group `tenancy.kcp.io`: workspaces and their types.

pub mod v1alpha1;
