//! The two worlds that expressions live in: that of mutations and that of validation rules.

use std::sync::{Arc, LazyLock};

use cel::{DeclarationError, Env, extensions};

use crate::library;
use crate::names::{KUBERNETES, LISTS, OPTIONALS, STANDARD, STRINGS, Signature};

/// What expressions of one kind may refer to.
pub(crate) struct Environment {
    pub env: Arc<Env>,
    pub variables: &'static [&'static str],
    functions: Vec<&'static [Signature]>,
    /// Whether fields are written escaped, as in Kubernetes rules.
    pub escaped_fields: bool,
}

impl Environment {
    /// Whether there is a function of this name, called this way.
    pub fn has_function(&self, name: &str, member: bool) -> bool {
        self.signatures(name, member).next().is_some()
    }

    /// Whether there is a function of this name, called this way with so many arguments.
    pub fn accepts(&self, name: &str, member: bool, arguments: usize) -> bool {
        self.signatures(name, member).any(|signature| signature.arguments.contains(&arguments))
    }

    fn signatures(&self, name: &str, member: bool) -> impl Iterator<Item = &Signature> {
        self.functions.iter().copied().flatten().filter(move |known| known.name == name && known.member == member)
    }
}

/// The environment of mutations: `value`, `self`, `other`; standard functions, string and list extensions.
pub(crate) fn mutation() -> &'static Environment {
    static MUTATION: LazyLock<Environment> = LazyLock::new(|| Environment {
        env: build(false, &[]),
        variables: &["value", "self", "other"],
        functions: vec![STANDARD, STRINGS, LISTS],
        escaped_fields: false,
    });
    &MUTATION
}

/// The environment of validation rules: `self`, `oldSelf`; also optional values and functions of Kubernetes.
pub(crate) fn rule() -> &'static Environment {
    static RULE: LazyLock<Environment> = LazyLock::new(|| Environment {
        env: build(true, &[library::kubernetes]),
        variables: &["self", "oldSelf"],
        functions: vec![STANDARD, STRINGS, LISTS, OPTIONALS, KUBERNETES],
        escaped_fields: true,
    });
    &RULE
}

type Extension = fn(&mut Env) -> Result<(), DeclarationError>;

fn build(optional: bool, more: &[Extension]) -> Arc<Env> {
    let mut env = Env::stdlib().with_optional_support(optional);
    let shared: [Extension; 3] = [extensions::strings, extensions::lists, library::iteration];
    for extension in shared.iter().chain(more) {
        let added = extension(&mut env);
        debug_assert!(added.is_ok(), "an extension redeclares a function: {added:?}");
    }
    Arc::new(env)
}
