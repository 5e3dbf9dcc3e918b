//! A point in time, and the calendar.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Nanoseconds of a second.
pub(crate) const NANOS: i128 = 1_000_000_000;

/// A point in time and the zone it is shown in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    /// Since 1970.
    seconds: i64,
    nanos: u32,
    /// East of Greenwich, in seconds.
    pub(super) offset: i32,
    /// Abbreviation of the zone; empty when only the offset is known.
    pub(super) zone: String,
    location: Location,
}

/// Where a zone came from, which `%#v` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Utc,
    Local,
    Named(String),
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
}

impl Time {
    /// Seconds since 1970, in UTC.
    pub(crate) fn unix(seconds: i64) -> Time {
        Time { seconds, nanos: 0, offset: 0, zone: "UTC".to_owned(), location: Location::Utc }
    }

    /// Go's zero time, 1 January of the year 1.
    pub(crate) fn zero() -> Time {
        Time::unix(-62_135_596_800)
    }

    pub(crate) fn now() -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Time { nanos: since.subsec_nanos(), location: Location::Local, ..Time::unix(seconds) }
    }

    pub(crate) fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    /// Time since 1970 in parts of a second.
    pub(crate) fn unix_in(&self, parts: i64) -> i64 {
        self.seconds.wrapping_mul(parts).wrapping_add(i64::from(self.nanos) / (1_000_000_000 / parts))
    }

    fn total_nanos(&self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// The same zone, this many nanoseconds later.
    pub(crate) fn plus(&self, nanos: i64) -> Time {
        let total = self.total_nanos() + i128::from(nanos);
        let seconds = i64::try_from(total.div_euclid(NANOS)).unwrap_or(self.seconds);
        let nanos = u32::try_from(total.rem_euclid(NANOS)).unwrap_or(0);
        Time { seconds, nanos, ..self.clone() }
    }

    /// Nanoseconds from another time to this one, bounded as Go's `Duration` is.
    pub(crate) fn since(&self, other: &Time) -> i64 {
        let nanos = self.total_nanos() - other.total_nanos();
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// The same instant in another zone; UTC when there is no such zone.
    pub(crate) fn in_zone(&self, name: &str) -> Time {
        let utc = Time { offset: 0, zone: "UTC".to_owned(), location: Location::Utc, ..self.clone() };
        if name == "Local" {
            return Time { location: Location::Local, ..utc };
        }
        if matches!(name, "" | "UTC") {
            return utc;
        }
        // Only the database inside the crate: a template must not depend on the machine's files.
        let Ok(zone) = jiff::tz::TimeZoneDatabase::bundled().get(name) else { return utc };
        let Ok(instant) = jiff::Timestamp::from_second(self.seconds) else { return utc };
        let info = zone.to_offset_info(instant);
        Time {
            offset: info.offset().seconds(),
            zone: info.abbreviation().to_owned(),
            location: Location::Named(name.to_owned()),
            ..utc
        }
    }

    pub(crate) fn civil(&self) -> Civil {
        let local = self.seconds.saturating_add(i64::from(self.offset));
        let (year, month, day) = date_of(local.div_euclid(DAY));
        let second = local.rem_euclid(DAY);
        Civil { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }

    pub(crate) fn nanosecond(&self) -> u32 {
        self.nanos
    }

    /// 0 is Sunday.
    pub(crate) fn weekday(&self) -> usize {
        let days = self.seconds.saturating_add(i64::from(self.offset)).div_euclid(DAY);
        usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)
    }

    pub(crate) fn year_day(&self) -> i64 {
        let civil = self.civil();
        days_of(civil.year, civil.month, civil.day) - days_of(civil.year, 1, 1) + 1
    }

    /// The Go expression that makes it.
    pub(crate) fn expression(&self) -> String {
        let Civil { year, month, day, hour, minute, second } = self.civil();
        let month = usize::try_from(month - 1).ok().and_then(|index| MONTHS.get(index)).copied().unwrap_or_default();
        let location = match &self.location {
            Location::Utc => "time.UTC".to_owned(),
            Location::Local => "time.Local".to_owned(),
            Location::Named(name) => format!("time.Location({name:?})"),
        };
        format!("time.Date({year}, time.{month}, {day}, {hour}, {minute}, {second}, {}, {location})", self.nanos)
    }

    pub(super) fn from_civil(civil: Civil, nanos: u32, offset: i32, zone: String, location: Location) -> Time {
        let days = days_of(civil.year, civil.month, civil.day);
        let seconds = days * DAY + civil.hour * 3600 + civil.minute * 60 + civil.second - i64::from(offset);
        Time { seconds, nanos, offset, zone, location }
    }
}

/// Days since 1970 of a date of the Gregorian calendar (years start in March, so that leap days come last).
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date of a number of days since 1970.
pub(super) fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Whether there is such a day.
pub(super) fn is_date(year: i64, month: i64, day: i64) -> bool {
    (1..=12).contains(&month) && day >= 1 && date_of(days_of(year, month, day)) == (year, month, day)
}

/// Names of the months, from January.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Names of the days, from Sunday.
pub(crate) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
