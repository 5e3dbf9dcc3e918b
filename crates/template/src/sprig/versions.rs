//! Semantic versions.

use std::rc::Rc;

use carrick_go::semver::{Constraints, Version};

use crate::{
    functions::{Args, Function, Type::Str},
    heap::Outcome,
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Str], |heap, args| {
        heap.take(2 * args.bytes(0)?.len())?;
        Ok(Value::Version(Rc::new(version(args, 0)?)))
    }),
    Function::new("semverCompare", &[Str, Str], |heap, args| {
        heap.step(args.bytes(0)?.len())?;
        let constraints = Constraints::parse(&args.str(0)?.text()).map_err(|error| error.to_string())?;
        Ok(constraints.allow(&version(args, 1)?).into())
    }),
];

fn version(args: Args<'_>, index: usize) -> Outcome<Version> {
    Version::parse(&args.str(index)?.text()).map_err(|error| error.to_string().into())
}
