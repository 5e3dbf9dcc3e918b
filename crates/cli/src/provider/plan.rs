//! Every object that is wanted, and where it belongs. Pure, but for reading files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, ensure};
use carrick_client::{Overrides, Server};
use carrick_json::manifest;
use carrick_syncagent::options::default_agent_name;
use carrick_syncagent::rules::crd::Crd;
use carrick_syncagent::rules::rights::{self, NeededRight};
use carrick_syncagent::toolkit;
use serde_json::{Value, json};

use super::manifest::image_values;
use super::mesh::Elsewhere;
use crate::init::files;
use crate::init::offer::{Choices, Offer, label_of, one_export};

/// Namespace of the agent's ServiceAccount in the provider's workspace.
pub const ACCOUNTS: &str = "default";
/// Label of everything that this command has created.
const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "carrick-provider-up");

/// The label of everything that this command creates.
pub fn mark() -> (&'static str, &'static str) {
    LABEL
}

/// Whether an object was created by this command.
pub fn is_marked(object: &Value) -> bool {
    object["metadata"]["labels"][LABEL.0] == LABEL.1
}

/// Where an object belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The service cluster.
    Service,
    /// The provider's workspace.
    Workspace,
}

impl Side {
    /// For people.
    pub fn shown(self) -> &'static str {
        match self {
            Self::Service => "on the service cluster",
            Self::Workspace => "in the workspace",
        }
    }
}

/// An object that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Where it belongs.
    pub side: Side,
    /// The object.
    pub object: Value,
}

impl Wanted {
    /// Text of one of its fields.
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Its group and version.
    pub fn api(&self) -> (&str, &str) {
        let api = self.text("/apiVersion");
        api.split_once('/').unwrap_or(("", api))
    }

    /// Whether people complete it after it was created, so that it is never changed again.
    pub fn is_draft(&self) -> bool {
        self.api().0 == "ui.platform-mesh.io"
    }

    /// Kind, namespace and name.
    pub fn shown(&self) -> String {
        let (kind, namespace, name) =
            (self.text("/kind"), self.text("/metadata/namespace"), self.text("/metadata/name"));
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

/// A PublishedResource that somebody wrote, and what follows from the CRD of its kind.
pub struct Own {
    object: Value,
    offer: Offer,
    needs: Vec<NeededRight>,
}

impl Own {
    /// Looks up the CRD on the service cluster.
    pub async fn look_up(object: Value, kubeconfig: Option<&Path>, choices: &Choices) -> anyhow::Result<Self> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let pr = toolkit::published(object.clone())?;
        let server = Server::infer(kubeconfig, &Overrides::default())
            .context("the service cluster cannot be found; name its kubeconfig with --kubeconfig")?;
        let crd = toolkit::crd(&server.client(), &pr, false)
            .await
            .with_context(|| format!("the kind of PublishedResource {name:?}"))?;
        // The export is named after the group that consumers see.
        let implemented = object["spec"]["implements"]["resource"].as_str().and_then(|name| name.split_once('.'));
        let projected = object["spec"]["projection"]["group"].as_str().filter(|group| !group.is_empty());
        let projected = implemented.map(|(_, group)| group).or(projected);
        let choices = Choices { group: projected.map(str::to_owned), ..choices.clone() };
        let needs = rights::needs(&pr, &Crd::from_json(&crd)?, true);
        let offer = Offer::new(&crd, choices)?;
        let offer = match &pr.spec.implements {
            Some(api) => offer.implementing(api, &crd)?,
            None => offer,
        };
        Ok(Self { object, offer, needs })
    }
}

/// The PublishedResources in a file.
pub fn read_published(path: &Path) -> anyhow::Result<Vec<Value>> {
    let place = path.display();
    let text = manifest::text(&std::fs::read(path).with_context(|| format!("cannot read {place}"))?);
    let objects = manifest::objects(&text).with_context(|| place.to_string())?;
    let mut found: Vec<Value> = objects.into_iter().filter(|object| object["kind"] == "PublishedResource").collect();
    found.iter_mut().for_each(manifest::drop_nulls);
    ensure!(!found.is_empty(), "{place} contains no PublishedResource; CRDs are given with --crd");
    for object in &found {
        ensure!(
            object["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty()),
            "a PublishedResource in {place} has no metadata.name"
        );
    }
    Ok(found)
}

/// Everything that is wanted.
pub struct Plan {
    /// What was chosen.
    pub choices: Choices,
    /// Name of the APIExport.
    pub export: String,
    /// Name of the agent.
    pub agent: String,
    /// Name of the Secret with the agent's kubeconfig.
    pub secret: String,
    /// The objects, in the order in which they can be created.
    pub objects: Vec<Wanted>,
    /// Objects in other workspaces, which Platform Mesh wants.
    pub elsewhere: Vec<Elsewhere>,
}

impl Plan {
    /// From offers that were made of CRDs, and from PublishedResources.
    pub fn new(offers: &[Offer], published: &[Own], choices: &Choices, mesh: bool) -> anyhow::Result<Self> {
        let all: Vec<&Offer> = offers.iter().chain(published.iter().map(|own| &own.offer)).collect();
        let export = one_export(all.iter().copied())?.to_owned();
        let agent = choices.agent.clone().unwrap_or_else(|| default_agent_name(&export));
        let kcp_user = format!("system:serviceaccount:{ACCOUNTS}:{agent}");
        let choices = Choices { export: Some(export.clone()), agent: Some(agent.clone()), kcp_user, ..choices.clone() };
        let mut objects = Vec::new();
        for (index, offer) in all.into_iter().enumerate() {
            let is_own = index >= offers.len();
            let offer =
                Offer { export: export.clone(), agent: agent.clone(), choices: choices.clone(), ..offer.clone() };
            for (name, text) in files::all(&offer)? {
                let side = match name.split('/').next().unwrap_or_default() {
                    "service-cluster" if is_own && name.ends_with("published-resource.yaml") => continue,
                    "service-cluster" => Side::Service,
                    "provider-workspace" => Side::Workspace,
                    "platform-mesh" if mesh => Side::Workspace,
                    _ => continue,
                };
                push_all(&mut objects, side, &text)?;
            }
        }
        let (label, value) = label_of(&export);
        for Own { object, needs, .. } in published {
            let name = format!("{agent}:{}:related", object["metadata"]["name"].as_str().unwrap_or_default());
            for grant in grants(&name, &agent, &choices.namespace, needs) {
                push(&mut objects, Side::Service, grant);
            }
            let mut object = object.clone();
            object["metadata"]["labels"][label] = json!(value);
            push(&mut objects, Side::Service, object);
        }
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": agent, "namespace": ACCOUNTS },
        });
        push(&mut objects, Side::Workspace, account);
        for grant in renewal_rights(&agent) {
            push(&mut objects, Side::Workspace, grant);
        }
        let secret = format!("{}-kcp", agent.replace('.', "-"));
        Ok(Self { choices, export, agent, secret, objects, elsewhere: Vec::new() })
    }

