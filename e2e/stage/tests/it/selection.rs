//! Which trials real servers see.

use carrick_e2e_stage::selection::{FEWEST, LIST, Selection, names};
use libtest_mimic::{Arguments, Conclusion};

/// The core and two others; whether the core is made of real names is shown by the program that plays it.
fn all() -> Vec<&'static str> {
    names().chain(["other::a", "other::b"]).collect()
}

#[test]
fn core_and_rest_are_everything_and_each_of_it_once() {
    let core = Selection::Core.of(all(), |name| name).unwrap();
    let rest = Selection::Rest.of(all(), |name| name).unwrap();
    assert!(core.len() as u64 >= FEWEST, "{core:?}");
    assert_eq!(core.len(), names().count(), "a name is there twice");
    let mut both = [core, rest].concat();
    let mut every = Selection::All.of(all(), |name| name).unwrap();
    both.sort_unstable();
    every.sort_unstable();
    assert_eq!(both, every);
}

#[test]
fn a_name_that_no_scenario_has_is_an_error_that_names_it() {
    let mut all = all();
    let gone = names().next().unwrap();
    all.retain(|name| *name != gone);
    let error = Selection::Core.of(all, |name| name).unwrap_err().to_string();
    assert!(error.contains(gone) && error.contains("e2e/core.txt"), "{error}");
}

#[test]
fn every_line_of_the_list_says_what_it_shows() {
    for line in LIST.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        assert!(line.split_whitespace().count() > 1, "{line}");
    }
}

#[test]
fn a_core_of_which_too_little_was_played_is_no_success() {
    let played =
        |num_passed| Conclusion { num_filtered_out: 0, num_passed, num_failed: 0, num_ignored: 0, num_measured: 0 };
    let whole = Arguments::default();
    assert!(Selection::Core.lacks(&whole, &played(FEWEST - 1)).unwrap().contains("only 29"));
    assert_eq!(Selection::Core.lacks(&whole, &played(FEWEST)), None);
    assert_eq!(Selection::Rest.lacks(&whole, &played(0)), None, "there may have been no time left");
    let part = Arguments { filter: Some("objects".to_owned()), ..Arguments::default() };
    assert_eq!(Selection::Core.lacks(&part, &played(3)), None);
}
