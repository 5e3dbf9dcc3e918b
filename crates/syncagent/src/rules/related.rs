//! Related resources: which objects are copied along with a primary, and under which names.

use carrick_go::regex::GoRegex;
use carrick_json::path;
use carrick_template::Template;
use serde_json::{Map, Value};
use thiserror::Error;

use super::access::{self, Reserved};
use super::drift::{DriftError, DriftRules};
use super::hints;
use super::mutation::{Mutation, MutationError};
use super::selector::{Selector, SelectorError};
use crate::api::{self, Access, CleanupPolicy, LabelSelector, Origin, RelatedResource};

/// Why a related resource cannot be compiled or resolved.
#[derive(Debug, Error)]
pub enum RelatedError {
    /// What is said about drift is not valid.
    #[error(transparent)]
    Drift(#[from] DriftError),
    /// No way of finding objects is set.
    #[error("{at}: set one of reference, selector, template")]
    NoWay {
        /// Field of the PublishedResource.
        at: String,
    },
    /// Neither kind nor group, version and resource are set.
    #[error("{at}: must specify either kind (deprecated) or group, version, resource")]
    NoResource {
        /// Field of the PublishedResource.
        at: String,
    },
    /// The identifier is used twice.
    #[error(
        "{at}: identifier {identifier:?} is used by another related resource of this PublishedResource; make it unique"
    )]
    Duplicate {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
    },
    /// Two entries lead back to where the other one comes from.
    #[error(
        "{at}: {identifier:?} copies back what {other:?} copies, so that nobody could tell the original from its copy; remove one of the two, or let them name different objects"
    )]
    Circle {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
        /// The identifier of the other entry.
        other: String,
    },
    /// The identifier is not a valid label value, which is needed to find copies for clean-up.
    #[error(
        "{at}: with cleanupPolicy the identifier {identifier:?} becomes the value of a label: use at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
    )]
    Identifier {
        /// Field of the PublishedResource.
        at: String,
        /// The identifier.
        identifier: String,
    },
    /// A template or pattern is not valid.
    #[error("{at}: {reason}")]
    Compile {
        /// Field of the PublishedResource.
        at: String,
        /// What is wrong.
        reason: String,
    },
    /// A selector is not valid.
    #[error("{at}: {source}")]
    Selector {
        /// Field of the PublishedResource.
        at: String,
        /// What is wrong.
        source: SelectorError,
    },
    /// A mutation is not valid.
    #[error(transparent)]
    Mutation(#[from] MutationError),
    /// A template failed on these objects.
    #[error("{at} cannot be rendered: {reason}")]
    Render {
        /// Field of the PublishedResource.
        at: String,
        /// What is wrong.
        reason: String,
    },
    /// Both sides yield lists of different length.
    #[error(
        "cannot sync related resources: found {origin} {what} on the origin, but {destination} on the destination side"
    )]
    Uneven {
        /// `names` or `namespaces`.
        what: &'static str,
        /// How many on the origin side.
        origin: usize,
        /// How many on the destination side.
        destination: usize,
    },
    /// The rules lead to a namespace of the cluster, of the agent, or one that the provider reserves.
    #[error(
        "{at} yields namespace {namespace:?}, which is reserved: only a PublishedResource that names it literally leads there"
    )]
    Reserved {
        /// Field of the PublishedResource.
        at: String,
        /// The namespace.
        namespace: String,
    },
    /// The rules lead out of the namespace of the copy.
    #[error("{at} yields namespace {namespace:?}, which is not that of the copy, and access does not allow any other")]
    Elsewhere {
        /// Field of the PublishedResource.
        at: String,
        /// The namespace.
        namespace: String,
    },
    /// An order leads to more objects than it may.
    #[error(
        "{at} leads to {found} {what}, and the agent allows {most} ({flag}); name fewer, or ask the provider to allow more"
    )]
    TooMany {
        /// Field of the PublishedResource.
        at: String,
        /// What there are too many of.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many are allowed.
        most: usize,
        /// The flag of the agent that says so.
        flag: &'static str,
    },
    /// A cluster-scoped primary has no namespace to use.
    #[error("{which} is cluster-scoped and no source namespace configuration was provided; set object.namespace")]
    NoNamespace {
        /// Which of the two primaries.
        which: &'static str,
    },
}

