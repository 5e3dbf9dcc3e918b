//! Turns a body, or the result of a patch, into an object that fits its kind.

use serde_json::{Value, json};

use super::change::ChangeSource;
use super::object::remove_meta;
use super::scope::Scope;
use super::write::{FieldValidation, WriteOptions};
use super::{meta, rules};
use crate::go::{self, json_type};
use crate::protobuf;
use crate::schema::unknown_metadata;
use crate::status::{Cause, Status};

/// The group of metadata and tables, which clients get, but whose kinds nobody may send.
const META: &str = "meta.k8s.io/v1";

/// Checks and cleans a body that came from a client; returns warnings.
pub(super) fn decode(
    scope: &Scope,
    object: &mut Value,
    options: &WriteOptions,
    source: ChangeSource<'_>,
) -> Result<Vec<String>, Status> {
    let resource = &scope.resource;
    let kind = &*resource.kind;
    let patched = source != ChangeSource::Put;
    if let (false, ChangeSource::Strategic(_) | ChangeSource::Apply, Value::Object(map)) =
        (resource.is_custom(), source, &mut *object)
    {
        // These do not change the type of the object.
        map.insert("kind".into(), kind.into());
        map.insert("apiVersion".into(), scope.api_version().into());
    }
    if object.is_null() && !resource.is_custom() {
        *object = json!({});
    }
    if object.is_null() {
        return Err(incomplete(kind, "Kind", &sent(object, options)));
    }
    if !object.is_object() {
        let shape =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
             json: cannot unmarshal {} into Go value of type {shape} ({})",
            json_type(object),
            start(&sent(object, options))
        );
        return Err(Status::bad_request(message));
    }
    let name = meta::name_of(object).to_owned();
    // Virtual workspaces know no Go types.
    let custom = resource.is_custom() || scope.visible.is_some();
    for (field, wanted) in [("kind", kind.to_owned()), ("apiVersion", scope.api_version())] {
        match object[field].as_str() {
            Some(found) if found == wanted => {}
            None | Some("") if !custom || patched => object[field] = wanted.into(),
            None | Some("") if field == "apiVersion" => {
                return Err(Status::bad_request(format!(
                    "the API version in the data () does not match the expected API version ({wanted})"
                )));
            }
            None | Some("") => {
                let what = if field == "kind" { "Kind" } else { "apiVersion" };
                return Err(incomplete(kind, what, &sent(object, options)));
            }
            Some(_) if !custom => {
                let (version, found) = (object["apiVersion"].as_str().unwrap_or("v1"), object["kind"].as_str());
                let found = found.filter(|found| !found.is_empty()).unwrap_or(kind);
                let why = format!(
                    "no kind \"{found}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:110\""
                );
                if patched {
                    return Err(refused(scope, object, source, &why));
                }
                let short = version.rsplit('/').next().unwrap_or_default();
                let why = match package(&resource.group) {
                    Some(package) if version != META && protobuf::is_known(version, found) => {
                        format!("converting ({short}.{found}) to ({package}.{kind}): unknown conversion")
                    }
                    _ => why,
                };
                return Err(Status::bad_request(format!(
                    "{found} in version \"{short}\" cannot be handled as a {kind}: {why}"
                )));
            }
            Some(found) if field == "kind" => {
                let version = object["apiVersion"].as_str().filter(|version| *version != scope.api_version());
                if let Some(version) = version.filter(|_| !patched) {
                    return Err(Status::bad_request(format!(
                        "the API version in the data ({version}) does not match the expected API version ({})",
                        scope.api_version()
                    )));
                }
                let cause = Cause::invalid("kind", &found.into(), &format!("must be {wanted}"));
                return Err(Status::invalid(&resource.group, found, &name, &[cause]));
            }
            Some(found) if patched => {
                let group = found.split_once('/').map_or("", |(group, _)| group);
                let cause = Cause::invalid("apiVersion", &found.into(), &format!("must be {wanted}"));
                return Err(Status::invalid(group, kind, &name, &[cause]));
            }
            Some(found) => {
                let message =
                    format!("the API version in the data ({found}) does not match the expected API version ({wanted})");
                let mut unknown = Vec::new();
                if let Some(schema) = &scope.version()?.schema {
                    schema.prune(&mut object.clone(), &mut unknown);
                }
                let warnings = unknown_fields(scope, object, &unknown, options, source)?;
                return Err(Status::bad_request(message).warned(&warnings));
            }
        }
    }
    if let Err(why) = meta::decode_metadata(object, resource.is_custom()) {
        return Err(refused(scope, object, source, &why));
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match object["metadata"]["namespace"].as_str() {
        None | Some("") if resource.namespaced => object["metadata"]["namespace"] = (*scope.namespace).into(),
        // A kind without namespaces ignores one.
        None | Some("") => remove_meta(object, "namespace"),
        Some(_) if !resource.namespaced => remove_meta(object, "namespace"),
        Some(found) if *found == *scope.namespace => {}
        Some(_) => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
    }
    let mut unknown: Vec<String> = Vec::new();
    unknown_metadata(object, "", &mut unknown);
    let read = rules::read(resource, object, &mut unknown).map_err(|why| refused(scope, object, source, &why))?;
    if let Some(schema) = scope.version()?.schema.as_ref().filter(|_| !read) {
        if resource.is_custom() {
            if object["metadata"]["managedFields"].as_array().is_some_and(Vec::is_empty) {
                remove_meta(object, "managedFields");
            }
            // In server-side apply, everything in the configuration is meant as it is.
            if source != ChangeSource::Apply {
                schema.drop_nulls(object);
            }
        } else {
            schema.prune(object, &mut unknown);
            if let Err(why) = rules::fit_types(resource, object) {
                let why = if matches!(source, ChangeSource::Strategic(_)) {
                    format!("error decoding from json: {why}")
                } else {
                    why
                };
                return Err(refused(scope, object, source, &why));
            }
            // Through a virtual workspace, an empty map has an owner before it comes here.
            if !scope.is_forwarded() {
                rules::drop_empty(resource, object);
            }
            // Typed decoding drops nulls and fails on wrong types before anything else is checked.
            carrick_json::manifest::drop_nulls(object);
            let mut faults = schema.validate(object, None).into_iter();
            // Of kinds that are checked in full, only types count here.
            let counts = |fault: &Cause| !(rules::checks_all(resource) && is_about_content(fault));
            if let Some(fault) = faults.find(counts).as_ref() {
                return Err(refused(scope, object, source, &undecodable(kind, object, fault)));
            }
        }
        schema.prune(object, &mut unknown);
    }
    unknown.sort();
    unknown_fields(scope, object, &unknown, options, source)
}

