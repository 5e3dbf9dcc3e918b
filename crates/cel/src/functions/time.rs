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
        let decimals = fraction(u64::try_from(self.nanos.rem_euclid(SECOND)).unwrap_or_default(), 9);
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

/// A duration as `string()` gives it: seconds, `5400s`, `1.5s`.
pub(crate) fn seconds_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    format!("{sign}{}{}s", size / 1_000_000_000, fraction(size % 1_000_000_000, 9))
}

/// A duration as Go prints it: `1h30m0s`, `1.5s`, `20ms`.
pub(crate) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    let small =
        |unit: u64, digits: usize, name: &str| format!("{sign}{}{}{name}", size / unit, fraction(size % unit, digits));
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => small(1_000, 3, "µs"),
        1_000_000..1_000_000_000 => small(1_000_000, 6, "ms"),
        _ => {
            let seconds = size / 1_000_000_000;
            let tail = format!("{}{}s", seconds % 60, fraction(size % 1_000_000_000, 9));
            match (seconds / 3600, seconds / 60 % 60) {
                (0, 0) => format!("{sign}{tail}"),
                (0, minutes) => format!("{sign}{minutes}m{tail}"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{tail}"),
            }
        }
    }
}

/// `.5` for 500 of 3 digits; nothing for 0.
fn fraction(value: u64, digits: usize) -> String {
    if value == 0 { String::new() } else { format!(".{value:0digits$}").trim_end_matches('0').to_owned() }
}

/// Parses a duration as Go writes it: `-1h30m`, `1.5s`, `300ms`, `0`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = rest.split_at(whole);
        let (decimals, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", after),
        };
        if digits.is_empty() && decimals.is_empty() {
            return None;
        }
        let length = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?;
        let kept = &decimals[..decimals.len().min(18)];
        if !kept.is_empty() {
            let scale = 10_i128.pow(u32::try_from(kept.len()).ok()?);
            total = total.checked_add(kept.parse::<i128>().ok()? * unit / scale)?;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_go_prints_them() {
        for (nanos, want) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (5_400_000_000_000, "1h30m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(duration_text(nanos), want);
            assert_eq!(parse_duration(want), Some(nanos));
        }
        for wrong in ["", "-", "1", "1x", "h", ".s", "1h-1m", "300000000h"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

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
