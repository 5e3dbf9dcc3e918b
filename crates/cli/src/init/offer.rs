//! What is offered: the part of a CRD that the files need, and what the user chose. Pure.

use std::collections::BTreeSet;

use carrick_kcp::names::API_APPROVED_ANNOTATION;
use carrick_kcp::path::is_label;
use carrick_syncagent::api::{Implements, PublishedResource, PublishedVersion};
use carrick_syncagent::options::default_agent_name;
use carrick_syncagent::rules::crd::Crd;
use carrick_syncagent::rules::implements::proof;
use carrick_syncagent::rules::serving;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::implements::{Draft, written};
use super::sample::{Order, sample};

/// What the user may choose.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// API group in kcp; that of the CRD if none.
    pub group: Option<String>,
    /// Name of the APIExport; the API group if none.
    pub export: Option<String>,
    /// Workspace of the provider.
    pub workspace: String,
    /// Namespace of the agent on the service cluster.
    pub namespace: String,
    /// Name of the agent; that of the export and `-syncagent` if none.
    pub agent: Option<String>,
    /// The agent's user name in kcp.
    pub kcp_user: String,
}

/// What is offered.
#[derive(Debug, Clone)]
pub struct Offer {
    /// API group on the service cluster; empty for core.
    pub group: String,
    /// API group in kcp.
    pub kcp_group: String,
    /// Kind.
    pub kind: String,
    /// Plural name.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Versions to offer: those that are served, without deprecated ones if there are others.
    pub versions: Vec<String>,
    /// Served versions that are deprecated.
    pub deprecated: Vec<String>,
    /// Offered versions without a status subresource.
    pub without_status: Vec<String>,
    /// The version that orders and views use.
    pub version: String,
    /// Schema of that version.
    pub schema: Value,
    /// Printer columns of that version.
    pub columns: Vec<Value>,
    /// Name of the APIExport.
    pub export: String,
    /// Name of the agent.
    pub agent: String,
    /// What the user chose.
    pub choices: Choices,
    /// The API of somebody else that consumers get in its place.
    pub implemented: Option<Box<Implemented>>,
}

/// An API of somebody else.
#[derive(Debug, Clone)]
pub struct Implemented {
    /// The API, without steps.
    pub api: Implements,
    /// First steps that lead from it to the kind.
    pub draft: Draft,
    /// What is wrong with these.
    pub doubts: Vec<String>,
    /// What consumers see of it.
    seen: Offer,
}

impl Choices {
    /// Whether names can be what they are meant to be.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_path = !self.workspace.is_empty() && self.workspace.split(':').all(is_label);
        anyhow::ensure!(
            is_path,
            "--workspace {:?} is no path of a workspace; write it as root:providers:storage, in lower case, without the \
             server",
            self.workspace
        );
        for (flag, name) in [("--export", &self.export), ("--group", &self.group)] {
            let Some(name) = name else { continue };
            anyhow::ensure!(
                !name.is_empty() && name.split('.').all(is_label),
                "{flag} {name:?} is no valid name; use lower-case letters, digits, dashes and dots, such as example.com"
            );
        }
        if let Some(group) = self.group.as_deref().filter(|group| is_reserved(group)) {
            anyhow::bail!("--group {group:?} belongs to Kubernetes; choose one of yours, such as services.example.com");
        }
        if let Some(agent) = &self.agent {
            // What the agent's own flag takes.
            anyhow::ensure!(
                is_label(agent) && agent.starts_with(|first: char| first.is_ascii_lowercase()),
                "--agent {agent:?} is no valid name; use lower-case letters, digits and dashes, beginning with a letter"
            );
        }
        anyhow::ensure!(is_label(&self.namespace), "--namespace {:?} is no valid name of a namespace", self.namespace);
        anyhow::ensure!(!self.kcp_user.is_empty(), "--kcp-user is empty; name the user that the agent is in kcp");
        Ok(())
    }
}

/// The longest value that a label can have.
const LONGEST_LABEL: usize = 63;

/// The label of PublishedResources for an export.
pub fn label_of(export: &str) -> (&'static str, String) {
    if export.len() <= LONGEST_LABEL {
        return (serving::LABEL, export.to_owned());
    }
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(export.as_bytes()));
    (serving::LABEL, format!("{}-{}", &export[..LONGEST_LABEL - 17], &hash[..16]))
}

