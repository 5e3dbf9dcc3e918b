//! Laws: mappings lead there and back, parts of selectors are alternatives, schemas survive their way, plans are carried out once.

use std::collections::BTreeMap;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ResourceScope;
use carrick_bind_api::claims::{Claim, NamedObjects};
use carrick_bind_api::conditions::{self, Condition, ConditionStatus, Severity};
use carrick_bind_api::identity::{Contract, contract_namespace};
use carrick_bind_api::jiff::Timestamp;
use carrick_bind_api::mapping::{KeyMapping, ObjectKey, ServiceNamespaces};
use carrick_bind_api::schema::{self, CrdPlan};
use carrick_bind_api::v1alpha2::{
    ApiServiceBinding, ApiServiceExport, ApiServiceNamespace, ExportedResource, InformerScope, Isolation,
    PermissionClaim,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Few and short names, so that they meet; with hyphens, because prefixes end in one.
fn name() -> impl Strategy<Value = String> {
    "[ab](-?[ab]){0,3}"
}

fn mapping() -> impl Strategy<Value = (KeyMapping, bool)> {
    let isolation = prop::sample::select(vec![Isolation::Prefixed, Isolation::Namespaced, Isolation::None]);
    (isolation, any::<bool>(), name()).prop_map(|(isolation, namespaced, contract)| {
        let scope = if namespaced { ResourceScope::Namespaced } else { ResourceScope::Cluster };
        (KeyMapping::new(&scope, &isolation, &contract).unwrap(), namespaced)
    })
}

fn namespaces() -> impl Strategy<Value = ServiceNamespaces> {
    prop::collection::btree_map(name(), name(), 0..6).prop_map(|pairs| {
        let objects = pairs.into_iter().map(|(name, assigned)| {
            let mut object = ApiServiceNamespace::new(name);
            object.status.namespace = assigned;
            object
        });
        ServiceNamespaces::new(&objects.collect::<Vec<_>>())
    })
}

fn key() -> impl Strategy<Value = ObjectKey> {
    (prop::option::of(name()), name()).prop_map(|(namespace, name)| ObjectKey { namespace, name })
}

proptest! {
    #[test]
    fn a_mapping_leads_there_and_back((mapping, _) in mapping(), namespaces in namespaces(), key in key()) {
        if let Ok(there) = mapping.to_provider(&key, &namespaces) {
            prop_assert_eq!(mapping.to_consumer(&there, &namespaces), Some(key));
        }
    }

    #[test]
    fn what_comes_back_would_go_to_the_same_place((mapping, _) in mapping(), namespaces in namespaces(), key in key()) {
        if let Some(here) = mapping.to_consumer(&key, &namespaces) {
            prop_assert_eq!(mapping.to_provider(&here, &namespaces), Ok(key));
        }
    }

    #[test]
    fn no_two_objects_share_a_copy((mapping, _) in mapping(), namespaces in namespaces(), keys in prop::collection::btree_set(key(), 0..20)) {
        let mut copies = BTreeMap::new();
        for key in keys {
            if let Ok(copy) = mapping.to_provider(&key, &namespaces) {
                let other = copies.insert(copy, key.clone());
                prop_assert!(other.is_none(), "{:?} and {:?}", key, other);
            }
        }
    }

    #[test]
    fn whatever_has_the_right_scope_can_be_mapped((mapping, namespaced) in mapping(), namespaces in namespaces(), key in key()) {
        let known = key.namespace.as_deref().is_none_or(|namespace| namespaces.assigned_to(namespace).is_some());
        let wanted = namespaced == key.namespace.is_some() && known;
        prop_assert_eq!(mapping.to_provider(&key, &namespaces).is_ok(), wanted);
    }

    #[test]
    fn two_consumers_with_contracts_of_their_own_never_meet(a in name(), b in name(), one in name(), other in name()) {
        // Names of contracts have one length, so none is the beginning of another.
        let contract = |identity: &str| contract_namespace("cluster-", identity);
        prop_assume!(a != b && contract(&a).len() == contract(&b).len());
        for isolation in [Isolation::Prefixed, Isolation::Namespaced] {
            let mapping = |identity: &str| KeyMapping::new(&ResourceScope::Cluster, &isolation, &contract(identity)).unwrap();
            let none = ServiceNamespaces::default();
            let (first, second) = (ObjectKey::cluster(one.clone()), ObjectKey::cluster(other.clone()));
            prop_assert_ne!(mapping(&a).to_provider(&first, &none), mapping(&b).to_provider(&second, &none));
            let copy = mapping(&a).to_provider(&first, &none).unwrap();
            prop_assert_eq!(mapping(&b).to_consumer(&copy, &none), None);
        }
    }
}

fn export() -> ApiServiceExport {
    let mut export = ApiServiceExport::new("e");
    export.spec.resources = vec![ExportedResource::new("wild.io", "sheriffs", &["v1"])];
    export.spec.isolation = Isolation::Prefixed;
    export
}

fn compile(selector: &Value) -> Claim {
    let claim = json!({"resource": "secrets", "selector": selector});
    let claim: PermissionClaim = serde_json::from_value(claim).unwrap();
    Claim::compile(&claim, &export()).unwrap()
}

/// Whether a selector selects an object, given objects that name others.
fn selects(selector: &Value, object: &Value, sheriffs: &[Value]) -> bool {
    let claim = compile(selector);
    claim.selects(object, &named(&claim, sheriffs)).is_some()
}

fn named(claim: &Claim, sheriffs: &[Value]) -> NamedObjects {
    let mut named = NamedObjects::default();
    for (place, reference) in claim.references().iter().enumerate() {
        for (number, sheriff) in sheriffs.iter().enumerate() {
            named.update(place, reference, &ObjectKey::cluster(number.to_string()), Some(sheriff));
        }
    }
    named
}

fn labels() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[ab]", "[xy]", 0..3).prop_map(|labels| json!(labels))
}

