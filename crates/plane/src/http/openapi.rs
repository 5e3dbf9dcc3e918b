//! OpenAPI: one version 3 document per group version, made from the schemas as written; the version 2 document is made from all of them.

mod custom;
mod meta;
mod reference;
mod v2;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use reference::reference;

use super::discovery;
use super::negotiate::Format;
use super::reply::{self, Reply};
use super::request::Query;
use super::root::ApiRoot;
use crate::api::Api;
use crate::config::Mode;
use crate::resource::{Origin, Resource, Version};
use crate::status::Status;

/// `/openapi/v3`.
pub(super) fn index(api: &Api, root: &ApiRoot) -> Value {
    let resources = root.resources(api);
    let mut paths = Map::new();
    for path in discovery::group_version_paths(&resources) {
        let url = format!("/openapi/v3/{path}?hash={}", tag(&resources, &path));
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// `/openapi/v3/<group version>`.
pub(super) fn document(
    api: &Api,
    root: &ApiRoot,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
    format: Format,
) -> Result<Reply, Status> {
    let resources = root.resources(api);
    if !discovery::group_version_paths(&resources).iter().any(|known| known == path) {
        return Err(Status::page_not_found());
    }
    let tag = tag(&resources, path);
    match query.get("hash") {
        Some(asked) if asked != tag => {
            let mut reply = reply::text(301, "");
            if let Ok(value) = HeaderValue::from_str(&format!("?hash={tag}")) {
                reply.headers_mut().insert(header::LOCATION, value);
            }
            Ok(reply)
        }
        asked => {
            let quoted = format!("\"{tag}\"");
            let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
            let mut reply = if known == Some(quoted.as_str()) {
                reply::text(304, "")
            } else {
                reply::object(200, &build(&resources, path), format)
            };
            if let Ok(value) = HeaderValue::from_str(&quoted) {
                reply.headers_mut().insert(header::ETAG, value);
            }
            if asked.is_some() {
                reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            }
            Ok(reply)
        }
    }
}

/// `/openapi/v2`; in kcp, for built-in kinds only.
pub(super) fn older(api: &Api, root: &ApiRoot, headers: &HeaderMap) -> Reply {
    let all = root.resources(api);
    let shown = |resource: &&Arc<Resource>| api.mode == Mode::Kube || resource.origin == Origin::Builtin;
    let resources: Vec<Arc<Resource>> = all.iter().filter(shown).cloned().collect();
    let paths = discovery::group_version_paths(&all);
    // Texts that were written from values can be read as values.
    let value = |path: &String| serde_json::to_value(build(&resources, path)).unwrap_or_default();
    let document = v2::merge(paths.iter().map(value));
    let accepted: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let wants = |media: &str| accepted.iter().any(|text| text.contains(media));
    if wants(v2::MEDIA) || wants(v2::OLD_MEDIA) {
        reply::raw(200, v2::ANSWER_MEDIA, v2::encode(&document))
    } else {
        reply::object(200, &document, Format::Json)
    }
}

/// A document of version 3. Schemas are texts, because as values those of a large group would take ten times the memory.
#[derive(Serialize)]
struct Document {
    components: Components,
    info: Value,
    openapi: &'static str,
    paths: Map<String, Value>,
}

#[derive(Serialize)]
struct Components {
    schemas: BTreeMap<String, Box<RawValue>>,
}

/// The hash in the URL of a document. It depends on everything the document is made from, so that the document need not be made for it.
fn tag(resources: &[Arc<Resource>], path: &str) -> String {
    let mut hash = Sha512::new();
    for (resource, version) in served(resources, path) {
        let names = [&*resource.group, &resource.kind, &resource.list_kind, &resource.plural, &version.name];
        for name in names.into_iter().chain(resource.verbs.iter().copied()) {
            hash.update(name.as_bytes());
            hash.update([0]);
        }
        hash.update([u8::from(resource.namespaced), u8::from(resource.origin == Origin::Builtin)]);
        hash.update(version.openapi.digest());
    }
    data_encoding::HEXUPPER.encode(&hash.finalize())
}

/// The kinds of `api/v1` or `apis/<group>/<version>`.
fn served<'a>(resources: &'a [Arc<Resource>], path: &str) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
    let (group, version) = match path.strip_prefix("apis/") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => ("", path.trim_start_matches("api/")),
    };
    let (group, version) = (group.to_owned(), version.to_owned());
    resources.iter().filter(move |resource| *resource.group == *group && resource.established).filter_map(
        move |resource| {
            let found = resource.version(&version).filter(|found| found.served)?;
            Some((&**resource, found))
        },
    )
}

