//! Methods that templates can call on values: `(semver "1.2.3").Minor`, `now.Year`, `.Value.String`.

mod found;

use std::rc::Rc;

use carrick_go::semver::Version;

use crate::{
    functions::{
        Args, Function,
        Type::{Any, Str, Time},
    },
    heap::Outcome,
    named::Named,
    value::{Uint, Value},
};

/// Finds a method of a value.
pub(crate) fn lookup(value: &Value, name: &str) -> Option<&'static Function> {
    let methods = match value {
        Value::Time(_) => TIME,
        Value::Version(_) => VERSION,
        Value::Found(_) => found::FOUND,
        Value::Named(_) => NAMED,
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

/// The receiver is the first argument.
const TIME: &[Function] = &[
    Function::new("Year", &[], |_, args| Ok(int(args.time(0)?.civil().year))),
    Function::new("Day", &[], |_, args| Ok(int(args.time(0)?.civil().day))),
    Function::new("Hour", &[], |_, args| Ok(int(args.time(0)?.civil().hour))),
    Function::new("Minute", &[], |_, args| Ok(int(args.time(0)?.civil().minute))),
    Function::new("Second", &[], |_, args| Ok(int(args.time(0)?.civil().second))),
    Function::new("Nanosecond", &[], |_, args| Ok(int(args.time(0)?.nanosecond().into()))),
    Function::new("YearDay", &[], |_, args| Ok(int(args.time(0)?.year_day()))),
    Function::new("Unix", &[], |_, args| Ok(Value::Int64(args.time(0)?.unix_seconds()))),
    Function::new("UnixMilli", &[], |_, args| Ok(Value::Int64(args.time(0)?.unix_in(1000)))),
    Function::new("UnixMicro", &[], |_, args| Ok(Value::Int64(args.time(0)?.unix_in(1_000_000)))),
    Function::new("UnixNano", &[], |_, args| Ok(Value::Int64(args.time(0)?.unix_in(1_000_000_000)))),
    Function::new("Month", &[], |_, args| Ok(Value::Named(Named::Month(args.time(0)?.civil().month)))),
    Function::new("Weekday", &[], |_, args| {
        let day = i64::try_from(args.time(0)?.weekday()).unwrap_or(0);
        Ok(Value::Named(Named::Weekday(day)))
    }),
    Function::new("Before", &[Time], |_, args| Ok((args.time(0)?.since(args.time(1)?) < 0).into())),
    Function::new("After", &[Time], |_, args| Ok((args.time(0)?.since(args.time(1)?) > 0).into())),
    Function::new("Equal", &[Time], |_, args| Ok((args.time(0)?.since(args.time(1)?) == 0).into())),
    Function::new("Compare", &[Time], |_, args| Ok(int(args.time(0)?.since(args.time(1)?).signum()))),
    Function::new("GoString", &[], |heap, args| heap.str(args.time(0)?.expression())),
    Function::new("UTC", &[], |_, args| Ok(Value::Time(args.time(0)?.in_zone("UTC")))),
    Function::new("Local", &[], |_, args| Ok(Value::Time(args.time(0)?.in_zone("Local")))),
    Function::new("IsZero", &[], |_, args| Ok(Value::Bool(args.time(0)?.since(&crate::time::Time::zero()) == 0))),
    Function::new("String", &[], |heap, args| heap.str(args.time(0)?.to_string())),
    Function::new("Format", &[Str], |heap, args| {
        let layout = args.bytes(1)?;
        // A part of one byte can become nine.
        heap.take(9 * layout.len())?;
        heap.step(layout.len())?;
        heap.str(args.time(0)?.format(layout))
    }),
];

const VERSION: &[Function] = &[
    Function::new("Major", &[], |_, args| Ok(Value::Uint(Uint::U64, version(args, 0)?.major))),
    Function::new("Minor", &[], |_, args| Ok(Value::Uint(Uint::U64, version(args, 0)?.minor))),
    Function::new("Patch", &[], |_, args| Ok(Value::Uint(Uint::U64, version(args, 0)?.patch))),
    Function::new("Prerelease", &[], |heap, args| heap.str(version(args, 0)?.pre.as_str())),
    Function::new("Metadata", &[], |heap, args| heap.str(version(args, 0)?.metadata.as_str())),
    Function::new("Original", &[], |heap, args| heap.str(version(args, 0)?.original.as_str())),
    Function::new("String", &[], |heap, args| heap.str(version(args, 0)?.to_string())),
    Function::new("Compare", &[Any], |_, args| Ok(int(version(args, 0)?.compare(version(args, 1)?) as i64))),
    Function::new("Equal", &[Any], |_, args| Ok(version(args, 0)?.compare(version(args, 1)?).is_eq().into())),
    Function::new("LessThan", &[Any], |_, args| Ok(version(args, 0)?.compare(version(args, 1)?).is_lt().into())),
    Function::new("LessThanEqual", &[Any], |_, args| Ok(version(args, 0)?.compare(version(args, 1)?).is_le().into())),
    Function::new("GreaterThanEqual", &[Any], |_, args| {
        Ok(version(args, 0)?.compare(version(args, 1)?).is_ge().into())
    }),
    Function::new("IncMajor", &[], |_, args| {
        let Version { major, .. } = version(args, 0)?;
        next_version(args, Version { major: major.wrapping_add(1), ..Version::default() })
    }),
    Function::new("IncMinor", &[], |_, args| {
        let Version { major, minor, .. } = version(args, 0)?;
        next_version(args, Version { major: *major, minor: minor.wrapping_add(1), ..Version::default() })
    }),
    Function::new("IncPatch", &[], |_, args| {
        let Version { major, minor, patch, pre, .. } = version(args, 0)?;
        // What comes before a version becomes that version.
        let patch = if pre.is_empty() { patch.wrapping_add(1) } else { *patch };
        next_version(args, Version { major: *major, minor: *minor, patch, ..Version::default() })
    }),
    Function::new("GreaterThan", &[Any], |_, args| Ok(version(args, 0)?.compare(version(args, 1)?).is_gt().into())),
];

/// A version that follows another one, written with a `v` as that one was.
fn next_version(args: Args<'_>, mut next: Version) -> Outcome<Value> {
    let prefix = if version(args, 0)?.original.starts_with('v') { "v" } else { "" };
    next.original = format!("{prefix}{next}");
    Ok(Value::Version(Rc::new(next)))
}

const NAMED: &[Function] = &[Function::new("String", &[], |heap, args| match args.any(0)? {
    Value::Named(named) => heap.str(named.name()),
    other => Err(format!("wrong type for value; expected an integer with a name; got {}", other.type_name()).into()),
})];

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn version(args: Args<'_>, index: usize) -> Outcome<&Version> {
    match args.any(index)? {
        Value::Version(version) => Ok(version),
        other => Err(format!("wrong type for value; expected *semver.Version; got {}", other.type_name()).into()),
    }
}
