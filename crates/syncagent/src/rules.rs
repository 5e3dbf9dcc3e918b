//! The rules of a PublishedResource, compiled once per generation. Pure: no client, no clock, no randomness.
//!
//! ```text
//!  PublishedResource + CRD ──▶ projection ──▶ schema (APIResourceSchema) ──▶ export (APIExport)
//!            │
//!            └──▶ Rules { filter, naming, mutation, related }  ──▶ decide
//! ```

pub mod abandoned;
pub mod access;
pub mod admission;
mod after_restore;
pub mod conversion;
pub mod crd;
pub mod drift;
pub mod export;
pub mod exposure;
pub mod fields;
pub mod gate;
pub mod hints;
pub mod implements;
pub mod import;
pub mod keeper;
pub mod metadata;
pub mod mutation;
pub mod naming;
pub mod openapi;
pub mod pause;
pub mod projection;
pub mod proof;
pub mod provenance;
mod raw_json;
pub mod reads;
pub mod related;
pub mod renewal;
pub mod report;
pub mod review;
pub mod rights;
pub mod schema;
pub mod selector;
pub mod serving;
pub mod suggest;
pub mod ways;
pub mod withdrawal;

use std::collections::HashSet;
use std::fmt::Write as _;

pub use after_restore::AfterRestore;
pub use carrick_sync::{AdoptionPolicy as Adoption, ApiKind};
use serde_json::Value;
use thiserror::Error;

use crate::api::{FIELD_MANAGER, Implements, Limits, PublishedResource};
use access::{Budget, Reserved};
use admission::{Admission, AdmissionError};
use conversion::{ConversionError, Conversions, Passage, Route};
use crd::{Crd, Version};
use drift::{DriftError, DriftRules};
use exposure::Authorship;
use implements::force::Steps;
use implements::{ImplementsError, Mapping};
use import::{ImportError, ImportRules};
use metadata::is_deleting;
use mutation::{Mutation, MutationError};
use naming::{Naming, NamingError};
use pause::PausedBy;
use projection::{ProjectionError, exchanged, in_use, name_in_kcp, project};
use reads::{Read, ReadsError};
use related::{Related, RelatedError};
use report::{Report, ReportError};
use selector::{Selector, SelectorError};
use withdrawal::notice;