impl Offer {
    /// The label of its PublishedResource.
    pub fn label(&self) -> (&'static str, String) {
        label_of(&self.export)
    }

    /// The selector for PublishedResources of its export.
    pub fn selector(&self) -> String {
        let (label, value) = self.label();
        format!("{label}={value}")
    }

    /// Reads a CRD.
    pub fn new(crd: &Value, choices: Choices) -> anyhow::Result<Self> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let names = &spec["names"];
        let (group, kind, plural) = (text(&spec["group"]), text(&names["kind"]), text(&names["plural"]));
        let name = text(&crd["metadata"]["name"]);
        if let Some(old @ "apiextensions.k8s.io/v1beta1") = crd["apiVersion"].as_str() {
            anyhow::bail!(
                "CRD {name:?} is of {old}, which no API server takes any more; write it as apiextensions.k8s.io/v1, with \
                 a schema for every version"
            );
        }
        if kind.is_empty() || plural.is_empty() {
            anyhow::bail!(
                "CRD {name:?} has no spec.names.kind or no spec.names.plural; is it apiextensions.k8s.io/v1?"
            );
        }
        let served: Vec<&Value> =
            spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true).collect();
        let names_of = |versions: &[&Value]| versions.iter().map(|version| text(&version["name"])).collect();
        let (deprecated, current): (Vec<_>, Vec<_>) =
            served.iter().copied().partition(|version| version["deprecated"] == true);
        // Nobody uses a deprecated version of a new offer yet.
        let versions = if current.is_empty() { served } else { current };
        let Some(main) = versions.iter().find(|version| version["storage"] == true).or(versions.last()) else {
            anyhow::bail!("no version of {kind} is served; set served: true for one of spec.versions");
        };
        if let Some(bare) = versions.iter().find(|version| !version["schema"]["openAPIV3Schema"].is_object()) {
            anyhow::bail!(
                "version {} of {kind} has no schema, and API servers refuse that; add schema.openAPIV3Schema, at least \
                 {{type: object, x-kubernetes-preserve-unknown-fields: true}}",
                text(&bare["name"])
            );
        }
        let has_status = |version: &&&Value| version["subresources"]["status"].is_object();
        let without_status: Vec<&Value> = versions.iter().filter(|version| !has_status(version)).copied().collect();
        // kcp refuses kinds of Kubernetes' own groups under their own group, unless they are approved, as those of the Gateway API are.
        let approved = crd["metadata"]["annotations"][API_APPROVED_ANNOTATION].as_str().is_some_and(is_approval);
        let own = if group.is_empty() || (is_reserved(&group) && !approved) { PLACEHOLDER } else { &group };
        let kcp_group = choices.group.clone().unwrap_or_else(|| own.to_owned());
        let export = choices.export.clone().unwrap_or_else(|| kcp_group.clone());
        Ok(Self {
            singular: Some(text(&names["singular"])).filter(|name| !name.is_empty()).unwrap_or(kind.to_lowercase()),
            namespaced: spec["scope"] != "Cluster",
            version: text(&main["name"]),
            schema: main["schema"]["openAPIV3Schema"].clone(),
            columns: main["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
            versions: names_of(&versions),
            deprecated: names_of(&deprecated),
            without_status: names_of(&without_status),
            agent: choices.agent.clone().unwrap_or_else(|| default_agent_name(&export)),
            export,
            group,
            kcp_group,
            kind,
            plural,
            choices,
            implemented: None,
        })
    }

    /// The same with an API of somebody else that consumers get in its place. The CRD is that of the kind.
    pub fn implementing(self, api: &Implements, crd: &Value) -> anyhow::Result<Self> {
        let seen = Self::new(&definition(api), Choices { group: None, ..self.choices.clone() })?;
        let draft = Draft::new(&seen.schema, &self.schema, &self.kind);
        let spec = json!({
            "resource": { "apiGroup": self.group, "kind": self.kind }, "implements": written(&draft.completed(api)?)?,
        });
        let pr: PublishedResource =
            serde_json::from_value(json!({ "metadata": { "name": self.plural }, "spec": spec }))?;
        let doubts = proof::doubts(&pr, &Crd::from_json(crd)?);
        let (kcp_group, export, agent) = (seen.kcp_group.clone(), seen.export.clone(), seen.agent.clone());
        let implemented = Some(Box::new(Implemented { api: api.clone(), draft, doubts, seen }));
        Ok(Self { kcp_group, export, agent, implemented, ..self })
    }

    /// What consumers see of it.
    pub fn seen(&self) -> Self {
        let Some(implemented) = &self.implemented else { return self.clone() };
        let (export, agent, choices) = (self.export.clone(), self.agent.clone(), self.choices.clone());
        Self { export, agent, choices, ..implemented.seen.clone() }
    }

    /// An order that the schema allows: small, and easy to read.
    pub fn order(&self) -> Order {
        let mut order = json!({
            "apiVersion": format!("{}/{}", self.kcp_group, self.version),
            "kind": self.kind,
            "metadata": { "name": format!("my-{}", self.singular) },
        });
        if self.namespaced {
            order["metadata"]["namespace"] = json!("default");
        }
        for (name, property) in self.schema["properties"].as_object().into_iter().flatten() {
            let needed =
                self.schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name.as_str()));
            if name == "spec" || (needed && !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str())) {
                order[name] = sample(property);
            }
        }
        Order::checked(&self.schema, order)
    }

    /// `<plural>.<group>`.
    pub fn crd_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The schema's description of the kind, or a placeholder.
    pub fn description(&self) -> String {
        let text = self.schema["description"].as_str().unwrap_or_default();
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() { format!("{} as a service.", self.kind) } else { line.to_owned() }
    }
}

