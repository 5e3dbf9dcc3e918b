//! Service namespaces: a namespace of the provider for each one of the consumer.

use carrick_bind_api::conditions::{self, ASSIGNED, Condition, Severity};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::names::{
    MADE_FOR_ANNOTATION, SERVICE_NAMESPACE_ANNOTATION, SHARED_WITH_ANNOTATION, is_system_namespace,
};
use carrick_bind_api::v1alpha2::{ApiServiceNamespace, Isolation};
use serde_json::{Value, json};

use super::objects::{ContractObjects, NamespaceFacts};
use super::plan::{Plan, Write};
use super::sharing;
use super::terms::Terms;

/// The longest name of a namespace.
const LONGEST: usize = 63;

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
    let contract = &objects.contract.namespace;
    let is_ours = |facts: &&NamespaceFacts| {
        (facts.made && facts.serves_first(contract)) || facts.shared.iter().any(|(of, _)| of == contract)
    };
    let mut room = terms.most_namespaces.saturating_sub(objects.found.values().filter(is_ours).count());
    for namespace in objects.namespaces.iter().filter(|it| !it.metadata.is_deleting()) {
        one(namespace, objects, terms, now, (&mut plan, &mut room));
    }
    plan.add(clean_up(&objects.contract.namespace, &objects.namespaces, objects.found.values()));
    plan
}

