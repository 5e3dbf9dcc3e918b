//! One turn of one order.

use anyhow::{Context, ensure};
use carrick_client::{Client, DeleteOptions, ListOptions, Resource};
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::place;
use serde_json::{Value, json};

use super::names::{FINALIZERS, GROUP, down, hash, moved, takes, updated};
use super::staging::Staging;
use super::{Broker, Place, cluster_of};

/// What is decided about an order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignment {
    /// Who should serve it.
    wanted: Option<Place>,
    /// Who serves it.
    pub(crate) serving: Option<Place>,
    /// Set while it is being moved to who should.
    pub(crate) moving: Option<Migration>,
    /// Whose copy is on its way out.
    pub(crate) leaving: Option<Place>,
}

/// How far a move is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Migration {
    /// Whether the stage is over.
    staged: bool,
}

/// When an order has its next turn.
pub(super) enum Next {
    /// After the interval.
    Poll,
    /// Never: it is gone.
    Gone,
}

/// AcceptAPI.
fn accept_apis() -> Resource {
    Resource::cluster_wide(GROUP, "v1alpha1", "AcceptAPI", "acceptapis")
}

pub(super) struct Turn<'a> {
    pub(super) broker: &'a Broker,
    pub(super) order: &'a Value,
    pub(super) key: &'a str,
    pub(super) assignment: Assignment,
}

