//! Methods and fields of gjson results and their types.

use crate::{
    functions::{Args, Function, Type::Str},
    gjson::{Found, Kind},
    heap::Outcome,
    named::Named,
    value::{Uint, Value},
};

/// What depends on the place in the original text (`.Index`, `.Path`) or needs a function (`.ForEach`) does not exist here.
pub(super) const FOUND: &[Function] = &[
    Function::new("String", &[], |heap, args| Ok(Value::Str(found(args)?.text(heap)?))),
    Function::new("Str", &[], |heap, args| Ok(Value::Str(found(args)?.str(heap)?))),
    Function::new("Raw", &[], |heap, args| Ok(Value::Str(found(args)?.raw(heap)?))),
    Function::new("Num", &[], |_, args| Ok(Value::Float(found(args)?.num()))),
    Function::new("Type", &[], |_, args| Ok(Value::Named(Named::Kind(found(args)?.kind())))),
    Function::new("Bool", &[], |_, args| Ok(found(args)?.bool().into())),
    Function::new("Int", &[], |_, args| Ok(Value::Int64(found(args)?.int()))),
    Function::new("Uint", &[], |_, args| Ok(Value::Uint(Uint::U64, found(args)?.uint()))),
    Function::new("Float", &[], |_, args| Ok(Value::Float(found(args)?.float()))),
    Function::new("Time", &[], |heap, args| Ok(Value::Time(found(args)?.time(heap)?))),
    Function::new("Value", &[], |heap, args| found(args)?.value(heap)),
    Function::new("Exists", &[], |_, args| Ok(found(args)?.exists().into())),
    Function::new("IsObject", &[], |_, args| Ok(found(args)?.is_object().into())),
    Function::new("IsArray", &[], |_, args| Ok(found(args)?.is_array().into())),
    Function::new("IsBool", &[], |_, args| Ok(matches!(found(args)?.kind(), Kind::False | Kind::True).into())),
    Function::new("Array", &[], |heap, args| found(args)?.array(heap)),
    Function::new("Map", &[], |heap, args| found(args)?.map(heap)),
    Function::new("Get", &[Str], |heap, args| found(args)?.get(heap, &args.str(1)?.text())),
];

fn found(args: Args<'_>) -> Outcome<&Found> {
    match args.any(0)? {
        Value::Found(found) => Ok(found),
        other => Err(format!("wrong type for value; expected gjson.Result; got {}", other.type_name()).into()),
    }
}
