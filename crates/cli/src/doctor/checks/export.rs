//! The slice, its endpoints, and the export.

use carrick_kcp::condition::{Condition, ConditionStatus};

use super::Finding;
use super::servers::{host, way_out};
use crate::doctor::facts::{Facts, FailureKind, Lookup, ServerAnswer};
use crate::doctor::right::RightScope;

pub(super) fn slice(facts: &Facts) -> Vec<Finding> {
    let name = &facts.asked.slice;
    let tool = facts.tool(RightScope::Slice, "apiexports");
    let found = match &facts.slice {
        Lookup::NotAsked => return Vec::new(),
        // Agents are commonly allowed to read their own slice only: a mistyped name is refused as well.
        Lookup::Unreadable(FailureKind::Rights, problem) => {
            let others = facts.slices.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" or ");
            let others = if others.is_empty() { "<name>".to_owned() } else { others };
            Finding::red(format!("APIExportEndpointSlice {name} cannot be read, or does not exist: {problem}")).id("slice-unreadable")
                .by(&facts.admin_tool(RightScope::Slice), "get apiexportendpointslices    # is it there?")
                .fix(format!("--apiexportendpointslice-ref {others}    # if not; otherwise grant the right: see the rights in kcp below"))
        }
        Lookup::Unreadable(trouble, problem) => {
            Finding::red(format!("APIExportEndpointSlice {name} cannot be read: {problem}"))
                .id("slice-unreadable")
                .fix(way_out(*trouble, &facts.kcp.url))
        }
        Lookup::Missing => match facts.slices.as_deref() {
            Some([]) => {
                let place = carrick_kcp::url::workspace(&facts.kcp.url).unwrap_or("this workspace");
                let text =
                    format!("there is no APIExportEndpointSlice in {place}: is this the workspace of the export?");
                Finding::red(text).id("slice-none")
                    .fix(format!("--kcp-kubeconfig <file>    # with the path of the right workspace after /clusters/, if {place} is not"))
                    .by(&tool, &create_export(name))
            }
            Some(others) => {
                let text = format!("there is no APIExportEndpointSlice {name} in this workspace");
                Finding::red(text)
                    .id("slice-missing")
                    .fix(format!("--apiexportendpointslice-ref {}    # which exists", others.join(" or ")))
            }
            None => {
                let text = format!("there is no APIExportEndpointSlice {name} in this workspace");
                Finding::red(text)
                    .id("slice-missing")
                    .by(&facts.admin_tool(RightScope::Slice), "get apiexportendpointslices    # which are there?")
                    .fix("--apiexportendpointslice-ref <name>    # one of them")
            }
        },
        Lookup::There(slice) => match slice.spec.export.name.as_str() {
            "" => {
                Finding::red(format!("APIExportEndpointSlice {name} names no APIExport")).id("slice-without-export").by(
                    &facts.tool(RightScope::Slice, "apiexportendpointslices"),
                    &format!("delete apiexportendpointslice {name}    # and create it with spec.export.name"),
                )
            }
            export => Finding::green(format!("APIExportEndpointSlice {name} is for APIExport {export}")),
        },
    };
    vec![found]
}

/// kcp creates a slice of the same name for every export.
fn create_export(name: &str) -> String {
    format!(
        "apply -f - <<'END'\napiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata:\n  name: {name}\nspec: {{}}\nEND"
    )
}

pub(super) fn export(facts: &Facts) -> Vec<Finding> {
    let Some(slice) = facts.slice.object() else { return Vec::new() };
    let name = slice.spec.export.name.as_str();
    let tool = facts.kcp_tool(&facts.export_url);
    match &facts.export {
        Lookup::NotAsked => Vec::new(),
        Lookup::Missing => {
            let text = format!("APIExport {name} does not exist at {}", facts.export_url);
            vec![
                Finding::red(text)
                    .id("export-missing")
                    .by(&facts.tool(RightScope::Export, "apiexports"), &create_export(name))
                    .runs(),
            ]
        }
        Lookup::Unreadable(FailureKind::Rights, problem) => {
            let text = format!("APIExport {name} cannot be read, or does not exist: {problem}");
            vec![
                Finding::red(text)
                    .id("export-unreadable")
                    .by(&facts.admin_tool(RightScope::Export), &format!("get apiexport {name}    # is it there?")),
            ]
        }
        Lookup::Unreadable(trouble, problem) => {
            let text = format!("APIExport {name} cannot be read: {problem}");
            vec![Finding::red(text).id("export-unreadable").fix(way_out(*trouble, &facts.export_url))]
        }
        Lookup::There(export) => {
            let mut found = vec![Finding::green(format!("APIExport {name} exists at {}", facts.export_url))];
            found.extend(unmet(&export.status.conditions).map(|(kind, message)| {
                let text = format!("APIExport {name} has condition {kind} False: {message}");
                Finding::amber(text).id("export-condition").by(&tool, &format!("get apiexport {name} -o yaml"))
            }));
            found
        }
    }
}

