use super::super::apiexport;
use super::*;
use serde_json::{Value, json};

const A: &str = "https://a/services/apiexport/prov/ex";
const B: &str = "https://b/services/apiexport/prov/ex";

fn slice(urls: &[&str]) -> Object {
    let endpoints: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
    Object::from_value(&json!({"metadata": {"name": "s"}, "status": {"endpoints": endpoints}})).unwrap()
}

fn binding(cluster: &str, name: &str, ready: bool) -> Object {
    bound_to(cluster, name, ready, "prov", "ex")
}

fn bound_to(cluster: &str, name: &str, ready: bool, export_cluster: &str, export: &str) -> Object {
    let status = if ready { "True" } else { "False" };
    Object::from_value(&json!({
        "metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}},
        "spec": {"reference": {"export": {"name": export}}},
        "status": {"apiExportClusterName": export_cluster, "conditions": [{"type": "Ready", "status": status}]},
    }))
    .unwrap()
}

/// Runs a script and returns what was reported, as words.
fn run(script: Vec<(&'static str, Event)>) -> Vec<String> {
    run_rules(with_grace(0), at(0, script))
}

/// What the fleet lacks in the course of a script.
fn lacks(script: Vec<(&'static str, Event)>) -> Vec<String> {
    let changes = changes(with_grace(0), at(0, script));
    changes.into_iter().filter(|change| change.starts_with("no ")).collect()
}

/// The same at certain seconds, without what the fleet lacks; time passes where there is no event.
fn run_rules(rules: Rules, script: Vec<(u64, &str, Option<Event>)>) -> Vec<String> {
    changes(rules, script).into_iter().filter(|change| !change.starts_with("no ")).collect()
}

fn changes(rules: Rules, script: Vec<(u64, &str, Option<Event>)>) -> Vec<String> {
    let mut engagement = Engagement::new(rules);
    let mut reported = Vec::new();
    for (seconds, source, event) in script {
        let now = Duration::from_secs(seconds);
        let events = match (source, event) {
            (_, None) => engagement.on_time(now),
            ("slice", Some(event)) => engagement.on_slice(event, now),
            (url, Some(event)) => engagement.on_binding(&url.into(), event),
        };
        reported.extend(events.into_iter().map(|event| match event {
            FleetChange::Up(url) => format!("up {}", &url[8..9]),
            FleetChange::Down(url) => format!("down {}", &url[8..9]),
            FleetChange::Engaged { cluster, endpoint, path: None } => format!("engaged {cluster} {}", &endpoint[8..9]),
            FleetChange::Disengaged { cluster, .. } => format!("disengaged {cluster}"),
            FleetChange::ApisChanged { cluster } => format!("other apis {cluster}"),
            FleetChange::ClaimsOpen { cluster, claims } => format!("{cluster} does not accept {claims}"),
            FleetChange::Waiting(lacks) => format!("no {lacks:?}"),
            FleetChange::Synced => "synced".to_owned(),
            FleetChange::Engaged { cluster, endpoint, path: Some(path) } => {
                format!("engaged {cluster} {} at {path}", &endpoint[8..9])
            }
            FleetChange::Path { cluster, path } => format!("path {cluster} {path}"),
            FleetChange::Met { cluster, object, stage } => format!("{stage:?} {} {cluster}", object.name),
        }));
    }
    reported
}

fn listed_slice(urls: &[&str]) -> Vec<(&'static str, Event)> {
    vec![("slice", Event::Begin), ("slice", Event::Listed(slice(urls))), ("slice", Event::Synced)]
}

#[test]
fn no_slice_and_no_endpoints_are_an_empty_fleet() {
    assert_eq!(run(vec![("slice", Event::Begin), ("slice", Event::Synced)]), ["synced"]);
    assert_eq!(run(listed_slice(&[])), ["synced"]);
}

#[test]
fn a_fleet_without_endpoints_is_reported_once_for_each_reason() {
    let again = || vec![("slice", Event::Begin), ("slice", Event::Synced)];
    let mut script = again();
    script.extend(again());
    script.extend([("slice", Event::Applied(slice(&[]))), ("slice", Event::Applied(slice(&[])))]);
    script.extend([("slice", Event::Applied(slice(&[A]))), ("slice", Event::Deleted(slice(&[A])))]);
    assert_eq!(lacks(script), ["no Object", "no Endpoints", "no Object"]);
    assert_eq!(lacks(listed_slice(&[A])), [""; 0]);
    assert_eq!(lacks(listed_slice(&[])), ["no Endpoints"]);
}

#[test]
fn a_cluster_is_engaged_once_by_its_first_ready_binding_and_disengaged_with_its_last() {
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", false))),
        (A, Event::Synced),
        (A, Event::Applied(binding("c", "one", true))),
        (A, Event::Applied(binding("c", "two", true))),
        (A, Event::Applied(binding("c", "one", false))),
        (A, Event::Applied(binding("c", "never-ready", false))),
        (A, Event::Deleted(binding("c", "two", true))),
        (A, Event::Deleted(binding("c", "one", false))),
        (A, Event::Deleted(binding("c", "never-ready", false))),
    ]);
    assert_eq!(run(script), ["up a", "synced", "engaged c a", "disengaged c"]);
}

