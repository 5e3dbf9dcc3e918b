//! LogicalCluster.

use std::collections::BTreeMap;

use crate::condition::Condition;
use crate::kinds::{KcpObject, LOGICAL_CLUSTER};
use crate::object::{kind, object, words};

kind! {
    /// The LogicalCluster named `cluster` describes the workspace that it lives in.
    LogicalCluster = LOGICAL_CLUSTER {
        /// Where the workspace comes from.
        spec: LogicalClusterSpec => "spec",
        /// How far it is.
        status: LogicalClusterStatus => "status",
    }
}

object! {
    /// Where a workspace comes from.
    LogicalClusterSpec {
        /// Whether users may delete the workspace by deleting this object.
        directly_deletable: bool => "directlyDeletable" [always],
        /// The user who created it.
        created_by: Option<UserInfo> => "createdBy",
        /// The object that stands for the workspace in its parent.
        owner: Option<LogicalClusterOwner> => "owner",
        /// Who prepares the workspace before it is ready.
        initializers: Vec<String> => "initializers",
        /// Who cleans up before its content is deleted.
        terminators: Vec<String> => "terminators",
    }
}

object! {
    /// A user, as an authenticator sees them.
    UserInfo {
        /// Name.
        username: String => "username",
        /// What tells this user from others that had the name before.
        uid: String => "uid",
        /// Groups.
        groups: Vec<String> => "groups",
        /// What else the authenticator knows.
        extra: BTreeMap<String, Vec<String>> => "extra",
    }
}

object! {
    /// The object that stands for a workspace in its parent.
    LogicalClusterOwner {
        /// Its group and version.
        api_version: String => "apiVersion",
        /// Its plural resource name.
        resource: String => "resource",
        /// The logical cluster that it lives in.
        cluster: String => "cluster",
        /// Its namespace, if it has one.
        namespace: String => "namespace",
        /// Its name.
        name: String => "name",
        /// Its uid.
        uid: String => "uid",
    }
}

impl LogicalClusterOwner {
    /// An object of a kind of kcp in this logical cluster; usually a Workspace.
    pub fn of<K: KcpObject>(owner: &K, cluster: impl Into<String>) -> Self {
        let metadata = owner.metadata();
        Self {
            api_version: K::KIND.api_version(),
            resource: K::KIND.plural.to_owned(),
            cluster: cluster.into(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..Self::default()
        }
    }
}

object! {
    /// How far a workspace is.
    LogicalClusterStatus {
        /// Its URL, by the name of the cluster.
        url: String => "URL",
        /// How far it is.
        phase: LogicalClusterPhase => "phase",
        /// Initializers that are not done yet.
        initializers: Vec<String> => "initializers",
        /// Terminators that are not done yet.
        terminators: Vec<String> => "terminators",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}

words! {
    /// How far a workspace is; of Workspaces and LogicalClusters alike.
    LogicalClusterPhase {
        /// A place is looked for.
        Scheduling,
        /// Initializers are at work.
        Initializing,
        /// It can be used.
        Ready,
        /// It cannot be reached for now.
        Unavailable,
        /// It is switched off.
        Inactive,
        /// Terminators are at work.
        Terminating,
        /// Its content is being deleted.
        Deleting,
    }
}