    /// All objects, as kubectl takes them.
    pub fn yaml(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        let workspace = format!("in workspace {}", self.choices.workspace);
        let own = self.objects.iter().map(|wanted| match wanted.side {
            Side::Service => ("on the service cluster".to_owned(), wanted),
            Side::Workspace => (workspace.clone(), wanted),
        });
        let others = self.elsewhere.iter().map(|(path, wanted)| (format!("in workspace {path}"), wanted));
        for (place, wanted) in own.chain(others) {
            let object = serde_saphyr::to_string(&wanted.object)?;
            // Writing to a String cannot fail.
            let _ = write!(text, "---\n# {place}\n{}\n", object.trim_end());
        }
        Ok(text)
    }

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

    /// The selector for what the agent serves.
    pub fn selector(&self) -> String {
        let (label, value) = label_of(&self.export);
        format!("{label}={value}")
    }

    /// Whether the agent has another name than by default.
    fn is_named(&self) -> bool {
        self.agent != default_agent_name(&self.export)
    }
}

/// Adds all objects of a text.
fn push_all(objects: &mut Vec<Wanted>, side: Side, text: &str) -> anyhow::Result<()> {
    for object in carrick_json::yaml::values(text)? {
        push(objects, side, object);
    }
    Ok(())
}

/// Adds an object, unless it is there: several kinds share an agent and an export.
fn push(objects: &mut Vec<Wanted>, side: Side, object: Value) {
    let wanted = Wanted { side, object };
    if !objects.contains(&wanted) {
        objects.push(wanted);
    }
}

