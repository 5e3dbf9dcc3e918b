//! What paths are made of, with examples: the source of the reference page.
//!
//! Examples read [`DOCUMENT`] (a path, and the raw JSON it leads to) or change [`SMALL`] (`set path value` or
//! `delete path`, and the document afterwards). Tests run every example, and compare the modifiers and operators with
//! the tables that implement them.

/// What there is to know about one part of the path language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxDoc {
    /// As it is written.
    pub name: &'static str,
    /// What it belongs to.
    pub group: &'static str,
    /// How it is used.
    pub usage: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// A path and what it leads to, or a change and the document afterwards.
    pub example: Option<(&'static str, &'static str)>,
}

/// The document that the examples of reading look into.
pub const DOCUMENT: &str = r#"{"name":{"first":"Tom","last":"Anderson"},"age":37,"children":["Sara","Alex","Jack"],"fav.movie":"Deer Hunter","friends":[{"first":"Dale","last":"Murphy","age":44,"nets":["ig","fb"]},{"first":"Roger","last":"Craig","age":68,"nets":["fb"]},{"first":"Jane","last":"Murphy","age":47,"nets":["ig","tw"],"vip":true}],"columns":{"id":["x","y"],"n":[1,2]},"nested":[[1,2],[3,[4]]],"quoted":"{\"in\":[1]}","big":12345678901234567890}"#;

/// The document that the examples of writing start from.
pub const SMALL: &str = r#"{"a":{"b":1},"l":[1,2,3]}"#;

const ELEMENTS: &str = "Path elements";
const OPERATORS: &str = "Query operators";
const LOOSE: &str = "Loose values in queries";
const MODIFIERS: &str = "Modifiers";
const WRITING: &str = "Writing";

/// All entries, in the order in which to show them.
pub fn entries() -> Vec<SyntaxDoc> {
    ROWS.iter()
        .map(|&(group, name, usage, summary, example)| SyntaxDoc { name, group, usage, summary, example })
        .collect()
}

