//! Service namespaces: a namespace of the provider for each one of the consumer.

use carrick_bind_api::conditions::{self, Condition, Severity};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::{MADE_FOR_ANNOTATION, SERVICE_NAMESPACE_ANNOTATION, is_system_namespace};
use carrick_bind_api::v1alpha2::{ApiServiceNamespace, Isolation};
use serde_json::json;

use super::objects::{Contract, ContractObjects, NamespaceFacts};
use super::plan::{Plan, Write};
use super::terms::Terms;

/// The longest name of a namespace.
const LONGEST: usize = 63;

/// The condition of an APIServiceNamespace (ours): a namespace is assigned.
pub const ASSIGNED: &str = "Assigned";

/// The provider's namespace for one of the consumer, or why there can be none.
pub fn assigned_name(contract: &str, name: &str, isolation: &Isolation) -> Result<String, String> {
    if *isolation == Isolation::None {
        if is_system_namespace(name) {
            return Err("it belongs to the provider's cluster itself".to_owned());
        }
        return Ok(name.to_owned());
    }
    let assigned = format!("{contract}-{name}");
    if assigned.len() > LONGEST {
        let length = assigned.len();
        return Err(format!(
            "namespace {assigned} of the provider would have {length} characters and only {LONGEST} are allowed; choose a shorter name"
        ));
    }
    Ok(assigned)
}

/// What to do about the namespaces of a contract.
pub fn decide(objects: &ContractObjects, terms: &Terms, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let is_ours = |facts: &&NamespaceFacts| {
        facts.made && facts.serves.as_ref().is_some_and(|(of, _)| *of == objects.contract.namespace)
    };
    let mut room = terms.most_namespaces.saturating_sub(objects.found.values().filter(is_ours).count());
    for namespace in objects.namespaces.iter().filter(|it| !it.metadata.is_deleting()) {
        one(namespace, objects, terms, now, (&mut plan, &mut room));
    }
    plan.add(clean_up(&objects.contract.namespace, &objects.namespaces, objects.found.values()));
    plan
}

/// Deletes the namespaces that were made for a contract, and that nobody there wants any more.
pub fn clean_up<'a>(
    contract: &str,
    wanted: &[ApiServiceNamespace],
    found: impl IntoIterator<Item = &'a NamespaceFacts>,
) -> Plan {
    let mut plan = Plan::default();
    for facts in found.into_iter().filter(|facts| facts.made && !facts.deleting) {
        let Some((_, name)) = facts.serves.as_ref().filter(|(of, _)| of == contract) else { continue };
        if !wanted.iter().any(|it| it.metadata.name == *name) {
            plan.writes.push(Write::Delete(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": facts.name, "uid": facts.uid}})));
        }
    }
    plan
}

fn one(
    namespace: &ApiServiceNamespace,
    objects: &ContractObjects,
    terms: &Terms,
    now: Timestamp,
    (plan, room): (&mut Plan, &mut usize),
) {
    let (contract, name) = (&objects.contract, &namespace.metadata.name);
    // What was assigned once stays.
    let assigned = match namespace.status.namespace.as_str() {
        "" => assigned_name(&contract.namespace, name, &terms.isolation),
        assigned => Ok(assigned.to_owned()),
    };
    let mut after = namespace.clone();
    let condition = match assigned.and_then(|assigned| check(contract, name, assigned, objects)) {
        Ok((assigned, false)) if *room == 0 => {
            let most = terms.most_namespaces;
            let problem = format!(
                "namespace {assigned} of the provider is not made: this contract has {most}, and may have no more \
                 (--max-namespaces-per-contract of the backend); delete objects in another namespace, or ask the provider"
            );
            Condition::fails(ASSIGNED, Severity::Error, "TooManyNamespaces", problem)
        }
        Ok((assigned, there)) => {
            if !there {
                *room -= 1;
                let serves = format!("{}/{name}", contract.namespace);
                plan.writes.push(Write::Create(
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": assigned,
                    "annotations": {SERVICE_NAMESPACE_ANNOTATION: serves, MADE_FOR_ANNOTATION: serves}}}),
                ));
                return;
            }
            after.status.namespace = assigned;
            Condition::holds(ASSIGNED)
        }
        Err(problem) => Condition::fails(ASSIGNED, Severity::Error, "NamespaceRefused", problem),
    };
    conditions::set(&mut after.status.conditions, condition, now);
    conditions::summarize(&mut after.status.conditions, now);
    if after.status != namespace.status {
        plan.status(&after);
    }
}

