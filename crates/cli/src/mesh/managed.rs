//! The ManagedProvider: Platform Mesh makes the workspace and a login, and installs the chart, which prepares the workspace by itself.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, bail};
use carrick_client::ListOptions;
use carrick_client::discovery::find_kind;
use carrick_syncagent::rules::rights;
use serde_json::{Value, json};

use super::flags::PortalWishes;
use super::home::{kubeconfig_secret, provider_name};
use super::{PROVIDERS, VERSION, api_version};
use crate::provider::manifest::image_values;
use crate::provider::plan::{Plan, Side, Wanted};
use crate::provider::target::Target;
use crate::ui::{Done, Failed, Step, Ui};

const KIND: &str = "ManagedProvider";
const OCI: &str = "oci://";

/// A PlatformMesh by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeshReference {
    namespace: String,
    name: String,
}

impl FromStr for MeshReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| !name.is_empty() && name.split('.').all(carrick_kcp::path::is_label);
        match text.split_once('/') {
            Some((namespace, name)) if is_name(namespace) && is_name(name) => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("write it as <namespace>/<name of the PlatformMesh>".to_owned()),
        }
    }
}

/// The values of the chart.
pub struct ChartChoice<'a> {
    /// Where it is: oci://registry/path/api-syncagent.
    pub chart: &'a str,
    /// Which one.
    pub version: &'a str,
    /// The agent's image, if it is another one than the chart's.
    pub image: Option<&'a str>,
    /// Addresses to use instead of those of kcp.
    pub overrides: &'a [String],
    /// The platform's workspace, whose broker brings orders.
    pub broker: Option<&'a str>,
}

/// The ManagedProvider for a plan.
pub fn object(
    mesh: &MeshReference,
    plan: &Plan,
    choice: &ChartChoice,
    wishes: &PortalWishes,
) -> anyhow::Result<Wanted> {
    let (registry, chart) = split(choice.chart)?;
    let flux = json!({
        "type": "oci",
        "registry": registry,
        "chart": chart,
        "version": choice.version,
        "values": values(plan, choice, wishes),
    });
    let object = json!({
        "apiVersion": api_version(PROVIDERS),
        "kind": KIND,
        "metadata": { "name": provider_name(&plan.export), "namespace": mesh.namespace },
        "spec": { "platformMeshRef": { "name": mesh.name }, "runtimeDeployments": [{ "flux": flux }] },
    });
    Ok(Wanted { side: Side::Service, object })
}

/// Registry with path, and the name of a chart.
fn split(chart: &str) -> anyhow::Result<(&str, &str)> {
    let place = chart.strip_prefix(OCI).and_then(|place| place.rsplit_once('/'));
    place.filter(|(registry, chart)| !registry.is_empty() && !chart.is_empty()).with_context(|| {
        format!("--chart {chart:?} cannot be installed by a ManagedProvider; write it as {OCI}<registry>/<path>/api-syncagent")
    })
}

/// Values of the chart. The mesh writes the login itself, again and again, so that its token is not renewed.
fn values(plan: &Plan, choice: &ChartChoice, wishes: &PortalWishes) -> Value {
    let published: Vec<&Value> = plan
        .objects
        .iter()
        .filter(|wanted| wanted.text("/kind") == "PublishedResource")
        .map(|wanted| &wanted.object)
        .collect();
    let kinds: Vec<Value> =
        plan.offers.iter().map(|offer| json!({ "group": offer.group, "resource": offer.plural })).collect();
    let mut related: Vec<Value> = Vec::new();
    for need in plan.needs.iter().filter(|need| !need.resource.contains('/')) {
        let origin = if need.verbs == rights::READ { "service" } else { "kcp" };
        let one = json!({ "group": need.group, "resource": need.resource, "origin": origin });
        if !related.contains(&one) {
            related.push(one);
        }
    }
    let mut values = json!({
        "apiExportEndpointSliceName": plan.export,
        "kcpKubeconfig": kubeconfig_secret(&plan.export),
        "publishedResourceSelector": plan.selector(),
        "publishedKinds": kinds,
        "relatedKinds": related,
        "bootstrap": {
            "enabled": true,
            "publishedResources": published,
            "platformMesh": { "enabled": true },
        },
    });
    if !wishes.card.said().is_empty() {
        values["bootstrap"]["platformMesh"]["metadata"] = json!(wishes.card.said());
    }
    if let Some(permissions) = &wishes.permissions {
        values["bootstrap"]["platformMesh"]["permissions"] = permissions.written();
    }
    if let Some(platform) = choice.broker {
        values["bootstrap"]["broker"] = json!(platform);
    }
    if plan.is_named() {
        values["agentName"] = json!(plan.agent);
    }
    if !choice.overrides.is_empty() {
        values["apiExportHostPortOverrides"] = json!(choice.overrides);
    }
    for (name, value) in choice.image.map(image_values).unwrap_or_default() {
        let field = name.rsplit('.').next().unwrap_or(name);
        values["image"][field] = json!(value);
    }
    values
}

/// What is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Create or change it.
    Up,
    /// Say what would be done.
    Preview,
    /// Delete it.
    Undo,
}

