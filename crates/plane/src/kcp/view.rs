//! The virtual workspace of an APIExport: what its provider sees of all workspaces that bind to it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use carrick_kcp::hash::export_hash;
use carrick_kcp::names::EXPORT_LABEL;
use parking_lot::Mutex;
use serde_json::Value;

use super::apis::Apis;
use super::authorize::{accessible, permits, policy_allows, refusal};
use super::bound::Bound;
use super::claim::{self, Subject};
use super::data::{BINDINGS, Data, EXPORTS, SCHEMAS};
use super::derived::Derived;
use super::object::{child, items, label, text};
use crate::auth::rbac;
use crate::caller::Caller;
use crate::extension::{Kinds, Review, VirtualView};
use crate::request::{Attributes, Operation, Target};
use crate::resource::{Catalog, Origin, Resource};
use crate::status::Status;
use crate::store::{Key, Kind, Stored};

const SERVICE: &str = "/services/apiexport/";
const READ: [&str; 3] = ["get", "list", "watch"];
/// The kinds that are not stored, but can be claimed: a provider may ask what a consumer's users may do.
const REVIEWS: [&str; 2] = ["subjectaccessreviews", "localsubjectaccessreviews"];

/// The virtual workspace of an export.
#[derive(Clone)]
struct View {
    data: Data,
    /// Logical cluster and name of the export.
    home: Arc<str>,
    name: Arc<str>,
    export: Arc<Value>,
    /// Hash of the export, in labels.
    hash: Arc<str>,
    /// Key of the label on claimed objects.
    claim_key: Arc<str>,
    target: Target,
    /// What is served and why.
    offered: Arc<Offered>,
    views: Arc<Views>,
}

/// What an export's virtual workspace serves; it does not depend on the target.
struct Offered {
    resources: Catalog,
    /// Why each kind is served.
    rules: BTreeMap<Kind, ViewRule>,
    /// Whether kinds of other exports are claimed.
    foreign: bool,
    /// Of which state this is true.
    stamp: Stamp,
}

/// Revisions of an export and of what else its virtual workspace depends on.
type Stamp = (u64, u64, u64);

/// Cluster and name of an export.
type ClusterAndName = (Arc<str>, Arc<str>);
/// Exports by identity.
type Owners = HashMap<String, Vec<Key>>;

/// What the virtual workspaces of exports serve, worked out once per change.
#[derive(Default)]
pub struct Views {
    known: Mutex<HashMap<ClusterAndName, Arc<Offered>>>,
    identity: Derived<String>,
    /// And the last write to any export they were collected after.
    owners: Mutex<(u64, Arc<Owners>)>,
}

/// Why a kind is part of the virtual workspace.
#[derive(Debug, Clone, PartialEq)]
enum ViewRule {
    /// The export offers it.
    Exported,
    /// The export claims it; claimed objects carry the hash.
    Claimed(Subject, String),
    /// Bindings to the export itself can always be read.
    Own,
}

/// Opens the virtual workspace behind a URL path, if it is one of an APIExport.
pub fn open(
    data: &Data,
    apis: &Apis,
    views: &Arc<Views>,
    kinds: Kinds<'_>,
    caller: &Caller,
    path: &str,
) -> Result<Option<VirtualView>, Status> {
    let Some(rest) = path.strip_prefix(SERVICE) else { return Ok(None) };
    let unresolved = || {
        let attributes = Attributes { verb: "get".into(), path: path.to_owned(), ..Attributes::default() };
        rbac::refusal(caller, &attributes, ": Path not resolved to a valid virtual workspace")
    };
    let mut parts = rest.splitn(5, '/');
    let (Some(home), Some(name), Some("clusters"), Some(target)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(unresolved());
    };
    let rest = format!("/{}", parts.next().unwrap_or_default());
    let target = match target {
        // Some clients escape the star.
        "*" | "%2A" | "%2a" => Target::All,
        target if carrick_kcp::path::is_label(target) => Target::One(target.into()),
        _ => return Err(unresolved()),
    };
    let found = data.store.get(&Key::new(&EXPORTS, home, "", name));
    let Some(found) = found.filter(|found| !text(&found.object, "/status/identityHash").is_empty()) else {
        return Ok(Some(absent(data, home, name, path, target, rest)));
    };
    let offered = views.offered(data, apis, kinds, (home, name), &found);
    let hash = export_hash(home, name);
    let view = View {
        data: data.clone(),
        home: home.into(),
        name: name.into(),
        claim_key: claim::label_key(&hash).into(),
        hash: hash.into(),
        export: found.object,
        target: target.clone(),
        offered: offered.clone(),
        views: views.clone(),
    };
    let (shown, asked, written) = (view.clone(), view.clone(), view);
    Ok(Some(VirtualView {
        rest,
        target,
        resources: offered.resources.clone(),
        visible: Arc::new(move |key, object| shown.shows(key, object)),
        authorize: Arc::new(move |caller, attributes| asked.authorize(caller, attributes)),
        admit: Some(Arc::new(move |review| written.admit(review))),
        passes: |_| false,
    }))
}

