//! Timestamps and durations.

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::budget::Budget;
use crate::eval::{Outcome, overload};
use crate::functions::failed;
use crate::signature::Row;
use crate::value::Value;

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
        // names are found in any case, but only one is theirs
        name => TimeZone::get(name).ok().filter(|found| found.iana_name() == Some(name))?,
    };
    // the first and last hours of the era have the offset of those next to them
    let (first, last) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    let near = Timestamp::from_nanosecond(nanos.clamp(first, last)).ok()?;
    Some(zone.to_offset(near).seconds())
}

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// The earliest and latest seconds that a timestamp may have: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i128> = -62_135_596_800..=253_402_300_799;

/// A timestamp, within the years 1 to 9999.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    /// Nanoseconds since 1970.
    pub nanos: i128,
    /// The zone it was written in: seconds ahead of UTC.
    pub offset: i32,
}

impl Time {
    fn new(nanos: i128, offset: i32) -> Option<Self> {
        SECONDS.contains(&nanos.div_euclid(SECOND)).then_some(Self { nanos, offset })
    }

    /// So many nanoseconds since 1970.
    pub fn utc(nanos: i128) -> Option<Self> {
        Self::new(nanos, 0)
    }

    /// So much later, in the same zone.
    pub fn plus(self, nanos: i128) -> Option<Self> {
        Self::new(self.nanos + nanos, self.offset)
    }

    /// As RFC 3339 in its zone, with as many digits as it needs.
    pub fn text(self) -> String {
        let Some(Civil { year, there }) = civil(self.nanos + i128::from(self.offset) * SECOND) else {
            return String::new();
        };
        let decimals = match self.nanos.rem_euclid(SECOND) {
            0 => String::new(),
            nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
        };
        let (month, day) = (there.month(), there.day());
        let (hour, minute, second) = (there.hour(), there.minute(), there.second());
        let zone = match self.offset {
            0 => "Z".to_owned(),
            offset => {
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
                format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{decimals}{zone}")
    }
}

/// Date and time somewhere.
struct Civil {
    year: i64,
    /// All but the year, which may be beyond what this can hold.
    there: DateTime,
}

/// Seconds after which the calendar repeats itself, and years.
const CYCLE: (i64, i64) = (146_097 * 86_400, 400);

/// Date and time of so many nanoseconds since 1970.
fn civil(nanos: i128) -> Option<Civil> {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).ok()?;
    let rest = i32::try_from(nanos.rem_euclid(SECOND)).ok()?;
    let since = |seconds: i64| date(1970, 1, 1).at(0, 0, 0, 0).checked_add(SignedDuration::new(seconds, rest)).ok();
    if let Some(there) = since(seconds) {
        return Some(Civil { year: i64::from(there.year()), there });
    }
    // a zone may be ahead of the last year
    let there = since(seconds - CYCLE.0)?;
    Some(Civil { year: i64::from(there.year()) + CYCLE.1, there })
}

/// Parses RFC 3339 as strictly as Go: two-digit parts, `T`, and `Z` or an offset.
pub(crate) fn parse_timestamp(text: &str) -> Option<Time> {
    let (there, rest) = text.split_at_checked("0000-00-00T00:00:00".len())?;
    for (found, wanted) in there.bytes().zip(*b"0000-00-00T00:00:00") {
        let fits = if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
        if !fits {
            return None;
        }
    }
    if there.ends_with("60") {
        return None;
    }
    let (decimals, zone) = match rest.strip_prefix(['.', ',']) {
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        None => ("0", rest),
    };
    let kept = &decimals[..decimals.len().min(9)];
    let nanos = kept.parse::<i128>().ok()? * 10_i128.pow(9 - u32::try_from(kept.len()).ok()?);
    let there: DateTime = there.parse().ok()?;
    let since = there.duration_since(date(1970, 1, 1).at(0, 0, 0, 0));
    let offset = written_offset(zone)?;
    Time::new(since.as_nanos() + nanos - i128::from(offset) * SECOND, offset)
}

/// Seconds of `Z`, `+01:00` or `-05:30`.
fn written_offset(zone: &str) -> Option<i32> {
    if zone == "Z" {
        return Some(0);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let two = |digits: &str, most: i32| {
        let plain = digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|value| plain && *value <= most)
    };
    let seconds = two(hours, 24)? * 3600 + two(minutes, 59)? * 60;
    match zone.as_bytes().first() {
        Some(b'+') => Some(seconds),
        Some(b'-') => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_strict() {
        for (text, want) in [
            ("2024-01-01T00:00:00Z", Some("2024-01-01T00:00:00Z")),
            ("2024-01-01T01:00:00.5+01:00", Some("2024-01-01T01:00:00.5+01:00")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
            ("2024-01-01", None),
            ("2024-01-01t00:00:00Z", None),
            ("2024-01-01T00:00:00", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-01-01T00:00:60Z", None),
        ] {
            assert_eq!(parse_timestamp(text).map(Time::text).as_deref(), want, "{text}");
        }
    }
}