/// Group, version and resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gvr {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural resource name.
    pub resource: String,
}

/// A related resource, compiled.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the PublishedResource, or follows from one")]
pub struct Related {
    /// Unique name within the PublishedResource.
    pub identifier: String,
    /// The side on which the original is.
    pub origin: Origin,
    /// Resource on the origin side.
    pub source: Gvr,
    /// Resource on the destination side.
    pub destination: Gvr,
    /// When copies are deleted.
    pub policy: CleanupPolicy,
    /// Whether the policy is set explicitly. If it is not, copies that are no longer selected are deleted, as they always were.
    pub spelled_out: bool,
    /// Whether the status is copied from origin to destination.
    pub sync_status: bool,
    /// Changes on the way.
    pub mutation: Mutation,
    /// Whether an order is Available only once an object of this entry is in kcp.
    pub required: bool,
    /// Whether its objects are only looked at, where they are on the service cluster.
    pub looked_at: bool,
    /// What of the service cluster it reaches.
    pub access: Option<Access>,
    /// Whether the provider alone determines the names of the objects.
    pub given: bool,
    /// The namespace on the service cluster, if the rules name it as it is.
    pub literal: Option<String>,
    /// Types of Secrets that travel although they are credentials of a cluster.
    pub secret_types: Vec<String>,
    /// What happens to fields of its copies that somebody else changes.
    pub drift: DriftRules,
    names: SelectionRule,
    namespaces: Option<SelectionRule>,
}

/// Both primaries, from the point of view of one related resource.
#[derive(Debug, Clone, Copy)]
pub struct Primaries<'a> {
    /// The primary in kcp.
    pub remote: &'a Value,
    /// The primary on the service cluster.
    pub local: &'a Value,
    /// Logical cluster of the consumer.
    pub cluster: &'a str,
    /// Workspace path of the consumer, if known.
    pub path: Option<&'a str>,
}

/// Where names (or namespaces) come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameSource {
    /// Pairs of origin and destination names.
    Pairs(Vec<(String, String)>),
    /// Whatever the selector finds on the origin side; each name is then rewritten.
    Listed(Selector),
}

#[derive(Debug, Clone)]
struct SelectionRule {
    at: String,
    how: SelectionMethod,
}

#[derive(Debug, Clone)]
enum SelectionMethod {
    Reference { path: String, rewrite: Option<TextReplacement> },
    Template(Template),
    Selector { labels: Vec<(CompiledText, CompiledText)>, rest: LabelSelector, rewrite: NameRewrite },
}

#[derive(Debug, Clone)]
enum NameRewrite {
    Regex(TextReplacement),
    Template(Template),
}

#[derive(Debug, Clone)]
enum TextReplacement {
    With(String),
    Regex(GoRegex, String),
}

#[derive(Debug, Clone)]
enum CompiledText {
    Plain(String),
    Template(Template),
}

impl Related {
    /// Compiles the entry found at the given field of a PublishedResource.
    pub fn compile(at: &str, related: &RelatedResource) -> Result<Self, RelatedError> {
        let source = source_gvr(related).ok_or_else(|| RelatedError::NoResource { at: at.into() })?;
        let destination = destination_gvr(&source, related);
        let object = &related.object;
        let policy = related.effective_policy();
        // With only the older field, the identifier may be anything, and copies get no labels if it is not a label value.
        let needs_label = related.cleanup_policy.is_some() && policy != CleanupPolicy::Orphan;
        if needs_label && !is_label_value(&related.identifier) {
            return Err(RelatedError::Identifier { at: at.into(), identifier: related.identifier.clone() });
        }
        // Changes find their primary without this rule, but an invalid one is still refused.
        if let Some(api::Watch { by_selector: Some(selector), .. }) = &related.watch {
            let at = format!("{at}.watch.bySelector");
            Selector::compile(selector).map_err(|source| RelatedError::Selector { at, source })?;
        }
        Ok(Self {
            identifier: related.identifier.clone(),
            origin: related.origin,
            source,
            destination,
            policy,
            spelled_out: related.cleanup_policy.is_some(),
            sync_status: related.sync_status,
            mutation: Mutation::compile_informed(&format!("{at}.mutation"), related.mutation.as_ref())?,
            required: related.required,
            looked_at: false,
            access: related.access,
            given: false,
            literal: None,
            secret_types: related.secret_types.clone(),
            drift: drift(at, related)?,
            names: SelectionRule::compile(format!("{at}.object"), object)?,
            namespaces: object
                .namespace
                .as_deref()
                .map(|namespace| SelectionRule::compile(format!("{at}.object.namespace"), namespace))
                .transpose()?,
        })
    }

