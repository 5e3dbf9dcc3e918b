//! What an operator has made of a copy: everything in its namespace that names it as its owner, and what names that. Copies of cluster-wide
//! kinds may own objects everywhere.

use std::collections::{HashMap, HashSet};

use carrick_client::{Client, ListOptions, Resource};
use carrick_syncagent::trace::{Node, Note};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// How deep owners are followed.
const DEEPEST: usize = 8;
/// Kinds that tell nothing of what was made.
const LEFT_OUT: [&str; 3] = ["events", "leases", "endpointslices"];

/// The trees of what a copy owns. What cannot be listed is left out, as it is for kubectl.
pub async fn by(client: &Client, copy: &Value) -> Vec<Node> {
    let Some(uid) = copy["metadata"]["uid"].as_str() else { return Vec::new() };
    let namespace = copy["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let scope = if namespace.is_some() { ListScope::Namespace } else { ListScope::Everywhere };
    let kinds = kinds(client, scope).await;
    let all: Vec<Vec<Value>> = stream::iter(kinds)
        .map(async |kind| match scope {
            ListScope::Namespace => {
                let found = client.list(&kind, namespace, &ListOptions::default()).await.unwrap_or_default();
                found.into_iter().map(|object| named(object, &kind)).collect()
            }
            ListScope::Everywhere => owned(client, &kind).await,
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut by_owner = owners(all.into_iter().flatten());
    if scope == ListScope::Everywhere {
        read(client, &mut by_owner, uid).await;
    }
    tree(&by_owner, uid, 0)
}

/// Where owned objects may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListScope {
    /// In the namespace of their owner.
    Namespace,
    /// In any namespace, or in none.
    Everywhere,
}

/// The metadata of all objects of a kind that have an owner. Whole objects of a whole cluster would not fit anywhere.
async fn owned(client: &Client, kind: &Resource) -> Vec<Value> {
    let found = client.metadata_only().list(kind, None, &ListOptions::default()).await.unwrap_or_default();
    let owned = found.into_iter().filter(|object| object["metadata"]["ownerReferences"].is_array());
    owned
        .map(|object| json!({ "metadata": object["metadata"], "kind": &*kind.kind, RESOURCE: resource_text(kind) }))
        .collect()
}

/// Where an object is read whole, which is known for those of which only the metadata is.
const RESOURCE: &str = "resource";

fn resource_text(kind: &Resource) -> Value {
    json!([&*kind.group, &*kind.version, &*kind.plural])
}

/// Reads what the copy owns whole, for what its status says.
async fn read(client: &Client, by_owner: &mut HashMap<String, Vec<Value>>, uid: &str) {
    let (mut next, mut seen) = (vec![uid.to_owned()], HashSet::new());
    while let Some(owner) = next.pop() {
        if !seen.insert(owner.clone()) {
            continue;
        }
        for object in by_owner.get_mut(&owner).into_iter().flatten() {
            next.extend(object["metadata"]["uid"].as_str().map(str::to_owned));
            let text = |at: usize| object[RESOURCE][at].as_str().unwrap_or_default();
            let kind = object["kind"].as_str().unwrap_or_default();
            let metadata = &object["metadata"];
            let (name, namespace) = (metadata["name"].as_str().unwrap_or_default(), metadata["namespace"].as_str());
            let (group, version, plural) = (text(0), text(1), text(2));
            let resource = match namespace {
                Some(_) => Resource::namespaced(group, version, kind, plural),
                None => Resource::cluster_wide(group, version, kind, plural),
            };
            // What cannot be read is shown by its metadata.
            if let Ok(Some(whole)) = client.get(&resource, namespace, name).await {
                *object = named(whole, &resource);
            }
        }
    }
}

/// Lists leave out of what kind their items are.
fn named(mut object: Value, kind: &Resource) -> Value {
    if object["kind"].is_null() {
        object["kind"] = Value::from(&*kind.kind);
    }
    object
}

/// Objects by the UID of each owner.
fn owners(objects: impl Iterator<Item = Value>) -> HashMap<String, Vec<Value>> {
    let mut by_owner: HashMap<String, Vec<Value>> = HashMap::new();
    for object in objects {
        let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let uids: Vec<String> = references.filter_map(|owner| owner["uid"].as_str()).map(str::to_owned).collect();
        for uid in uids {
            by_owner.entry(uid).or_default().push(object.clone());
        }
    }
    by_owner
}

fn tree(by_owner: &HashMap<String, Vec<Value>>, uid: &str, depth: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for object in by_owner.get(uid).into_iter().flatten() {
        let mut node = Node::of("object", object, "made by the operator");
        match object["metadata"]["uid"].as_str() {
            Some(own) if depth < DEEPEST => node.children = tree(by_owner, own, depth + 1),
            Some(own) if by_owner.contains_key(own) => node.notes.push(Note::plain("and so on")),
            _ => {}
        }
        nodes.push(node);
    }
    nodes.sort_by(|one, other| one.object.cmp(&other.object));
    nodes
}

/// All kinds that can be listed, each in the version that the server prefers; those in namespaces, or the others, too.
async fn kinds(client: &Client, scope: ListScope) -> Vec<Resource> {
    let mut groups = vec![(String::new(), "v1".to_owned(), "/api/v1".to_owned())];
    let listed = client.raw_get("/apis").await.unwrap_or_default();
    for group in listed["groups"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, version) = (text(&group["name"]), text(&group["preferredVersion"]["version"]));
        let path = format!("/apis/{name}/{version}");
        groups.push((name, version, path));
    }
    let found: Vec<Vec<Resource>> = stream::iter(groups)
        .map(async |(group, version, path)| {
            let list = client.raw_get(&path).await.unwrap_or_default();
            resources(&list, &group, &version, scope)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    found.into_iter().flatten().collect()
}

fn resources(list: &Value, group: &str, version: &str, scope: ListScope) -> Vec<Resource> {
    let all = list["resources"].as_array().into_iter().flatten();
    let kept = all.filter(|one| {
        let name = one["name"].as_str().unwrap_or_default();
        let listed = one["verbs"].as_array().into_iter().flatten().any(|verb| verb == "list");
        (one["namespaced"] == true || scope == ListScope::Everywhere)
            && listed
            && !name.contains('/')
            && !LEFT_OUT.contains(&name)
    });
    kept.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        let of = if one["namespaced"] == true { Resource::namespaced } else { Resource::cluster_wide };
        of(group, version, text("kind"), text("name"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use carrick_client::Server;

    use super::*;

    #[test]
    fn owners_are_followed_down_and_in_no_circle() {
        let object = |name: &str, uid: &str, owner: &str| json!({ "kind": "Pod", "metadata": { "name": name, "uid": uid, "ownerReferences": [{ "uid": owner }] } });
        let all = [object("a", "1", "copy"), object("b", "2", "1"), object("c", "3", "other"), object("x", "9", "9")];
        let found = tree(&owners(all.into_iter()), "copy", 0);
        assert_eq!((found.len(), found[0].object.as_str()), (1, "Pod a"));
        assert_eq!(found[0].children[0].object, "Pod b");
        let circle = tree(&owners([object("x", "9", "9")].into_iter()), "9", 0);
        assert_eq!(circle.len(), 1);
    }

    #[test]
    fn only_kinds_that_can_be_listed_in_a_namespace_count() {
        let one = |name: &str, namespaced: bool, verbs: &[&str]| json!({ "name": name, "kind": "K", "namespaced": namespaced, "verbs": verbs });
        let list = json!({ "resources": [
            one("pods", true, &["list"]), one("pods/log", true, &["list"]), one("nodes", false, &["list"]),
            one("bindings", true, &["create"]), one("events", true, &["list"]),
        ] });
        let found = |scope: ListScope| {
            resources(&list, "", "v1", scope).iter().map(|kind| kind.plural.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(ListScope::Namespace), ["pods"]);
        assert_eq!(found(ListScope::Everywhere), ["pods", "nodes"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn copies_of_cluster_wide_kinds_own_objects_everywhere() {
        let plane = crate::embedded::start(carrick_plane::Mode::Kube, &[]).await.unwrap();
        let server = Server::from_kubeconfig_yaml(&plane.kubeconfig("admin", None).unwrap()).unwrap();
        let client = server.client();
        let namespaces = Resource::cluster_wide("", "v1", "Namespace", "namespaces");
        let maps = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
        let owner = |object: &Value, kind: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": object["metadata"]["name"], "uid": object["metadata"]["uid"] }]);
        let made = async |kind: &Resource, namespace: Option<&str>, name: &str, owners: Value| {
            let object = json!({ "metadata": { "name": name, "ownerReferences": owners } });
            client.create(kind, namespace, &object).await.unwrap()
        };
        let copy = made(&namespaces, None, "copy", json!([])).await;
        let below = made(&namespaces, None, "below", owner(&copy, "Namespace")).await;
        made(&maps, Some("default"), "deep", owner(&below, "Namespace")).await;
        made(&maps, Some("default"), "other", json!([])).await;
        let found = by(&client, &copy).await;
        let [node] = &found[..] else { panic!("{found:?}") };
        assert_eq!((node.object.as_str(), node.children.len()), ("Namespace below", 1), "{found:?}");
        assert_eq!(node.children[0].object, "ConfigMap default/deep");
    }
}
