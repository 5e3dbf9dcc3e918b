//! Go's text/template with the functions of sprig. No I/O, bounded time, memory and output.
//!
//! ```text
//!  text ──▶ lex ──▶ parse ──▶ tree ─────────────┐            compile: once
//!            │        └─ table (functions)      │
//!            └─ literal (constants)             ▼
//!  data ──▶ heap (Go-typed values, budgets) ─▶ eval ──▶ output   render: many times, of the data only what `needs` found
//!                                               ├─ builtin, sprig/* (functions), methods, found (gjson results)
//!                                               └─ fmt (how Go prints values)
//! ```
//!
//! Values have Go's types, because types show: an integer of the data is an `int64` and does not fit where a function wants an
//! `int`, `eq 1 1.0` is an error, a float of a million prints as `1e+06`. Strings are bytes. Maps are shared, so `set` is seen
//! everywhere.
//!
//! # What differs from Go
//!
//! - `env`, `expandenv` and `getHostByName` yield nothing: templates see neither the environment nor the network.
//! - Local time is UTC, and time zones come from a database inside the crate.
//! - `keys` and `values` come sorted; in Go their order is random.
//! - Everything is bounded by [`limits`]; what exceeds them is an error.
//! - Error messages are our own.
//! - sprig's functions for keys, certificates, salted hashes and encryption are refused when compiling: they give another result at every
//!   rendering, so that whoever compares the results sees a change each time. Random characters, UUIDs and the time of day are there;
//!   [`Template::compile_steady`] refuses the random ones as well.
//! - Output is UTF-8: every byte that is not becomes a replacement character, as it would in Go's JSON.
//! - What Go shows of its memory cannot be the same: `%p`, `%d` of a time, and pointers inside `%#v`. Nor can random values,
//!   and the place of a gjson result in the original text (`.Value.Index`).
//! - Methods of times and versions are the usual ones, not all; no data holds a function to `call`.
//! - Dates are exact for some 290 000 years around 1970 only; Go's arithmetic wraps around beyond.
//!
//! ```
//! use carrick_template::Template;
//!
//! let template = Template::compile("{{ .Object.metadata.name | upper | trunc 5 }}-{{ .ClusterName }}")?;
//! let data = serde_json::json!({"Object": {"metadata": {"name": "database"}}, "ClusterName": "c1"});
//! assert_eq!(template.render(data.as_object().unwrap())?, "DATAB-c1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod compare;
mod error;
mod escape;
mod eval;
mod fmt;
mod found;
mod functions;
mod gjson;
mod heap;
mod lex;
pub mod limits;
mod literal;
mod methods;
mod named;
mod needs;
mod parse;
mod position;
mod print;
pub mod reference;
mod sprig;
mod table;
mod time;
mod tree;
mod value;

use std::sync::Arc;

use carrick_go::runes;
use serde_json::{Map, Value};

pub use error::{CompileError, RenderError};
use eval::Data;
pub use gjson::Get;
pub use position::Position;

/// A compiled template: compile once, render many times, clone cheaply.
#[derive(Clone, Debug)]
pub struct Template {
    text: Arc<str>,
    tree: Arc<tree::Tree>,
    needs: Arc<needs::Needs>,
    /// What is printed for nothing.
    absent: &'static str,
}

impl Template {
    /// Parses a template text; unknown functions are refused here.
    pub fn compile(text: &str) -> Result<Template, CompileError> {
        Template::parse(text, false)
    }

    /// Parses a template text that has to give the same for the same data: random functions are refused as well.
    ///
    /// ```
    /// # use carrick_template::Template;
    /// assert!(Template::compile("{{ .name }}-{{ randAlphaNum 5 }}").is_ok());
    /// let error = Template::compile_steady("{{ .name }}-{{ randAlphaNum 5 }}").unwrap_err();
    /// assert!(error.message().starts_with("function \"randAlphaNum\" is refused: its result is different at every rendering"));
    /// ```
    pub fn compile_steady(text: &str) -> Result<Template, CompileError> {
        Template::parse(text, true)
    }

    fn parse(text: &str, steady: bool) -> Result<Template, CompileError> {
        if text.len() > limits::MAX_SOURCE_BYTES {
            return Err(CompileError::TooLong { bytes: text.len() });
        }
        let tree = parse::parse(text, steady)?;
        let needs = Arc::new(needs::Needs::of(&tree));
        Ok(Template { text: text.into(), needs, tree: Arc::new(tree), absent: "<no value>" })
    }

