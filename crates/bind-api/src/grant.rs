//! The line that gives a konnector its rights, and how it is found again in a message.

use std::fmt::Write as _;

use crate::install;
use crate::names::{KONNECTOR_NAMESPACE, is_name};
use crate::roles::Subject;

/// What follows the flags.
const APPLY: &str = " | kubectl apply -f -";
/// What comes before them.
const ROLES: &str = "konnector roles";
/// What a line may say; anything else that looks like a flag was written by somebody else.
const FLAGS: [&str; 5] =
    ["--namespace", "--service-account", "--lease-namespace", "--lease-name", "--apiexport-endpointslice-ref"];

/// `konnector roles` with the flags that say who gets the roles: whoever administers the konnector's cluster pastes it.
///
/// ```
/// use carrick_bind_api::grant::RolesLine;
/// use carrick_bind_api::install;
///
/// let line = RolesLine::new(&install::subject(), None);
/// assert_eq!(line.to_string(), "konnector roles | kubectl apply -f -");
/// assert_eq!(RolesLine::find(&format!("it lacks a right; grant it with: {line}")), Some(line));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolesLine {
    flags: Vec<(&'static str, String)>,
}

impl RolesLine {
    /// The line for a konnector, which may serve the workspaces of an APIExport.
    pub fn new(subject: &Subject, slice: Option<&str>) -> Self {
        let usual = install::subject();
        let differs = |value: &str, usual: &str| (value != usual).then(|| value.to_owned());
        let values = [
            differs(&subject.namespace, KONNECTOR_NAMESPACE),
            differs(&subject.account, &usual.account),
            // As `konnector roles` has it.
            differs(&subject.lease_namespace, &subject.namespace),
            differs(&subject.lease_name, &usual.lease_name),
            slice.map(str::to_owned),
        ];
        let flags = FLAGS.into_iter().zip(values);
        Self { flags: flags.filter_map(|(flag, value)| Some((flag, value?))).collect() }
    }

    /// The line in a message. Others have written parts of messages, so it has nothing but known flags with names behind them.
    pub fn find(message: &str) -> Option<Self> {
        message.rmatch_indices(ROLES).find_map(|(at, _)| {
            let (flags, _) = message[at + ROLES.len()..].split_once(APPLY)?;
            let words: Vec<&str> = flags.split_whitespace().collect();
            let pairs = words.chunks(2).map(|pair| {
                let [flag, value] = pair else { return None };
                let flag = FLAGS.into_iter().find(|known| known == flag)?;
                is_name(value).then(|| (flag, (*value).to_owned()))
            });
            Some(Self { flags: pairs.collect::<Option<_>>()? })
        })
    }

    /// The line for whoever has a kubeconfig of the cluster in a file.
    pub fn with_kubeconfig(&self, file: &str) -> String {
        format!("{ROLES} --kubeconfig {file}{} | kubectl --kubeconfig {file} apply -f -", self.shown())
    }

    fn shown(&self) -> String {
        self.flags.iter().fold(String::new(), |mut text, (flag, value)| {
            // Writing to a String cannot fail.
            let _ = write!(text, " {flag} {value}");
            text
        })
    }
}

impl std::fmt::Display for RolesLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{ROLES}{}{APPLY}", self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(account: &str, namespace: &str, lease_namespace: &str, lease_name: &str) -> Subject {
        Subject {
            account: account.to_owned(),
            namespace: namespace.to_owned(),
            lease_namespace: lease_namespace.to_owned(),
            lease_name: lease_name.to_owned(),
        }
    }

    #[test]
    fn a_line_names_what_is_not_usual_and_is_found_again() {
        for (subject, slice, flags) in [
            (install::subject(), None, ""),
            (subject("k", "n", "n", "kube-bind"), None, " --namespace n --service-account k"),
            (subject("konnector", "kube-bind", "default", "l"), None, " --lease-namespace default --lease-name l"),
            (install::subject(), Some("wild.io"), " --apiexport-endpointslice-ref wild.io"),
        ] {
            let line = RolesLine::new(&subject, slice);
            assert_eq!(line.to_string(), format!("konnector roles{flags} | kubectl apply -f -"));
            let file = format!("konnector roles --kubeconfig f{flags} | kubectl --kubeconfig f apply -f -");
            assert_eq!(line.with_kubeconfig("f"), file);
            let message = format!("konnector roles is needed (403); it is granted with: {line}; and 3 more");
            assert_eq!(RolesLine::find(&message), Some(line));
        }
    }

    #[test]
    fn what_others_have_written_is_no_line() {
        for forged in [
            "konnector roles; rm -rf / | kubectl apply -f -",
            "konnector roles --namespace $(id) | kubectl apply -f -",
            "konnector roles --kubeconfig theirs | kubectl apply -f -",
            "konnector roles --namespace | kubectl apply -f -",
            "konnector roles | sh",
            "nothing",
        ] {
            assert_eq!(RolesLine::find(forged), None, "{forged}");
        }
    }
}
