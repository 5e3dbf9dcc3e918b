//! Changes texts at random, so that many of them stay almost correct.

use super::random::Random;

/// A pool of texts and of the tokens they are made of.
#[derive(Debug)]
pub struct Pool {
    texts: Vec<Vec<String>>,
    words: Vec<String>,
    literals: Vec<String>,
    rest: Vec<String>,
}

impl Pool {
    /// A pool of these texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let texts: Vec<Vec<String>> = texts.into_iter().map(|text| tokens(&text)).collect();
        let mut pool = Self { texts: Vec::new(), words: Vec::new(), literals: Vec::new(), rest: Vec::new() };
        for token in texts.iter().flatten() {
            pool.of(token).push(token.clone());
        }
        for tokens in [&mut pool.words, &mut pool.literals, &mut pool.rest] {
            tokens.sort();
            tokens.dedup();
        }
        pool.texts = texts;
        pool
    }

    /// The tokens of the same kind.
    fn of(&mut self, token: &str) -> &mut Vec<String> {
        match token.chars().next() {
            Some('"' | '\'' | '`' | '0'..='9') => &mut self.literals,
            Some(c) if is_word(c) => &mut self.words,
            _ => &mut self.rest,
        }
    }

    /// A text of the pool with up to so many changes: a token is another one, left out or put in, or the rest is that of
    /// another text.
    pub fn mutated(&mut self, random: &mut Random, most: usize) -> String {
        let mut text = random.pick(&self.texts).clone();
        for _ in 0..=random.below(most) {
            let at = random.below(text.len());
            match random.below(10) {
                // A token of the same kind keeps most texts correct.
                0..=6 if !text.is_empty() => {
                    let token = text[at].clone();
                    text[at].clone_from(random.pick(self.of(&token)));
                }
                7 if !text.is_empty() => drop(text.remove(at)),
                8 => {
                    let kinds: [&[String]; 3] = [&self.words, &self.literals, &self.rest];
                    let kind = *random.pick(&kinds);
                    text.insert(at, random.pick(kind).clone());
                }
                _ => {
                    let other = random.pick(&self.texts);
                    let from = random.below(other.len());
                    text.truncate(at);
                    text.extend_from_slice(&other[from.min(other.len())..]);
                }
            }
        }
        text.concat()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Words, numbers, quoted texts, white space, and single characters; braces of actions stay together.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' | '`' => quoted(rest, first),
            _ if rest.starts_with("{{") || rest.starts_with("}}") => 2,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = behind;
    }
    tokens
}

/// The length of a quoted text, up to its end or that of the whole.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote != '`' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_text() {
        let text = r#"{{- .a | b "c\"d" 1.5 -}} é `x"`"#;
        assert_eq!(tokens(text).concat(), text);
        assert_eq!(tokens(r#"{{ f "a b" }}"#), ["{{", " ", "f", " ", r#""a b""#, " ", "}}"]);
    }
}