/// The body as it was sent.
fn sent(object: &Value, options: &WriteOptions) -> String {
    options.yaml.clone().unwrap_or_else(|| object.to_string())
}

/// The refusal of a body without its kind or API version.
fn incomplete(kind: &str, what: &str, text: &str) -> Status {
    let start = start(text);
    let message = format!(
        "the object provided is unrecognized (must be of type {kind}): Object '{what}' is missing in '{text}' ({start})"
    );
    Status::bad_request(message)
}

/// The first bytes of a body, as Go's decoders show them: as they are, if it looks like an object.
fn start(text: &str) -> String {
    const SHOWN: usize = 30;
    let rest = if text.len() > SHOWN { " ..." } else { "" };
    if text.starts_with('{') {
        return format!("{}{rest}", &text[..text.floor_char_boundary(SHOWN)]);
    }
    format!("{}{rest}", data_encoding::HEXLOWER.encode(&text.as_bytes()[..text.len().min(SHOWN)]))
}

/// The package of a group's Go types inside the real server, in which all kinds but those of CRDs are known.
fn package(group: &str) -> Option<&str> {
    match group {
        "" | "events.k8s.io" => Some("core"),
        "apiextensions.k8s.io" => None,
        other => other.split('.').next(),
    }
}

/// Whether a value is missing or there twice, which a decoder in Go does not mind.
fn is_about_content(fault: &Cause) -> bool {
    matches!(fault.reason.as_str(), "FieldValueRequired" | "FieldValueDuplicate")
}