impl Turn<'_> {
    pub(super) async fn take(&mut self) -> anyhow::Result<Next> {
        let consumer = self.broker.consumers(cluster_of(self.order))?;
        let (namespace, name) = place(self.order);
        // The list may be older than the last turn.
        let Some(order) = consumer.get(&self.broker.setup.kind, Some(namespace), name).await? else {
            return Ok(Next::Gone);
        };
        let finalizers = order["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let is_held = FINALIZERS.iter().all(|name| finalizers.iter().any(|it| it == name));
        if order["metadata"]["deletionTimestamp"].is_string() {
            return if is_held { self.end(&consumer, &order, &finalizers).await } else { Ok(Next::Gone) };
        }
        if !is_held {
            let all: Vec<Value> = finalizers.into_iter().chain(FINALIZERS.iter().map(|name| json!(name))).collect();
            self.hold(&consumer, &order, &all).await?;
            return Ok(Next::Poll);
        }
        let Some(wanted) = self.assignment.wanted.clone() else {
            self.assignment.wanted = self.choose(&order, None).await?;
            return Ok(Next::Poll);
        };
        if !self.is_staged(&wanted).await? {
            return Ok(Next::Poll);
        }
        let serving = self.assignment.serving.get_or_insert(wanted.clone()).clone();
        if let Some(moving) = self.assignment.moving.clone() {
            self.copy_down(&wanted, &order).await?;
            self.bring_related(&serving, &consumer).await?;
            return self.migrate(moving, (&serving, &wanted), &order).await;
        }
        if self.assignment.leaving.is_none()
            && self.is_over(&serving, &order).await?
            && let Some(other) = self.choose(&order, Some(&serving)).await?
        {
            self.assignment.wanted = Some(other);
            self.assignment.moving = Some(Migration::default());
            return Ok(Next::Poll);
        }
        self.copy_down(&serving, &order).await?;
        self.bring_status(&serving, &consumer, &order).await?;
        self.bring_related(&serving, &consumer).await?;
        self.leave().await?;
        Ok(Next::Poll)
    }

    /// The copy of the old provider goes, and then the reference to its workspace.
    async fn leave(&mut self) -> anyhow::Result<()> {
        let Some(old) = self.assignment.leaving.clone() else { return Ok(()) };
        if self.delete_copy(&old).await? {
            self.broker.staging.release(&old, self.key).await?;
            self.assignment.leaving = None;
        }
        Ok(())
    }

    async fn hold(&self, consumer: &Client, order: &Value, finalizers: &[Value]) -> anyhow::Result<()> {
        let (namespace, name) = place(order);
        let metadata = json!({ "finalizers": finalizers, "resourceVersion": order["metadata"]["resourceVersion"] });
        let patch = json!({ "metadata": metadata });
        consumer.merge_patch(&self.broker.setup.kind, Some(namespace), name, &patch).await?;
        Ok(())
    }

    /// The first of those that take it, beginning with one that depends on the order; the real broker throws dice.
    async fn choose(&self, order: &Value, but: Option<&Place>) -> anyhow::Result<Option<Place>> {
        let slice_and_cluster = format!("{}#{}", super::super::platform::EXPORT, cluster_of(order));
        let providers = &self.broker.setup.providers;
        let (namespace, name) = place(order);
        let first = usize::from_str_radix(&hash(&[namespace, name])[..4], 16)?;
        for index in (0..providers.len()).map(|index| (first + index) % providers.len()) {
            let provider = &providers[index];
            let resource = &self.broker.setup.kind;
            for accept in provider.client.list(&accept_apis(), None, &ListOptions::default()).await? {
                let gvr = &accept["spec"]["gvr"];
                let is_for = gvr["group"] == *resource.group
                    && gvr["version"] == *resource.version
                    && gvr["resource"] == *resource.plural;
                let is_export = accept["spec"]["apiExportName"] == provider.export.as_str();
                let name = accept["metadata"]["name"].as_str().unwrap_or_default();
                let is_other = but.is_none_or(|but| but.provider != index || but.accept != name);
                if is_for && is_export && is_other && takes(&accept, order) {
                    let staging = Staging::name(&slice_and_cluster, provider);
                    return Ok(Some(Place { provider: index, accept: name.to_owned(), staging }));
                }
            }
        }
        Ok(None)
    }

    /// Whether the serving AcceptAPI is gone or does not take the order any more.
    async fn is_over(&self, serving: &Place, order: &Value) -> anyhow::Result<bool> {
        let provider = &self.broker.setup.providers[serving.provider];
        let accept = provider.client.get(&accept_apis(), None, &serving.accept).await?;
        Ok(accept.is_none_or(|accept| !takes(&accept, order)))
    }

    async fn is_staged(&self, place: &Place) -> anyhow::Result<bool> {
        self.broker.staging.ensure(place, &self.broker.setup.providers[place.provider], self.key).await
    }

    async fn copy_of(&self, at: &Place) -> anyhow::Result<Option<Value>> {
        let (namespace, name) = place(self.order);
        Ok(self.broker.staging.client(at).get(&self.broker.setup.kind, Some(namespace), name).await?)
    }

    /// The spec goes down; annotations follow in a second write.
    async fn copy_down(&self, at: &Place, order: &Value) -> anyhow::Result<()> {
        let (client, kind) = (self.broker.staging.client(at), &self.broker.setup.kind);
        let (namespace, name) = place(order);
        let wanted = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        match client.create(&kinds::namespaces(), None, &wanted).await {
            Err(error) if !error.is_already_exists() => return Err(error.into()),
            _ => {}
        }
        let copy = match self.copy_of(at).await? {
            None => client.create(kind, Some(namespace), &down(order)).await?,
            Some(copy) => match updated(&copy, order) {
                Some(changed) => client.replace(kind, Some(namespace), &changed).await?,
                None => copy,
            },
        };
        let consumer = format!("{}#{}", super::super::platform::EXPORT, cluster_of(order));
        let annotation = |key: &str| format!("{GROUP}/{key}");
        if copy["metadata"]["annotations"][annotation("consumer-cluster")] != consumer.as_str() {
            let annotations = json!({ annotation("consumer-cluster"): consumer, annotation("consumer-name"): name });
            let patch = json!({ "metadata": { "annotations": annotations } });
            client.merge_patch(kind, Some(namespace), name, &patch).await?;
        }
        Ok(())
    }

    /// The status of the copy replaces that of the order.
    async fn bring_status(&self, at: &Place, consumer: &Client, order: &Value) -> anyhow::Result<()> {
        let copy = self.copy_of(at).await?;
        let Some(status) = copy.as_ref().and_then(|copy| copy.get("status")) else { return Ok(()) };
        if order.get("status") == Some(status) {
            return Ok(());
        }
        let mut wanted = order.clone();
        wanted["status"] = status.clone();
        consumer.replace_status(&self.broker.setup.kind, Some(place(order).0), &wanted).await?;
        Ok(())
    }

    /// Objects that the status of the copy names are copied under the same name; one that is missing is an error.
    async fn bring_related(&self, at: &Place, consumer: &Client) -> anyhow::Result<()> {
        let Some(copy) = self.copy_of(at).await? else { return Ok(()) };
        for (key, resource, namespace, name) in related(&copy) {
            let found = self.broker.staging.client(at).get(&resource, Some(&namespace), &name).await?;
            let found = found
                .with_context(|| format!("copying related resource {key:?}: get {namespace}/{name}: not found"))?;
            write(consumer, &resource, &namespace, &moved(&found, &name)).await?;
        }
        Ok(())
    }

    /// Goes on with a move: a stage, then the cutover once the new copy is available.
    async fn migrate(
        &mut self,
        moving: Migration,
        (from, to): (&Place, &Place),
        order: &Value,
    ) -> anyhow::Result<Next> {
        let (Some(old), Some(new)) = (self.copy_of(from).await?, self.copy_of(to).await?) else {
            return Ok(Next::Poll);
        };
        let stage = self.broker.setup.migration;
        if let Some(stage) = stage.filter(|_| !moving.staged) {
            let compute = &self.broker.setup.compute.client;
            for (copy, at, prefix) in [(&old, from, "from"), (&new, to, "to")] {
                for (_, resource, namespace, name) in related(copy) {
                    let Some(found) = self.broker.staging.client(at).get(&resource, Some(&namespace), &name).await?
                    else {
                        continue;
                    };
                    write(compute, &resource, &namespace, &moved(&found, &format!("{prefix}-{name}"))).await?;
                }
            }
            if !(stage.precondition)(&old, &new) {
                return Ok(Next::Poll);
            }
            let (namespace, name) = place(order);
            let resource = (stage.resource)();
            let parts = [cluster_of(order), &resource.group, namespace, name];
            let staged = format!("migration-{}-stage", hash(&parts));
            let Some(found) = compute.get(&resource, Some("default"), &staged).await? else {
                let mut object = (stage.template)(&old, &new);
                object["metadata"] = json!({ "name": staged, "namespace": "default" });
                compute.create(&resource, Some("default"), &object).await?;
                return Ok(Next::Poll);
            };
            if !(stage.success)(&found) {
                return Ok(Next::Poll);
            }
            compute.delete(&resource, Some("default"), &staged, &DeleteOptions::default()).await?;
        }
        self.assignment.moving = Some(Migration { staged: true });
        if new["status"]["status"] == "Available" {
            self.assignment.leaving = Some(from.clone());
            self.assignment.serving = Some(to.clone());
            self.assignment.moving = None;
        }
        Ok(Next::Poll)
    }

    /// Deletes a copy; true once it is gone.
    async fn delete_copy(&self, at: &Place) -> anyhow::Result<bool> {
        let Some(copy) = self.copy_of(at).await? else { return Ok(true) };
        let (namespace, name) = place(&copy);
        if copy["metadata"]["deletionTimestamp"].is_null() {
            let client = self.broker.staging.client(at);
            let options = DeleteOptions::default();
            client.delete(&self.broker.setup.kind, Some(namespace), name, &options).await?;
        }
        Ok(false)
    }

    /// The consumer's related objects go, then the copy, then the order.
    async fn end(&mut self, consumer: &Client, order: &Value, finalizers: &[Value]) -> anyhow::Result<Next> {
        if let Some(at) = self.assignment.serving.clone() {
            if let Some(copy) = self.copy_of(&at).await? {
                for (_, resource, namespace, name) in related(&copy) {
                    match consumer.delete(&resource, Some(&namespace), &name, &DeleteOptions::default()).await {
                        Err(error) if !error.is_not_found() => return Err(error.into()),
                        _ => {}
                    }
                }
            }
            if !self.delete_copy(&at).await? {
                return Ok(Next::Poll);
            }
        }
        let places = [&self.assignment.wanted, &self.assignment.serving, &self.assignment.leaving];
        for at in places.into_iter().flatten() {
            self.broker.staging.release(at, self.key).await?;
        }
        let left: Vec<Value> =
            finalizers.iter().filter(|it| !FINALIZERS.iter().any(|name| *it == name)).cloned().collect();
        self.hold(consumer, order, &left).await?;
        Ok(Next::Gone)
    }
}

/// What a status names: key, resource, namespace and name.
fn related(copy: &Value) -> Vec<(String, Resource, String, String)> {
    let entries = copy["status"]["relatedResources"].as_object();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |(key, entry): (&String, &Value)| {
        let gvk = &entry["gvk"];
        let group = text(&gvk["group"]);
        let kind = text(&gvk["kind"]);
        let group = if group == "core" { "" } else { &group };
        let resource = Resource::namespaced(group, &text(&gvk["version"]), &kind, &format!("{}s", kind.to_lowercase()));
        (key.clone(), resource, text(&entry["namespace"]), text(&entry["name"]))
    };
    entries.into_iter().flatten().map(read).collect()
}

/// Creates an object, or makes it what it should be.
async fn write(client: &Client, resource: &Resource, namespace: &str, wanted: &Value) -> anyhow::Result<()> {
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    ensure!(!name.is_empty(), "an object without a name: {wanted}");
    match client.get(resource, Some(namespace), name).await? {
        None => client.create(resource, Some(namespace), wanted).await.map(drop)?,
        Some(now) => {
            if let Some(changed) = updated(&now, wanted) {
                client.replace(resource, Some(namespace), &changed).await?;
            }
        }
    }
    Ok(())
}
