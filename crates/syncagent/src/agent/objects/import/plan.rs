//! What would become of one object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use carrick_multicluster::Cluster;
use serde_json::Value;

use super::{Importer, full_name, order_name, place, report_on};
use crate::agent::import::{ImportOutcome, ImportedObject};
use crate::agent::objects::copies;
use crate::api::IMPORTED;
use crate::decide::import::{ImportStanding, order, prove, standing};
use crate::rules::import::OrderTemplates;
use crate::rules::metadata::{SourceKey, annotation, is_deleting, source_of};

/// Objects that would have the order of one before them, with the name of that one.
pub(super) fn repeated(places: &OrderTemplates, objects: &[Value]) -> HashMap<usize, String> {
    let mut known = HashMap::new();
    let mut repeated = HashMap::new();
    for (at, object) in objects.iter().enumerate() {
        let Ok(order) = places.of(object) else { continue };
        match known.entry(order) {
            Entry::Occupied(first) => drop(repeated.insert(at, full_name(&objects[*first.get()]))),
            Entry::Vacant(free) => drop(free.insert(at)),
        }
    }
    repeated
}

/// Where the order of an object belongs.
pub(super) struct Target {
    pub(super) key: SourceKey,
    pub(super) cluster: Cluster,
    /// Path of the workspace, if the rules ask for it.
    pub(super) path: Option<String>,
}

/// What is to be done about an object.
pub(super) struct Work {
    pub(super) target: Target,
    pub(super) object: Value,
    pub(super) order: Value,
    /// Whether it is linked already.
    pub(super) linked: bool,
}

/// What is known of an object, and what is to be done about it.
pub(super) struct Planned {
    pub(super) report: ImportedObject,
    pub(super) target: Option<Target>,
    pub(super) work: Option<Work>,
}

impl Planned {
    fn ends(mut report: ImportedObject, outcome: ImportOutcome, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        (report.outcome, report.reason) = (outcome, Some(reason).filter(|reason| !reason.is_empty()));
        Self { report, target: None, work: None }
    }
}

