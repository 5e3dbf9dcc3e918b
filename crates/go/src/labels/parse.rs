//! The grammar of label selectors, with Kubernetes' complaints.

use std::collections::BTreeSet;

use super::requirement::{Condition, Requirement};
use crate::names::Words;
use crate::quote::text as quote;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) => text,
            Self::Sign(text) => text,
            Self::End => "",
        }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self, Self::Sign(found) if *found == sign)
    }
}

/// The requirements of a selector, or what is wrong with it.
pub(super) fn requirements(text: &str, words: Words) -> Result<Vec<Requirement>, String> {
    let mut reader = Reader { tokens: tokens(text), at: 0, words };
    let mut tests = Vec::new();
    loop {
        match reader.peek() {
            Token::End => return Ok(tests),
            Token::Word(_) => {}
            sign @ Token::Sign(_) if sign.is("!") => {}
            other @ Token::Sign(_) => {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
            }
        }
        tests.push(reader.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
        match reader.next() {
            Token::End => return Ok(tests),
            comma if comma.is(",") => {
                let next = reader.peek();
                if !matches!(next, Token::Word(_)) && !next.is("!") {
                    return Err(format!("found '{}', expected: identifier after ','", next.text()));
                }
            }
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    words: Words,
}

impl Reader {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek().is("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let faults = self.words.label_key(&key);
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {}: {}", quote(&key), faults.join("; ")));
        }
        let next = self.peek();
        if absent {
            return Ok(Requirement { key, condition: Condition::DoesNotExist });
        }
        if next == Token::End || next.is(",") {
            return Ok(Requirement { key, condition: Condition::Exists });
        }
        let operator = match self.next() {
            Token::Sign(sign @ ("=" | "==" | "!=" | ">" | "<")) => sign,
            Token::Word(word) if word == "in" => "in",
            Token::Word(word) if word == "notin" => "notin",
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        let values = if matches!(operator, "in" | "notin") { self.values()? } else { vec![self.value()?] };
        let mut faults = Vec::new();
        let number = values.first().and_then(|value| value.parse::<i64>().ok());
        if matches!(operator, ">" | "<") && number.is_none() {
            let shown = quote(values.first().map_or("", String::as_str));
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            faults.push(format!("values[0]: Invalid value: {shown}: {why}"));
        }
        for (index, value) in values.iter().enumerate() {
            let wrong = self.words.label_value(value);
            if !wrong.is_empty() {
                faults.push(format!("values[{index}][{key}]: Invalid value: {}: {}", quote(value), wrong.join("; ")));
            }
        }
        if let [fault] = &mut faults[..] {
            return Err(std::mem::take(fault));
        } else if !faults.is_empty() {
            return Err(format!("[{}]", faults.join(", ")));
        }
        let condition = match (operator, number) {
            (">", Some(limit)) => Condition::GreaterThan(limit),
            ("<", Some(limit)) => Condition::LessThan(limit),
            ("!=" | "notin", _) => Condition::NotIn(values),
            _ => Condition::In(values),
        };
        Ok(Requirement { key, condition })
    }

    /// What is in brackets; nothing between commas is an empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.peek() {
            Token::Word(_) => {}
            sign if sign.is(",") => {}
            sign if sign.is(")") => {
                self.next();
                return Ok(vec![String::new()]);
            }
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        // A set, in the order of its members.
        let mut values = BTreeSet::new();
        let mut after_comma = true;
        loop {
            match self.next() {
                Token::Word(word) if after_comma => {
                    values.insert(word);
                    after_comma = false;
                }
                sign if sign.is(",") => {
                    if after_comma {
                        values.insert(String::new());
                    }
                    after_comma = true;
                }
                sign if sign.is(")") => {
                    if after_comma {
                        values.insert(String::new());
                    }
                    return Ok(values.into_iter().collect());
                }
                other if after_comma => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }

    /// One value, which may be left out.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            Token::End => Ok(String::new()),
            sign @ Token::Sign(_) if sign.is(",") => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            other @ Token::Sign(_) => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            return tokens;
        }
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
            continue;
        }
        let end = rest.find([' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '>', '<']).unwrap_or(rest.len());
        tokens.push(Token::Word(rest[..end].to_owned()));
        rest = &rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::super::Selector;

    /// The answers of `labels.Parse` of Kubernetes 1.34: a selector, what is wrong with it, and how it prints.
    #[test]
    fn what_kubernetes_refuses_is_refused_in_its_words() {
        let recorded: Vec<(String, Option<String>)> =
            serde_json::from_str(include_str!("../../tests/selectors.json")).unwrap();
        for (text, fault) in recorded {
            let got = Selector::parse(&text).err().map(|error| error.to_string());
            assert_eq!(got, fault, "{text}");
        }
    }
}
