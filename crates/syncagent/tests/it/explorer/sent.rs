//! What was planned, and what was sent.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use carrick_syncagent::decide::Step;

use super::servers::{Data, Place};

/// Something that was sent.
#[derive(Clone)]
pub enum Sent {
    /// A write of an object.
    Object(Planned),
    /// A write of the state Secret.
    Secret {
        /// The version that it is for; nothing if it is created.
        known: Option<u64>,
        /// What it holds then; nothing if it is deleted.
        data: Option<Arc<Data>>,
        /// Whether it is done whatever the version.
        unguarded: bool,
        /// The UID of the order.
        order: Arc<str>,
    },
}

impl Hash for Sent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Object(planned) => planned.hash(state),
            Self::Secret { known, data, unguarded, order } => (known, data, unguarded, order).hash(state),
        }
    }
}

impl Sent {
    /// For stories.
    pub fn words(&self) -> String {
        match self {
            Self::Object(Planned { step, decided, generation, .. }) => {
                let place = step.address().map(Place::of);
                format!("{} of {place:?} version {decided:?} for generation {generation}", step.verb())
            }
            Self::Secret { known, data: None, .. } => format!("forget Secret {known:?}"),
            Self::Secret { known, data: Some(data), .. } => {
                let keys: Vec<&str> =
                    data.keys().map(|key| key.split_once('.').map_or("last", |(_, key)| key)).collect();
                format!("remember {keys:?} in Secret {known:?}")
            }
        }
    }

    /// Whether it is about the related copy.
    pub fn is_related(&self) -> bool {
        matches!(self, Self::Object(planned) if planned.step.address().map(Place::of) == Some(Place::Related))
    }

    /// Whether it creates something.
    pub fn creates(&self) -> bool {
        match self {
            Self::Object(planned) => matches!(*planned.step, Step::Create { .. }),
            Self::Secret { known, .. } => known.is_none(),
        }
    }
}

/// A step of a plan.
#[derive(Clone)]
pub struct Planned {
    /// The step.
    pub step: Arc<Step>,
    /// The version of the object that it was decided for.
    pub decided: String,
    /// The generation of the order that it was decided for.
    pub generation: u64,
    /// The UID of that order.
    pub order: Arc<str>,
    /// A hash of the step: steps have none, and are large.
    hash: u64,
}

impl Hash for Planned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.hash, &self.decided, self.generation, &self.order).hash(state);
    }
}

impl Planned {
    /// A step, the version of its object that was seen, and the order that it is for.
    pub fn new(step: Step, decided: String, (order, generation): (Arc<str>, u64)) -> Self {
        let mut hasher = DefaultHasher::new();
        format!("{step:?}").hash(&mut hasher);
        Self { step: Arc::new(step), decided, generation, order, hash: hasher.finish() }
    }
}
