//! What the agent may do, verb by verb.

use super::{Finding, Severity};
use crate::doctor::facts::{CheckedRight, Facts};
use crate::doctor::right::RightScope;

pub(super) fn service(facts: &Facts) -> Vec<Finding> {
    judge(facts, &[RightScope::Service])
}

pub(super) fn kcp(facts: &Facts) -> Vec<Finding> {
    judge(facts, &[RightScope::Slice, RightScope::Export])
}

fn judge(facts: &Facts, places: &[RightScope]) -> Vec<Finding> {
    let rights: Vec<_> = facts.rights.iter().filter(|right| places.contains(&right.need.place)).collect();
    let (mut granted, mut found) = (0, Vec::new());
    for right in &rights {
        match &right.denied {
            Ok(denied) if denied.is_empty() => granted += right.need.verbs.len(),
            Ok(denied) => found.push(missing(facts, right, denied)),
            Err(problem) => {
                found.push(
                    Finding::amber(format!("cannot find out the rights on {}: {problem}", right.need.shown()))
                        .id("rights-unknown"),
                );
            }
        }
    }
    if granted > 0 {
        let kinds = rights.iter().filter(|right| right.denied.as_ref().is_ok_and(Vec::is_empty)).count();
        found.insert(0, Finding::green(format!("{granted} verbs on {kinds} resources are granted")));
    }
    found
}

fn missing(facts: &Facts, right: &CheckedRight, denied: &[&str]) -> Finding {
    let need = &right.need;
    let user = match need.place {
        RightScope::Service => &facts.service.user,
        RightScope::Slice | RightScope::Export => &facts.kcp.user,
    };
    // Whoever lacks a right cannot grant it.
    let tool = facts.admin_tool(need.place);
    let user = if user.is_empty() { "<the agent's user>" } else { user };
    let on = need.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let within = need.namespace.as_ref().map(|name| format!(" in namespace {name}")).unwrap_or_default();
    let text = format!("{user} may not {} {}{on}{within}; needed {}", denied.join(", "), need.shown(), need.why);
    let severity = if need.optional { Severity::Amber } else { Severity::Red };

    // Nothing but what is missing, as the agent's own condition says; two roles of one name would get in each other's way.
    let role = format!("api-syncagent-{}-{}", need.resource.replace('/', "-"), denied.join("-"));
    let name = need.name.as_ref().map(|name| format!(" --resource-name={name}")).unwrap_or_default();
    let (kind, binding, inside) = match &need.namespace {
        Some(namespace) => ("role", "rolebinding", format!(" -n {namespace}")),
        None => ("clusterrole", "clusterrolebinding", String::new()),
    };
    let verbs = denied.join(",");
    Finding { severity, ..Finding::red(text).id("right-missing") }
        .by(&tool, &format!("create {kind} {role}{inside} --verb={verbs} --resource={}{name}", need.shown()))
        .by(&tool, &format!("create {binding} {role}{inside} --{kind}={role} --user={user}"))
        .runs()
}

#[cfg(test)]
mod tests {
    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::AgentArguments;
    use crate::doctor::needs;

    fn facts(denied: impl Fn(&str) -> Result<Vec<&'static str>, String>) -> Facts {
        let mut facts = Facts { export_url: "https://h/clusters/root:p".to_owned(), ..Facts::default() };
        facts.asked = AgentArguments {
            namespace: "own".to_owned(),
            kcp_kubeconfig: "kcp.kubeconfig".to_owned(),
            ..AgentArguments::default()
        };
        facts.service.user = "agent".to_owned();
        let all = needs::on_the_service_cluster(&facts.asked, &[]).into_iter().chain(needs::in_kcp("s", "e"));
        facts.rights = all.map(|need| CheckedRight { denied: denied(&need.resource), need }).collect();
        facts
    }

    #[test]
    fn everything_granted_is_one_line_for_each_side() {
        let facts = facts(|_| Ok(Vec::new()));
        for found in [service(&facts), kcp(&facts)] {
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].severity, Green);
        }
    }

    #[test]
    fn what_is_missing_comes_with_commands_that_grant_it() {
        let facts = facts(|resource| Ok(if resource == "namespaces" { vec!["create"] } else { Vec::new() }));
        let found = service(&facts);
        assert_eq!(found[1].severity, Red);
        assert_eq!(found[1].text, "agent may not create namespaces; needed to create namespaces for copies");
        assert_eq!(
            found[1].fix[1..],
            [
                "kubectl create clusterrole api-syncagent-namespaces-create --verb=create --resource=namespaces",
                "kubectl create clusterrolebinding api-syncagent-namespaces-create --clusterrole=api-syncagent-namespaces-create --user=agent",
            ]
        );
    }

    #[test]
    fn rights_on_one_object_or_in_one_namespace_stay_that_narrow() {
        let content = facts(|resource| Ok(if resource == "apiexports/content" { vec!["get"] } else { Vec::new() }));
        let found = kcp(&content);
        assert!(
            found[1].fix[1].ends_with("--resource=apiexports.apis.kcp.io/content --resource-name=e"),
            "{:?}",
            found[1].fix
        );
        assert!(found[1].fix[1].contains("--server https://h/clusters/root:p"));
        let leases = facts(|resource| Ok(if resource == "leases" { vec!["get"] } else { Vec::new() }));
        let found = service(&leases);
        assert_eq!(found[1].severity, Amber);
        assert!(
            found[1].fix[1].starts_with("kubectl create role api-syncagent-leases-get -n own "),
            "{:?}",
            found[1].fix
        );
    }

    #[test]
    fn what_nobody_knows_is_amber() {
        let facts = facts(|_| Err("no reviews here".to_owned()));
        assert!(service(&facts).iter().all(|one| one.severity == Amber));
    }
}
