//! The command line as a user meets it: every flag, every mistake, and what the binary prints and returns.

use std::process::{Command, Output};

use carrick_syncagent::logging::Format;
use carrick_syncagent::options::{Options, Usage};

const GOOD: [&str; 3] = ["--namespace=kcp", "--kcp-kubeconfig=k", "--apiexportendpointslice-ref=example.com"];

fn parse(args: &[&str]) -> Result<Options, Usage> {
    Options::parse_from_args(["api-syncagent"].iter().chain(args))
}

fn good_and(more: &[&str]) -> Vec<String> {
    GOOD.iter().chain(more).map(|&arg| arg.to_owned()).collect()
}

fn complete(args: &[&str]) -> Result<Options, Vec<String>> {
    parse(args).unwrap().complete().map_err(|problems| problems.0)
}

fn binary(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_api-syncagent")).args(args).env_remove("KUBECONFIG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn defaults_are_those_of_the_original_agent() {
    let options = complete(&GOOD).unwrap();
    assert_eq!(options.agent_name, "example.com-syncagent");
    assert_eq!(options.metrics_address, "127.0.0.1:8085");
    assert_eq!(options.health_address, "");
    assert_eq!(options.log_format, Format::Json);
    assert!(!options.log_debug && !options.enable_leader_election && !options.exit_on_startup_error);
    assert!(options.disabled_controllers.is_empty());
}

#[test]
fn the_default_name_may_be_spelled_out_and_no_other_name_with_dots() {
    let spelled = complete(&[GOOD[0], GOOD[1], GOOD[2], "--agent-name=example.com-syncagent"]).unwrap();
    assert_eq!(spelled.agent_name, complete(&GOOD).unwrap().agent_name);
    let problems = complete(&[GOOD[0], GOOD[1], GOOD[2], "--agent-name=example.org-syncagent"]).unwrap_err();
    assert!(problems[0].starts_with("--agent-name is invalid"), "{problems:?}");
}

#[test]
fn the_export_may_be_named_instead_of_its_slice_but_not_both() {
    let args = ["--namespace=kcp", "--kcp-kubeconfig=k", "--apiexport-ref=old.example.com"];
    assert_eq!(complete(&args).unwrap().agent_name, "old.example.com-syncagent");
    let both = [GOOD[0], GOOD[1], GOOD[2], "--apiexport-ref=b"];
    let problems = complete(&both).unwrap_err();
    assert!(problems.len() == 1 && problems[0].contains("mutually exclusive"), "{problems:?}");
}

#[test]
fn flags_take_their_values_in_both_spellings() {
    let options = parse(&["--namespace", "a", "--agent-name=b", "--published-resource-selector=x in (a,b)"]).unwrap();
    assert_eq!((options.namespace.as_str(), options.agent_name.as_str()), ("a", "b"));
    assert_eq!(options.published_resource_selector, "x in (a,b)");
}

#[test]
fn booleans_need_no_value_and_take_one_only_after_an_equals_sign() {
    for (args, wanted) in [
        (&["--enable-leader-election"][..], true),
        (&["--enable-leader-election=true"], true),
        (&["--enable-leader-election=1"], true),
        (&["--enable-leader-election=False"], false),
        (&["--enable-leader-election", "--log-debug"], true),
    ] {
        assert_eq!(parse(args).unwrap().enable_leader_election, wanted, "{args:?}");
    }
    assert_eq!(parse(&["--log-debug", "false"]).unwrap_err().exit_code, 2);
}

#[test]
fn a_repeated_flag_takes_its_last_value() {
    let options = parse(&["--namespace=a", "--namespace=b", "--log-debug", "--log-debug=false"]).unwrap();
    assert_eq!(options.namespace, "b");
    assert!(!options.log_debug);
}

#[test]
fn disabled_controllers_are_separated_by_commas_or_repeated_or_both() {
    let args = ["--disabled-controllers=apiexport,sync", "--disabled-controllers", "apiresourceschema"];
    assert_eq!(parse(&args).unwrap().disabled_controllers, ["apiexport", "sync", "apiresourceschema"]);
    assert!(parse(&["--disabled-controllers="]).unwrap().complete().unwrap_err().0.len() == 3, "empty means none");
}

#[test]
fn log_formats_are_matched_without_case() {
    assert_eq!(parse(&["--log-format", "console"]).unwrap().log_format, Format::Console);
}

#[test]
fn mistakes_in_flags_are_worded_as_before_and_end_with_two() {
    for (args, wanted) in [
        (&["--nope"][..], "unknown flag: --nope"),
        (&["--nope=1"], "unknown flag: --nope"),
        (
            &["--apiexportendpointslice=a"],
            "unknown flag: --apiexportendpointslice (did you mean --apiexportendpointslice-ref?)",
        ),
        (&["--namespaec=a"], "unknown flag: --namespaec (did you mean --namespace?)"),
        (
            &["--log-format=xx"],
            "invalid argument \"xx\" for \"--log-format\" flag: invalid format 'xx'; available: JSON, Console",
        ),
        (&["--log-debug=maybe"], "invalid argument \"maybe\" for \"--log-debug\" flag: expected true or false"),
        (&["--namespace"], "flag needs an argument: --namespace"),
        (&["extra"], "unexpected argument \"extra\": flags only, please"),
    ] {
        let usage = parse(args).unwrap_err();
        assert_eq!(usage.exit_code, 2, "{args:?}");
        assert!(usage.text.contains("Usage: api-syncagent"), "{args:?}: {}", usage.text);
        assert_eq!(usage.text.lines().last(), Some(wanted), "{args:?}");
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let args = [
        "--agent-name=A.b",
        "--published-resource-selector=a b",
        "--disabled-controllers=x,sync,w",
        "--apiexport-hostport-override=a:1=b:2,a:1=b",
    ];
    let problems = complete(&args).unwrap_err();
    let starts = [
        "--namespace is required",
        "--agent-name is invalid: [a DNS-1035 label must consist of",
        "--apiexportendpointslice-ref is required",
        "invalid --apiexport-hostport-override #2 \"a:1=b\": part 2 is not a valid host:port: address b: missing port in address",
        "--kcp-kubeconfig is required",
        "invalid --published-resource-selector \"a b\": ",
        "unknown controller(s) [w x], must be any of [apiexport apiresourceschema sync]",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start), "{problem}");
    }
}