/// Why the rules of a PublishedResource are refused. The message names the field.
#[derive(Debug, Error)]
pub enum RuleError {
    /// The projection does not fit the CRD.
    #[error("failed to apply projection rules: {0}")]
    Projection(#[from] ProjectionError),
    /// A naming rule is not valid.
    #[error(transparent)]
    Naming(#[from] NamingError),
    /// A filter is not valid.
    #[error("spec.filter.{field}: {source}")]
    Filter {
        /// `namespace` or `resource`.
        field: &'static str,
        /// What is wrong.
        source: SelectorError,
    },
    /// A mutation is not valid.
    #[error(transparent)]
    Mutation(#[from] MutationError),
    /// A conversion is not valid.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// An API cannot be implemented.
    #[error(transparent)]
    Implements(#[from] ImplementsError),
    /// A related resource is not valid.
    #[error(transparent)]
    Related(#[from] RelatedError),
    /// What is to be looked at is not valid.
    #[error(transparent)]
    Reads(#[from] ReadsError),
    /// What is to be reported is not valid.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What is said about drift is not valid.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// What is said about imports is not valid.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// An admission rule is not valid.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
}

/// The kind that a CRD defines in one of its versions.
pub(crate) fn kind_of(crd: &Crd, version: &Version) -> ApiKind {
    ApiKind {
        group: crd.spec.group.clone(),
        version: version.name.clone(),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
        namespaced: crd.is_namespaced(),
    }
}

/// What the agent does with consumers' objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Duty {
    /// They are synchronized.
    #[default]
    Sync,
    /// They are released: our finalizers are removed, and copies stay as they are.
    Release,
    /// They stay as they are, because there are no valid rules; those that their consumers delete are cleaned up, with their copies.
    End,
}

/// Whether the filter selects an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// It does.
    In,
    /// It does not.
    Out,
    /// It is not known, because its namespace is not visible, or because there are no valid rules.
    Unknown,
}

/// Settings for all PublishedResources of an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentDefaults {
    /// Name that marks what the agent owns.
    pub agent_name: String,
    /// What to do with existing objects in the place of copies, unless a PublishedResource says otherwise.
    pub adoption: Adoption,
    /// What happens to orders that have gone back in time, unless a PublishedResource says otherwise.
    pub after_restore: AfterRestore,
    /// Whether copies are written by server-side apply.
    pub apply: bool,
    /// Namespaces that nothing leads to unless a PublishedResource names them.
    pub reserved: Reserved,
    /// How many related objects one order may have.
    pub budget: Budget,
}

/// Everything a PublishedResource says about its objects, compiled.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // each says one thing, and they are independent
pub struct Rules {
    /// What the agent does with objects.
    pub duty: Duty,
    /// Whether the kind of the copies is not known or not served, so that copies cannot be seen.
    pub blind: bool,
    /// Name of the PublishedResource.
    pub name: String,
    /// Name of the agent, written on every copy.
    pub agent_name: String,
    /// The kind on the service cluster.
    pub local: ApiKind,
    /// The kind in kcp.
    pub remote: ApiKind,
    /// Names of the copies.
    pub naming: Naming,
    /// Selects objects by their own labels.
    pub resource_filter: Option<Selector>,
    /// Selects objects by the labels of their namespace.
    pub namespace_filter: Option<Selector>,
    /// Whether workspace paths are known to templates and copies.
    pub workspace_paths: bool,
    /// What changes on the way.
    pub mutation: Passage,
    /// How objects get from one version to another.
    pub conversions: Conversions,
    /// Top-level fields that are subresources on the service cluster and never part of the desired state.
    pub subresources: Vec<&'static str>,
    /// Related objects.
    pub related: Vec<Related>,
    /// Objects of the service cluster that rules look at.
    pub reads: Vec<Read>,
    /// What the status of an order says in the agent's name.
    pub report: Option<Report>,
    /// What to do with existing objects in the place of a copy.
    pub adoption: Adoption,
    /// What happens to orders that have gone back in time.
    pub after_restore: AfterRestore,
    /// Who may pause an order.
    pub pause: PausedBy,
    /// What happens to fields of copies that somebody else changes.
    pub drift: DriftRules,
    /// Objects that get their orders from the agent.
    pub import: Option<ImportRules>,
    /// Whether copies are written by server-side apply.
    pub apply: bool,
    /// Name of the schema of the kind in kcp; empty if it does not matter.
    pub schema: String,
    /// Whether kcp serves an older schema again than the one that follows from the CRD.
    pub rolled_back: bool,
    /// How many objects of one workspace are placed, if that is limited.
    pub limit: Option<usize>,
    /// Rules that objects must keep.
    pub admission: Admission,
    /// Whether annotations tell consumers what became of their objects.
    pub feedback: bool,
    /// What consumers are told about the withdrawal of the kind.
    pub withdrawal: Option<String>,
    /// Namespaces of the service cluster that nothing leads to unless they are named literally.
    pub reserved: Reserved,
    /// How many related objects one order may have.
    pub budget: Budget,
}

impl Rules {
    /// Compiles all rules of a PublishedResource for its CRD.
    pub fn compile(pr: &PublishedResource, crd: &Crd, agent_name: &str) -> Result<Self, RuleError> {
        Self::build(pr, crd, agent_name, Journey::compile(pr, crd)?)
    }

    fn build(pr: &PublishedResource, crd: &Crd, agent_name: &str, journey: Journey) -> Result<Self, RuleError> {
        let projected = project(pr, crd)?;
        let version = exchanged(pr, crd)?;
        let local = kind_of(crd, version);
        let remote = kind_of(&projected, in_use(&projected.spec.versions).ok_or(ProjectionError::NotServed)?);
        let mut subresources = Vec::new();
        if version.has_status() {
            subresources.push("status");
        }
        if version.has_scale() {
            subresources.push("scale");
        }
        let filter = pr.spec.filter.clone().unwrap_or_default();
        let compile_filter = |field, selector: Option<_>| {
            selector.as_ref().map(Selector::compile).transpose().map_err(|source| RuleError::Filter { field, source })
        };
        let secret = [&local, &remote].iter().any(|kind| is_secret(&kind.group, &kind.plural));
        let naming = pr.spec.naming.clone().unwrap_or_default();
        let naming = Naming::compile(&naming, local.namespaced, remote.namespaced)?;
        let naming = if is_namespace(&local.group, &local.plural) { naming.of_namespaces() } else { naming };
        let authorship = Authorship::of(pr.spec.naming.as_ref(), version.has_status());
        let mut identifiers = HashSet::new();
        let mut related = Vec::new();
        for (i, entry) in pr.spec.related.iter().enumerate() {
            let at = format!("spec.related[{i}]");
            if !identifiers.insert(&entry.identifier) {
                return Err(RelatedError::Duplicate { at, identifier: entry.identifier.clone() }.into());
            }
            let given = entry.object.selector.is_none() && authorship.chosen(&entry.object).is_none();
            related.push(Related::compile(&at, entry)?.determined(given, naming.literal_namespace()));
            if let Some(other) = pr.spec.related[..i].iter().find(|other| related::is_circle(other, entry)) {
                let (identifier, other) = (entry.identifier.clone(), other.identifier.clone());
                return Err(RelatedError::Circle { at, identifier, other }.into());
            }
        }
        let reads = reads::compile(pr, authorship, naming.literal_namespace())?;
        let report = Report::compile(pr, version.has_status() || pr.spec.implements.is_some(), &remote.kind)?;
        reads::check_references(&reads, &related, report.as_ref())?;
        Ok(Self {
            duty: Duty::Sync,
            blind: false,
            name: pr.metadata.name.clone(),
            agent_name: agent_name.to_owned(),
            naming: if secret { naming.discreet() } else { naming },
            resource_filter: compile_filter("resource", filter.resource)?,
            namespace_filter: compile_filter("namespace", filter.namespace)?,
            workspace_paths: pr.spec.enable_workspace_paths,
            mutation: passage(Mutation::compile("spec.mutation", pr.spec.mutation.as_ref())?, journey.way),
            conversions: journey.conversions,
            subresources,
            related,
            reads,
            report,
            local,
            remote,
            adoption: Adoption::parse(&pr.spec.adoption).unwrap_or_default(),
            after_restore: AfterRestore::parse(&pr.spec.after_restore).unwrap_or_default(),
            pause: PausedBy::parse(&pr.spec.pause).unwrap_or_default(),
            drift: DriftRules::compile("spec.drift", pr.spec.drift.as_ref())?,
            import: ImportRules::compile(pr)?,
            apply: false,
            schema: String::new(),
            rolled_back: false,
            limit: pr.spec.limits.as_ref().and_then(Limits::per_workspace),
            admission: Admission::default(),
            feedback: pr.spec.feedback == "Annotations",
            withdrawal: notice(pr),
            reserved: Reserved::default(),
            budget: Budget::default(),
        })
    }

    /// The same with the rules for admission, which need whole schemas: the CRD as it looks in kcp.
    pub fn admitting(self, pr: &PublishedResource, projected: &Crd) -> Result<Self, RuleError> {
        let version = in_use(&projected.spec.versions);
        let admission = Admission::compile(pr, projected, version)?;
        let report = self.report.map(|report| report.within(version));
        Ok(Self { report, admission, ..self })
    }

    /// The same with the agent's settings as defaults. Kinds without a status subresource are not applied, because field ownership cannot
    /// tell there which side owns the status.
    #[must_use]
    pub fn with_defaults(self, pr: &PublishedResource, defaults: &AgentDefaults) -> Self {
        let adoption = if pr.spec.adoption.is_empty() { defaults.adoption } else { self.adoption };
        let after_restore = if pr.spec.after_restore.is_empty() { defaults.after_restore } else { self.after_restore };
        let (reserved, budget) = (defaults.reserved.clone(), defaults.budget);
        let naming = self.naming.clone().reserving(&reserved);
        Self { adoption, after_restore, apply: defaults.apply && self.has_status(), reserved, budget, naming, ..self }
    }

    /// The field manager of copies, which differs for orders and related objects. The reference agent uses the same names.
    pub fn field_manager(&self, primary: bool) -> String {
        if primary { format!("{FIELD_MANAGER}/{}", self.agent_name) } else { FIELD_MANAGER.to_owned() }
    }

    /// Whether copies have a status subresource, so that their status can be copied back.
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&"status")
    }

    /// Whether anybody wants to know what others change of copies.
    pub fn watches_drift(&self) -> bool {
        !self.drift.is_off() || self.related.iter().any(|related| !related.drift.is_off())
    }

    /// Which objects of the service cluster get their orders from the agent, if any.
    pub fn imports(&self) -> Option<&str> {
        self.import.as_ref().filter(|_| self.duty == Duty::Sync).map(|import| import.selector.as_str())
    }

    /// Whether namespaces in kcp must be read to know which objects are selected.
    pub fn filters_by_namespace(&self) -> bool {
        self.namespace_filter.is_some() && self.remote.namespaced
    }

    /// Whether objects of a kind contain Secret data: they are Secrets, become Secrets, or are made from Secrets. Their content is never
    /// shown.
    pub fn is_confidential(&self, kind: &ApiKind) -> bool {
        let is = |group: &str, plural: &str| kind.group == group && kind.plural == plural;
        let pairs = self.related.iter().map(|related| {
            let [source, destination] = [&related.source, &related.destination];
            [(source.group.as_str(), source.resource.as_str()), (&destination.group, &destination.resource)]
        });
        let primary = [&self.local, &self.remote].map(|kind| (kind.group.as_str(), kind.plural.as_str()));
        let mut pairs = pairs.chain([primary]);
        // What a rule makes of a Secret can be in whatever it writes.
        let reads_secret =
            self.reads.iter().any(|read| is_secret(&read.rules.source.group, &read.rules.source.resource));
        reads_secret
            || is_secret(&kind.group, &kind.plural)
            || pairs.any(|pair| {
                pair.iter().any(|(group, plural)| is_secret(group, plural))
                    && pair.iter().any(|(group, plural)| is(group, plural))
            })
    }

    /// Why an order is not placed that would be a credential of the service cluster, or become one there.
    pub fn refuses_credential(&self, source: &Value) -> Option<String> {
        let kinds = [&self.local, &self.remote].map(|kind| (kind.group.as_str(), kind.plural.as_str()));
        let type_ = access::credential(source, kinds)?;
        Some(format!("Secrets of type {type_} are credentials of a cluster and are not placed"))
    }

    /// The rules for objects that were synchronized before and no longer are.
    ///
    /// They need only the kinds, so that objects can be released even if nothing else in a PublishedResource is valid.
    pub fn afterwards(duty: Duty, pr: &PublishedResource, crd: &Crd, agent_name: &str) -> Result<Self, RuleError> {
        let mut rules = Self::compile(pr, crd, agent_name).or_else(|_| {
            let mut bare = pr.clone();
            bare.spec.filter = None;
            bare.spec.naming = None;
            bare.spec.mutation = None;
            bare.spec.related = Vec::new();
            bare.spec.reads = Vec::new();
            bare.spec.report = None;
            bare.spec.drift = None;
            bare.spec.import = None;
            // Versions stay: they say in which one objects are read.
            Self::build(&bare, crd, agent_name, Journey::default())
        })?;
        rules.duty = duty;
        Ok(rules)
    }

    /// Whether an object of this kind is selected. Namespace labels matter only if there is a namespace filter.
    pub fn selects(&self, source: &Value, namespace: Option<&Value>) -> Selection {
        let out_by_resource = self.resource_filter.as_ref().is_some_and(|s| !s.matches_object(source));
        match (&self.namespace_filter, namespace) {
            _ if self.duty == Duty::End && !is_deleting(source) => Selection::Unknown,
            _ if self.duty != Duty::Sync || out_by_resource => Selection::Out,
            (Some(selector), Some(namespace)) if !selector.matches_object(namespace) => Selection::Out,
            // Cluster-scoped objects have no namespace to filter by.
            (Some(_), None) if self.remote.namespaced => Selection::Unknown,
            _ => Selection::In,
        }
    }
}

/// The conversions of a PublishedResource, and what objects meet on their way.
#[derive(Default)]
struct Journey {
    conversions: Conversions,
    way: JourneyWay,
}

/// How objects get to the other side.
#[derive(Default)]
enum JourneyWay {
    #[default]
    Straight,
    Versions(Route, Route),
    Kinds(Mapping),
}

impl Journey {
    fn compile(pr: &PublishedResource, crd: &Crd) -> Result<Self, RuleError> {
        if pr.spec.implements.is_some() {
            return Ok(Self { way: JourneyWay::Kinds(mapping(pr, crd)?), ..Self::default() });
        }
        let conversions = Conversions::compile(pr.spec.conversion.as_ref())?;
        if pr.spec.conversion.is_none() {
            return Ok(Self::default());
        }
        let versions = project(pr, crd)?.spec.versions;
        if !conversions.is_empty() {
            let published = versions.iter().filter(|version| version.served || version.storage);
            conversions.connect(&published.map(|version| version.name.as_str()).collect::<Vec<_>>())?;
        }
        let in_kcp = &in_use(&versions).ok_or(ProjectionError::NotServed)?.name;
        let on_service = name_in_kcp(pr, crd, &exchanged(pr, crd)?.name);
        let (down, up) = (conversions.route(in_kcp, &on_service)?, conversions.route(&on_service, in_kcp)?);
        Ok(Self { conversions, way: JourneyWay::Versions(down, up) })
    }
}

/// The steps of `spec.implements` that are at work. Those that are written down must be valid all the same.
fn mapping(pr: &PublishedResource, crd: &Crd) -> Result<Mapping, RuleError> {
    let written = Steps::of(pr.spec.implements.as_ref().unwrap_or(&Implements::default()));
    let compiled = mapping_of(pr, crd, &written)?;
    match implements::force::held_for(pr) {
        Some(held) => mapping_of(pr, crd, &held),
        None => Ok(compiled),
    }
}

/// Steps between the kinds of both sides.
pub(crate) fn mapping_of(pr: &PublishedResource, crd: &Crd, steps: &Steps) -> Result<Mapping, RuleError> {
    let projected = project(pr, crd)?;
    let local = kind_of(crd, exchanged(pr, crd)?);
    let remote = kind_of(&projected, in_use(&projected.spec.versions).ok_or(ProjectionError::NotServed)?);
    Ok(Mapping::compile((&steps.spec, &steps.status), local, remote)?)
}

fn passage(mutation: Mutation, way: JourneyWay) -> Passage {
    match way {
        JourneyWay::Straight => Passage::new(mutation, Route::default(), Route::default()),
        JourneyWay::Versions(down, up) => Passage::new(mutation, down, up),
        JourneyWay::Kinds(mapping) => Passage::mapped(mutation, mapping),
    }
}

/// Whether this is the resource of namespaces.
fn is_namespace(group: &str, plural: &str) -> bool {
    group.is_empty() && plural == "namespaces"
}

/// Whether this is the Secret resource.
fn is_secret(group: &str, plural: &str) -> bool {
    group.is_empty() && plural == "secrets"
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::naming::Workspace;
    use super::*;
    use serde_json::json;

    /// The CronTab CRD of the specification.
    pub(crate) fn crontab() -> Crd {
        Crd::from_json(&json!({
            "metadata": {"name": "crontabs.example.com", "generation": 1},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "crontabs", "singular": "crontab", "shortNames": ["ct"], "kind": "CronTab", "listKind": "CronTabList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": {
                        "cronSpec": {"type": "string"}, "image": {"type": "string"}, "replicas": {"type": "integer"}}}}}}}],
                "conversion": {"strategy": "None"},
            },
        })).unwrap()
    }

    /// A PublishedResource with the given spec.
    pub(crate) fn published(mut spec: Value) -> PublishedResource {
        if spec.get("resource").is_none() {
            spec["resource"] = json!({"apiGroup": "example.com", "kind": "CronTab"});
        }
        serde_json::from_value(json!({"metadata": {"name": "publish-crontabs"}, "spec": spec})).unwrap()
    }

    fn compile(spec: Value) -> Result<Rules, RuleError> {
        Rules::compile(&published(spec), &crontab(), "agent")
    }

    #[test]
    fn kinds_of_both_sides_follow_from_the_projection() {
        let rules =
            compile(json!({"projection": {"group": "kcp.example.com", "kind": "Job", "scope": "Cluster"}})).unwrap();
        assert_eq!(rules.local.api_version(), "example.com/v1");
        assert_eq!((rules.remote.api_version().as_str(), rules.remote.plural.as_str()), ("kcp.example.com/v1", "jobs"));
        assert!(rules.local.namespaced && !rules.remote.namespaced);
    }

    #[test]
    fn filters_select_by_labels_of_object_and_namespace() {
        let rules = compile(
            json!({"filter": {"resource": {"matchLabels": {"a": "1"}}, "namespace": {"matchLabels": {"b": "2"}}}}),
        )
        .unwrap();
        let object = json!({"metadata": {"labels": {"a": "1"}}});
        let namespace = json!({"metadata": {"labels": {"b": "2"}}});
        for (object, namespace, selection) in [
            (&object, Some(&namespace), Selection::In),
            (&json!({}), Some(&namespace), Selection::Out),
            (&object, Some(&json!({})), Selection::Out),
            (&object, None, Selection::Unknown),
            (&json!({}), None, Selection::Out),
        ] {
            assert_eq!(rules.selects(object, namespace), selection, "{object} {namespace:?}");
        }
        let cluster_scoped =
            compile(json!({"filter": {"namespace": {"matchLabels": {"b": "2"}}}, "projection": {"scope": "Cluster"}}));
        assert_eq!(cluster_scoped.unwrap().selects(&object, None), Selection::In);
    }

    #[test]
    fn objects_meet_the_conversions_between_both_sides() {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let moved = |from: &str, to: &str| json!([{"move": {"from": from, "to": to}}]);
        let conversion = |rules: Value| {
            let versions = json!([{"name": "v2", "storage": true, "schema": schema}, {"name": "v1", "served": false}]);
            json!({"conversion": {"versions": versions, "rules": rules}, "mutation": {"spec": [
                {"cel": {"path": "spec.image", "expression": "value + ':1'"}}]}})
        };
        let rules = compile(conversion(json!([
            {"from": "v2", "to": "v1", "steps": moved("spec.container", "spec.image")},
            {"from": "v1", "to": "v2", "steps": moved("status.phase", "status.state")},
        ])))
        .unwrap();
        assert_eq!((rules.local.version.as_str(), rules.remote.version.as_str()), ("v1", "v2"));
        let source = json!({"apiVersion": "example.com/v2", "metadata": {"name": "a"}, "spec": {"container": "x"}});
        let copy = rules.mutation.spec(&source, None).unwrap();
        assert_eq!(copy["spec"], json!({"image": "x:1"}), "mutations see the version of the service cluster");
        assert!(!rules.mutation.keeps_spec());
        let seen = json!({"apiVersion": "example.com/v1", "metadata": {"name": "b"}, "status": {"phase": "p"}});
        assert_eq!(rules.mutation.status(&seen, &copy).unwrap()["status"], json!({"state": "p"}));

        let pr = published(conversion(json!([])));
        let error = Rules::compile(&pr, &crontab(), "agent").unwrap_err().to_string();
        assert!(error.starts_with("spec.conversion.rules: nothing leads from v2 to v1"), "{error}");
        let rules = Rules::afterwards(Duty::End, &pr, &crontab(), "agent").unwrap();
        assert_eq!(rules.remote.version, "v2", "objects can be released all the same");
    }

    #[test]
    fn objects_can_be_released_by_rules_that_are_broken() {
        let pr = published(json!({"mutation": {"spec": [{}]}, "naming": {"name": "{{"}}));
        let deleting = json!({"metadata": {"deletionTimestamp": "now"}});
        for (duty, living) in [(Duty::Release, Selection::Out), (Duty::End, Selection::Unknown)] {
            let rules = Rules::afterwards(duty, &pr, &crontab(), "agent").unwrap();
            assert_eq!(rules.selects(&json!({}), None), living);
            assert_eq!(rules.selects(&deleting, None), Selection::Out);
        }
    }

    #[test]
    fn what_is_made_from_a_secret_is_as_confidential_as_the_secret() {
        let kind = |group: &str, plural: &str| ApiKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: String::new(),
            plural: plural.to_owned(),
            namespaced: true,
        };
        let related = |origin: &str, from: &str, to: &str| {
            json!({"identifier": from, "origin": origin, "version": "v1", "resource": from,
                "projection": {"resource": to}, "object": {"reference": {"path": "spec.image"}}})
        };
        let rules = compile(json!({"related": [
            related("service", "secrets", "configmaps"), related("kcp", "vaults", "secrets"), related("kcp", "leases", "leases"),
        ]}));
        let rules = rules.unwrap();
        for (group, plural, hidden) in [
            ("", "secrets", true),
            ("", "configmaps", true),
            ("", "vaults", true),
            ("", "leases", false),
            ("other.io", "secrets", false),
            ("example.com", "crontabs", false),
        ] {
            assert_eq!(rules.is_confidential(&kind(group, plural)), hidden, "{group}/{plural}");
        }
        let mut secrets = crontab();
        secrets.spec.group = String::new();
        secrets.spec.names.plural = "secrets".into();
        let pr = published(
            json!({"projection": {"group": "a.io", "kind": "Credential"}, "naming": {"name": "{{ .Object.data.p }}"}}),
        );
        let rules = Rules::compile(&pr, &secrets, "agent").unwrap();
        assert!(rules.is_confidential(&kind("a.io", "credentials")));
        let key = metadata::SourceKey { cluster: "c".into(), namespace: "n".into(), name: "o".into() };
        let error = rules
            .naming
            .name_copy(&key, Workspace::default(), &json!({"data": {"p": "Hunter=2"}}))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("spec.naming.name yields ") && !error.contains("Hunter"), "{error}");
    }

    #[test]
    fn bad_rules_name_the_field() {
        for (spec, expected) in [
            (json!({"naming": {"name": "{{ nope }}"}}), "spec.naming.name is not a valid template"),
            (
                json!({"filter": {"resource": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}),
                "spec.filter.resource: ",
            ),
            (json!({"mutation": {"spec": [{"cel": {"path": "a", "expression": "nope("}}]}}), "spec.mutation.spec[0]: "),
            (json!({"related": [{"identifier": "a", "kind": "Secret", "object": {}}]}), "spec.related[0].object: "),
            (
                json!({"resource": {"apiGroup": "example.com", "kind": "CronTab", "version": "v9"}}),
                "failed to apply projection rules: ",
            ),
        ] {
            let error = compile(spec).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn every_related_resource_has_an_identifier_of_its_own() {
        let entry =
            json!({"identifier": "a", "origin": "kcp", "kind": "Secret", "object": {"template": {"template": "x"}}});
        let error = compile(json!({"related": [entry, entry]})).unwrap_err().to_string();
        assert!(error.starts_with("spec.related[1]: identifier \"a\" is used"), "{error}");
    }

    #[test]
    fn entries_that_are_certain_to_lead_in_a_circle_are_refused() {
        let entry = |identifier: &str, origin: &str, object: &Value| json!({"identifier": identifier, "origin": origin, "kind": "Secret", "object": object});
        let (template, reference) = (
            json!({"template": {"template": "{{ .Object.metadata.name }}"}}),
            json!({"reference": {"path": "spec.name"}}),
        );
        let namespaced = json!({"reference": {"path": "spec.name"}, "namespace": {"template": {"template": "x"}}});
        for object in [&template, &reference, &namespaced] {
            let related = json!([entry("there", "kcp", object), entry("back", "service", object)]);
            let error = compile(json!({ "related": related })).unwrap_err().to_string();
            assert!(error.starts_with("spec.related[1]: \"back\" copies back what \"there\" copies"), "{error}");
        }
        let selector =
            json!({"selector": {"matchLabels": {"a": "b"}, "rewrite": {"template": {"template": "{{ .Value }}"}}}});
        let mut map = entry("back", "service", &template);
        map["kind"] = "ConfigMap".into();
        for related in [
            json!([entry("a", "kcp", &template), entry("b", "kcp", &template)]),
            json!([entry("a", "kcp", &template), entry("b", "service", &reference)]),
            json!([entry("a", "kcp", &reference), entry("b", "service", &namespaced)]),
            json!([entry("a", "kcp", &selector), entry("b", "service", &selector)]),
            json!([entry("a", "kcp", &template), map]),
        ] {
            compile(json!({ "related": related })).unwrap();
        }
        let projected = |origin: &str, from: &str, to: &str| {
            json!({"identifier": origin, "origin": origin, "group": "g", "version": "v1", "resource": from,
                "projection": {"resource": to}, "object": template})
        };
        let crossing = json!([projected("kcp", "vaults", "safes"), projected("service", "safes", "vaults")]);
        assert!(compile(json!({ "related": crossing })).is_err(), "however they are called on the other side");
        compile(json!({"related": [projected("kcp", "vaults", "safes"), projected("service", "vaults", "safes")]}))
            .unwrap();
    }

    #[test]
    fn subresources_are_not_content() {
        let mut crd = crontab();
        crd.spec.versions[0].subresources = serde_json::from_value(json!({"status": {}, "scale": {}})).unwrap();
        assert_eq!(Rules::compile(&published(json!({})), &crd, "agent").unwrap().subresources, ["status", "scale"]);
    }

    #[test]
    fn an_invalid_name_made_from_a_secret_is_not_shown() {
        let mut crd = crontab();
        (crd.spec.group, crd.spec.names.plural) = (String::new(), "secrets".into());
        let spec = json!({"naming": {"name": "{{ .Object.data.password }}"}, "projection": {"group": "x.io"}});
        let rules = Rules::compile(&published(spec), &crd, "agent").unwrap();
        let source = metadata::SourceKey { cluster: "c".into(), namespace: "default".into(), name: "n".into() };
        let error = rules
            .naming
            .name_copy(&source, Workspace::default(), &json!({"data": {"password": "Hunter2"}}))
            .unwrap_err();
        assert!(!error.to_string().contains("Hunter2"), "{error}");
    }

    #[test]
    fn a_published_resource_takes_precedence_over_the_agents_defaults() {
        let defaults = AgentDefaults {
            agent_name: "agent".into(),
            adoption: Adoption::TakeOver,
            after_restore: AfterRestore::Follow,
            apply: true,
            reserved: Reserved::default(),
            budget: Budget::default(),
        };
        let mut crd = crontab();
        for (subresources, said, apply, adoption) in [
            (json!({}), "", false, Adoption::TakeOver),
            (json!({}), "Refuse", false, Adoption::Refuse),
            (json!({"status": {}}), "", true, Adoption::TakeOver),
        ] {
            crd.spec.versions[0].subresources = serde_json::from_value(subresources).unwrap();
            let pr = published(json!({ "adoption": said }));
            let rules = Rules::compile(&pr, &crd, "agent").unwrap().with_defaults(&pr, &defaults);
            assert_eq!((rules.apply, rules.adoption), (apply, adoption), "{said}");
            assert_ne!(rules.field_manager(true), rules.field_manager(false));
            assert!(rules.field_manager(true).ends_with("/agent"));
        }
    }
}