#[test]
fn a_binding_that_follows_a_new_schema_is_told() {
    let bound = |schema: &str| {
        let mut value = binding("c", "one", true).value();
        value["status"]["boundResources"] = json!([{"resource": "widgets", "schema": {"name": schema}}]);
        Object::from_value(&value).unwrap()
    };
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(bound("v1"))),
        (A, Event::Synced),
        (A, Event::Applied(bound("v1"))),
        (A, Event::Applied(bound("v2"))),
        (A, Event::Begin),
        (A, Event::Listed(bound("v3"))),
        (A, Event::Synced),
    ]);
    assert_eq!(run(script), ["up a", "engaged c a", "synced", "other apis c", "other apis c"]);
}

#[test]
fn paths_are_told_when_they_become_known() {
    let at = |path: &str| {
        let mut value = binding("c", "one", true).value();
        value["metadata"]["annotations"]["kcp.io/path"] = json!(path);
        Object::from_value(&value).unwrap()
    };
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", true))),
        (A, Event::Synced),
        (A, Event::Applied(at("root:c"))),
        (A, Event::Applied(at("root:c"))),
        (A, Event::Deleted(at("root:c"))),
        (A, Event::Applied(at("root:d"))),
    ]);
    let wanted = ["up a", "engaged c a", "synced", "path c root:c", "disengaged c", "engaged c a at root:d"];
    assert_eq!(run(script), wanted);
}

#[test]
fn bindings_of_other_exports_do_not_count() {
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(bound_to("c", "other-name", true, "prov", "other"))),
        (A, Event::Listed(bound_to("d", "other-cluster", true, "elsewhere", "ex"))),
        (A, Event::Listed(bound_to("e", "silent", true, "", ""))),
        (A, Event::Synced),
    ]);
    assert_eq!(run(script), ["up a", "engaged e a", "synced"]);
}

#[test]
fn claims_that_a_consumer_has_not_accepted_are_reported_once() {
    let with = |accepted: &[&str]| {
        let claim = |resource: &str, state: &str| {
            let group = if resource == "widgets" { "example.io" } else { "" };
            json!({"group": group, "resource": resource, "verbs": ["*"], "selector": {"matchAll": true}, "state": state})
        };
        let decided =
            ["configmaps", "widgets"].map(|it| claim(it, if accepted.contains(&it) { "Accepted" } else { "Rejected" }));
        let mut value = binding("c", "one", true).value();
        value["apiVersion"] = json!("apis.kcp.io/v1alpha2");
        value["spec"]["permissionClaims"] = json!(decided);
        value["status"]["exportPermissionClaims"] = json!(["configmaps", "secrets", "widgets"].map(|it| claim(it, "")));
        Object::from_value(&value).unwrap()
    };
    let mut script = listed_slice(&[A]);
    script.extend([(A, Event::Begin), (A, Event::Listed(with(&["configmaps"]))), (A, Event::Synced)]);
    script.extend(
        [with(&["configmaps"]), with(&["configmaps", "widgets"]), binding("c", "one", true)]
            .map(|it| (A, Event::Applied(it))),
    );
    let wanted =
        ["up a", "engaged c a", "c does not accept secrets, widgets.example.io", "synced", "c does not accept secrets"];
    assert_eq!(run(script), wanted);
}

#[test]
fn a_new_list_finds_what_was_missed() {
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", true))),
        (A, Event::Listed(binding("d", "one", true))),
        (A, Event::Synced),
        (A, Event::Begin),
        (A, Event::Listed(binding("d", "one", false))),
        (A, Event::Listed(binding("e", "one", true))),
        (A, Event::Synced),
    ]);
    let wanted = ["up a", "engaged c a", "engaged d a", "synced", "engaged e a", "disengaged c"];
    assert_eq!(run(script), wanted);
}

#[test]
fn an_endpoint_takes_its_clusters_along() {
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", true))),
        (A, Event::Synced),
        ("slice", Event::Applied(slice(&[A, B]))),
        ("slice", Event::Applied(slice(&[B]))),
        (A, Event::Applied(binding("late", "one", true))),
        ("slice", Event::Deleted(slice(&[B]))),
    ]);
    let wanted = ["up a", "engaged c a", "synced", "up b", "disengaged c", "down a", "down b"];
    assert_eq!(run(script), wanted);
}

#[test]
fn a_slice_missing_from_a_new_list_takes_all_endpoints_along() {
    let mut script = listed_slice(&[A]);
    script.extend([("slice", Event::Begin), ("slice", Event::Synced)]);
    assert_eq!(run(script), ["up a", "down a", "synced"]);
}

#[test]
fn a_cluster_that_moves_stays_engaged() {
    let mut script = listed_slice(&[A, B]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", true))),
        (A, Event::Synced),
        (B, Event::Begin),
        (B, Event::Synced),
        (B, Event::Applied(binding("c", "one", true))),
        (A, Event::Deleted(binding("c", "one", true))),
        (B, Event::Deleted(binding("c", "one", true))),
    ]);
    let wanted = ["up a", "up b", "engaged c a", "synced", "engaged c b", "disengaged c"];
    assert_eq!(run(script), wanted);
}

