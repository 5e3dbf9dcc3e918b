//! What the provider does not want, and what consumers are told.

use super::*;
use crate::api::{FINALIZER, PLACED_GENERATION, REFUSAL, WITHDRAWAL};
use crate::decide::Refusal;
use crate::rules::Duty;

fn refused(model: &Model, rules: &Rules) -> Option<String> {
    match model.try_plan(rules) {
        Err(DecideError::Refused(why)) => Some(why.to_string()),
        other => other.map(|_| None).unwrap(),
    }
}

fn admitting(expression: &str) -> Rules {
    let pr = published(json!({"admission": [{"expression": expression, "message": "no"}], "feedback": "Annotations"}));
    Rules::compile(&pr, &with_status(), "agent").unwrap().admitting(&pr, &with_status()).unwrap()
}

#[test]
fn above_the_limit_nothing_is_written_and_what_is_placed_stays() {
    let limited = rules(json!({"limits": {"objectsPerWorkspace": 2}}));
    let mut model = Model { ahead: 2, ..Model::with_source(json!({"image": "a"})) };
    assert_eq!(refused(&model, &limited), Some(Refusal::Limit(2).to_string()));
    model.ahead = 1;
    model.settle(&limited);
    assert!(model.copy.is_some());
    // The limit is lowered, and its spec changes.
    let none = rules(json!({"limits": {"objectsPerWorkspace": 0}}));
    model.ahead = 7;
    model.source.as_mut().unwrap()["spec"]["image"] = json!("b");
    model.settle(&none);
    assert_eq!(model.copy.as_ref().unwrap()["spec"]["image"], "b");
    // And it can end.
    model.source.as_mut().unwrap()["metadata"]["deletionTimestamp"] = json!("now");
    model.settle(&none);
    assert!(model.copy.is_none() && model.source.is_none());
}

#[test]
fn what_breaks_a_rule_is_not_placed_and_its_change_is_not_carried_over() {
    let strict = admitting("self.spec.replicas <= 3");
    let mut model = Model::with_source(json!({"replicas": 4}));
    model.source.as_mut().unwrap()["metadata"]["generation"] = json!(1);
    assert_eq!(refused(&model, &strict).as_deref(), Some("no"));
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(3);
    model.settle(&strict);
    assert_eq!(model.copy.as_ref().unwrap()["spec"]["replicas"], 3);
    let annotations = |model: &Model| model.source.as_ref().unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations(&model)[PLACED_GENERATION], "1");
    assert_eq!(annotations(&model)[REFUSAL], Value::Null);
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(5);
    assert_eq!(refused(&model, &strict).as_deref(), Some("no"));
    // A rule that is made later does not disturb what is in line: its status still comes back.
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(3);
    model.copy.as_mut().unwrap()["status"] = json!({"phase": "fine"});
    let stricter = admitting("self.spec.replicas <= 1");
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"a": "b"});
    model.settle(&stricter);
    assert_eq!(model.source.as_ref().unwrap()["status"]["phase"], "fine");
    assert_eq!(model.copy.as_ref().unwrap()["metadata"]["labels"]["a"], "b");
    // The same where copies are written by server-side apply.
    let applying = Rules { apply: true, ..admitting("self.spec.replicas <= 1") };
    model.settle(&applying);
    model.source.as_mut().unwrap()["metadata"]["labels"] = json!({"a": "c"});
    model.settle(&applying);
    model.source.as_mut().unwrap()["spec"]["replicas"] = json!(2);
    assert_eq!(refused(&model, &applying).as_deref(), Some("no"));
}

#[test]
fn what_is_withdrawn_is_told_so_before_it_is_released() {
    let mut model = Model::with_source(json!({"image": "a"}));
    model.settle(&rules(json!({})));
    let ending = Rules { duty: Duty::Release, withdrawal: Some("today".to_owned()), ..rules(json!({})) };
    model.settle(&ending);
    let metadata = &model.source.as_ref().unwrap()["metadata"];
    assert_eq!(metadata["annotations"][WITHDRAWAL], "today");
    assert!(!metadata["finalizers"].as_array().is_some_and(|all| all.contains(&json!(FINALIZER))), "{metadata}");
    assert!(model.copy.is_some());
}
