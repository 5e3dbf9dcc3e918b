//! The grammar of label selectors, with Kubernetes' complaints.

use super::Test;
use crate::api::meta;

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
pub(super) fn parse(text: &str) -> Result<Vec<(String, Test)>, String> {
    let mut reader = Reader { tokens: tokens(text), at: 0 };
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

    fn requirement(&mut self) -> Result<(String, Test), String> {
        let absent = self.peek().is("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if let Some(fault) = meta::key_faults(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {fault}"));
        }
        let next = self.peek();
        if absent {
            return Ok((key, Test::Absent));
        }
        if next == Token::End || next.is(",") {
            return Ok((key, Test::Exists));
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
        let number = |values: &[String]| -> Result<i64, String> {
            values[0].parse().map_err(|_| {
                let sign = if operator == ">" { "Gt" } else { "Lt" };
                format!(
                    "values[0][{key}]: Invalid value: {:?}: for '{sign}' operator, the value must be an integer",
                    values[0]
                )
            })
        };
        let test = match operator {
            ">" => Test::Greater(number(&values)?),
            "<" => Test::Less(number(&values)?),
            "!=" | "notin" => Test::NotIn(values.clone()),
            _ => Test::In(values.clone()),
        };
        for (index, value) in values.iter().enumerate() {
            if let Some(fault) = meta::value_fault(value) {
                return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {fault}"));
            }
        }
        Ok((key, test))
    }

    /// What is in brackets; nothing between commas is an empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Word(_) => {}
            sign if sign.is(",") => {}
            sign if sign.is(")") => {
                self.next();
                return Ok(vec![String::new()]);
            }
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        let mut last_was_comma = true;
        loop {
            match self.next() {
                Token::Word(word) if last_was_comma => {
                    values.push(word);
                    last_was_comma = false;
                }
                sign if sign.is(",") => {
                    if last_was_comma {
                        values.push(String::new());
                    }
                    last_was_comma = true;
                }
                sign if sign.is(")") => {
                    if last_was_comma {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
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
