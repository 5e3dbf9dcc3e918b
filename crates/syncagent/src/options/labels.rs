//! The grammar of label selectors, label values and DNS labels.

/// Checks a label selector in text form: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
pub(super) fn check_selector(text: &str) -> Result<(), String> {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return Ok(());
    }
    let mut rest = tokens.as_slice();
    loop {
        rest = requirement(rest)?;
        match rest {
            [] => return Ok(()),
            [",", tail @ ..] if !tail.is_empty() => rest = tail,
            [","] => return Err("a requirement must follow the last comma".to_owned()),
            [found, ..] => return Err(format!("found {found:?}, expected a comma or the end")),
        }
    }
}

/// Checks one requirement at the front and returns what follows it.
fn requirement<'a, 'b>(tokens: &'b [&'a str]) -> Result<&'b [&'a str], String> {
    let (key, rest) = match tokens {
        ["!", key, rest @ ..] => {
            check_key(key)?;
            return Ok(rest);
        }
        ["!"] | [] => return Err("a label key is missing".to_owned()),
        [key, rest @ ..] => (*key, rest),
    };
    check_key(key)?;
    match rest {
        [] | [",", ..] => Ok(rest),
        ["=" | "==" | "!=", rest @ ..] => match rest {
            [] | [",", ..] => Ok(rest),
            [value, rest @ ..] => check_value(value).map(|()| rest),
        },
        [operator @ (">" | "<"), rest @ ..] => match rest {
            [value, rest @ ..] if value.parse::<i64>().is_ok() => Ok(rest),
            _ => Err(format!("{key} {operator} needs a whole number")),
        },
        [operator @ ("in" | "notin"), "(", rest @ ..] => {
            let Some(end) = rest.iter().position(|token| *token == ")") else {
                return Err(format!("the list of values of {key} has no closing parenthesis"));
            };
            let values = &rest[..end];
            if values.is_empty() {
                return Err(format!("{key} {operator} () needs at least one value"));
            }
            let mut after_value = false;
            for token in values {
                match (*token, after_value) {
                    (",", _) => after_value = false,
                    (value, false) => {
                        check_value(value)?;
                        after_value = true;
                    }
                    (found, true) => return Err(format!("found {found:?}, expected a comma or a closing parenthesis")),
                }
            }
            Ok(&rest[end + 1..])
        }
        ["in" | "notin", ..] => Err(format!("values of {key} must be given in parentheses")),
        [found, ..] => Err(format!("found {found:?}, expected one of = == != in notin > <, a comma or the end")),
    }
}

/// Splits into words and the special characters of the grammar.
fn tokens(text: &str) -> Vec<&str> {
    const SPECIAL: &[char] = &['(', ')', ',', '!', '=', '<', '>'];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if SPECIAL.contains(&first) {
            1
        } else {
            rest.find(|c: char| c.is_whitespace() || SPECIAL.contains(&c)).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

/// Checks a label key: `name` or `dns.prefix/name`.
fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let valid_prefix =
        prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(carrick_kcp::path::is_label));
    if valid_prefix && !name.is_empty() && check_value(name).is_ok() {
        Ok(())
    } else {
        Err(format!("{key:?} is not a label key"))
    }
}

/// Checks a label value: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, or nothing.
pub(super) fn check_value(value: &str) -> Result<(), String> {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let inner = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b));
    if value.len() > 63 {
        Err(format!("{value:?} is longer than 63 characters"))
    } else if inner && edge(bytes.first()) && edge(bytes.last()) {
        Ok(())
    } else {
        Err(format!("{value:?} is not a label value"))
    }
}

/// What keeps a name from being a DNS-1035 label.
pub(super) fn dns_1035_problems(name: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push("must be no more than 63 characters");
    }
    let bytes = name.as_bytes();
    let letters = bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    let starts = bytes.first().is_some_and(u8::is_ascii_lowercase);
    let ends = bytes.last().is_some_and(|b| *b != b'-');
    if !(letters && starts && ends) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name', or 'abc-123')",
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_of_the_kubernetes_grammar_are_accepted() {
        for good in [
            "",
            "  ",
            "a",
            "!a",
            "! a",
            "a=b",
            "a = b",
            "a==b,c!=d",
            "a=",
            "a=,b",
            "x in (a)",
            "x in (a, b ,c),y notin(d)",
            "x in (a,,b)",
            "x in (,)",
            "example.com/team=Blue_1.x",
            "n>5,m<-3",
            "in in (in)",
        ] {
            assert_eq!(check_selector(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn other_selectors_are_refused() {
        for bad in [
            ",",
            "a,",
            "=b",
            "a b",
            "a in b",
            "a in (b",
            "a in ()",
            "a in (b c)",
            "a>x",
            "!",
            "a=b=c",
            "a=-b",
            "/a",
            "A.example/x=1",
            "a in (b))",
            "-a",
            "a==!b",
            "a!",
            "a,,b",
            "ä",
        ] {
            assert!(check_selector(bad).is_err(), "{bad}");
        }
        let long = format!("a={}", "x".repeat(64));
        assert_eq!(check_selector(&long), Err(format!("{:?} is longer than 63 characters", "x".repeat(64))));
    }

    #[test]
    fn agent_names_are_dns_1035_labels() {
        for good in ["a", "my-agent", "a1", &"a".repeat(63)] {
            assert!(dns_1035_problems(good).is_empty(), "{good}");
        }
        for bad in ["1a", "-a", "a-", "a.b", "A", "a_b", &"a".repeat(64)] {
            assert_eq!(dns_1035_problems(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns_1035_problems(&"A".repeat(64)).len(), 2);
    }
}
