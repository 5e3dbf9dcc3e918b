//! Objects that are not synchronized any more.

use super::*;

fn filtered() -> Rules {
    rules(json!({"filter": {"resource": {"matchLabels": {"include": "me"}}}}))
}

fn to_let_go(spec: Value) -> Rules {
    afterwards(Duty::LetGo, spec)
}

fn afterwards(duty: Duty, spec: Value) -> Rules {
    Rules::afterwards(duty, &published(spec), &with_status(), "agent").unwrap()
}

#[test]
fn without_valid_rules_everything_stays_as_it_is() {
    let broken = afterwards(Duty::End, json!({"naming": {"name": "{{"}}));
    let mut model = Model::with_source(json!({"replicas": 1}));
    assert_eq!(model.plan(&broken), Plan::default(), "nothing is begun");
    model.settle(&rules(json!({})));
    model.set_spec(json!({"replicas": 2}));
    assert_eq!(model.plan(&broken), Plan::default(), "nothing is changed or let go");
}

#[test]
fn objects_that_do_not_take_part_any_more_are_let_go_and_may_come_back() {
    for without in [filtered(), to_let_go(json!({}))] {
        let mut model = Model::with_source(json!({"replicas": 1}));
        assert_eq!(model.plan(&without), Plan::default(), "what never took part is left alone");
        model.settle(&rules(json!({})));
        let (copy, state) = (model.copy.clone(), model.state.clone());
        model.settle(&without);
        assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([]));
        assert_eq!((&model.copy, &model.state), (&copy, &state), "copy and memory stay");
        assert_eq!(model.events.last(), Some(&Event::Released));
        model.set_spec(json!({"replicas": 2}));
        assert_eq!(model.plan(&without), Plan::default());
        model.settle(&rules(json!({})));
        assert_eq!(model.copy.as_ref().unwrap()["spec"], json!({"replicas": 2}));
        assert_eq!(model.copy.as_ref().unwrap()["metadata"]["uid"], copy.unwrap()["metadata"]["uid"]);
        assert_eq!(model.source.as_ref().unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
    }
}

#[test]
fn what_is_being_deleted_when_it_is_let_go_takes_its_copy_along() {
    for without in [filtered(), to_let_go(json!({})), afterwards(Duty::End, json!({"naming": {"name": "{{"}}))] {
        for crash in 0..5 {
            let mut model = Model::with_source(json!({}));
            model.settle(&rules(json!({})));
            model.delete_source();
            model.crash_after(&without, crash);
            model.settle(&without);
            assert!(model.source.is_none() && model.copy.is_none() && model.state.is_empty());
        }
    }
}

#[test]
fn a_finalizer_that_others_need_is_left_to_them() {
    for without in [filtered(), to_let_go(json!({}))] {
        // Held as a related object of another primary: there is neither a copy nor a memory of ours.
        let mut model = Model::with_source(json!({}));
        model.source.as_mut().unwrap()["metadata"]["finalizers"] = json!([FINALIZER]);
        assert_eq!(model.plan(&without), Plan::default());
        model.delete_source();
        assert_eq!(model.plan(&without), Plan::default());
        // Let go, and held again by somebody else since.
        let mut model = Model::with_source(json!({}));
        model.settle(&rules(json!({})));
        model.let_go = true;
        assert_eq!(model.plan(&without), Plan::default());
    }
}

#[test]
fn a_namespace_out_of_sight_changes_nothing() {
    let by_namespace = rules(json!({"filter": {"namespace": {"matchLabels": {"include": "me"}}}}));
    let mut model = Model::with_source(json!({}));
    assert_eq!(model.plan(&by_namespace), Plan::default());
    model.settle(&rules(json!({})));
    assert_eq!(model.plan(&by_namespace), Plan::default());
    model.delete_source();
    model.settle(&by_namespace);
    assert!(model.source.is_none() && model.copy.is_none());
}

#[test]
fn objects_held_together_with_their_primary_are_let_go_with_it() {
    let secret = json!({"metadata": {"name": "creds", "namespace": "default", "resourceVersion": "7",
        "finalizers": ["theirs", FINALIZER]}});
    let kind = ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Secret".into(),
        plural: "secrets".into(),
        namespaced: true,
    };
    let at = Place { side: Side::Kcp, kind: kind.into(), namespace: Some("default".into()), name: "creds".into() };
    let mut model = Model::with_source(json!({}));
    model.settle(&rules(json!({})));
    model.others = vec![(at.clone(), secret)];
    let expected = Step::SetFinalizers { at, finalizers: vec!["theirs".into()], resource_version: "7".into() };
    assert_eq!(model.plan(&filtered()).steps[0], expected);
    model.delete_source();
    assert_eq!(model.plan(&to_let_go(json!({}))).steps[0], expected);
}

#[test]
fn several_copies_do_not_keep_an_object_from_being_let_go() {
    let mut source = Model::with_source(json!({})).source.unwrap();
    source["metadata"]["finalizers"] = json!([FINALIZER]);
    let names = ["a/x".to_owned(), "b/y".to_owned()];
    let seen = Seen {
        key: &key(),
        workspace_path: None,
        source: Some(&source),
        namespace: None,
        copies: Copies::Many(&names),
        state: &State::default(),
        related: None,
        others: &[],
        let_go: false,
    };
    assert_eq!(decide(&filtered(), seen).unwrap().steps.len(), 2);
}
