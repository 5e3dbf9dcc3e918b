//! Related Secrets and ConfigMaps: what entries of bindings select on one side has a copy on the other.
//!
//! Whose a copy is stands in two annotations, the uids of the consumer's cluster and of the binding. A copy is never the source of another one, so
//! nothing goes back where it came from, and nothing from one provider to the next. What one entry does not select another entry of the same binding
//! may: a copy goes when none does.

use std::sync::Arc;

use carrick_bind_api::claims::Barred;
use carrick_bind_api::copies::came_from_provider;
use carrick_bind_api::core::conditions::{FOREIGN_OBJECT_EXISTS, PENDING};
use carrick_bind_api::core::names::RELATED_BINDING_ANNOTATION;
use carrick_bind_api::core::related::CompiledSelector;
use carrick_bind_api::mapping::ObjectKey;
use carrick_sync::object::{annotation, is_deleting};
use carrick_sync::{ApiKind, Dependents, ObjectAddress, StatusFlow, delete};
use serde_json::Value;

use super::objects::{Conflict, CopyOwner, CorePlan, Marks, link};
use crate::decide::claims::is_frozen;
use crate::decide::objects::{CONSUMER, Confirm, Noted, ObjectPlan, PROVIDER, address};

/// What travels.
const FIELDS: [&str; 4] = ["data", "binaryData", "type", "immutable"];
/// The namespace of whoever chooses none: every provider may write there.
const DEFAULT_NAMESPACE: &str = "default";

/// What one binding wants of the objects of one resource, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct RelatedWant {
    /// The uid of the binding.
    pub binding: String,
    /// The namespace that it is for; none for all.
    pub namespace: Option<String>,
    /// The APIs of the binding: where their objects are, the provider may write.
    pub apis: Vec<String>,
    /// Whether the provider's objects are copied here, or the consumer's there.
    pub from_provider: bool,
    /// Which of them: whatever one of these selects. None of them if copies are to go.
    pub selectors: Vec<CompiledSelector>,
}

impl RelatedWant {
    /// Whether it is about objects in a namespace.
    pub fn is_for(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }

    fn selecting(&self, source: &Value) -> impl Iterator<Item = &CompiledSelector> {
        self.selectors.iter().filter(|selector| selector.selects(source))
    }

    /// Whether it selects an object of the side that it copies from.
    pub fn selects(&self, source: &Value) -> bool {
        self.selecting(source).next().is_some()
    }
}

/// What a related object is decided on.
#[derive(Clone, Copy)]
pub struct RelatedView<'a> {
    /// Its kind.
    pub kind: &'a Arc<ApiKind>,
    /// Its key, on both sides.
    pub key: &'a ObjectKey,
    /// The uid of the consumer's cluster.
    pub cluster_uid: &'a str,
    /// The consumer's object.
    pub consumer: Option<&'a Value>,
    /// The provider's object.
    pub provider: Option<&'a Value>,
    /// What bindings want.
    pub wants: &'a [RelatedWant],
    /// What never travels, whatever is selected.
    pub bars: &'a (dyn Fn(&Value) -> Option<Barred> + Sync),
    /// Whether the APIs of a binding are used in the namespace; none if that is not known yet.
    pub is_used: &'a (dyn Fn(&RelatedWant) -> Option<bool> + Sync),
    /// What is remembered.
    pub noted: &'a Noted,
}