/// The APIExport of all offers. Every agent publishes all that there is on its cluster, so two exports would both have all kinds.
pub fn one_export<'a>(offers: impl Iterator<Item = &'a Offer>) -> anyhow::Result<&'a str> {
    let exports: BTreeSet<&str> = offers.map(|offer| offer.export.as_str()).collect();
    match exports.into_iter().collect::<Vec<_>>().as_slice() {
        [] => anyhow::bail!("there is nothing to offer; give --crd or --from-cluster a kind"),
        [one] => Ok(*one),
        several => anyhow::bail!(
            "the kinds are of several groups ({}); one agent serves one APIExport: name it with --export",
            several.join(", ")
        ),
    }
}

/// An API as a CRD would define it.
fn definition(api: &Implements) -> Value {
    let (plural, group) = api.resource.split_once('.').unwrap_or((&api.resource, ""));
    let version = |version: &PublishedVersion| {
        let mut version = version.0.clone();
        if version["served"] != false {
            version["served"] = json!(true);
        }
        version["subresources"]["status"] = json!({});
        version
    };
    let versions: Vec<Value> = api.versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": { "name": api.resource },
        "spec": {
            "group": group, "scope": if api.scope.is_empty() { "Namespaced" } else { &api.scope }, "versions": versions,
            "names": { "kind": api.kind, "plural": plural, "singular": api.singular },
        },
    })
}

/// A group for kinds that cannot keep theirs.
const PLACEHOLDER: &str = "kube.example.com";

/// Whether the annotation says who approved a kind. `unapproved` says that nobody did: API servers take that, and so does kcp.
fn is_approval(text: &str) -> bool {
    text.contains("://") || text.starts_with("unapproved")
}

