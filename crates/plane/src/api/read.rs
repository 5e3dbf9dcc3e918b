//! Get and list.

use std::sync::Arc;

use carrick_go::json::{MAX_DEPTH, fault};
use carrick_kcp::CLUSTER_ANNOTATION;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use super::base::Api;
use super::rules;
use super::scope::Scope;
use super::select::{FieldSelector, LabelSelector};
use super::versions::Answer;
use crate::request::Target;
use crate::status::Status;
use crate::store::{Key, Kind, Object, Page, Selection, Stored};

/// How to interpret `resourceVersion` of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RevisionMatch {
    /// At least as new.
    #[default]
    NotOlderThan,
    /// Exactly this state.
    Exact,
}

/// Options of a list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Labels.
    pub labels: LabelSelector,
    /// Fields.
    pub fields: FieldSelector,
    /// Page size, zero for everything.
    pub limit: usize,
    /// Continue token of the previous page.
    pub continue_token: String,
    /// Requested revision; `None` if unset.
    pub revision: Option<u64>,
    /// How to interpret the revision.
    pub revision_match: RevisionMatch,
}

/// One page of objects.
#[derive(Debug)]
pub struct Listed {
    /// The state the page shows.
    pub revision: u64,
    /// The objects, still packed: `Api::items` unpacks them one at a time.
    pub objects: Vec<(Key, Object)>,
    /// Token of the next page, empty on the last.
    pub continue_token: String,
    /// How many objects follow, if known.
    pub remaining: Option<usize>,
}

impl Api {
    /// One object.
    pub fn get(&self, scope: &Scope, name: &str) -> Result<Value, Status> {
        let (key, stored) = self.fetch(scope, name)?;
        self.present(scope, &key, stored.object)
    }

    /// One object as it was at a past revision.
    pub fn get_at(&self, scope: &Scope, name: &str, revision: u64) -> Result<Value, Status> {
        let wanted = scope.key(name)?;
        let (cluster, namespace) = (Some(&*wanted.cluster), Some(&*wanted.namespace));
        let selection = Selection { kind: &wanted.kind, cluster, namespace };
        let all = self.store.page(&selection, Some(revision), None, 0);
        let all = all.map_err(|expired| Status::expired(expired.to_string()))?;
        let found = all.items.into_iter().find(|(key, object)| *key == wanted && scope.shows(key, &object.value()));
        let (key, object) = found.ok_or_else(|| scope.not_found(name))?;
        self.present(scope, &key, object.value())
    }

    pub(super) fn fetch(&self, scope: &Scope, name: &str) -> Result<(Key, Stored), Status> {
        let key = scope.key(name)?;
        match self.store.get(&key) {
            Some(stored) if scope.shows(&key, &stored.object) => Ok((key, stored)),
            _ => Err(scope.not_found(name)),
        }
    }

    /// Whether a write to a name creates an object: applying does, and so does a PUT of some kinds.
    pub fn would_create(&self, scope: &Scope, name: &str, applied: bool) -> bool {
        (applied || rules::created_by_put(&scope.resource)) && self.fetch(scope, name).is_err()
    }