impl Views {
    /// What the virtual workspace of an export serves.
    fn offered(
        &self,
        data: &Data,
        apis: &Apis,
        kinds: Kinds<'_>,
        export: (&str, &str),
        found: &Stored,
    ) -> Arc<Offered> {
        let (home, place) = (export.0, (Arc::from(export.0), Arc::from(export.1)));
        if let Some(known) = self.known.lock().get(&place)
            && known.stamp == stamp(data, home, found.revision, known.foreign)
        {
            return known.clone();
        }
        let foreign =
            items(&found.object, "/spec/permissionClaims").iter().any(|claim| !text(claim, "/identityHash").is_empty());
        // First the revisions, then what they are revisions of: it is at least as new.
        let stamp = stamp(data, home, found.revision, foreign);
        let (resources, rules) = self.serve(data, apis, kinds, home, &found.object);
        let offered = Arc::new(Offered { resources: resources.into(), rules, foreign, stamp });
        let mut known = self.known.lock();
        known.retain(|(cluster, name), _| data.store.has(&Key::new(&EXPORTS, cluster, "", name)));
        known.insert(place, offered.clone());
        offered
    }

    fn serve(
        &self,
        data: &Data,
        apis: &Apis,
        kinds: Kinds<'_>,
        home: &str,
        export: &Value,
    ) -> (Vec<Arc<Resource>>, BTreeMap<Kind, ViewRule>) {
        let mut resources: Vec<Arc<Resource>> = Vec::new();
        let (mut rules, mut taken) = (BTreeMap::new(), HashSet::new());
        let mut add = |resource: Arc<Resource>, rule: ViewRule| {
            // Both kinds of events are stored as one; the first rule for a kind wins.
            if taken.insert((resource.group.clone(), resource.plural.clone())) {
                rules.entry(resource.stored_kind()).or_insert(rule);
                resources.push(resource);
            }
        };
        let identity = text(export, "/status/identityHash");
        // Of several schemas of the same kind, the last one counts, as it does in bindings.
        let (mut exported, mut known) = (Vec::new(), HashSet::new());
        for item in items(export, "/spec/resources").iter().rev() {
            let schema = apis.schema(data, home, text(item, "/schema"));
            if let Some(Ok(resource)) = schema.map(|schema| schema.kind(identity))
                && known.insert(resource.stored_kind())
            {
                exported.push(resource);
            }
        }
        exported.into_iter().rev().for_each(|resource| add(resource, ViewRule::Exported));
        let local = kinds(home);
        for claim in items(export, "/spec/permissionClaims") {
            let subject = Subject::of(claim);
            for resource in self.claimable(data, apis, &local, &subject) {
                add(resource, ViewRule::Claimed(subject.clone(), subject.hash()));
            }
        }
        if let Some(bindings) = local.iter().find(|resource| resource.stored_kind() == *BINDINGS) {
            let mut bindings = Resource::clone(bindings);
            bindings.verbs = READ.to_vec();
            add(Arc::new(bindings), ViewRule::Own);
        }
        (resources, rules)
    }

    /// The kinds that a claim may refer to: built-in ones, or those of the exports with the claimed identity.
    fn claimable(&self, data: &Data, apis: &Apis, local: &[Arc<Resource>], subject: &Subject) -> Vec<Arc<Resource>> {
        if subject.identity.is_empty() {
            let known = |resource: &&Arc<Resource>| {
                matches!(resource.origin, Origin::Builtin | Origin::System)
                    && (resource.allows("list") || REVIEWS.contains(&&*resource.plural))
                    && subject.covers(&resource.stored_kind())
            };
            // Without short names, so that they do not compete with those of the exported kinds.
            let plain = |resource: &Arc<Resource>| {
                let mut resource = Resource::clone(resource);
                resource.short_names.clear();
                if &*resource.group == "core.kcp.io" {
                    resource.versions.iter_mut().for_each(|version| version.columns.clear());
                }
                Arc::new(resource)
            };
            return local.iter().filter(known).map(plain).collect();
        }
        self.owners(data, &subject.identity)
            .into_iter()
            .find_map(|(home, export)| {
                let mut exported = items(&export, "/spec/resources").iter();
                let found =
                    exported.rfind(|r| text(r, "/name") == subject.resource && text(r, "/group") == subject.group)?;
                apis.schema(data, &home, text(found, "/schema"))?.kind(&subject.identity).ok()
            })
            .into_iter()
            .collect()
    }