/// Whether a namespace may be assigned, and whether it is there.
fn check(
    contract: &Contract,
    name: &str,
    assigned: String,
    objects: &ContractObjects,
) -> Result<(String, bool), String> {
    match objects.found.get(&assigned) {
        None => Ok((assigned, false)),
        Some(facts) if !facts.is_for(&contract.namespace, name) => Err(format!(
            "namespace {assigned} of the provider exists and serves somebody else; choose another name, or let its owner share it: \
                 kubectl annotate namespace {assigned} {SERVICE_NAMESPACE_ANNOTATION}={}/{name}",
            contract.namespace
        )),
        Some(facts) if facts.deleting => Err(format!("namespace {assigned} of the provider is still being deleted")),
        Some(_) => Ok((assigned, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn with(name: &str) -> ContractObjects {
        let mut objects = ContractObjects::example();
        objects.namespaces.push(ApiServiceNamespace::new(name));
        objects
    }

    fn terms(isolation: Isolation) -> Terms {
        Terms::example(carrick_bind_api::v1alpha2::InformerScope::Namespaced, isolation)
    }

    fn refused(plan: &Plan) -> String {
        let [Write::Status(object)] = &plan.writes[..] else { panic!("{plan:?}") };
        assert!(object["status"].get("namespace").is_none());
        object["status"]["conditions"][1]["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_namespace_is_made_and_then_assigned() {
        for (isolation, name) in [(Isolation::Prefixed, "cluster-a-team"), (Isolation::None, "team")] {
            let (mut objects, terms) = (with("team"), terms(isolation));
            let plan = decide(&objects, &terms, now());
            let [Write::Create(namespace)] = &plan.writes[..] else { panic!("{plan:?}") };
            assert_eq!(namespace["metadata"]["name"], name);
            objects.found.insert(name.to_owned(), NamespaceFacts::of(namespace));
            let plan = decide(&objects, &terms, now());
            let [Write::Status(object)] = &plan.writes[..] else { panic!("{plan:?}") };
            assert_eq!(object["status"]["namespace"], name);
            objects.namespaces = vec![serde_json::from_value(object.clone()).unwrap()];
            assert_eq!(decide(&objects, &terms, now()), Plan::default());
            assert_eq!(objects.service_namespaces().len(), 1);
        }
    }

    #[test]
    fn a_contract_has_no_more_namespaces_than_it_may() {
        let terms = Terms { most_namespaces: 3, ..terms(Isolation::Prefixed) };
        let mut objects = ContractObjects::example();
        for number in 0..5 {
            objects.namespaces.push(ApiServiceNamespace::new(format!("n{number}")));
        }
        let plan = decide(&objects, &terms, now());
        let made = |plan: &Plan| plan.writes.iter().filter(|write| matches!(write, Write::Create(_))).count();
        assert_eq!((made(&plan), plan.writes.len()), (3, 5));
        let Some(Write::Status(object)) = plan.writes.last() else { panic!("{plan:?}") };
        assert!(object.to_string().contains("--max-namespaces-per-contract"), "{object}");
        // Those that are there count, and stay.
        for write in &plan.writes {
            if let Write::Create(namespace) = write {
                let facts = NamespaceFacts::of(namespace);
                objects.found.insert(facts.name.clone(), facts);
            }
        }
        assert_eq!(made(&decide(&objects, &terms, now())), 0);
        assert_eq!(made(&decide(&objects, &Terms { most_namespaces: 5, ..terms.clone() }, now())), 2);
        // A namespace that goes makes room.
        objects.found.remove("cluster-a-n0");
        objects.namespaces.remove(0);
        assert_eq!(made(&decide(&objects, &terms, now())), 1);
    }

    #[test]
    fn namespaces_of_others_and_names_that_are_too_long_are_refused() {
        assert!(refused(&decide(&with("kube-system"), &terms(Isolation::None), now())).contains("cluster itself"));
        let long = "x".repeat(60);
        assert!(refused(&decide(&with(&long), &terms(Isolation::Prefixed), now())).contains("70 characters"));
        for annotation in [None, Some("cluster-b/default"), Some("cluster-a/other")] {
            let mut objects = with("default");
            let mut namespace = json!({"metadata": {"name": "default", "annotations": {}}});
            if let Some(annotation) = annotation {
                namespace["metadata"]["annotations"][SERVICE_NAMESPACE_ANNOTATION] = json!(annotation);
            }
            objects.namespaces.push(ApiServiceNamespace::new("other"));
            objects.namespaces[1].status.namespace = "default".to_owned();
            objects.found.insert("default".to_owned(), NamespaceFacts::of(&namespace));
            objects.namespaces.truncate(1);
            if annotation == Some("cluster-a/other") {
                objects.found.get_mut("default").unwrap().deleting = true;
            }
            let said = refused(&decide(&objects, &terms(Isolation::None), now()));
            assert!(said.contains("serves somebody else"), "{said}");
        }
    }

    #[test]
    fn a_namespace_goes_with_its_object_and_nothing_else_does() {
        let mut objects = ContractObjects::example();
        for (name, serves, made) in [
            ("a", Some("cluster-a/gone"), Some("cluster-a/gone")),
            ("b", Some("cluster-b/gone"), Some("cluster-b/gone")),
            ("c", None, Some("cluster-a/gone")),
            // Made by kube-bind's backend.
            ("cluster-a-left", Some("cluster-a/left"), None),
            // Somebody's own, who shares it.
            ("shared", Some("cluster-a/shared"), None),
            ("was-another", Some("cluster-a/shared"), Some("cluster-b/shared")),
        ] {
            let mut namespace = json!({"metadata": {"name": name, "uid": name, "annotations": {}}});
            for (annotation, value) in [(SERVICE_NAMESPACE_ANNOTATION, serves), (MADE_FOR_ANNOTATION, made)] {
                if let Some(value) = value {
                    namespace["metadata"]["annotations"][annotation] = json!(value);
                }
            }
            objects.found.insert(name.to_owned(), NamespaceFacts::of(&namespace));
        }
        let plan = decide(&objects, &terms(Isolation::None), now());
        let [Write::Delete(first), Write::Delete(second)] = &plan.writes[..] else { panic!("{plan:?}") };
        assert_eq!(first["metadata"], json!({"name": "a", "uid": "a"}));
        assert_eq!(second["metadata"]["name"], "cluster-a-left");
    }
}