    /// The same with what the other rules determine: whether names are the provider's alone, and the namespace of the copies.
    #[must_use]
    pub fn determined(self, given: bool, copies_in: Option<&str>) -> Self {
        let literal = match &self.namespaces {
            Some(rule) => rule.literal(),
            None => copies_in.map(str::to_owned),
        };
        Self { given, literal, ..self }
    }

    /// The field that says which objects are selected.
    pub fn at(&self) -> &str {
        &self.names.at
    }

    /// Refuses a namespace of the service cluster that is reserved. For objects that are namespaces, it is refused by name.
    pub fn check_namespace(&self, namespace: &str, reserved: &Reserved) -> Result<(), RelatedError> {
        if reserved.refuses(namespace, self.literal.as_deref()) {
            let at = self.namespaces.as_ref().map_or("spec.naming.namespace", |rule| &rule.at).to_owned();
            return Err(RelatedError::Reserved { at, namespace: namespace.to_owned() });
        }
        Ok(())
    }

    /// Refuses the name of an object on the service cluster that is a reserved namespace itself.
    pub fn check_name(&self, name: &str, reserved: &Reserved) -> Result<(), RelatedError> {
        let on_service = if self.origin == Origin::Service { &self.source } else { &self.destination };
        let is_namespace = on_service.group.is_empty() && on_service.resource == "namespaces";
        if is_namespace && reserved.refuses(name, self.names.literal().as_deref()) {
            return Err(RelatedError::Reserved { at: self.names.at.clone(), namespace: name.to_owned() });
        }
        Ok(())
    }

