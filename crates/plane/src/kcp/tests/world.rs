//! A plane and short ways to talk to it as a client would: every call is routed and authorized like a request.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use serde_json::{Value, json};

use crate::api::{Api, DeleteOptions, Event, FieldSelector, ListOptions, Scope, WatchOptions, WriteOptions};
use crate::caller::Caller;
use crate::config::{Config, Mode, User};
use crate::extension::VirtualView;
use crate::patch::Patch;
use crate::plane::Plane;
use crate::request::{Attributes, Target};
use crate::resource::{Catalog, Resource};
use crate::status::Status;

pub const ADMIN: &str = "kcp-admin";

pub struct World {
    pub plane: Plane,
}

/// A client's view: a workspace, or one target of a virtual workspace.
pub struct ClientView {
    api: Arc<Api>,
    caller: Caller,
    door: Door,
}

enum Door {
    Cluster(Arc<str>),
    View(Box<VirtualView>),
}

impl World {
    pub async fn start() -> Self {
        Self::with(Config::new(Mode::Kcp)).await
    }

    pub async fn with(mut config: Config) -> Self {
        for name in ["alice", "bob"] {
            config.users.push(User::new(name, name, &[]));
        }
        Self { plane: Plane::start(config).await.unwrap() }
    }

    pub fn api(&self) -> &Arc<Api> {
        self.plane.api()
    }

    /// The workspace behind a path or name, for the administrator.
    pub fn at(&self, path: &str) -> ClientView {
        self.enter(ADMIN, path).unwrap()
    }

    pub fn enter(&self, user: &str, path: &str) -> Result<ClientView, Status> {
        let cluster = self.api().extension().unwrap().resolve(path);
        let cluster = cluster.ok_or_else(|| Status::not_found("tenancy.kcp.io", "workspaces", path))?;
        Ok(ClientView { api: self.api().clone(), caller: caller(user), door: Door::Cluster(cluster) })
    }

    /// The virtual workspace behind an endpoint URL.
    pub fn through(&self, endpoint: &str, target: &str) -> ClientView {
        self.through_as(ADMIN, endpoint, target).unwrap()
    }

    pub fn through_as(&self, user: &str, endpoint: &str, target: &str) -> Result<ClientView, Status> {
        let path = endpoint.strip_prefix(self.plane.url()).unwrap_or(endpoint);
        let path = format!("{path}/clusters/{target}/api");
        let caller = caller(user);
        let kinds = |cluster: &str| self.api().resources(cluster);
        let view = self.api().extension().unwrap().virtual_workspace(&kinds, &caller, &path)?;
        Ok(ClientView {
            api: self.api().clone(),
            caller,
            door: Door::View(Box::new(view.expect("a virtual workspace"))),
        })
    }

    /// Waits until the function finds something.
    pub async fn until<T>(&self, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
        let wait = async {
            loop {
                let revision = self.api().store.revision();
                if let Some(found) = found() {
                    return found;
                }
                self.api().store.reached(revision + 1).await;
            }
        };
        let result = tokio::time::timeout(Duration::from_mins(1), wait).await;
        result.unwrap_or_else(|_| panic!("waited too long until {what}"))
    }

    /// Waits until no controller writes any more.
    pub async fn quiet(&self) -> u64 {
        loop {
            let revision = self.api().store.revision();
            let next = self.api().store.reached(revision + 1);
            if tokio::time::timeout(Duration::from_millis(500), next).await.is_err() {
                return revision;
            }
        }
    }

