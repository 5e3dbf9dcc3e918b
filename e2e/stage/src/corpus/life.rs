//! The life of a kind in kcp: published, served to a bound consumer, a sample ordered and placed, its status returned, the order changed and
//! deleted. Every stretch of it is timed.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use carrick_syncagent::api;
use serde::Serialize;
use serde_json::{Value, json};

use super::files::Text;
use super::is_refusal;
use super::kind::CustomKind;
use super::variants::{changes, content, made, own, statuses};
use crate::kinds;
use crate::stage::{NAMESPACE, Stage, condition, place, shown};

/// A label that any object may have.
const LABEL: &str = "example.com/changed";

/// How it went.
#[derive(Debug, Serialize)]
pub struct Life {
    /// Name of the CRD.
    pub crd: String,
    /// The CRD as JSON, in bytes.
    pub bytes: usize,
    /// How many versions consumers get.
    pub versions: usize,
    /// The operator's own sample that was ordered; none if one had to be made up.
    pub sample: Option<String>,
    /// From the PublishedResource until the export lists its schema.
    pub published: Duration,
    /// From there until a consumer that was bound before can list the kind.
    pub served: Duration,
    /// From the answer to the order until its copy has the same content.
    pub placed: Duration,
    /// From the answer to the operator's status until the order has it; none for kinds without a status.
    pub reported: Option<Duration>,
    /// From the answer to the change until the copy has it.
    pub changed: Duration,
    /// Whether the content was changed, and not only a label because the kind allows nothing else.
    pub content_changed: bool,
    /// From the answer to the deletion until neither order nor copy nor anything remembered is left.
    pub gone: Duration,
}

/// Plays it.
pub async fn play(stage: &Stage, crd: &Text, samples: &[Text]) -> anyhow::Result<Life> {
    let kind = CustomKind::of(&crd.value);
    let name = format!("{}.{}", kind.plural, kind.group);
    let version = kind.version().context("it has no served version")?;
    let schema = &version["schema"]["openAPIV3Schema"];
    let resource = kind.resource(version["name"].as_str().unwrap_or_default());
    stage.install_crd(&kind.crd).await?;

    let started = Instant::now();
    publish(stage, &kind, &name).await?;
    let published = started.elapsed();
    let started = Instant::now();
    let team = &stage.team_a;
    stage
        .eventually(&format!("{} can list {name}", team.path), async || {
            team.client.list(&resource, None, &carrick_client::ListOptions::default()).await.map_err(Into::into)
        })
        .await?;
    let served = started.elapsed();

    let pair = Pair { stage, resource: &resource };
    let (source, sample) = pair.order(&kind, schema, samples).await?;
    let started = Instant::now();
    let copy = pair.placed(&source).await?;
    let placed = started.elapsed();
    let reported = pair.report(&copy, version, schema).await?;
    let (changed, content_changed) = pair.change(schema, place(&source).1).await?;
    let gone = pair.delete(place(&source).1).await?;
    Ok(Life {
        crd: name,
        bytes: crd.value.to_string().len(),
        versions: kind.versions.len(),
        sample,
        published,
        served,
        placed,
        reported,
        changed,
        content_changed,
        gone,
    })
}

/// Publishes a kind as a provider who says nothing but its name, and waits until the export lists it.
pub async fn publish(stage: &Stage, kind: &CustomKind, name: &str) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": format!("{}/{}", api::GROUP, api::VERSION),
        "kind": "PublishedResource",
        "metadata": { "name": name, "labels": { "stage": stage.id } },
        "spec": { "resource": { "apiGroup": kind.group, "kind": kind.kind } },
    });
    let published = kinds::published_resources();
    stage.service.create(&published, None, &object).await?;
    let end = format!(".{name}");
    stage
        .eventually(&format!("the export lists {name}"), async || {
            let export = stage.export().await?;
            let listed = export["spec"]["latestResourceSchemas"].as_array().into_iter().flatten();
            if listed.filter_map(Value::as_str).any(|schema| schema.ends_with(&end)) {
                return Ok(());
            }
            let told = stage.service.get(&published, None, name).await?.unwrap_or_default();
            anyhow::bail!("it does not, and the PublishedResource says {}", told["status"])
        })
        .await
}

