//! What a misspelt name may have meant.

/// The candidate whose spelling is closest to the name, if one is close.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 1 + name.chars().count() / 4;
    let distances = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    distances.min().filter(|(distance, _)| *distance <= allowed).map(|(_, candidate)| candidate)
}

/// How many letters have to be changed, added or removed, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["upper", "lower", "trunc", "sha3short", "toJson"];
        for (name, wanted) in [
            ("uper", Some("upper")),
            ("toJSON", Some("toJson")),
            ("sha3shrot", Some("sha3short")),
            ("truncate", Some("trunc")),
            ("capitalise", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known), wanted, "{name}");
        }
    }
}