/// Groups of Kubernetes.
fn is_reserved(group: &str) -> bool {
    group.is_empty()
        || ["k8s.io", "kubernetes.io"].iter().any(|end| group == *end || group.ends_with(&format!(".{end}")))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A CRD with a little of everything.
    pub(crate) fn bucket() -> Value {
        json!({
            "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "kind": "Bucket", "plural": "buckets", "singular": "bucket" },
                "versions": [
                    { "name": "v0", "served": false },
                    { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} }, "additionalPrinterColumns": [
                        { "name": "Region", "type": "string", "jsonPath": ".spec.region" },
                        { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                    ], "schema": { "openAPIV3Schema": { "description": "A place for files.", "type": "object", "properties": {
                        "spec": { "type": "object", "required": ["size", "owner"], "properties": {
                            "size": { "type": "integer", "minimum": 3 },
                            "region": { "type": "string", "enum": ["eu", "us"] },
                            "owner": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "mail": { "type": "string" } } },
                            "tags": { "type": "array", "items": { "type": "string" } },
                        }},
                        "status": { "type": "object", "properties": { "conditions": { "type": "array" } } },
                    }}}},
                ],
            },
        })
    }

    #[test]
    fn an_offer_uses_what_is_served() {
        let offer = Offer::new(&bucket(), Choices::default()).unwrap();
        assert_eq!((offer.versions.as_slice(), offer.version.as_str()), (&["v1".to_owned()][..], "v1"));
        assert_eq!((offer.export.as_str(), offer.crd_name().as_str()), ("example.com", "buckets.example.com"));
        assert_eq!(offer.description(), "A place for files.");
        let named = Choices { export: Some("storage".to_owned()), ..Choices::default() };
        assert_eq!(Offer::new(&bucket(), named).unwrap().export, "storage");
    }

    #[test]
    fn groups_of_kubernetes_get_another_name_in_kcp() {
        for (group, wanted) in [
            ("", "kube.example.com"),
            ("rbac.authorization.k8s.io", "kube.example.com"),
            ("apps", "apps"),
            ("a.b", "a.b"),
        ] {
            let mut crd = bucket();
            crd["spec"]["group"] = json!(group);
            assert_eq!(Offer::new(&crd, Choices::default()).unwrap().kcp_group, wanted, "{group}");
        }
    }

    #[test]
    fn approved_kinds_keep_their_group() {
        let mut crd = bucket();
        crd["spec"]["group"] = json!("gateway.networking.k8s.io");
        crd["metadata"]["annotations"][API_APPROVED_ANNOTATION] = json!("https://example.com/approval");
        assert_eq!(Offer::new(&crd, Choices::default()).unwrap().kcp_group, "gateway.networking.k8s.io");
        let chosen = Choices { group: Some("net.example.com".to_owned()), ..Choices::default() };
        let offer = Offer::new(&crd, chosen).unwrap();
        assert_eq!((offer.kcp_group.as_str(), offer.export.as_str()), ("net.example.com", "net.example.com"));
    }

    #[test]
    fn choices_that_no_server_would_take_are_refused_with_an_example() {
        let good = || Choices {
            workspace: "root:a".to_owned(),
            namespace: "kcp-system".to_owned(),
            kcp_user: "user".to_owned(),
            ..Choices::default()
        };
        good().check().unwrap();
        let some = |text: &str| Some(text.to_owned());
        for (bad, wanted) in [
            (Choices { workspace: "https://kcp/clusters/root".to_owned(), ..good() }, "root:providers:storage"),
            (Choices { workspace: "root:".to_owned(), ..good() }, "--workspace \"root:\""),
            (Choices { workspace: "Root".to_owned(), ..good() }, "lower case"),
            (Choices { export: some("a b"), ..good() }, "--export \"a b\""),
            (Choices { group: some("apps.k8s.io"), ..good() }, "belongs to Kubernetes"),
            (Choices { group: some("a..b"), ..good() }, "--group"),
            (Choices { agent: some("a.b"), ..good() }, "--agent \"a.b\""),
            (Choices { namespace: "A".to_owned(), ..good() }, "--namespace"),
            (Choices { kcp_user: String::new(), ..good() }, "--kcp-user"),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_crd_that_serves_nothing_is_refused() {
        let mut crd = bucket();
        crd["spec"]["versions"][1]["served"] = json!(false);
        assert!(Offer::new(&crd, Choices::default()).unwrap_err().to_string().contains("is served"));
        assert!(Offer::new(&json!({}), Choices::default()).is_err());
    }

    #[test]
    fn a_crd_without_a_schema_or_of_another_time_is_refused_with_the_way_out() {
        let mut crd = bucket();
        crd["spec"]["versions"][1]["schema"] = json!(null);
        let error = Offer::new(&crd, Choices::default()).unwrap_err().to_string();
        assert!(error.contains("version v1 of Bucket has no schema") && error.contains("add schema."), "{error}");
        crd["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
        let error = Offer::new(&crd, Choices::default()).unwrap_err().to_string();
        assert!(error.contains("write it as apiextensions.k8s.io/v1"), "{error}");
    }
}
