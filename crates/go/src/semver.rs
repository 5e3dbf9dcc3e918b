//! Versions and version constraints, as the libraries behind sprig and behind the API server's CEL read them.

mod constraint;
mod version;

pub use constraint::{ConstraintError, Constraints};
pub use version::{Version, VersionError};
