//! References: objects that name claimed ones.

use std::collections::BTreeSet;

use carrick_json::path::{self, Found};
use serde_json::Value;

use super::named_object::NamedObject;
use crate::v1alpha2::{ApiServiceExport, Isolation, Reference};

/// Why a reference is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// It does not say where the names are.
    #[error("it has no jsonPath.name")]
    NoPath,
    /// The path has the syntax of another language.
    #[error("{path:?} is not a gjson path; write spec.items.#.name instead of $.spec.items[*].name")]
    Path {
        /// The path.
        path: String,
    },
    /// The naming objects are none of the export's.
    #[error("the export does not have it; only with isolation None references may look at other resources")]
    NotExported,
    /// Nobody says which version the naming objects have.
    #[error("neither it nor the export says a version")]
    NoVersion,
}

/// Which namespace is meant if the naming object does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Otherwise {
    /// Any.
    Any,
    /// That of the naming object, or none at all if it has none.
    Own,
    /// That of the naming object, or any if it has none.
    OwnOrAny,
}

/// A reference that is ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledReference {
    group: String,
    resource: String,
    version: String,
    name: String,
    namespace: Option<String>,
    otherwise: Otherwise,
}

impl CompiledReference {
    pub(super) fn compile(reference: &Reference, export: &ApiServiceExport) -> Result<Self, ReferenceError> {
        let isolation = export.isolation();
        let exported =
            export.spec.resources.iter().find(|it| it.group == reference.group && it.resource == reference.resource);
        if exported.is_none() && *isolation != Isolation::None {
            return Err(ReferenceError::NotExported);
        }
        let versions = if reference.versions.is_empty() {
            exported.map(|exported| &exported.versions[..]).unwrap_or_default()
        } else {
            &reference.versions
        };
        let version = versions.first().ok_or(ReferenceError::NoVersion)?.clone();
        let paths = reference.json_path.as_ref().ok_or(ReferenceError::NoPath)?;
        if paths.name.is_empty() {
            return Err(ReferenceError::NoPath);
        }
        for path in [&paths.name, &paths.namespace] {
            if path.starts_with(['$', '.']) || path.contains("[*]") {
                return Err(ReferenceError::Path { path: path.clone() });
            }
        }
        let otherwise = match (paths.namespace.is_empty(), isolation) {
            (true, Isolation::Namespaced) => Otherwise::Own,
            (true, _) => Otherwise::Any,
            // kube-bind takes any namespace here; whoever leaves out an optional namespace means the own one.
            (false, _) => Otherwise::OwnOrAny,
        };
        Ok(Self {
            group: reference.group.clone(),
            resource: reference.resource.clone(),
            version,
            name: paths.name.clone(),
            namespace: Some(paths.namespace.clone()).filter(|path| !path.is_empty()),
            otherwise,
        })
    }

    /// API group of the naming objects, empty for core.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Plural name of the naming objects.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The version to watch them in.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The objects that an object names.
    pub fn named_by(&self, object: &Value) -> BTreeSet<NamedObject> {
        let names = texts(&path::get(object, &self.name));
        let own = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let said = self.namespace.as_deref().map(|at| texts(&path::get(object, at))).unwrap_or_default();
        let namespaces: Vec<Option<String>> = match (said.is_empty(), self.otherwise, own) {
            (false, ..) => said.into_iter().map(Some).collect(),
            (true, Otherwise::Any, _) | (true, Otherwise::OwnOrAny, None) => vec![None],
            (true, _, Some(own)) => vec![Some(own.to_owned())],
            (true, Otherwise::Own, None) => Vec::new(),
        };
        let pairs = names.iter().flat_map(|name| namespaces.iter().map(move |namespace| (name, namespace)));
        pairs.map(|(name, namespace)| NamedObject { namespace: namespace.clone(), name: name.clone() }).collect()
    }
}

/// The text that was found, or those of a list.
fn texts(found: &Found<'_>) -> Vec<String> {
    let text = |found: &Found<'_>| Some(found.text().trim().to_owned()).filter(|text| !text.is_empty());
    if !found.exists() {
        return Vec::new();
    }
    if found.is_array() {
        found.array().filter_map(|found| text(&found)).collect()
    } else {
        text(found).into_iter().collect()
    }
}
