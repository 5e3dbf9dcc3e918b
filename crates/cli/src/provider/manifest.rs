//! The agent's Deployment, for clusters without Helm. Pure.

use serde_json::{Value, json};

use super::plan::{self, Plan};

/// Where the agent's kubeconfig for kcp is mounted.
const MOUNTED: &str = "/etc/api-syncagent/kcp";
const HEALTH: u16 = 8081;
const METRICS: u16 = 8085;

impl Plan {
    /// The agent as the chart would install it, with the rights that this command grants.
    pub fn deployment(&self, image: &str, overrides: &[String]) -> Value {
        let (name, namespace) = (self.agent.replace('.', "-"), &self.choices.namespace);
        let labels = json!({ "app.kubernetes.io/name": "kcp-api-syncagent", "app.kubernetes.io/instance": name });
        let (label, value) = plan::mark();
        let mut marked = labels.clone();
        marked[label] = json!(value);
        let probe = |path: &str, seconds: u8| json!({ "httpGet": { "path": path, "port": "health" }, "periodSeconds": seconds, "failureThreshold": 6 });
        let container = json!({
            "name": "agent",
            "image": image,
            "args": self.flags(overrides),
            "env": [{ "name": "POD_NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } }],
            "ports": [{ "name": "metrics", "containerPort": METRICS }, { "name": "health", "containerPort": HEALTH }],
            "livenessProbe": probe("/healthz", 10),
            "readinessProbe": probe("/readyz", 5),
            "resources": {
                "requests": { "cpu": "100m", "memory": "64Mi" },
                "limits": { "cpu": "1", "memory": "512Mi" },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": [{ "name": "kcp", "mountPath": MOUNTED, "readOnly": true }],
        });
        let pod = json!({
            "serviceAccountName": self.agent,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [container],
            "volumes": [{ "name": "kcp", "secret": { "secretName": self.secret } }],
        });
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name, "namespace": namespace, "labels": marked },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": pod },
            },
        })
    }

    /// The flags of the agent.
    fn flags(&self, overrides: &[String]) -> Vec<String> {
        let mut flags = vec![
            "--namespace=$(POD_NAMESPACE)".to_owned(),
            "--enable-leader-election=true".to_owned(),
            format!("--apiexportendpointslice-ref={}", self.export),
            format!("--agent-name={}", self.agent),
            format!("--kcp-kubeconfig={MOUNTED}/kubeconfig"),
            format!("--renew-kcp-token={}", self.secret),
            format!("--published-resource-selector={}", self.selector()),
            format!("--health-address=:{HEALTH}"),
            format!("--metrics-address=:{METRICS}"),
        ];
        flags.extend(overrides.iter().map(|one| format!("--apiexport-hostport-override={one}")));
        flags
    }
}

/// The values of the chart that name an image: its repository, and its tag or digest.
pub fn image_values(image: &str) -> Vec<(&'static str, String)> {
    if let Some((repository, digest)) = image.split_once('@') {
        return vec![("image.repository", repository.to_owned()), ("image.digest", digest.to_owned())];
    }
    // A colon before the last slash belongs to the port of a registry.
    match image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((repository, tag)) => vec![("image.repository", repository.to_owned()), ("image.tag", tag.to_owned())],
        None => vec![("image.repository", image.to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use carrick_syncagent::options::Options;

    use super::super::plan::tests::one_kind;
    use super::*;

    #[test]
    fn the_agent_takes_the_flags_of_its_deployment_and_finds_its_secret() {
        let plan = one_kind();
        let deployment = plan.deployment("r/api-syncagent:1", &["a:1=b:2".to_owned()]);
        let pod = &deployment["spec"]["template"]["spec"];
        let flags = pod["containers"][0]["args"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap());
        let flags = flags.map(|flag| flag.replace("$(POD_NAMESPACE)", "own"));
        let options = Options::parse_from_args(std::iter::once("api-syncagent".to_owned()).chain(flags)).unwrap();
        let options = options.complete().unwrap();
        assert_eq!((options.agent_name.as_str(), options.namespace.as_str()), (plan.agent.as_str(), "own"));
        assert_eq!(options.renew_kcp_token, plan.secret);
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], plan.secret.as_str());
        // It is found again without any flag.
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], MOUNTED);
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"]);
    }

    #[test]
    fn an_image_is_a_repository_with_a_tag_or_a_digest() {
        let of = |image: &str| {
            let values = image_values(image).into_iter().map(|(name, value)| format!("{name}={value}"));
            values.collect::<Vec<_>>().join(",")
        };
        assert_eq!(of("r:5000/a"), "image.repository=r:5000/a");
        assert_eq!(of("r:5000/a:v1"), "image.repository=r:5000/a,image.tag=v1");
        assert_eq!(of("r/a@sha256:12"), "image.repository=r/a,image.digest=sha256:12");
    }
}