/// The error for an object that cannot be decoded.
fn refused(scope: &Scope, object: &Value, source: ChangeSource<'_>, why: &str) -> Status {
    let shown = match source {
        ChangeSource::Put => {
            let kind = &scope.resource.kind;
            let message = format!("{kind} in version \"{}\" cannot be handled as a {kind}: {why}", scope.version);
            return Status::bad_request(message);
        }
        ChangeSource::Patch | ChangeSource::Apply => object.to_string(),
        ChangeSource::Strategic(patch) => {
            let mut patch = patch.clone();
            carrick_json::manifest::drop_nulls(&mut patch);
            let why = unconvertible(why);
            let cause = Cause::invalid("patch", &Value::String(go::plain(&patch)), &why);
            return Status::invalid("", "", "", &[cause]);
        }
    };
    Status::invalid("", "", "", &[Cause::invalid("patch", &Value::String(shown), why)])
}

/// An error of Go's decoder in the wording of the converter that is used for strategic merge patches.
fn unconvertible(why: &str) -> String {
    let parts = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| rest.split_once(" into "));
    let Some((found, place)) = parts else { return why.to_owned() };
    let wanted = place.rsplit_once(" of type ").map_or(place, |(_, wanted)| wanted);
    let found = match found {
        "number" => "int64",
        "array" => "slice",
        "object" => "map",
        other => other,
    };
    match wanted {
        "v1.ObjectMeta" => format!("cannot restore struct from: {found}"),
        map if map.starts_with("map[") => format!("cannot restore map from {found}"),
        list if list.starts_with("[]") => format!("cannot restore slice from {found}"),
        "string" if found == "int64" => "cannot convert int64 to string".to_owned(),
        scalar => format!("unrecognized type: {scalar}"),
    }
}

/// Why a value does not fit into Kubernetes' own type, in the wording of its decoder.
fn undecodable(kind: &str, object: &Value, fault: &Cause) -> String {
    let why = fault.message.rsplit_once(" in body ").map_or(fault.message.as_str(), |(_, why)| why);
    let parts: Vec<&str> = fault.field.split('.').collect();
    let wanted = why.strip_prefix("must be of type ").and_then(|rest| rest.split_once(':')).map(|(wanted, _)| wanted);
    let bytes = matches!((kind, parts[0]), ("ConfigMap", "binaryData") | ("Secret", "data"));
    let wanted = match wanted {
        Some("string") if bytes => "[]uint8",
        Some("string") if kind == "Secret" && parts[..] == ["type"] => "v1.SecretType",
        Some("string") => "string",
        Some("boolean") => "bool",
        Some("object") if parts.len() == 1 && bytes => "map[string][]uint8",
        Some("object") if parts.len() == 1 && matches!(kind, "ConfigMap" | "Secret") => "map[string]string",
        _ => return format!("{}: {why}", fault.field),
    };
    match parts[..] {
        [field] => format!(
            "json: cannot unmarshal {} into Go struct field {kind}.{field} of type {wanted}",
            json_type(&object[field])
        ),
        [field, key] if !field.contains('[') => format!(
            "json: cannot unmarshal {} into Go struct field {kind}.{field} of type {wanted}",
            json_type(&object[field][key])
        ),
        _ => format!("{}: {why}", fault.field),
    }
}

fn unknown_fields(
    scope: &Scope,
    object: &Value,
    unknown: &[String],
    options: &WriteOptions,
    source: ChangeSource<'_>,
) -> Result<Vec<String>, Status> {
    // The content of an unknown field does not matter, except to the decoder of custom kinds.
    let below = |field: &str| {
        unknown.iter().any(|other| {
            field.strip_prefix(other.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let duplicates = options.duplicates.iter().filter(|field| scope.resource.is_custom() || !below(field));
    // Warnings name each line of YAML, a refusal names all of them at once.
    let strict = options.strict.iter().flat_map(|reported| match options.validation {
        FieldValidation::Strict => vec![reported.clone()],
        _ => reported.lines().skip(1).map(|line| line.trim().to_owned()).collect(),
    });
    let faults: Vec<String> = strict
        .chain(duplicates.map(|field| format!("duplicate field \"{field}\"")))
        .chain(unknown.iter().map(|field| format!("unknown field \"{field}\"")))
        .collect();
    match options.validation {
        _ if faults.is_empty() => Ok(Vec::new()),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(faults),
        FieldValidation::Strict => {
            Err(refused(scope, object, source, &format!("strict decoding error: {}", faults.join(", "))))
        }
    }
}
