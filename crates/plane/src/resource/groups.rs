//! Names of API groups.

/// Webhook configurations and policies.
pub(crate) const ADMISSION: &str = "admissionregistration.k8s.io";
/// Access reviews.
pub(crate) const AUTHORIZATION: &str = "authorization.k8s.io";
/// Token reviews, and who the caller is.
pub(crate) const AUTHENTICATION: &str = "authentication.k8s.io";
/// Roles and their bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";
