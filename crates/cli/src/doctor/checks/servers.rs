//! Kubeconfigs, the servers they lead to, and their clocks.

use super::Finding;
use crate::doctor::facts::{Access, Facts, FailureKind, ServerAnswer};

/// A larger clock difference is reported, in seconds.
const SKEW: i64 = 10;
/// With a larger clock difference, fresh certificates and tokens are refused, in seconds.
const GREAT_SKEW: i64 = 120;

pub(super) fn service(facts: &Facts) -> Vec<Finding> {
    vec![access(&facts.service, "--kubeconfig")]
}

pub(super) fn kcp(facts: &Facts) -> Vec<Finding> {
    let kcp = &facts.kcp;
    if kcp.unusable.is_none() && carrick_kcp::url::workspace(&kcp.url).is_err() {
        let text = format!("{} leads to {}, which is not a workspace", shown(kcp), kcp.url);
        let server = format!("{}/clusters/<workspace of the slice>", kcp.url.trim_end_matches('/'));
        let fix = match facts.asked.login.secret() {
            None => format!("kubectl --kubeconfig {} config set-cluster <cluster> --server {server}", kcp.origin),
            Some(secret) => format!("put a kubeconfig with server: {server} into {}", secret.shown()),
        };
        return vec![Finding::red(text).fix(fix)];
    }
    vec![access(kcp, "--kcp-kubeconfig")]
}

fn shown(access: &Access) -> String {
    match access.context.as_str() {
        "" => access.origin.clone(),
        context => format!("{}, context {context},", access.origin),
    }
}

fn access(access: &Access, flag: &str) -> Finding {
    if let Some(problem) = &access.unusable {
        return Finding::red(problem.clone()).fix(format!("pass a kubeconfig that works with {flag}"));
    }
    let (url, host) = (&access.url, host(&access.url));
    match &access.answer {
        ServerAnswer::NotAsked => Finding::amber(format!("{} leads to {url}, which was not checked", shown(access))),
        ServerAnswer::Works if access.user.is_empty() => Finding::green(format!("{} leads to {url}", shown(access))),
        ServerAnswer::Works => Finding::green(format!("{} leads to {url} as {}", shown(access), access.user)),
        ServerAnswer::Fails(trouble, problem) => {
            let text = format!("{} leads to {url}, which cannot be used: {problem}", shown(access));
            Finding::red(text).fix(way_out(*trouble, &host))
        }
    }
}

/// What to try when a server cannot be used.
pub(crate) fn way_out(trouble: FailureKind, host: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match trouble {
        FailureKind::Name => {
            format!("getent hosts {name}    # must print an address; otherwise correct the name or the DNS")
        }
        FailureKind::Connection => {
            format!(
                "curl -k https://{host}/version    # must answer; otherwise start the server, open the firewall, or correct the address"
            )
        }
        FailureKind::Certificate => format!(
            "openssl s_client -connect {host} -showcerts </dev/null    # its issuer must be in certificate-authority-data of the kubeconfig"
        ),
        FailureKind::Credentials => "renew the token or the client certificate in the kubeconfig".to_owned(),
        FailureKind::Rights => {
            "let the user of the kubeconfig into the workspace: verb access on nonResourceURLs [/], or check its path"
                .to_owned()
        }
        FailureKind::Other => {
            format!("curl -k https://{host}/readyz?verbose    # shows the server's own view of its health")
        }
    }
}

pub(crate) fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().to_owned()
}

pub(super) fn clocks(facts: &Facts) -> Vec<Finding> {
    let both = [("the service cluster", &facts.service), ("kcp", &facts.kcp)];
    let known = both.into_iter().filter_map(|(name, access)| Some((name, access.ahead?)));
    known.map(|(name, ahead)| clock(name, ahead)).collect()
}

fn clock(name: &str, ahead: i64) -> Finding {
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let text = format!("the clock of {name} is {} s {direction} the local one", ahead.abs());
    let fix = "timedatectl status    # on both machines: NTP must be active";
    match ahead.abs() {
        0..=SKEW => Finding::green(format!("the clock of {name} agrees with the local one")),
        11..=GREAT_SKEW => Finding::amber(text).fix(fix),
        _ => Finding::red(format!("{text}: fresh certificates and tokens are refused")).fix(fix),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity::{Amber, Green, Red};
    use super::*;

    fn access(url: &str, answer: ServerAnswer) -> Access {
        Access { origin: "f".to_owned(), context: "c".to_owned(), url: url.to_owned(), answer, ..Access::default() }
    }

    #[test]
    fn every_way_a_server_can_fail_has_a_way_out() {
        let url = "https://h:1/clusters/root:a";
        let cases = [
            (FailureKind::Name, "getent hosts h "),
            (FailureKind::Connection, "curl -k https://h:1/version"),
            (FailureKind::Certificate, "openssl s_client -connect h:1"),
            (FailureKind::Credentials, "renew the token"),
            (FailureKind::Rights, "verb access"),
            (FailureKind::Other, "readyz"),
        ];
        for (trouble, wanted) in cases {
            let kcp = access(url, ServerAnswer::Fails(trouble, "it says no".to_owned()));
            let [found] = &kcp_of(kcp)[..] else { panic!("not one finding") };
            assert_eq!(found.severity, Red);
            assert!(found.text.contains("it says no") && found.fix[0].contains(wanted), "{found:?}");
        }
        let [found] = &kcp_of(access(url, ServerAnswer::Works))[..] else { panic!("not one finding") };
        assert_eq!((found.severity, found.fix.len()), (Green, 0));
    }

    fn kcp_of(kcp: Access) -> Vec<Finding> {
        super::kcp(&Facts { kcp, ..Facts::default() })
    }

    #[test]
    fn a_kcp_kubeconfig_must_lead_to_a_workspace() {
        let [found] = &kcp_of(access("https://h:1", ServerAnswer::Works))[..] else { panic!("not one finding") };
        assert_eq!(found.severity, Red);
        assert!(found.fix[0].contains("--server https://h:1/clusters/"), "{found:?}");
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_used_is_said_first() {
        let unusable = Access { unusable: Some("cannot read it".to_owned()), ..Access::default() };
        for found in [super::service(&Facts { service: unusable.clone(), ..Facts::default() }), kcp_of(unusable)] {
            assert_eq!((found.len(), found[0].severity, found[0].text.as_str()), (1, Red, "cannot read it"));
        }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        for (ahead, wanted) in [(0, Green), (-10, Green), (11, Amber), (-119, Amber), (121, Red), (-4000, Red)] {
            assert_eq!(clock("kcp", ahead).severity, wanted, "{ahead}");
        }
        assert_eq!(clocks(&Facts::default()), []);
    }
}