impl Importer<'_> {
    /// What would become of an object. Nothing is written but requests that servers only answer.
    pub(super) async fn plan(&self, object: Value) -> Planned {
        let mut report = report_on(&object);
        let [to, namespace, name] = match self.places.of(&object) {
            Ok(texts) => texts,
            Err(problem) => return Planned::ends(report, ImportOutcome::Refused, problem),
        };
        report.workspace = Some(to.clone());
        let target = match self.target(&to, namespace, &name) {
            Ok(target) => target,
            Err(problem) => return Planned::ends(report, ImportOutcome::Refused, problem),
        };
        report.cluster = Some(target.key.cluster.to_string());
        report.order = Some(order_name(&target.key));
        let there = match self.order_of(&target).await {
            Ok(order) => order,
            Err(problem) => return Planned::ends(report, ImportOutcome::Failed, problem),
        };
        let other = self.other_copy(&target.key, &object);
        let linked = match (standing(&self.rules, &object, &target.key), there) {
            (ImportStanding::Foreign(why), _) => {
                return Planned::ends(
                    report,
                    ImportOutcome::Refused,
                    format!("{why}; an import begins with what is nobody's"),
                );
            }
            (ImportStanding::Free, Some(_)) => {
                let why = format!("there is an order of that name already; choose another one with {}", self.name());
                return Planned::ends(report, ImportOutcome::Refused, why);
            }
            (ImportStanding::Free | ImportStanding::Linked, _) if other.is_some() => {
                let other = other.unwrap_or_default();
                let why = format!("{other} is linked to that order; choose another name with {}", self.name());
                return Planned::ends(report, ImportOutcome::Refused, why);
            }
            (ImportStanding::Linked, Some(order)) if is_deleting(&order) => {
                return Planned::ends(report, ImportOutcome::Refused, "its order is being deleted");
            }
            (ImportStanding::Linked, Some(order)) if annotation(&order, IMPORTED).is_none() => {
                let why =
                    "somebody else has created an order of that name meanwhile; compare both with carrick explain";
                return Planned::ends(report, ImportOutcome::Refused, why);
            }
            (ImportStanding::Linked, Some(_)) => {
                let planned = Planned::ends(report, ImportOutcome::Already, "");
                return Planned { target: Some(target), ..planned };
            }
            (ImportStanding::Free, None) => false,
            (ImportStanding::Linked, None) => true,
        };
        self.proven(report, target, object, linked).await
    }

    /// The order, proven to change nothing but what was accepted.
    async fn proven(&self, mut report: ImportedObject, target: Target, object: Value, linked: bool) -> Planned {
        let order = match order(&self.rules, &object, &target.key, &self.request.without) {
            Ok(order) => order,
            Err(problem) => return Planned::ends(report, ImportOutcome::Refused, problem.to_string()),
        };
        let namespace = match self.namespace_of(&target).await {
            Ok(namespace) => namespace,
            Err(problem) => return Planned::ends(report, ImportOutcome::Refused, problem),
        };
        let client = target.cluster.json_client();
        let stored = match client.create_dry_run(&self.remote, Some(&target.key.namespace), &order).await {
            Ok(stored) => stored,
            Err(error) => {
                let error = if self.rules.is_confidential(&self.rules.remote) { error.discreet() } else { error };
                let why = format!("kcp would not take its order: {error}{}", self.way_out(&error, &target));
                return Planned::ends(report, ImportOutcome::Refused, why);
            }
        };
        let (accept, path) = (&self.request.accept, target.path.as_deref());
        let proof = match prove(&self.rules, &target.key, path, (&stored, namespace.as_ref()), &object, accept) {
            Ok(proof) => proof,
            Err(problem) => return Planned::ends(report, ImportOutcome::Refused, problem.to_string()),
        };
        if !proof.refused.is_empty() {
            let names = proof.refused.iter().take(3);
            let why = if self.by_policy {
                let names: Vec<&str> = names.map(|it| it.path.as_str()).collect();
                format!(
                    "its order would change {}; change the rules or the object, or use carrick import",
                    names.join(", ")
                )
            } else {
                let names: Vec<String> = names.map(|it| format!("--accept '{}'", it.path)).collect();
                format!("its order would change it; if that is meant, say {}", names.join(" "))
            };
            report.changes = proof.refused;
            return Planned::ends(report, ImportOutcome::Refused, why);
        }
        report.changes = proof.accepted;
        report.outcome = if linked { ImportOutcome::Resumes } else { ImportOutcome::Ready };
        Planned { report, target: None, work: Some(Work { target, object, order, linked }) }
    }

    /// Where an order belongs.
    fn target(&self, to: &str, namespace: String, name: &str) -> Result<Target, String> {
        let consumers = &self.shared.fleets.consumers;
        let cluster = consumers.cluster(to).map_err(|_| {
            let known: Vec<String> = consumers.clusters().iter().take(10).map(shown).collect();
            format!("no workspace {to} has bound the APIExport; there are {}", known.join(", "))
        })?;
        let namespace = if self.rules.remote.namespaced { namespace } else { String::new() };
        let key =
            SourceKey { cluster: cluster.name().to_string().into(), namespace: namespace.into(), name: name.into() };
        let path = if self.rules.workspace_paths {
            let path = cluster.path().ok_or_else(|| {
                format!("the path of workspace {to} is not known, and spec.enableWorkspacePaths asks for it")
            })?;
            Some(path.to_string())
        } else {
            None
        };
        Ok(Target { key, cluster, path })
    }

    /// The order as kcp has it now.
    pub(super) async fn order_of(&self, target: &Target) -> Result<Option<Value>, String> {
        let client = target.cluster.json_client();
        let found = client.get_served(&self.remote, Some(&target.key.namespace), &target.key.name).await;
        found.map_err(|error| format!("it is not known whether there is an order: {error}"))
    }

    /// The namespace of an order, if the rules filter by it.
    async fn namespace_of(&self, target: &Target) -> Result<Option<Value>, String> {
        if !self.rules.filters_by_namespace() {
            return Ok(None);
        }
        let namespaces = carrick_client::Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        let read = target.cluster.json_client().get(&namespaces, None, &target.key.namespace).await;
        let read = read.map_err(|error| format!("namespace {} cannot be read: {error}", target.key.namespace))?;
        read.ok_or_else(|| self.no_namespace(target)).map(Some)
    }

    /// Where the name of orders is said.
    fn name(&self) -> &'static str {
        self.places.names()[2]
    }

    fn no_namespace(&self, target: &Target) -> String {
        format!(
            "there is no namespace {} in that workspace; create it there, or choose another one with {}",
            target.key.namespace,
            self.places.names()[1]
        )
    }

    /// What to do about kcp's answer.
    fn way_out(&self, error: &carrick_client::Error, target: &Target) -> String {
        if error.is_not_found() { format!("; {}", self.no_namespace(target)) } else { String::new() }
    }

    /// Whether an object has been placed for an order that is there, and was not imported.
    pub(super) fn is_placed(&self, object: &Value) -> bool {
        let Some(key) = source_of(object) else { return false };
        let order = self.shared.sources.get(&key.cluster, &key.namespace, &key.name);
        order.is_some_and(|order| annotation(&order.value(), IMPORTED).is_none())
    }

    /// Another object that is linked to an order.
    fn other_copy(&self, key: &SourceKey, object: &Value) -> Option<String> {
        let copies = copies::of(&self.shared.copies, key, &self.rules.remote.resource());
        let mut copies = copies.iter().map(|copy| copy.value());
        copies.find(|copy| place(copy) != place(object)).map(|copy| full_name(&copy))
    }
}

fn shown(cluster: &Cluster) -> String {
    cluster.path().map_or_else(|| cluster.name().to_string(), |path| path.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::import::{NAME, NAMESPACE};

    #[test]
    fn no_two_objects_get_one_order() {
        let object = |namespace: &str, name: &str| json!({"metadata": {"name": name, "namespace": namespace}});
        let objects = [object("a", "x"), object("a", "y"), object("b", "x"), object("c", "x")];
        let repeated = |name: &str| {
            let places = OrderTemplates::compile(OrderTemplates::FLAGS, ["root:team", NAMESPACE, name]).unwrap();
            let mut found: Vec<_> = super::repeated(&places, &objects).into_iter().collect();
            found.sort();
            found
        };
        assert_eq!(repeated(NAME), [(2, "a/x".to_owned()), (3, "a/x".to_owned())]);
        assert_eq!(repeated("{{ .Object.metadata.namespace }}-{{ .Object.metadata.name }}"), []);
    }
}
