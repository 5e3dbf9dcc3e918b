//! What an operator has made of a copy: everything in its namespace that names it as its owner, and what names that. Copies of cluster-wide
//! kinds may own objects everywhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use carrick_client::{Client, ListOptions, Resource};
use carrick_syncagent::trace::{Node, Note, Severity};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// How deep owners are followed.
const DEEPEST: usize = 8;
/// How many objects of one kind are shown below one owner: some own thousands.
const MOST: usize = 20;
/// Kinds that tell nothing of what was made.
const LEFT_OUT: [&str; 3] = ["events", "leases", "endpointslices"];

/// What somebody owns, as far as it is shown, and how much is not.
#[derive(Debug, Default)]
pub struct Owned {
    /// The trees.
    pub nodes: Vec<Node>,
    /// What is left out.
    pub notes: Vec<Note>,
}

/// The trees of what a copy owns. What cannot be listed is left out, as it is for kubectl.
pub async fn by(client: &Client, copy: &Value) -> Owned {
    let Some(uid) = copy["metadata"]["uid"].as_str() else { return Owned::default() };
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
    Tree::new(&by_owner, uid).below(uid, 0)
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

/// Reads what the copy owns whole, for what its status says, as far as it is shown. What cannot be read is shown by its metadata.
async fn read(client: &Client, by_owner: &mut HashMap<String, Vec<Value>>, uid: &str) {
    let read = stream::iter(shown(by_owner, uid)).map(async |object| {
        let text = |at: usize| object[RESOURCE][at].as_str().unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        let metadata = &object["metadata"];
        let (name, namespace) = (metadata["name"].as_str().unwrap_or_default(), metadata["namespace"].as_str());
        let (group, version, plural) = (text(0), text(1), text(2));
        let resource = match namespace {
            Some(_) => Resource::namespaced(group, version, kind, plural),
            None => Resource::cluster_wide(group, version, kind, plural),
        };
        let whole = client.get(&resource, namespace, name).await.ok().flatten();
        whole.map(|whole| (own(&object).to_owned(), named(whole, &resource)))
    });
    let read: Vec<Option<(String, Value)>> = read.buffer_unordered(AT_ONCE).collect().await;
    let read: HashMap<String, Value> = read.into_iter().flatten().collect();
    for object in by_owner.values_mut().flatten() {
        if let Some(whole) = read.get(own(object)) {
            object.clone_from(whole);
        }
    }
}

/// Everything below an owner that has a chance to be shown, once. Pure.
fn shown(by_owner: &HashMap<String, Vec<Value>>, uid: &str) -> Vec<Value> {
    let (mut next, mut seen, mut found) = (vec![uid], HashSet::from([uid]), Vec::new());
    for _ in 0..=DEEPEST {
        let mut below = Vec::new();
        for owner in next {
            for of_kind in kinds_below(by_owner, owner) {
                for object in of_kind.into_iter().take(MOST).filter(|object| seen.insert(own(object))) {
                    below.push(own(object));
                    found.push(object.clone());
                }
            }
        }
        next = below;
    }
    found
}

/// What an owner has, by kind.
fn kinds_below<'a>(by_owner: &'a HashMap<String, Vec<Value>>, uid: &str) -> Vec<Vec<&'a Value>> {
    let mut kinds: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for object in by_owner.get(uid).into_iter().flatten() {
        kinds.entry(object["kind"].as_str().unwrap_or_default()).or_default().push(object);
    }
    kinds.into_values().collect()
}

/// The UID of an object.
fn own(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Lists leave out of what kind their items are.
fn named(mut object: Value, kind: &Resource) -> Value {
    if object["kind"].is_null() {
        object["kind"] = Value::from(&*kind.kind);
    }
    object
}

/// Objects by the UID of each owner, in the order of their names.
fn owners(objects: impl Iterator<Item = Value>) -> HashMap<String, Vec<Value>> {
    let mut by_owner: HashMap<String, Vec<Value>> = HashMap::new();
    for object in objects {
        let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        // Somebody may be named twice.
        let uids: BTreeSet<String> = references.filter_map(|owner| owner["uid"].as_str()).map(str::to_owned).collect();
        for uid in uids {
            by_owner.entry(uid).or_default().push(object.clone());
        }
    }
    let name = |object: &Value| {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        (text("namespace"), text("name"))
    };
    for objects in by_owner.values_mut() {
        objects.sort_by_cached_key(name);
    }
    by_owner
}

/// A tree that shows every object once, whoever owns whom.
struct Tree<'a> {
    by_owner: &'a HashMap<String, Vec<Value>>,
    shown: HashSet<&'a str>,
}

impl<'a> Tree<'a> {
    fn new(by_owner: &'a HashMap<String, Vec<Value>>, root: &'a str) -> Self {
        Self { by_owner, shown: HashSet::from([root]) }
    }

