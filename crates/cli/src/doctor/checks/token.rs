//! Until when the agent's token for kcp is valid, and who renews it.

use jiff::Timestamp;

use super::Finding;
use crate::doctor::facts::{FETCHED, Facts};
use crate::doctor::right::RightScope;

/// How long after the middle of its time a token may be there until somebody ought to have renewed it: agents look once a minute, and try again after
/// five.
const SLACK: i64 = 600;

pub(super) fn token(facts: &Facts) -> Vec<Finding> {
    let Some(token) = &facts.token else { return Vec::new() };
    let when = |second| match Timestamp::from_second(second) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => "an unknown time".to_owned(),
    };
    let until = when(token.ends);
    let is_late = facts.now > token.half_time() + SLACK;
    let namespace = &facts.asked.namespace;
    let found = match &facts.asked.renewed {
        _ if facts.now >= token.ends => Finding::red(format!("the agent's token for kcp has ended, at {until}")).id("token-ended"),
        Some(secret) if is_late => {
            let due = when(token.half_time());
            let text = format!(
                "the agent's token for kcp is valid until {until}, but the agent has not renewed it, which was due at {due}; its log says why, if Secret {namespace}/{secret} has no newer one"
            );
            return vec![
                Finding::amber(text).id("token-not-renewed").fix(format!("{} -n {namespace} get pods    # whose log it is", facts.kubectl())),
            ];
        }
        Some(secret) => {
            let text = format!(
                "the agent's token for kcp is valid until {until}; the agent renews it in Secret {namespace}/{secret}"
            );
            return vec![Finding::green(text)];
        }
        None if !is_late => {
            let text = format!(
                "the agent's token for kcp is valid until {until}; nobody is known to renew it: the agent does with --renew-kcp-token, in the chart renewKcpToken"
            );
            return vec![Finding::green(text)];
        }
        None => Finding::amber(format!(
            "the agent's token for kcp ends at {until}, and nobody is known to renew it: the agent does with --renew-kcp-token, in the chart renewKcpToken"
        )).id("token-ends"),
    };
    let (name, account) = (&token.name, &token.namespace);
    let hours = (token.lifetime() / 3600).max(1);
    let command = format!("create token {name} -n {account} --duration={hours}h >token");
    let found = found.by(&facts.admin_tool(RightScope::Slice), &command);
    vec![found.fixes(put_in_place(facts))]
}

/// The commands that put a token into the agent's kubeconfig, wherever that is.
fn put_in_place(facts: &Facts) -> Vec<String> {
    let set = |file: &str| {
        let user = format!("$(kubectl --kubeconfig {file} config view --minify -o jsonpath='{{.users[0].name}}')");
        format!("kubectl --kubeconfig {file} config set-credentials \"{user}\" --token=\"$(cat token)\"")
    };
    let Some(secret) = facts.asked.login.secret() else { return vec![set(&facts.asked.kcp_kubeconfig)] };
    let (kubectl, file) = (facts.kubectl(), FETCHED);
    let crate::doctor::facts::SecretKey { namespace, name, key } = secret;
    vec![
        facts.fetch(secret),
        set(file),
        format!(
            "{kubectl} -n {namespace} create secret generic {name} --from-file={key}={file} --dry-run=client -o yaml | {kubectl} apply -f -"
        ),
        format!("rm token {file}"),
    ]
}

#[cfg(test)]
mod tests {
    use carrick_kcp::token::AccountToken;

    use super::super::Severity::{self, Amber, Green, Red};
    use super::*;

    fn found(now: i64, renewed: Option<&str>) -> Finding {
        let token = AccountToken {
            cluster: "c".to_owned(),
            namespace: "default".to_owned(),
            name: "agent".to_owned(),
            uid: "u".to_owned(),
            issued: 0,
            ends: 20_000,
        };
        let mut facts = Facts { token: Some(token), now, ..Facts::default() };
        facts.asked.namespace = "own".to_owned();
        facts.asked.renewed = renewed.map(str::to_owned);
        super::token(&facts).remove(0)
    }

    #[test]
    fn it_is_said_until_when_a_token_is_valid_and_who_renews_it() {
        let cases: [(i64, Option<&str>, Severity, &str); 6] = [
            (10_100, Some("s"), Green, "valid until 1970-01-01 05:33 UTC; the agent renews it in Secret own/s"),
            (10_100, None, Green, "nobody is known to renew it"),
            (10_700, Some("s"), Amber, "has not renewed it, which was due at 1970-01-01 02:46 UTC"),
            (10_700, None, Amber, "ends at 1970-01-01 05:33 UTC, and nobody"),
            (20_000, Some("s"), Red, "has ended"),
            (20_000, None, Red, "has ended"),
        ];
        for (now, renewed, severity, words) in cases {
            let found = found(now, renewed);
            assert!(found.severity == severity && found.text.contains(words), "{now} {renewed:?}: {found:?}");
            assert_eq!(found.fix.is_empty(), severity == Green, "{found:?}");
        }
        let fix = found(20_000, None).fix;
        assert!(fix[1].contains("create token agent -n default --duration=5h"), "{fix:?}");
        assert!(fix[2].contains("config set-credentials"), "{fix:?}");
        assert_eq!(super::token(&Facts::default()), []);
    }
}
