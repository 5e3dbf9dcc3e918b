//! Kubeconfigs, the servers they lead to, and their clocks.

use super::Finding;
use crate::doctor::facts::{Access, Facts, FailureKind, ServerAnswer};

/// A larger clock difference is reported, in seconds.
const SKEW: i64 = 10;
/// With a larger clock difference, fresh certificates and tokens are refused, in seconds.
const GREAT_SKEW: i64 = 120;

/// Both kubeconfigs, if each leads where the other should.
pub(crate) fn swapped(facts: &Facts) -> Option<Finding> {
    let leads_into_kcp = |access: &Access| carrick_kcp::url::workspace(&access.url).is_ok();
    let known = [&facts.service, &facts.kcp].iter().all(|access| access.unusable.is_none() && !access.url.is_empty());
    (known && leads_into_kcp(&facts.service) && !leads_into_kcp(&facts.kcp)).then(|| {
        let text = format!(
            "the kubeconfigs are swapped: --kubeconfig leads into kcp ({}), --kcp-kubeconfig to another server ({})",
            facts.service.url, facts.kcp.url
        );
        Finding::red(text)
            .id("kubeconfigs-swapped")
            .fix(format!("--kubeconfig {} --kcp-kubeconfig {}", facts.kcp.origin, facts.service.origin))
    })
}

pub(super) fn service(facts: &Facts) -> Vec<Finding> {
    vec![access(&facts.service, "--kubeconfig")]
}

pub(super) fn kcp(facts: &Facts) -> Vec<Finding> {
    let kcp = &facts.kcp;
    if kcp.unusable.is_none() && carrick_kcp::url::workspace(&kcp.url).is_err() {
        let text = format!("{} leads to {}, which is not a workspace", shown(kcp), kcp.url);
        let server = format!("{}/clusters/<workspace of the slice>", kcp.url.trim_end_matches('/'));
        let fix = match facts.asked.login.secret() {
            None => {
                let cluster = if kcp.cluster.is_empty() { "<cluster>" } else { kcp.cluster.as_str() };
                format!("kubectl --kubeconfig {} config set-cluster {cluster} --server {server}", kcp.origin)
            }
            Some(secret) => format!("put a kubeconfig with server: {server} into {}", secret.shown()),
        };
        return vec![Finding::red(text).id("kcp-no-workspace").fix(fix)];
    }
    let found = access(kcp, "--kcp-kubeconfig");
    // What is to be renewed, and how, is known.
    let ended = facts.token.as_ref().filter(|token| facts.now >= token.ends);
    if ended.is_some() && matches!(kcp.answer, ServerAnswer::Fails(FailureKind::Credentials, _)) {
        return vec![Finding {
            fix: vec!["renew the token, which has ended: see the token for kcp below".to_owned()],
            ..found
        }];
    }
    vec![found]
}

fn shown(access: &Access) -> String {
    match access.context.as_str() {
        "" => access.origin.clone(),
        context => format!("{}, context {context},", access.origin),
    }
}

fn access(access: &Access, flag: &str) -> Finding {
    if let Some(problem) = &access.unusable {
        return Finding::red(problem.clone())
            .id("kubeconfig-unusable")
            .fix(format!("pass a kubeconfig that works with {flag}"));
    }
    let url = &access.url;
    match &access.answer {
        ServerAnswer::NotAsked => {
            Finding::amber(format!("{} leads to {url}, which was not checked", shown(access))).id("server-not-checked")
        }
        ServerAnswer::Works if access.user.is_empty() => Finding::green(format!("{} leads to {url}", shown(access))),
        ServerAnswer::Works => Finding::green(format!("{} leads to {url} as {}", shown(access), access.user)),
        ServerAnswer::Fails(trouble, problem) => {
            let text = format!("{} leads to {url}, which cannot be used: {problem}", shown(access));
            Finding::red(text).id("server-unusable").fix(way_out(*trouble, url))
        }
    }
}