    /// The same template, but missing keys print nothing instead of `<no value>`.
    #[must_use]
    pub fn silent_about_missing(mut self) -> Template {
        self.absent = "";
        self
    }

    /// The fields of the data that are named in it, sorted. What is done with a value that is passed on, to a loop, a variable or
    /// another template, is not among them.
    ///
    /// ```
    /// let template = carrick_template::Template::compile("{{ .spec.size }} {{ range .items }}{{ .name }}{{ end }}")?;
    /// assert_eq!(template.fields(), [vec!["items"], vec!["spec", "size"]]);
    /// # Ok::<(), carrick_template::CompileError>(())
    /// ```
    pub fn fields(&self) -> Vec<Vec<&str>> {
        let mut fields = self.needs.paths();
        fields.sort();
        fields
    }

    /// The fields of the data on which the result depends other than by a digest (`sha3short` and its like), sorted; none if it depends on
    /// all of the data. Whoever writes none of these cannot choose the result.
    ///
    /// ```
    /// let template = carrick_template::Template::compile("{{ .name | sha3short }}-{{ .size }}")?;
    /// assert_eq!(template.fields_in_clear(), Some(vec![vec!["size".to_owned()]]));
    /// # Ok::<(), carrick_template::CompileError>(())
    /// ```
    pub fn fields_in_clear(&self) -> Option<Vec<Vec<String>>> {
        let needs = needs::Needs::in_clear(&self.tree);
        let mut fields: Vec<Vec<String>> =
            needs.paths().into_iter().map(|path| path.into_iter().map(str::to_owned).collect()).collect();
        fields.sort();
        (!needs.whole).then_some(fields)
    }

    /// Renders with a struct at the root, whose fields are the entries: an unknown root field is an error, a missing key further
    /// down prints `<no value>`. The output is not trimmed.
    pub fn render(&self, data: &Map<String, Value>) -> Result<String, RenderError> {
        eval::render(self, Data::Fields(data))
    }

    /// Renders with any value at the root; an object is a map, so that missing root keys print `<no value>` as well.
    ///
    /// ```
    /// # use carrick_template::Template;
    /// let template = Template::compile("{{ range $i, $name := . }}{{ if $i }}, {{ end }}{{ $name | title }}{{ end }}")?;
    /// assert_eq!(template.render_value(&serde_json::json!(["ann", "ben"]))?, "Ann, Ben");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn render_value(&self, data: &Value) -> Result<String, RenderError> {
        eval::render(self, Data::Value(data))
    }

    /// Renders the template of a mutation: the root is a struct of the given fields and of `Value`, which is what the path of
    /// the mutation led to (none: nothing) and has the methods of a gjson result: `.Value.String`, `.Value.Int`, `.Value.Exists`.
    ///
    /// ```
    /// # use carrick_template::Template;
    /// use serde_json::{Map, Value, json};
    ///
    /// // How `.Value.Get "path"` reads a path; carrick-json has all of gjson's.
    /// let get = |value: &Value, path: &str| value.get(path).cloned();
    /// let template = Template::compile("{{ if .Value.Exists }}{{ .Value.String | lower }}{{ else }}none{{ end }}")?;
    /// assert_eq!(template.render_mutation(Some(&json!("Gold")), get, &Map::new())?, "gold");
    /// assert_eq!(template.render_mutation(None, get, &Map::new())?, "none");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn render_mutation(
        &self,
        value: Option<&Value>,
        get: Get,
        data: &Map<String, Value>,
    ) -> Result<String, RenderError> {
        eval::render(self, Data::Mutation { value, get, fields: data, is_map: false })
    }

    /// Renders as [`Template::render_mutation`] does, with a map at the root: missing root keys are not errors, as in
    /// [`Template::render_value`].
    pub fn render_mutation_value(
        &self,
        value: Option<&Value>,
        get: Get,
        data: &Map<String, Value>,
    ) -> Result<String, RenderError> {
        eval::render(self, Data::Mutation { value, get, fields: data, is_map: true })
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The template in one spelling for all that mean the same: without comments and trim markers, `{{else}}{{if}}` for `{{else if}}`,
/// definitions at the end. What it prints compiles to the same template.
impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        print::print(f, &self.text, &self.tree)
    }
}

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