fn object() -> impl Strategy<Value = Value> {
    ("[mn]", "[pq]", labels()).prop_map(
        |(namespace, name, labels)| json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}}),
    )
}

fn requirement() -> impl Strategy<Value = Value> {
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
    ("[ab]", operator, prop::collection::vec("[xy]", 1..3)).prop_map(|(key, operator, values)| {
        let values = if operator.ends_with("In") { values } else { Vec::new() };
        json!({"key": key, "operator": operator, "values": values})
    })
}

/// One selector of each part, and any of them left out.
fn selector() -> impl Strategy<Value = Value> {
    let labels = (labels(), prop::collection::vec(requirement(), 0..2))
        .prop_map(|(labels, expressions)| json!({"matchLabels": labels, "matchExpressions": expressions}));
    let named = prop::collection::vec(
        (prop::option::of("[mn]"), "[pq]").prop_map(|(namespace, name)| json!({"name": name, "namespace": namespace})),
        0..3,
    );
    let namespace = prop::sample::select(vec!["", "spec.refs.#.namespace", "spec.other"]);
    let references = namespace.prop_map(|namespace| {
        json!([{"group": "wild.io", "resource": "sheriffs", "jsonPath": {"name": "spec.refs.#.name", "namespace": namespace}}])
    });
    (prop::option::of(labels), prop::option::of(named), prop::option::of(references)).prop_map(
        |(labels, named, references)| {
            let mut selector = json!({});
            for (key, part) in
                [("labelSelector", labels), ("namedResources", named.map(Value::from)), ("references", references)]
            {
                if let Some(part) = part {
                    selector[key] = part;
                }
            }
            selector
        },
    )
}

fn sheriff() -> impl Strategy<Value = Value> {
    let reference =
        ("[pq]", prop::option::of("[mn]")).prop_map(|(name, namespace)| json!({"name": name, "namespace": namespace}));
    (prop::option::of("[mn]"), prop::collection::vec(reference, 0..3)).prop_map(
        |(namespace, refs)| json!({"metadata": {"name": "s", "namespace": namespace}, "spec": {"refs": refs}}),
    )
}