    /// The kind of an export with an identity, if somebody has bound it.
    pub(super) fn identified(&self, data: &Data, apis: &Apis, subject: &Subject) -> Option<Arc<Resource>> {
        let found = self.claimable(data, apis, &[], subject).into_iter().next()?;
        let owners = self.owners(data, &subject.identity);
        let hash = |home: &str, export: &Value| export_hash(home, super::object::name(export));
        owners.iter().any(|(home, export)| data.bindings.any_to(&data.store, &hash(home, export))).then_some(found)
    }

    /// The exports with an identity.
    fn owners(&self, data: &Data, identity: &str) -> Vec<(Arc<str>, Arc<Value>)> {
        let written = data.store.written(&EXPORTS);
        let mut owners = self.owners.lock().clone();
        if owners.0 != written {
            let mut all = Owners::new();
            for (key, export) in data.store.list(&EXPORTS, None, None).1 {
                let read = |export: &Value| text(export, "/status/identityHash").to_owned();
                let identity = self.identity.of(&data.store, &key, &export, read);
                all.entry(identity.to_string()).or_default().push(key);
            }
            owners = (written, Arc::new(all));
            *self.owners.lock() = owners.clone();
        }
        let found = owners.1.get(identity).into_iter().flatten();
        found.filter_map(|key| Some((key.cluster.clone(), data.store.get(key)?.object))).collect()
    }
}

/// The state that a virtual workspace depends on: the export and the schemas beside it, and with claims on kinds of others all of them.
fn stamp(data: &Data, home: &str, export: u64, foreign: bool) -> Stamp {
    if foreign {
        (export, data.store.written(&SCHEMAS), data.store.written(&EXPORTS))
    } else {
        (export, data.store.touched(&SCHEMAS, home), data.store.life())
    }
}

impl View {
    /// Depends only on the object, so that a watcher sees the deletion of an object whose binding is already gone.
    fn shows(&self, key: &Key, object: &Value) -> bool {
        match self.offered.rules.get(&key.kind) {
            Some(ViewRule::Exported) => true,
            Some(ViewRule::Own) => label(object, EXPORT_LABEL) == Some(&self.hash),
            Some(ViewRule::Claimed(_, hash)) => {
                label(object, &self.claim_key) == Some(hash)
                    || (key.kind == *BINDINGS && label(object, EXPORT_LABEL) == Some(&self.hash))
            }
            None => false,
        }
    }

    /// The binding to this export in a cluster.
    fn binding(&self, cluster: &str) -> Option<Arc<Bound>> {
        let all = self.data.bindings.in_cluster(&self.data.store, cluster).into_iter().map(|(_, binding)| binding);
        all.into_iter().find(|binding| binding.is_to(&self.hash))
    }

    fn rule(&self, attributes: &Attributes) -> Option<(&Kind, &ViewRule)> {
        let group = if attributes.resource == "events" { "" } else { &attributes.group };
        // The one with the smallest identity, if there are several.
        let first = Kind::new(group, &attributes.resource);
        let mut rules = self.offered.rules.range(&first..);
        rules.next().filter(|(kind, _)| kind.group == first.group && kind.resource == first.resource)
    }

    fn authorize(&self, caller: &Caller, attributes: &Attributes) -> Result<(), Status> {
        let denied = || refusal(caller, attributes);
        let rule = self.rule(attributes);
        if let (Target::One(cluster), true) = (&self.target, attributes.is_resource()) {
            let binding = self.binding(cluster).ok_or_else(denied)?;
            if !self.granted(&binding, rule.map(|(_, rule)| rule), attributes) {
                return Err(denied());
            }
        }
        may_use(&self.data, caller, &self.home, &self.name, attributes)?;
        if let Some((_, ViewRule::Claimed(subject, _))) = rule
            && !subject.identity.is_empty()
        {
            let mut owners = self.views.owners(&self.data, &subject.identity).into_iter();
            if !owners.all(|(home, export)| policy_allows(&self.data, &export, &home, caller, attributes)) {
                return Err(denied());
            }
        }
        if self.target == Target::All && matches!(rule, Some((_, ViewRule::Exported))) && !self.is_bound() {
            return Err(Status::no_such_resource());
        }
        // Without a claim bindings have no endpoint for their status; with one, kcp itself refuses it.
        if attributes.group == "apis.kcp.io"
            && attributes.resource == "apibindings"
            && attributes.subresource == "status"
        {
            return Err(match rule {
                Some((_, ViewRule::Own)) => Status::method_not_allowed(),
                _ => denied(),
            });
        }
        Ok(())
    }

