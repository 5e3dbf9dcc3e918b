//! Adoption: what happens when an object already exists where a new copy should go.

use serde_json::Value;

use crate::content::{is_exact, with_content};
use crate::object::{annotation, label, set};
use crate::vocabulary::Vocabulary;

/// What to do with somebody else's object in the place of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdoptionPolicy {
    /// It is left alone, unless it equals what would be written, or its owner allows taking it over.
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

/// Decides about an existing object in the place of the copy of a primary. Related objects carry no link; their ownership is decided by
/// `pair`, which sees them.
pub fn adopt(
    vocabulary: &Vocabulary,
    existing: &Value,
    desired: &Value,
    policy: AdoptionPolicy,
    subresources: &[&str],
) -> Adoption {
    let Some(wanted) = (vocabulary.source_of)(desired) else { return Adoption::Ours };
    let source = (vocabulary.source_of)(existing);
    let is_other = |mark: &str| {
        annotation(existing, mark).is_some_and(|theirs| annotation(desired, mark).is_some_and(|ours| ours != theirs))
    };
    let agent = label(existing, vocabulary.agent_name);
    let same_agent = agent == label(desired, vocabulary.agent_name);
    // The owner's annotation decides, but an object of another agent is never taken over.
    let said = annotation(existing, vocabulary.adoption) == Some(AdoptionPolicy::TAKE_OVER);
    match source {
        _ if agent.is_some() && !same_agent => {
            Adoption::Foreign { owner: format!("agent {}", agent.unwrap_or_default()) }
        }
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
            let content = vocabulary.strip(desired);
            match policy {
                _ if said || policy == AdoptionPolicy::TakeOver || is_exact(&content, existing, subresources) => {}
                AdoptionPolicy::Link => {}
                _ => return Adoption::Refused,
            }
            let mut taken = existing.clone();
            if policy != AdoptionPolicy::Link || said {
                taken = with_content(&content, existing, subresources).unwrap_or(taken);
            }
            for field in ["labels", "annotations"] {
                for (key, value) in desired["metadata"][field].as_object().into_iter().flatten() {
                    if key.starts_with(vocabulary.prefix) {
                        set(&mut taken, field, key, value.as_str().unwrap_or_default());
                    }
                }
            }
            Adoption::Take(taken)
        }
    }
}
