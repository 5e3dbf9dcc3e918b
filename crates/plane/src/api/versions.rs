//! Objects of custom kinds in another version than the one they are stored in, and objects that are older than their CRD.

use serde_json::Value;

use super::base::Api;
use crate::resource::{Origin, Resource, api_version};
use crate::schema::Schema;
use crate::status::Status;
use crate::store::revision_of;

/// What an object is shown in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The answer to a read.
    Read,
    /// A change in a watch, which may have begun before the kind got the schema that the object was written by.
    Change,
}

impl Answer {
    /// Whether an object has to be made to fit the schema, however new it is: an export may go back to a schema that is older than its objects.
    fn always_fits(self, resource: &Resource) -> bool {
        self == Self::Read && resource.origin == Origin::Bound
    }
}

impl Api {
    /// Makes of a stored object what is shown in a version: completed by the defaults of the version it is stored in, and without the
    /// fields that the version it is shown in does not know. That version's defaults are not added, as on the real server.
    pub(super) fn show(
        &self,
        resource: &Resource,
        cluster: &str,
        wanted: &str,
        (object, answer): (&mut Value, Answer),
    ) -> Result<(), Status> {
        let schema = |version: &str| resource.version(version).and_then(|version| version.schema.as_deref());
        let shown = api_version(&resource.group, wanted);
        if !matches!(resource.origin, Origin::Crd | Origin::Bound) {
            let is_stored = object["apiVersion"] == shown;
            // kcp's own kinds are custom kinds there; all others have one set of defaults.
            if resource.origin == Origin::System && !is_stored {
                if let Some(storage) = resource.storage_version().and_then(|version| version.schema.as_deref()) {
                    storage.apply_defaults(object);
                }
                return self.to_api_version(resource, cluster, &shown, object);
            }
            self.to_api_version(resource, cluster, &shown, object)?;
            if let Some(schema) = schema(wanted) {
                schema.apply_defaults(object);
            }
            return Ok(());
        }
        let text = object["apiVersion"].as_str().unwrap_or_default();
        let stored = text.rsplit_once('/').map_or(text, |(_, version)| version).to_owned();
        if let Some(schema) = schema(&stored) {
            // What was written since the CRD changed is known to fit.
            if answer.always_fits(resource) || revision_of(object) < resource.revision {
                fit(schema, object);
            }
            schema.apply_defaults(object);
        }
        if stored != wanted {
            self.to_api_version(resource, cluster, &shown, object)?;
            if let Some(schema) = schema(wanted) {
                fit(schema, object);
            }
        }
        Ok(())
    }

    /// Makes of an object that was sent in a version what is stored.
    pub(super) fn store_form(
        &self,
        resource: &Resource,
        cluster: &str,
        sent: &str,
        object: &mut Value,
    ) -> Result<(), Status> {
        self.to_api_version(resource, cluster, &resource.stored_api_version(), object)?;
        let Some(storage) = resource.storage_version() else { return Ok(()) };
        match &storage.schema {
            Some(schema) if *storage.name == *sent => schema.prune(object, &mut Vec::new()),
            Some(schema) => fit(schema, object),
            None => {}
        }
        Ok(())
    }
}

/// Drops what a schema does not know, and null where it is not allowed.
fn fit(schema: &Schema, object: &mut Value) {
    schema.prune(object, &mut Vec::new());
    schema.drop_nulls(object);
}
