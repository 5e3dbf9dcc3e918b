//! Adoption: what happens when an object already exists where a new copy should go.

use serde_json::Value;

use crate::acquired::Acquired;
use crate::content::with_content;
use crate::mark::Mark;
use crate::object::{annotation, label, set};
use crate::ownership::{is_written_by, written_by};
use crate::vocabulary::Vocabulary;

/// What to do with somebody else's object in the place of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdoptionPolicy {
    /// It is left alone, unless its owner allows taking it over.
    #[default]
    Refuse,
    /// It becomes the copy, and gets the content of the source.
    TakeOver,
    /// It becomes the copy, and its content stays until the source changes: what the reference agent does.
    Link,
}

impl AdoptionPolicy {
    /// The annotation value by which owners allow their object to be taken over.
    pub const TAKE_OVER: &str = "TakeOver";

    /// Parses the value that users write.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "Refuse" => Some(Self::Refuse),
            Self::TAKE_OVER => Some(Self::TakeOver),
            "Link" => Some(Self::Link),
            _ => None,
        }
    }
}

/// What to do with an existing object in the place of a new copy.
#[derive(Debug, Clone, PartialEq)]
pub enum Adoption {
    /// It is the copy already: an earlier attempt created it.
    Ours,
    /// It may be taken over, by writing this.
    Take(Value),
    /// It belongs to someone else and must not be touched.
    Foreign {
        /// A description of its owner.
        owner: String,
    },
    /// It has no known owner, and nobody has allowed taking it over.
    Refused,
}

/// Decides about an existing object in the place of a new copy. Related objects carry no link: one that was not seen before can be the copy
/// only if the server says that an agent wrote it, and `pair` decides about it once it sees it.
pub fn adopt(
    vocabulary: &Vocabulary,
    existing: &Value,
    desired: &Value,
    policy: AdoptionPolicy,
    subresources: &[&str],
) -> Adoption {
    let Some(wanted) = (vocabulary.source_of)(desired) else {
        let is_written = is_written_by(existing, vocabulary.manager);
        return if is_written { Adoption::Ours } else { Adoption::Refused };
    };
    let source = (vocabulary.source_of)(existing);
    let is_other = |mark: &str| {
        annotation(existing, mark).is_some_and(|theirs| annotation(desired, mark).is_some_and(|ours| ours != theirs))
    };
    let agent = label(existing, vocabulary.agent_name);
    let same_agent = agent == label(desired, vocabulary.agent_name);
    // The owner's annotation decides, but an object of another agent is never taken over.
    let said = annotation(existing, vocabulary.adoption) == Some(AdoptionPolicy::TAKE_OVER);
    // Labels can be lost; nothing but its copy has the UID of the source.
    let has_mark =
        |mark: &str| annotation(existing, mark).is_some_and(|theirs| annotation(desired, mark) == Some(theirs));
    let is_proven = has_mark(vocabulary.source_resource)
        && has_mark(vocabulary.source_uid)
        && source.as_ref().is_none_or(|source| *source == wanted);
    match source {
        _ if agent.is_some() && !same_agent => {
            Adoption::Foreign { owner: format!("agent {}", agent.unwrap_or_default()) }
        }
        _ if is_proven => Adoption::Ours,
        Some(source)
            if source == wanted
                && !is_other(vocabulary.source_resource)
                && !is_other(vocabulary.source_uid)
                && same_agent =>
        {
            Adoption::Ours
        }
        Some(source) if source == wanted && is_other(vocabulary.source_resource) && !said => Adoption::Foreign {
            owner: format!(
                "an object of {}, whose copy it is",
                annotation(existing, vocabulary.source_resource).unwrap_or_default()
            ),
        },
        Some(source) if source == wanted && is_other(vocabulary.source_uid) && !said => {
            Adoption::Foreign { owner: "an earlier object of the same name, whose copy it is".to_owned() }
        }
        Some(source) if source != wanted && !said => Adoption::Foreign { owner: format!("{source}, whose copy it is") },
        _ => {
            // That it equals what would be written says nothing: anybody can have made it, or guessed.
            if !said && policy == AdoptionPolicy::Refuse {
                return Adoption::Refused;
            }
            let is_linked = policy == AdoptionPolicy::Link && !said;
            Adoption::Take(taken(vocabulary, existing, desired, is_linked, subresources))
        }
    }
}

/// An object that was there before, as it is written to become the copy. With `is_linked`, its content stays.
fn taken(vocabulary: &Vocabulary, existing: &Value, desired: &Value, is_linked: bool, subresources: &[&str]) -> Value {
    let mut taken = existing.clone();
    let is_copy = (vocabulary.source_of)(existing).is_some();
    if is_copy && !is_linked {
        // What the source before had of labels and annotations goes with it; what others have added stays.
        for field in ["labels", "annotations"] {
            let written = written_by(existing, vocabulary.manager, field);
            if let Some(there) = taken["metadata"][field].as_object_mut() {
                there.retain(|key, _| key.starts_with(vocabulary.prefix) || !written.contains(&key.as_str()));
            }
        }
    }
    if !is_linked {
        taken = with_content(&vocabulary.strip(desired), &taken, subresources).unwrap_or(taken);
    }
    for field in ["labels", "annotations"] {
        for (key, value) in desired["metadata"][field].as_object().into_iter().flatten() {
            if key.starts_with(vocabulary.prefix) && key != vocabulary.applied_state {
                set(&mut taken, field, key, value.as_str().unwrap_or_default());
            }
        }
    }
    // A mark that it brings along is not seen again either.
    if let Some(wanted) = annotation(desired, vocabulary.applied_state) {
        let mark = match annotation(existing, vocabulary.applied_state) {
            Some(before) => Mark::after(Some(before), Mark::read(wanted).sum, false).to_string(),
            None => wanted.to_owned(),
        };
        set(&mut taken, "annotations", vocabulary.applied_state, &mark);
    }
    // What this agent made for another source, and was handed over, was made by it still.
    let new = if is_linked { Acquired::Linked } else { Acquired::Adopted };
    let how = Acquired::of(vocabulary, existing).unwrap_or(if is_copy { Acquired::Made } else { new });
    if how.is_let_go() && !vocabulary.acquired.is_empty() {
        set(&mut taken, "annotations", vocabulary.acquired, &how.mark(None));
    }
    taken
}