    /// The type of a Secret that gives access to a cluster and is not allowed to travel.
    pub fn refused_type<'a>(&self, object: &'a Value) -> Option<&'a str> {
        let kinds = [&self.source, &self.destination].map(|gvr| (gvr.group.as_str(), gvr.resource.as_str()));
        access::credential(object, kinds).filter(|type_| !self.secret_types.iter().any(|allowed| allowed == type_))
    }

    /// Whether copies carry labels that name their primary and entry.
    pub fn marks_copies(&self) -> bool {
        self.policy != CleanupPolicy::Orphan && is_label_value(&self.identifier)
    }

    /// Whether copies are deleted with their primary. Those of consumers' objects always are, because the originals are held for that.
    pub fn goes_with_primary(&self) -> bool {
        self.origin == Origin::Kcp || self.policy != CleanupPolicy::Orphan
    }

    /// Whether copies are deleted when the rules no longer select their originals.
    pub fn goes_with_origin(&self) -> bool {
        !self.spelled_out || self.policy == CleanupPolicy::MatchOrigin
    }

    /// Namespaces of the related objects.
    pub fn namespaces(&self, primaries: Primaries<'_>) -> Result<NameSource, RelatedError> {
        let Some(way) = &self.namespaces else {
            let (origin, destination) = self.sides(primaries);
            let namespace = |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let pair = (namespace(origin), namespace(destination));
            return match (pair.0.is_empty(), pair.1.is_empty()) {
                (true, _) => Err(RelatedError::NoNamespace { which: "primary object" }),
                (_, true) => Err(RelatedError::NoNamespace { which: "primary object copy" }),
                _ => Ok(NameSource::Pairs(vec![pair])),
            };
        };
        self.find(way, "namespaces", primaries)
    }

    /// Names of the related objects.
    pub fn names(&self, primaries: Primaries<'_>) -> Result<NameSource, RelatedError> {
        self.find(&self.names, "names", primaries)
    }

    /// Destination namespace for a listed origin namespace.
    pub fn rewrite_namespace(&self, name: &str, primaries: Primaries<'_>) -> Result<String, RelatedError> {
        match &self.namespaces {
            Some(way) => way.rewrite(name, &Value::Null, primaries),
            None => Ok(name.to_owned()),
        }
    }

    /// Destination name for a listed origin object.
    pub fn rewrite_name(&self, object: &Value, primaries: Primaries<'_>) -> Result<String, RelatedError> {
        self.names.rewrite(object["metadata"]["name"].as_str().unwrap_or_default(), object, primaries)
    }

    fn sides<'a>(&self, primaries: Primaries<'a>) -> (&'a Value, &'a Value) {
        match self.origin {
            // What is not copied has no names on the other side.
            _ if self.looked_at => (primaries.local, primaries.local),
            Origin::Kcp => (primaries.remote, primaries.local),
            Origin::Service => (primaries.local, primaries.remote),
        }
    }

    fn find(
        &self,
        way: &SelectionRule,
        what: &'static str,
        primaries: Primaries<'_>,
    ) -> Result<NameSource, RelatedError> {
        let (origin, destination) = self.sides(primaries);
        let pairs = match &way.how {
            SelectionMethod::Reference { path, rewrite } => {
                let (from, to) = (read(origin, path, rewrite.as_ref()), read(destination, path, rewrite.as_ref()));
                if from.is_empty() {
                    return Ok(NameSource::Pairs(Vec::new()));
                }
                if from.len() != to.len() {
                    return Err(RelatedError::Uneven { what, origin: from.len(), destination: to.len() });
                }
                from.into_iter().zip(to).collect()
            }
            SelectionMethod::Template(template) => {
                let (origin_side, destination_side) = match self.origin {
                    Origin::Service if self.looked_at => ("service", "service"),
                    Origin::Kcp => ("kcp", "service"),
                    Origin::Service => ("service", "kcp"),
                };
                let render = |side: &str, object: &Value| {
                    let extra = [("Side", Value::from(side)), ("Object", object.clone())];
                    way.render(template, primaries, extra)
                };
                vec![(render(origin_side, origin)?, render(destination_side, destination)?)]
            }
            SelectionMethod::Selector { labels, rest, .. } => {
                let mut selector =
                    LabelSelector { match_expressions: rest.match_expressions.clone(), ..LabelSelector::default() };
                for (key, value) in labels {
                    let key = way.text(key, primaries)?;
                    if !key.is_empty() {
                        selector.match_labels.insert(key, way.text(value, primaries)?);
                    }
                }
                let compiled = Selector::compile(&selector);
                return compiled
                    .map(NameSource::Listed)
                    .map_err(|source| RelatedError::Selector { at: way.at.clone(), source });
            }
        };
        Ok(NameSource::Pairs(pairs.into_iter().filter(|(from, to)| !from.is_empty() && !to.is_empty()).collect()))
    }
}

