//! Finds out what a template needs, by walking through its tree.

use super::Needs;
use crate::tree::{Branch, Command, Node, Operand, Pipe, Term, Tree};

/// Functions whose result nobody can choose by choosing what they are given.
const DIGESTS: [&str; 5] = ["sha1sum", "sha256sum", "sha512sum", "sha3sum", "sha3short"];

impl Needs {
    /// What a template needs of its data. Templates that it defines see only what it hands to them.
    pub(crate) fn of(tree: &Tree) -> Needs {
        let mut needs = Needs::default();
        needs.body(&tree.body, true);
        needs
    }

    /// The same without what only becomes part of a digest.
    pub(crate) fn in_clear(tree: &Tree) -> Needs {
        let mut needs = Needs { skips_digests: true, ..Needs::default() };
        needs.body(&tree.body, true);
        needs
    }

    /// `at_root` says whether the dot is the data itself.
    fn body(&mut self, nodes: &[Node], at_root: bool) {
        for node in nodes {
            match node {
                Node::Text(..) | Node::Break(_) | Node::Continue(_) => {}
                Node::Action(pipe) => self.pipe(pipe, at_root),
                Node::If(branch) => self.branch(branch, at_root, at_root),
                Node::With(branch) | Node::Range(branch) => self.branch(branch, at_root, false),
                Node::Template { pipe, .. } => pipe.iter().for_each(|pipe| self.pipe(pipe, at_root)),
            }
        }
    }

    fn branch(&mut self, branch: &Branch, at_root: bool, inside_at_root: bool) {
        self.pipe(&branch.pipe, at_root);
        self.body(&branch.body, inside_at_root);
        self.body(&branch.otherwise, at_root);
    }

    fn pipe(&mut self, pipe: &Pipe, at_root: bool) {
        if self.skips_digests && pipe.commands.last().is_some_and(is_digest) {
            return;
        }
        for command in &pipe.commands {
            for operand in std::iter::once(&command.first).chain(&command.arguments) {
                self.operand(operand, at_root);
            }
        }
    }

    fn operand(&mut self, operand: &Operand, at_root: bool) {
        match &operand.term {
            Term::Dot if at_root => self.whole = true,
            Term::Field(path) if at_root => self.add(path),
            Term::Variable(name, path) if name == "$" => self.add(path),
            Term::Pipe(pipe) => self.pipe(pipe, at_root),
            Term::Chain(inner, _) => self.operand(inner, at_root),
            _ => {}
        }
    }
}

fn is_digest(command: &Command) -> bool {
    matches!(&command.first.term, Term::Function(function) if DIGESTS.contains(&function.name))
}
