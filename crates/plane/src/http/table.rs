//! Tables and partial objects.

use serde::Serialize;
use serde_json::{Value, json};

use super::duration::since;
use super::jsonpath;
use crate::api::Scope;
use crate::resource::{Column, Version};

/// How much of each object a table row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub(super) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

fn version(scope: &Scope) -> Option<&Version> {
    scope.resource.version(&scope.version)
}

/// Whether the name is the first column; not for events, which have an order of their own.
fn named_first(scope: &Scope) -> bool {
    &*scope.resource.plural != "events" || scope.resource.is_custom() || is_plain(scope)
}

/// Whether nobody knows columns: virtual workspaces have none for built-in kinds.
fn is_plain(scope: &Scope) -> bool {
    scope.visible.is_some() && !scope.resource.is_custom()
}

fn shown_columns(scope: &Scope) -> impl Iterator<Item = &Column> {
    version(scope).filter(|_| !is_plain(scope)).into_iter().flat_map(|version| &version.columns)
}

/// The `columnDefinitions` of a kind.
pub(super) fn columns(scope: &Scope) -> Value {
    let mut all = Vec::new();
    if named_first(scope) {
        let text = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
        all.push(json!({"name": "Name", "type": "string", "format": "name", "description": text, "priority": 0}));
    }
    for column in shown_columns(scope) {
        // Dates are sent as text that is ready to display.
        let kind = if column.kind == "date" && !scope.resource.is_custom() { "string" } else { &column.kind };
        all.push(json!({
            "name": column.name, "type": kind, "format": column.format,
            "description": description(scope, column), "priority": column.priority,
        }));
    }
    Value::Array(all)
}

/// The description of a column; for CRDs it says where the values come from.
fn description(scope: &Scope, column: &Column) -> String {
    if column.description.is_empty() && scope.resource.is_custom() && column.kind != "date" {
        return format!("Custom resource definition column (in JSONPath format): {}", column.path);
    }
    column.description.clone()
}

/// A table that is being sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Table<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a Value,
    column_definitions: Value,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    cells: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<RowObject<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowObject<'a> {
    Whole(&'a Value),
    Partial(Partial<'a>),
}

/// Only the metadata of an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Partial<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a Value,
}

impl<'a> Partial<'a> {
    pub(super) fn of(object: &'a Value) -> Self {
        Self { kind: "PartialObjectMetadata", api_version: "meta.k8s.io/v1", metadata: &object["metadata"] }
    }
}

/// A table of objects; `columns` is left out of later events of a watch.
pub(super) fn table<'a>(
    scope: &Scope,
    objects: &'a [Value],
    metadata: &'a Value,
    include: Include,
    columns: Option<Value>,
) -> Table<'a> {
    Table {
        kind: "Table",
        api_version: "meta.k8s.io/v1",
        metadata,
        column_definitions: columns.unwrap_or_else(|| json!([])),
        rows: objects.iter().map(|object| row(scope, object, include)).collect(),
    }
}

fn row<'a>(scope: &Scope, object: &'a Value, include: Include) -> Row<'a> {
    let mut cells = Vec::new();
    if named_first(scope) {
        cells.push(object["metadata"]["name"].clone());
    }
    for column in shown_columns(scope) {
        cells.push(if scope.resource.is_custom() { custom_cell(column, object) } else { cell(column, object) });
    }
    let object = match include {
        Include::None => None,
        Include::Metadata => Some(RowObject::Partial(Partial::of(object))),
        Include::Object => Some(RowObject::Whole(object)),
    };
    Row { cells, object }
}

/// The cell of a custom kind: of several values the first one, if it has the column's type.
fn custom_cell(column: &Column, object: &Value) -> Value {
    let found = jsonpath::select(object, &column.path);
    let Some(first) = found.first() else { return Value::Null };
    let fits = |fine: bool| if fine { (*first).clone() } else { Value::Null };
    match column.kind.as_str() {
        "string" => jsonpath::printed(first).into(),
        "integer" => match first.as_f64() {
            Some(float) if !first.is_i64() => {
                format!("{:.0}", float.trunc()).parse::<i64>().map_or(Value::Null, Value::from)
            }
            _ => fits(first.is_i64()),
        },
        "number" => fits(first.is_number()),
        "boolean" => fits(first.is_boolean()),
        "date" => match first.as_str() {
            None => Value::Null,
            Some("") => "<unknown>".into(),
            Some(time) if time.parse::<jiff::Timestamp>().is_err() => "<invalid>".into(),
            Some(time) => since(time).into(),
        },
        _ => Value::Null,
    }
}

