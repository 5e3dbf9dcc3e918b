//! Reading of times.

use super::{Offset, Part, next_part};
use crate::time::point::{Civil, Location, MONTHS, Time, WEEKDAYS, date_of, days_of, is_date};

/// What has been read so far.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    afternoon: Option<bool>,
    offset: Option<i32>,
    zone: Option<String>,
}

/// Reads a time that is written as the layout shows.
pub(crate) fn parse(layout: &[u8], text: &[u8]) -> Result<Time, String> {
    let problem = || format!("cannot read the time as {:?}", String::from_utf8_lossy(layout));
    let mut fields = Fields::default();
    let mut rest_layout = layout;
    let mut rest = text;
    loop {
        let (before, part, after) = next_part(rest_layout);
        rest = skip_literal(rest, before).ok_or_else(problem)?;
        let Some(part) = part else {
            return if rest.is_empty() { fields.time().ok_or_else(problem) } else { Err(problem()) };
        };
        let mut reader = Reader(rest);
        fields.read(part, &mut reader).ok_or_else(problem)?;
        // A fraction may follow the seconds even when the layout has none.
        let next_is_fraction = matches!(next_part(after), ([], Some(Part::Fraction(_) | Part::ShortFraction(_)), _));
        if matches!(part, Part::Second | Part::ZeroSecond)
            && !next_is_fraction
            && let [b'.' | b',', digit, ..] = reader.0
            && digit.is_ascii_digit()
        {
            fields.nanos = reader.fraction(None).ok_or_else(problem)?;
        }
        rest = reader.0;
        rest_layout = after;
    }
}

