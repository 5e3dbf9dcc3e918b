//! How an agent came to a copy, which decides what becomes of the copy when its source goes.
//!
//! ```text
//!  made      we created it                           it is deleted
//!  adopted   it was there before, and was given to us  it is let go: it stays, without what we wrote into its metadata
//!  linked    the same, and it kept its content       the same
//! ```
//!
//! Whatever the agent made stays, too, if the provider says so by an annotation on the copy: see [`is_kept`].
//!
//! It is recorded together with the UID of the copy in what is remembered. What was not made says so itself, too, by an annotation that is
//! written when it is taken over and outlives the loss of what is remembered. Copies from before this was recorded say nothing; those stay
//! what they were.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checksum::sha1_hex;
use crate::edit::Edit;
use crate::object::annotation;
use crate::vocabulary::Vocabulary;

/// How an agent came to a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acquired {
    /// The agent created it.
    Made,
    /// It was there before, and somebody who may gave it to the agent.
    Adopted,
    /// The same, and it kept its content.
    Linked,
}

impl Acquired {
    /// What an object says of itself.
    pub fn of(vocabulary: &Vocabulary, object: &Value) -> Option<Self> {
        let text = annotation(object, vocabulary.acquired)?;
        match text.split_once('-').map_or(text, |(word, _)| word) {
            "made" => Some(Self::Made),
            "adopted" => Some(Self::Adopted),
            "linked" => Some(Self::Linked),
            _ => None,
        }
    }

    /// Whether the copy stays when its source goes.
    pub fn is_let_go(self) -> bool {
        self != Self::Made
    }

    /// The annotation of a copy, with a proof of what it is the copy of, if nothing else proves that.
    pub fn mark(self, proof: Option<&str>) -> String {
        let word = match self {
            Self::Made => "made",
            Self::Adopted => "adopted",
            Self::Linked => "linked",
        };
        proof.map_or_else(|| word.to_owned(), |proof| format!("{word}-{proof}"))
    }
}

/// What says in the annotation of a copy which agent acquired it as the copy of which original, in which place. Nothing that was copied
/// together with the annotation has the same.
pub fn proof(parts: &[&str]) -> String {
    sha1_hex(&parts.join("\0"))[..20].to_owned()
}

/// Whether an object carries this proof.
pub fn is_proven(vocabulary: &Vocabulary, object: &Value, proof: &str) -> bool {
    let text = annotation(object, vocabulary.acquired);
    text.and_then(|text| text.split_once('-')).is_some_and(|(_, theirs)| theirs == proof)
}

/// The value of [`Vocabulary::on_delete`] by which a provider keeps a copy whose source goes.
pub const KEEP: &str = "Keep";

/// Whether the provider has said on a copy that it stays when its source goes.
pub fn is_kept(vocabulary: &Vocabulary, copy: &Value) -> bool {
    annotation(copy, vocabulary.on_delete) == Some(KEEP)
}

/// Edits that remove from a copy what an agent has written into its metadata.
pub fn let_go(vocabulary: &Vocabulary, copy: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    for field in ["labels", "annotations"] {
        let there = copy["metadata"][field].as_object().into_iter().flatten();
        for (key, _) in there.filter(|(key, _)| vocabulary.of_copies.contains(&key.as_str())) {
            edits.push(Edit { path: ["metadata", field, key].map(str::to_owned).to_vec(), value: None });
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::tests::WORDS;
    use serde_json::json;

    #[test]
    fn a_copy_says_how_the_agent_came_to_it_and_for_what() {
        let (ours, theirs) = (proof(&["agent", "a"]), proof(&["agent", "b"]));
        for how in [Acquired::Made, Acquired::Adopted, Acquired::Linked] {
            for proof in [None, Some(ours.as_str())] {
                let copy = json!({"metadata": {"annotations": {WORDS.acquired: how.mark(proof)}}});
                assert_eq!(Acquired::of(&WORDS, &copy), Some(how));
                assert_eq!(is_proven(&WORDS, &copy, &ours), proof.is_some());
                assert!(!is_proven(&WORDS, &copy, &theirs));
            }
        }
        for text in ["", "stolen", "mad", "-made"] {
            let copy = json!({"metadata": {"annotations": {WORDS.acquired: text}}});
            assert_eq!(Acquired::of(&WORDS, &copy), None, "{text}");
        }
    }

    #[test]
    fn what_is_let_go_keeps_all_that_is_not_ours() {
        let mut copy = json!({"metadata": {"labels": {"theirs": "1", "test/agent": "a"},
            "annotations": {"test/acquired": "adopted", "test/adoption": "TakeOver", "test/held-by": "x"}}});
        crate::edit::apply(&let_go(&WORDS, &copy), &mut copy);
        let left =
            json!({"labels": {"theirs": "1"}, "annotations": {"test/adoption": "TakeOver", "test/held-by": "x"}});
        assert_eq!(copy["metadata"], left);
        assert!(let_go(&WORDS, &copy).is_empty());
    }
}