    /// Creates a workspace and returns its cluster name once it is ready.
    pub async fn workspace(&self, parent: &str, name: &str) -> String {
        let object = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}}});
        self.at(parent).create(object).unwrap();
        self.ready(parent, name).await["spec"]["cluster"].as_str().unwrap().to_owned()
    }

    pub async fn ready(&self, parent: &str, name: &str) -> Value {
        let parent = self.at(parent);
        self.until("the workspace is ready", || {
            let found = parent.get("tenancy.kcp.io/v1alpha1/workspaces", name).ok()?;
            (found["status"]["phase"] == "Ready").then_some(found)
        })
        .await
    }

    /// Creates the export `example.io` of `widgets` with the given claims (v1alpha2) and waits for its identity.
    pub async fn export(&self, provider: &str, claims: Value) -> Value {
        let place = self.at(provider);
        place.create(schema("v1", "size")).unwrap();
        place
            .create(json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "example.io"},
                "spec": {"permissionClaims": claims, "resources": [
                    {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}]}}))
            .unwrap();
        self.until("the export has an identity", || {
            let found = place.get("apis.kcp.io/v1alpha2/apiexports", "example.io").ok()?;
            found["status"]["identityHash"].is_string().then_some(found)
        })
        .await
    }

    /// Binds to `example.io` of a provider and waits until the binding is ready.
    pub async fn bind(&self, consumer: &str, provider: &str, claims: Value) -> Value {
        let place = self.at(consumer);
        place
            .create(json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "example"},
                "spec": {"reference": {"export": {"path": provider, "name": "example.io"}}, "permissionClaims": claims}}))
            .unwrap();
        self.condition(consumer, "example", "Ready", "True").await
    }

    /// Waits for a condition of a binding.
    pub async fn condition(&self, cluster: &str, binding: &str, kind: &str, status: &str) -> Value {
        let place = self.at(cluster);
        self.until(&format!("{binding} has {kind}={status}"), || {
            let found = place.get("apis.kcp.io/v1alpha2/apibindings", binding).ok()?;
            (condition(&found, kind)["status"] == status).then_some(found)
        })
        .await
    }

    /// Waits for the URL of an export's own slice.
    pub async fn endpoint(&self, provider: &str) -> String {
        let place = self.at(provider);
        self.until("the slice has an endpoint", || {
            let slice = place.get("apis.kcp.io/v1alpha1/apiexportendpointslices", "example.io").ok()?;
            slice["status"]["endpoints"][0]["url"].as_str().map(str::to_owned)
        })
        .await
    }
}

impl ClientView {
    pub fn resources(&self) -> Catalog {
        match &self.door {
            Door::Cluster(cluster) => self.api.resources(cluster),
            Door::View(view) => view.resources.clone(),
        }
    }

    fn scope(&self, verb: &str, what: &str, namespace: &str, name: &str) -> Result<Scope, Status> {
        let (kind, subresource) = match what.split_once(':') {
            Some((kind, subresource)) => (kind, subresource),
            None => (what, ""),
        };
        let parts: Vec<&str> = kind.split('/').collect();
        let (group, version, plural) = match parts[..] {
            [version, plural] => ("", version, plural),
            [group, version, plural] => (group, version, plural),
            _ => panic!("not a resource: {what}"),
        };
        let attributes = Attributes {
            verb: verb.into(),
            group: group.into(),
            version: version.into(),
            resource: plural.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        };
        match &self.door {
            Door::Cluster(cluster) => {
                let decision = self.api.decide(&self.caller, cluster, &attributes);
                if !decision.is_allowed() {
                    let why = format!(": {}", decision.reason);
                    return Err(crate::auth::rbac::refusal(&self.caller, &attributes, &why));
                }
            }
            Door::View(view) => (view.authorize)(&self.caller, &attributes)?,
        }
        let resources = self.resources();
        let fits = |r: &&Arc<Resource>| *r.group == *group && *r.plural == *plural && r.version(version).is_some();
        let resource = resources.iter().find(fits).cloned().ok_or_else(Status::page_not_found)?;
        let mut scope = Scope::new("", resource, version).in_namespace(namespace);
        match &self.door {
            Door::Cluster(cluster) => scope.target = Target::One(cluster.clone()),
            Door::View(view) => {
                scope.target = view.target.clone();
                scope.visible = Some(view.visible.clone());
                scope.admit.clone_from(&view.admit);
            }
        }
        Ok(scope)
    }

    pub fn create(&self, object: Value) -> Result<Value, Status> {
        self.create_with(object, &WriteOptions::default())
    }

