//! What has to be known of both clusters before anything is written.

use std::collections::HashMap;

use carrick_bind_api::copies::labelled_owner;
use carrick_bind_api::core::Connection;
use carrick_bind_api::core::schema::{self, synced_version};
use carrick_bind_api::names::{CONTRACT_ANNOTATION, Owner, PROVIDER_UID_ANNOTATION};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, SecretKeyReference};
use carrick_client::{Client, InlineKubeconfig, ListOptions, Resource, Server};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::unbind::{kind_of, objects};
use super::super::{V2Error, crds};
use super::marks::{UPGRADED_FROM_ANNOTATION, is_owned};
use crate::deploy::{self, DeployError};
use crate::unbind;

/// The longest list of objects that a reason names.
const MOST_NAMED: usize = 5;

/// An APIServiceBinding that was upgraded, as it stands on its CRDs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    pub name: String,
    pub spec: Value,
    pub annotations: Map<String, Value>,
    /// The contract namespace at the provider.
    pub contract: String,
    /// The Connection that it was upgraded to.
    pub connection: String,
}

impl Saved {
    /// What stands on a CRD.
    pub fn of_crd(crd: &Value) -> Option<Self> {
        serde_json::from_str(crd["metadata"]["annotations"][UPGRADED_FROM_ANNOTATION].as_str()?).ok()
    }
}

/// An object and what has its place at the provider.
pub(super) struct Twin {
    pub kind: Resource,
    pub source: Value,
    pub copy: Option<Value>,
}

impl Twin {
    pub fn uid(&self) -> &str {
        self.source["metadata"]["uid"].as_str().unwrap_or_default()
    }
}

/// Namespace and name of an object.
pub(super) fn place(object: &Value) -> (Option<&str>, &str) {
    let metadata = &object["metadata"];
    (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default())
}

fn shown((namespace, name): (Option<&str>, &str)) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

/// The APIServiceBinding of a name.
pub(super) async fn binding(client: &Client, name: &str) -> Result<Option<ApiServiceBinding>, V2Error> {
    let what = || format!("APIServiceBinding {name}");
    let found = client.get(&unbind::resource(), None, name).await;
    let Some(found) = found.map_err(|source| V2Error::Server { what: what(), source })? else { return Ok(None) };
    let read = serde_json::from_value(found);
    read.map(Some).map_err(|error| V2Error::Unreadable { what: what(), problem: error.to_string() })
}

/// The CRDs that belong to an APIServiceBinding, or did before it was upgraded.
pub(super) async fn crds_of(
    client: &Client,
    name: &str,
    binding: Option<&ApiServiceBinding>,
) -> Result<Vec<Value>, V2Error> {
    let all = client.list(&crds(), None, &ListOptions::default()).await;
    let mut all =
        all.map_err(|source| V2Error::Server { what: "the CustomResourceDefinitions here".to_owned(), source })?;
    let is_owned = |crd: &Value| binding.is_some_and(|it| is_owned(crd, &it.metadata.uid));
    all.retain(|crd| is_owned(crd) || Saved::of_crd(crd).is_some_and(|saved| saved.name == name));
    Ok(all)
}

/// The kubeconfig in a Secret of this cluster.
pub(super) async fn kubeconfig(client: &Client, at: &SecretKeyReference) -> Result<InlineKubeconfig, V2Error> {
    let text = deploy::of_secret(client, &format!("{}/{}", at.namespace, at.name), Some(&at.key)).await?;
    Ok(InlineKubeconfig::parse(&text).map_err(DeployError::from)?)
}

/// The provider of a Connection.
pub(super) async fn provider(client: &Client, connection: &Connection) -> Result<Client, V2Error> {
    let kubeconfig = kubeconfig(client, &connection.secret()).await?;
    Ok(Server::from_inline(&kubeconfig)?.client().writing_as("kubectl-bind"))
}