proptest! {
    #[test]
    fn the_parts_of_a_selector_are_alternatives(
        selector in selector(), object in object(), sheriffs in prop::collection::vec(sheriff(), 0..3),
    ) {
        let parts = selector.as_object().unwrap().iter();
        let any = parts.into_iter().any(|(key, part)| selects(&json!({key: part}), &object, &sheriffs));
        prop_assert_eq!(selects(&selector, &object, &sheriffs), any);
    }

    #[test]
    fn an_owner_label_changes_nothing(
        selector in selector(), object in object(), sheriffs in prop::collection::vec(sheriff(), 0..3),
        owner in prop::sample::select(vec!["provider", "consumer"]),
    ) {
        let mut labelled = object.clone();
        labelled["metadata"]["labels"]["kube-bind.io/owner"] = json!(owner);
        prop_assert_eq!(selects(&selector, &labelled, &sheriffs), selects(&selector, &object, &sheriffs));
    }

    #[test]
    fn both_sides_get_the_same_answer(
        selector in selector(), object in object(), sheriffs in prop::collection::vec(sheriff(), 0..3),
    ) {
        let assigned = ["m", "n"].map(|name| {
            let mut object = ApiServiceNamespace::new(name);
            object.status.namespace = format!("contract-{name}");
            object
        });
        let namespaces = ServiceNamespaces::new(&assigned);
        let claim = compile(&selector);
        let named = named(&claim, &sheriffs);
        let mut copy = object.clone();
        let namespace = object["metadata"]["namespace"].as_str().unwrap();
        copy["metadata"]["namespace"] = json!(format!("contract-{namespace}"));
        let here = claim.selects(&object, &named);
        let there = claim.selects_on_provider(&copy, &namespaces, &named);
        let key = ObjectKey::namespaced(namespace, object["metadata"]["name"].as_str().unwrap());
        prop_assert_eq!(there, here.map(|selected| (key, selected)));
        prop_assert_eq!(claim.selects_on_provider(&object, &namespaces, &named), None);
    }

    #[test]
    fn an_index_that_follows_changes_is_the_one_made_of_the_end(
        selector in selector(), steps in prop::collection::vec((0..3_usize, prop::option::of(sheriff())), 0..12),
    ) {
        let claim = compile(&selector);
        let (mut followed, mut end) = (NamedObjects::default(), BTreeMap::new());
        for (which, sheriff) in steps {
            for (place, reference) in claim.references().iter().enumerate() {
                let key = ObjectKey::cluster(which.to_string());
                let before = followed.clone();
                let changed = followed.update(place, reference, &key, sheriff.as_ref());
                // What changed is exactly what only one of both knows.
                let only = |a: &NamedObjects, b: &NamedObjects| a.iter().filter(|it| !b.iter().any(|other| other == *it)).count();
                prop_assert_eq!(changed.len(), only(&before, &followed) + only(&followed, &before));
            }
            end.insert(which, sheriff);
        }
        let mut made = NamedObjects::default();
        for (which, sheriff) in &end {
            for (place, reference) in claim.references().iter().enumerate() {
                made.update(place, reference, &ObjectKey::cluster(which.to_string()), sheriff.as_ref());
            }
        }
        prop_assert_eq!(followed, made);
    }
}

fn crd() -> impl Strategy<Value = Value> {
    let version = (any::<bool>(), any::<bool>(), prop::option::of("[a-z]{1,5}"), any::<bool>());
    (prop::collection::vec(version, 1..4), any::<bool>(), any::<bool>()).prop_map(|(versions, cluster, converted)| {
        let last = versions.len() - 1;
        let versions: Vec<Value> = versions
            .into_iter()
            .enumerate()
            .map(|(number, (served, status, description, column))| {
                let mut version = json!({"name": format!("v{}", number + 1), "served": served || number == last,
                    "storage": number == last, "schema": {"openAPIV3Schema": {"type": "object"}}});
                if status {
                    version["subresources"] = json!({"status": {}});
                }
                if let Some(description) = description {
                    version["schema"]["openAPIV3Schema"]["description"] = json!(description);
                }
                if column {
                    version["additionalPrinterColumns"] = json!([{"name": "A", "type": "string", "jsonPath": ".a"}]);
                }
                version
            })
            .collect();
        let mut spec = json!({"group": "g.io", "scope": if cluster { "Cluster" } else { "Namespaced" },
            "names": {"plural": "things", "kind": "Thing"}, "versions": versions});
        if converted {
            spec["conversion"] = json!({"strategy": "None"});
        }
        json!({"metadata": {"name": "things.g.io"}, "spec": spec})
    })
}

