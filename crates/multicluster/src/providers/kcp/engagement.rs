//! Which clusters take part, decided from slices and bindings alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use carrick_client::Object;
use carrick_client::watch::Event;
use carrick_kcp::PATH_ANNOTATION;
use serde_json::Value;

use crate::event::Gone;

/// A change of the fleet, in names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// An endpoint appeared.
    Up(Arc<str>),
    /// An endpoint is gone; its clusters have left before.
    Down(Arc<str>),
    /// A cluster takes part. Told again, with the new endpoint, when it moves.
    Engaged { cluster: Arc<str>, endpoint: Arc<str>, path: Option<Arc<str>> },
    /// The path of an engaged cluster became known, or changed.
    Path { cluster: Arc<str>, path: Arc<str> },
    /// A cluster got other APIs than before.
    ApisChanged { cluster: Arc<str> },
    /// A cluster takes part no more.
    Disengaged { cluster: Arc<str>, why: Gone },
    /// Everything that existed at the start has been told.
    Synced,
}

/// The state of the fleet.
#[derive(Default)]
pub(super) struct Engagement {
    endpoints: BTreeMap<Arc<str>, Endpoint>,
    /// Engaged clusters and the endpoint that serves each.
    clusters: HashMap<Arc<str>, Arc<str>>,
    /// Paths of the clusters that have bindings, where known.
    paths: HashMap<Arc<str>, Arc<str>>,
    slice_synced: bool,
    /// Whether the list of slices that is coming in held the slice.
    slice_listed: bool,
    told_synced: bool,
}

#[derive(Default)]
struct Endpoint {
    /// Bindings that have been ready once, by cluster and name.
    bindings: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Binding>>,
    generation: u64,
    synced: bool,
}

struct Binding {
    /// The list that last held the binding.
    generation: u64,
    /// What it binds, as JSON.
    apis: String,
}

impl Engagement {
    /// Takes in an event of the watch of the slice.
    pub(super) fn on_slice(&mut self, event: Event) -> Vec<Told> {
        match event {
            Event::Begin => {
                self.slice_listed = false;
                Vec::new()
            }
            Event::Listed(slice) => {
                self.slice_listed = true;
                self.set_endpoints(&urls(&slice))
            }
            Event::Applied(slice) => self.set_endpoints(&urls(&slice)),
            Event::Deleted(_) => self.set_endpoints(&BTreeSet::new()),
            Event::Synced => {
                self.slice_synced = true;
                let mut events = if self.slice_listed { Vec::new() } else { self.set_endpoints(&BTreeSet::new()) };
                events.extend(self.synced());
                events
            }
            Event::Failing(_) | Event::Recovered => Vec::new(),
        }
    }

    /// Takes in an event of the watch of the bindings of an endpoint.
    pub(super) fn on_binding(&mut self, url: &Arc<str>, event: Event) -> Vec<Told> {
        let Some(endpoint) = self.endpoints.get_mut(url) else { return Vec::new() };
        match event {
            Event::Begin => {
                endpoint.generation += 1;
                Vec::new()
            }
            Event::Listed(binding) | Event::Applied(binding) => {
                let names = endpoint.bindings.entry(binding.cluster.clone()).or_default();
                // A binding that was ready once stays, whatever becomes of its conditions.
                let known = names.get(&binding.name).map(|known| known.apis.clone());
                let apis = binding.value()["status"]["boundResources"].to_string();
                let changed = known.as_ref().is_some_and(|known| *known != apis);
                if known.is_some() || counts(&binding, url) {
                    names.insert(binding.name.clone(), Binding { generation: endpoint.generation, apis });
                }
                if names.is_empty() {
                    endpoint.bindings.remove(&binding.cluster);
                    return Vec::new();
                }
                let mut told = self.learn_path(&binding);
                if changed {
                    told.push(Told::ApisChanged { cluster: binding.cluster.clone() });
                } else if known.is_none() {
                    told.extend(self.engage(&binding.cluster, url));
                }
                told
            }
            Event::Deleted(binding) => {
                if let Some(names) = endpoint.bindings.get_mut(&binding.cluster) {
                    names.remove(&binding.name);
                    if names.is_empty() {
                        endpoint.bindings.remove(&binding.cluster);
                        return self.leave(&binding.cluster, url, Gone::Removed);
                    }
                }
                Vec::new()
            }
            Event::Synced => {
                endpoint.synced = true;
                let mut gone = Vec::new();
                endpoint.bindings.retain(|cluster, names| {
                    names.retain(|_, binding| binding.generation == endpoint.generation);
                    if names.is_empty() {
                        gone.push(cluster.clone());
                    }
                    !names.is_empty()
                });
                let mut events: Vec<Told> =
                    gone.iter().flat_map(|cluster| self.leave(cluster, url, Gone::Removed)).collect();
                events.extend(self.synced());
                events
            }
            Event::Failing(_) | Event::Recovered => Vec::new(),
        }
    }

