//! What a copy of 0.8 is made of.

use carrick_bind_api::carrick_kcp::meta::OwnerReference;
use carrick_bind_api::copies;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::{CONSUMER_CLUSTER_ANNOTATION, CONSUMER_NAME_ANNOTATION, Owner};
use carrick_sync::object::set;
use carrick_sync::{ObjectAddress, Role};
use serde_json::Value;

use super::link::Link;
use super::words::WORDS;

/// The way from a source to its copy, in either direction.
pub(in crate::decide) struct CopyLink<'a> {
    pub contract: &'a str,
    pub owner: Option<&'a OwnerReference>,
    pub source_at: ObjectAddress,
    pub copy_at: ObjectAddress,
    /// The label that says who owns the source, for claimed objects.
    pub labelled: Option<Owner>,
    /// Whether the source waits for its copy.
    pub held: bool,
    /// Whether the copy has the status of the source.
    pub shows_status: bool,
    /// The logical cluster of the source, if there are many.
    pub tenant: Option<&'a str>,
}

impl<'a> CopyLink<'a> {
    /// The same, to be kept or removed.
    pub fn link(self) -> Link<'a, impl Fn(&Value) -> Value> {
        let (source_at, copy_at, owner, held) = (self.source_at.clone(), self.copy_at.clone(), self.owner, self.held);
        Link { words: &WORDS, source_at, copy_at, content: move |source: &Value| self.content(source), owner, held }
    }

    fn content(&self, source: &Value) -> Value {
        let at = ObjectKey { namespace: self.copy_at.namespace.clone(), name: self.copy_at.name.clone() };
        let mut copy = match self.copy_at.side.role {
            Role::Provider => copies::for_provider(source, &at, self.contract, None),
            Role::Consumer => copies::for_consumer(source, &at, self.contract),
        };
        if let Some(cluster) = self.tenant.filter(|_| self.copy_at.side.role == Role::Provider) {
            set(&mut copy, "annotations", CONSUMER_CLUSTER_ANNOTATION, cluster);
            set(&mut copy, "annotations", CONSUMER_NAME_ANNOTATION, &self.source_at.name);
        }
        if let Some(status) = source.get("status").filter(|_| self.shows_status) {
            copy["status"] = status.clone();
        }
        match self.labelled {
            Some(owner) => copies::labelled(copy, owner),
            None => copy,
        }
    }
}
