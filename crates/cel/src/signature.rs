//! Functions, declared by their signatures: `string.charAt(int): string`, `list(T).indexOf(T): int`.

use crate::budget::Budget;
use crate::error::EvalError;
use crate::types::Type;
use crate::value::Value;

/// Computes the result of a function; the value it is called on comes first.
pub(crate) type Run = fn(&[Value], &Budget) -> Result<Value, EvalError>;

/// Signatures, one per line, and what computes them all.
pub(crate) type Row = (&'static str, Run);

/// One way to call a function.
pub(crate) struct Overload {
    pub name: String,
    /// Whether it is called on a value.
    pub member: bool,
    pub parameters: Vec<Type>,
    pub result: Type,
    pub run: Run,
}

impl std::fmt::Debug for Overload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Overload {
    /// Whether it is written as an operator.
    pub fn is_operator(&self) -> bool {
        self.name.starts_with(['_', '-', '!', '@'])
    }

    /// Whether it orders numbers of different types.
    pub fn crosses(&self) -> bool {
        let orders = matches!(self.name.as_str(), "_<_" | "_<=_" | "_>_" | "_>=_");
        orders && self.parameters.first() != self.parameters.last()
    }

    /// Whether the values have the types of the parameters, apart from what they contain.
    pub fn takes(&self, arguments: &[Value]) -> bool {
        self.parameters.len() == arguments.len()
            && self.parameters.iter().zip(arguments).all(|(wanted, given)| {
                matches!(wanted, Type::Dyn | Type::Param(_)) || wanted.name() == given.kind().name()
            })
    }
}

/// The overloads of a row.
pub(crate) fn overloads(row: &Row) -> impl Iterator<Item = Overload> {
    let run = row.1;
    row.0.lines().map(str::trim).filter(|line| !line.is_empty()).map(move |line| parse(line, run))
}

/// Parses `receiver.name(types): result` or `name(types): result`; the receiver is a type, never a name with dots.
fn parse(line: &str, run: Run) -> Overload {
    let (call, result) = line.rsplit_once(": ").unwrap_or((line, "dyn"));
    let open = opening(call);
    let (path, inside) = (&call[..open], &call[open + 1..call.len() - 1]);
    let (receiver, name) = match path.rsplit_once('.') {
        Some((before, name)) if is_type(before) => (Some(before), name),
        _ => (None, path),
    };
    let parameters = receiver.into_iter().chain(split(inside)).map(named).collect();
    Overload { name: name.to_owned(), member: receiver.is_some(), parameters, result: named(result), run }
}

/// The opening parenthesis that matches the last one.
fn opening(call: &str) -> usize {
    let mut depth = 0;
    for (at, c) in call.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 1 => return at,
            '(' => depth -= 1,
            _ => {}
        }
    }
    0
}

fn is_type(text: &str) -> bool {
    text.ends_with(')') || simple(text).is_some()
}

/// The parts between commas, except commas inside parentheses.
fn split(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(inside[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside.trim().is_empty() {
        parts.push(inside[start..].trim());
    }
    parts
}

fn simple(name: &str) -> Option<Type> {
    Some(match name {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "URL" => Type::Url,
        "Quantity" => Type::Quantity,
        "IP" => Type::Ip,
        "CIDR" => Type::Cidr,
        "Semver" => Type::Semver,
        "Format" => Type::Format,
        "A" | "B" | "K" | "V" => Type::Param(name.chars().next()?),
        _ => return Type::named(name),
    })
}

fn named(text: &str) -> Type {
    if let Some((outer, inside)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let inside: Vec<Type> = split(inside).into_iter().map(named).collect();
        return match (outer, inside.as_slice()) {
            ("list", [item]) => Type::list(item.clone()),
            ("optional", [value]) => Type::optional(value.clone()),
            ("type", [of]) => Type::meta(of.clone()),
            ("map", [key, value]) => Type::map(key.clone(), value.clone()),
            _ => Type::Dyn,
        };
    }
    simple(text).unwrap_or(Type::Dyn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_say_what_a_function_takes_and_gives() {
        let row: Row =
            ("list(A).indexOf(A): int\n sets.contains(list(A), list(A)): bool\n f(): map(string, int)", |_, _| {
                Ok(Value::Null)
            });
        let shown: Vec<String> = overloads(&row)
            .map(|found| {
                let parameters: Vec<String> = found.parameters.iter().map(ToString::to_string).collect();
                format!("{} {} [{}] {}", found.name, found.member, parameters.join("; "), found.result)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "indexOf true [list(A); A] int",
                "sets.contains false [list(A); list(A)] bool",
                "f false [] map(string, int)"
            ]
        );
    }
}