fn at(seconds: u64, script: Vec<(&'static str, Event)>) -> Vec<(u64, &'static str, Option<Event>)> {
    script.into_iter().map(|(source, event)| (seconds, source, Some(event))).collect()
}

/// Two clusters at A, listed at the start.
fn two_clusters() -> Vec<(u64, &'static str, Option<Event>)> {
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "one", true))),
        (A, Event::Listed(binding("d", "one", true))),
        (A, Event::Synced),
    ]);
    at(0, script)
}

fn with_grace(seconds: u64) -> Rules {
    Rules { grace: Duration::from_secs(seconds), ..apiexport::rules(None) }
}

const TWO_CLUSTERS: [&str; 4] = ["up a", "engaged c a", "engaged d a", "synced"];

#[test]
fn an_endpoint_that_comes_back_in_time_was_never_gone() {
    let mut script = two_clusters();
    script.extend(at(10, vec![("slice", Event::Applied(slice(&[])))]));
    script.push((14, "", None));
    script.extend(at(14, vec![("slice", Event::Applied(slice(&[A])))]));
    script.push((30, "", None));
    assert_eq!(run_rules(with_grace(5), script), TWO_CLUSTERS);
}

#[test]
fn an_endpoint_that_stays_away_takes_its_clusters_along_after_the_grace_time() {
    for gone in [Event::Applied(slice(&[])), Event::Deleted(slice(&[A]))] {
        let mut script = two_clusters();
        script.extend(at(10, vec![("slice", gone)]));
        script.extend(at(12, vec![("slice", Event::Applied(slice(&[])))]));
        script.push((14, "", None));
        script.extend(at(14, vec![(A, Event::Applied(binding("e", "one", true)))]));
        script.push((15, "", None));
        let end = ["engaged e a", "disengaged c", "disengaged d", "disengaged e", "down a"];
        assert_eq!(run_rules(with_grace(5), script), [&TWO_CLUSTERS[..], &end].concat());
    }
}

#[test]
fn an_endpoint_is_not_kept_longer_than_its_last_cluster() {
    let mut script = two_clusters();
    script.extend(at(
        10,
        vec![
            (A, Event::Deleted(binding("c", "one", true))),
            ("slice", Event::Applied(slice(&[]))),
            (A, Event::Deleted(binding("d", "one", true))),
            ("slice", Event::Applied(slice(&[A]))),
            (A, Event::Begin),
            (A, Event::Listed(binding("d", "one", true))),
            (A, Event::Synced),
        ],
    ));
    let end = ["disengaged c", "disengaged d", "down a", "up a", "engaged d a"];
    assert_eq!(run_rules(with_grace(5), script), [&TWO_CLUSTERS[..], &end].concat());
}

#[test]
fn a_cluster_that_moves_away_before_it_arrives_leaves_in_between() {
    let mut script = two_clusters();
    script.extend(at(
        1,
        vec![
            ("slice", Event::Applied(slice(&[A, B]))),
            (B, Event::Begin),
            (B, Event::Synced),
            (A, Event::Deleted(binding("c", "one", true))),
            (B, Event::Applied(binding("c", "one", true))),
            (A, Event::Applied(binding("d", "one", false))),
        ],
    ));
    assert_eq!(
        run_rules(with_grace(5), script),
        [&TWO_CLUSTERS[..], &["up b", "disengaged c", "engaged c b"]].concat()
    );
}

#[test]
fn hooks_meet_what_counts_while_its_cluster_is_engaged() {
    let mut script = two_clusters();
    script.extend(at(
        1,
        vec![
            (A, Event::Applied(binding("c", "not-ready", false))),
            (A, Event::Applied(binding("c", "one", false))),
            (A, Event::Deleted(binding("c", "not-ready", false))),
            (A, Event::Deleted(binding("c", "one", false))),
            (A, Event::Begin),
            (A, Event::Synced),
        ],
    ));
    let wanted = [
        "up a",
        "engaged c a",
        "Added one c",
        "engaged d a",
        "Added one d",
        "synced",
        "Changed one c",
        "Removed one c",
        "disengaged c",
        "Removed one d",
        "disengaged d",
    ];
    assert_eq!(run_rules(Rules { meet: true, ..with_grace(5) }, script), wanted);
}

#[test]
fn a_filter_takes_the_place_of_readiness_but_not_of_the_export() {
    let filter: apiexport::Filter = Arc::new(|binding: &super::super::ApiBinding| binding.metadata.name != "no");
    let mut script = listed_slice(&[A]);
    script.extend([
        (A, Event::Begin),
        (A, Event::Listed(binding("c", "yes", false))),
        (A, Event::Listed(binding("d", "no", true))),
        (A, Event::Listed(bound_to("e", "yes", true, "prov", "other"))),
        (A, Event::Synced),
    ]);
    assert_eq!(run_rules(apiexport::rules(Some(filter)), at(0, script)), ["up a", "engaged c a", "synced"]);
}
