//! Stands in for the MongoDB community operator where nothing can run pods: makes the same children as plain API objects and
//! writes the same status, from `Pending` to `Running`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::api::{MongoDBCommunity, MongoDBCommunityStatus};

const MANAGER: &str = "mongo-sim";
const FINALIZER: &str = "mongo-sim.example/children";

/// The operator's settings.
#[derive(Clone)]
pub struct Sim {
    client: Client,
    /// How long a database takes to start.
    delay: Duration,
}

impl Sim {
    /// An operator on a service cluster.
    pub fn new(client: Client, delay: Duration) -> Self {
        Self { client, delay }
    }

    /// Runs until dropped.
    pub async fn run(self) {
        let databases = Api::<MongoDBCommunity>::all(self.client.clone());
        Controller::new(databases, watcher::Config::default())
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), Arc::new(self))
            .for_each(|result| async move {
                if let Err(error) = result {
                    tracing::warn!(%error, "mongo-sim");
                }
            })
            .await;
    }
}

/// One look at one database. A finalizer makes sure that the children go with it, where no garbage collector runs either.
async fn reconcile(database: Arc<MongoDBCommunity>, sim: Arc<Sim>) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = database.namespace().unwrap_or_default();
    let api = Api::<MongoDBCommunity>::namespaced(sim.client.clone(), &namespace);
    finalizer(&api, FINALIZER, database, |event| async {
        match event {
            Event::Apply(database) => start(&database, &api, &sim).await,
            Event::Cleanup(database) => remove_children(&database, &sim.client).await.map(|()| Action::await_change()),
        }
    })
    .await
}

async fn start(database: &MongoDBCommunity, api: &Api<MongoDBCommunity>, sim: &Sim) -> Result<Action, kube::Error> {
    make_children(database, &sim.client).await?;
    let seen = database.status.clone().unwrap_or_default();
    let next = next_status(database, &seen);
    if next == seen {
        return Ok(Action::await_change());
    }
    api.patch_status(&database.name_any(), &PatchParams::default(), &Patch::Merge(json!({"status": next}))).await?;
    Ok(if next.phase == "Pending" { Action::requeue(sim.delay) } else { Action::await_change() })
}

/// A database that is new, or wants another version, is `Pending` first; then it runs.
fn next_status(database: &MongoDBCommunity, seen: &MongoDBCommunityStatus) -> MongoDBCommunityStatus {
    let wanted = database.spec.version.clone();
    let running = MongoDBCommunityStatus {
        phase: "Running".into(),
        mongo_uri: uri(database),
        current_mongodb_members: database.spec.members,
        current_stateful_set_replicas: database.spec.members,
        version: wanted.clone(),
        message: None,
    };
    match seen.phase.as_str() {
        "Pending" => running,
        "Running" if seen.version == wanted => running,
        _ => MongoDBCommunityStatus { phase: "Pending".into(), message: Some("starting".into()), ..running },
    }
}

fn uri(database: &MongoDBCommunity) -> String {
    let (name, namespace) = (database.name_any(), database.namespace().unwrap_or_default());
    let hosts: Vec<_> = (0..database.spec.members)
        .map(|member| format!("{name}-{member}.{name}-svc.{namespace}.svc.cluster.local:27017"))
        .collect();
    format!("mongodb://{}/?replicaSet={name}", hosts.join(","))
}

async fn make_children(database: &MongoDBCommunity, client: &Client) -> Result<(), kube::Error> {
    let (name, namespace) = (database.name_any(), database.namespace().unwrap_or_default());
    let owners: Vec<_> = database.controller_owner_ref(&()).into_iter().collect();
    let labels = json!({"app": format!("{name}-svc")});
    let apply = PatchParams::apply(MANAGER).force();

    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": format!("{name}-svc"), "ownerReferences": owners},
        "spec": {"clusterIP": "None", "selector": labels, "ports": [{"name": "mongodb", "port": 27017}]},
    });
    Api::<Service>::namespaced(client.clone(), &namespace)
        .patch(&format!("{name}-svc"), &apply, &Patch::Apply(service))
        .await?;

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}-connection-string"), "ownerReferences": owners},
        "stringData": {"connectionString.standard": uri(database)},
    });
    Api::<Secret>::namespaced(client.clone(), &namespace)
        .patch(&format!("{name}-connection-string"), &apply, &Patch::Apply(secret))
        .await?;

    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {
            "serviceName": format!("{name}-svc"),
            "replicas": database.spec.members,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "mongod", "image": format!("mongo:{}", database.spec.version.as_deref().unwrap_or("latest"))}]},
            },
        },
    });
    Api::<StatefulSet>::namespaced(client.clone(), &namespace).patch(&name, &apply, &Patch::Apply(set)).await?;
    Ok(())
}

async fn remove_children(database: &MongoDBCommunity, client: &Client) -> Result<(), kube::Error> {
    let (name, namespace) = (database.name_any(), database.namespace().unwrap_or_default());
    let delete = DeleteParams::default();
    gone(Api::<StatefulSet>::namespaced(client.clone(), &namespace).delete(&name, &delete).await)?;
    gone(Api::<Service>::namespaced(client.clone(), &namespace).delete(&format!("{name}-svc"), &delete).await)?;
    let secret = format!("{name}-connection-string");
    gone(Api::<Secret>::namespaced(client.clone(), &namespace).delete(&secret, &delete).await)
}

/// What is gone already needs no deletion.
fn gone<T>(deleted: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match deleted {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(version: &str) -> MongoDBCommunity {
        let spec = json!({"members": 2, "type": "ReplicaSet", "version": version});
        let mut database = MongoDBCommunity::new("db", serde_json::from_value(spec).expect("a spec"));
        database.metadata.namespace = Some("ns".into());
        database
    }

    #[test]
    fn a_database_starts_runs_and_restarts_for_a_new_version() {
        let first = database("6.0.5");
        let pending = next_status(&first, &MongoDBCommunityStatus::default());
        assert_eq!(pending.phase, "Pending");
        let running = next_status(&first, &pending);
        assert_eq!((running.phase.as_str(), running.current_mongodb_members), ("Running", 2));
        assert_eq!(next_status(&first, &running), running);
        assert_eq!(next_status(&database("7.0.1"), &running).phase, "Pending");
    }
}