    fn below(&mut self, uid: &str, depth: usize) -> Owned {
        let mut owned = Owned::default();
        let mut below = Vec::new();
        for of_kind in kinds_below(self.by_owner, uid) {
            let mut nodes: Vec<(Node, &'a str)> = of_kind
                .into_iter()
                .map(|object| (Node::of("object", object, "made by the operator"), own(object)))
                .collect();
            // What is not as it should be comes first where not all can be shown.
            nodes.sort_by_key(|(node, _)| !waits(node));
            let left = nodes.split_off(nodes.len().min(MOST));
            owned.notes.extend(left_out(&left));
            below.append(&mut nodes);
        }
        below.sort_by(|(one, _), (other, _)| one.object.cmp(&other.object));
        // What an owner has itself is shown there, and not deeper down.
        let first: Vec<bool> = below.iter().map(|(_, own)| self.shown.insert(own)).collect();
        for ((mut node, own), first) in below.into_iter().zip(first) {
            if !first {
                node.notes = vec![Note::plain("is shown elsewhere in this tree")];
            } else if depth < DEEPEST {
                let Owned { nodes, notes } = self.below(own, depth + 1);
                node.children = nodes;
                node.notes.extend(notes);
            } else if self.by_owner.contains_key(own) {
                node.notes.push(Note::plain("and so on"));
            }
            owned.nodes.push(node);
        }
        owned
    }
}

fn waits(node: &Node) -> bool {
    node.notes.iter().any(|note| note.severity != Severity::Plain)
}

/// How many objects of a kind are not shown.
fn left_out(left: &[(Node, &str)]) -> Option<Note> {
    let (first, _) = left.first()?;
    let kind = first.object.split(' ').next().unwrap_or_default();
    let text = format!("owns {} more of kind {kind}", left.len());
    Some(match left.iter().filter(|(node, _)| waits(node)).count() {
        0 => Note::plain(&text),
        waiting => Note::waiting(&format!("{text}, {waiting} of them not yet as they should be")),
    })
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
        let tree = |by_owner: &HashMap<String, Vec<Value>>, uid: &str| Tree::new(by_owner, uid).below(uid, 0).nodes;
        let found = tree(&owners(all.into_iter()), "copy");
        assert_eq!((found.len(), found[0].object.as_str()), (1, "Pod a"));
        assert_eq!(found[0].children[0].object, "Pod b");
        let circle = tree(&owners([object("x", "9", "9")].into_iter()), "9");
        assert_eq!((circle.len(), circle[0].children.len()), (1, 0));
    }

    #[test]
    fn objects_that_all_own_each_other_are_shown_once_each() {
        let owners_of =
            |own: usize| (0..20).filter(move |other| *other != own).map(|other| json!({ "uid": other.to_string() }));
        let all = (0..20).map(|own| {
            let owners: Vec<Value> = owners_of(own).collect();
            json!({ "kind": "Pod", "metadata": { "name": format!("p{own}"), "uid": own.to_string(), "ownerReferences": owners } })
        });
        let by_owner = owners(all);
        let found = Tree::new(&by_owner, "0").below("0", 0);
        let size = |nodes: &[Node]| nodes.iter().map(|node| 1 + node.children.len()).sum::<usize>();
        assert_eq!(found.nodes.len(), 19);
        assert!(size(&found.nodes) <= 19 + 19 * 19, "{found:?}");
        assert!(found.nodes.iter().flat_map(|node| &node.children).all(|node| node.children.is_empty()));
        let again = &found.nodes[0].children[0];
        assert_eq!(again.notes, [Note::plain("is shown elsewhere in this tree")]);
        assert_eq!(shown(&by_owner, "0").len(), 19, "each is read once");
    }

    #[test]
    fn of_thousands_those_are_shown_that_are_not_as_they_should_be() {
        let object = |kind: &str, at: usize, status: &str| {
            let conditions = json!([{ "type": "Ready", "status": status }]);
            json!({
                "kind": kind, "status": { "conditions": conditions },
                "metadata": { "name": format!("n{at:04}"), "uid": format!("{kind}{at}"), "ownerReferences": [{ "uid": "hub" }, { "uid": "hub" }] },
            })
        };
        let pods = (0..5000).map(|at| object("Pod", at, if at >= 4990 { "False" } else { "True" }));
        let all = pods.chain((0..30).map(|at| object("Job", at, "False"))).chain([object("Service", 0, "True")]);
        let by_owner = owners(all);
        let found = Tree::new(&by_owner, "hub").below("hub", 0);
        let count = |kind: &str| found.nodes.iter().filter(|node| node.object.starts_with(kind)).count();
        assert_eq!([count("Pod"), count("Job"), count("Service")], [MOST, MOST, 1]);
        assert_eq!(found.nodes.iter().filter(|node| node.object.starts_with("Pod n499")).count(), 10);
        let left = [
            Note::waiting("owns 10 more of kind Job, 10 of them not yet as they should be"),
            Note::plain("owns 4980 more of kind Pod"),
        ];
        assert_eq!(found.notes, left);
        assert_eq!(shown(&by_owner, "hub").len(), 2 * MOST + 1, "what is not shown is not read");
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
        let found = by(&client, &copy).await.nodes;
        let [node] = &found[..] else { panic!("{found:?}") };
        assert_eq!((node.object.as_str(), node.children.len()), ("Namespace below", 1), "{found:?}");
        assert_eq!(node.children[0].object, "ConfigMap default/deep");
    }
}