type Row = (&'static str, &'static str, &'static str, &'static str, Option<(&'static str, &'static str)>);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (ELEMENTS, "key", "name.last", "The member of an object. Keys are joined by dots; of duplicates the first one counts.", Some(("name.last", r#""Anderson""#))),
    (ELEMENTS, "index", "children.1", "The element of an array, counted from 0.", Some(("children.1", r#""Alex""#))),
    (ELEMENTS, "\\", r"fav\.movie", "Takes the next character as part of the key: for dots, pipes, wildcards and the like.", Some((r"fav\.movie", r#""Deer Hunter""#))),
    (ELEMENTS, "*", "child*.2", "Stands for any text in a key. The first key below which the rest of the path exists counts.", Some(("child*.2", r#""Jack""#))),
    (ELEMENTS, "?", "c?ildren.0", "Stands for any one character in a key.", Some(("c?ildren.0", r#""Sara""#))),
    (ELEMENTS, "#", "children.#", "At the end of a path: the number of elements.", Some(("children.#", "3"))),
    (ELEMENTS, "#.", "friends.#.age", "What the rest of the path leads to in each element that has it, as an array.", Some(("friends.#.age", "[44,68,47]"))),
    (ELEMENTS, "#(…)", "friends.#(last==\"Murphy\").first", "The first element that satisfies a query, `path operator value`. Without operator the path has to exist, without path the element itself is compared. Queries can be nested.", Some((r#"friends.#(nets.#(=="tw")).first"#, r#""Jane""#))),
    (ELEMENTS, "#(…)#", "friends.#(age>45)#.last", "All elements that satisfy a query, as an array.", Some(("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#))),
    (ELEMENTS, "|", "friends.#.age|0", "Applies the rest of the path to the result so far, where a dot would apply it to each element.", Some(("friends.#.age|0", "44"))),
    (ELEMENTS, "{…}", r#"{name.first,"years":age}"#, "A new object of several paths, with given keys or the last part of each path.", Some((r#"{name.first,"years":age}"#, r#"{"first":"Tom","years":37}"#))),
    (ELEMENTS, "[…]", "[age,children.0]", "A new array of several paths. Paths that lead nowhere are left out.", Some(("[age,children.0,nope]", r#"[37,"Sara"]"#))),
    (ELEMENTS, "!", r#"{age,"kind":!"person"}"#, "A literal JSON value, mostly inside multipaths.", Some((r#"{age,"kind":!"person"}"#, r#"{"age":37,"kind":"person"}"#))),
    (ELEMENTS, "@", "children.@reverse", "Calls a modifier, with an argument after a colon: JSON, or text up to the next pipe.", Some(("children.@reverse.0", r#""Jack""#))),
    (ELEMENTS, "..", "..#", "At the start: takes the document as JSON lines, an array of the values in it.", Some(("..0.age", "37"))),

    (OPERATORS, "==", r#"#(first=="Jane")"#, "Equal. Strings are compared as text, numbers as floats; quotes around the value are optional.", Some((r#"friends.#(first=="Jane").age"#, "47"))),
    (OPERATORS, "=", r#"#(first="Jane")"#, "The same as ==.", Some((r#"friends.#(first="Jane").age"#, "47"))),
    (OPERATORS, "!=", r#"#(last!="Murphy")"#, "Not equal.", Some((r#"friends.#(last!="Murphy").first"#, r#""Roger""#))),
    (OPERATORS, "<", "#(age<45)", "Less; text by its bytes.", Some(("friends.#(age<45).first", r#""Dale""#))),
    (OPERATORS, "<=", "#(age<=47)", "Less or equal.", Some(("friends.#(age<=47)#.first", r#"["Dale","Jane"]"#))),
    (OPERATORS, ">", "#(age>45)", "Greater.", Some(("friends.#(age>45).first", r#""Roger""#))),
    (OPERATORS, ">=", "#(age>=47)", "Greater or equal.", Some(("friends.#(age>=47)#.first", r#"["Roger","Jane"]"#))),
    (OPERATORS, "%", r#"#(first%"J*")"#, "Text that matches a pattern with * and ?.", Some((r#"friends.#(first%"J*").first"#, r#""Jane""#))),
    (OPERATORS, "!%", r#"#(first!%"D*")"#, "Text that does not match a pattern.", Some((r#"friends.#(first!%"D*").first"#, r#""Roger""#))),

    (LOOSE, "~true", "#(vip==~true)", "What looks true: true, numbers other than 0, the texts 1, t and true.", Some(("friends.#(vip==~true).first", r#""Jane""#))),
    (LOOSE, "~false", "#(vip==~false)", "What looks false or is missing: false, null, 0, the texts 0, f and false.", Some(("friends.#(vip==~false)#.first", r#"["Dale","Roger"]"#))),
    (LOOSE, "~null", "#(vip==~null)", "Null or missing.", Some(("friends.#(vip==~null).first", r#""Dale""#))),
    (LOOSE, "~*", "#(vip==~*)", "Anything that exists.", Some(("friends.#(vip!=~*)#.first", r#"["Dale","Roger"]"#))),

    (MODIFIERS, "this", "@this", "The value itself.", Some(("name.@this.first", r#""Tom""#))),
    (MODIFIERS, "valid", "@valid", "The value if it is valid JSON, else nothing.", Some(("age.@valid", "37"))),
    (MODIFIERS, "pretty", r#"@pretty:{"sortKeys":true,"indent":"  ","prefix":"","width":80}"#, "The JSON over several lines. Arrays that fit into the width stay on one line.", Some((r#"columns.@pretty:{"indent":" "}"#, "{\n \"id\": [\"x\", \"y\"],\n \"n\": [1, 2]\n}\n"))),
    (MODIFIERS, "ugly", "@ugly", "The JSON without whitespace.", Some(("columns.@pretty.@ugly", r#"{"id":["x","y"],"n":[1,2]}"#))),
    (MODIFIERS, "reverse", "@reverse", "The elements or members in reverse order.", Some(("name.@reverse", r#"{"last":"Anderson","first":"Tom"}"#))),
    (MODIFIERS, "flatten", r#"@flatten:{"deep":true}"#, "An array with nested arrays replaced by their elements, at all levels with `deep`.", Some((r#"nested.@flatten:{"deep":true}"#, "[1,2,3,4]"))),
    (MODIFIERS, "join", r#"@join:{"preserve":true}"#, "One object of all objects in an array; of equal keys the last one counts, or all with `preserve`.", Some(("friends.@join.@keys", r#"["first","last","age","nets","vip"]"#))),
    (MODIFIERS, "keys", "@keys", "The keys of an object.", Some(("name.@keys", r#"["first","last"]"#))),
    (MODIFIERS, "values", "@values", "The values of an object.", Some(("name.@values", r#"["Tom","Anderson"]"#))),
    (MODIFIERS, "tostr", "@tostr", "The JSON as a string.", Some(("nested.0.@tostr", r#""[1,2]""#))),
    (MODIFIERS, "fromstr", "@fromstr", "The JSON inside a string.", Some(("quoted.@fromstr.in", "[1]"))),
    (MODIFIERS, "group", "@group", "An array of objects from an object of arrays.", Some(("columns.@group", r#"[{"id":"x","n":1},{"id":"y","n":2}]"#))),
    (MODIFIERS, "dig", "@dig:path", "What is at the path in the value and in everything below it, as an array.", Some(("@dig:vip", "[true]"))),

    (WRITING, "key", "a.b", "Replaces the value, or adds the key. Missing parents become objects, scalars on the way are replaced by them.", Some((r#"set a.c.d "x""#, r#"{"a":{"b":1,"c":{"d":"x"}},"l":[1,2,3]}"#))),
    (WRITING, "index", "l.4", "Replaces an element, or adds it with nulls before it. A missing parent becomes an array.", Some(("set l.4 5", r#"{"a":{"b":1},"l":[1,2,3,null,5]}"#))),
    (WRITING, "-1", "l.-1", "Appends to an array. When deleting: its last element.", Some(("set l.-1 4", r#"{"a":{"b":1},"l":[1,2,3,4]}"#))),
    (WRITING, ":", "m.:1", "Makes a number a key of an object.", Some(("set m.:1 true", r#"{"a":{"b":1},"l":[1,2,3],"m":{"1":true}}"#))),
    (WRITING, "\\", r"a.x\.y", "Takes the next character as part of the key.", Some((r"set a.x\.y 2", r#"{"a":{"b":1,"x.y":2},"l":[1,2,3]}"#))),
    (WRITING, "complex", "l.#(>1)#", "Paths with | # @ * or ? replace what they lead to, at all places, and do nothing where there is nothing.", Some(("set l.#(>1)# 0", r#"{"a":{"b":1},"l":[1,0,0]}"#))),
    (WRITING, "delete", "l.0", "Removes a member or an element; those after it move up. Needs a path without | # @ * and ?.", Some(("delete l.0", r#"{"a":{"b":1},"l":[2,3]}"#))),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::path::{modifier, query, text};

    fn run(change: &str) -> String {
        let words: Vec<&str> = change.splitn(3, ' ').collect();
        match words[..] {
            ["set", path, value] => text::set(SMALL, path, value).unwrap(),
            ["delete", path] => text::delete(SMALL, path).unwrap(),
            _ => panic!("{change} is no change"),
        }
    }

    #[test]
    fn every_example_gives_what_it_says() {
        for entry in entries() {
            let Some((input, output)) = entry.example else { continue };
            let got = if entry.group == WRITING { run(input) } else { text::get(DOCUMENT, input).raw().to_owned() };
            assert_eq!(got, output, "{} {}: {input}", entry.group, entry.name);
        }
    }

    #[test]
    fn modifiers_and_operators_are_those_that_exist() {
        let names = |group: &str| -> BTreeSet<&str> {
            entries().into_iter().filter(|entry| entry.group == group).map(|entry| entry.name).collect()
        };
        assert_eq!(names(MODIFIERS), modifier::MODIFIERS.iter().map(|(name, _)| *name).collect());
        assert_eq!(names(OPERATORS), query::OPERATORS.iter().map(|(name, _)| *name).collect());
    }

    #[test]
    fn every_entry_is_told_apart_and_explained() {
        let mut seen = BTreeSet::new();
        for entry in entries() {
            assert!(seen.insert((entry.group, entry.name)), "{} twice", entry.name);
            assert!(
                entry.summary.ends_with('.') && entry.example.is_some() && !entry.usage.is_empty(),
                "{}",
                entry.name
            );
        }
    }
}
