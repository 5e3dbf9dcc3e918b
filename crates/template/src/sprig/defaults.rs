//! Defaults and choices, and the functions that would look outside.

use crate::functions::{
    Function,
    Type::{Any, Bool, Str},
};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::variadic("default", &[Any], Any, |_, args| {
        let given = args.from(1).first().filter(|given| given.truth());
        Ok(given.unwrap_or(args.any(0)?).clone())
    }),
    Function::new("empty", &[Any], |_, args| Ok((!args.any(0)?.truth()).into())),
    Function::variadic("coalesce", &[], Any, |_, args| {
        Ok(args.all().iter().find(|value| value.truth()).cloned().unwrap_or(Value::Nil))
    }),
    Function::variadic("all", &[], Any, |_, args| Ok(args.all().iter().all(Value::truth).into())),
    Function::variadic("any", &[], Any, |_, args| Ok(args.all().iter().any(Value::truth).into())),
    Function::new("ternary", &[Any, Any, Bool], |_, args| Ok(args.any(usize::from(!args.bool(2)?))?.clone())),
    Function::new("fail", &[Str], |_, args| Err(args.str(0)?.text().into_owned().into())),
    // A tenant's template must not see the agent's environment or network.
    Function::new("env", &[Str], |_, _| Ok("".into())),
    Function::new("expandenv", &[Str], |_, _| Ok("".into())),
    Function::new("getHostByName", &[Str], |_, _| Ok("".into())),
];
