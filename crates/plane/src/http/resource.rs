//! Requests about resources.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::body::{self, BodyResult, Decoded};
use super::call::{Call, agent, check_media, decoded, media_type};
use super::negotiate::{Format, Shape};
use super::options::{invalid_options, number};
use super::reply::{self, Reply};
use super::table::{self, Include, Partial};
use super::{pods, reviews, scale, token, watch};
use crate::api::{
    Api, DeleteOptions, FieldSelector, FieldValidation, Listed, RevisionMatch, Scope, WriteOptions, Written,
    custom_patches,
};
use crate::config::Mode;
use crate::patch::Patch;
use crate::protobuf;
use crate::request::{Attributes, Target};
use crate::resource::Resource;
use crate::status::{Cause, Status};

/// How long a list waits for a revision that does not exist yet.
const REVISION_WAIT: Duration = Duration::from_secs(3);

/// A list that is being sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, T> {
    api_version: &'a str,
    kind: &'a str,
    metadata: &'a Value,
    items: T,
}

/// The items of a list, unpacked one at a time while they are written.
struct Items<'a> {
    api: &'a Api,
    scope: &'a Scope,
    listed: &'a Listed,
    /// Typed lists of built-in kinds do not repeat the type on each item.
    typed: bool,
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.api.items(self.scope, self.listed).map(|mut item| {
            if let (false, Value::Object(map)) = (self.typed, &mut item) {
                map.remove("apiVersion");
                map.remove("kind");
            }
            item
        }))
    }
}

