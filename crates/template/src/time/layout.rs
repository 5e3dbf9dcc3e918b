//! Go's time layouts: texts that show how the reference time looks.

pub(super) mod read;

use super::point::{Civil, MONTHS, Time, WEEKDAYS};

/// A part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset(Offset),
    /// `.000`: this many digits.
    Fraction(usize),
    /// `.999`: this many digits, without trailing zeros.
    ShortFraction(usize),
}

/// A numeric zone: whether UTC is `Z`, and how the numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    z: bool,
    colon: bool,
    /// Hours, minutes, seconds: how many of them.
    fields: usize,
}

const fn offset(z: bool, colon: bool, fields: usize) -> Part {
    Part::Offset(Offset { z, colon, fields })
}

/// Longer texts come before their prefixes.
const PARTS: &[(&str, Part)] = &[
    ("January", Part::LongMonth),
    ("Jan", Part::Month),
    ("Monday", Part::LongWeekday),
    ("Mon", Part::Weekday),
    ("MST", Part::ZoneName),
    ("002", Part::ZeroYearDay),
    ("01", Part::ZeroMonth),
    ("02", Part::ZeroDay),
    ("03", Part::ZeroHour12),
    ("04", Part::ZeroMinute),
    ("05", Part::ZeroSecond),
    ("06", Part::Year),
    ("15", Part::Hour),
    ("1", Part::NumMonth),
    ("2006", Part::LongYear),
    ("2", Part::Day),
    ("__2", Part::UnderYearDay),
    ("_2", Part::UnderDay),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
    ("PM", Part::UpperPm),
    ("pm", Part::LowerPm),
    ("-070000", offset(false, false, 3)),
    ("-07:00:00", offset(false, true, 3)),
    ("-0700", offset(false, false, 2)),
    ("-07:00", offset(false, true, 2)),
    ("-07", offset(false, false, 1)),
    ("Z070000", offset(true, false, 3)),
    ("Z07:00:00", offset(true, true, 3)),
    ("Z0700", offset(true, false, 2)),
    ("Z07:00", offset(true, true, 2)),
    ("Z07", offset(true, false, 1)),
];

/// Splits a layout at its first part: text before, the part, text after.
fn next_part(layout: &[u8]) -> (&[u8], Option<Part>, &[u8]) {
    for start in 0..layout.len() {
        let rest = &layout[start..];
        if let Some((part, length)) = part_at(rest) {
            return (&layout[..start], Some(part), &rest[length..]);
        }
    }
    (layout, None, &[])
}

fn part_at(rest: &[u8]) -> Option<(Part, usize)> {
    // `_2006` is an underscore and a year.
    if rest.starts_with(b"_2006") {
        return None;
    }
    if let [b'.' | b',', digit @ (b'0' | b'9'), ..] = rest {
        let digits = rest[1..].iter().take_while(|b| *b == digit).count();
        if !rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
            let part = if *digit == b'0' { Part::Fraction(digits) } else { Part::ShortFraction(digits) };
            return Some((part, 1 + digits));
        }
    }
    let (text, part) = PARTS.iter().find(|(text, _)| rest.starts_with(text.as_bytes()))?;
    // `Jan` and `Mon` must not go on with a lower case letter.
    let follows_lower = rest.get(text.len()).is_some_and(u8::is_ascii_lowercase);
    if matches!(part, Part::Month | Part::Weekday) && follows_lower {
        return None;
    }
    Some((*part, text.len()))
}

/// Writes a time as the layout shows.
pub(super) fn format(time: &Time, layout: &[u8]) -> Vec<u8> {
    let civil = time.civil();
    let mut out = Vec::new();
    let mut rest = layout;
    loop {
        let (before, part, after) = next_part(rest);
        out.extend_from_slice(before);
        let Some(part) = part else { return out };
        out.extend_from_slice(text_of(time, &civil, part).as_bytes());
        // The separator of a fraction stays as it was written.
        if let (Part::Fraction(_) | Part::ShortFraction(_), b',') = (part, rest[before.len()]) {
            let length = text_of(time, &civil, part).len();
            if let Some(separator) = out.len().checked_sub(length).and_then(|at| out.get_mut(at)) {
                *separator = b',';
            }
        }
        rest = after;
    }
}

fn text_of(time: &Time, civil: &Civil, part: Part) -> String {
    let month = usize::try_from(civil.month - 1).ok().and_then(|m| MONTHS.get(m)).copied().unwrap_or_default();
    let weekday = WEEKDAYS.get(time.weekday()).copied().unwrap_or_default();
    let hour12 = if civil.hour % 12 == 0 { 12 } else { civil.hour % 12 };
    match part {
        Part::LongMonth => month.to_owned(),
        Part::Month => month[..3].to_owned(),
        Part::NumMonth => civil.month.to_string(),
        Part::ZeroMonth => format!("{:02}", civil.month),
        Part::LongWeekday => weekday.to_owned(),
        Part::Weekday => weekday[..3].to_owned(),
        Part::Day => civil.day.to_string(),
        Part::UnderDay => format!("{:2}", civil.day),
        Part::ZeroDay => format!("{:02}", civil.day),
        Part::UnderYearDay => format!("{:3}", time.year_day()),
        Part::ZeroYearDay => format!("{:03}", time.year_day()),
        Part::Hour => format!("{:02}", civil.hour),
        Part::Hour12 => hour12.to_string(),
        Part::ZeroHour12 => format!("{hour12:02}"),
        Part::Minute => civil.minute.to_string(),
        Part::ZeroMinute => format!("{:02}", civil.minute),
        Part::Second => civil.second.to_string(),
        Part::ZeroSecond => format!("{:02}", civil.second),
        Part::LongYear if civil.year < 0 => format!("-{:04}", -civil.year),
        Part::LongYear => format!("{:04}", civil.year),
        Part::Year => format!("{:02}", civil.year.rem_euclid(100)),
        Part::UpperPm => if civil.hour >= 12 { "PM" } else { "AM" }.to_owned(),
        Part::LowerPm => if civil.hour >= 12 { "pm" } else { "am" }.to_owned(),
        Part::ZoneName if time.zone.is_empty() => {
            offset_text(time.offset, Offset { z: false, colon: false, fields: 2 })
        }
        Part::ZoneName => time.zone.clone(),
        Part::Offset(style) => offset_text(time.offset, style),
        Part::Fraction(digits) => format!(".{}", fraction(time.nanosecond(), digits)),
        Part::ShortFraction(digits) => {
            let text = fraction(time.nanosecond(), digits);
            let text = text.trim_end_matches('0');
            if text.is_empty() { String::new() } else { format!(".{text}") }
        }
    }
}

fn fraction(nanos: u32, digits: usize) -> String {
    format!("{nanos:09}").chars().chain(std::iter::repeat('0')).take(digits).collect()
}

fn offset_text(offset: i32, style: Offset) -> String {
    if style.z && offset == 0 {
        return "Z".to_owned();
    }
    let sign = if offset < 0 { '-' } else { '+' };
    let seconds = offset.unsigned_abs();
    let colon = if style.colon { ":" } else { "" };
    let hours = seconds / 3600;
    let minutes = seconds / 60 % 60;
    match style.fields {
        1 => format!("{sign}{hours:02}"),
        2 => format!("{sign}{hours:02}{colon}{minutes:02}"),
        _ => format!("{sign}{hours:02}{colon}{minutes:02}{colon}{:02}", seconds % 60),
    }
}
