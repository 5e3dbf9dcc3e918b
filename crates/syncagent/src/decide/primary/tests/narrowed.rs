//! Orders of which kcp shows less than they have.

use serde_json::{Value, json};

use super::{Model, rules};
use crate::decide::Step;
use crate::rules::Rules;

fn spec() -> Value {
    json!({ "size": 1, "color": "blue", "disks": [{ "name": "a", "kind": "fast" }] })
}

/// What kcp shows by a schema that knows neither colours nor kinds of disks.
fn pruned() -> Value {
    json!({ "size": 1, "disks": [{ "name": "a" }] })
}

fn placed(rules: &Rules) -> Model {
    let mut model = Model::with_source(spec());
    model.source.as_mut().unwrap()["metadata"]["generation"] = 1.into();
    model.settle(rules);
    model
}

fn content(model: &Model) -> &Value {
    &model.copy.as_ref().unwrap()["spec"]
}

/// Rules for both memories.
fn both() -> [Rules; 2] {
    [false, true].map(|apply| Rules { apply, ..rules(json!({})) })
}

#[test]
fn copies_keep_what_kcp_does_not_show_any_more_until_the_order_is_changed() {
    for newer in both() {
        let mut model = placed(&newer);
        let older = Rules { rolled_back: true, ..newer.clone() };
        model.source.as_mut().unwrap()["spec"] = pruned();
        let plan = model.plan(&older);
        assert!(plan.steps.is_empty(), "apply {}: {:?}", newer.apply, plan.steps);
        let told = plan.notices.join(" ");
        assert!(
            told.contains("spec.color, spec.disks.0.kind of this order")
                && told.contains("syncagent.kcp.io/rolled-back"),
            "{told}"
        );
        model.settle(&older);
        assert_eq!(*content(&model), spec());

        // The status comes back all the same.
        model.copy.as_mut().unwrap()["status"] = json!({ "phase": "Ready" });
        model.settle(&older);
        assert_eq!(model.source.as_ref().unwrap()["status"]["phase"], "Ready");

        // Once the newer schema is approved again, there is nothing to do.
        model.source.as_mut().unwrap()["spec"] = spec();
        assert!(model.plan(&newer).steps.is_empty() && model.plan(&newer).notices.is_empty());

        // Whoever changes the order loses the fields in kcp, too.
        let source = model.source.as_mut().unwrap();
        source["spec"] = pruned();
        source["spec"]["size"] = 2.into();
        source["metadata"]["generation"] = 2.into();
        model.settle(&older);
        assert_eq!(*content(&model), json!({ "size": 2, "disks": [{ "name": "a" }] }), "apply {}", newer.apply);
    }
}

#[test]
fn other_changes_are_carried_over_after_a_rollback() {
    for newer in both() {
        let mut model = placed(&newer);
        let older = Rules { rolled_back: true, ..newer };
        model.source.as_mut().unwrap()["metadata"]["labels"] = json!({ "team": "a" });
        model.settle(&older);
        assert_eq!(model.copy.as_ref().unwrap()["metadata"]["labels"]["team"], "a");
        let source = model.source.as_mut().unwrap();
        source["spec"]["color"].take();
        source["spec"].as_object_mut().unwrap().remove("color");
        source["metadata"]["generation"] = 2.into();
        model.settle(&older);
        assert_eq!(content(&model)["color"], Value::Null, "the consumer has removed it");
    }
}

#[test]
fn without_a_rollback_rules_that_remove_fields_do_so() {
    let mut model = placed(&rules(json!({})));
    let drops = rules(json!({ "mutation": { "spec": [{ "delete": { "path": "spec.color" } }] } }));
    let plan = model.plan(&drops);
    assert!(plan.steps.iter().any(|step| matches!(step, Step::Edit { .. })), "{:?}", plan.steps);
    model.settle(&drops);
    assert_eq!(content(&model)["color"], Value::Null);
}
