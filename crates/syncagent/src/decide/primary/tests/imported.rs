//! Orders of objects that were there before.

use super::*;
use crate::api::{IMPORTED, ON_DELETE, REMOTE_UID};
use crate::decide::import::{OnDelete, link_patch, order};

/// A linked object of generation 3, and its order.
fn imported(rules: &Rules, on_delete: OnDelete) -> Model {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "CronTab", "spec": {"replicas": 1}, "status": {"ready": true},
        "metadata": {"name": "theirs", "namespace": "prod", "uid": "t", "resourceVersion": "7", "generation": 3},
    });
    let mut source = order(rules, &object, &key(), &[]).unwrap();
    merge::apply(
        &mut source,
        &json!({"metadata": {"uid": "s", "resourceVersion": "1", "annotations": {IMPORTED: "t"}}}),
    );
    let mut copy = object.clone();
    merge::apply(&mut copy, &link_patch(rules, &object, &key(), None, on_delete));
    Model { source: Some(source), copy: Some(copy), ..Model::default() }
}

#[test]
fn a_linked_object_gets_nothing_from_its_order_until_that_changes() {
    for apply in [false, true] {
        let mut rules = rules(json!({}));
        rules.apply = apply;
        let mut model = imported(&rules, OnDelete::Keep);
        let before = model.copy.clone().unwrap();
        model.settle(&rules);
        let mut after = model.copy.clone().unwrap();
        after["metadata"]["resourceVersion"] = "7".into();
        if apply {
            // Who owns which field is known once the whole was applied, which changes nothing but the mark.
            after["metadata"]["annotations"] = before["metadata"]["annotations"].clone();
        }
        assert_eq!(after, before);
        assert_eq!(model.source.as_ref().unwrap()["status"], json!({"ready": true}));
        model.set_spec(json!({"replicas": 2}));
        model.settle(&rules);
        let copy = model.copy.as_ref().unwrap();
        assert_eq!((&copy["spec"], &copy["metadata"]["name"]), (&json!({"replicas": 2}), &json!("theirs")));
        assert_eq!(copy["metadata"]["annotations"][REMOTE_UID], "s");
    }
}

#[test]
fn the_end_of_its_order_keeps_an_imported_object_unless_somebody_wished_otherwise() {
    for (on_delete, changed) in [(OnDelete::Keep, false), (OnDelete::Keep, true), (OnDelete::Delete, false)] {
        let rules = rules(json!({}));
        let mut model = imported(&rules, on_delete);
        model.settle(&rules);
        if changed {
            model.set_spec(json!({"replicas": 2}));
            model.settle(&rules);
        }
        model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
        let plan = model.plan(&rules);
        let deletes = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        assert_eq!(deletes, on_delete == OnDelete::Delete, "{plan:?}");
        if !deletes {
            for step in plan.steps {
                model.execute(step);
            }
            let kept = model.copy.take().unwrap();
            assert_eq!(kept["metadata"]["annotations"], json!({ON_DELETE: "Keep"}), "{kept}");
            assert_eq!(kept["metadata"]["labels"], json!({}), "{kept}");
            model.settle(&rules);
            assert!(model.source.is_none(), "the order is gone");
        }
    }
}

#[test]
fn no_copy_is_made_for_an_imported_order_before_the_server_itself_was_asked() {
    let rules = rules(json!({}));
    for is_imported in [false, true] {
        let mut model = imported(&rules, OnDelete::Keep);
        model.copy = None;
        if !is_imported {
            model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({});
        }
        let steps = model.plan(&rules).steps;
        let at = |wanted: fn(&Step) -> bool| steps.iter().position(wanted);
        let (asks, creates) = (at(|it| *it == Step::ConfirmNoCopy), at(|it| matches!(it, Step::Create { .. })));
        assert_eq!(asks.is_some(), is_imported, "{steps:?}");
        assert!(asks.is_none_or(|asks| Some(asks) < creates), "{steps:?}");
    }
}

#[test]
fn no_consumer_keeps_an_object_of_the_provider() {
    let rules = rules(json!({}));
    let mut model = Model::with_source(json!({"replicas": 1}));
    model.source.as_mut().unwrap()["metadata"]["annotations"] = json!({ON_DELETE: "Keep"});
    model.settle(&rules);
    assert!(!model.copy.as_ref().unwrap().to_string().contains(ON_DELETE));
    model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = "now".into();
    assert!(model.plan(&rules).steps.iter().any(|step| matches!(step, Step::Delete { .. })));
}
