//! The environments of expressions: those of mutations, of validation rules and of admission.

use std::sync::LazyLock;

use cel::Env;

use crate::functions::LIBRARIES;
use crate::signature::{Overload, overloads};
use crate::types::Type;

/// What expressions of one kind may refer to.
pub(crate) struct Environment {
    /// Parses without expanding macros.
    pub parser: Env,
    pub variables: &'static [&'static str],
    /// Whether expressions are rules of Kubernetes: fields are escaped, literals are checked, there are optional values.
    pub kubernetes: bool,
    functions: Vec<Overload>,
}

impl Environment {
    fn new(variables: &'static [&'static str], kubernetes: bool) -> Self {
        let known = LIBRARIES.iter().filter(|library| if kubernetes { library.rules } else { library.mutations });
        let functions = known.flat_map(|library| library.rows).flat_map(overloads).collect();
        Self { parser: Env::default().with_optional_support(kubernetes), variables, kubernetes, functions }
    }

    /// The overloads of a function that is called this way.
    pub fn overloads(&'static self, name: &str, member: bool) -> impl Iterator<Item = &'static Overload> {
        self.functions.iter().filter(move |known| known.name == name && known.member == member)
    }

    /// Whether expressions may name the type.
    pub fn knows_type(&self, found: &Type) -> bool {
        self.kubernetes || !matches!(found, Type::Optional(_) | Type::Ip | Type::Cidr)
    }
}

/// The environment of mutations: `value`, `self`, `other`; standard functions, string and list extensions.
pub(crate) fn mutation() -> &'static Environment {
    static MUTATION: LazyLock<Environment> = LazyLock::new(|| Environment::new(&["value", "self", "other"], false));
    &MUTATION
}

/// The same with `objects`, which the caller names.
pub(crate) fn mutation_with_objects() -> &'static Environment {
    static MUTATION: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["value", "self", "other", "objects"], false));
    &MUTATION
}

/// The environment of mappings: mutations that know the name of the copy as `copy`.
pub(crate) fn mapping() -> &'static Environment {
    static MAPPING: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["value", "self", "other", "copy"], false));
    &MAPPING
}

/// The environment of summaries: `self`, `other`, `objects`, `related`; the same functions as for mutations.
pub(crate) fn summary() -> &'static Environment {
    static SUMMARY: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["self", "other", "objects", "related"], false));
    &SUMMARY
}

/// The environment of validation rules: `self`, `oldSelf`; everything the API server has.
pub(crate) fn rule() -> &'static Environment {
    static RULE: LazyLock<Environment> = LazyLock::new(|| Environment::new(&["self", "oldSelf"], true));
    &RULE
}

/// The environment of admission policies and match conditions, with parameters and variables or without.
pub(crate) fn admission(params: bool, variables: bool) -> &'static Environment {
    static PLAIN: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["object", "oldObject", "namespaceObject", "request"], true));
    static PARAMS: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["object", "oldObject", "namespaceObject", "request", "params"], true));
    static VARIABLES: LazyLock<Environment> =
        LazyLock::new(|| Environment::new(&["object", "oldObject", "namespaceObject", "request", "variables"], true));
    static BOTH: LazyLock<Environment> = LazyLock::new(|| {
        Environment::new(&["object", "oldObject", "namespaceObject", "request", "params", "variables"], true)
    });
    match (params, variables) {
        (false, false) => &PLAIN,
        (true, false) => &PARAMS,
        (false, true) => &VARIABLES,
        (true, true) => &BOTH,
    }
}