    fn set_endpoints(&mut self, urls: &BTreeSet<Arc<str>>) -> Vec<Told> {
        let gone: Vec<Arc<str>> = self.endpoints.keys().filter(|url| !urls.contains(*url)).cloned().collect();
        let mut events = Vec::new();
        for url in urls {
            if !self.endpoints.contains_key(url) {
                self.endpoints.insert(url.clone(), Endpoint::default());
                events.push(Told::Up(url.clone()));
            }
        }
        for url in gone {
            let clusters = self.endpoints.remove(&url).map(|endpoint| endpoint.bindings).unwrap_or_default();
            for cluster in clusters.keys() {
                events.extend(self.leave(cluster, &url, Gone::EndpointDown));
            }
            events.push(Told::Down(url));
        }
        events.extend(self.synced());
        events
    }

    /// A cluster has a binding at an endpoint; the latest endpoint wins, because that is where a moved cluster is now.
    fn engage(&mut self, cluster: &Arc<str>, url: &Arc<str>) -> Vec<Told> {
        if self.clusters.insert(cluster.clone(), url.clone()).as_ref() == Some(url) {
            return Vec::new();
        }
        let path = self.paths.get(cluster).cloned();
        vec![Told::Engaged { cluster: cluster.clone(), endpoint: url.clone(), path }]
    }

    /// A cluster has no binding at an endpoint any more.
    fn leave(&mut self, cluster: &Arc<str>, url: &Arc<str>, why: Gone) -> Vec<Told> {
        if self.clusters.get(cluster) != Some(url) {
            return Vec::new();
        }
        let other = self.endpoints.iter().find(|(_, endpoint)| endpoint.bindings.contains_key(cluster));
        if let Some(other) = other.map(|(url, _)| url.clone()) {
            return self.engage(cluster, &other);
        }
        self.clusters.remove(cluster);
        self.paths.remove(cluster);
        vec![Told::Disengaged { cluster: cluster.clone(), why }]
    }

    /// Bindings carry the path of their workspace, though not always from the start.
    fn learn_path(&mut self, binding: &Object) -> Vec<Told> {
        let Some(path) = binding.annotation(PATH_ANNOTATION).filter(|path| !path.is_empty()) else { return Vec::new() };
        let (cluster, path): (Arc<str>, Arc<str>) = (binding.cluster.clone(), path.into());
        let known = self.paths.insert(cluster.clone(), path.clone());
        if known.as_ref() == Some(&path) || !self.clusters.contains_key(&cluster) {
            return Vec::new();
        }
        vec![Told::Path { cluster, path }]
    }

    fn synced(&mut self) -> Option<Told> {
        let complete = self.slice_synced && self.endpoints.values().all(|endpoint| endpoint.synced);
        (complete && !std::mem::replace(&mut self.told_synced, true)).then_some(Told::Synced)
    }
}

/// The endpoint URLs of a slice, without trailing slashes.
fn urls(slice: &Object) -> BTreeSet<Arc<str>> {
    let slice = slice.value();
    let endpoints = slice.pointer("/status/endpoints").and_then(Value::as_array).into_iter().flatten();
    let urls = endpoints.filter_map(|endpoint| endpoint.get("url")?.as_str());
    urls.map(|url| url.trim_end_matches('/')).filter(|url| !url.is_empty()).map(Arc::from).collect()
}