impl SelectionRule {
    fn compile(at: String, selection: &api::Selection) -> Result<Self, RelatedError> {
        // Names and labels are looked up again at every reconciliation, so they have to be the same each time.
        let template = |text: &str| {
            Template::compile_steady(text)
                .map_err(|e| RelatedError::Compile { at: at.clone(), reason: hints::template(text, &e) })
        };
        let replace = |rule: &api::RegexRule| -> Result<TextReplacement, RelatedError> {
            if rule.pattern.is_empty() {
                return Ok(TextReplacement::With(rule.replacement.clone()));
            }
            let compiled = GoRegex::compile(&rule.pattern);
            let regex = compiled.map_err(|e| RelatedError::Compile { at: at.clone(), reason: e.to_string() })?;
            Ok(TextReplacement::Regex(regex, rule.replacement.clone()))
        };
        let text = |text: &String| -> Result<CompiledText, RelatedError> {
            if text.contains("{{") {
                template(text).map(CompiledText::Template)
            } else {
                Ok(CompiledText::Plain(text.clone()))
            }
        };
        let how = if let Some(reference) = &selection.reference {
            SelectionMethod::Reference {
                path: reference.path.clone(),
                rewrite: reference.regex.as_ref().map(replace).transpose()?,
            }
        } else if let Some(selector) = &selection.selector {
            let rewrite = match (&selector.rewrite.regex, &selector.rewrite.template) {
                (Some(rule), _) => NameRewrite::Regex(replace(rule)?),
                (None, Some(rule)) => NameRewrite::Template(template(&rule.template)?),
                (None, None) => {
                    return Err(RelatedError::Compile {
                        at,
                        reason: "selector.rewrite needs regex or template".into(),
                    });
                }
            };
            let labels = selector.match_labels.iter().map(|(k, v)| Ok((text(k)?, text(v)?)));
            let rest =
                LabelSelector { match_expressions: selector.match_expressions.clone(), ..LabelSelector::default() };
            // Refuses invalid operators now; labels are only known once there are objects.
            Selector::compile(&rest).map_err(|source| RelatedError::Selector { at: at.clone(), source })?;
            SelectionMethod::Selector { labels: labels.collect::<Result<_, RelatedError>>()?, rest, rewrite }
        } else if let Some(expression) = &selection.template {
            SelectionMethod::Template(template(&expression.template)?)
        } else {
            return Err(RelatedError::NoWay { at });
        };
        Ok(Self { at, how })
    }

    /// What it yields, if that is the same for all objects.
    fn literal(&self) -> Option<String> {
        match &self.how {
            SelectionMethod::Reference { rewrite: Some(TextReplacement::With(text)), .. } => Some(text.clone()),
            SelectionMethod::Template(template) if !template.text().contains("{{") => {
                Some(template.text().trim().to_owned())
            }
            _ => None,
        }
    }

    fn rewrite(&self, name: &str, object: &Value, primaries: Primaries<'_>) -> Result<String, RelatedError> {
        let SelectionMethod::Selector { rewrite, .. } = &self.how else { return Ok(name.to_owned()) };
        match rewrite {
            NameRewrite::Regex(replace) => Ok(replace.apply(name)),
            NameRewrite::Template(template) => {
                let extra = [
                    ("Value", name.into()),
                    ("RelatedObject", object.clone()),
                    ("LocalObject", primaries.local.clone()),
                    ("RemoteObject", primaries.remote.clone()),
                ];
                self.render(template, primaries, extra)
            }
        }
    }

    fn text(&self, text: &CompiledText, primaries: Primaries<'_>) -> Result<String, RelatedError> {
        match text {
            CompiledText::Plain(text) => Ok(text.clone()),
            CompiledText::Template(template) => {
                let extra = [("LocalObject", primaries.local.clone()), ("RemoteObject", primaries.remote.clone())];
                self.render(template, primaries, extra)
            }
        }
    }

    fn render<const N: usize>(
        &self,
        template: &Template,
        primaries: Primaries<'_>,
        extra: [(&str, Value); N],
    ) -> Result<String, RelatedError> {
        let mut data: Map<String, Value> = extra.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        data.insert("ClusterName".into(), primaries.cluster.into());
        data.insert("ClusterPath".into(), primaries.path.unwrap_or_default().into());
        let rendered = template.render(&data);
        let text = rendered.map_err(|e| RelatedError::Render { at: self.at.clone(), reason: e.to_string() })?;
        Ok(text.trim().to_owned())
    }
}

impl TextReplacement {
    fn apply(&self, text: &str) -> String {
        match self {
            Self::With(replacement) => replacement.clone(),
            Self::Regex(regex, replacement) => regex.replace_all(text, replacement),
        }
    }
}

