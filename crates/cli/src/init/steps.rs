//! What to type, in order: works as it is printed, once the first lines name the right kubeconfigs. Pure.

use std::path::{Path, PathBuf};

use carrick_syncagent::options::default_agent_name;

use super::offer::Offer;

/// The kubeconfigs that the commands use: a variable, a file, and what it is for.
pub fn kubeconfigs(offer: &Offer, service: Option<&Path>) -> Vec<String> {
    let choices = &offer.choices;
    let service = service.map_or_else(|| "service.kubeconfig".to_owned(), |path| path.display().to_string());
    let workspace = &choices.workspace;
    let lines = [
        ("service", service, "of the service cluster".to_owned()),
        ("provider", "provider.kubeconfig".to_owned(), format!("of kcp; its server ends in /clusters/{workspace}")),
        ("agent", "agent.kubeconfig".to_owned(), format!("the same, for the agent's user {:?}", choices.kcp_user)),
        ("consumer", "consumer.kubeconfig".to_owned(), "of kcp, at a consumer's workspace".to_owned()),
    ];
    lines.into_iter().map(|(name, file, what)| format!("{:<32} # {what}", format!("{name}={file}"))).collect()
}

/// What to type then. All offers were made with the same choices, and share an export.
pub fn commands(offers: &[(Offer, PathBuf)], chart: &str) -> Vec<String> {
    let Some((offer, first)) = offers.first() else { return Vec::new() };
    let (Offer { export, agent, choices, .. }, selector) = (offer, offer.selector());
    // Defaults are left out. Services are named after the release, and their names cannot have dots.
    let own = *agent == default_agent_name(export);
    let (value, flag) =
        if own { Default::default() } else { (format!(",agentName={agent}"), format!(" --agent-name {agent}")) };
    let (release, namespace) = (agent.replace('.', "-"), &choices.namespace);
    let kubectl = |whom: &str, rest: String| format!("kubectl --kubeconfig ${whom} {rest}");
    let apply = |whom: &str, folder: &Path, part: &str| kubectl(whom, format!("apply -f {}/{part}", folder.display()));
    let wait = |whom: &str, what: String| kubectl(whom, format!("wait {what} --timeout=2m"));
    let each = |whom: &'static str, part: &'static str| offers.iter().map(move |(_, folder)| apply(whom, folder, part));
    let mut lines = vec![
        apply("service", first, "service-cluster/1-agent-crd.yaml"),
        wait("service", "crd/publishedresources.syncagent.kcp.io --for=condition=Established".to_owned()),
    ];
    lines.extend(each("service", "service-cluster"));
    lines.extend(each("provider", "provider-workspace"));
    let secret = format!("create secret generic {release}-kcp -n {namespace} --from-file kubeconfig=$agent");
    lines.push(kubectl("service", secret));
    lines.push(format!(
        "helm --kubeconfig $service install {release} {chart} -n {namespace} --set apiExportEndpointSliceName={export},kcpKubeconfig={release}-kcp,serviceAccount.create=false,serviceAccount.name={agent},crds.enabled=false,publishedResourceSelector={selector}{value}"
    ));
    for (Offer { plural, .. }, _) in offers {
        lines.push(wait("service", format!("publishedresource/{plural} --for=condition=ExportUpdated")));
    }
    lines.push(apply("consumer", first, "consumer-workspace/1-binding.yaml"));
    lines.push(wait("consumer", format!("apibinding/{export} --for=condition=Ready")));
    lines.extend(each("consumer", "consumer-workspace/2-order.yaml"));
    lines.push(format!(
        "carrick doctor --kubeconfig $service --kcp-kubeconfig $agent --apiexportendpointslice-ref {export} --namespace {namespace} --published-resource-selector {selector}{flag}"
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::offer::Choices;
    use super::super::offer::tests::bucket;
    use super::*;

    fn printed(choices: Choices) -> String {
        let offer = Offer::new(&bucket(), choices).unwrap();
        commands(&[(offer, PathBuf::from("folder"))], "oci://r/chart").join("\n")
    }

    #[test]
    fn defaults_are_left_out() {
        let commands = printed(Choices::default());
        assert!(!commands.contains("--agent-name") && !commands.contains("agentName"), "{commands}");
    }

    #[test]
    fn the_agent_serves_what_is_labelled_for_its_export_and_nothing_else() {
        let commands = printed(Choices { export: Some("storage".to_owned()), ..Choices::default() });
        let selector = "syncagent.kcp.io/export=storage";
        assert!(commands.contains(&format!(",publishedResourceSelector={selector}")), "{commands}");
        assert!(commands.contains(&format!(" --published-resource-selector {selector}")), "{commands}");
    }

    #[test]
    fn helm_takes_the_chart_that_was_named() {
        let commands = printed(Choices::default());
        assert!(commands.contains(" oci://r/chart -n ") && !commands.contains("charts/"), "{commands}");
    }

    #[test]
    fn another_name_is_said_to_all() {
        let commands = printed(Choices { agent: Some("storage".to_owned()), ..Choices::default() });
        assert!(commands.contains(",agentName=storage") && commands.contains(" --agent-name storage"), "{commands}");
    }

    #[test]
    fn kinds_of_one_export_share_an_agent_and_a_binding() {
        let other = {
            let mut crd = bucket();
            crd["spec"]["names"]["plural"] = serde_json::json!("pails");
            crd
        };
        let offer = |crd| Offer::new(&crd, Choices::default()).unwrap();
        let lines = commands(&[(offer(bucket()), PathBuf::from("a")), (offer(other), PathBuf::from("b"))], "c");
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        let counts =
            ["helm", "1-binding.yaml", "2-order.yaml", "/provider-workspace", "wait publishedresource"].map(count);
        assert_eq!(counts, [1, 1, 2, 2, 2], "{lines:#?}");
    }
}