impl Call<'_> {
    /// Executes the request.
    pub(super) async fn answer(&self, attributes: Attributes, request: Request<BodyResult>) -> Result<Reply, Status> {
        let api = &self.server.api;
        let target = self.target;
        let Some(resource) = self.root.find(api, &target.group, &target.version, &target.plural) else {
            // Kubernetes' own groups exist, even if they have no such kind.
            if target.group.is_empty() && !self.root.is_virtual() {
                let message = "the server could not find the requested resource";
                return Err(Status::new(404, "NotFound", message).about_nothing());
            }
            return Err(Status::page_not_found());
        };
        if resource.is_custom() || self.root.is_virtual() {
            let accept = self.accept.without_messages()?;
            return Self { accept, ..*self }.about(resource, attributes, request).await;
        }
        self.about(resource, attributes, request).await
    }

    /// Executes the request about a kind.
    async fn about(
        &self,
        resource: Arc<Resource>,
        attributes: Attributes,
        request: Request<BodyResult>,
    ) -> Result<Reply, Status> {
        let target = self.target;
        if resource.is_review() {
            return reviews::answer(self, &resource, request);
        }
        let namespace = if resource.namespaced { target.namespace.as_str() } else { "" };
        if resource.namespaced && !target.name.is_empty() && namespace.is_empty() {
            return Err(Status::page_not_found());
        }
        if !resource.namespaced && !target.namespace.is_empty() && target.plural != "namespaces" {
            return Err(Status::page_not_found());
        }
        let scope = Scope {
            target: self.root.target.clone(),
            version: target.version.as_str().into(),
            namespace: namespace.into(),
            visible: self.root.visible(&resource),
            admit: self.root.admit(),
            resource,
        };
        let deprecated: Vec<String> = scope.version()?.deprecated.clone().into_iter().collect();
        let answer = match self.check_subresource(&scope) {
            Ok(()) => self.verb(scope, attributes, request).await,
            Err(status) => Err(status),
        };
        if deprecated.is_empty() {
            return answer;
        }
        // Sent with every response, before all other warnings.
        let mut reply = answer.unwrap_or_else(|status| reply::status(&status, self.accept.errors));
        let others: Vec<_> = reply.headers().get_all(header::WARNING).iter().cloned().collect();
        reply.headers_mut().remove(header::WARNING);
        reply = reply::warn(reply, &deprecated);
        for other in others {
            reply.headers_mut().append(header::WARNING, other);
        }
        Ok(reply)
    }

    /// Executes the request, once the kind is known.
    async fn verb(&self, scope: Scope, attributes: Attributes, request: Request<BodyResult>) -> Result<Reply, Status> {
        let target = self.target;
        let verb = attributes.verb.as_str();
        if scope.target == Target::All {
            check_wildcard(&scope, verb, &target.name)?;
        }
        let whole_collection = target.name.is_empty() && matches!(verb, "update" | "patch");
        if whole_collection && scope.resource.is_custom() && !self.root.is_virtual() {
            return Err(Status::bad_request("name must be provided"));
        }
        if whole_collection || (target.subresource.is_empty() && !scope.resource.allows(verb)) {
            return Err(Status::method_not_allowed());
        }
        if target.subresource == "token" {
            return token::answer(self, &scope, request);
        }
        if matches!(target.subresource.as_str(), "binding" | "eviction") {
            return pods::answer(self, &scope, request);
        }
        if target.subresource == "scale" {
            return scale::answer(self, &scope, request);
        }
        match verb {
            "get" => self.get(&scope),
            "list" => self.list(&scope).await,
            "watch" => self.watch(scope, &request),
            "create" => self.create(&scope, request),
            "update" => self.update(&scope, request),
            "patch" => self.patch(&scope, request),
            "delete" | "deletecollection" => self.delete(&scope, request),
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn check_subresource(&self, scope: &Scope) -> Result<(), Status> {
        let version = scope.version()?;
        let exists = match self.target.subresource.as_str() {
            "" => true,
            "status" => version.status,
            "scale" => version.scale.is_some() && !self.root.is_virtual(),
            "finalize" => {
                &*scope.resource.plural == "namespaces" && scope.resource.group.is_empty() && !self.root.is_virtual()
            }
            "binding" | "eviction" => {
                &*scope.resource.plural == "pods" && scope.resource.group.is_empty() && !self.root.is_virtual()
            }
            "token" => {
                &*scope.resource.plural == "serviceaccounts"
                    && scope.resource.group.is_empty()
                    && !self.root.is_virtual()
            }
            _ => false,
        };
        match (exists, scope.resource.is_custom() || self.root.is_virtual()) {
            (true, _) => Ok(()),
            (_, true) => Err(Status::not_found(&scope.resource.group, &scope.resource.plural, &self.target.name)),
            (_, false) => {
                let message = "the server could not find the requested resource";
                Err(Status::new(404, "NotFound", message).about_nothing())
            }
        }
    }

    fn get(&self, scope: &Scope) -> Result<Reply, Status> {
        let object = match self.stale(None) {
            Some(revision) => self.server.api.get_at(scope, &self.target.name, revision)?,
            None => self.server.api.get(scope, &self.target.name)?,
        };
        Ok(self.shaped(scope, 200, object, &[]))
    }

    /// One object in the shape the client wants.
    pub(super) fn shaped(&self, scope: &Scope, code: u16, object: Value, warnings: &[String]) -> Reply {
        let format = self.accept.format;
        let reply = match self.accept.shape {
            Shape::Table if object["kind"] != "Status" => {
                let include = Include::parse(self.query.get("includeObject"));
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let objects = [object];
                let value = table::table(scope, &objects, &metadata, include, Some(table::columns(scope)));
                reply::object(code, &value, format)
            }
            Shape::Partial | Shape::PartialList if object["kind"] != "Status" => {
                reply::object(code, &Partial::of(&object), format)
            }
            _ => reply::object(code, &object, format),
        };
        reply::warn(reply, warnings)
    }

    async fn list(&self, scope: &Scope) -> Result<Reply, Status> {
        let mut options = self.list_options(scope)?;
        if self.query.get("sendInitialEvents").is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            return Err(invalid_options(Cause::forbidden("sendInitialEvents", detail)));
        }
        if let Some(wanted) = options.revision {
            self.wait_for(wanted).await?;
        }
        if options.continue_token.is_empty()
            && options.revision_match != RevisionMatch::Exact
            && let Some(revision) = self.stale(options.revision)
        {
            options.revision_match = RevisionMatch::Exact;
            options.revision = Some(revision);
        }
        let listed = self.server.api.list(scope, &options)?;
        Ok(self.listed(scope, &listed))
    }

    /// The past revision that a read must use, if the fault layer says so.
    pub(super) fn stale(&self, at_least: Option<u64>) -> Option<u64> {
        let behind = self.plan.behind()?;
        self.server.faults.count(|counts| counts.stale += 1);
        let store = &self.server.api.store;
        let revision = store.revision().saturating_sub(behind);
        Some(revision.max(store.oldest()).max(at_least.unwrap_or(0)))
    }

    async fn wait_for(&self, revision: u64) -> Result<(), Status> {
        let store = &self.server.api.store;
        if revision <= store.revision() {
            return Ok(());
        }
        let reached = tokio::time::timeout(REVISION_WAIT, store.reached(revision)).await;
        reached.map_err(|_| Status::revision_too_large(revision, store.revision()))
    }

    fn listed(&self, scope: &Scope, listed: &Listed) -> Reply {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), listed.revision.to_string().into());
        let shows = scope.resource.is_custom() && self.accept.shape == Shape::Object;
        if !listed.continue_token.is_empty() || shows {
            metadata.insert("continue".into(), listed.continue_token.as_str().into());
        }
        if let Some(remaining) = listed.remaining {
            metadata.insert("remainingItemCount".into(), remaining.into());
        }
        let metadata = Value::Object(metadata);
        let (api, format) = (&self.server.api, self.accept.format);
        match self.accept.shape {
            Shape::Table => {
                let include = Include::parse(self.query.get("includeObject"));
                let items: Vec<Value> = api.items(scope, listed).collect();
                let value = table::table(scope, &items, &metadata, include, Some(table::columns(scope)));
                reply::object(200, &value, format)
            }
            Shape::Partial => {
                let plain = scope.resource.is_custom() || self.root.is_virtual();
                reply::status(&not_one(&scope.resource, plain), self.accept.errors)
            }
            Shape::PartialList => {
                let items: Vec<Value> = api.items(scope, listed).collect();
                let items: Vec<Partial<'_>> = items.iter().map(Partial::of).collect();
                let (api_version, kind) = ("meta.k8s.io/v1", "PartialObjectMetadataList");
                reply::object(200, &List { api_version, kind, metadata: &metadata, items }, format)
            }
            Shape::Object => {
                let typed = scope.resource.is_custom() || self.root.is_virtual();
                let items = Items { api, scope, listed, typed };
                let (api_version, kind) = (&*scope.api_version(), &*scope.resource.list_kind);
                if format == Format::Protobuf
                    && let Some(list) = protobuf::encode_list(api_version, kind, &metadata, api.items(scope, listed))
                {
                    return reply::raw(200, protobuf::MEDIA, list);
                }
                reply::object(200, &List { api_version, kind, metadata: &metadata, items }, format)
            }
        }
    }

    fn watch(&self, mut scope: Scope, request: &Request<BodyResult>) -> Result<Reply, Status> {
        let mut options = self.list_options(&scope)?;
        if !self.target.name.is_empty() {
            // The deprecated form has the object's name in the path.
            let fields = format!("metadata.name={}", self.target.name);
            options.fields = FieldSelector::parse(&fields, &scope.resource, &scope.version)?;
        }
        if !scope.resource.namespaced {
            scope.namespace = "".into();
        }
        watch::answer(self, scope, options, request.extensions().get())
    }

    /// The decoded body of a write and the client's name.
    fn sent(&self, scope: &Scope, request: Request<BodyResult>) -> Result<(Decoded, String), Status> {
        let (api_version, kind) = (scope.api_version(), &scope.resource.kind);
        // kcp also takes protobuf for custom kinds whose names are those of built-in ones.
        let known = self.api().mode == Mode::Kcp && protobuf::is_known(&api_version, kind);
        if scope.resource.is_custom() && !known && media_type(&request) == protobuf::MEDIA {
            // The real server closes the connection.
            return Err(Status::unsupported_media(&["application/json", "application/yaml"]));
        }
        decoded(scope, request)
    }

    fn create(&self, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
        // Custom kinds may be created at any path.
        if !self.target.name.is_empty() && !scope.resource.is_custom() {
            return Err(Status::method_not_allowed());
        }
        if scope.resource.namespaced && scope.namespace.is_empty() {
            let message =
                "the namespace of the object must be in the URL: an empty namespace may not be set during creation";
            return Err(Status::bad_request(message));
        }
        let (sent, agent) = self.sent(scope, request)?;
        let options = self.write_options("CreateOptions", &agent, sent.duplicates)?;
        let options = WriteOptions { strict: sent.strict, yaml: sent.yaml, ..options };
        let written = self.server.api.create(self.caller, scope, sent.value, &options)?;
        Ok(self.written(scope, written))
    }

    fn update(&self, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
        let (sent, agent) = self.sent(scope, request)?;
        let options = self.write_options("UpdateOptions", &agent, sent.duplicates)?;
        let options = WriteOptions { strict: sent.strict, yaml: sent.yaml, ..options };
        self.check_creation(scope, false)?;
        let target = self.target;
        let api = &self.server.api;
        let written = api.put(self.caller, scope, &target.name, &target.subresource, sent.value, &options)?;
        Ok(self.written(scope, written))
    }

    fn patch(&self, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
        let media = media_type(&request);
        let agent = agent(&request);
        let content = request.into_body()?;
        let read = || body::json(&content, &mut Vec::new());
        let unreadable = |why: String| Patch::unreadable(&why);
        if media == "application/strategic-merge-patch+json" && scope.resource.is_custom() {
            return Err(Status::unsupported_media(custom_patches(self.server.api.mode)));
        }
        let options = self.write_options("PatchOptions", &agent, Vec::new())?;
        let mut warnings = Vec::new();
        let patch = match media.as_str() {
            "application/merge-patch+json" => Patch::Merge(read().unwrap_or_else(unreadable)),
            "application/json-patch+json" => Patch::Json(read().unwrap_or_else(unreadable)),
            "application/strategic-merge-patch+json" => Patch::Strategic(read().unwrap_or_else(unreadable)),
            "application/apply-patch+yaml" => {
                let (config, reported) = applied(&content, options.validation)?;
                warnings = reported;
                Patch::Apply(config)
            }
            _ if !scope.resource.is_custom() => {
                return Err(Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").about_nothing());
            }
            _ => return Err(Status::unsupported_media(custom_patches(self.server.api.mode))),
        };
        if matches!(patch, Patch::Apply(_)) && self.query.get("fieldManager").is_none() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[cause]));
        }
        if matches!(patch, Patch::Apply(_)) {
            self.check_creation(scope, true)?;
        }
        let target = self.target;
        let api = &self.server.api;
        let written = api.patch(self.caller, scope, &target.name, &target.subresource, &patch, &options);
        let mut written = written.map_err(|status| status.warned(&warnings))?;
        written.warnings.append(&mut warnings);
        Ok(self.written(scope, written))
    }

    /// Who creates an object by other means than a POST must be allowed to create it.
    fn check_creation(&self, scope: &Scope, applied: bool) -> Result<(), Status> {
        let target = self.target;
        if !target.subresource.is_empty() || !self.api().would_create(scope, &target.name, applied) {
            return Ok(());
        }
        let attributes = Attributes {
            verb: "create".into(),
            group: target.group.clone(),
            version: target.version.clone(),
            resource: target.plural.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            ..Attributes::default()
        };
        self.root.authorize(self.api(), self.caller, &attributes)
    }

    /// The error for options that cannot be decoded.
    fn undecodable(&self, why: String) -> Status {
        if self.api().release.blames_the_client() { Status::bad_request(why) } else { Status::new(500, "", why) }
    }

    fn delete(&self, scope: &Scope, request: Request<BodyResult>) -> Result<Reply, Status> {
        if !self.target.subresource.is_empty() {
            return Err(Status::method_not_allowed());
        }
        let media = media_type(&request);
        let content = request.into_body()?;
        let mut value = json!({});
        if !content.is_empty() {
            check_media(&media)?;
            let json = !matches!(media.as_str(), protobuf::MEDIA | "application/yaml");
            if let Some(why) = body::json_fault(&content).filter(|_| json) {
                let message = format!("couldn't get version/kind; json parse error: {why}");
                return Err(self.undecodable(message));
            }
            if let Some(why) = protobuf::fault(&content).filter(|_| media == protobuf::MEDIA) {
                return Err(self.undecodable(why));
            }
            value = body::decode(&content, &media, "v1", "DeleteOptions")?.value;
            if let Some(kind) = value["kind"].as_str().filter(|kind| !matches!(*kind, "" | "DeleteOptions")) {
                let version = value["apiVersion"].as_str().unwrap_or_default();
                let place = "in scheme \"pkg/runtime/scheme.go:110\"";
                let message = format!("no kind {kind:?} is registered for version {version:?} {place}");
                return Err(self.undecodable(message));
            }
        }
        // If the body has options, those in the query are ignored.
        let query = |name: &str| self.query.get(name).filter(|_| content.is_empty());
        for key in ["propagationPolicy", "orphanDependents"] {
            if let Some(text) = query(key) {
                value[key] = if key == "orphanDependents" { (text == "true").into() } else { text.into() };
            }
        }
        if let Some(text) = query("gracePeriodSeconds") {
            number(text)?;
        }
        if let Some(text) = query("dryRun") {
            value["dryRun"] = json!([text]);
        }
        let options = DeleteOptions::from_value(&value)?;
        let api = &self.server.api;
        if self.target.name.is_empty() {
            let selection = self.list_options(scope)?;
            let deleted = api.delete_collection(self.caller, scope, &selection, &options)?;
            return Ok(self.listed(scope, &deleted));
        }
        let mut written = api.delete(self.caller, scope, &self.target.name, &options)?;
        // Only this older option makes the response show that dependents are still being deleted.
        if value["orphanDependents"] == false && written.object["kind"] != "Status" {
            written.code = 202;
        }
        Ok(self.written(scope, written))
    }

    fn written(&self, scope: &Scope, written: Written) -> Reply {
        self.shaped(scope, written.code, written.object, &written.warnings)
    }
}

