//! The virtual workspaces of initializers and terminators: a controller that prepares new workspaces, or cleans up before they are
//! deleted, finds its workspaces there and reports when it is done.

use std::sync::Arc;

use carrick_kcp::core::v1alpha1::{LogicalCluster, LogicalClusterPhase, LogicalClusterStatus};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha224};

use super::authorize::{permits, refusal};
use super::data::{CLUSTERS, Data};
use super::object::label;
use crate::auth::rbac;
use crate::caller::Caller;
use crate::extension::{Kinds, Review, VirtualView};
use crate::request::{Attributes, Target};
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Key;

const READ: [&str; 3] = ["get", "list", "watch"];

/// Begin or end of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Initializers run before a workspace is ready.
    Initializing,
    /// Terminators run before the content of a workspace is deleted.
    Terminating,
}

impl Stage {
    /// Both stages.
    pub const ALL: [Self; 2] = [Self::Initializing, Self::Terminating];

    fn service(self) -> &'static str {
        match self {
            Self::Initializing => "/services/initializingworkspaces/",
            Self::Terminating => "/services/terminatingworkspaces/",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Initializing => "initializer",
            Self::Terminating => "terminator",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Initializing => "initialize",
            Self::Terminating => "terminate",
        }
    }

    /// The hooks of this stage that are not done yet.
    pub fn hooks(self, status: &LogicalClusterStatus) -> &[String] {
        match self {
            Self::Initializing => &status.initializers,
            Self::Terminating => &status.terminators,
        }
    }

    /// What the labels of all hooks of this stage start with.
    pub fn label_prefix(self) -> String {
        format!("{}.internal.kcp.io/", self.word())
    }

    /// The label of a LogicalCluster that waits for a hook.
    pub fn label(self, hook: &str) -> (String, String) {
        let digits = if self == Self::Initializing { 35 } else { 36 };
        let hash = HEXLOWER.encode(&Sha224::digest(hook.as_bytes()));
        (format!("{}{}", self.label_prefix(), &hash[..digits]), hash)
    }

    /// Whether a LogicalCluster is in this stage and waits for the hook.
    fn waits(self, cluster: &LogicalCluster, hook: &str) -> bool {
        let stage = match self {
            Self::Initializing => cluster.status.phase == LogicalClusterPhase::Initializing,
            Self::Terminating => cluster.metadata.is_deleting(),
        };
        stage && self.hooks(&cluster.status).iter().any(|found| found == hook)
    }
}

/// One hook and the clusters a request is about.
#[derive(Clone)]
struct Hook {
    data: Data,
    stage: Stage,
    /// `<cluster of the type>:<name of the type>`.
    name: Arc<str>,
    target: Target,
}

/// Opens the virtual workspace behind a URL path, if it is one of a hook.
pub fn open(data: &Data, kinds: Kinds<'_>, caller: &Caller, path: &str) -> Result<Option<VirtualView>, Status> {
    let Some((stage, rest)) = Stage::ALL.into_iter().find_map(|s| Some((s, path.strip_prefix(s.service())?))) else {
        return Ok(None);
    };
    let mut parts = rest.splitn(4, '/');
    let (Some(name), Some("clusters"), Some(target)) = (parts.next(), parts.next(), parts.next()) else {
        let attributes = Attributes { verb: "get".into(), path: path.to_owned(), ..Attributes::default() };
        return Err(rbac::refusal(caller, &attributes, ": Path not resolved to a valid virtual workspace"));
    };
    let target = match target {
        "*" | "%2A" | "%2a" => Target::All,
        target => Target::One(target.into()),
    };
    let hook = Hook { data: data.clone(), stage, name: name.replace("%3A", ":").into(), target: target.clone() };
    let resources = match &target {
        Target::All => kinds("").iter().filter(|found| is_cluster(found)).map(|found| readable(found)).collect(),
        Target::One(cluster) => kinds(cluster),
    };
    let (shown, asked, written) = (hook.clone(), hook.clone(), hook);
    Ok(Some(VirtualView {
        rest: format!("/{}", parts.next().unwrap_or_default()),
        target,
        resources,
        visible: Arc::new(move |key, object| shown.shows(key, object)),
        authorize: Arc::new(move |caller, attributes| asked.authorize(caller, attributes)),
        admit: Some(Arc::new(move |review| written.admit(review))),
        passes: |resource| resource.stored_kind() != *CLUSTERS,
    }))
}

fn is_cluster(resource: &Arc<Resource>) -> bool {
    resource.stored_kind() == *CLUSTERS
}

fn readable(resource: &Resource) -> Arc<Resource> {
    let mut resource = resource.clone();
    resource.verbs = READ.to_vec();
    Arc::new(resource)
}

impl Hook {
    fn shows(&self, key: &Key, object: &Value) -> bool {
        if key.kind != *CLUSTERS {
            return true;
        }
        let (name, value) = self.stage.label(&self.name);
        label(object, &name) == Some(&value)
            && LogicalCluster::deserialize(object).is_ok_and(|cluster| self.stage.waits(&cluster, &self.name))
    }

    fn authorize(&self, caller: &Caller, attributes: &Attributes) -> Result<(), Status> {
        let denied = || refusal(caller, attributes);
        let (home, kind) = self.name.rsplit_once(':').ok_or_else(denied)?;
        let run = Attributes {
            verb: self.stage.verb().into(),
            group: "tenancy.kcp.io".into(),
            resource: "workspacetypes".into(),
            name: kind.into(),
            ..Attributes::default()
        };
        if !permits(&self.data, caller, home, &run) {
            return Err(denied());
        }
        if let Target::One(cluster) = &self.target
            && !self.data.read_cluster(cluster).is_some_and(|found| self.stage.waits(&found, &self.name))
        {
            let text = format!("{} {:?} cannot access this workspace\n", self.stage.word(), self.name);
            return Err(Status::plain(403, text));
        }
        let about_clusters = attributes.group == "core.kcp.io" && attributes.resource == "logicalclusters";
        let verb = attributes.verb.as_str();
        let status = attributes.subresource == "status" && matches!(verb, "get" | "update" | "patch");
        if about_clusters && !status && !READ.contains(&verb) {
            return Err(denied());
        }
        Ok(())
    }

    /// A hook may only report that it is done itself.
    fn admit(&self, review: &mut Review<'_>) -> Result<(), Status> {
        let Some(old) = review.old.filter(|_| review.resource.stored_kind() == *CLUSTERS) else { return Ok(()) };
        let read = |object: &Value| LogicalCluster::deserialize(object).unwrap_or_default().status;
        let (old, new) = (read(old), read(review.object));
        for stage in Stage::ALL {
            let (mut before, mut after) = (stage.hooks(&old).to_vec(), stage.hooks(&new).to_vec());
            if stage == self.stage {
                before.retain(|hook| *hook != *self.name);
                after.retain(|hook| *hook != *self.name);
            }
            if before != after {
                let why = format!("only removing the {} {:?} is supported", self.stage.word(), self.name);
                return Err(Status::forbidden(&review.resource.group, &review.resource.plural, "cluster", &why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_as_much_of_the_hash_as_fits() {
        let (key, value) = Stage::Initializing.label("root:universal");
        assert_eq!((key.len(), value.len()), ("initializer.internal.kcp.io/".len() + 35, 56));
        let (key, value) = Stage::Terminating.label("root:universal");
        assert!(key.ends_with(&value[..36]));
    }
}
