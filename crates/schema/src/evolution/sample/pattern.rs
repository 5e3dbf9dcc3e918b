//! Texts that match a pattern.

use carrick_go::regex::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};

/// How many texts are made for one pattern.
const MOST: usize = 24;
/// Repetitions without an end are repeated so often at most.
const REPEAT: u32 = 3;

/// A few texts that match; none if the pattern cannot be read. Looking around is ignored: some of them may not match after all.
pub(super) fn texts(pattern: &str) -> Vec<String> {
    let Ok(go) = Pattern::parse(pattern) else { return Vec::new() };
    let Ok(hir) = regex_syntax::parse(go.translated()) else { return Vec::new() };
    let mut texts = made(&hir);
    texts.dedup();
    // A pattern without anchors matches anywhere.
    if !pattern.starts_with('^') || !pattern.ends_with('$') {
        texts.extend(texts.first().map(|first| format!("x{first}y")));
    }
    texts
}

fn made(hir: &Hir) -> Vec<String> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).into_iter().collect(),
        HirKind::Class(class) => of_class(class),
        HirKind::Capture(capture) => made(&capture.sub),
        HirKind::Alternation(branches) => {
            // One of each first, so that none is cut off.
            let all: Vec<Vec<String>> = branches.iter().map(made).collect();
            let longest = all.iter().map(Vec::len).max().unwrap_or_default();
            let turns = (0..longest).flat_map(|turn| all.iter().filter_map(move |texts| texts.get(turn)));
            turns.take(MOST).cloned().collect()
        }
        HirKind::Concat(parts) => {
            let parts: Vec<Vec<String>> = parts.iter().map(made).collect();
            if parts.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            let longest = parts.iter().map(Vec::len).max().unwrap_or_default();
            // The first text varies one part at a time, then all together.
            let first: Vec<&String> = parts.iter().filter_map(|part| part.first()).collect();
            let mut texts = vec![first.iter().map(|text| text.as_str()).collect::<String>()];
            for turn in 1..longest {
                texts.push(parts.iter().map(|part| part[turn % part.len()].as_str()).collect());
            }
            for (place, part) in parts.iter().enumerate() {
                for other in part.iter().skip(1) {
                    let text =
                        first.iter().enumerate().map(|(at, text)| if at == place { other.as_str() } else { text });
                    texts.push(text.collect());
                }
            }
            texts.truncate(MOST);
            texts
        }
        HirKind::Repetition(repetition) => {
            let sub = made(&repetition.sub);
            let most = repetition.max.unwrap_or(repetition.min + REPEAT);
            let counts =
                [repetition.min.max(1).min(most), repetition.min, repetition.min + 1, most.min(repetition.min + 300)];
            let mut texts = Vec::new();
            for count in counts.into_iter().filter(|count| *count <= most) {
                for text in sub.iter().take(6) {
                    texts.push(text.repeat(usize::try_from(count).unwrap_or_default()));
                }
            }
            texts.truncate(MOST);
            texts
        }
    }
}

fn of_class(class: &Class) -> Vec<String> {
    let Class::Unicode(class) = class else {
        let Class::Bytes(class) = class else { return Vec::new() };
        return class.ranges().iter().map(|range| char::from(range.start()).to_string()).take(6).collect();
    };
    let likely = "a1bAZz0-_. /@".chars();
    let within = |wanted: char| class.ranges().iter().any(|range| range.start() <= wanted && wanted <= range.end());
    let mut texts: Vec<String> = likely.filter(|wanted| within(*wanted)).map(String::from).collect();
    texts.extend(class.ranges().iter().take(4).flat_map(|range| [range.start(), range.end()]).map(String::from));
    texts.truncate(8);
    texts
}