/// What a manager applies, and warnings about it. Most clients send JSON, which is YAML, but is read much faster by its own reader.
fn applied(content: &[u8], validation: FieldValidation) -> Result<(Value, Vec<String>), Status> {
    let mut duplicates = Vec::new();
    let undecodable =
        |why: String| Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {why}"));
    if content.starts_with(b"{")
        && let Ok(value) = body::json(content, &mut duplicates)
        && duplicates.is_empty()
    {
        body::check_as_yaml(content, &value).map_err(undecodable)?;
        return Ok((value, Vec::new()));
    }
    let document = body::yaml(content).map_err(undecodable)?;
    let warnings = match (validation, document.strict_error()) {
        (FieldValidation::Strict, Some(why)) => {
            let message = format!("error strict decoding YAML: error converting YAML to JSON: {why}");
            return Err(Status::bad_request(message));
        }
        (FieldValidation::Warn, Some(_)) => document.duplicates.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    Ok((document.value, warnings))
}

/// The error for requesting a list in the shape of a single object.
fn not_one(resource: &Resource, plain: bool) -> Status {
    let list = if plain {
        "unstructured.UnstructuredList".to_owned()
    } else {
        let group = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        format!("{group}.{}", resource.list_kind)
    };
    let message = format!("you requested PartialObjectMetadata, but the requested object is a list (*{list})");
    Status::new(406, "NotAcceptable", message)
}

fn check_wildcard(scope: &Scope, verb: &str, name: &str) -> Result<(), Status> {
    // A patch begins by looking for its object.
    if verb == "patch" && scope.visible.is_some() && !name.is_empty() {
        return Err(Status::not_found(&scope.resource.group, &scope.resource.plural, name));
    }
    if !matches!(verb, "list" | "watch") {
        return Err(Status::no_such_resource());
    }
    if scope.namespace.is_empty() {
        return Ok(());
    }
    let message = format!(
        "cross-cluster LIST and WATCH are required to be cross-namespace, not scoped to namespace {}",
        scope.namespace
    );
    // Virtual workspaces give no reason.
    Err(if scope.visible.is_some() { Status::new(400, "", message) } else { Status::bad_request(message) })
}