/// Texts at a path of a primary: one for each element of an array, otherwise one.
fn read(object: &Value, path: &str, rewrite: Option<&TextReplacement>) -> Vec<String> {
    let found = path::get(object, path);
    if !found.exists() {
        return Vec::new();
    }
    let is_array = found.is_array();
    let texts: Vec<String> = if is_array { found.array().map(|e| e.text()).collect() } else { vec![found.text()] };
    let trimmed = texts.iter().map(|text| text.trim());
    trimmed.map(|text| rewrite.map_or_else(|| text.to_owned(), |rewrite| rewrite.apply(text))).collect()
}

/// Whether a text is a valid label value in Kubernetes.
fn is_label_value(text: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= 63 && text.chars().all(is_inside) && is_edge(text.chars().next()) && is_edge(text.chars().last())
}

/// What happens to fields of copies that somebody else changes. Copies of the service's objects are in the consumer's hands.
fn drift(at: &str, related: &RelatedResource) -> Result<DriftRules, DriftError> {
    let at = format!("{at}.drift");
    let rules = DriftRules::compile(&at, related.drift.as_ref())?;
    if !rules.is_off() && related.origin == Origin::Service {
        return Err(DriftError::Origin { at });
    }
    Ok(rules)
}

fn source_gvr(related: &RelatedResource) -> Option<Gvr> {
    let gvr = |group: &str, version: &str, resource: &str| {
        Some(Gvr { group: group.into(), version: version.into(), resource: resource.into() })
    };
    match related.kind.as_str() {
        "ConfigMap" => gvr("", "v1", "configmaps"),
        "Secret" => gvr("", "v1", "secrets"),
        _ if related.version.is_empty() || related.resource.is_empty() => None,
        _ => gvr(&related.group, &related.version, &related.resource),
    }
}

fn destination_gvr(source: &Gvr, related: &RelatedResource) -> Gvr {
    let projection = related.projection.clone().unwrap_or_default();
    Gvr {
        group: projection.group.unwrap_or_else(|| source.group.clone()),
        version: projection.version.unwrap_or_else(|| source.version.clone()),
        resource: projection.resource.unwrap_or_else(|| source.resource.clone()),
    }
}

/// Whether two entries are certain to lead in a circle: one copies back, under the same names, what the other one copies. Where names are found
/// by selectors, or in different ways, that shows only when they meet.
pub fn is_circle(one: &RelatedResource, other: &RelatedResource) -> bool {
    let kinds = |entry: &RelatedResource| {
        let source = source_gvr(entry)?;
        let destination = destination_gvr(&source, entry);
        Some(((source.group, source.resource), (destination.group, destination.resource)))
    };
    let (Some((from, to)), Some((back_from, back_to))) = (kinds(one), kinds(other)) else { return false };
    let is_named = |selection: &api::Selection| selection.selector.is_none();
    let is_decidable = is_named(&one.object) && one.object.namespace.as_deref().is_none_or(is_named);
    one.origin != other.origin && from == back_to && to == back_from && is_decidable && one.object == other.object
}

