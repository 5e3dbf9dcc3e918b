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

/// What to type then. All offers were made with the same choices.
pub fn commands(offers: &[(Offer, PathBuf)]) -> Vec<String> {
    let kubectl = |whom: &str, rest: String| format!("kubectl --kubeconfig ${whom} {rest}");
    let mut lines = Vec::new();
    let apply = |whom: &str, folder: &Path, part: &str| kubectl(whom, format!("apply -f {}/{part}", folder.display()));
    if let Some((_, folder)) = offers.first() {
        lines.push(apply("service", folder, "service-cluster/1-agent-crd.yaml"));
        let wait = "wait crd/publishedresources.syncagent.kcp.io --for=condition=Established";
        lines.push(kubectl("service", wait.to_owned()));
    }
    lines.extend(offers.iter().map(|(_, folder)| apply("service", folder, "service-cluster")));
    lines.extend(offers.iter().map(|(_, folder)| apply("provider", folder, "provider-workspace")));
    // One agent for each export.
    let mut exports: Vec<&(Offer, PathBuf)> = Vec::new();
    for one in offers {
        if !exports.iter().any(|(known, _)| known.export == one.0.export) {
            exports.push(one);
        }
    }
    for (Offer { export, agent, choices, .. }, _) in &exports {
        // Defaults are left out. Services are named after the release, and their names cannot have dots.
        let own = *agent == default_agent_name(export);
        let value = if own { String::new() } else { format!(",agentName={agent}") };
        let (release, namespace) = (agent.replace('.', "-"), &choices.namespace);
        let secret = format!("create secret generic {release}-kcp -n {namespace} --from-file kubeconfig=$agent");
        lines.push(kubectl("service", secret));
        lines.push(format!(
            "helm --kubeconfig $service install {release} charts/api-syncagent -n {namespace} --set apiExportEndpointSliceName={export},kcpKubeconfig={release}-kcp,serviceAccount.create=false,serviceAccount.name={agent},crds.enabled=false{value}"
        ));
    }
    for (Offer { plural, .. }, _) in offers {
        let wait = format!("wait publishedresource/{plural} --for=condition=ExportUpdated --timeout=2m");
        lines.push(kubectl("service", wait));
    }
    for (Offer { export, .. }, folder) in &exports {
        lines.push(apply("consumer", folder, "consumer-workspace/1-binding.yaml"));
        lines.push(kubectl("consumer", format!("wait apibinding/{export} --for=condition=Ready")));
    }
    lines.extend(offers.iter().map(|(_, folder)| apply("consumer", folder, "consumer-workspace/2-order.yaml")));
    for (Offer { export, agent, choices, .. }, _) in &exports {
        let own = *agent == default_agent_name(export);
        let flag = if own { String::new() } else { format!(" --agent-name {agent}") };
        lines.push(format!(
            "carrick doctor --kubeconfig $service --kcp-kubeconfig $agent --apiexportendpointslice-ref {export} --namespace {}{flag}",
            choices.namespace
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::offer::Choices;
    use super::super::offer::tests::bucket;
    use super::*;

    fn printed(choices: Choices) -> String {
        let offer = Offer::new(&bucket(), choices).unwrap();
        commands(&[(offer, PathBuf::from("folder"))]).join("\n")
    }

    #[test]
    fn defaults_are_left_out() {
        let commands = printed(Choices::default());
        assert!(!commands.contains("--agent-name") && !commands.contains("agentName"), "{commands}");
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
        let lines = commands(&[(offer(bucket()), PathBuf::from("a")), (offer(other), PathBuf::from("b"))]);
        let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        let counts =
            ["helm", "1-binding.yaml", "2-order.yaml", "/provider-workspace", "wait publishedresource"].map(count);
        assert_eq!(counts, [1, 1, 2, 2, 2], "{lines:#?}");
    }
}