    pub fn create_with(&self, object: Value, options: &WriteOptions) -> Result<Value, Status> {
        let resources = self.resources();
        let (group, version) = group_version(&object);
        let kind = object["kind"].as_str().unwrap();
        let found = resources.iter().find(|r| *r.group == *group && *r.kind == *kind);
        let found = found.ok_or_else(Status::page_not_found)?;
        let what = if group.is_empty() {
            format!("{version}/{}", found.plural)
        } else {
            format!("{group}/{version}/{}", found.plural)
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let scope = self.scope("create", &what, namespace, "")?;
        self.api.create(&self.caller, &scope, object.clone(), options).map(|written| written.object)
    }

    pub fn get(&self, what: &str, name: &str) -> Result<Value, Status> {
        self.get_in(what, "", name)
    }

    pub fn get_in(&self, what: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let scope = self.scope("get", what, namespace, name)?;
        self.api.get(&scope, name)
    }

    pub fn list(&self, what: &str) -> Result<Vec<Value>, Status> {
        self.selected(what, "")
    }

    /// The objects whose fields fit.
    pub fn selected(&self, what: &str, fields: &str) -> Result<Vec<Value>, Status> {
        let scope = self.scope("list", what, "", "")?;
        let fields = FieldSelector::parse(fields, &scope.resource, &scope.version)?;
        let options = ListOptions { fields, ..ListOptions::default() };
        self.api.list(&scope, &options).map(|listed| self.api.items(&scope, &listed).collect())
    }

    /// Names of all objects, as `cluster/namespace/name`.
    pub fn names(&self, what: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = |o: &Value| {
            let m = &o["metadata"];
            format!("{}/{}/{}", text(&m["annotations"]["kcp.io/cluster"]), text(&m["namespace"]), text(&m["name"]))
        };
        self.list(what).unwrap().iter().map(name).collect()
    }

    pub fn merge(&self, what: &str, namespace: &str, name: &str, patch: Value) -> Result<Value, Status> {
        let scope = self.scope("patch", what, namespace, name)?;
        let subresource = what.split_once(':').map_or("", |(_, subresource)| subresource);
        let options = WriteOptions::default();
        self.api.patch(&self.caller, &scope, name, subresource, &Patch::Merge(patch), &options).map(|w| w.object)
    }

    pub fn delete(&self, what: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let scope = self.scope("delete", what, namespace, name)?;
        self.api.delete(&self.caller, &scope, name, &DeleteOptions::default()).map(|written| written.object)
    }

    pub fn watch(&self, what: &str) -> Events {
        let scope = self.scope("watch", what, "", "").unwrap();
        Events(self.api.watch(scope, WatchOptions::default()).unwrap().boxed())
    }
}

/// Events of a watch.
pub struct Events(BoxStream<'static, Event>);

impl Events {
    /// Reads on until an event of this kind about this object arrives.
    pub async fn expect(&mut self, word: &str, cluster: &str, name: &str) -> Value {
        let wait = async {
            while let Some(event) = self.0.next().await {
                let metadata = &event.object["metadata"];
                let fits = metadata["name"] == name && metadata["annotations"]["kcp.io/cluster"] == cluster;
                if event.kind.word() == word && fits {
                    return event.object;
                }
            }
            panic!("the watch ended before {word} {cluster} {name}");
        };
        let result = tokio::time::timeout(Duration::from_mins(1), wait).await;
        result.unwrap_or_else(|_| panic!("no {word} of {name} in {cluster}"))
    }

    pub fn into_inner(self) -> impl Stream<Item = Event> {
        self.0
    }
}

pub fn caller(user: &str) -> Caller {
    let mut groups = vec!["system:authenticated".to_owned()];
    if user == ADMIN {
        groups.push("system:kcp:admin".to_owned());
    }
    Caller { user: user.to_owned(), groups, ..Caller::default() }
}

fn group_version(object: &Value) -> (String, String) {
    let text = object["apiVersion"].as_str().unwrap();
    text.split_once('/').map_or((String::new(), text.into()), |(group, version)| (group.into(), version.into()))
}

/// A condition by type; null if there is none.
pub fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|c| c["type"] == kind).cloned().unwrap_or_default()
}

/// An APIResourceSchema of widgets with one integer field.
pub fn schema(prefix: &str, field: &str) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
        "metadata": {"name": format!("{prefix}.widgets.example.io")},
        "spec": {"group": "example.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {
                "type": "object", "properties": {
                    "spec": {"type": "object", "properties": {field: {"type": "integer", "default": 1}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}]}})
}

pub fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

pub const WIDGETS: &str = "example.io/v1/widgets";
pub const BINDINGS: &str = "apis.kcp.io/v1alpha2/apibindings";
pub const WORKSPACES: &str = "tenancy.kcp.io/v1alpha1/workspaces";
