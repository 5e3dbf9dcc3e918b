//! Dates. Local time is UTC: a template must not depend on the machine.

use carrick_go::duration;

use crate::{
    functions::{
        Args, Function,
        Type::{Any, Str, Time as TimeType},
    },
    heap::{Heap, Outcome},
    time::Time,
    value::Value,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("now", &[], |_, _| Ok(Value::Time(Time::now()))),
    Function::new("date", &[Str, Any], |heap, args| format(heap, args.bytes(0)?, args.any(1)?, "UTC")),
    Function::new("dateInZone", &[Str, Any, Str], in_zone),
    Function::new("date_in_zone", &[Str, Any, Str], in_zone),
    Function::new("htmlDate", &[Any], |heap, args| format(heap, b"2006-01-02", args.any(0)?, "UTC")),
    Function::new("htmlDateInZone", &[Any, Str], |heap, args| {
        format(heap, b"2006-01-02", args.any(0)?, &args.str(1)?.text())
    }),
    Function::new("dateModify", &[Str, TimeType], |_, args| modify(args).or_else(|_| Ok(args.any(1)?.clone()))),
    Function::new("date_modify", &[Str, TimeType], |_, args| modify(args).or_else(|_| Ok(args.any(1)?.clone()))),
    Function::new("mustDateModify", &[Str, TimeType], |_, args| modify(args)),
    Function::new("must_date_modify", &[Str, TimeType], |_, args| modify(args)),
    Function::new("toDate", &[Str, Str], |heap, args| to_date(heap, args).or_else(|_| Ok(Value::Time(Time::zero())))),
    Function::new("mustToDate", &[Str, Str], to_date),
    Function::new("unixEpoch", &[TimeType], |heap, args| heap.str(args.time(0)?.unix_seconds().to_string())),
    Function::new("ago", &[Any], |heap, args| {
        let nanos = Time::now().since(&time_of(args.any(0)?));
        heap.str(duration::format(duration::round_to_second(nanos)))
    }),
    Function::new("duration", &[Any], |heap, args| {
        // Only strings and 64-bit integers count; a plain number in the template is neither.
        let seconds: i64 = match args.any(0)? {
            Value::Str(text) => text.text().parse().unwrap_or(0),
            Value::Int64(seconds) => *seconds,
            _ => 0,
        };
        heap.str(duration::format(seconds.wrapping_mul(1_000_000_000)))
    }),
    Function::new("durationRound", &[Any], duration_round),
];

/// Numbers are seconds since 1970; anything else that is not a time means now.
fn time_of(value: &Value) -> Time {
    match value {
        Value::Time(time) => time.clone(),
        Value::Int(seconds) | Value::Int64(seconds) => Time::unix(*seconds),
        _ => Time::now(),
    }
}

fn format(heap: &Heap, layout: &[u8], value: &Value, zone: &str) -> Outcome<Value> {
    heap.step(layout.len())?;
    // A part of one byte can become nine.
    heap.take(9 * layout.len())?;
    heap.str(time_of(value).in_zone(zone).format(layout))
}

fn in_zone(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    format(heap, args.bytes(0)?, args.any(1)?, &args.str(2)?.text())
}

fn modify(args: Args<'_>) -> Outcome<Value> {
    let text = args.str(0)?.text();
    let nanos = duration::parse(&text).ok_or_else(|| "not a duration".to_owned())?;
    Ok(Value::Time(args.time(1)?.plus(nanos)))
}

fn to_date(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    heap.step(args.bytes(0)?.len())?;
    Ok(Value::Time(Time::parse(args.bytes(0)?, args.bytes(1)?)?))
}

/// Seconds of an hour.
const HOUR: u64 = 3600;

/// The largest unit only.
fn duration_round(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let nanos = match args.any(0)? {
        Value::Str(text) => duration::parse(&text.text()).unwrap_or(0),
        Value::Int64(nanos) => *nanos,
        Value::Time(time) => Time::now().since(time),
        _ => 0,
    };
    let units = [(365 * 24 * HOUR, "y"), (30 * 24 * HOUR, "mo"), (24 * HOUR, "d"), (HOUR, "h"), (60, "m"), (1, "s")];
    let total = nanos.unsigned_abs();
    let largest = units.iter().find(|(seconds, _)| total > seconds * 1_000_000_000);
    heap.str(match largest {
        Some((seconds, name)) => format!("{}{name}", total / (seconds * 1_000_000_000)),
        None => "0s".to_owned(),
    })
}
