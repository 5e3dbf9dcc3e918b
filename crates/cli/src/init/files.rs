//! The files, as text rather than objects, because half of their value is in the comments. Pure.

mod implements;

use std::fmt::Write as _;

use carrick_syncagent::rules::report::has_room_for_placed;
use serde_json::Value;

use super::offer::Offer;
use crate::mesh::card::Card;
use crate::mesh::{CONTENT_FOR, portal};

/// Every file, by its path in the folder.
pub fn all(offer: &Offer) -> anyhow::Result<Vec<(&'static str, String)>> {
    let seen = &offer.seen();
    let yaml = |value: &Value| serde_saphyr::to_string(value).map(|text| text.trim_end().to_owned() + "\n");
    Ok(vec![
        ("service-cluster/1-agent-crd.yaml", format!("{AGENT_CRD}{}", yaml(&carrick_syncagent::api::crd())?)),
        ("service-cluster/2-agent-rights.yaml", service_rights(offer)),
        ("service-cluster/3-published-resource.yaml", published_resource(offer)?),
        ("provider-workspace/1-export.yaml", export(seen)),
        ("provider-workspace/2-agent-rights.yaml", kcp_rights(seen)),
        ("consumer-workspace/1-binding.yaml", binding(seen)),
        ("consumer-workspace/2-order.yaml", format!("{}{}", order_comment(seen), yaml(&seen.order().object)?)),
        ("platform-mesh/provider-metadata.yaml", format!("{METADATA}{}", yaml(&Card::default().object(seen))?)),
        (
            "platform-mesh/content-configuration.yaml",
            format!("{CONTENT}{}", yaml(&portal::content_configuration(seen)?)?),
        ),
    ])
}

const AGENT_CRD: &str = "\
# On the service cluster: the kind that tells the agent what to publish.
";

const METADATA: &str = "\
# In the provider's workspace, only on Platform Mesh: your card in the marketplace.
# Replace contacts and documentation with your own, and add an icon.
";

const CONTENT: &str = "\
# In the provider's workspace, only on Platform Mesh: how consumers see and order your service in the portal.
# The list was made from the printer columns of the CRD, the form from the required fields of its spec.
";