/// Why a CRD cannot become the Connection's.
pub(super) async fn crd_reasons(
    provider: &Client,
    connection: &Connection,
    crd: &Value,
) -> Result<Vec<String>, V2Error> {
    let name = schema::name(crd);
    let Some(offered) = connection.status.exported_apis.iter().find(|api| api.name == name) else {
        let label = "label its CustomResourceDefinition there with core.kbind.io/exported=true";
        return Ok(vec![format!("Connection {} does not offer {name}: {label}", connection.metadata.name)]);
    };
    if crd["spec"]["scope"] != offered.scope.as_str() {
        let here = crd["spec"]["scope"].as_str().unwrap_or_default();
        let words = format!(
            "{name} is {here} here and {} at the provider: the isolation of the contract changes the scope, and v2 does not",
            offered.scope
        );
        return Ok(vec![words]);
    }
    let versions = if connection.status.active_schema_source == "OpenAPI" {
        offered.versions.clone()
    } else {
        let found = provider.get(&crds(), None, name).await;
        let what = format!("CustomResourceDefinition {name} of the provider");
        let found = found.map_err(|source| V2Error::Server { what, source })?.unwrap_or_default();
        if let Err(error) = schema::pull(&found, &connection.metadata.name) {
            return Ok(vec![error.to_string()]);
        }
        synced_version(&found).and_then(|it| it["name"].as_str()).map(str::to_owned).into_iter().collect()
    };
    let stored = crd["status"]["storedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let lost: Vec<&str> = stored.filter(|stored| !versions.iter().any(|it| it == stored)).collect();
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let words =
        format!("objects of {name} may be stored in {}, which v2 does not bring; store them anew", lost.join(", "));
    Ok(vec![words])
}

/// All objects of a CRD with what has their place at the provider, and why that cannot go on under v2. `is_first` is whether 0.8 still works: then
/// every object has a copy.
pub(super) async fn twins(
    client: &Client,
    provider: &Client,
    crd: &Value,
    is_first: bool,
) -> Result<(Vec<Twin>, Vec<String>), V2Error> {
    let Some(kind) = kind_of(crd) else { return Ok((Vec::new(), Vec::new())) };
    let what = || format!("{} of the provider", schema::name(crd));
    let there = provider.list(&kind, None, &ListOptions::default()).await;
    let there = there.map_err(|source| V2Error::Server { what: what(), source })?;
    let uid = |it: &Value| it["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let by_uid: HashMap<String, &Value> = there.iter().map(|it| (uid(it), it)).collect();
    let by_place: HashMap<_, &Value> = there.iter().map(|it| (place(it), it)).collect();
    let (mut twins, mut reasons) = (Vec::new(), Reasons::default());
    for source in objects(client, crd).await? {
        let copy = by_place.get(&place(&source)).map(|it| (*it).clone());
        if is_first {
            reasons.look_at(&source, &by_uid);
        }
        twins.push(Twin { kind: kind.clone(), source, copy });
    }
    Ok((twins, reasons.words(schema::name(crd))))
}

/// Objects that cannot go on under v2.
#[derive(Default)]
struct Reasons {
    moved: Vec<String>,
    shown: Vec<String>,
    lost: Vec<String>,
    waiting: Vec<String>,
}

impl Reasons {
    fn look_at(&mut self, source: &Value, by_uid: &HashMap<String, &Value>) {
        let name = shown(place(source));
        if labelled_owner(source) == Some(Owner::Provider) {
            self.shown.push(name);
            return;
        }
        let Some(known) = source["metadata"]["annotations"][PROVIDER_UID_ANNOTATION].as_str() else {
            self.waiting.push(name);
            return;
        };
        match by_uid.get(known) {
            Some(there) if place(there) != place(source) => {
                self.moved.push(format!("{name} is {} there", shown(place(there))));
            }
            Some(there) if there["metadata"]["annotations"][CONTRACT_ANNOTATION].is_string() => {}
            // Without a mark it is no copy.
            _ => self.lost.push(name),
        }
    }

    fn words(self, crd: &str) -> Vec<String> {
        let all = [
            (
                self.moved,
                "copies have other names or namespaces than their objects (isolation Prefixed or Namespaced, or namespaces that are mapped), and v2 has the same on both sides",
            ),
            (self.shown, "objects are shown from the provider (existing-objects), which v2 does not do"),
            (self.lost, "copies are not at the provider of the Connection; is it the same provider?"),
            (self.waiting, "objects have no copy yet; wait until 0.8 has synced them, or delete them"),
        ];
        let some = all.into_iter().filter(|(names, _)| !names.is_empty());
        some.map(|(names, why)| {
            let more = names.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names: Vec<String> = names.into_iter().take(MOST_NAMED).collect();
            format!("{crd}: {why}: {}{more}", names.join(", "))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use carrick_bind_api::names::OWNER_LABEL;
    use serde_json::json;

    use super::*;

    fn source(name: &str, known: Option<&str>) -> Value {
        let annotations = known.map_or_else(|| json!({}), |uid| json!({PROVIDER_UID_ANNOTATION: uid}));
        json!({"metadata": {"name": name, "namespace": "team", "annotations": annotations}})
    }

    fn copy(name: &str, uid: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "team", "uid": uid, "annotations": {CONTRACT_ANNOTATION: "c-1"}}})
    }

    /// What stands against an object, given what the provider has.
    fn reasons(sources: &[Value], there: &[Value]) -> Vec<String> {
        let uid = |it: &Value| it["metadata"]["uid"].as_str().unwrap().to_owned();
        let by_uid: HashMap<String, &Value> = there.iter().map(|it| (uid(it), it)).collect();
        let mut reasons = Reasons::default();
        for source in sources {
            reasons.look_at(source, &by_uid);
        }
        reasons.words("a.x")
    }

    #[test]
    fn an_object_goes_on_under_v2_if_its_copy_is_in_its_place() {
        assert_eq!(reasons(&[source("db", Some("1"))], &[copy("db", "1")]), Vec::<String>::new());
        let mut shown = source("db", Some("1"));
        shown["metadata"]["labels"] = json!({OWNER_LABEL: "provider"});
        let mut unmarked = copy("db", "1");
        unmarked["metadata"]["annotations"] = json!({});
        for (source, there, says) in [
            (
                source("db", Some("1")),
                copy("c-1-db", "1"),
                "isolation Prefixed or Namespaced, or namespaces that are mapped",
            ),
            (
                shown,
                copy("db", "1"),
                "objects are shown from the provider (existing-objects), which v2 does not do: team/db",
            ),
            (
                source("db", None),
                copy("db", "1"),
                "objects have no copy yet; wait until 0.8 has synced them, or delete them: team/db",
            ),
            (source("db", Some("1")), copy("db", "2"), "is it the same provider?: team/db"),
            (source("db", Some("1")), unmarked, "copies are not at the provider of the Connection"),
        ] {
            let reasons = reasons(&[source], &[there]);
            assert!(reasons.len() == 1 && reasons[0].starts_with("a.x: ") && reasons[0].contains(says), "{reasons:?}");
        }
    }

    #[test]
    fn of_many_objects_a_few_are_named() {
        let sources: Vec<Value> = (1..=7).map(|number| source(&format!("db-{number}"), None)).collect();
        let reasons = reasons(&sources, &[]);
        assert!(reasons.len() == 1 && reasons[0].ends_with("team/db-5 and 2 more"), "{reasons:?}");
    }
}
