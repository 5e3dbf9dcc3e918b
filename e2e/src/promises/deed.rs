//! What users and operators do, as data.

use anyhow::{Context, ensure};
use carrick_client::{DeleteOptions, Resource};
use serde_json::{Value, json};

use super::lab::Lab;
use crate::kinds;
use crate::stage::{NAMESPACE, Workspace, place};

/// One of the two consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Team {
    /// `team-a`.
    A,
    /// `team-b`.
    B,
}

impl Team {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Its workspace.
    pub fn of(self, lab: &Lab) -> &Workspace {
        match self {
            Self::A => &lab.stage.team_a,
            Self::B => &lab.stage.team_b,
        }
    }
}

/// Where an object beside an order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// In the consumer's namespace.
    Order(Team),
    /// In the namespace of the copy, which is called after the consumer's cluster.
    Copy(Team),
}

/// One thing that somebody does.
#[derive(Debug, Clone)]
pub enum Deed {
    /// A consumer orders something.
    Order(Team, &'static str, Value),
    /// A consumer changes an order, by a merge patch.
    Change(Team, &'static str, Value),
    /// A consumer cancels an order.
    Cancel(Team, &'static str),
    /// The operator writes the status of the copy.
    Report(Team, &'static str, Value),
    /// The operator changes the copy, by a merge patch.
    Touch(Team, &'static str, Value),
    /// Somebody creates an object beside an order, or patches it if it exists.
    Put(Beside, &'static str, &'static str, Value),
    /// Somebody writes the status of an object beside an order.
    PutStatus(Beside, &'static str, &'static str, Value),
    /// Somebody deletes an object beside an order.
    Remove(Beside, &'static str, &'static str),
}

impl Deed {
    /// Does it.
    pub async fn act(&self, lab: &Lab) -> anyhow::Result<()> {
        match self {
            Self::Order(team, name, content) => lab.create_source(team.of(lab), name, content).await,
            Self::Change(team, name, patch) => {
                let client = &team.of(lab).client;
                client.merge_patch(&lab.source_kind(), lab.source_namespace(), name, patch).await?;
                Ok(())
            }
            Self::Cancel(team, name) => lab.delete_source(team.of(lab), name).await,
            Self::Report(team, name, status) => {
                let copy = lab.copy(team.of(lab), name).await?;
                let (namespace, name) = place(&copy);
                let patch = json!({ "status": status });
                let namespace = (!namespace.is_empty()).then_some(namespace);
                lab.stage.service.merge_patch_status(&lab.copy_kind(), namespace, name, &patch).await?;
                Ok(())
            }
            Self::Touch(team, name, patch) => {
                let copy = lab.copy(team.of(lab), name).await?;
                lab.patch_copy(&copy, patch).await
            }
            Self::Put(beside, plural, name, content) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                let mut object = content.clone();
                object["apiVersion"] = json!(kind.api_version());
                object["kind"] = json!(&*kind.kind);
                object["metadata"]["name"] = json!(name);
                match client.create(&kind, Some(&namespace), &object).await {
                    Err(error) if error.is_already_exists() => {
                        client.merge_patch(&kind, Some(&namespace), name, content).await?;
                    }
                    created => drop(created?),
                }
                Ok(())
            }
            Self::PutStatus(beside, plural, name, status) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                let patch = json!({ "status": status });
                client.merge_patch_status(&kind, Some(&namespace), name, &patch).await?;
                Ok(())
            }
            Self::Remove(beside, plural, name) => {
                let (client, namespace, kind) = lab.beside(*beside, plural);
                client.delete(&kind, Some(&namespace), name, &DeleteOptions::default()).await?;
                Ok(())
            }
        }
    }

    /// The order that a deed needs a copy of before it can be done.
    pub fn needs_copy(&self) -> Option<(Team, &'static str)> {
        match self {
            Self::Report(team, name, _) | Self::Touch(team, name, _) => Some((*team, name)),
            _ => None,
        }
    }
}

/// What somebody does while the agent is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meddling {
    /// The consumer sets the spec back to what it was before the last step.
    RevertsSpec,
    /// The consumer deletes the source.
    DeletesSource,
    /// The consumer makes the source go at once and creates another one of the same name.
    RecreatesSource,
    /// The operator changes a field of the copy that the source does not have.
    EditsCopy,
    /// The operator deletes the copy.
    DeletesCopy,
    /// Somebody deletes what the agent remembers.
    DeletesState,
}

impl Meddling {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::RevertsSpec,
        Self::DeletesSource,
        Self::RecreatesSource,
        Self::EditsCopy,
        Self::DeletesCopy,
        Self::DeletesState,
    ];

    /// What somebody does, as part of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::RevertsSpec => "reverts_the_spec",
            Self::DeletesSource => "deletes_the_source",
            Self::RecreatesSource => "recreates_the_source",
            Self::EditsCopy => "edits_the_copy",
            Self::DeletesCopy => "deletes_the_copy",
            Self::DeletesState => "deletes_the_state",
        }
    }

    /// Meddles with team A's order. False if there is nothing to meddle with.
    pub async fn act(self, lab: &Lab, name: &str, before: &Value) -> anyhow::Result<bool> {
        let team = &lab.stage.team_a;
        let (kind, namespace) = (lab.source_kind(), lab.source_namespace());
        let Some(source) = team.client.get(&kind, namespace, name).await? else { return Ok(false) };
        match self {
            Self::RevertsSpec => {
                if before.is_null() || source["spec"] == before["spec"] {
                    return Ok(false);
                }
                let patch = json!({ "spec": null });
                team.client.merge_patch(&kind, namespace, name, &patch).await?;
                let patch = json!({ "spec": before["spec"] });
                team.client.merge_patch(&kind, namespace, name, &patch).await?;
            }
            Self::DeletesSource => lab.delete_source(team, name).await?,
            Self::RecreatesSource => {
                lab.delete_source(team, name).await?;
                let free = json!({ "metadata": { "finalizers": null } });
                match team.client.merge_patch(&kind, namespace, name, &free).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
                let labels = &source["metadata"]["labels"];
                let content = json!({ "metadata": { "labels": labels }, "spec": { "region": "new", "size": 50 } });
                lab.create_source(team, name, &content).await?;
            }
            Self::EditsCopy | Self::DeletesCopy => {
                let Some(copy) = lab.stage.copy_of_kind(&lab.copy_kind(), team, name).await? else { return Ok(false) };
                if self == Self::EditsCopy {
                    lab.patch_copy(&copy, &json!({ "spec": { "owner": "operator" } })).await?;
                } else {
                    let (namespace, name) = place(&copy);
                    let namespace = (!namespace.is_empty()).then_some(namespace);
                    lab.stage.service.delete(&lab.copy_kind(), namespace, name, &DeleteOptions::default()).await?;
                }
            }
            Self::DeletesState => {
                let Some(secret) = lab.stage.remembered_of(team, name).await? else { return Ok(false) };
                let (namespace, name) = place(&secret);
                lab.stage.service.delete(&kinds::secrets(), Some(namespace), name, &DeleteOptions::default()).await?;
            }
        }
        Ok(true)
    }
}

