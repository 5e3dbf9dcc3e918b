//! Workspace.

use super::WorkspaceTypeReference;
use crate::condition::Condition;
use crate::core::v1alpha1::LogicalClusterPhase;
use crate::kinds::WORKSPACE;
use crate::meta::LabelSelector;
use crate::object::{kind, object};

kind! {
    /// A Workspace is a child of the workspace it lives in, with its own APIs, objects and access rules.
    Workspace = WORKSPACE {
        /// What is wanted. Everything may be left out.
        spec: WorkspaceSpec => "spec",
        /// How far it is.
        status: WorkspaceStatus => "status",
    }
}

impl Workspace {
    /// Whether it can be used.
    pub fn is_ready(&self) -> bool {
        self.status.phase == LogicalClusterPhase::Ready
    }
}

object! {
    /// What workspace is wanted.
    WorkspaceSpec {
        /// Its type; the parent's default child type if left out.
        type_: Option<WorkspaceTypeReference> => "type",
        /// Where it should be placed.
        location: Option<WorkspaceLocation> => "location",
        /// Name of the logical cluster behind it; set by kcp.
        cluster: String => "cluster",
        /// Its URL, by path; set by kcp.
        url: String => "URL",
        /// The object that stands behind a workspace without a logical cluster.
        mount: Option<Mount> => "mount",
    }
}

object! {
    /// Where a workspace should be placed.
    WorkspaceLocation {
        /// Labels of the shard.
        selector: Option<LabelSelector> => "selector",
    }
}

object! {
    /// What stands behind a workspace without a logical cluster.
    Mount {
        /// The object that knows the URL.
        reference: ObjectReference => "ref",
    }
}

object! {
    /// An object in the same workspace.
    ObjectReference {
        /// Its group and version.
        api_version: String => "apiVersion",
        /// Its kind.
        kind: String => "kind",
        /// Its name.
        name: String => "name",
        /// Its namespace, if it has one.
        namespace: String => "namespace",
    }
}

object! {
    /// How far a workspace is.
    WorkspaceStatus {
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
