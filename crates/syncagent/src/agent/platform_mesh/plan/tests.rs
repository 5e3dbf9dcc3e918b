//! What becomes of AcceptAPIs.

use super::*;

const NAME: &str = "certificates.example.com";

fn published(accept: Value, annotations: Value) -> PublishedResource {
    let versions = json!([
        { "name": "v1alpha1", "storage": true }, { "name": "v1beta1" }, { "name": "v1", "served": false },
    ]);
    let implements = json!({ "resource": NAME, "kind": "Certificate", "versions": versions, "accept": accept });
    serde_json::from_value(json!({
        "metadata": { "name": "certificates", "uid": "u1", "annotations": annotations }, "spec": { "implements": implements },
    }))
    .unwrap()
}

fn filters() -> Value {
    json!({ "filters": [
        { "key": "fqdn", "suffix": "corp.com" }, { "key": "size", "boundary": { "max": 3 } }, { "key": "tier", "valueIn": ["dev"] },
    ]})
}

fn wanted() -> Value {
    let mut spec = json!({
        "gvr": { "group": "example.com", "version": "v1alpha1", "resource": "certificates" }, "apiExportName": "e",
    });
    spec["filters"] = filters()["filters"].clone();
    spec
}

fn stored(spec: Value, agent: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "broker.platform-mesh.io/v1alpha1", "kind": "AcceptAPI", "spec": spec, "status": { "x": 1 },
        "metadata": {
            "name": NAME, "uid": "a", "resourceVersion": "7", "finalizers": ["broker.platform-mesh.io/verification"],
            "labels": { MANAGED_BY: MANAGER }, "annotations": { AGENT_NAME: agent, KEPT_FOR: uid },
        },
    })
}

fn planned(wish: &Wish, found: &[Value]) -> Vec<Plan> {
    let found = found.iter().map(|it| (it["metadata"]["name"].as_str().unwrap().to_owned(), it.clone())).collect();
    plan(wish, &found, Owner { agent: "me", former: &BTreeSet::from(["late".to_owned()]), uid: "u1" })
}

fn offer() -> Wish {
    let pr = published(filters(), json!({}));
    Wish::of(&pr, Some(&pr), true, "e")
}

#[test]
fn what_is_asked_for_is_made_kept_and_repaired() {
    assert_eq!(offer(), Wish::Offer(NAME.to_owned(), wanted()));
    let Plan::Create(made) = &planned(&offer(), &[])[0] else { panic!("it is not made") };
    assert_eq!((&made["spec"], &made["metadata"]["name"]), (&wanted(), &json!(NAME)));
    let good = stored(wanted(), "me", "u1");
    assert_eq!(planned(&offer(), std::slice::from_ref(&good)), [Plan::Keep(NAME.to_owned())]);

    let edited = stored(json!({ "apiExportName": "other" }), "me", "u1");
    assert_eq!(planned(&offer(), &[edited]), [Plan::Replace(good.clone())], "only spec and marks change");
    // A PublishedResource that was applied again, an agent that is no more, and somebody who has handed hers over.
    for found in [stored(wanted(), "me", "u0"), stored(wanted(), "late", "u1"), {
        let mut handed = stored(wanted(), "me", "u1");
        handed["metadata"]["annotations"] = json!({});
        handed
    }] {
        assert_eq!(planned(&offer(), &[found]), [Plan::Replace(good.clone())]);
    }
}

#[test]
fn those_of_others_are_never_touched() {
    let mut by_hand = stored(json!({}), "me", "u1");
    by_hand["metadata"]["labels"] = json!({ "team": "x" });
    let drained = published(filters(), json!({ DRAIN: "true" }));
    let drain = Wish::of(&drained, Some(&drained), true, "e");
    for foreign in [by_hand, stored(json!({}), "another", "u1")] {
        assert_eq!(planned(&offer(), std::slice::from_ref(&foreign)), [Plan::Foreign(NAME.to_owned())]);
        assert_eq!(planned(&drain, &[foreign]), []);
    }
}

#[test]
fn only_the_words_of_the_provider_delete_one() {
    let good = [stored(wanted(), "me", "u1")];
    let gone = [Plan::Delete(NAME.to_owned(), "a".to_owned(), "7".to_owned())];
    let (kept, without) = (published(filters(), json!({})), published(Value::Null, json!({})));
    let (drained, not_drained) =
        (published(filters(), json!({ DRAIN: "true" })), published(filters(), json!({ DRAIN: "false" })));
    let mut withdrawn = published(filters(), json!({ crate::api::WITHDRAW_AT: "then" }));
    withdrawn.status.withdrawn_at = "then".to_owned();
    let mut other_kind = published(Value::Null, json!({}));
    other_kind.spec.implements = None;
    for (pr, serves) in [(&drained, true), (&drained, false), (&withdrawn, true), (&without, true), (&other_kind, true)]
    {
        assert_eq!(planned(&Wish::of(pr, Some(pr), serves, "e"), &good), gone);
    }
    // Also if the rules of today are not valid.
    assert_eq!(planned(&Wish::of(&drained, None, false, "e"), &good), gone);

    let (mut deleted, mut off) = (kept.clone(), kept.clone());
    deleted.metadata.deletion_timestamp = Some("now".to_owned());
    off.spec.synchronization = Some(crate::api::Synchronization { enabled: false });
    for (pr, valid, serves) in
        [(&kept, Some(&kept), false), (&kept, None, true), (&deleted, Some(&kept), true), (&off, Some(&off), true)]
    {
        let wish = Wish::of(pr, valid, serves, "e");
        assert!(matches!(wish, Wish::Hold(_)), "{wish:?}");
        assert_eq!(planned(&wish, &good), []);
        assert_eq!(planned(&wish, &[]), []);
    }
    assert_eq!(planned(&Wish::of(&not_drained, Some(&not_drained), true, "e"), &good), [Plan::Keep(NAME.to_owned())]);
}

#[test]
fn a_field_that_was_removed_takes_away_only_what_it_has_made() {
    let without = published(Value::Null, json!({}));
    let wish = Wish::of(&without, Some(&without), true, "e");
    assert_eq!(planned(&wish, &[stored(wanted(), "me", "u0")]), [], "another PublishedResource has asked for it");
    let mut earlier = stored(wanted(), "me", "u1");
    earlier["metadata"]["name"] = "certificates.old.example.com".into();
    let plans = planned(&offer(), &[stored(wanted(), "me", "u1"), earlier]);
    assert!(matches!(&plans[..], [Plan::Keep(_), Plan::Delete(name, ..)] if name.contains(".old.")), "{plans:?}");
}

#[test]
fn one_that_the_broker_still_holds_is_waited_for() {
    let mut ending = stored(wanted(), "me", "u1");
    ending["metadata"]["deletionTimestamp"] = "now".into();
    let drained = published(filters(), json!({ DRAIN: "true" }));
    for wish in [offer(), Wish::of(&drained, Some(&drained), true, "e")] {
        assert_eq!(planned(&wish, std::slice::from_ref(&ending)), [Plan::Ending(NAME.to_owned())]);
    }
}

#[test]
fn every_order_is_accepted_without_filters() {
    let pr = published(json!({}), json!({}));
    let Wish::Offer(_, spec) = Wish::of(&pr, Some(&pr), true, "e") else { panic!("nothing is offered") };
    assert_eq!(spec.get("filters"), None);
}
