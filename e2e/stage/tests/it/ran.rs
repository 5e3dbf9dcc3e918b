//! What was played on which servers.

use carrick_e2e_stage::ran::{Count, Run, Versions, count, noted, with};
use libtest_mimic::Completion;

fn versions(kcp: &str, kubernetes: &str) -> Versions {
    Versions { kcp: kcp.to_owned(), kubernetes: kubernetes.to_owned(), etcd: "3.6.8".to_owned() }
}

#[test]
fn what_was_not_played_is_left_out_and_what_panics_has_failed() {
    assert!(noted("ran::passes", || Ok(Completion::Completed)).is_ok());
    assert!(noted("ran::fails", || Err("no".into())).is_err());
    assert!(noted("ran::is_ignored", || Ok(Completion::ignored())).is_ok());
    let panics = || noted("ran::panics", || panic!("on purpose")).is_ok();
    assert!(std::panic::catch_unwind(panics).is_err());

    let all = ["ran::passes", "ran::fails", "ran::is_ignored", "ran::panics", "ran::is_filtered_out"];
    let all = all.map(|name| (name.to_owned(), name != "ran::passes"));
    let run = count(&versions("1", "1"), &all);
    let failed = vec!["ran::fails".to_owned(), "ran::panics".to_owned()];
    assert_eq!(run.scenarios, Count { passed: 0, failed, left_out: 2 });
    assert_eq!(run.comparisons, Count { passed: 1, ..Count::default() });
}

#[test]
fn a_run_replaces_that_on_the_same_versions_and_the_newest_come_first() {
    let run = |kcp: &str, kubernetes: &str, passed| Run {
        versions: versions(kcp, kubernetes),
        scenarios: Count { passed, ..Count::default() },
        comparisons: Count::default(),
    };
    let old = run("v1.35.1+kcp-v0.9.9", "v1.34.2", 1);
    let runs = with(vec![old.clone()], run("v1.35.1+kcp-v0.31.2", "v1.34.2", 2));
    let runs = with(runs, run("v1.35.1+kcp-v0.31.2", "v1.35.4", 3));
    let runs = with(runs, run("v1.35.1+kcp-v0.31.2", "v1.34.2", 4));
    let newest = run("v1.35.1+kcp-v0.31.2", "v1.35.4", 3);
    assert_eq!(runs, [newest, run("v1.35.1+kcp-v0.31.2", "v1.34.2", 4), old]);
}
