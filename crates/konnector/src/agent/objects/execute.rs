//! What is written for one object of 0.8, and what the executor has to know for that.

use carrick_bind_api::copies::{self, Ownership};
use carrick_bind_api::existing::ADOPTED_ANNOTATION;
use carrick_bind_api::mapping::ObjectKey;
use carrick_bind_api::names::FIELD_MANAGER;
use carrick_client::Client;
use carrick_sync::executor::Advice;
use carrick_sync::{Adoption, ObjectAddress, Role, Step, Vocabulary};
use serde_json::Value;

use super::consumers::Place;
use super::hub::Hub;
use super::key::{Item, WorkKey};
use super::outcome::{Outcome, Trouble};
use super::store::Store;
use super::watched::WatchId;
use super::writing::{self, Tools, Writing};
use crate::decide::claims::is_copy;
use crate::decide::objects::{Confirm, Noted, ObjectPlan, WORDS};

/// What is written for one object, and which watches tell about it.
pub(super) struct ContractWriting<'a> {
    pub hub: &'a Hub,
    pub key: &'a WorkKey,
    pub noted: Noted,
    /// Where the copy on the provider is.
    pub copy_at: ObjectAddress,
    /// The watches of the consumer's object and of the provider's.
    pub watches: [WatchId; 2],
    /// Where the consumer's object is.
    pub place: &'a Place,
}

impl ContractWriting<'_> {
    /// Carries out a plan.
    pub async fn carry_out(self, plan: ObjectPlan) -> Result<Outcome, Trouble> {
        if plan.is_settled() {
            return Ok(Outcome::Settled);
        }
        if let Some(Confirm::Gone(at)) = &plan.confirm
            && !writing::is_gone(&self, at).await?
        {
            return Ok(Outcome::Again);
        }
        // What goes is told by a watch; all else is known already, and may make another step possible.
        let waits = plan.steps.iter().any(|step| matches!(step, Step::Delete { .. }));
        let (noted, result) = writing::execute(&self, plan.steps).await;
        self.hub.ledger.note(self.key, noted);
        result?;
        Ok(if waits { Outcome::Settled } else { Outcome::Again })
    }

    /// The key of the consumer's object.
    fn object(&self) -> Option<&ObjectKey> {
        match &self.key.item {
            Item::Object(key) | Item::Claimed(key) => Some(key),
            Item::Namespaces => None,
        }
    }

    /// The consumer's object.
    fn source(&self) -> Option<Value> {
        let key = self.object()?;
        self.with_store(Role::Consumer, |store| store.get(key))?.map(|object| object.value())
    }
}

impl Writing for ContractWriting<'_> {
    fn tools(&self) -> &Tools {
        &self.hub.tools
    }

    fn client(&self, role: Role) -> &Client {
        if role == Role::Consumer { &self.place.client } else { &self.hub.provider }
    }

    fn with_store<T>(&self, role: Role, act: impl FnOnce(&Store) -> T) -> Option<T> {
        let [consumer, provider] = &self.watches;
        let watched = self.hub.watched(if role == Role::Consumer { consumer } else { provider })?;
        Some(act(&watched.store))
    }

    fn noted(&self) -> &Noted {
        &self.noted
    }

    fn copy_at(&self) -> &ObjectAddress {
        &self.copy_at
    }

    fn braked(&self) -> (&str, Option<&ObjectKey>, String) {
        let uid = self.source().map(|source| copies::uid(&source).to_owned()).unwrap_or_default();
        (self.key.lane.as_str(), self.object(), uid)
    }

    fn vocabulary(&self) -> &'static Vocabulary {
        &WORDS
    }

    fn manager(&self) -> &'static str {
        FIELD_MANAGER
    }

    /// kube-bind's own konnector creates copies under the name of its program.
    fn writers(&self) -> &[&str] {
        &["konnector"]
    }

    fn takes_all_fields(&self) -> bool {
        let (source, copy) = (self.source(), self.known(&self.copy_at));
        source
            .zip(copy)
            .is_some_and(|(source, copy)| copies::annotation(&source, ADOPTED_ANNOTATION) == Some(copies::uid(&copy)))
    }

    fn owner(&self, existing: &Value) -> Adoption {
        let contract = &self.hub.contract;
        if is_copy(existing, Role::Consumer, contract) {
            return Adoption::Ours;
        }
        match copies::ownership(existing, contract) {
            Ownership::Ours => Adoption::Ours,
            Ownership::OtherContract(contract) => Adoption::Foreign { owner: format!("contract {contract}") },
            Ownership::Unmarked => Adoption::Refused,
        }
    }

    fn is_left(&self, found: &Value) -> bool {
        copies::ownership(found, &self.hub.contract) == Ownership::Ours
            && !self.hub.is_derived(found, self.source().as_ref())
    }

    fn advice(&self) -> &'static Advice {
        &Advice {
            foreign: "another consumer has an object of this name, so choose another name here",
            refused: "delete or rename one of the two",
        }
    }

    fn key_of(&self, at: &ObjectAddress) -> Option<ObjectKey> {
        match at.side.role {
            // In many workspaces, objects of one name are told apart by more than that.
            Role::Consumer => self.object().cloned(),
            Role::Provider => Some(ObjectKey { namespace: at.namespace.clone(), name: at.name.clone() }),
        }
    }
}