fn cell(column: &Column, object: &Value) -> Value {
    if let Some(name) = column.path.strip_prefix('=') {
        return computed(name, object);
    }
    let found = jsonpath::select(object, &column.path);
    let Some(first) = found.first() else { return Value::Null };
    match column.kind.as_str() {
        "date" => first.as_str().map_or(Value::Null, |time| since(time).into()),
        "integer" | "number" | "boolean" => (*first).clone(),
        _ if found.len() == 1 && first.is_null() => Value::Null,
        _ => found.into_iter().map(jsonpath::text).collect::<Vec<_>>().join(",").into(),
    }
}

/// Cells of built-in kinds that are more than a path.
fn computed(name: &str, object: &Value) -> Value {
    let count = |key: &str| object[key].as_object().map_or(0, serde_json::Map::len);
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    match name {
        "created" => text("/metadata/creationTimestamp").into(),
        "data" => (count("data") + count("binaryData")).into(),
        "role" => format!("{}/{}", text("/roleRef/kind"), text("/roleRef/name")).into(),
        "User" | "Group" | "ServiceAccount" => subjects(name, object).into(),
        "object" => {
            let involved =
                if object["involvedObject"].is_object() { &object["involvedObject"] } else { &object["regarding"] };
            let part = |key: &str| involved[key].as_str().unwrap_or_default().to_owned();
            format!("{}/{}", part("kind").to_lowercase(), part("name")).into()
        }
        "source" => {
            let host = text("/source/host");
            let component = text("/source/component");
            let component = if component.is_empty() { text("/reportingComponent") } else { component };
            if host.is_empty() { component } else { format!("{component}, {host}") }.into()
        }
        "lastSeen" | "firstSeen" => seen(name, object).into(),
        "ready" => format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas")).into(),
        "updated" => number("/status/updatedReplicas").into(),
        "available" => number("/status/availableReplicas").into(),
        "ports" => ports(object).into(),
        "webhooks" | "validations" => {
            let list = if name == "webhooks" { &object["webhooks"] } else { &object["spec"]["validations"] };
            list.as_array().map_or(0, Vec::len).into()
        }
        "paramKind" if object["spec"]["paramKind"].is_object() => {
            format!("{}/{}", text("/spec/paramKind/apiVersion"), text("/spec/paramKind/kind")).into()
        }
        "paramRef" if !text("/spec/paramRef/name").is_empty() => {
            let namespace = text("/spec/paramRef/namespace");
            let namespace = if namespace.is_empty() { "*".to_owned() } else { namespace };
            format!("{namespace}/{}", text("/spec/paramRef/name")).into()
        }
        "paramKind" | "paramRef" => "<unset>".into(),
        _ => Value::Null,
    }
}

fn subjects(kind: &str, object: &Value) -> String {
    let all = object["subjects"].as_array().into_iter().flatten().filter(|subject| subject["kind"] == kind);
    let names: Vec<String> = all
        .map(|subject| {
            let name = subject["name"].as_str().unwrap_or_default();
            match subject["namespace"].as_str() {
                Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
                _ => name.to_owned(),
            }
        })
        .collect();
    names.join(", ")
}

fn seen(name: &str, object: &Value) -> String {
    let fields: &[&str] = if name == "lastSeen" {
        &[
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/deprecatedLastTimestamp",
            "/eventTime",
            "/metadata/creationTimestamp",
        ]
    } else {
        &["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime", "/metadata/creationTimestamp"]
    };
    let time = fields.iter().find_map(|pointer| object.pointer(pointer).and_then(Value::as_str));
    time.map_or_else(|| "<unknown>".to_owned(), since)
}

fn ports(object: &Value) -> String {
    let list = object["spec"]["ports"].as_array().into_iter().flatten();
    let texts: Vec<String> =
        list.map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))).collect();
    if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") }
}
