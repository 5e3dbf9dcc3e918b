//! Reads a CRD or an `APIResourceSchema`.

use std::sync::Arc;

use serde_json::Value;

use super::kind::{ALL_VERBS, Column, Origin, Resource, Scale, Version, api_version, version_rank};
use super::shared;
use crate::conversion::Conversion;
use crate::schema::SchemaError;
use crate::store::revision_of;

impl Resource {
    /// The kind a CRD defines.
    pub fn from_crd(crd: &Value) -> Result<Resource, SchemaError> {
        let condition = |kind: &str| {
            let conditions = crd["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
        };
        let mut resource = read(crd, "", Origin::Crd, |version| &version["schema"]["openAPIV3Schema"])?;
        resource.established = condition("Established");
        resource.terminating = condition("Terminating");
        Ok(resource)
    }

    /// The kind an `APIResourceSchema` defines, bound with an identity.
    pub fn from_schema(schema: &Value, identity: &str) -> Result<Resource, SchemaError> {
        read(schema, identity, Origin::Bound, |version| &version["schema"])
    }
}

fn read(object: &Value, identity: &str, origin: Origin, schema: fn(&Value) -> &Value) -> Result<Resource, SchemaError> {
    let spec = &object["spec"];
    let names = &spec["names"];
    let kind = text(names, "kind");
    let or = |value: String, default: String| if value.is_empty() { default } else { value };
    let mut versions = Vec::new();
    for version in spec["versions"].as_array().into_iter().flatten() {
        versions.push(read_version(version, schema(version), &text(spec, "group"), &kind)?);
    }
    versions.sort_by_key(|version| version_rank(&version.name));
    let fresh = |version: &&Version| version.served && version.deprecated.is_none();
    // The warning names the best version to use instead, if there is a better one.
    let better = versions.iter().find(fresh).map(|version| version.name.clone());
    let place = |name: &str| versions.iter().position(|version| *version.name == *name);
    let better =
        better.map(|name| (place(&name), format!("; use {} {kind}", api_version(&text(spec, "group"), &name))));
    for (index, version) in versions.iter_mut().enumerate() {
        if let (Some(warning), Some((Some(at), hint))) = (&mut version.deprecated, &better)
            && *at < index
            && warning.ends_with(" is deprecated")
        {
            warning.push_str(hint);
        }
    }
    let group: Arc<str> = text(spec, "group").into();
    Ok(Resource {
        plural: text(names, "plural").into(),
        singular: or(text(names, "singular"), kind.to_lowercase()).into(),
        list_kind: or(text(names, "listKind"), format!("{kind}List")).into(),
        kind: kind.into(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        identity: identity.into(),
        versions,
        origin,
        convert: None,
        conversion: Conversion::read(&spec["conversion"]).map(Arc::new),
        verbs: ALL_VERBS.to_vec(),
        stored_group: group.clone(),
        group,
        established: true,
        terminating: false,
        revision: revision_of(object),
    })
}

fn read_version(version: &Value, schema: &Value, group: &str, kind: &str) -> Result<Version, SchemaError> {
    let name = text(version, "name");
    let (schema, openapi) = shared::compiled(schema)?;
    let scale = version.pointer("/subresources/scale").map(|scale| Scale {
        spec: text(scale, "specReplicasPath"),
        status: text(scale, "statusReplicasPath"),
        selector: text(scale, "labelSelectorPath"),
    });
    let deprecated = (version["deprecated"] == true).then(|| match version["deprecationWarning"].as_str() {
        Some(warning) => warning.to_owned(),
        None => format!("{group}/{name} {kind} is deprecated"),
    });
    Ok(Version {
        name: name.into(),
        served: version["served"] == true,
        storage: version["storage"] == true,
        deprecated,
        schema,
        openapi,
        status: version.pointer("/subresources/status").is_some_and(Value::is_object),
        scale,
        columns: columns(&version["additionalPrinterColumns"]),
        selectable: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(field, "jsonPath"))
            .collect(),
    })
}

/// The columns of a kind; the age if it has none.
fn columns(value: &Value) -> Vec<Column> {
    let given: Vec<Column> = value
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| Column {
            name: text(column, "name"),
            kind: text(column, "type"),
            format: text(column, "format"),
            description: text(column, "description"),
            priority: column["priority"].as_i64().unwrap_or(0),
            path: text(column, "jsonPath"),
        })
        .collect();
    if given.is_empty() { vec![Column::age()] } else { given }
}

impl Column {
    /// The age of an object.
    pub fn age() -> Self {
        Self::new("Age", "date", ".metadata.creationTimestamp")
    }

    /// A column that is always shown.
    pub fn new(name: &str, kind: &str, path: &str) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            path: path.into(),
        }
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