    /// Objects, one page of them.
    pub fn list(&self, scope: &Scope, options: &ListOptions) -> Result<Listed, Status> {
        let kind = scope.resource.stored_kind();
        let cluster = match &scope.target {
            Target::One(cluster) => Some(&**cluster),
            Target::All => None,
        };
        let namespace = (!scope.namespace.is_empty()).then_some(&*scope.namespace);
        let selection = Selection { kind: &kind, cluster, namespace };
        let token = ContinueToken::decode(&kind, &options.continue_token)?;
        let exact = match (&token, options.revision_match, options.revision) {
            (Some(token), ..) => Some(token.revision),
            (None, RevisionMatch::Exact, Some(revision)) => Some(revision),
            _ => None,
        };
        // A list at "any" revision is served whole.
        let limit = if options.revision == Some(0) && token.is_none() { 0 } else { options.limit };
        let behind = token.as_ref().map(|token| &token.last);
        let read = |at: Option<u64>, behind: Option<&Key>, limit: usize| {
            self.store.page(&selection, at, behind, limit).map_err(|_| self.expired(token.as_ref()))
        };
        let lost = token.is_none() && loses_workspace(scope, &options.fields);
        let whole = options.labels.is_empty() && options.fields.is_empty() && scope.visible.is_none();
        let page = if whole {
            let mut page = read(exact, behind, limit)?;
            if let Some(token) = &token {
                page.rest = token.rest.map(|rest| rest.saturating_sub(page.items.len()));
            }
            page
        } else {
            let fits = |key: &Key, object: &Object| !lost && self.selected(scope, options, key, object);
            filtered(read, fits, exact, behind, limit)?
        };
        let Page { revision, items: mut objects, more, rest } = page;
        self.convert_list(scope, &mut objects)?;
        let rest = rest.filter(|_| more);
        let continue_token = match objects.last() {
            Some((last, _)) if more => ContinueToken { revision, last: last.clone(), rest }.encode(),
            _ => String::new(),
        };
        Ok(Listed { revision, objects, continue_token, remaining: rest })
    }

    /// The objects of a list in the version of the scope.
    pub fn items(&self, scope: &Scope, listed: &Listed) -> impl Iterator<Item = Value> {
        // A list has been converted already, so nothing can fail here.
        listed.objects.iter().filter_map(|(key, object)| self.present(scope, key, object.value()).ok())
    }

    /// Converts all objects of a list with one call, if a webhook does it.
    fn convert_list(&self, scope: &Scope, objects: &mut [(Key, Object)]) -> Result<(), Status> {
        if scope.resource.conversion.is_none() {
            return Ok(());
        }
        let wanted = scope.api_version();
        let places: Vec<usize> =
            (0..objects.len()).filter(|at| objects[*at].1.value()["apiVersion"] != *wanted).collect();
        let others: Vec<Value> = places.iter().map(|at| Value::clone(&objects[*at].1.value())).collect();
        let cluster = scope.cluster().map_or("", |cluster| &**cluster);
        let converted = self.converted(&scope.resource, cluster, &wanted, &others)?.unwrap_or_default();
        for (at, object) in places.into_iter().zip(converted) {
            objects[at].1 = Object::packed(objects[at].1.revision(), object);
        }
        Ok(())
    }

    fn expired(&self, token: Option<&ContinueToken>) -> Status {
        match token {
            None => Status::expired("The resourceVersion for the provided list is too old."),
            Some(token) => {
                let fresh = ContinueToken { revision: self.store.revision(), last: token.last.clone(), rest: None };
                let mut status = Status::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                     without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
                     results. Continuing with the provided token results in an inconsistent list - objects that were created, \
                     modified, or deleted between the time the first chunk was returned and now may show up in the list.",
                );
                status.continue_token = Some(fresh.encode().into());
                status
            }
        }
    }

    fn selected(&self, scope: &Scope, options: &ListOptions, key: &Key, object: &Object) -> bool {
        let object = object.value();
        scope.shows(key, &object)
            && options.labels.matches(&object)
            && self.fields_match(scope, &options.fields, key, &object)
    }

    pub(super) fn fields_match(&self, scope: &Scope, fields: &FieldSelector, key: &Key, object: &Arc<Value>) -> bool {
        if fields.is_empty() {
            true
        } else if fields.only_metadata() {
            fields.matches(object)
        } else {
            self.present(scope, key, object.clone()).is_ok_and(|object| fields.matches(&object))
        }
    }

    /// A stored object as clients see it: converted, defaulted, decorated.
    pub fn present(&self, scope: &Scope, key: &Key, object: Arc<Value>) -> Result<Value, Status> {
        let mut object = self.undecorated(scope, &key.cluster, object)?;
        self.decorate(&key.cluster, &mut object);
        Ok(object)
    }

    /// What was changed while somebody watched, as clients see it.
    pub(super) fn present_change(&self, scope: &Scope, key: &Key, object: Arc<Value>) -> Result<Value, Status> {
        let mut object = Arc::unwrap_or_clone(object);
        self.show(&scope.resource, &key.cluster, &scope.version, (&mut object, Answer::Change))?;
        self.decorate(&key.cluster, &mut object);
        Ok(object)
    }

    /// A stored object, converted and defaulted.
    pub(super) fn undecorated(&self, scope: &Scope, cluster: &str, object: Arc<Value>) -> Result<Value, Status> {
        let mut object = Arc::unwrap_or_clone(object);
        self.show(&scope.resource, cluster, &scope.version, (&mut object, Answer::Read))?;
        Ok(object)
    }

    /// Adds what is not stored: the cluster annotation.
    pub(super) fn decorate(&self, cluster: &str, object: &mut Value) {
        if self.extension.is_some()
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if annotations.is_null() {
                *annotations = json!({});
            }
            annotations[CLUSTER_ANNOTATION] = cluster.into();
        }
    }
}