/// The document of `api/v1` or `apis/<group>/<version>`.
fn build(resources: &[Arc<Resource>], path: &str) -> Document {
    let mut schemas = meta::schemas();
    let mut texts = BTreeMap::new();
    let mut paths = Map::new();
    for (resource, found) in served(resources, path) {
        let name = schema_name(resource, &found.name, &resource.kind);
        let schema = object_schema(resource, found, &mut schemas);
        texts.extend(text_of(&schema).map(|text| (name.clone(), text)));
        let list = schema_name(resource, &found.name, &resource.list_kind);
        schemas.insert(list.clone(), list_schema(resource, found, &name));
        add_paths(&mut paths, path, resource, found, &name, &list);
    }
    for (name, schema) in schemas {
        if let Some(text) = text_of(&schema) {
            texts.entry(name).or_insert(text);
        }
    }
    let info = json!({"title": "carrick-plane", "version": "v1"});
    Document { components: Components { schemas: texts }, info, openapi: "3.0.0", paths }
}

/// Values always become JSON.
fn text_of(value: &Value) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

/// `io.example.v1.Widget`; built-in kinds are named as Kubernetes names them.
fn schema_name(resource: &Resource, version: &str, kind: &str) -> String {
    let reversed = match &*resource.group {
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        _ if resource.origin == Origin::Builtin => format!("io.k8s.api.{}", package(resource)),
        group => group.split('.').rev().collect::<Vec<_>>().join("."),
    };
    format!("{reversed}.{version}.{kind}")
}

/// The short name of a built-in group.
fn package(resource: &Resource) -> &str {
    resource.group.split('.').next().filter(|first| !first.is_empty()).unwrap_or("core")
}

fn identity(resource: &Resource, version: &Version) -> Value {
    json!({"group": &*resource.group, "version": &*version.name, "kind": &*resource.kind})
}

fn object_schema(resource: &Resource, version: &Version, schemas: &mut Map<String, Value>) -> Value {
    let written = version.openapi.value();
    let mut schema = match resource.origin {
        _ if written.is_some() && resource.is_custom() => custom::schema(version, written.unwrap_or_default()),
        _ if written.is_some() => written.unwrap_or_default(),
        Origin::Builtin => {
            let message = format!("{}.{}", package(resource), resource.kind);
            workloads::schema(&message, schemas).unwrap_or_else(open_schema)
        }
        _ => open_schema(),
    };
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    properties["apiVersion"] = json!({"type": "string", "description": meta::API_VERSION});
    properties["kind"] = json!({"type": "string", "description": meta::KIND});
    properties["metadata"] = custom::metadata();
    if !resource.is_custom() {
        properties["metadata"]["default"] = json!({});
    }
    schema["type"] = "object".into();
    schema["x-kubernetes-group-version-kind"] = json!([identity(resource, version)]);
    schema
}

/// The schema of a kind that is stored without a schema.
fn open_schema() -> Value {
    let any = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"properties": {"spec": any(), "status": any()}, "x-kubernetes-preserve-unknown-fields": true})
}

fn list_schema(resource: &Resource, version: &Version, name: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": meta::API_VERSION},
            "kind": {"type": "string", "description": meta::KIND},
            "metadata": {"allOf": [{"$ref": meta::LIST_META}], "default": {}},
            "items": {"type": "array", "items": {"allOf": [{"$ref": reference(name)}], "default": {}}},
        },
        "x-kubernetes-group-version-kind": [
            {"group": &*resource.group, "version": &*version.name, "kind": &*resource.list_kind}
        ],
    })
}

fn add_paths(
    paths: &mut Map<String, Value>,
    base: &str,
    resource: &Resource,
    version: &Version,
    name: &str,
    list: &str,
) {
    let identity = identity(resource, version);
    let answer = |schema: &str| json!({"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": reference(schema)}}}}});
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let write = || json!([query("dryRun"), query("fieldManager"), query("fieldValidation")]);
    let operation = |action: &str, schema: &str, parameters: Value| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity,
            "parameters": parameters, "responses": answer(schema),
        })
    };
    let body = || json!({"content": {"application/json": {"schema": {"$ref": reference(name)}}}, "required": true});
    let with_body = |mut operation: Value| {
        operation["requestBody"] = body();
        operation
    };
    let patch = || {
        let mut operation = operation("patch", name, write());
        let schema = json!({"schema": {"type": "object"}});
        operation["requestBody"] = json!({"content": {
            "application/json-patch+json": schema, "application/merge-patch+json": schema,
            "application/apply-patch+yaml": schema,
        }});
        operation
    };
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("/{base}{place}/{}", resource.plural);
    let mut all = json!({"parameters": []});
    let mut one = json!({"parameters": []});
    if resource.allows("list") {
        all["get"] = operation("list", list, json!([query("labelSelector"), query("fieldSelector"), query("limit")]));
        one["get"] = operation("get", name, json!([]));
    }
    if resource.allows("create") {
        all["post"] = with_body(operation("post", name, write()));
    }
    if resource.allows("patch") {
        one["put"] = with_body(operation("put", name, write()));
        one["patch"] = patch();
        one["delete"] = operation("delete", name, json!([query("dryRun"), query("propagationPolicy")]));
    }
    if resource.namespaced && resource.allows("list") {
        let everywhere = json!({"get": all["get"].clone()});
        paths.insert(format!("/{base}/{}", resource.plural), everywhere);
    }
    paths.insert(format!("{collection}/{{name}}"), one);
    paths.insert(collection, all);
}