/// Whether a binding makes its cluster take part: it is ready, and it binds the export of the endpoint.
fn counts(binding: &Object, url: &str) -> bool {
    let value = binding.value();
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let ready = conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && !binding.cluster.is_empty() && binds_export_of(&value, url)
}

/// If the export claims APIBindings, consumers' bindings to other exports are visible too. Endpoint URLs of another
/// shape than kcp's, and bindings that do not say, are taken as they come.
fn binds_export_of(binding: &Value, url: &str) -> bool {
    let Some((cluster, export)) = url.split_once("/services/apiexport/").and_then(|(_, rest)| rest.split_once('/'))
    else {
        return true;
    };
    let says = |pointer: &str, wanted: &str| {
        let text = binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        text.is_empty() || text == wanted
    };
    says("/spec/reference/export/name", export) && says("/status/apiExportClusterName", cluster)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const A: &str = "https://a/services/apiexport/prov/ex";
    const B: &str = "https://b/services/apiexport/prov/ex";

    fn slice(urls: &[&str]) -> Object {
        let endpoints: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
        Object::from_value(&json!({"metadata": {"name": "s"}, "status": {"endpoints": endpoints}})).unwrap()
    }

    fn binding(cluster: &str, name: &str, ready: bool) -> Object {
        bound_to(cluster, name, ready, "prov", "ex")
    }

    fn bound_to(cluster: &str, name: &str, ready: bool, export_cluster: &str, export: &str) -> Object {
        let status = if ready { "True" } else { "False" };
        Object::from_value(&json!({
            "metadata": {"name": name, "annotations": {"kcp.io/cluster": cluster}},
            "spec": {"reference": {"export": {"name": export}}},
            "status": {"apiExportClusterName": export_cluster, "conditions": [{"type": "Ready", "status": status}]},
        }))
        .unwrap()
    }

    /// Runs a script and returns what was told, as words.
    fn run(script: Vec<(&str, Event)>) -> Vec<String> {
        let mut engagement = Engagement::default();
        let mut told = Vec::new();
        for (source, event) in script {
            let events = if source == "slice" {
                engagement.on_slice(event)
            } else {
                engagement.on_binding(&source.into(), event)
            };
            told.extend(events.into_iter().map(|event| match event {
                Told::Up(url) => format!("up {}", &url[8..9]),
                Told::Down(url) => format!("down {}", &url[8..9]),
                Told::Engaged { cluster, endpoint, path: None } => format!("engaged {cluster} {}", &endpoint[8..9]),
                Told::Disengaged { cluster, .. } => format!("disengaged {cluster}"),
                Told::ApisChanged { cluster } => format!("other apis {cluster}"),
                Told::Synced => "synced".to_owned(),
                Told::Engaged { cluster, endpoint, path: Some(path) } => {
                    format!("engaged {cluster} {} at {path}", &endpoint[8..9])
                }
                Told::Path { cluster, path } => format!("path {cluster} {path}"),
            }));
        }
        told
    }

    fn listed_slice(urls: &[&str]) -> Vec<(&'static str, Event)> {
        vec![("slice", Event::Begin), ("slice", Event::Listed(slice(urls))), ("slice", Event::Synced)]
    }

    #[test]
    fn no_slice_and_no_endpoints_are_an_empty_fleet() {
        assert_eq!(run(vec![("slice", Event::Begin), ("slice", Event::Synced)]), ["synced"]);
        assert_eq!(run(listed_slice(&[])), ["synced"]);
    }

    #[test]
    fn a_cluster_is_engaged_once_by_its_first_ready_binding_and_disengaged_with_its_last() {
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(binding("c", "one", false))),
            (A, Event::Synced),
            (A, Event::Applied(binding("c", "one", true))),
            (A, Event::Applied(binding("c", "two", true))),
            (A, Event::Applied(binding("c", "one", false))),
            (A, Event::Applied(binding("c", "never-ready", false))),
            (A, Event::Deleted(binding("c", "two", true))),
            (A, Event::Deleted(binding("c", "one", false))),
            (A, Event::Deleted(binding("c", "never-ready", false))),
        ]);
        assert_eq!(run(script), ["up a", "synced", "engaged c a", "disengaged c"]);
    }

    #[test]
    fn a_binding_that_follows_a_new_schema_is_told() {
        let bound = |schema: &str| {
            let mut value = binding("c", "one", true).value();
            value["status"]["boundResources"] = json!([{"resource": "widgets", "schema": {"name": schema}}]);
            Object::from_value(&value).unwrap()
        };
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(bound("v1"))),
            (A, Event::Synced),
            (A, Event::Applied(bound("v1"))),
            (A, Event::Applied(bound("v2"))),
            (A, Event::Begin),
            (A, Event::Listed(bound("v3"))),
            (A, Event::Synced),
        ]);
        assert_eq!(run(script), ["up a", "engaged c a", "synced", "other apis c", "other apis c"]);
    }

    #[test]
    fn paths_are_told_when_they_become_known() {
        let at = |path: &str| {
            let mut value = binding("c", "one", true).value();
            value["metadata"]["annotations"]["kcp.io/path"] = json!(path);
            Object::from_value(&value).unwrap()
        };
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(binding("c", "one", true))),
            (A, Event::Synced),
            (A, Event::Applied(at("root:c"))),
            (A, Event::Applied(at("root:c"))),
            (A, Event::Deleted(at("root:c"))),
            (A, Event::Applied(at("root:d"))),
        ]);
        let wanted = ["up a", "engaged c a", "synced", "path c root:c", "disengaged c", "engaged c a at root:d"];
        assert_eq!(run(script), wanted);
    }

    #[test]
    fn bindings_of_other_exports_do_not_count() {
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(bound_to("c", "other-name", true, "prov", "other"))),
            (A, Event::Listed(bound_to("d", "other-cluster", true, "elsewhere", "ex"))),
            (A, Event::Listed(bound_to("e", "silent", true, "", ""))),
            (A, Event::Synced),
        ]);
        assert_eq!(run(script), ["up a", "engaged e a", "synced"]);
    }

    #[test]
    fn a_new_list_finds_what_was_missed() {
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(binding("c", "one", true))),
            (A, Event::Listed(binding("d", "one", true))),
            (A, Event::Synced),
            (A, Event::Begin),
            (A, Event::Listed(binding("d", "one", false))),
            (A, Event::Listed(binding("e", "one", true))),
            (A, Event::Synced),
        ]);
        let wanted = ["up a", "engaged c a", "engaged d a", "synced", "engaged e a", "disengaged c"];
        assert_eq!(run(script), wanted);
    }

    #[test]
    fn an_endpoint_takes_its_clusters_along() {
        let mut script = listed_slice(&[A]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(binding("c", "one", true))),
            (A, Event::Synced),
            ("slice", Event::Applied(slice(&[A, B]))),
            ("slice", Event::Applied(slice(&[B]))),
            (A, Event::Applied(binding("late", "one", true))),
            ("slice", Event::Deleted(slice(&[B]))),
        ]);
        let wanted = ["up a", "engaged c a", "synced", "up b", "disengaged c", "down a", "down b"];
        assert_eq!(run(script), wanted);
    }

    #[test]
    fn a_slice_missing_from_a_new_list_takes_all_endpoints_along() {
        let mut script = listed_slice(&[A]);
        script.extend([("slice", Event::Begin), ("slice", Event::Synced)]);
        assert_eq!(run(script), ["up a", "down a", "synced"]);
    }

    #[test]
    fn a_cluster_that_moves_stays_engaged() {
        let mut script = listed_slice(&[A, B]);
        script.extend([
            (A, Event::Begin),
            (A, Event::Listed(binding("c", "one", true))),
            (A, Event::Synced),
            (B, Event::Begin),
            (B, Event::Synced),
            (B, Event::Applied(binding("c", "one", true))),
            (A, Event::Deleted(binding("c", "one", true))),
            (B, Event::Deleted(binding("c", "one", true))),
        ]);
        let wanted = ["up a", "up b", "engaged c a", "synced", "engaged c b", "disengaged c"];
        assert_eq!(run(script), wanted);
    }
}
