//! Carries databases from every consumer workspace to one service cluster, and their status back.
//!
//! ```text
//!   workspace 2hrq…:  MongoDBCommunity mongodb/example ──▶ service cluster: 2hrq…-mongodb/example
//!                         status  ◀──────────────────────────  status, written by the operator there
//! ```

use std::sync::Arc;

use carrick_multicluster::{Action, Context, Request};
use clap::ValueEnum;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Reporter};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::api::MongoDBCommunity;

/// Label of every copy: the workspace it comes from. Also tells our copies from everything else.
pub const CLUSTER: &str = "mongodb-sync/cluster";
const UID: &str = "mongodb-sync/uid";
const NAMESPACE: &str = "mongodb-sync/namespace";
const NAME: &str = "mongodb-sync/name";
const FINALIZER: &str = "mongodb-sync.example/copy";
const MANAGER: &str = "mongodb-sync";

/// Where copies are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Placement {
    /// In a namespace named after the workspace and the consumer's namespace, made when needed.
    PerWorkspace,
    /// In a namespace of the consumer's namespace's name. Equal names of two workspaces collide: the later one is refused.
    Same,
}

/// How copies are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cleanup {
    /// A finalizer keeps the consumer's object until its copy is gone, whatever happens meanwhile.
    Finalizer,
    /// When the consumer's object is seen to be gone. Nothing is written to it; deletions while nobody watches leave the copy.
    Watch,
}

/// What every reconcile needs.
pub struct Settings {
    /// The service cluster.
    pub target: Client,
    /// Where copies are put.
    pub placement: Placement,
    /// How copies are removed.
    pub cleanup: Cleanup,
}

/// Why a database could not be carried.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// One of the two servers refused.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// The place of the copy is taken.
    #[error(
        "{place} on the service cluster belongs to {owner}; delete one of the two, or use --placement per-workspace"
    )]
    Taken {
        /// Namespace and name on the service cluster.
        place: String,
        /// Whose it is.
        owner: String,
    },
}

/// Reconciles one database, on whichever side the change was seen.
pub async fn sync(
    request: Request<MongoDBCommunity>,
    up: Option<Arc<MongoDBCommunity>>,
    context: Context<Settings>,
) -> Result<Action, SyncError> {
    let settings = &context.data;
    let (namespace, name) = place(&request, settings.placement);
    let copies = Api::<MongoDBCommunity>::namespaced(settings.target.clone(), &namespace);
    let copy = copies.get_opt(&name).await?;
    let ours = copy.as_ref().is_some_and(|copy| origin(copy).as_ref() == Some(&request));

    let Some(up) = up else {
        if ours {
            delete(&copies, &name).await?;
        }
        return Ok(Action::await_change());
    };
    let ups = Api::<MongoDBCommunity>::namespaced(context.cluster.client(), &up.namespace().unwrap_or_default());
    if up.meta().deletion_timestamp.is_some() {
        if ours {
            // The end of the copy is seen by the watch on the service cluster and leads back here.
            delete(&copies, &name).await?;
        } else {
            set_finalizer(&ups, &up, false).await?;
        }
        return Ok(Action::await_change());
    }
    if let Some(copy) = &copy {
        if !ours {
            let owner = origin(copy).map_or("somebody else".to_owned(), |origin| origin.to_string());
            return Err(SyncError::Taken { place: format!("{namespace}/{name}"), owner });
        }
        if copy.annotations().get(UID) != up.meta().uid.as_ref() {
            // The consumer deleted the database and made a new one of the same name: so do we.
            delete(&copies, &name).await?;
            return Ok(Action::await_change());
        }
    }
    if settings.cleanup == Cleanup::Finalizer {
        set_finalizer(&ups, &up, true).await?;
    }
    if copy.is_none() {
        make_namespace(&settings.target, &namespace).await?;
    }
    let wanted = wanted(&request, &up, &namespace, &name);
    let copy = copies.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(wanted)).await?;
    if copy.status.is_some() && copy.status != up.status {
        let status = json!({"status": copy.status});
        ups.patch_status(&up.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(Action::await_change())
}

/// Reports a failure to the consumer, if the workspace lets us write events.
pub async fn tell(up: &MongoDBCommunity, context: &Context<Settings>, error: &SyncError) {
    let recorder = context.cluster.recorder(&Reporter::from(MANAGER));
    let event = Event {
        type_: EventType::Warning,
        reason: "SyncFailed".into(),
        note: Some(error.to_string()),
        action: "Syncing".into(),
        secondary: None,
    };
    if let Err(error) = recorder.publish(&event, &up.object_ref(&())).await {
        tracing::debug!(%error, "no event was written");
    }
}

/// The database a copy was made for; none for objects that are not ours.
pub fn origin(copy: &MongoDBCommunity) -> Option<Request<MongoDBCommunity>> {
    let cluster = copy.labels().get(CLUSTER)?.parse().ok()?;
    let (namespace, name) = (copy.annotations().get(NAMESPACE)?, copy.annotations().get(NAME)?);
    Some(Request::new(cluster, ObjectRef::new(name).within(namespace)))
}

/// Namespace and name of the copy.
fn place(request: &Request<MongoDBCommunity>, placement: Placement) -> (String, String) {
    let namespace = request.obj.namespace.clone().unwrap_or_default();
    let namespace = match placement {
        Placement::PerWorkspace => format!("{}-{namespace}", request.cluster),
        Placement::Same => namespace,
    };
    (namespace, request.obj.name.clone())
}

/// The copy as it should be: the spec is the consumer's, the marks are ours, and nothing else is touched.
fn wanted(
    request: &Request<MongoDBCommunity>,
    up: &MongoDBCommunity,
    namespace: &str,
    name: &str,
) -> serde_json::Value {
    json!({
        "apiVersion": MongoDBCommunity::api_version(&()),
        "kind": MongoDBCommunity::kind(&()),
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {CLUSTER: request.cluster.as_str()},
            "annotations": {UID: up.meta().uid, NAMESPACE: up.namespace(), NAME: up.name_any()},
        },
        "spec": up.spec,
    })
}

