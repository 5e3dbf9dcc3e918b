//! What an operator has made of a copy: everything in its namespace that names it as its owner, and what names that.

use std::collections::HashMap;

use carrick_client::{Client, ListOptions, Resource};
use carrick_syncagent::trace::{Node, Note};
use futures::{StreamExt, stream};
use serde_json::Value;

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// How deep owners are followed.
const DEEPEST: usize = 8;
/// Kinds that tell nothing of what was made.
const LEFT_OUT: [&str; 3] = ["events", "leases", "endpointslices"];

/// The trees of what a copy owns. What cannot be listed is left out, as it is for kubectl.
pub async fn by(client: &Client, copy: &Value) -> Vec<Node> {
    let Some(uid) = copy["metadata"]["uid"].as_str() else { return Vec::new() };
    let Some(namespace) = copy["metadata"]["namespace"].as_str() else {
        return Vec::new();
    };
    let kinds = kinds(client).await;
    let all: Vec<Vec<Value>> = stream::iter(kinds)
        .map(async |kind| {
            let found = client.list(&kind, Some(namespace), &ListOptions::default()).await.unwrap_or_default();
            found.into_iter().map(|object| named(object, &kind)).collect()
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    tree(&owners(all.into_iter().flatten()), uid, 0)
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

/// All kinds in namespaces that can be listed, each in the version that the server prefers.
async fn kinds(client: &Client) -> Vec<Resource> {
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
            resources(&list, &group, &version)
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    found.into_iter().flatten().collect()
}

fn resources(list: &Value, group: &str, version: &str) -> Vec<Resource> {
    let all = list["resources"].as_array().into_iter().flatten();
    let kept = all.filter(|one| {
        let name = one["name"].as_str().unwrap_or_default();
        let listed = one["verbs"].as_array().into_iter().flatten().any(|verb| verb == "list");
        one["namespaced"] == true && listed && !name.contains('/') && !LEFT_OUT.contains(&name)
    });
    kept.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        Resource::namespaced(group, version, text("kind"), text("name"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let kinds = resources(&list, "", "v1");
        assert_eq!(kinds.iter().map(|kind| &*kind.plural).collect::<Vec<_>>(), ["pods"]);
    }
}