/// Whether the fields that are asked for over all workspaces lead kcp to where there is nothing.
pub(super) fn loses_workspace(scope: &Scope, fields: &FieldSelector) -> bool {
    scope.target == Target::All && fields.loses_workspace(scope.resource.namespaced)
}

/// How many objects a filtered page reads at a time.
const CHUNK: usize = 500;

/// A page of the matching objects, read in as many chunks as needed, all at the same revision. Whether more objects follow is reported
/// without checking whether they match.
fn filtered(
    read: impl Fn(Option<u64>, Option<&Key>, usize) -> Result<Page, Status>,
    fits: impl Fn(&Key, &Object) -> bool,
    at: Option<u64>,
    behind: Option<&Key>,
    limit: usize,
) -> Result<Page, Status> {
    let wanted = if limit == 0 { usize::MAX } else { limit };
    let chunk = if limit == 0 { 0 } else { limit.max(CHUNK) };
    let mut piece = read(at, behind, chunk)?;
    let revision = piece.revision;
    let mut items = Vec::new();
    loop {
        let last = piece.items.last().map(|(key, _)| key.clone());
        let mut rest = piece.items.into_iter();
        while items.len() < wanted
            && let Some((key, object)) = rest.next()
        {
            if fits(&key, &object) {
                items.push((key, object));
            }
        }
        let more = piece.more || rest.next().is_some();
        if !more || items.len() == wanted {
            return Ok(Page { revision, items, more, rest: None });
        }
        piece = read(Some(revision), last.as_ref(), chunk)?;
    }
}

/// What a continue token holds.
struct ContinueToken {
    /// The revision of the first page.
    revision: u64,
    /// The last object shown.
    last: Key,
    /// How many objects remain, if that is known.
    rest: Option<usize>,
}

impl ContinueToken {
    fn encode(&self) -> String {
        let Key { cluster, namespace, name, .. } = &self.last;
        let start = [&**cluster, &**namespace, &**name];
        let text = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start, "rest": self.rest}).to_string();
        BASE64URL_NOPAD.encode(text.as_bytes())
    }

    fn decode(kind: &Kind, text: &str) -> Result<Option<Self>, Status> {
        if text.is_empty() {
            return Ok(None);
        }
        let read = || -> Option<Self> {
            let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            let part = |index: usize| value["start"][index].as_str();
            let last = Key::new(kind, part(0)?, part(1)?, part(2)?);
            let rest = value["rest"].as_u64().and_then(|rest| rest.try_into().ok());
            Some(Self { revision: value["rv"].as_u64()?, last, rest })
        };
        if let Some(token) = read() {
            return Ok(Some(token));
        }
        // The message of Go's decoder.
        let why = match BASE64URL_NOPAD.decode(text.as_bytes()) {
            Ok(bytes) => fault(&bytes, MAX_DEPTH)
                .unwrap_or_else(|| "encoded start key empty (version meta.k8s.io/v1)".to_owned()),
            Err(_) => "illegal base64 data".to_owned(),
        };
        Err(Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    }
}