async fn set_finalizer(ups: &Api<MongoDBCommunity>, up: &MongoDBCommunity, wanted: bool) -> Result<(), kube::Error> {
    let mut finalizers = up.finalizers().to_vec();
    if finalizers.iter().any(|finalizer| finalizer == FINALIZER) == wanted {
        return Ok(());
    }
    if wanted {
        finalizers.push(FINALIZER.into());
    } else {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    // The resourceVersion makes sure that nobody else's finalizer is lost; a conflict is tried again with what is there then.
    let patch = json!({"metadata": {"resourceVersion": up.resource_version(), "finalizers": finalizers}});
    match ups.patch(&up.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(status)) if !wanted && status.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

async fn make_namespace(target: &Client, name: &str) -> Result<(), kube::Error> {
    let namespace = Namespace {
        metadata: kube::core::ObjectMeta { name: Some(name.into()), ..Default::default() },
        ..Default::default()
    };
    match Api::<Namespace>::all(target.clone()).create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(|_| ()),
    }
}

async fn delete(copies: &Api<MongoDBCommunity>, name: &str) -> Result<(), kube::Error> {
    match copies.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request<MongoDBCommunity> {
        Request::new("abc".parse().expect("a name"), ObjectRef::new("db").within("shop"))
    }

    #[test]
    fn copies_lead_back_to_where_they_came_from() {
        let spec = json!({"type": "ReplicaSet", "members": 3, "users": []});
        let mut up = MongoDBCommunity::new("db", serde_json::from_value(spec).expect("a spec"));
        up.metadata.namespace = Some("shop".into());
        up.metadata.uid = Some("u".into());
        let (namespace, name) = place(&request(), Placement::PerWorkspace);
        assert_eq!((namespace.as_str(), name.as_str()), ("abc-shop", "db"));
        let copy = wanted(&request(), &up, &namespace, &name);
        assert_eq!(copy["spec"]["users"], json!([]), "fields without a type are carried too");
        let copy: MongoDBCommunity = serde_json::from_value(copy).expect("a copy");
        assert_eq!(origin(&copy), Some(request()));
    }

    #[test]
    fn objects_without_our_marks_are_nobodys_copy() {
        let spec = json!({"type": "ReplicaSet"});
        assert_eq!(origin(&MongoDBCommunity::new("db", serde_json::from_value(spec).expect("a spec"))), None);
    }
}