/// The two objects of an order.
struct Pair<'a> {
    stage: &'a Stage,
    resource: &'a Resource,
}

impl Pair<'_> {
    /// Orders the first sample that the consumer's API takes; where it comes from, if it is the operator's own.
    async fn order(
        &self,
        kind: &CustomKind,
        schema: &Value,
        samples: &[Text],
    ) -> anyhow::Result<(Value, Option<String>)> {
        let version = &self.resource.version;
        let mut refused = None;
        for (object, file) in own(kind, version, samples) {
            match self.create(&object).await? {
                Ok(source) => return Ok((source, Some(file.to_owned()))),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        for object in made(kind, version, schema) {
            match self.create(&object).await? {
                Ok(source) => return Ok((source, None)),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        anyhow::bail!("no sample is valid: {}", refused.unwrap_or_else(|| "there is none".to_owned()))
    }

    /// Creates an order, or tells why it is not valid. Anything else may pass: the API of a binding comes a moment after the binding says so.
    async fn create(&self, object: &Value) -> anyhow::Result<Result<Value, String>> {
        let client = &self.stage.team_a.client;
        self.stage
            .eventually("an order is answered", async || {
                match client.create(self.resource, Some(NAMESPACE), object).await {
                    Ok(source) => Ok(Ok(source)),
                    Err(error) if is_refusal(&error) => Ok(Err(error.to_string())),
                    Err(error) => Err(error.into()),
                }
            })
            .await
    }

    async fn source(&self, name: &str) -> anyhow::Result<Value> {
        let source = self.stage.team_a.client.get(self.resource, Some(NAMESPACE), name).await?;
        source.with_context(|| format!("the order {name} is gone"))
    }

    /// Waits until the copy has the content of the order.
    async fn placed(&self, source: &Value) -> anyhow::Result<Value> {
        let stage = self.stage;
        let name = place(source).1;
        stage
            .eventually("the copy is like the order", async || {
                let copy = stage.copy_of_kind(self.resource, &stage.team_a, name).await?;
                let Some(copy) = copy else {
                    anyhow::bail!("there is no copy; {}", self.told(name).await?);
                };
                let (is, wanted) = (content(&copy), content(source));
                ensure!(is == wanted, "it is {} instead of {}", Value::Object(is), Value::Object(wanted));
                Ok(copy)
            })
            .await
    }

    /// What agents tell consumers about an order.
    async fn told(&self, name: &str) -> anyhow::Result<String> {
        let all = carrick_client::ListOptions::default();
        let events = self.stage.team_a.client.list(&kinds::events(), None, &all).await?;
        let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        let told: Vec<String> = about.map(|event| event["message"].to_string()).collect();
        Ok(format!("the order's events: {told:?}"))
    }

    /// Plays the operator: reports a status, and waits until the order has it.
    async fn report(&self, copy: &Value, version: &Value, schema: &Value) -> anyhow::Result<Option<Duration>> {
        let (namespace, name) = place(copy);
        let service = &self.stage.service;
        let subresource = version["subresources"]["status"].is_object();
        let mut refused = None;
        for status in statuses(schema) {
            let patch = json!({ "status": status });
            let written = if subresource {
                service.merge_patch_status(self.resource, Some(namespace), name, &patch).await
            } else {
                service.merge_patch(self.resource, Some(namespace), name, &patch).await
            };
            let status = match written {
                Ok(mut written) => written["status"].take(),
                Err(error) if is_refusal(&error) => {
                    refused = refused.or(Some(error.to_string()));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            // The server may have dropped all of it.
            if status.as_object().is_none_or(serde_json::Map::is_empty) {
                continue;
            }
            let started = Instant::now();
            let order = copy["metadata"]["annotations"][api::REMOTE_NAME].as_str().unwrap_or_default();
            let at = (&self.stage.team_a.client, self.resource, Some(NAMESPACE), order);
            let what = format!("the order has the status {status}");
            self.stage.object(&what, at, |source| source["status"] == status).await?;
            return Ok(Some(started.elapsed()));
        }
        ensure!(refused.is_none(), "no status is valid: {}", refused.unwrap_or_default());
        Ok(None)
    }

    /// Changes what can be changed of an order, and waits until the copy has it. Says whether it was the content.
    async fn change(&self, schema: &Value, name: &str) -> anyhow::Result<(Duration, bool)> {
        let client = &self.stage.team_a.client;
        let before = self.source(name).await?;
        for wanted in changes(&before, schema) {
            let Some(changed) = self.replace(name, &wanted).await? else { continue };
            if content(&changed) != content(&before) {
                let started = Instant::now();
                self.placed(&changed).await?;
                return Ok((started.elapsed(), true));
            }
        }
        let patch = json!({ "metadata": { "labels": { LABEL: "yes" } } });
        client.merge_patch(self.resource, Some(NAMESPACE), name, &patch).await?;
        let started = Instant::now();
        let about = (self.resource, &self.stage.team_a, name);
        let labelled = |copy: &Value| copy["metadata"]["labels"][LABEL] == "yes";
        self.stage.copy_of_kind_is("the copy has the label", about, labelled).await?;
        Ok((started.elapsed(), false))
    }

    /// Gives an order another content; nothing if that is not valid.
    async fn replace(&self, name: &str, wanted: &Value) -> anyhow::Result<Option<Value>> {
        loop {
            let mut object = self.source(name).await?;
            for (field, value) in content(wanted) {
                object[field] = value;
            }
            match self.stage.team_a.client.replace(self.resource, Some(NAMESPACE), &object).await {
                Ok(changed) => return Ok(Some(changed)),
                // Agents write to it as well.
                Err(error) if error.is_conflict() => {}
                Err(error) if is_refusal(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Deletes the order, and waits until nothing of it is left.
    async fn delete(&self, name: &str) -> anyhow::Result<Duration> {
        let (stage, team) = (self.stage, &self.stage.team_a);
        team.client.delete(self.resource, Some(NAMESPACE), name, &DeleteOptions::default()).await?;
        let started = Instant::now();
        stage.gone("the order is gone", (&team.client, self.resource, Some(NAMESPACE), name)).await?;
        stage
            .eventually("nothing is left of the order", async || {
                let copy = stage.copy_of_kind(self.resource, team, name).await?;
                ensure!(copy.is_none(), "the copy is there: {}", shown(&copy.unwrap_or_default()));
                let state = stage.remembered_of(team, name).await?;
                ensure!(state.is_none(), "remembered: {}", shown(&state.unwrap_or_default()));
                Ok(())
            })
            .await?;
        Ok(started.elapsed())
    }
}

/// Ends all of it: the kinds are not published any more, and go from the service cluster.
pub async fn clear(stage: &Stage, lives: &[Life]) -> anyhow::Result<()> {
    let published = kinds::published_resources();
    for life in lives {
        stage.service.delete(&published, None, &life.crd, &DeleteOptions::default()).await?;
    }
    for life in lives {
        let what = format!("PublishedResource {} is gone", life.crd);
        stage.gone(&what, (&stage.service, &published, None, &life.crd)).await?;
        stage.service.delete(&kinds::crds(), None, &life.crd, &DeleteOptions::default()).await?;
    }
    Ok(())
}

/// Sees that a consumer who binds to everything at once gets every kind.
pub async fn bound_at_once(stage: &Stage, lives: &[Life]) -> anyhow::Result<()> {
    let binding = stage.bind(&stage.team_b).await?;
    ensure!(condition(&binding, "Ready")["status"] == "True", "it is {}", shown(&binding));
    let bound = binding["status"]["boundResources"].as_array().into_iter().flatten();
    let bound: Vec<String> = bound
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            format!("{}.{}", text("resource"), text("group"))
        })
        .collect();
    let missing: Vec<&str> =
        lives.iter().map(|life| life.crd.as_str()).filter(|name| !bound.iter().any(|it| it == name)).collect();
    ensure!(missing.is_empty(), "{missing:?} are not among the {} bound kinds", bound.len());
    Ok(())
}
