//! Semantic versions.

use std::rc::Rc;

use crate::{
    functions::{Function, Type::Str},
    semver::{Constraints, Version},
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Str], |heap, args| {
        heap.take(2 * args.bytes(0)?.len())?;
        Ok(Value::Version(Rc::new(Version::parse(&args.str(0)?.text())?)))
    }),
    Function::new("semverCompare", &[Str, Str], |heap, args| {
        heap.step(args.bytes(0)?.len())?;
        let constraints = Constraints::parse(&args.str(0)?.text())?;
        Ok(constraints.allow(&Version::parse(&args.str(1)?.text())?).into())
    }),
];