#[test]
fn a_default_agent_name_that_cannot_be_a_label_is_refused() {
    let long = format!("--apiexportendpointslice-ref={}", "a".repeat(60));
    let args = good_and(&[&long]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let problems = complete(&args).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("choose one with --agent-name"), "{problems:?}");
}

#[test]
fn help_and_version_are_not_mistakes() {
    let help = binary(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    let shown = text(&help.stdout);
    for flag in ["--kubeconfig", "--kcp-kubeconfig", "--disabled-controllers", "--exit-on-startup-error", "Examples:"] {
        assert!(shown.contains(flag), "{flag} is missing");
    }
    assert_eq!(binary(&["-h"]).status.code(), Some(0));
    let version = binary(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(text(&version.stdout), format!("api-syncagent {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_binary_ends_with_one_on_an_invalid_command_line() {
    let output = binary(&["--namespace=a"]);
    assert_eq!(output.status.code(), Some(1));
    let line = text(&output.stderr);
    let wanted = " Invalid command line: [--apiexportendpointslice-ref is required, --kcp-kubeconfig is required]";
    assert!(line.contains(wanted), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn the_binary_ends_with_one_when_a_kubeconfig_is_missing() {
    let args = good_and(&["--kubeconfig=/does/not/exist"]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = binary(&args);
    assert_eq!(output.status.code(), Some(1));
    let line = text(&output.stderr);
    assert!(line.starts_with("{\"level\":\"fatal\",\"time\":\""), "{line}");
    assert!(line.contains("\"msg\":\"Sync Agent has encountered an error\""), "{line}");
    assert!(line.contains("/does/not/exist"), "{line}");
}