/// What to try when a server cannot be used.
pub(crate) fn way_out(trouble: FailureKind, url: &str) -> String {
    let host = host(url);
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
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
        // kcp refuses whoever asks for a workspace that does not exist, too.
        FailureKind::Rights => format!(
            "{}otherwise let the user of the kubeconfig into the workspace: verb access on nonResourceURLs [/]",
            look_above(url)
                .map(|command| format!("{command}\n# correct the path in the kubeconfig if it is not; "))
                .unwrap_or_default()
        ),
        FailureKind::Path => match look_above(url) {
            Some(command) => format!("{command}\n# correct the path in the kubeconfig if it is not"),
            None => format!("correct the address in the kubeconfig: nothing is served at {url}"),
        },
        FailureKind::Other => {
            format!("curl -k https://{host}/readyz?verbose    # shows the server's own view of its health")
        }
    }
}

/// The command that lists the workspaces beside the one that a URL names.
fn look_above(url: &str) -> Option<String> {
    let (above, name) = carrick_kcp::url::workspace(url).ok()?.rsplit_once(':')?;
    let above = carrick_kcp::url::retarget(url, above).ok()?;
    Some(format!("kubectl --server {above} get workspaces    # as an administrator: is {name} among them?"))
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
        11..=GREAT_SKEW => Finding::amber(text).id("clock-differs").fix(fix),
        _ => Finding::red(format!("{text}: fresh certificates and tokens are refused")).id("clock-wrong").fix(fix),
    }
}

#[cfg(test)]
mod tests {
    use carrick_kcp::token::AccountToken;

    use super::super::Severity::{Amber, Green, Red};
    use super::*;

    fn access(url: &str, answer: ServerAnswer) -> Access {
        Access { origin: "f".to_owned(), context: "c".to_owned(), url: url.to_owned(), answer, ..Access::default() }
    }

    #[test]
    fn kubeconfigs_that_are_swapped_are_told_apart() {
        let of = |service: &str, kcp: &str| {
            let access = |url| access(url, ServerAnswer::Works);
            swapped(&Facts { service: access(service), kcp: access(kcp), ..Facts::default() })
        };
        let (workspace, cluster) = ("https://h:1/clusters/root:a", "https://k:2");
        assert!(of(workspace, cluster).is_some_and(|found| found.text.contains("are swapped")));
        assert!(of(cluster, workspace).is_none() && of(workspace, workspace).is_none());
        assert!(of(cluster, cluster).is_none());
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
            (FailureKind::Path, "kubectl --server https://h:1/clusters/root get workspaces"),
            (FailureKind::Other, "readyz"),
        ];
        for (trouble, wanted) in cases {
            let kcp = access(url, ServerAnswer::Fails(trouble, "it says no".to_owned()));
            let [found] = &kcp_of(kcp)[..] else { panic!("not one finding") };
            assert_eq!(found.severity, Red);
            assert!(found.text.contains("it says no") && found.fix.join("\n").contains(wanted), "{found:?}");
        }
        let [found] = &kcp_of(access(url, ServerAnswer::Works))[..] else { panic!("not one finding") };
        assert_eq!((found.severity, found.fix.len()), (Green, 0));
    }

    #[test]
    fn a_token_that_has_ended_is_renewed_and_not_looked_for_in_certificates() {
        let text = String::new;
        let token = AccountToken { cluster: text(), namespace: text(), name: text(), uid: text(), issued: 0, ends: 10 };
        let refused =
            access("https://h:1/clusters/root:a", ServerAnswer::Fails(FailureKind::Credentials, "401".to_owned()));
        let mut facts = Facts { kcp: refused, token: Some(token), now: 9, ..Facts::default() };
        assert!(super::kcp(&facts)[0].fix[0].contains("client certificate"));
        facts.now = 10;
        assert!(super::kcp(&facts)[0].fix[0].contains("see the token for kcp below"), "{:?}", super::kcp(&facts));
    }

    fn kcp_of(kcp: Access) -> Vec<Finding> {
        super::kcp(&Facts { kcp, ..Facts::default() })
    }

    #[test]
    fn a_kcp_kubeconfig_must_lead_to_a_workspace() {
        let [found] = &kcp_of(access("https://h:1", ServerAnswer::Works))[..] else { panic!("not one finding") };
        assert_eq!(found.severity, Red);
        assert!(found.fix[0].contains("set-cluster <cluster> --server https://h:1/clusters/"), "{found:?}");
        let known = Access { cluster: "kcp".to_owned(), ..access("https://h:1", ServerAnswer::Works) };
        assert!(kcp_of(known)[0].fix[0].contains("config set-cluster kcp --server https://h:1/clusters/"));
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
