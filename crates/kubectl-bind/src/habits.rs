//! Flags of kube-bind's own command line, and of kubectl, that scripts may pass: taken where they change nothing, refused where they would.

use carrick_process::go_flags;

/// What becomes of a flag.
enum Fate {
    /// It is left out, and this is said.
    Said(&'static str),
    /// It is left out; whoever passes it loses nothing.
    Quiet,
    /// Nothing is done without it.
    Refused(&'static str),
}

/// A flag, whether it has a value, and what becomes of it.
const FLAGS: &[(&str, bool, Fate)] = &[
    ("--no-banner", false, Fate::Quiet),
    ("--downgrade-konnector", false, Fate::Said("a konnector is replaced with --konnector-image only")),
    ("--remote-namespace", true, Fate::Said("the provider's kubeconfig names the namespace")),
    ("--disable-compression", false, Fate::Quiet),
    (
        "--request-timeout",
        true,
        Fate::Said("requests have limits of their own, and --timeout says how long to wait in all"),
    ),
    ("--cache-dir", true, Fate::Quiet),
    ("--match-server-version", false, Fate::Quiet),
    ("--warnings-as-errors", false, Fate::Quiet),
    ("--v", true, Fate::Quiet),
    ("-v", true, Fate::Quiet),
    ("--log-file", true, Fate::Said("nothing is logged; what has to be said is on standard error")),
    ("--log-dir", true, Fate::Said("nothing is logged; what has to be said is on standard error")),
    ("--logging-format", true, Fate::Quiet),
    ("--allow-missing-template-keys", false, Fate::Quiet),
    ("--show-managed-fields", false, Fate::Quiet),
    ("--template", true, Fate::Refused("there are no templates for output; read -o json with another program")),
    ("--namespace", true, Fate::Quiet),
    ("-n", true, Fate::Quiet),
    // Whoever passes one of these means to be somebody else than the kubeconfig says.
    ("--user", true, Fate::Refused("choose a context of the kubeconfig with --context")),
    ("--token", true, Fate::Refused("put it into a kubeconfig; other users of this machine see arguments")),
    ("--username", true, Fate::Refused("put it into a kubeconfig")),
    ("--password", true, Fate::Refused("put it into a kubeconfig; other users of this machine see arguments")),
    ("--as", true, Fate::Refused("put it into a kubeconfig")),
    ("--as-group", true, Fate::Refused("put it into a kubeconfig")),
    ("--as-uid", true, Fate::Refused("put it into a kubeconfig")),
    ("--as-user-extra", true, Fate::Refused("put it into a kubeconfig")),
    ("--client-certificate", true, Fate::Refused("put it into a kubeconfig")),
    ("--client-key", true, Fate::Refused("put it into a kubeconfig")),
    ("--tls-server-name", true, Fate::Refused("put it into a kubeconfig")),
    ("--proxy-url", true, Fate::Refused("put it into a kubeconfig")),
];

/// What is said of kube-bind's command that makes two clusters with kind.
const DEV: &str = "there is no command dev, which makes clusters in Docker with kind: to see it work, carrick bind demo plays both stories in one process; \
                   to try it by hand, carrick plane serves a provider and a consumer, as in the tutorials docs/kube-bind/provider.md and consumer.md";

/// Arguments as our command line takes them, and what has to be said about those that were left out; or why nothing is done.
///
/// ```
/// use carrick_kubectl_bind::habits::taken;
///
/// let args = ["kubectl-bind", "deploy", "--no-banner", "--dry-run=true"].map(str::to_owned);
/// let (args, said) = taken(args).unwrap();
/// assert_eq!((args.join(" ").as_str(), said.len()), ("kubectl-bind deploy --dry-run", 0));
/// ```
pub fn taken(args: impl IntoIterator<Item = String>) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut kept, mut said) = (Vec::new(), Vec::new());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            kept.push(arg);
            kept.extend(args);
            break;
        }
        if let Some((name, is_on)) = switch(&arg) {
            kept.extend(is_on.then(|| name.to_owned()));
            continue;
        }
        let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
        if let Some(has_value) = go_flags::logging(name) {
            if has_value && value.is_none() {
                args.next();
            }
            continue;
        }
        let spelt = if name.starts_with("--log_") { name.replace('_', "-") } else { name.to_owned() };
        let known = FLAGS.iter().find(|(flag, ..)| *flag == spelt);
        let Some((name, has_value, fate)) = known.filter(|(flag, ..)| !is_meant(flag, &kept)) else {
            kept.push(arg);
            continue;
        };
        if *has_value && value.is_none() {
            args.next();
        }
        match fate {
            Fate::Quiet => {}
            Fate::Said(why) => said.push(format!("{name} is not used: {why}")),
            Fate::Refused(why) => return Err(format!("{name} is not taken: {why}")),
        }
    }
    if kept.get(1).is_some_and(|command| command == "dev") {
        return Err(DEV.to_owned());
    }
    Ok((kept, said))
}