fn service_rights(offer: &Offer) -> String {
    let Offer { group, plural, agent, choices, .. } = offer;
    let namespace = &choices.namespace;
    format!(
        r#"# On the service cluster: the agent's namespace and account, and what it may do. It needs nothing else.
apiVersion: v1
kind: Namespace
metadata:
  name: {namespace}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {agent}
  namespace: {namespace}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {agent}:{plural}
rules:
# The kind you offer: copies of consumers' objects are of this kind.
- apiGroups: ["{group}"]
  resources: [{plural}]
  verbs: [get, list, watch, create, update, patch, delete]
# One rule for each kind of related objects. Origin service: get, list, watch are enough.
# - apiGroups: [""]
#   resources: [secrets]
#   verbs: [get, list, watch]
- apiGroups: [syncagent.kcp.io]
  resources: [publishedresources]
  verbs: [get, list, watch]
- apiGroups: [syncagent.kcp.io]
  resources: [publishedresources/status]
  verbs: [get, update, patch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
# Every consumer's copies live in a namespace of their own.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch, create]
- apiGroups: [""]
  resources: [events]
  verbs: [create, update, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {agent}:{plural}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {agent}:{plural}
subjects:
- kind: ServiceAccount
  name: {agent}
  namespace: {namespace}
---
# In its own namespace: what it remembers about each object, and its lease.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {agent}
  namespace: {namespace}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {agent}
  namespace: {namespace}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {agent}
subjects:
- kind: ServiceAccount
  name: {agent}
  namespace: {namespace}
"#
    )
}

/// For kinds whose status has conditions.
const REPORT: &str = "  \
  # The same in their status: condition Placed, for which this kind has room. kubectl wait --for=condition=Placed waits for it.
  report:
    conditions: Own
    related: false
";

/// What most providers want to say sooner or later.
const NAMING_AND_RELATED: &str = r#"  # Where copies go. By default: one namespace for each consumer's workspace, and a name made of hashes, so that no two
  # consumers can get in each other's way.
  # naming:
  #   namespace: "{{ .ClusterName }}"
  #   name: "{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}"

  # Only some of the consumers' objects:
  # filter:
  #   resource:
  #     matchLabels: { tier: gold }

  # Objects that come along, here a Secret that your operator writes next to each object. The agent then also claims
  # secrets and namespaces: see consumer-workspace/1-binding.yaml and service-cluster/2-agent-rights.yaml.
  # related:
  # - identifier: credentials
  #   origin: service
  #   version: v1
  #   resource: secrets
  #   cleanup: true
  #   # Only what belongs to the copy is handed out: an owner reference to it, a label with its UID, or a name like this one,
  #   # which no consumer chooses.
  #   access: Owned
  #   object:
  #     template:
  #       template: "{{ .Object.metadata.name }}-credentials"
"#;

/// What comes up once orders are there. Without an example of its own, each stays off.
const DRIFT_AND_PAUSE: &str = r"
  # What others change on copies stays as it is. Report names it, Revert sets it back: docs/publishing/drift.md
  # drift:
  #   policy: Report
  #   fields:
  #   - { path: spec.replicas, policy: Ignore }

  # A copy with annotation syncagent.kcp.io/pause rests. To let consumers pause their orders, too: docs/publishing/pausing.md
  # pause: Both
";

/// Where what is there already comes from. An API of somebody else leads in one direction only.
const IMPORT: &str = r#"
  # Objects that exist already become orders, without a change to them: those that you label so, or by hand with
  # carrick import. See docs/publishing/importing.md
  # import:
  #   selector:
  #     matchLabels: { import: "yes" }
  #   to: "root:orgs:{{ .Object.metadata.labels.customer }}"
"#;

fn published_resource(offer: &Offer) -> anyhow::Result<String> {
    let Offer { group, kcp_group, kind, plural, versions, .. } = offer;
    let ((label, export), versions) = (offer.label(), versions.join(", "));
    let projection = if let Some(implemented) = &offer.implemented {
        implements::shown(offer, implemented)?
    } else if group == kcp_group {
        format!(
            "  # To offer it under other names:\n  # projection:\n  #   group: services.example.com\n  #   kind: My{kind}\n"
        )
    } else {
        let why = if offer.choices.group.is_some() {
            "In kcp it has another group, which can be seen in consumers' orders."
        } else {
            "kcp does not accept Kubernetes' own kinds under their own group: choose a group of yours, and name the APIExport after it."
        };
        format!("  # {why}\n  projection:\n    group: {kcp_group}\n")
    };
    let offered = offer.seen().kind;
    let report = if offer.implemented.is_some() {
        implements::report(offer)
    } else if offer.without_status.is_empty() && has_room_for_placed(&offer.schema) {
        REPORT.to_owned()
    } else {
        String::new()
    };
    let import = if offer.implemented.is_some() { "" } else { IMPORT };
    Ok(format!(
        r#"# On the service cluster: tells the agent to offer {offered} in kcp.
apiVersion: syncagent.kcp.io/v1alpha1
kind: PublishedResource
metadata:
  name: {plural}
  labels:
    # Only the agent of this export serves it: the agent is installed with a selector for this label.
    {label}: {export}
spec:
  resource:
    apiGroup: "{group}"
    kind: {kind}
    versions: [{versions}]
{projection}
  # Consumers see on their objects what became of them: what has arrived, why something was refused, on whom a deletion waits.
  feedback: Annotations
{report}
{NAMING_AND_RELATED}{DRIFT_AND_PAUSE}{import}"#
    ))
}

fn export(offer: &Offer) -> String {
    let Offer { export, plural, choices, .. } = offer;
    format!(
        r"# In workspace {workspace}: what consumers bind to. It starts empty: the agent fills in schemas and claims.
# kcp creates an APIExportEndpointSlice of the same name, which is the one the agent needs.
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata:
  name: {export}
  labels:
    # Only for Platform Mesh.
    {CONTENT_FOR}: {export}
spec: {{}}
---
# Who may bind it: here everybody who has an account.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: bind-{plural}
rules:
- apiGroups: [apis.kcp.io]
  resources: [apiexports]
  resourceNames: [{export}]
  verbs: [bind]
# To let them see when your agent was last there, by annotation syncagent.kcp.io/last-seen of the export. It also lets them
# enter this workspace, where they may do what its other roles allow them.
# - apiGroups: [apis.kcp.io]
#   resources: [apiexports]
#   resourceNames: [{export}]
#   verbs: [get]
# - nonResourceURLs: [/]
#   verbs: [access]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: bind-{plural}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: bind-{plural}
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: system:authenticated
",
        workspace = choices.workspace
    )
}

fn kcp_rights(offer: &Offer) -> String {
    let Offer { export, agent, choices, .. } = offer;
    let (user, workspace) = (&choices.kcp_user, &choices.workspace);
    format!(
        r#"# In workspace {workspace}: what the agent may do in kcp. It can reach consumers' workspaces only through
# apiexports/content: the objects of your kinds, and what consumers let it see by accepting claims.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {agent}
rules:
- nonResourceURLs: [/]
  verbs: [access]
- apiGroups: [core.kcp.io]
  resources: [logicalclusters]
  resourceNames: [cluster]
  verbs: [get]
- apiGroups: [apis.kcp.io]
  resources: [apiexportendpointslices]
  resourceNames: [{export}]
  verbs: [get, list, watch]
- apiGroups: [apis.kcp.io]
  resources: [apiexports]
  resourceNames: [{export}]
  verbs: [get, list, watch, update, patch]
- apiGroups: [apis.kcp.io]
  resources: [apiexports/content]
  resourceNames: [{export}]
  verbs: ["*"]
- apiGroups: [apis.kcp.io]
  resources: [apiresourceschemas]
  verbs: [get, list, watch, create, update]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, update, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {agent}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {agent}
subjects:
# The user of the kubeconfig that the agent gets.
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {user}
"#
    )
}

fn binding(offer: &Offer) -> String {
    let Offer { export, plural, choices, .. } = offer;
    format!(
        r#"# In a consumer's workspace: makes {plural} available there.
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata:
  name: {export}
spec:
  reference:
    export:
      path: {workspace}
      name: {export}
  # What the consumer lets the provider's agent do here. Events report the progress of an order.
  permissionClaims:
  - {{group: "", resource: events, verbs: ["*"], selector: {{matchAll: true}}, state: Accepted}}
  # Needed as soon as the PublishedResource has related objects:
  # - {{group: "", resource: namespaces, verbs: ["*"], selector: {{matchAll: true}}, state: Accepted}}
  # - {{group: "", resource: secrets, verbs: ["*"], selector: {{matchAll: true}}, state: Accepted}}
"#,
        workspace = choices.workspace
    )
}

fn order_comment(offer: &Offer) -> String {
    let Offer { kind, plural, .. } = offer;
    let place = format!("# In a consumer's workspace, once {plural} are served there: ");
    let Some(problem) = offer.order().problem else { return format!("{place}a small order that the schema allows.\n") };
    let mut text = format!(
        "{place}an order to be completed.\n# The schema of {kind} refuses it as it is, and no other was found that it allows:\n"
    );
    for line in problem.lines() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "#   {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::offer::Choices;
    use super::super::offer::tests::bucket;
    use super::*;

    fn offer(group: &str) -> Offer {
        let mut crd = bucket();
        crd["spec"]["group"] = json!(group);
        let choices = Choices {
            group: None,
            export: None,
            workspace: "root:p".to_owned(),
            namespace: "own".to_owned(),
            agent: None,
            kcp_user: "user".to_owned(),
        };
        Offer::new(&crd, choices).unwrap()
    }

    /// The repository.
    fn text(path: &str) -> String {
        std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn an_agent_has_one_default_name_in_flag_chart_files_and_documentation() {
        let options = carrick_syncagent::options::Options::parse_from_args([
            "api-syncagent",
            "--namespace=n",
            "--kcp-kubeconfig=k",
            "--apiexportendpointslice-ref=example.com",
        ]);
        let name = options.unwrap().complete().unwrap().agent_name;
        let offer = offer("example.com");
        assert_eq!((name.as_str(), name.as_str()), (offer.agent.as_str(), "example.com-syncagent"));
        let helpers = text("charts/api-syncagent/templates/_helpers.tpl");
        assert!(helpers.contains(r#"printf "%s-syncagent" (.Values.apiExportEndpointSliceName"#));
        let rendered = text("charts/tests/minimal.yaml");
        assert!(rendered.contains("--apiexportendpointslice-ref=example.com") && !rendered.contains("--agent-name"));
        assert!(text("charts/api-syncagent/values.yaml").contains("<apiExportEndpointSliceName>-syncagent if empty"));
        assert!(text("docs/operations/chart.md").contains("`<apiExportEndpointSliceName>-syncagent`"));
        let flag = text("docs/reference/flags.md");
        let flag = flag.lines().find(|line| line.contains("`--agent-name`")).unwrap();
        assert!(flag.contains("`<apiexportendpointslice-ref>-syncagent`"), "{flag}");
        for page in ["docs/getting-started.md", "docs/getting-started-kcp.md"] {
            assert!(!text(page).contains("--agent-name"), "{page}");
        }
    }

    #[test]
    fn every_file_begins_with_a_comment_and_holds_objects() {
        for offer in [offer("example.com"), offer("")] {
            for (name, text) in all(&offer).unwrap() {
                assert!(text.starts_with("# "), "{name}");
                for document in text.split("\n---\n") {
                    let object: Value =
                        serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{name}: {error}\n{document}"));
                    for field in ["/apiVersion", "/kind", "/metadata/name"] {
                        assert!(object.pointer(field).is_some_and(Value::is_string), "{name}: {object}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_published_resource_compiles_and_an_order_fits_the_schema() {
        let offer = offer("example.com");
        let pr = carrick_syncagent::toolkit::parse(&published_resource(&offer).unwrap()).unwrap();
        let crd = carrick_syncagent::rules::crd::Crd::from_json(&bucket()).unwrap();
        carrick_syncagent::rules::Rules::compile(&pr, &crd, "agent").unwrap();
        let order = offer.order();
        assert_eq!(order.object["spec"], json!({ "size": 3, "owner": { "name": "changeme" } }));
        assert_eq!(order.problem, None);
    }

    #[test]
    fn orders_say_in_their_status_whether_they_are_placed_where_there_is_room() {
        let report = |status: Value, subresource: bool| {
            let mut crd = bucket();
            for version in crd["spec"]["versions"].as_array_mut().unwrap() {
                version["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone();
                version["subresources"] = if subresource { json!({ "status": {} }) } else { json!({}) };
            }
            let offer = Offer::new(&crd, offer("example.com").choices).unwrap();
            let pr = carrick_syncagent::toolkit::parse(&published_resource(&offer).unwrap()).unwrap();
            let crd = carrick_syncagent::rules::crd::Crd::from_json(&crd).unwrap();
            carrick_syncagent::rules::Rules::compile(&pr, &crd, "agent").unwrap();
            assert_eq!(carrick_syncagent::rules::report::doubts(&pr, &crd), [""; 0]);
            pr.spec.report
        };
        let text = json!({ "type": "string" });
        let condition = json!({ "type": "object", "properties": {
            "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text } });
        let with = |items: &Value| json!({ "type": "object", "properties": { "conditions": { "type": "array", "items": items } } });
        let found = report(with(&condition), true).unwrap();
        assert_eq!((found.conditions.as_str(), found.related), ("Own", Some(false)));
        let narrow = json!({ "type": "object", "properties": { "type": text } });
        assert!(report(with(&narrow), true).is_none(), "no room for a reason");
        assert!(report(json!({ "type": "object" }), true).is_none(), "no conditions");
        assert!(report(with(&condition), false).is_none(), "no status of its own");
    }

    #[test]
    fn an_order_that_is_refused_says_so_in_the_words_of_the_validation() {
        let mut crd = bucket();
        let rules = json!([{ "rule": "false", "message": "never" }]);
        crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
            rules;
        crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
        let offer = Offer::new(&crd, offer("example.com").choices).unwrap();
        let files = all(&offer).unwrap();
        let (_, text) = files.iter().find(|(name, _)| name.ends_with("2-order.yaml")).unwrap();
        assert!(text.contains("#   spec: Invalid value: \"object\": never\n"), "{text}");
        assert!(serde_saphyr::from_str::<Value>(text).unwrap()["spec"]["size"].is_number(), "{text}");
    }

    #[test]
    fn pages_that_files_point_to_exist() {
        let written = published_resource(&offer("example.com")).unwrap();
        let pages: Vec<&str> = written
            .split_whitespace()
            .filter(|word| word.starts_with("docs/"))
            .inspect(|page| assert!(!text(page).is_empty()))
            .collect();
        let of = |page: &str| format!("docs/publishing/{page}.md");
        assert_eq!(pages, ["drift", "pausing", "importing"].map(of));
    }

    #[test]
    fn what_is_commented_out_can_be_used_as_it_is() {
        let text = published_resource(&offer("example.com")).unwrap().replace("  # projection", "  projection");
        let uncommented: Vec<String> = text
            .lines()
            .map(|line| match line.strip_prefix("  # ") {
                // Sentences stay comments; they end with a dot, a colon or a comma, or continue on the next line.
                Some(rest)
                    if rest.trim_start().starts_with(['-', '{'])
                        || rest
                            .split_once(':')
                            .is_some_and(|(key, _)| !key.trim().contains(' ') && !rest.ends_with("objects:")) =>
                {
                    format!("  {rest}")
                }
                _ => line.to_owned(),
            })
            .collect();
        let pr = carrick_syncagent::toolkit::parse(&uncommented.join("\n")).unwrap();
        assert_eq!(pr.spec.related.len(), 1);
        assert_eq!(pr.spec.related[0].access, Some(carrick_syncagent::api::Access::Owned));
        assert!(pr.spec.filter.is_some() && pr.spec.naming.is_some());
        assert!(pr.spec.drift.is_some() && pr.spec.pause == "Both" && pr.spec.import.is_some());
        let crd = carrick_syncagent::rules::crd::Crd::from_json(&bucket()).unwrap();
        carrick_syncagent::rules::Rules::compile(&pr, &crd, "agent").unwrap();
    }
}
