//! Values of the Helm chart, and the command that installs the agent. Pure.

use std::fmt::Write as _;
use std::path::Path;

use super::manifest::image_values;
use super::plan::Plan;

impl Plan {
    /// Values for the Helm chart.
    pub fn values(&self, overrides: &[String]) -> String {
        let mut text = format!(
            "apiExportEndpointSliceName: {}\nkcpKubeconfig: {}\n# Its token is renewed by the agent.\nrenewKcpToken: true\n# The rights are there already, for exactly what is published.\nserviceAccount:\n  create: false\n  name: {}\ncrds:\n  enabled: false\n# PublishedResources of other exports are none of its business.\npublishedResourceSelector: {}\n",
            self.export,
            self.secret,
            self.agent,
            self.selector()
        );
        if self.is_named() {
            let _ = writeln!(text, "agentName: {}", self.agent);
        }
        if !overrides.is_empty() {
            let _ = writeln!(text, "apiExportHostPortOverrides:");
            for one in overrides {
                let _ = writeln!(text, "- {one:?}");
            }
        }
        text
    }

    /// The command that installs the agent.
    pub fn helm(
        &self,
        kubeconfig: Option<&Path>,
        values: Option<&Path>,
        overrides: &[String],
        image: Option<&str>,
        chart: &str,
    ) -> String {
        let kubeconfig = kubeconfig.map(|path| format!(" --kubeconfig {}", path.display())).unwrap_or_default();
        let release = self.agent.replace('.', "-");
        let settings = if let Some(file) = values {
            format!("--values {}", file.display())
        } else {
            let named = if self.is_named() { format!(",agentName={}", self.agent) } else { String::new() };
            let mut listed = String::new();
            for (index, one) in overrides.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(listed, " --set-string 'apiExportHostPortOverrides[{index}]={one}'");
            }
            format!(
                "--set apiExportEndpointSliceName={},kcpKubeconfig={},renewKcpToken=true,serviceAccount.create=false,serviceAccount.name={},crds.enabled=false,publishedResourceSelector={}{named}{listed}",
                self.export,
                self.secret,
                self.agent,
                self.selector()
            )
        };
        let image: String = image
            .map(image_values)
            .unwrap_or_default()
            .into_iter()
            .fold(String::new(), |text, (name, value)| format!("{text} --set-string {name}={value}"));
        format!("helm{kubeconfig} upgrade --install {release} {chart} -n {} {settings}{image}", self.choices.namespace)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::plan::tests::one_kind;
    use super::*;

    #[test]
    fn values_and_the_helm_command_say_the_same() {
        let plan = Plan { agent: "storage".to_owned(), secret: "storage-kcp".to_owned(), ..one_kind() };
        let overrides = ["a:1=b:2".to_owned()];
        let values: Value = serde_saphyr::from_str(&plan.values(&overrides)).unwrap();
        let command = plan.helm(None, None, &overrides, None, "c");
        for (pointer, wanted) in [
            ("/apiExportEndpointSliceName", "apiExportEndpointSliceName=example.com"),
            ("/kcpKubeconfig", "kcpKubeconfig=storage-kcp"),
            ("/renewKcpToken", "renewKcpToken=true"),
            ("/serviceAccount/name", "serviceAccount.name=storage"),
            ("/publishedResourceSelector", "publishedResourceSelector=syncagent.kcp.io/export=example.com"),
            ("/agentName", "agentName=storage"),
            ("/apiExportHostPortOverrides/0", "apiExportHostPortOverrides[0]=a:1=b:2"),
        ] {
            let value = values.pointer(pointer).unwrap();
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert!(command.contains(wanted) && wanted.ends_with(&value), "{pointer}: {command}");
        }
        let with_file = plan.helm(Some(Path::new("k")), Some(Path::new("v.yaml")), &[], Some("r/a:1"), "oci://r/c");
        assert_eq!(
            with_file,
            "helm --kubeconfig k upgrade --install storage oci://r/c -n own --values v.yaml --set-string image.repository=r/a --set-string image.tag=1"
        );
    }
}