/// Deletes the namespaces that were made for a contract, and that nobody there wants any more. Those that others share are left to them.
pub fn clean_up<'a>(
    contract: &str,
    wanted: &[ApiServiceNamespace],
    found: impl IntoIterator<Item = &'a NamespaceFacts>,
) -> Plan {
    let mut plan = Plan::default();
    let is_gone = |(of, name): &(String, String)| of == contract && !wanted.iter().any(|it| it.metadata.name == *name);
    for facts in found.into_iter().filter(|facts| !facts.deleting) {
        // One that its owner shares stays whose it is.
        let goes = facts.made && facts.serves.as_ref().is_some_and(is_gone);
        if !goes && !facts.shared.iter().any(is_gone) {
            continue;
        }
        plan.writes.push(match sharing::left(facts, |user| (goes || facts.serves.as_ref() != Some(user)) && is_gone(user)) {
            Some(namespace) => Write::Replace(namespace),
            None => Write::Delete(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": facts.name, "uid": facts.uid, "resourceVersion": facts.object["metadata"]["resourceVersion"]}})),
        });
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
    let checked = assigned.and_then(|assigned| Ok((check(namespace, &assigned, objects, terms)?, assigned)));
    let condition = match checked {
        Ok((Standing::Missing | Standing::Joinable(_), assigned)) if *room == 0 => {
            let most = terms.most_namespaces;
            let problem = format!(
                "namespace {assigned} of the provider is not assigned: this contract has {most}, and may have no more \
                 (--max-namespaces-per-contract of the backend); delete objects in another namespace, or ask the provider"
            );
            Condition::fails(ASSIGNED, Severity::Error, "TooManyNamespaces", problem)
        }
        Ok((Standing::Missing, assigned)) => {
            *room -= 1;
            let serves = format!("{}/{name}", contract.namespace);
            plan.writes
                .push(Write::Create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": assigned,
                "annotations": {SERVICE_NAMESPACE_ANNOTATION: serves, MADE_FOR_ANNOTATION: serves}}})));
            return;
        }
        Ok((Standing::Joinable(joined), _)) => {
            *room -= 1;
            plan.writes.push(Write::Replace(joined));
            return;
        }
        Ok((Standing::Ours, assigned)) => {
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

/// What a namespace of the provider is to one who may have it.
enum Standing {
    /// It is not there yet.
    Missing,
    /// It serves this contract.
    Ours,
    /// It serves another contract, which shares it: the Namespace with one more in it.
    Joinable(Value),
}

/// Whether a namespace may be assigned, and what has to be done for it.
fn check(
    namespace: &ApiServiceNamespace,
    assigned: &str,
    objects: &ContractObjects,
    terms: &Terms,
) -> Result<Standing, String> {
    let (contract, name) = (&objects.contract.namespace, &namespace.metadata.name);
    let Some(facts) = objects.found.get(assigned) else { return Ok(Standing::Missing) };
    if facts.is_for(contract, name) {
        let deleting = || format!("namespace {assigned} of the provider is still being deleted");
        return if facts.deleting { Err(deleting()) } else { Ok(Standing::Ours) };
    }
    // Only isolation None gives two consumers the same one.
    let is_others = assigned == name && !is_system_namespace(name) && facts.serves.is_some();
    if !is_others || facts.serves_first(contract) {
        return Err(format!(
            "namespace {assigned} of the provider exists and serves somebody else; choose another name, or let its owner share it: \
                 kubectl annotate namespace {assigned} {SERVICE_NAMESPACE_ANNOTATION}={contract}/{name}"
        ));
    }
    if !terms.shared_namespaces {
        return Err(format!(
            "namespace {assigned} of the provider serves another consumer; choose another name, or ask the provider to run its backend with \
                 --allow-shared-namespaces: then both work in it, and each can read what the other has there"
        ));
    }
    // kube-bind notes down nowhere that it has made a namespace, but whom it has given it to.
    if !facts.made && namespace.status.namespace != assigned {
        return Err(format!(
            "namespace {assigned} of the provider serves another consumer, and was not made for it; choose another name, or let its owner share it: \
                 add {contract}/{name} to its annotation {SHARED_WITH_ANNOTATION}"
        ));
    }
    if facts.deleting {
        return Err(format!("namespace {assigned} of the provider is still being deleted"));
    }
    Ok(Standing::Joinable(sharing::joined(facts, contract, name)))
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
            let other = annotation == Some("cluster-b/default");
            assert!(said.contains(if other { "serves another consumer" } else { "serves somebody else" }), "{said}");
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
        assert_eq!(first["metadata"], json!({"name": "a", "uid": "a", "resourceVersion": null}));
        assert_eq!(second["metadata"]["name"], "cluster-a-left");
    }

    fn shared() -> Terms {
        Terms { shared_namespaces: true, ..terms(Isolation::None) }
    }

    /// A contract that wants a namespace which serves another one.
    fn second(made_for: Option<&str>) -> ContractObjects {
        let mut objects = with("team");
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "resourceVersion": "7",
            "annotations": {SERVICE_NAMESPACE_ANNOTATION: "cluster-b/team"}}});
        if let Some(made_for) = made_for {
            namespace["metadata"]["annotations"][MADE_FOR_ANNOTATION] = json!(made_for);
        }
        objects.found.insert("team".to_owned(), NamespaceFacts::of(&namespace));
        objects
    }

    #[test]
    fn a_second_consumer_is_told_the_flag_that_lets_it_in_and_comes_in_with_it() {
        let mut objects = second(Some("cluster-b/team"));
        let said = refused(&decide(&objects, &terms(Isolation::None), now()));
        assert!(said.contains("--allow-shared-namespaces"), "{said}");
        let plan = decide(&objects, &shared(), now());
        let [Write::Replace(namespace)] = &plan.writes[..] else { panic!("{plan:?}") };
        assert_eq!(namespace["metadata"]["resourceVersion"], "7");
        let facts = NamespaceFacts::of(namespace);
        assert!(facts.serves_first("cluster-b") && facts.is_for("cluster-a", "team"));
        objects.found.insert("team".to_owned(), facts);
        for terms in [shared(), terms(Isolation::None)] {
            let plan = decide(&objects, &terms, now());
            let [Write::Status(object)] = &plan.writes[..] else { panic!("what is shared stays so: {plan:?}") };
            assert_eq!(object["status"]["namespace"], "team");
        }
        let plan = decide(&objects, &Terms { most_namespaces: 1, ..shared() }, now());
        assert!(matches!(&plan.writes[..], [Write::Status(_)]), "it is in already: {plan:?}");
        let full = decide(&second(Some("cluster-b/team")), &Terms { most_namespaces: 0, ..shared() }, now());
        assert!(refused(&full).contains("--max-namespaces-per-contract"));
    }

    #[test]
    fn what_an_owner_lent_to_one_consumer_is_not_shared_but_what_kube_bind_has_assigned_is() {
        let mut objects = second(None);
        let said = refused(&decide(&objects, &shared(), now()));
        assert!(said.contains("backend.kube-bind.io/shared-with"), "{said}");
        objects.namespaces[0].status.namespace = "team".to_owned();
        assert!(matches!(&decide(&objects, &shared(), now()).writes[..], [Write::Replace(_)]));
        // Nor is what belongs to the cluster, whoever has assigned it.
        let mut objects = with("kube-system");
        objects.namespaces[0].status.namespace = "kube-system".to_owned();
        let namespace = json!({"metadata": {"name": "kube-system", "annotations": {SERVICE_NAMESPACE_ANNOTATION: "cluster-b/kube-system"}}});
        objects.found.insert("kube-system".to_owned(), NamespaceFacts::of(&namespace));
        let plan = decide(&objects, &shared(), now());
        assert!(!plan.writes.iter().any(|write| matches!(write, Write::Replace(_))), "{plan:?}");
    }

    #[test]
    fn whoever_leaves_a_shared_namespace_leaves_it_to_the_others() {
        let mut objects = second(Some("cluster-b/team"));
        let [Write::Replace(namespace)] = &decide(&objects, &shared(), now()).writes[..] else { panic!() };
        let facts = NamespaceFacts::of(namespace);
        for (leaves, stays) in [("cluster-a", "cluster-b"), ("cluster-b", "cluster-a")] {
            let plan = clean_up(leaves, &[], [&facts]);
            let [Write::Replace(namespace)] = &plan.writes[..] else { panic!("{plan:?}") };
            let facts = NamespaceFacts::of(namespace);
            assert!(facts.serves_first(stays) && facts.shared.is_empty() && facts.made);
            assert!(matches!(&clean_up(stays, &[], [&facts]).writes[..], [Write::Delete(_)]));
        }
        objects.found.insert("team".to_owned(), facts);
        objects.namespaces.clear();
        assert!(matches!(&decide(&objects, &shared(), now()).writes[..], [Write::Replace(_)]));
    }
}