/// Whether a flag that others ignore means something to the command: whose identity is asked for is said by its namespace, and so is which Binding.
fn is_meant(flag: &str, before: &[String]) -> bool {
    let commands = ["cluster-identity", "bind", "unbind"];
    matches!(flag, "-n" | "--namespace") && before.iter().skip(1).any(|arg| commands.contains(&arg.as_str()))
}

/// A switch of ours with the value that Go's flags may have.
fn switch(arg: &str) -> Option<(&str, bool)> {
    let (name, value) = arg.split_once('=')?;
    let ours = ["--dry-run", "-d", "--skip-konnector", "--skip-browser", "--show-token", "--insecure-skip-tls-verify"];
    if !ours.contains(&name) {
        return None;
    }
    go_flags::boolean(value).map(|is_on| (name, is_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(args: &[&str]) -> Result<(String, Vec<String>), String> {
        let all = ["kubectl-bind"].iter().chain(args).map(|arg| (*arg).to_owned());
        taken(all).map(|(kept, said)| (kept.join(" "), said))
    }

    #[test]
    fn flags_that_change_nothing_are_taken_and_the_others_are_refused_with_the_way_out() {
        let (kept, said) =
            ask(&["apiservice", "a", "--template-name", "t", "--remote-namespace", "n", "-v=4", "--v", "6"]).unwrap();
        assert_eq!(kept, "kubectl-bind apiservice a --template-name t");
        assert_eq!(said, ["--remote-namespace is not used: the provider's kubeconfig names the namespace"]);
        let (kept, said) =
            ask(&["login", "u", "--log_dir=d", "--one_output", "--log-text-info-buffer-size", "0", "-n", "x"]).unwrap();
        assert_eq!((kept.as_str(), said.len()), ("kubectl-bind login u", 1), "{said:?}");
        let kept = ask(&["cluster-identity", "-n", "default", "--log_file_max_size=1"]).unwrap().0;
        assert_eq!(kept, "kubectl-bind cluster-identity -n default", "which says whose identity");
        let kept = ask(&["bind", "west", "a.x", "--namespace=team", "-n", "b"]).unwrap().0;
        assert_eq!(kept, "kubectl-bind bind west a.x --namespace=team -n b", "which says for whom");
        assert_eq!(ask(&["--dry-run=false", "--skip-konnector=true"]).unwrap().0, "kubectl-bind --skip-konnector");
        assert_eq!(ask(&["--dry-run=maybe"]).unwrap().0, "kubectl-bind --dry-run=maybe", "which is refused as before");
        assert!(ask(&["dev", "create"]).unwrap_err().contains("carrick bind demo"));
        for refused in [&["--token", "t"][..], &["deploy", "--as=admin"], &["dev", "create"]] {
            assert!(ask(refused).is_err(), "{refused:?}");
        }
        assert_eq!(ask(&["--", "--token"]).unwrap().0, "kubectl-bind -- --token");
        assert!(!ask(&["--token=geheim"]).unwrap_err().contains("geheim"));
    }
}