proptest! {
    #[test]
    fn a_crd_survives_the_way_to_the_consumer_and_is_then_kept(crd in crd()) {
        let mut binding = ApiServiceBinding::new("b");
        "u".clone_into(&mut binding.metadata.uid);
        let bound = schema::from_crd(&crd, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
        let made = schema::crd(&bound, &binding, None).unwrap();
        prop_assert_eq!(&made["spec"], &crd["spec"]);
        prop_assert_eq!(schema::plan(Some(&made), &made, &binding), Ok(CrdPlan::Keep));
        // And the CRD of the consumer could be exported again.
        let again = schema::from_crd(&made, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
        prop_assert_eq!(schema::hash([&again.spec]), schema::hash([&bound.spec]));
    }

    #[test]
    fn another_schema_is_another_hash_and_is_written_once(old in crd(), new in crd()) {
        let mut binding = ApiServiceBinding::new("b");
        "u".clone_into(&mut binding.metadata.uid);
        let bound = |crd: &Value| schema::from_crd(crd, InformerScope::Cluster, &Isolation::Prefixed).unwrap();
        let (old, new) = (bound(&old), bound(&new));
        prop_assert_eq!(schema::hash([&old.spec]) == schema::hash([&new.spec]), old.spec == new.spec);
        let (there, wanted) = (schema::crd(&old, &binding, None).unwrap(), schema::crd(&new, &binding, None).unwrap());
        match schema::plan(Some(&there), &wanted, &binding) {
            Ok(CrdPlan::Keep) => prop_assert_eq!(old.spec, new.spec),
            Ok(CrdPlan::Replace(written)) => {
                prop_assert_eq!(schema::plan(Some(&written), &wanted, &binding), Ok(CrdPlan::Keep));
            }
            Ok(CrdPlan::Create(_)) => prop_assert!(false, "it is there"),
            Err(problem) => prop_assert!(old.spec.scope != new.spec.scope, "{}", problem),
        }
    }

    #[test]
    fn a_contract_is_remembered(namespace in "[a-z]{1,5}", uid in "[0-9a-f]{1,5}", identity in prop::option::of("[a-z/:]{1,8}")) {
        let contract = Contract { namespace, uid, identity };
        prop_assert_eq!(Contract::remembered(&contract.to_text()), Some(contract));
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let status = prop::sample::select(vec![ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown]);
    let severity = prop::sample::select(vec![Severity::Error, Severity::Warning, Severity::Info]);
    ("[A-D]", status, severity, "[a-c]").prop_map(|(type_, status, severity, message)| {
        let mut condition = Condition::holds(type_);
        if status == ConditionStatus::False {
            condition.severity = severity;
        }
        condition.status = status;
        condition.message = message;
        condition
    })
}

proptest! {
    #[test]
    fn conditions_stay_sorted_and_setting_them_again_changes_nothing(all in prop::collection::vec(condition(), 1..8)) {
        let at = |second: usize| Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        let mut conditions = Vec::new();
        for (second, condition) in all.iter().enumerate() {
            conditions::set(&mut conditions, condition.clone(), at(second));
            conditions::summarize(&mut conditions, at(second));
        }
        let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        let mut sorted = types.clone();
        sorted.sort_by_key(|type_| (*type_ != "Ready", type_.to_string()));
        sorted.dedup();
        prop_assert_eq!(&types, &sorted);
        let bad = conditions[1..].iter().any(|condition| condition.status == ConditionStatus::False);
        prop_assert_eq!(conditions[0].status == ConditionStatus::False, bad);
        let before = conditions.clone();
        for condition in before.iter().skip(1) {
            conditions::set(&mut conditions, condition.clone(), at(99));
        }
        conditions::summarize(&mut conditions, at(99));
        prop_assert_eq!(conditions, before);
    }
}
