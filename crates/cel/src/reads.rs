//! Which fields of a variable an expression reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::node::{Access, Node, Select};

/// A field that an expression reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FieldRead {
    /// Its names from the outermost, as in the object; none if the whole value is read.
    pub path: Vec<Arc<str>>,
    /// Whether it only matters that the field is there: `has()`.
    pub presence_only: bool,
}

/// The fields of a variable, by its place on the stack.
pub(crate) fn of(root: &Node, variable: usize) -> BTreeSet<FieldRead> {
    let mut found = BTreeSet::new();
    visit(root, variable, &mut found);
    found
}

fn visit(node: &Node, variable: usize, found: &mut BTreeSet<FieldRead>) {
    let mut all = |nodes: &[&Node]| nodes.iter().for_each(|node| visit(node, variable, found));
    match node {
        Node::Constant(_) => {}
        Node::Variable(at) => {
            if *at == variable {
                found.insert(FieldRead { path: Vec::new(), presence_only: false });
            }
        }
        Node::Select(select) => match path(select, variable) {
            Some(path) => {
                found.insert(FieldRead { path, presence_only: select.mode == Access::Test });
            }
            None => all(&[&select.operand]),
        },
        Node::Index(index) => all(&[&index.operand, &index.key]),
        Node::And(two) | Node::Or(two) | Node::OrElse(two) | Node::OrValue(two) => all(&[&two[0], &two[1]]),
        Node::Conditional(three) => all(&[&three[0], &three[1], &three[2]]),
        Node::List(items) => items.iter().for_each(|item| all(&[&item.value])),
        Node::Map(entries) => entries.iter().for_each(|entry| all(&[&entry.key, &entry.value])),
        Node::Call(call) => call.arguments.iter().for_each(|argument| all(&[argument])),
        Node::Fold(fold) => {
            all(&[&fold.range, &fold.body]);
            fold.filter.iter().for_each(|filter| all(&[filter]));
        }
    }
}

/// The names that lead from the variable to what is selected, if nothing else does.
fn path(select: &Select, variable: usize) -> Option<Vec<Arc<str>>> {
    let mut path = match &select.operand {
        Node::Variable(at) if *at == variable => Vec::new(),
        Node::Select(outer) => path(outer, variable)?,
        _ => return None,
    };
    path.push(Arc::clone(&select.field));
    Some(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Rule;

    fn reads(rule: &str) -> Vec<String> {
        let rule = Rule::compile(&json!({ "rule": rule })).unwrap();
        let shown = |read: super::FieldRead| {
            let path = read.path.join(".");
            if read.presence_only { format!("has {path}") } else { path }
        };
        rule.reads().into_iter().map(shown).collect()
    }

    #[test]
    fn fields_are_found_wherever_they_are_read() {
        for (rule, wanted) in [
            ("self.spec.size <= 5", vec!["spec.size"]),
            (
                "has(self.spec.size) && self.spec.users.all(user, user.name != self.owner)",
                vec!["owner", "has spec.size", "spec.users"],
            ),
            ("self.spec.?size.orValue(3) < 4 || self.labels['a'] == 'b'", vec!["labels", "spec.size"]),
            ("self == oldSelf", vec![""]),
            ("[self.a].exists(one, one == self.b.c.size())", vec!["a", "b.c"]),
            ("oldSelf.a == 1", vec![]),
            ("self.my__dash__field ? true : false", vec!["my-field"]),
        ] {
            assert_eq!(reads(rule), wanted, "{rule}");
        }
    }
}
