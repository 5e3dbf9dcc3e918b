//! What expressions can call, for documentation: taken from the tables that implement it.

mod texts;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::functions::LIBRARIES;
use crate::macros::MACROS;
use crate::signature::overloads;
use texts::TEXTS;

/// A function, operator or macro.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionDoc {
    /// Its name; operators have `_` where their operands are.
    pub name: &'static str,
    /// The library, and who has it if not everyone does.
    pub group: &'static str,
    /// How it is called, one way per line.
    pub usage: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// An expression and its result as JSON.
    pub example: Option<(&'static str, &'static str)>,
}

/// All of them, by library.
pub fn entries() -> Vec<FunctionDoc> {
    ENTRIES.clone()
}

static ENTRIES: LazyLock<Vec<FunctionDoc>> = LazyLock::new(|| {
    let mut usages = usages();
    let mut entries = Vec::new();
    for &(group, name, summary, input, output) in TEXTS {
        let usage = usages.remove(&(group, name.to_owned())).unwrap_or_default().join("\n");
        // made once and kept
        entries.push(FunctionDoc { name, group, usage: usage.leak(), summary, example: Some((input, output)) });
    }
    entries
});

/// How everything is called, by library and name.
fn usages() -> BTreeMap<(&'static str, String), Vec<String>> {
    let mut usages: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    let rows = LIBRARIES.iter().flat_map(|library| library.rows.iter().map(|row| (library.name, row)));
    for (library, row) in rows {
        let lines = row.0.lines().map(str::trim).filter(|line| !line.is_empty());
        for (line, overload) in lines.zip(overloads(row)) {
            let parameters: Vec<String> = overload.parameters.iter().map(ToString::to_string).collect();
            let usage = if overload.is_operator() {
                format!("{}: {}", written(&overload.name, &parameters), overload.result)
            } else {
                line.to_owned()
            };
            usages.entry((library, overload.name)).or_default().push(usage);
        }
    }
    usages.entry(("macros", "has".to_owned())).or_default().push("has(value.field): bool".to_owned());
    for shape in MACROS {
        let variables = if shape.variables == 2 { "key, value" } else { "item" };
        let filter = if shape.filtered { ", condition" } else { "" };
        let group = if shape.rules { "macros (rules only)" } else { "macros" };
        let usage = format!("values.{}({variables}{filter}, expression)", shape.name);
        usages.entry((group, shape.name.to_owned())).or_default().push(usage);
    }
    usages
}

/// An operator between its operands.
fn written(name: &str, operands: &[String]) -> String {
    match (name, operands) {
        ("@in", [item, list]) => format!("{item} in {list}"),
        ("_?_:_", [condition, yes, no]) => format!("{condition} ? {yes} : {no}"),
        ("_[_]", [value, key]) => format!("{value}[{key}]"),
        ("_[?_]", [value, key]) => format!("{value}[?{key}]"),
        (name, [left, right]) => format!("{left} {} {right}", name.trim_matches('_')),
        (name, operands) => format!("{}{}", name.trim_matches('_'), operands.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::to_json;
    use crate::environment;
    use crate::expression::Expression;
    use crate::input::Input;
    use crate::value::Value;

    #[test]
    fn everything_that_can_be_called_is_described_once() {
        let known: Vec<(&str, String)> = usages().into_keys().collect();
        let mut reported: Vec<(&str, String)> =
            entries().iter().map(|entry| (entry.group, entry.name.to_owned())).collect();
        reported.sort_unstable();
        assert_eq!(reported, known);
        assert!(entries().iter().all(|entry| !entry.usage.is_empty() && entry.summary.ends_with('.')));
    }

    #[test]
    fn examples_give_what_they_say() {
        for entry in entries() {
            let Some((input, output)) = entry.example else { continue };
            let rules_only = entry.group.ends_with("(rules only)");
            for (environment, known) in [
                (environment::rule(), !entry.group.ends_with("(mutations only)")),
                (environment::mutation(), !rules_only),
            ] {
                if known {
                    let compiled = Expression::compile(input, environment, &[]).unwrap();
                    let value = compiled.eval(|_| Ok(Input::Value(Value::Null))).and_then(|value| to_json(&value));
                    assert_eq!(value.unwrap().to_string(), output, "{input}");
                }
            }
        }
    }
}
