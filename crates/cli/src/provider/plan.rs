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

use crate::init::files;
use crate::init::offer::{Choices, Offer, label_of, one_export};
use crate::mesh;
use crate::mesh::flags::PortalWishes;
use crate::mesh::permissions::NamedKind;

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
        mesh::is_completed_by_people(self.api().0)
    }

    /// Kind, namespace and name.
    pub fn shown(&self) -> String {
        let (kind, namespace, name) =
            (self.text("/kind"), self.text("/metadata/namespace"), self.text("/metadata/name"));
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }
}

/// An object with the workspace it belongs to.
pub type Elsewhere = (String, Wanted);

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
    /// The workspace itself, where it must be of a type.
    pub home: Option<Elsewhere>,
    /// What is published.
    pub offers: Vec<Offer>,
    /// Rights on the service cluster beside those on what is published.
    pub needs: Vec<NeededRight>,
}

impl Plan {
    /// From offers that were made of CRDs, and from PublishedResources.
    pub fn new(
        offers: &[Offer],
        published: &[Own],
        choices: &Choices,
        portal: Option<&PortalWishes>,
    ) -> anyhow::Result<Self> {
        let all: Vec<&Offer> = offers.iter().chain(published.iter().map(|own| &own.offer)).collect();
        let export = one_export(all.iter().copied())?.to_owned();
        let agent = choices.agent.clone().unwrap_or_else(|| default_agent_name(&export));
        let kcp_user = format!("system:serviceaccount:{ACCOUNTS}:{agent}");
        let choices = Choices { export: Some(export.clone()), agent: Some(agent.clone()), kcp_user, ..choices.clone() };
        let mut objects = Vec::new();
        for (index, offer) in all.iter().enumerate() {
            let is_own = index >= offers.len();
            let offer =
                Offer { export: export.clone(), agent: agent.clone(), choices: choices.clone(), ..(*offer).clone() };
            for (name, text) in files::all(&offer)? {
                let side = match name.split('/').next().unwrap_or_default() {
                    "service-cluster" if is_own && name.ends_with("published-resource.yaml") => continue,
                    "service-cluster" => Side::Service,
                    "provider-workspace" => Side::Workspace,
                    // An export has one card, whatever the number of its kinds.
                    "platform-mesh" if portal.is_some() && !name.ends_with("metadata.yaml") => Side::Workspace,
                    _ => continue,
                };
                push_all(&mut objects, side, &text)?;
            }
        }
        if let Some(portal) = portal {
            let seen: Vec<Offer> = all.iter().map(|offer| Offer { export: export.clone(), ..offer.seen() }).collect();
            if let Some(first) = seen.first() {
                push(&mut objects, Side::Workspace, portal.card.object(first));
            }
            let kinds: Vec<NamedKind> = seen.iter().map(NamedKind::of).collect();
            if let Some(permissions) = &portal.permissions {
                push(&mut objects, Side::Workspace, permissions.object(&export, &kinds)?);
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
        let offers = all.into_iter().cloned().collect();
        let needs = published.iter().flat_map(|own| own.needs.clone()).collect();
        Ok(Self { choices, export, agent, secret, objects, elsewhere: Vec::new(), home: None, offers, needs })
    }

    /// Only what the chart does not bring: in the workspace all but the agent's account, whose login somebody else has made, and
    /// PublishedResources.
    pub fn keep_bootstrap(&mut self) {
        let agent = self.agent.clone();
        self.objects.retain(|wanted| match wanted.side {
            Side::Service => wanted.text("/kind") == "PublishedResource",
            Side::Workspace => {
                let (kind, name) = (wanted.text("/kind"), wanted.text("/metadata/name"));
                let is_grant = wanted.api().0 == "rbac.authorization.k8s.io";
                kind != "ServiceAccount" && !(is_grant && (name == agent || name.starts_with(&format!("{agent}:"))))
            }
        });
    }

    /// What Platform Mesh makes of the names of kinds, where that may surprise.
    pub fn mesh_notes(&self) -> Vec<String> {
        self.offers.iter().flat_map(|offer| NamedKind::of(offer).notes()).collect()
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
        let home = self.home.iter().map(|(path, wanted)| (format!("in workspace {path}"), wanted));
        for (place, wanted) in home.chain(own).chain(others) {
            let object = serde_saphyr::to_string(&wanted.object)?;
            // Writing to a String cannot fail.
            let _ = write!(text, "---\n# {place}\n{}\n", object.trim_end());
        }
        Ok(text)
    }

    /// The selector for what the agent serves.
    pub fn selector(&self) -> String {
        let (label, value) = label_of(&self.export);
        format!("{label}={value}")
    }

    /// Whether the agent has another name than by default.
    pub fn is_named(&self) -> bool {
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
    use crate::mesh::card::Card;

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
        Plan::new(&offers, &[], choices, None)
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
    fn an_export_has_one_card_and_pages_for_each_kind() {
        let crds = [crd("buckets", "example.com"), crd("pails", "example.com")];
        let offers: Vec<Offer> = crds.iter().map(|crd| Offer::new(crd, choices()).unwrap()).collect();
        let wishes = PortalWishes { card: Card::default(), permissions: None };
        let plan = Plan::new(&offers, &[], &choices(), Some(&wishes)).unwrap();
        let of_the_mesh: Vec<String> =
            plan.objects.iter().filter(|wanted| wanted.is_draft()).map(Wanted::shown).collect();
        let wanted = ["ContentConfiguration buckets", "ContentConfiguration pails", "ProviderMetadata example.com"]
            .map(str::to_owned);
        assert_eq!(of_the_mesh, wanted);
        let export = plan.objects.iter().find(|wanted| wanted.text("/kind") == "APIExport").unwrap();
        assert_eq!(export.object["metadata"]["labels"][mesh::CONTENT_FOR], "example.com");
    }

    #[test]
    fn beside_a_chart_only_the_workspace_is_prepared_and_kinds_are_published() {
        let mut plan = one_kind();
        plan.keep_bootstrap();
        let shown: Vec<String> = plan.objects.iter().map(Wanted::shown).collect();
        let wanted = [
            "PublishedResource buckets",
            "APIExport example.com",
            "ClusterRole bind-buckets",
            "ClusterRoleBinding bind-buckets",
        ];
        assert_eq!(shown, wanted);
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