/// Lets the agent's ServiceAccount get another token of its own, and of nobody else.
fn renewal_rights(agent: &str) -> [Value; 2] {
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({ "name": format!("{agent}:token"), "namespace": ACCOUNTS });
    let rule = json!({
        "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [agent], "verbs": ["create"],
    });
    [
        json!({ "apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule] }),
        json!({
            "apiVersion": format!("{api}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": { "apiGroup": api, "kind": "Role", "name": metadata["name"] },
            "subjects": [{ "kind": "ServiceAccount", "name": agent, "namespace": ACCOUNTS }],
        }),
    ]
}

/// A role with the rights that a PublishedResource needs, and its binding; roles in namespaces where that is enough.
fn grants(name: &str, agent: &str, own: &str, needs: &[NeededRight]) -> Vec<Value> {
    let places: BTreeSet<Option<&str>> = needs.iter().map(|need| need.namespace.as_deref()).collect();
    let subjects = json!([{ "kind": "ServiceAccount", "name": agent, "namespace": own }]);
    let mut objects = Vec::new();
    for place in places {
        let kind = if place.is_some() { "Role" } else { "ClusterRole" };
        let rules: Vec<Value> = needs
            .iter()
            .filter(|need| need.namespace.as_deref() == place)
            .map(|need| json!({ "apiGroups": [need.group], "resources": [need.resource], "verbs": need.verbs }))
            .collect();
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = place {
            metadata["namespace"] = json!(namespace);
        }
        let api = "rbac.authorization.k8s.io";
        objects.push(json!({ "apiVersion": format!("{api}/v1"), "kind": kind, "metadata": metadata, "rules": rules }));
        objects.push(json!({
            "apiVersion": format!("{api}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": { "apiGroup": api, "kind": kind, "name": name },
            "subjects": subjects,
        }));
    }
    objects
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A plan for one kind.
    pub fn one_kind() -> Plan {
        plan(&[crd("buckets", "example.com")], &choices()).unwrap()
    }

    fn crd(plural: &str, group: &str) -> Value {
        json!({
            "kind": "CustomResourceDefinition", "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group, "scope": "Namespaced", "names": { "kind": "Bucket", "plural": plural },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
            },
        })
    }

    fn choices() -> Choices {
        Choices { workspace: "root:p".to_owned(), namespace: "own".to_owned(), ..Choices::default() }
    }

    fn plan(crds: &[Value], choices: &Choices) -> anyhow::Result<Plan> {
        let offers: Vec<Offer> = crds.iter().map(|crd| Offer::new(crd, choices.clone()).unwrap()).collect();
        Plan::new(&offers, &[], choices, false)
    }

    #[test]
    fn kinds_of_one_export_share_everything_but_their_own_rights() {
        let plan = plan(&[crd("buckets", "example.com"), crd("pails", "example.com")], &choices()).unwrap();
        let count = |kind: &str, side: Side| {
            plan.objects.iter().filter(|wanted| wanted.text("/kind") == kind && wanted.side == side).count()
        };
        assert_eq!(count("PublishedResource", Side::Service), 2);
        assert_eq!(count("Namespace", Side::Service), 1);
        assert_eq!(count("APIExport", Side::Workspace), 1);
        assert_eq!(count("ServiceAccount", Side::Workspace), 1);
        let tokens = plan.objects.iter().find(|wanted| wanted.shown() == "Role default/example.com-syncagent:token");
        assert_eq!(tokens.unwrap().object["rules"][0]["resourceNames"], json!(["example.com-syncagent"]));
        let agent = plan.objects.iter().find(|wanted| wanted.shown() == "ClusterRoleBinding example.com-syncagent");
        let user = agent.unwrap().text("/subjects/0/name").to_owned();
        assert_eq!(user, "system:serviceaccount:default:example.com-syncagent");
    }

    #[test]
    fn what_is_published_bears_the_label_that_its_agent_selects() {
        let long = Choices { export: Some("a".repeat(70)), ..choices() };
        for chosen in [choices(), long] {
            let plan = plan(&[crd("buckets", "example.com")], &chosen).unwrap();
            let published = plan.objects.iter().find(|wanted| wanted.text("/kind") == "PublishedResource").unwrap();
            let value = published.object["metadata"]["labels"]["syncagent.kcp.io/export"].as_str().unwrap();
            assert_eq!(plan.selector(), format!("syncagent.kcp.io/export={value}"));
            assert!(value.len() <= 63, "{value}");
        }
    }

    #[test]
    fn kinds_of_several_groups_need_a_name_for_their_export() {
        let crds = [crd("buckets", "a.com"), crd("pails", "b.com")];
        let error = plan(&crds, &choices()).err().unwrap().to_string();
        assert!(error.contains("a.com, b.com") && error.contains("--export"), "{error}");
        let named = Choices { export: Some("storage".to_owned()), ..choices() };
        assert_eq!(plan(&crds, &named).unwrap().export, "storage");
    }

    #[test]
    fn values_and_the_helm_command_say_the_same() {
        let named = Choices { agent: Some("storage".to_owned()), ..choices() };
        let plan = plan(&[crd("buckets", "example.com")], &named).unwrap();
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

    #[test]
    fn roles_are_as_narrow_as_the_rights() {
        let need = |namespace: Option<&str>| NeededRight {
            group: String::new(),
            resource: "secrets".to_owned(),
            namespace: namespace.map(str::to_owned),
            verbs: rights::READ,
            why: String::new(),
        };
        let granted = grants("n", "agent", "own", &[need(None), need(Some("x"))]);
        let shown: Vec<String> =
            granted.into_iter().map(|object| Wanted { side: Side::Service, object }.shown()).collect();
        assert_eq!(shown, ["ClusterRole n", "ClusterRoleBinding n", "Role x/n", "RoleBinding x/n"]);
    }
}