/// Conditions that are False, and why.
pub(super) fn unmet(conditions: &[Condition]) -> impl Iterator<Item = (&str, &str)> {
    conditions.iter().filter(|condition| condition.status == ConditionStatus::False).map(|condition| {
        let Condition { type_, message, reason, .. } = condition;
        (or(type_, "something"), or(message, or(reason, "no reason is given")))
    })
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// What a consumer's binding says about the claims of the export, so that nothing is asked for a second time.
fn accepted(facts: &Facts) -> String {
    let claims = facts.export.object().map(|export| export.spec.permission_claims.as_slice()).unwrap_or_default();
    let lines = claims.iter().filter_map(|claim| {
        let mut claim = serde_json::to_value(claim).ok()?;
        claim["state"] = "Accepted".into();
        claim["selector"] = serde_json::json!({ "matchAll": true });
        Some(format!("  - {claim}\n"))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("  permissionClaims:\n{lines}") }
}

pub(super) fn endpoints(facts: &Facts) -> Vec<Finding> {
    let Some(slice) = facts.slice.object() else { return Vec::new() };
    if facts.endpoints.is_empty() {
        let mut found = Finding::amber(
            "the slice has no endpoints yet: kcp lists them once a consumer has bound the export, and the agent waits for that",
        ).id("endpoints-none");
        let export = &slice.spec.export.name;
        let path = carrick_kcp::url::workspace(&facts.export_url).unwrap_or("<workspace of the export>");
        found = found.fix(format!(
            "kubectl apply -f - <<'END'    # in a consumer's workspace\napiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata:\n  name: {export}\nspec:\n  reference:\n    export:\n      path: {path}\n      name: {export}\n{}END",
            accepted(facts)
        ));
        return vec![found];
    }
    let each = facts.endpoints.iter().map(|endpoint| match &endpoint.answer {
        ServerAnswer::NotAsked => Finding::amber(format!("{} was not checked", endpoint.url)).id("endpoint-not-checked"),
        ServerAnswer::Works => Finding::green(format!("{} answers", endpoint.url)),
        ServerAnswer::Fails(FailureKind::Rights, problem) => {
            Finding::red(format!("{} refuses: {problem}", endpoint.url)).id("endpoint-refuses")
                .fix("grant apiexports/content on the export: see the rights in kcp below")
        }
        ServerAnswer::Fails(trouble, problem) => {
            let host = host(&endpoint.url);
            let found = Finding::red(format!("{} cannot be reached from here: {problem}", endpoint.url)).id("endpoint-unreachable");
            let found = found.fix(way_out(*trouble, &endpoint.url));
            let is_address = matches!(trouble, FailureKind::Name | FailureKind::Connection);
            if is_address {
                let port = if host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) { "" } else { ":443" };
                found.fix(format!(
                    "--apiexport-hostport-override {host}{port}=<host>:<port>    # for the agent too, if kcp has another address from here"
                ))
            } else {
                found
            }
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
    use carrick_kcp::apis::v1alpha2::ApiExport;
    use carrick_kcp::condition::Severity;

    use super::super::Severity::{Amber, Green, Red};
    use super::*;
    use crate::doctor::facts::Endpoint;

    fn facts(slice: Lookup<ApiExportEndpointSlice>, export: Lookup<ApiExport>) -> Facts {
        let mut facts = Facts { slice, export, export_url: "https://h/clusters/root:p".to_owned(), ..Facts::default() };
        facts.asked.slice = "s".to_owned();
        facts.asked.agent_name = "me".to_owned();
        facts
    }

    fn good_slice() -> Lookup<ApiExportEndpointSlice> {
        let mut slice = ApiExportEndpointSlice::new("s");
        slice.spec.export.name = "e".to_owned();
        Lookup::There(slice)
    }

    #[test]
    fn a_slice_is_there_or_the_fix_names_what_is() {
        let missing = Facts { slices: Some(Vec::new()), ..facts(Lookup::Missing, Lookup::NotAsked) };
        let fix = slice(&missing).remove(0).fix;
        assert!(fix.contains(&"  name: s".to_owned()) && fix[0].starts_with("--kcp-kubeconfig"), "{fix:?}");
        let other = Facts { slices: Some(vec!["t".to_owned()]), ..missing.clone() };
        assert!(slice(&other)[0].fix[0].starts_with("--apiexportendpointslice-ref t"));
        // Who may read one slice only is not told to make another export for a mistyped name, nor to ask for access.
        let unlisted = Facts { slices: None, ..missing };
        let refused = Lookup::Unreadable(FailureKind::Rights, "forbidden".to_owned());
        for facts in [Facts { slice: refused, ..unlisted.clone() }, unlisted] {
            let fix = slice(&facts).remove(0).fix.join("\n");
            assert!(
                fix.contains("get apiexportendpointslices") && fix.contains("--apiexportendpointslice-ref"),
                "{fix}"
            );
            assert!(!fix.contains("kind: APIExport") && !fix.contains("verb access"), "{fix}");
        }
        assert_eq!(slice(&facts(good_slice(), Lookup::NotAsked))[0].severity, Green);
        assert_eq!(slice(&facts(Lookup::There(ApiExportEndpointSlice::default()), Lookup::NotAsked))[0].severity, Red);
        assert_eq!(slice(&Facts::default()), []);
    }

    #[test]
    fn an_export_is_there_and_content() {
        assert_eq!(export(&facts(good_slice(), Lookup::Missing))[0].severity, Red);
        let mut bad = ApiExport::new("e");
        bad.status.conditions =
            vec![Condition::fails("IdentityValid", Severity::Error, "", "no"), Condition::holds("A")];
        let found = export(&facts(good_slice(), Lookup::There(bad)));
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Green, Amber]);
        assert!(found[1].text.contains("IdentityValid False: no"));
    }

    #[test]
    fn endpoints_answer_or_wait_for_the_first_consumer() {
        let mut facts = facts(good_slice(), Lookup::NotAsked);
        let none = endpoints(&facts);
        assert_eq!(none[0].severity, Amber);
        assert!(none[0].fix.contains(&"      path: root:p".to_owned()), "{none:?}");
        facts.endpoints = [ServerAnswer::Works, ServerAnswer::Fails(FailureKind::Name, "unknown".to_owned())]
            .map(|answer| Endpoint { url: "https://shard:1/x".to_owned(), answer })
            .to_vec();
        let found = endpoints(&facts);
        assert_eq!(found.iter().map(|one| one.severity).collect::<Vec<_>>(), [Green, Red]);
        assert!(found[1].fix[0].contains("getent hosts shard "));
    }

    #[test]
    fn the_binding_that_is_printed_accepts_what_the_export_claims() {
        let slice: ApiExportEndpointSlice =
            serde_json::from_value(serde_json::json!({ "spec": { "export": { "name": "e" } } })).unwrap();
        let export: ApiExport = serde_json::from_value(serde_json::json!({
            "spec": { "permissionClaims": [{ "group": "", "resource": "secrets", "verbs": ["*"] }] },
        }))
        .unwrap();
        let mut facts = Facts { slice: Lookup::There(slice), ..Facts::default() };
        let printed = |facts: &Facts| endpoints(facts)[0].fix.join("\n");
        assert!(!printed(&facts).contains("permissionClaims"), "{}", printed(&facts));
        facts.export = Lookup::There(export);
        let text = printed(&facts);
        let manifest = text.split_once('\n').unwrap().1.trim_end_matches("END");
        let binding: serde_json::Value = serde_saphyr::from_str(manifest).unwrap();
        let claim = &binding["spec"]["permissionClaims"][0];
        assert_eq!((&claim["resource"], &claim["state"]), (&"secrets".into(), &"Accepted".into()), "{text}");
    }
}
