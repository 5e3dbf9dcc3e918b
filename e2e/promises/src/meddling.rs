//! What goes on behind the back of an agent that is dead.

use carrick_client::DeleteOptions;
use carrick_e2e_stage::kinds;
use carrick_e2e_stage::stage::{condition, place};
use carrick_syncagent::api;
use serde_json::{Value, json};

use super::lab::{LONG_CALM, Lab};

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
    /// Somebody deletes the namespace of the copy, with all that is in it.
    DeletesNamespace,
}

impl Meddling {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RevertsSpec,
        Self::DeletesSource,
        Self::RecreatesSource,
        Self::EditsCopy,
        Self::DeletesCopy,
        Self::DeletesState,
        Self::DeletesNamespace,
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
            Self::DeletesNamespace => "deletes_the_namespace",
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
            Self::DeletesNamespace => {
                let Some(copy) = lab.stage.copy_of_kind(&lab.copy_kind(), team, name).await? else { return Ok(false) };
                lab.delete_namespace(place(&copy).0).await?;
            }
        }
        Ok(true)
    }

    /// Does what people have to do when they have meddled.
    pub async fn undo(self, lab: &mut Lab) -> anyhow::Result<()> {
        match self {
            Self::DeletesNamespace => return lab.settle().await,
            Self::RecreatesSource => {}
            _ => return Ok(()),
        }
        // The copy of the old source is theirs: they delete it, and the new source gets one of its own.
        let team = lab.stage.team_a.clone();
        let Some(source) = team.client.get(&lab.source_kind(), lab.source_namespace(), "one").await? else {
            return Ok(());
        };
        let Some(copy) = lab.stage.copy_of_kind(&lab.copy_kind(), &team, "one").await? else { return Ok(()) };
        if copy["metadata"]["annotations"][api::REMOTE_UID] == source["metadata"]["uid"] {
            return Ok(());
        }
        let (namespace, name) = place(&copy);
        let namespace = (!namespace.is_empty()).then_some(namespace);
        lab.stage.service.delete(&lab.copy_kind(), namespace, name, &DeleteOptions::default()).await?;
        let wanted = source["spec"].clone();
        let published = format!("service publishedresources /{}", lab.eyes.alias(&lab.stage.published_name("Bucket")));
        lab.until("the new source has a copy of its own", None, |state| {
            state.copy("team-a", "one")["spec"] == wanted
                && condition(state.at(&published), "ObjectsSynced")["status"] != "False"
        })
        .await?;
        lab.rest_for(LONG_CALM).await?;
        Ok(())
    }
}
