//! Create.

use serde_json::{Map, Value, json};

use super::meta::{self, NameRule};
use super::read::to_storage;
use super::update::Source;
use super::{Api, CLUSTER_ANNOTATION, Caller, FieldValidation, Scope, WriteOptions, Written, managed, rules, typed};
use crate::auth::escalation::Grant;
use crate::extension::{Operation, Review};
use crate::schema::unknown_metadata;
use crate::status::{Cause, Status};
use crate::store::{Expect, Key, Kind, StoreError};

const GENERATE_ATTEMPTS: usize = 8;

impl Api {
    /// Stores a new object.
    pub fn create(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let mut object = object;
        // Ownership is recorded by the server.
        remove_meta(&mut object, "managedFields");
        self.create_as(caller, scope, &object, options, Source::Put)
    }

    /// Stores a new object of server-side apply; its `managedFields` is final already.
    pub(super) fn create_applied(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: &Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.create_as(caller, scope, object, options, Source::Apply)
    }

    fn create_as(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: &Value,
        options: &WriteOptions,
        source: Source,
    ) -> Result<Written, Status> {
        let generated = object["metadata"]["name"].as_str().is_none_or(str::is_empty)
            && object["metadata"]["generateName"].as_str().is_some_and(|prefix| !prefix.is_empty());
        let mut attempt = 1;
        loop {
            let result = self.create_once(caller, scope, object.clone(), options, source);
            match result {
                Err(status) if generated && status.reason == "AlreadyExists" && attempt < GENERATE_ATTEMPTS => {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    fn create_once(
        &self,
        caller: &Caller,
        scope: &Scope,
        mut object: Value,
        options: &WriteOptions,
        source: Source,
    ) -> Result<Written, Status> {
        if scope.resource.terminating {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(Status::new(405, "MethodNotAllowed", message));
        }
        let mut warnings = decode(scope, &mut object, options, false)?;
        let created = self.create_decoded(caller, scope, object, options, source);
        let object = created.map_err(|status| status.warned(&warnings))?;
        warnings.extend(rules::warnings(&scope.resource, &object, None));
        Ok(Written { code: 201, object, warnings })
    }

    fn create_decoded(
        &self,
        caller: &Caller,
        scope: &Scope,
        mut object: Value,
        options: &WriteOptions,
        source: Source,
    ) -> Result<Value, Status> {
        let resource = &scope.resource;
        let cluster = scope.cluster()?.clone();
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        }
        let version = scope.version()?;
        // Nobody owns anything in what does not fit, be it in a status that is not kept.
        let fits = !resource.is_custom() || typed::faults(scope, &object)?.is_empty();
        reset_metadata(&mut object, rules::has_generation(resource));
        if let (true, Some(map)) = (version.status, object.as_object_mut()) {
            map.remove("status");
        }
        let name = name_new_object(scope, &mut object)?;
        let prefix = object["metadata"]["generateName"].as_str().filter(|prefix| !prefix.is_empty());
        let faults: Vec<Cause> = rules::name_rule(resource).map_or_else(Vec::new, |rule| {
            let generated = prefix.and_then(|prefix| meta::check_generate_name(rule, prefix));
            generated.into_iter().chain(meta::check_name(rule, &name)).collect()
        });
        if !faults.is_empty() {
            return Err(Status::invalid(&resource.group, &resource.kind, &name, &faults));
        }
        if let Some(schema) = &version.schema {
            schema.apply_defaults(&mut object);
        }
        rules::prepare(self, scope, &cluster, &mut object, None);
        self.review(caller, scope, Operation::Create, "", None, &mut object, options.dry_run)?;
        self.check_namespace(caller, scope, &cluster, &name)?;
        let mut causes = meta::check_metadata(&object);
        causes.extend(rules::validate(self, scope, &cluster, &object, None));
        if let Some(schema) = &version.schema {
            causes.extend(self.checked(schema, &object, None));
        }
        if !causes.is_empty() {
            return Err(Status::invalid(&resource.group, &resource.kind, &name, &causes));
        }
        rules::settle(resource, &mut object);
        if source != Source::Apply && fits {
            managed::written(scope, None, &mut object, options, "");
        }
        whole_numbers(&mut object);
        to_storage(resource, &mut object);
        if let Some(schema) = resource.storage_version().and_then(|storage| storage.schema.as_ref()) {
            schema.prune(&mut object, &mut Vec::new());
        }
        let key = scope.key(&name)?;
        if options.dry_run {
            if self.store.has(&key) {
                return Err(Status::already_exists(&resource.group, &resource.plural, &name));
            }
            rules::unestablished(resource, &mut object);
            return Ok(Self::undecorated(scope, object.into()));
        }
        let stored = self.store.commit(&key, Expect::Absent, Some(object));
        let stored = stored.map_err(|error| store_error(scope, &name, &error))?;
        Ok(self.present(scope, &key, stored.object))
    }

    /// Extension and view admission; the plane's own writes are not reviewed.
    #[allow(clippy::too_many_arguments, reason = "these are the fields of a review")]
    pub(super) fn review(
        &self,
        caller: &Caller,
        scope: &Scope,
        operation: Operation,
        subresource: &str,
        old: Option<&Value>,
        object: &mut Value,
        dry_run: bool,
    ) -> Result<(), Status> {
        if caller.system {
            return Ok(());
        }
        let cluster = scope.cluster()?.clone();
        let resource = scope.resource.clone();
        let mut review =
            Review { operation, subresource, caller, resource: &resource, cluster: &cluster, old, object, dry_run };
        if let Some(admit) = &scope.admit {
            admit(self, &mut review)?;
        }
        if let Some(extension) = &self.extension {
            extension.admit(self, &mut review)?;
        }
        // What comes through a virtual workspace has the rights the consumer granted there.
        if scope.admit.is_none() && operation != Operation::Delete && rules::is_rbac(&resource) {
            let grant = Grant { plural: &resource.plural, namespace: &scope.namespace, object, old };
            self.check_grant(caller, &cluster, &grant)?;
        }
        strip_cluster(object);
        Ok(())
    }

    fn check_namespace(&self, caller: &Caller, scope: &Scope, cluster: &str, name: &str) -> Result<(), Status> {
        let resource = &scope.resource;
        if !resource.namespaced {
            return Ok(());
        }
        let key = Key::new(&Kind::new("", "namespaces"), cluster, "", &scope.namespace);
        let Some(namespace) = self.store.get(&key) else {
            return Err(Status::not_found("", "namespaces", &scope.namespace));
        };
        if namespace.object["metadata"]["deletionTimestamp"].is_string() && !caller.system {
            return Err(Status::namespace_terminating(&resource.group, &resource.plural, name, &scope.namespace));
        }
        Ok(())
    }
}

/// Checks and cleans a body that came from a client; returns warnings.
pub(super) fn decode(
    scope: &Scope,
    object: &mut Value,
    options: &WriteOptions,
    patched: bool,
) -> Result<Vec<String>, Status> {
    let resource = &scope.resource;
    let kind = &*resource.kind;
    if object.is_null() && !resource.is_custom() {
        *object = json!({});
    }
    if object.is_null() {
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in 'null' (6e756c6c)"
        );
        return Err(Status::bad_request(message));
    }
    if !object.is_object() {
        let shape =
            r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
             json: cannot unmarshal {} into Go value of type {shape} ({})",
            go_type(object),
            data_encoding::HEXLOWER.encode(object.to_string().as_bytes())
        );
        return Err(Status::bad_request(message));
    }
    let name = meta::name_of(object).to_owned();
    for (field, wanted) in [("kind", kind.to_owned()), ("apiVersion", scope.api_version())] {
        match object[field].as_str() {
            Some(found) if found == wanted => {}
            None | Some("") if !resource.is_custom() || patched => object[field] = wanted.into(),
            None | Some("") if field == "apiVersion" => {
                return Err(Status::bad_request(format!(
                    "the API version in the data () does not match the expected API version ({wanted})"
                )));
            }
            None | Some("") => {
                let (what, text) = (if field == "kind" { "Kind" } else { "apiVersion" }, object.to_string());
                let start = if text.len() > 30 {
                    format!("{} ...", &text[..text.floor_char_boundary(30)])
                } else {
                    text.clone()
                };
                let message = format!(
                    "the object provided is unrecognized (must be of type {kind}): Object '{what}' is missing in '{text}' ({start})"
                );
                return Err(Status::bad_request(message));
            }
            Some(_) if !resource.is_custom() && !patched => {
                let (version, found) = (object["apiVersion"].as_str().unwrap_or("v1"), object["kind"].as_str());
                let found = found.filter(|found| !found.is_empty()).unwrap_or(kind);
                return Err(Status::bad_request(format!(
                    "{found} in version \"{version}\" cannot be handled as a {kind}: no kind \"{found}\" is registered for \
                     version \"{version}\" in scheme \"pkg/runtime/scheme.go:110\""
                )));
            }
            Some(found) if field == "kind" => {
                if let Some(version) = object["apiVersion"].as_str().filter(|version| *version != scope.api_version()) {
                    return Err(Status::bad_request(format!(
                        "the API version in the data ({version}) does not match the expected API version ({})",
                        scope.api_version()
                    )));
                }
                let cause = Cause::invalid("kind", &found.into(), &format!("must be {wanted}"));
                return Err(Status::invalid(&resource.group, found, &name, &[cause]));
            }
            Some(found) => {
                let message =
                    format!("the API version in the data ({found}) does not match the expected API version ({wanted})");
                return Err(Status::bad_request(message));
            }
        }
    }
    if let Err(why) = meta::decode_metadata(object, resource.is_custom()) {
        let message = format!("{kind} in version \"{}\" cannot be handled as a {kind}: {why}", scope.version);
        return Err(Status::bad_request(message));
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match object["metadata"]["namespace"].as_str() {
        None | Some("") if resource.namespaced => object["metadata"]["namespace"] = (*scope.namespace).into(),
        None | Some("") => remove_meta(object, "namespace"),
        Some(found) if resource.namespaced && *found == *scope.namespace => {}
        Some(_) => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
    }
    let mut unknown: Vec<String> = Vec::new();
    unknown_metadata(object, "", &mut unknown);
    let misfit = |object: &Value, why: &str| {
        if patched {
            let cause = Cause::invalid("patch", &Value::String(object.to_string()), why);
            return Status::invalid("", "", "", &[cause]);
        }
        Status::bad_request(format!("{kind} in version \"{}\" cannot be handled as a {kind}: {why}", scope.version))
    };
    let read = rules::read(resource, object, &mut unknown).map_err(|why| misfit(object, &why))?;
    if let Some(schema) = scope.version()?.schema.as_ref().filter(|_| !read) {
        if resource.is_custom() {
            schema.drop_nulls(object);
        } else {
            schema.prune(object, &mut unknown);
            rules::fit_types(resource, object)?;
            // Typed decoding drops nulls and fails on wrong types before anything else is looked at.
            drop_all_nulls(object);
            if let Some(fault) = schema.validate(object, None).first() {
                return Err(misfit(object, &undecodable(kind, object, fault)));
            }
        }
        schema.prune(object, &mut unknown);
    }
    unknown.sort();
    unknown_fields(scope, object, &unknown, options, patched)
}

/// Why a value does not fit into Kubernetes' own type, in the words of its decoder.
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
            go_type(&object[field])
        ),
        [field, key] if !field.contains('[') => format!(
            "json: cannot unmarshal {} into Go struct field {kind}.{field} of type {wanted}",
            go_type(&object[field][key])
        ),
        _ => format!("{}: {why}", fault.field),
    }
}

