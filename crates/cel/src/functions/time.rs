//! Functions on timestamps and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::budget::Budget;
use crate::error::failed;
use crate::signature::Row;
use crate::value::time::{Civil, SECOND, civil};
use crate::value::{Outcome, Value, overload};

pub(crate) const ROWS: &[Row] = &[
    ("timestamp.getFullYear(): int\ntimestamp.getFullYear(string): int", |arguments, _| {
        part("getFullYear", arguments, |time| time.year)
    }),
    ("timestamp.getMonth(): int\ntimestamp.getMonth(string): int", |arguments, _| {
        part("getMonth", arguments, |time| i64::from(time.there.month()) - 1)
    }),
    ("timestamp.getDate(): int\ntimestamp.getDate(string): int", |arguments, _| {
        part("getDate", arguments, |time| i64::from(time.there.day()))
    }),
    ("timestamp.getDayOfMonth(): int\ntimestamp.getDayOfMonth(string): int", |arguments, _| {
        part("getDayOfMonth", arguments, |time| i64::from(time.there.day()) - 1)
    }),
    ("timestamp.getDayOfWeek(): int\ntimestamp.getDayOfWeek(string): int", |arguments, _| {
        part("getDayOfWeek", arguments, |time| i64::from(time.there.weekday().to_sunday_zero_offset()))
    }),
    ("timestamp.getDayOfYear(): int\ntimestamp.getDayOfYear(string): int", |arguments, _| {
        part("getDayOfYear", arguments, |time| i64::from(time.there.day_of_year()) - 1)
    }),
    ("timestamp.getHours(): int\ntimestamp.getHours(string): int\nduration.getHours(): int", |arguments, _| {
        clock("getHours", arguments, 3_600_000_000_000, |time| i64::from(time.there.hour()))
    }),
    ("timestamp.getMinutes(): int\ntimestamp.getMinutes(string): int\nduration.getMinutes(): int", |arguments, _| {
        clock("getMinutes", arguments, 60_000_000_000, |time| i64::from(time.there.minute()))
    }),
    ("timestamp.getSeconds(): int\ntimestamp.getSeconds(string): int\nduration.getSeconds(): int", |arguments, _| {
        clock("getSeconds", arguments, 1_000_000_000, |time| i64::from(time.there.second()))
    }),
    (
        "timestamp.getMilliseconds(): int
         timestamp.getMilliseconds(string): int
         duration.getMilliseconds(): int",
        milliseconds,
    ),
];

/// A part of a timestamp, in UTC or in the zone that is given.
fn part(name: &str, arguments: &[Value], read: impl Fn(&Civil) -> i64) -> Outcome {
    let (nanos, offset) = match arguments {
        [Value::Timestamp(time)] => (time.nanos, Some(0)),
        [Value::Timestamp(time), Value::String(zone)] => (time.nanos, offset_at(zone, time.nanos)),
        _ => return Err(overload(name, arguments)),
    };
    let there = offset.and_then(|seconds| civil(nanos + i128::from(seconds) * SECOND));
    there.map(|there| Value::Int(read(&there))).ok_or_else(|| failed(name))
}

/// A part of a timestamp, or a whole duration in this unit.
fn clock(name: &str, arguments: &[Value], unit: i64, read: impl Fn(&Civil) -> i64) -> Outcome {
    match arguments {
        [Value::Duration(nanos)] => Ok(Value::Int(nanos / unit)),
        _ => part(name, arguments, read),
    }
}

fn milliseconds(arguments: &[Value], _: &Budget) -> Outcome {
    clock("getMilliseconds", arguments, 1_000_000, |time| i64::from(time.there.subsec_nanosecond() / 1_000_000))
}

/// Seconds that a zone is ahead of UTC at this time. A zone is a name, or `+01:00`, `-5:30`.
fn offset_at(zone: &str, nanos: i128) -> Option<i32> {
    if let Some((hours, minutes)) = zone.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let minutes = if negative { hours * 60 - minutes } else { hours * 60 + minutes };
        return minutes.checked_mul(60);
    }
    let zone = match zone {
        "" | "UTC" | "Local" => TimeZone::UTC,
        // names are found in any case, but only one spelling is right
        name => TimeZone::get(name).ok().filter(|found| found.iana_name() == Some(name))?,
    };
    // the first and last hours of the era have the offset of those next to them
    let (first, last) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    let near = Timestamp::from_nanosecond(nanos.clamp(first, last)).ok()?;
    Some(zone.to_offset(near).seconds())
}