impl<'a> RelatedView<'a> {
    /// What says on a copy that it was made for a want.
    pub fn marks(&self, want: &'a RelatedWant) -> Marks<'a> {
        Marks { cluster: self.cluster_uid, key: RELATED_BINDING_ANNOTATION, value: &want.binding }
    }

    /// The object that a want copies, that in the place of its copy, and where both are.
    fn sides(&self, want: &RelatedWant) -> [(Option<&'a Value>, ObjectAddress); 2] {
        let here = (self.consumer, address(CONSUMER, self.kind, self.key));
        let there = (self.provider, address(PROVIDER, self.kind, self.key));
        if want.from_provider { [there, here] } else { [here, there] }
    }
}

/// What to do about a related object, and for which of those that want it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelatedPlan<'a> {
    /// Writes, or why there are none.
    pub plan: CorePlan,
    /// Whose copy is written.
    pub want: Option<&'a RelatedWant>,
}

/// Decides about a related object; nothing if not all is known.
pub fn decide<'a>(view: &RelatedView<'a>) -> Option<RelatedPlan<'a>> {
    let mut conflict = None;
    let wants = || view.wants.iter().filter(|want| want.is_for(view.key.namespace.as_deref()));
    for want in wants() {
        let [(source, source_at), (copy, copy_at)] = view.sides(want);
        let Some(source) = source.filter(|it| want.selects(it) && !is_deleting(it) && !is_copy(it)) else { continue };
        let owner = copy.map(|copy| view.marks(want).owner(copy));
        if let Some(barred) = (view.bars)(source) {
            if want.selecting(source).any(CompiledSelector::is_specific) {
                conflict = Some(refused(PENDING, format!("it is not copied: {barred}")));
            }
            continue;
        }
        // What has come before goes on, even if nobody uses the API there any more.
        let is_open = !want.from_provider
            || want.namespace.is_some()
            || owner == Some(CopyOwner::Ours)
            || view.key.namespace.as_deref() == Some(DEFAULT_NAMESPACE);
        if !is_open && !(view.is_used)(want)? {
            let why = "providers write only where somebody uses their API: create one of its objects in that namespace, or bind it there";
            conflict = Some(refused(PENDING, why));
            continue;
        }
        match (owner, copy) {
            (None | Some(CopyOwner::Ours), _) => {}
            // Another binding has made it first, or its own end comes.
            (Some(CopyOwner::Other), Some(copy)) if wants().any(|other| is_made_for(view, other, want, copy)) => {
                continue;
            }
            _ => {
                let why =
                    "the other side has one of that name, which is left as it is; delete or rename one of the two";
                conflict = Some(refused(FOREIGN_OBJECT_EXISTS, why));
                continue;
            }
        }
        if copy.is_some_and(is_deleting) {
            return Some(RelatedPlan::default());
        }
        let plan = if let Some(copy) = copy.filter(|copy| is_frozen(source, copy)) {
            ObjectPlan { confirm: None, steps: vec![delete(copy_at, copy, Dependents::default())] }
        } else {
            link(source_at, copy_at, &view.marks(want), &FIELDS, false).kept(source, copy, StatusFlow::None, view.noted)
        };
        return Some(RelatedPlan { plan: CorePlan { plan, conflict: None }, want: Some(want) });
    }
    for want in wants() {
        let [(source, source_at), (copy, copy_at)] = view.sides(want);
        let ours = copy.filter(|copy| view.marks(want).owner(copy) == CopyOwner::Ours && !is_deleting(copy));
        if let Some(copy) = ours {
            let confirm = source.is_none().then_some(Confirm::Gone(source_at)).filter(|_| !want.selectors.is_empty());
            let steps = vec![delete(copy_at, copy, Dependents::default())];
            return Some(RelatedPlan {
                plan: CorePlan { plan: ObjectPlan { confirm, steps }, conflict },
                want: Some(want),
            });
        }
    }
    Some(RelatedPlan { plan: CorePlan { conflict, ..CorePlan::default() }, want: None })
}

fn refused(reason: &'static str, why: impl Into<String>) -> Conflict {
    Conflict { reason, message: why.into() }
}

/// Whether an object is a copy itself, of whatever provider or consumer.
pub fn is_copy(object: &Value) -> bool {
    annotation(object, RELATED_BINDING_ANNOTATION).is_some() || came_from_provider(object)
}

fn is_made_for<'a>(view: &RelatedView<'a>, other: &'a RelatedWant, want: &RelatedWant, copy: &Value) -> bool {
    other.from_provider == want.from_provider && view.marks(other).owner(copy) == CopyOwner::Ours
}

#[cfg(test)]
mod tests;
