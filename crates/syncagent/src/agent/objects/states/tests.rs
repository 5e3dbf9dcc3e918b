//! What is kept of state Secrets, without a server.

use super::*;
use crate::decide::state::entry_key;
use crate::rules::metadata::WORDS;

fn secret(version: usize, entries: &[(&str, Value)]) -> Value {
    let source = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "a".into() };
    let encoded = |value: &Value| BASE64.encode(value.to_string().as_bytes());
    let data: BTreeMap<&str, String> = entries.iter().map(|(key, value)| (*key, encoded(value))).collect();
    json!({"data": data, "metadata": {"resourceVersion": version.to_string(), "labels": secret_labels(&source),
        "annotations": {REMOTE_KIND: "CronTab.example.com"}}})
}

#[test]
fn what_is_replaced_or_gone_does_not_count_any_more() {
    let mut known = KnownSecrets::default();
    for version in 0..100 {
        known.set("s", Some(&secret(version, &[("a", json!({"spec": "x".repeat(100)}))])));
    }
    assert_eq!(known.spent, known.secrets["s"].size());
    assert_eq!((known.names.values().next().unwrap().len(), known.kinds["CronTab.example.com"]), (1, 1));
    known.set("s", None);
    assert!(known.spent == 0 && known.names.is_empty() && known.kinds.is_empty());
}

#[test]
fn beyond_the_budget_checksums_are_kept_unless_only_content_tells_what_an_entry_is_about() {
    let state = || json!({"kind": "Secret", "spec": 1});
    let mut known = KnownSecrets { spent: BUDGET, ..KnownSecrets::default() };
    known.set("one", Some(&secret(1, &[("a", state())])));
    known.set("two", Some(&secret(1, &[("a", state()), ("b", state())])));
    assert!(known.secrets["one"].partial && known.secrets["one"].state().partial);
    assert!(!known.secrets["two"].partial, "an entry of the reference agent without a record");
    let told =
        |secret: &KeptSecret| secret.state().entries().all(|(_, entry)| entry.last.as_ref().unwrap().whole().is_some());
    assert!(!told(&known.secrets["one"]) && told(&known.secrets["two"]));
}

fn states() -> States {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    States::new(Client::try_from(config).unwrap(), "agent", "agent")
}

fn kind(version: &str) -> ApiKind {
    let (group, version) = ("example.com".to_owned(), version.to_owned());
    ApiKind { group, version, kind: "CronTab".into(), plural: "crontabs".into(), namespaced: true }
}

fn order(name: &str) -> SourceKey {
    SourceKey { cluster: "c".into(), namespace: "ns".into(), name: name.into() }
}

fn record() -> Record {
    let at = json!({"version": "v1", "kind": "Secret", "resource": "secrets", "namespace": "ns", "name": "s"});
    let stored = json!({"identifier": "creds", "origin": "kcp", "source": at, "copy": at});
    Record::read(&WORDS, stored.to_string().as_bytes()).unwrap()
}

/// Learns that an order uses a related object.
fn learn(states: &States, version: &str, source: &SourceKey) {
    let mut state = PrimaryState::default();
    let metadata = json!({"namespace": &*source.namespace, "name": &*source.name});
    let value = json!({"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": metadata});
    state.note(&entry_key(&source.cluster, &source.namespace, &source.name), value);
    state.track("related", record());
    let name = secret_name(&kind(version), source);
    let mut secret = states.secret(&kind(version), source, &name, None, &state);
    secret["metadata"]["resourceVersion"] = "1".into();
    secret["metadata"]["annotations"]["theirs"] = "x".into();
    states.learn(&name, Some(&secret));
}

#[tokio::test]
async fn another_version_of_a_kind_finds_what_is_remembered() {
    let states = states();
    learn(&states, "v1", &order("a"));
    assert!(!states.get(&kind("v2"), &order("a")).is_empty());
    assert!(states.get(&kind("v2"), &order("b")).is_empty());
}

#[tokio::test]
async fn orders_know_of_each_other_by_what_they_have_in_common() {
    let states = states();
    learn(&states, "v1", &order("a"));
    assert!(states.others(&kind("v1"), &order("a"), &record()).is_empty(), "there is nobody else");
    assert_eq!(states.others(&kind("v1"), &order("b"), &record()).len(), 1);
    states.learn(&secret_name(&kind("v1"), &order("a")), None);
    assert!(states.others(&kind("v1"), &order("b"), &record()).is_empty(), "it is gone");
}

#[tokio::test]
async fn what_others_have_noted_on_a_secret_stays() {
    let states = states();
    learn(&states, "v1", &order("a"));
    let (name, kept) = states.find(&kind("v1"), &order("a")).unwrap();
    let secret = states.secret(&kind("v1"), &order("a"), &name, Some(&kept), &PrimaryState::default());
    assert_eq!(
        (&secret["metadata"]["annotations"]["theirs"], &secret["metadata"]["resourceVersion"]),
        (&json!("x"), &json!("1"))
    );
}