impl Lab {
    /// The kind of the sources, as consumers know it.
    pub fn source_kind(&self) -> Resource {
        (self.flow.source)(&self.stage)
    }

    /// The kind of the copies.
    pub fn copy_kind(&self) -> Resource {
        (self.flow.copy)(&self.stage)
    }

    /// Namespace of the sources, if they have one.
    pub fn source_namespace(&self) -> Option<&'static str> {
        self.source_kind().namespaced.then_some(NAMESPACE)
    }

    /// Creates a source, as soon as its kind can be created.
    pub async fn create_source(&self, team: &Workspace, name: &str, content: &Value) -> anyhow::Result<()> {
        let kind = self.source_kind();
        let mut object = content.clone();
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(&*kind.kind);
        object["metadata"]["name"] = json!(name);
        self.stage
            .eventually(&format!("{name} can be created in {}", team.path), async || {
                match team.client.create(&kind, self.source_namespace(), &object).await {
                    Err(error) if !error.is_already_exists() => Err(error.into()),
                    _ => Ok(()),
                }
            })
            .await
    }

    /// Deletes a source.
    pub async fn delete_source(&self, team: &Workspace, name: &str) -> anyhow::Result<()> {
        let kind = self.source_kind();
        Ok(team.client.delete(&kind, self.source_namespace(), name, &DeleteOptions::default()).await?)
    }

    /// The copy of a source, which must be there.
    pub async fn copy(&self, team: &Workspace, name: &str) -> anyhow::Result<Value> {
        let copy = self.stage.copy_of_kind(&self.copy_kind(), team, name).await?;
        copy.with_context(|| format!("there is no copy of {name} of {}", team.path))
    }

    async fn patch_copy(&self, copy: &Value, patch: &Value) -> anyhow::Result<()> {
        let (namespace, name) = place(copy);
        ensure!(!name.is_empty(), "a copy without a name: {copy}");
        let namespace = (!namespace.is_empty()).then_some(namespace);
        self.stage.service.merge_patch(&self.copy_kind(), namespace, name, patch).await?;
        Ok(())
    }

    fn beside(&self, beside: Beside, plural: &str) -> (carrick_client::Client, String, Resource) {
        let kind = match plural {
            "secrets" => kinds::secrets(),
            "configmaps" => kinds::config_maps(),
            other => {
                let singular = other.trim_end_matches('s');
                let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
                Resource::namespaced(&self.stage.group, "v1", &kind, other)
            }
        };
        match beside {
            Beside::Order(team) => (team.of(self).client.clone(), NAMESPACE.to_owned(), kind),
            Beside::Copy(team) => (self.stage.service.clone(), team.of(self).cluster.clone(), kind),
        }
    }
}