/// Creates, previews or deletes a ManagedProvider.
pub async fn run(ui: &Ui, service: &Target, wanted: &Wanted, act: Act) -> anyhow::Result<Result<ExitCode, Failed>> {
    let (namespace, name) = (wanted.text("/metadata/namespace"), wanted.text("/metadata/name"));
    let found = find_kind(&service.client, PROVIDERS, KIND)
        .await
        .with_context(|| format!("cannot ask {} for {KIND}", service.name))?;
    let Some(resource) = found.and_then(|found| found.resource(VERSION)) else {
        bail!(
            "{} does not serve {KIND} of {PROVIDERS}: --managed-by is for the cluster that Platform Mesh itself runs on; \
             elsewhere have a Provider made, with --provider-in",
            service.name
        );
    };
    let all = service.client.list(&resource, Some(namespace), &ListOptions::default()).await;
    let all = all.with_context(|| format!("cannot list ManagedProviders in namespace {namespace}"))?;
    if act != Act::Undo
        && let Some(other) = all.iter().find(|other| other["metadata"]["name"] != name && installs(other, wanted))
    {
        bail!(
            "ManagedProvider {namespace}/{} installs a chart of the same name. Platform Mesh calls a release like its chart, \
             so the two would overwrite each other; take another namespace in --managed-by",
            other["metadata"]["name"].as_str().unwrap_or_default()
        );
    }
    if act == Act::Preview {
        ui.line(format_args!("{} {} on the service cluster", service.compare(wanted).await?, wanted.shown()));
        return Ok(Ok(ExitCode::SUCCESS));
    }
    let step = Step::new(wanted.shown(), "the object is as it should be");
    let done = ui.step(step, async |seen| {
        Ok(Done::new(if act == Act::Undo {
            let gone = service.remove(wanted, seen).await?;
            format!("{} {}", if gone { "deleted  " } else { "not made by this command, or gone:" }, wanted.shown())
        } else {
            format!("{} {}", service.ensure(wanted, seen).await?, wanted.shown())
        }))
    });
    if let Err(failed) = done.await {
        return Ok(Err(failed));
    }
    if act == Act::Up {
        ui.heading("Platform Mesh does the rest; this waits for it");
        let condition = "--for=jsonpath='{.status.phase}'=Ready --timeout=10m";
        ui.command(&format!("kubectl wait managedprovider/{name} -n {namespace} {condition}"));
    }
    Ok(Ok(ExitCode::SUCCESS))
}

/// Whether another ManagedProvider installs a chart of the same name.
fn installs(other: &Value, wanted: &Wanted) -> bool {
    let names = |object: &Value| -> Vec<String> {
        let all = object.pointer("/spec/runtimeDeployments").and_then(Value::as_array).into_iter().flatten();
        let charts = all.filter_map(|one| one["flux"]["chart"].as_str());
        charts.map(|chart| chart.rsplit('/').next().unwrap_or(chart).to_owned()).collect()
    };
    let own = names(&wanted.object);
    names(other).iter().any(|name| own.contains(name))
}

#[cfg(test)]
mod tests {
    use super::super::card::Card;
    use super::*;
    use crate::provider::plan::tests::one_kind;

    fn made(chart: &str) -> anyhow::Result<Wanted> {
        let choice = ChartChoice {
            chart,
            version: "0.1.0",
            image: Some("r/agent:1"),
            overrides: &[],
            broker: Some("root:platform"),
        };
        let card = Card::read(None, &[], &["/page.js".to_owned()]).unwrap();
        let wishes = PortalWishes { card, permissions: None };
        object(&"mesh/main".parse().unwrap(), &one_kind(), &choice, &wishes)
    }

    #[test]
    fn the_chart_gets_everything_that_prepares_an_empty_workspace() {
        let object = made("oci://registry.example.com/charts/api-syncagent").unwrap().object;
        assert_eq!(object["metadata"], json!({ "name": "example-com", "namespace": "mesh" }));
        assert_eq!(object["spec"]["platformMeshRef"]["name"], "main");
        let flux = &object["spec"]["runtimeDeployments"][0]["flux"];
        assert_eq!(
            (&flux["registry"], &flux["chart"]),
            (&json!("registry.example.com/charts"), &json!("api-syncagent"))
        );
        let values = &flux["values"];
        assert_eq!(values["kcpKubeconfig"], "example-com-provider-kubeconfig");
        assert_eq!(values.get("renewKcpToken"), None, "the mesh puts the old token back");
        assert_eq!(values["publishedKinds"], json!([{ "group": "example.com", "resource": "buckets" }]));
        assert_eq!(values["bootstrap"]["publishedResources"][0]["kind"], "PublishedResource");
        assert_eq!(values["bootstrap"]["platformMesh"]["metadata"]["detailViewExtensions"][0]["url"], "/page.js");
        assert_eq!(values["bootstrap"]["broker"], "root:platform");
        assert_eq!(values["image"], json!({ "repository": "r/agent", "tag": "1" }));
        for bad in ["charts/api-syncagent", "oci://api-syncagent", "oci:///a"] {
            assert!(made(bad).unwrap_err().to_string().contains("oci://<registry>/<path>"), "{bad}");
        }
    }

    #[test]
    fn two_releases_of_one_name_are_found() {
        let wanted = made("oci://registry.example.com/charts/api-syncagent").unwrap();
        let other = |chart: &str| json!({ "spec": { "runtimeDeployments": [{ "flux": { "chart": chart } }] } });
        assert!(installs(&other("elsewhere/api-syncagent"), &wanted));
        assert!(!installs(&other("httpbin"), &wanted));
    }

    #[test]
    fn a_platform_mesh_is_named_with_its_namespace() {
        assert!("mesh/main".parse::<MeshReference>().is_ok());
        for bad in ["main", "/main", "mesh/", "a/b/c", "Mesh/main"] {
            assert!(bad.parse::<MeshReference>().is_err(), "{bad}");
        }
    }
}
