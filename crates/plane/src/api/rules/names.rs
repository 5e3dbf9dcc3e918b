//! The names that a CRD claims, and conflicts with existing ones.

use serde_json::Value;

use crate::resource::Resource;

/// The first name of a CRD that another kind of the same group uses: the condition's reason and its message.
pub(super) fn conflict(crd: &Value, others: &[std::sync::Arc<Resource>]) -> Option<(&'static str, String)> {
    let names = &crd["spec"]["names"];
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let plural = names["plural"].as_str().unwrap_or_default();
    let others: Vec<&Resource> = others
        .iter()
        .map(|other| &**other)
        .filter(|other| *other.group == *group && *other.plural != *plural)
        .collect();
    let taken = |word: &str| {
        others.iter().any(|other| {
            *other.plural == *word || *other.singular == *word || other.short_names.iter().any(|short| short == word)
        })
    };
    let kind_taken = |word: &str| others.iter().any(|other| *other.kind == *word || *other.list_kind == *word);
    let used = |reason, word: &str| Some((reason, format!("{word:?} is already in use")));
    let text = |key: &str| names[key].as_str().unwrap_or_default().to_owned();
    if taken(plural) {
        return used("PluralConflict", plural);
    }
    if taken(&text("singular")) {
        return used("SingularConflict", &text("singular"));
    }
    for short in names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if taken(short) {
            return used("ShortNamesConflict", short);
        }
    }
    if kind_taken(&text("kind")) {
        return used("KindConflict", &text("kind"));
    }
    if kind_taken(&text("listKind")) {
        return used("ListKindConflict", &text("listKind"));
    }
    None
}