    /// Whether the consumer lets the provider do this.
    fn granted(&self, binding: &Bound, rule: Option<&ViewRule>, attributes: &Attributes) -> bool {
        let verb = attributes.verb.as_str();
        let reads_own = attributes.resource == "apibindings" && READ.contains(&verb);
        // What is bound may be used, even if the export does not offer it any more: then it is not found.
        if binding.serves(&attributes.group, &attributes.resource) {
            return true;
        }
        match rule {
            Some(ViewRule::Claimed(subject, _)) => {
                let exported = items(&self.export, "/spec/permissionClaims");
                reads_own || claim::allows(exported, &binding.accepted, subject, verb)
            }
            Some(ViewRule::Own) => reads_own,
            Some(ViewRule::Exported) | None => false,
        }
    }

    fn is_bound(&self) -> bool {
        self.data.bindings.any_to(&self.data.store, &self.hash)
    }

    /// Objects that a provider writes must stay within the consumer's selector.
    fn admit(&self, review: &mut Review<'_>) -> Result<(), Status> {
        let Some(ViewRule::Claimed(subject, _)) = self.offered.rules.get(&review.resource.stored_kind()) else {
            return Ok(());
        };
        let Some(binding) = self.binding(review.cluster) else { return Ok(()) };
        let mut accepted = binding.accepted.iter().filter(|claim| claim["state"] == "Accepted");
        let Some(claim) = accepted.find(|claim| Subject::of(claim) == *subject) else { return Ok(()) };
        let selector = &claim["selector"];
        let refuse = |object: &Value, why: &str| {
            let name = super::object::name(object);
            Err(Status::forbidden(&review.resource.group, &review.resource.plural, name, why))
        };
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        for (key, value) in labels.filter(|_| review.operation != Operation::Delete) {
            let value = value.as_str().unwrap_or_default();
            match label(review.object, key) {
                None => {
                    child(review.object, &["metadata", "labels"]).insert(key.clone(), value.into());
                }
                Some(found) if found != value => {
                    return refuse(review.object, &format!("protected label {key} must have value {value}"));
                }
                Some(_) => {}
            }
        }
        if claim::selects(selector, review.object) {
            Ok(())
        } else {
            refuse(review.object, "object does not match required labels")
        }
    }
}

/// The virtual workspace of an export that does not exist: those who could use it learn that, others that they may not.
fn absent(data: &Data, home: &str, name: &str, path: &str, target: Target, rest: String) -> VirtualView {
    let why = format!("API export not found: apiexport.apis.kcp.io \"{name}\" not found");
    let message = format!("Internal Server Error: \"{path}\": {why}\n");
    // Rights are asked for by path, too; exports are not.
    let home = data.resolve(home).unwrap_or_else(|| home.into());
    let (data, name) = (data.clone(), name.to_owned());
    let is_one = target != Target::All;
    VirtualView {
        rest,
        target,
        resources: Vec::new().into(),
        visible: Arc::new(|_, _| false),
        authorize: Arc::new(move |caller, attributes| {
            // Only a request about one workspace needs the export before anything else.
            if !(is_one && attributes.is_resource()) {
                may_use(&data, caller, &home, &name, attributes)?;
            }
            Err(Status::plain(500, message.clone()))
        }),
        admit: None,
        passes: |_| false,
    }
}

/// Whether a caller may use the content of an export.
fn may_use(data: &Data, caller: &Caller, home: &str, name: &str, attributes: &Attributes) -> Result<(), Status> {
    let content = Attributes {
        verb: if attributes.is_resource() { attributes.verb.clone() } else { "get".into() },
        group: "apis.kcp.io".into(),
        resource: "apiexports".into(),
        subresource: "content".into(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    if accessible(data, caller, home) && permits(data, caller, home, &content) {
        Ok(())
    } else {
        Err(refusal(caller, attributes))
    }
}
