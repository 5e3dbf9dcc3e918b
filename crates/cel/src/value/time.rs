//! Timestamps.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// Nanoseconds in a second.
pub(crate) const SECOND: i128 = 1_000_000_000;

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

    /// This many nanoseconds since 1970.
    pub fn utc(nanos: i128) -> Option<Self> {
        Self::new(nanos, 0)
    }

    /// This many nanoseconds later, in the same zone.
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
pub(crate) struct Civil {
    pub year: i64,
    /// All but the year, which may be beyond what this can hold.
    pub there: DateTime,
}

/// Seconds after which the calendar repeats itself, and years.
const CYCLE: (i64, i64) = (146_097 * 86_400, 400);

/// Date and time of this many nanoseconds since 1970.
pub(crate) fn civil(nanos: i128) -> Option<Civil> {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).ok()?;
    let rest = i32::try_from(nanos.rem_euclid(SECOND)).ok()?;
    let since = |seconds: i64| date(1970, 1, 1).at(0, 0, 0, 0).checked_add(SignedDuration::new(seconds, rest)).ok();
    if let Some(there) = since(seconds) {
        return Some(Civil { year: i64::from(there.year()), there });
    }
    // in a zone ahead of UTC, it may be the year after the last one
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