fn unknown_fields(
    scope: &Scope,
    object: &Value,
    unknown: &[String],
    options: &WriteOptions,
    patched: bool,
) -> Result<Vec<String>, Status> {
    // What is in an unknown field does not matter.
    let below = |field: &str| {
        unknown.iter().any(|other| {
            field.strip_prefix(other.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let duplicates = options.duplicates.iter().filter(|field| !below(field));
    let faults: Vec<String> = duplicates
        .map(|field| format!("duplicate field \"{field}\""))
        .chain(unknown.iter().map(|field| format!("unknown field \"{field}\"")))
        .collect();
    match options.validation {
        _ if faults.is_empty() => Ok(Vec::new()),
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(faults),
        FieldValidation::Strict if patched => {
            let detail = format!("strict decoding error: {}", faults.join(", "));
            let cause = Cause::invalid("patch", &Value::String(object.to_string()), &detail);
            Err(Status::invalid("", "", "", &[cause]))
        }
        FieldValidation::Strict => {
            let kind = &scope.resource.kind;
            Err(Status::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding error: {}",
                scope.version,
                faults.join(", ")
            )))
        }
    }
}

fn drop_all_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_all_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_all_nulls),
        _ => {}
    }
}

/// Numbers without a fraction are kept as whole ones, as Go writes them.
pub(super) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
            if let Some(whole) = whole.and_then(|whole| format!("{whole:.0}").parse::<i64>().ok()) {
                *value = whole.into();
            }
        }
        _ => {}
    }
}

pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Sets what the server decides and drops what a client must not.
fn reset_metadata(object: &mut Value, counted: bool) {
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        remove_meta(object, key);
    }
    if counted || object["metadata"]["generation"] == 0 {
        remove_meta(object, "generation");
    }
    strip_cluster(object);
    object["metadata"]["uid"] = meta::uid().into();
    object["metadata"]["creationTimestamp"] = meta::now().into();
}

/// The cluster annotation is never stored.
pub(super) fn strip_cluster(object: &mut Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let empty = match metadata.get_mut("annotations") {
        Some(Value::Object(annotations)) => annotations.remove(CLUSTER_ANNOTATION).is_some() && annotations.is_empty(),
        Some(Value::Null) => true,
        _ => false,
    };
    if empty {
        metadata.remove("annotations");
    }
}

pub(super) fn remove_meta(object: &mut Value, key: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove(key);
    }
}

fn name_new_object(scope: &Scope, object: &mut Value) -> Result<String, Status> {
    let resource = &scope.resource;
    let given = meta::name_of(object).to_owned();
    let name = if given.is_empty() {
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        if prefix.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(&resource.group, &resource.kind, "", &[cause]));
        }
        meta::generated_name(&prefix)
    } else {
        given
    };
    object["metadata"]["name"] = name.clone().into();
    if rules::has_generation(resource) {
        object["metadata"]["generation"] = 1.into();
    }
    drop_empty_metadata(object);
    Ok(name)
}

/// Empty maps and lists in metadata are not kept, as Go's `omitempty` does.
pub(super) fn drop_empty_metadata(object: &mut Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    let kept: Map<String, Value> = std::mem::take(metadata).into_iter().filter(|(_, value)| !empty(value)).collect();
    *metadata = kept;
}

pub(super) fn store_error(scope: &Scope, name: &str, error: &StoreError) -> Status {
    let resource = &scope.resource;
    match error {
        StoreError::Exists => Status::already_exists(&resource.group, &resource.plural, name),
        StoreError::Missing => scope.not_found(name),
        StoreError::Stale(_) => Status::stale(&resource.group, &resource.plural, name),
        StoreError::Disk(_) => Status::internal(error.to_string()),
    }
}

impl NameRule {
    /// The rule for a kind, by what Kubernetes demands of it.
    pub(super) fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "namespaces" | "services") => Self::Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }
}
