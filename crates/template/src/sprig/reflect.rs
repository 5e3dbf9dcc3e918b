//! Types of values.

use crate::{
    compare::deep_equal,
    functions::{
        Function,
        Type::{Any, Str},
    },
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("typeOf", &[Any], |heap, args| heap.str(args.any(0)?.type_name().into_owned())),
    Function::new("typeIs", &[Str, Any], |_, args| Ok((args.str(0)?.text() == args.any(1)?.type_name()).into())),
    Function::new("typeIsLike", &[Str, Any], |_, args| {
        let (wanted, found) = (args.str(0)?.text(), args.any(1)?.type_name());
        Ok((wanted == found || found.strip_prefix('*').is_some_and(|found| wanted == found)).into())
    }),
    Function::new("kindOf", &[Any], |_, args| Ok(args.any(0)?.kind_name().into())),
    Function::new("kindIs", &[Str, Any], |_, args| Ok((args.str(0)?.text() == args.any(1)?.kind_name()).into())),
    Function::new("deepEqual", &[Any, Any], |heap, args| deep_equal(heap, args.any(0)?, args.any(1)?).map(Value::Bool)),
];
