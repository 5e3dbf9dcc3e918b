//! Hashes of schemas.

use carrick_json::go;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::v1alpha2::BoundSchemaSpec;

/// SHA-256 over specs, one per line, as a backend keeps it in an annotation to see whether they have changed.
///
/// ```
/// use carrick_bind_api::schema::hash;
/// use carrick_bind_api::v1alpha2::BoundSchemaSpec;
///
/// let spec = BoundSchemaSpec::default();
/// assert_eq!(hash([&spec]).len(), 64);
/// assert_ne!(hash([&spec]), hash([&spec, &spec]));
/// ```
pub fn hash<'a>(specs: impl IntoIterator<Item = &'a BoundSchemaSpec>) -> String {
    let mut hash = Sha256::new();
    for spec in specs {
        // By way of a value, whose keys are sorted: the order in which a server sends fields means nothing.
        let value = serde_json::to_value(spec).unwrap_or_default();
        hash.update(go::to_line(&value).unwrap_or_default().as_bytes());
    }
    HEXLOWER.encode(&hash.finalize())
}