/// Skips text that must be there; a space of the layout stands for any number of spaces.
fn skip_literal<'a>(text: &'a [u8], literal: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text;
    let mut literal = literal;
    while let [first, tail @ ..] = literal {
        if *first == b' ' {
            if rest.first().is_some_and(|b| *b != b' ') {
                return None;
            }
            rest = rest.trim_ascii_start();
            literal = literal.trim_ascii_start();
            continue;
        }
        rest = rest.strip_prefix(&[*first])?;
        literal = tail;
    }
    Some(rest)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// A number with the given number of digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The index of one of the names, whatever its case.
    fn name(&mut self, names: &[&str], length: Option<usize>) -> Option<usize> {
        for (index, name) in names.iter().enumerate() {
            let name = &name[..length.unwrap_or(name.len()).min(name.len())];
            if self.0.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes())) {
                self.0 = &self.0[name.len()..];
                return Some(index);
            }
        }
        None
    }

    /// A separator and digits, as nanoseconds.
    fn fraction(&mut self, digits: Option<usize>) -> Option<u32> {
        let (b'.' | b',', tail) = self.0.split_first()? else { return None };
        let count = tail.iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 || digits.is_some_and(|digits| digits != count) {
            return None;
        }
        let text: String = tail[..count].iter().map(|b| char::from(*b)).chain("000000000".chars()).take(9).collect();
        self.0 = &tail[count..];
        text.parse().ok()
    }

    fn offset(&mut self, style: Offset) -> Option<i32> {
        if style.z && self.0.first() == Some(&b'Z') {
            self.0 = &self.0[1..];
            return Some(0);
        }
        let (sign, tail) = self.0.split_first()?;
        let sign = match sign {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = tail;
        let mut seconds = self.digits(2, 2)? * 3600;
        for unit in [60, 1].into_iter().take(style.fields - 1) {
            if style.colon {
                self.0 = self.0.strip_prefix(b":")?;
            }
            seconds += self.digits(2, 2).filter(|n| *n < 60)? * unit;
        }
        i32::try_from(sign * seconds).ok()
    }

    /// An abbreviation: three or four capital letters, or `GMT` with an hour.
    fn zone_name(&mut self) -> Option<String> {
        let letters = self.0.iter().take(5).take_while(|b| b.is_ascii_uppercase()).count();
        if !(3..=5).contains(&letters) {
            return None;
        }
        let (name, rest) = self.0.split_at(letters);
        self.0 = rest;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}

impl Fields {
    fn read(&mut self, part: Part, reader: &mut Reader<'_>) -> Option<()> {
        let index = |found: Option<usize>| found.and_then(|i| i64::try_from(i).ok());
        match part {
            Part::LongMonth => self.month = Some(index(reader.name(&MONTHS, None))? + 1),
            Part::Month => self.month = Some(index(reader.name(&MONTHS, Some(3)))? + 1),
            Part::NumMonth => self.month = Some(reader.digits(1, 2)?),
            Part::ZeroMonth => self.month = Some(reader.digits(2, 2)?),
            Part::LongWeekday => {
                reader.name(&WEEKDAYS, None)?;
            }
            Part::Weekday => {
                reader.name(&WEEKDAYS, Some(3))?;
            }
            Part::Day => self.day = Some(reader.digits(1, 2)?),
            Part::UnderDay => {
                reader.0 = reader.0.strip_prefix(b" ").unwrap_or(reader.0);
                self.day = Some(reader.digits(1, 2)?);
            }
            Part::ZeroDay => self.day = Some(reader.digits(2, 2)?),
            Part::UnderYearDay => {
                reader.0 = reader.0.trim_ascii_start();
                self.year_day = Some(reader.digits(1, 3)?);
            }
            Part::ZeroYearDay => self.year_day = Some(reader.digits(3, 3)?),
            Part::Hour => self.hour = reader.digits(1, 2).filter(|n| *n < 24)?,
            Part::Hour12 => self.hour = reader.digits(1, 2).filter(|n| *n <= 12)?,
            Part::ZeroHour12 => self.hour = reader.digits(2, 2).filter(|n| *n <= 12)?,
            Part::Minute => self.minute = reader.digits(1, 2).filter(|n| *n < 60)?,
            Part::ZeroMinute => self.minute = reader.digits(2, 2).filter(|n| *n < 60)?,
            Part::Second => self.second = reader.digits(1, 2).filter(|n| *n < 60)?,
            Part::ZeroSecond => self.second = reader.digits(2, 2).filter(|n| *n < 60)?,
            Part::LongYear => self.year = reader.digits(4, 4)?,
            Part::Year => {
                let year = reader.digits(2, 2)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Part::UpperPm | Part::LowerPm => {
                let names = if part == Part::UpperPm { ["AM", "PM"] } else { ["am", "pm"] };
                let found = names.iter().position(|name| reader.0.starts_with(name.as_bytes()))?;
                reader.0 = &reader.0[2..];
                self.afternoon = Some(found == 1);
            }
            Part::ZoneName => self.zone = Some(reader.zone_name()?),
            Part::Offset(style) => self.offset = Some(reader.offset(style)?),
            Part::Fraction(digits) => self.nanos = reader.fraction(Some(digits))?,
            Part::ShortFraction(_) => {
                // These digits may be absent.
                if let [b'.' | b',', digit, ..] = reader.0
                    && digit.is_ascii_digit()
                {
                    self.nanos = reader.fraction(None)?;
                }
            }
        }
        Some(())
    }

    fn time(mut self) -> Option<Time> {
        match self.afternoon {
            Some(true) if self.hour < 12 => self.hour += 12,
            Some(false) if self.hour == 12 => self.hour = 0,
            _ => {}
        }
        let (month, day) = match self.year_day {
            Some(year_day) => {
                let days = days_of(self.year, 1, 1) + year_day - 1;
                let (year, month, day) = date_of(days);
                let agrees = self.month.is_none_or(|m| m == month) && self.day.is_none_or(|d| d == day);
                if year != self.year || !agrees {
                    return None;
                }
                (month, day)
            }
            None => (self.month.unwrap_or(1), self.day.unwrap_or(1)),
        };
        if !is_date(self.year, month, day) {
            return None;
        }
        let civil = Civil { year: self.year, month, day, hour: self.hour, minute: self.minute, second: self.second };
        let has_zone = self.zone.is_some();
        let zone = match (self.offset, self.zone) {
            // UTC has a name, other offsets have none of their own.
            (None | Some(0), None) => "UTC".to_owned(),
            (Some(_), None) => String::new(),
            (_, Some(zone)) => zone,
        };
        let location = match (self.offset, zone.as_str()) {
            (None, "UTC") if !has_zone => Location::Local,
            (None | Some(0), "UTC") => Location::Utc,
            (_, name) => Location::Named(name.to_owned()),
        };
        Some(Time::from_civil(civil, self.nanos, self.offset.unwrap_or(0), zone, location))
    }
}
