//! Which parts of the data a template can look at, so that rendering converts no others.
//!
//! Found out once, when compiling: fields of the root are followed as far as they are written down. A value that is passed on as
//! a whole (to a function, a variable, a loop, another template) is needed as a whole.

mod walk;

use std::collections::HashMap;

/// What is needed of a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// All of it.
    pub(crate) whole: bool,
    /// Only these fields of it.
    pub(crate) fields: HashMap<String, Needs>,
    /// Whether what only becomes part of a digest is left out.
    skips_digests: bool,
}

impl Needs {
    /// Everything.
    pub(crate) fn all() -> Needs {
        Needs { whole: true, ..Needs::default() }
    }

    /// All fields that are named, as far as they are written down.
    pub(crate) fn paths(&self) -> Vec<Vec<&str>> {
        let mut paths = Vec::new();
        for (name, needs) in &self.fields {
            let below = needs.paths();
            if needs.whole || below.is_empty() {
                paths.push(vec![name.as_str()]);
            }
            paths.extend(below.into_iter().map(|path| [&[name.as_str()], path.as_slice()].concat()));
        }
        paths
    }

    fn add(&mut self, path: &[String]) {
        let mut needs = self;
        for name in path {
            if needs.whole {
                return;
            }
            needs = needs.fields.entry(name.clone()).or_default();
        }
        needs.whole = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::Template;

    #[test]
    fn what_becomes_part_of_a_digest_is_not_in_clear() {
        for (text, wanted) in [
            ("{{ .A.b | sha3short }}-{{ sha256sum .A.c }}", Some(vec![])),
            ("{{ .A.b | sha3short }}-{{ .A.b }}", Some(vec!["A.b"])),
            ("{{ .A.b | sha3short | upper }}", Some(vec!["A.b"])),
            ("{{ if .A.b }}x{{ end }}", Some(vec!["A.b"])),
            ("{{ (.A.b | sha3short) | upper }}{{ .C }}", Some(vec!["C"])),
            ("{{ toJson . }}", None),
            ("{{ $ }}", None),
            ("x", Some(vec![])),
        ] {
            let template = Template::compile(text).unwrap();
            let clear = template.fields_in_clear();
            let found = clear.map(|fields| fields.iter().map(|path| path.join(".")).collect::<Vec<_>>());
            let wanted = wanted.map(|fields| fields.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn fields_are_named_as_far_as_they_are_written_down() {
        let named = |text: &str| -> Vec<String> {
            let template = Template::compile(text).unwrap();
            template.fields().iter().map(|path| path.join(".")).collect()
        };
        for (text, wanted) in [
            ("{{ .A.b.c | upper }}-{{ $.A.d }}", vec!["A.b.c", "A.d"]),
            ("{{ if .A.b }}{{ .C }}{{ else }}{{ .D.e }}{{ end }}", vec!["A.b", "C", "D.e"]),
            ("{{ with .A.b }}{{ .x }}{{ $.C.d }}{{ end }}", vec!["A.b", "C.d"]),
            ("{{ range .A.list }}{{ .x }}{{ end }}", vec!["A.list"]),
            ("{{ $x := .A }}{{ $x.b }}{{ (index .B 0).c }}", vec!["A", "B"]),
            ("{{ .A.b }}{{ .A }}", vec!["A", "A.b"]),
            ("nothing", vec![]),
        ] {
            assert_eq!(named(text), wanted, "{text}");
        }
    }
}
