//! Where the answers differ on purpose. The crates' documentation says why.

use serde_json::Value;

use super::Language;

/// Words of a question, and what is different about them.
const WORDS: &[(Language, &str, &str)] = &[
    (Language::Template, "env", "templates do not see the environment"),
    (Language::Template, "getHostByName", "templates do not see the network"),
    (Language::Template, "keys", "keys come sorted"),
    (Language::Template, "values", "values come in the order of their keys"),
    (Language::Cel, "reverse", "texts can be reversed"),
];

/// Parts of our error messages, and why Go answers instead.
const ERRORS: &[(Language, &str, &str)] = &[
    (Language::Template, "template needs more than", "everything is bounded"),
    (Language::Cel, "too many steps", "everything is bounded"),
    (Language::Cel, "too complex", "everything is bounded"),
];

/// Parts of Go's error messages, and why there is an answer here.
const ANSWERED: &[(Language, &str, &str)] = &[(
    Language::Cel,
    "arguments supplied to string.format",
    "only rules of CRDs are refused for a format that does not use all its arguments",
)];

/// Why the answers to a question may differ.
pub fn reason(language: Language, question: &Value, ours: &Value, theirs: &Value) -> Option<&'static str> {
    let text = question["template"].as_str().or(question["expression"].as_str()).unwrap_or_default();
    let (error, their_error) =
        (ours["error"].as_str().unwrap_or_default(), theirs["error"].as_str().unwrap_or_default());
    let word = WORDS.iter().find(|(only, word, _)| *only == language && text.contains(word));
    let limit = ERRORS.iter().find(|(only, part, _)| *only == language && error.contains(part));
    let answered = ANSWERED.iter().find(|(only, part, _)| *only == language && their_error.contains(part));
    word.or(limit).or(answered).map(|(_, _, reason)| *reason)
}
