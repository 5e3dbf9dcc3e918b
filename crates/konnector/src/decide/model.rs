//! Two clusters with one object each, for tests: what servers make of steps.

use carrick_sync::ownership::applied;
use carrick_sync::{ObjectAddress, Role, Step};
use serde_json::{Value, json};

use super::objects::{Confirm, ObjectPlan};

/// The consumer's object and the provider's, as their servers have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub consumer: Option<Value>,
    pub provider: Option<Value>,
    /// The fields that we own by applying them, on either side.
    owned: [Value; 2],
    revision: u64,
}

impl Model {
    /// The object of one side.
    pub fn slot(&mut self, role: Role) -> &mut Option<Value> {
        match role {
            Role::Consumer => &mut self.consumer,
            Role::Provider => &mut self.provider,
        }
    }

    /// Somebody creates an object.
    pub fn put(&mut self, role: Role, mut object: Value) {
        self.revision += 1;
        let uid = format!("{role:?}-{}", self.revision);
        object["metadata"]["uid"] = uid.into();
        assert!(self.slot(role).replace(object).is_none(), "it is there already");
        self.touch(role);
    }

    /// Somebody changes an object.
    pub fn change(&mut self, role: Role, change: impl FnOnce(&mut Value)) {
        change(self.slot(role).as_mut().unwrap());
        self.touch(role);
    }

    /// Somebody deletes an object.
    pub fn delete(&mut self, role: Role) {
        self.change(role, |object| object["metadata"]["deletionTimestamp"] = json!("now"));
    }

    /// The server's part of a write.
    fn touch(&mut self, role: Role) {
        self.revision += 1;
        let revision = self.revision.to_string();
        let slot = self.slot(role);
        let Some(object) = slot else { return };
        object["metadata"]["resourceVersion"] = revision.into();
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if object["metadata"]["deletionTimestamp"].is_string() && !is_held {
            *slot = None;
        }
    }

    fn at(&mut self, at: &ObjectAddress) -> &mut Value {
        self.slot(at.side.role).as_mut().unwrap_or_else(|| panic!("{at} is not there"))
    }

    fn execute(&mut self, step: Step) {
        let role = step.role();
        match step {
            Step::SetFinalizers { at, finalizers, held_by: None, resource_version } => {
                assert_eq!(self.at(&at)["metadata"]["resourceVersion"], resource_version.as_str());
                self.at(&at)["metadata"]["finalizers"] = finalizers.into();
            }
            Step::Create { at, object } => {
                self.owned[at.side.role as usize] = object.clone();
                self.put(at.side.role, object);
            }
            Step::Apply { at, object, .. } => {
                let owned = std::mem::replace(&mut self.owned[at.side.role as usize], object.clone());
                applied(&owned, &object, self.at(&at));
            }
            Step::Patch { at, patch } => {
                assert_eq!(self.at(&at)["metadata"]["uid"], patch["metadata"]["uid"]);
                carrick_json::merge::apply(self.at(&at), &patch);
            }
            Step::WriteStatus { at, object, .. } => {
                assert_eq!(self.at(&at)["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
                self.at(&at)["status"] = object["status"].clone();
            }
            Step::Delete { at, uid, .. } => {
                assert_eq!(self.at(&at)["metadata"]["uid"], uid.as_str());
                self.at(&at)["metadata"]["deletionTimestamp"] = json!("now");
            }
            Step::ConfirmNoCopy => return assert!(self.provider.is_none(), "the copy is still there"),
            other => panic!("nobody executes {other:?}"),
        }
        if let Some(role) = role {
            self.touch(role);
        }
    }

    /// Carries out a plan, or only its first steps, as if the konnector died after them.
    pub fn carry_out(&mut self, plan: ObjectPlan, most: usize) {
        if let Some(Confirm::Gone(at)) = &plan.confirm {
            assert!(self.slot(at.side.role).is_none(), "{at} is still there");
        }
        plan.steps.into_iter().take(most).for_each(|step| self.execute(step));
    }

    /// Decides and carries out until there is nothing left to do, and returns how many steps that took.
    pub fn settle(&mut self, decide: impl Fn(&Self) -> ObjectPlan) -> usize {
        let mut steps = 0;
        for _ in 0..10 {
            let plan = decide(self);
            if plan.is_settled() {
                return steps;
            }
            steps += plan.steps.len();
            self.carry_out(plan, usize::MAX);
        }
        panic!("no end of steps: {:?}", decide(self));
    }
}