/// Group and resource of the related objects in kcp; empty if the entry is incomplete.
pub fn kcp_group_resource(related: &RelatedResource) -> (String, String) {
    let Some(source) = source_gvr(related) else { return (String::new(), String::new()) };
    match related.origin {
        Origin::Kcp => (source.group, source.resource),
        Origin::Service => {
            let destination = destination_gvr(&source, related);
            (destination.group, destination.resource)
        }
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests {
    use super::*;
    use serde_json::json;

    fn compile(related: Value) -> Result<Related, RelatedError> {
        Related::compile("spec.related[0]", &serde_json::from_value(related).unwrap())
    }

    fn find(object: Value) -> Result<(NameSource, NameSource), RelatedError> {
        let remote = json!({"metadata": {"namespace": "default", "name": "a"}, "spec": {"secret": "s-remote", "items": [{"name": "x"}, {"name": ""}, {"name": "y"}]}});
        let local = json!({"metadata": {"namespace": "c1", "name": "b"}, "spec": {"secret": "s-local", "items": [{"name": "1"}, {"name": "2"}, {"name": "3"}]}});
        let primaries = Primaries { remote: &remote, local: &local, cluster: "c1", path: None };
        let related = compile(json!({"identifier": "r", "origin": "service", "kind": "Secret", "object": object}))?;
        Ok((related.namespaces(primaries)?, related.names(primaries)?))
    }

    fn pairs(pairs: &[(&str, &str)]) -> NameSource {
        NameSource::Pairs(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
    }

    #[test]
    fn names_come_from_both_primaries() {
        let (namespaces, names) = find(json!({"reference": {"path": "spec.secret"}})).unwrap();
        assert_eq!(namespaces, pairs(&[("c1", "default")]));
        assert_eq!(names, pairs(&[("s-local", "s-remote")]));
        let (_, names) = find(json!({"reference": {"path": "spec.items.#.name"}})).unwrap();
        assert_eq!(names, pairs(&[("1", "x"), ("3", "y")]), "pairs with an empty side are left out");
        let (_, names) =
            find(json!({"reference": {"path": "spec.secret", "regex": {"pattern": "^s-", "replacement": "t-"}}}))
                .unwrap();
        assert_eq!(names, pairs(&[("t-local", "t-remote")]));
        let (_, names) = find(json!({"reference": {"path": "spec.nope"}})).unwrap();
        assert_eq!(names, pairs(&[]));
        let (_, names) = find(json!({"template": {"template": "{{ .Side }}-{{ .Object.metadata.name }}"}})).unwrap();
        assert_eq!(names, pairs(&[("service-b", "kcp-a")]));
    }

    #[test]
    fn selectors_are_rendered_for_each_primary() {
        let (_, names) = find(json!({"selector": {"matchLabels": {"owner": " {{ .LocalObject.metadata.name }} "},
            "rewrite": {"regex": {"pattern": "a", "replacement": "b"}}}}))
        .unwrap();
        let NameSource::Listed(selector) = names else { panic!("{names:?}") };
        assert!(selector.matches_object(&json!({"metadata": {"labels": {"owner": "b"}}})));
    }

    #[test]
    fn a_policy_that_is_spelled_out_is_taken_at_its_word() {
        use CleanupPolicy::{MatchOrigin, OnPrimaryDeletion, Orphan};
        let entry = |origin: &str, cleanup: Value, policy: Option<CleanupPolicy>| {
            compile(json!({"identifier": "r", "origin": origin, "kind": "Secret", "cleanup": cleanup,
                "cleanupPolicy": policy, "object": {"template": {"template": "x"}}}))
            .unwrap()
        };
        // Marked, deleted with the primary, deleted with its original.
        for (origin, cleanup, policy, expected) in [
            ("service", false, None, (false, false, true)),
            ("service", true, None, (true, true, true)),
            ("service", false, Some(Orphan), (false, false, false)),
            ("service", false, Some(OnPrimaryDeletion), (true, true, false)),
            ("service", false, Some(MatchOrigin), (true, true, true)),
            ("kcp", false, None, (false, true, true)),
            ("kcp", true, None, (true, true, true)),
            ("kcp", false, Some(Orphan), (false, true, false)),
            ("kcp", false, Some(OnPrimaryDeletion), (true, true, false)),
            ("kcp", false, Some(MatchOrigin), (true, true, true)),
        ] {
            let related = entry(origin, cleanup.into(), policy);
            let found = (related.marks_copies(), related.goes_with_primary(), related.goes_with_origin());
            assert_eq!(found, expected, "{origin} {cleanup} {policy:?}");
        }
    }

    #[test]
    fn an_identifier_must_fit_into_a_label_only_where_a_policy_is_spelled_out() {
        let entry = |identifier: &str, rest: Value| {
            let mut entry = json!({"identifier": identifier, "origin": "kcp", "kind": "Secret",
                "object": {"template": {"template": "x"}}});
            carrick_json::merge::apply(&mut entry, &rest);
            compile(entry)
        };
        let (long, policy) = ("x".repeat(64), json!({"cleanupPolicy": "MatchOrigin"}));
        for identifier in [long.as_str(), "-a", "a.", "a b", "ä"] {
            let error = entry(identifier, policy.clone()).unwrap_err().to_string();
            assert!(error.starts_with("spec.related[0]: with cleanupPolicy the identifier"), "{error}");
            entry(identifier, json!({"cleanupPolicy": "Orphan"})).unwrap();
            assert!(!entry(identifier, json!({"cleanup": true})).unwrap().marks_copies());
        }
        for identifier in ["", "a", "A.b_c-9", &"x".repeat(63)] {
            assert!(entry(identifier, policy.clone()).unwrap().marks_copies(), "{identifier}");
        }
    }

    #[test]
    fn bad_entries_name_the_field() {
        for (related, expected) in [
            (json!({"kind": "Secret", "object": {}}), "spec.related[0].object: set one of"),
            (json!({"object": {"template": {"template": "x"}}}), "spec.related[0]: must specify either kind"),
            (json!({"kind": "Secret", "object": {"template": {"template": "{{"}}}), "spec.related[0].object: "),
            (
                json!({"kind": "Secret", "object": {"template": {"template": "x"}, "namespace": {}}}),
                "spec.related[0].object.namespace: set",
            ),
        ] {
            let error = compile(related).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn what_is_different_at_every_rendering_selects_nothing_and_is_refused() {
        let rewritten = |labels: Value, template: &str| json!({"selector": {"matchLabels": labels, "rewrite": {"template": {"template": template}}}});
        let random = "{{ uuidv4 }}";
        for object in [
            json!({"template": {"template": random}}),
            json!({"template": {"template": "x"}, "namespace": {"template": {"template": random}}}),
            rewritten(json!({"a": random}), "x"),
            rewritten(json!({random: "a"}), "x"),
            rewritten(json!({"a": "b"}), random),
            rewritten(json!({"a": "b"}), "{{ bcrypt .Value }}"),
        ] {
            let error = compile(json!({"kind": "Secret", "object": object})).unwrap_err().to_string();
            assert!(error.starts_with("spec.related[0].object"), "{error}");
            assert!(error.contains(" is refused: its result is different at every rendering"), "{error}");
        }
    }

    #[test]
    fn names_are_trimmed_and_lists_of_different_length_are_refused() {
        let related = |path: &str| {
            compile(json!({"identifier": "r", "origin": "service", "kind": "Secret", "object": {"reference": {"path": path}}}))
                .unwrap()
        };
        let remote = json!({"spec": {"name": " a ", "list": ["x"]}});
        let local = json!({"spec": {"name": "b\n", "list": ["1", "2"]}});
        let primaries = Primaries { remote: &remote, local: &local, cluster: "c1", path: None };
        assert_eq!(related("spec.name").names(primaries).unwrap(), pairs(&[("b", "a")]));
        let error = related("spec.list").names(primaries).unwrap_err().to_string();
        assert!(error.contains("found 2 names on the origin, but 1 on the destination side"), "{error}");
    }

    #[test]
    fn a_label_without_a_name_selects_nothing_and_excludes_nothing() {
        let (_, names) = find(json!({"selector": {"matchLabels": {"{{ if false }}x{{ end }}": "v"},
            "rewrite": {"regex": {"pattern": "a", "replacement": "b"}}}}))
        .unwrap();
        let NameSource::Listed(selector) = names else { panic!("{names:?}") };
        assert!(selector.matches_object(&json!({})));
    }

    #[test]
    fn kcp_knows_related_objects_by_the_name_they_have_there() {
        let known = |origin: &str| {
            let related = json!({"identifier": "r", "origin": origin, "kind": "Secret", "object": {},
                "projection": {"group": "vault.io", "resource": "safes"}});
            kcp_group_resource(&serde_json::from_value(related).unwrap())
        };
        assert_eq!(known("service"), ("vault.io".to_owned(), "safes".to_owned()));
        assert_eq!(known("kcp"), (String::new(), "secrets".to_owned()));
    }
}
