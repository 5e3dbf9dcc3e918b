//! Writes a tree as a template text: one spelling for all that mean the same, without comments and trim markers.

use std::fmt::{Formatter, Result, Write};

use carrick_go::quote::{self, Charset};

use crate::tree::{Branch, Command, Node, Operand, Pipe, Term, Tree};

/// Writes a whole template. Constants are written as in the text it was compiled from.
pub(crate) fn print(f: &mut Formatter<'_>, text: &str, tree: &Tree) -> Result {
    let mut printer = Printer { f, text };
    printer.body(&tree.body)?;
    let mut templates: Vec<_> = tree.templates.iter().collect();
    templates.sort_by_key(|(name, _)| *name);
    for (name, body) in templates {
        write!(printer.f, "{{{{define {}}}}}", quoted(name))?;
        printer.body(body)?;
        printer.f.write_str("{{end}}")?;
    }
    Ok(())
}

struct Printer<'p, 'f> {
    f: &'p mut Formatter<'f>,
    text: &'p str,
}

impl Printer<'_, '_> {
    fn body(&mut self, nodes: &[Node]) -> Result {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Result {
        match node {
            Node::Text(_, text) => self.literal(text),
            Node::Action(pipe) => {
                self.f.write_str("{{")?;
                self.pipe(pipe)?;
                self.f.write_str("}}")
            }
            Node::If(branch) => self.branch("if", branch),
            Node::With(branch) => self.branch("with", branch),
            Node::Range(branch) => self.branch("range", branch),
            Node::Template { name, pipe, .. } => {
                write!(self.f, "{{{{template {}", quoted(name))?;
                if let Some(pipe) = pipe {
                    self.f.write_char(' ')?;
                    self.pipe(pipe)?;
                }
                self.f.write_str("}}")
            }
            Node::Break(_) => self.f.write_str("{{break}}"),
            Node::Continue(_) => self.f.write_str("{{continue}}"),
        }
    }

    /// Text; a brace at its end would look like part of the delimiter after it.
    fn literal(&mut self, text: &str) -> Result {
        let before = text.trim_end_matches('{');
        self.f.write_str(before)?;
        (before.len()..text.len()).try_for_each(|_| self.f.write_str("{{\"{\"}}"))
    }

    fn branch(&mut self, keyword: &str, branch: &Branch) -> Result {
        write!(self.f, "{{{{{keyword} ")?;
        self.pipe(&branch.pipe)?;
        self.f.write_str("}}")?;
        self.body(&branch.body)?;
        if !branch.otherwise.is_empty() {
            self.f.write_str("{{else}}")?;
            self.body(&branch.otherwise)?;
        }
        self.f.write_str("{{end}}")
    }

    fn pipe(&mut self, pipe: &Pipe) -> Result {
        if !pipe.variables.is_empty() {
            let sign = if pipe.assigns { "=" } else { ":=" };
            write!(self.f, "{} {sign} ", pipe.variables.join(", "))?;
        }
        for (index, command) in pipe.commands.iter().enumerate() {
            if index > 0 {
                self.f.write_str(" | ")?;
            }
            self.command(command)?;
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result {
        self.operand(&command.first)?;
        for argument in &command.arguments {
            self.f.write_char(' ')?;
            self.operand(argument)?;
        }
        Ok(())
    }

    fn operand(&mut self, operand: &Operand) -> Result {
        match &operand.term {
            Term::Dot => self.f.write_char('.'),
            Term::Nil => self.f.write_str("nil"),
            Term::Bool(b) => write!(self.f, "{b}"),
            Term::Number(_) | Term::Str(_) => {
                let source = self.text.get(operand.span.start..operand.span.end).unwrap_or_default();
                self.f.write_str(source)
            }
            Term::Field(path) => self.path(path),
            Term::Variable(name, path) => {
                self.f.write_str(name)?;
                self.path(path)
            }
            Term::Function(function) => self.f.write_str(function.name),
            Term::Pipe(pipe) => {
                self.f.write_char('(')?;
                self.pipe(pipe)?;
                self.f.write_char(')')
            }
            Term::Chain(inner, path) => {
                self.operand(inner)?;
                self.path(path)
            }
        }
    }

    fn path(&mut self, path: &[String]) -> Result {
        path.iter().try_for_each(|name| write!(self.f, ".{name}"))
    }
}

fn quoted(name: &[u8]) -> String {
    quote::quote(name, Charset::Printable)
}
