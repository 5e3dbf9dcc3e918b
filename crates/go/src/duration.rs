//! Durations as Go's `time` package writes them: `1h30m`, `-1.5s`, `300ms`. All are nanoseconds in an `i64`, as in Go.

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// `time.ParseDuration`; none where that reports an error.
///
/// ```
/// use carrick_go::duration;
///
/// assert_eq!(duration::parse("1h30m"), Some(5_400_000_000_000));
/// assert_eq!(duration::parse("1 day"), None);
/// ```
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let length = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let unit = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?.checked_add(part(fraction, unit))?;
        rest = after;
    }
    if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// What the `duration` format of OpenAPI schemas takes, which is more than [`parse`] does: also numbers with words, as in
/// `3 days` or `2 weeks 1 hour`, in any text. None where the API server finds no duration.
///
/// ```
/// assert_eq!(carrick_go::duration::parse_format("2 hours"), carrick_go::duration::parse("2h"));
/// ```
pub fn parse_format(text: &str) -> Option<i64> {
    /// The last name of each may have any ending.
    const UNITS: [(&[&str], u64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3_600 * SECOND),
        (&["d", "day"], 86_400 * SECOND),
        (&["w", "wk", "week"], 604_800 * SECOND),
    ];
    if let Some(nanos) = parse(text) {
        return Some(nanos);
    }
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (number, after) = split_digits(&rest[start..]);
        let after = after.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let length = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        let (word, after) = after.split_at(length);
        rest = after;
        if word.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        let word = word.to_ascii_lowercase();
        for (names, unit) in UNITS {
            let last = names.last().is_some_and(|name| word.starts_with(name));
            if last || names.contains(&word.as_str()) {
                let nanos = number.wrapping_mul(unit.cast_signed());
                total = Some(total.unwrap_or(0_i64).wrapping_add(nanos));
            }
        }
    }
    total
}

/// The digits at the front, and what follows them.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// A decimal fraction of a unit, rounded as Go rounds: by calculating with floats.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn part(fraction: &str, unit: u64) -> u64 {
    let (mut digits, mut scale) = (0_u64, 1.0_f64);
    for digit in fraction.bytes().map(|byte| u64::from(byte - b'0')) {
        // Digits beyond these change nothing.
        match digits.checked_mul(10).and_then(|digits| digits.checked_add(digit)).filter(|all| *all <= 1 << 63) {
            Some(all) => digits = all,
            None => break,
        }
        scale *= 10.0;
    }
    (digits as f64 * (unit as f64 / scale)) as u64
}

/// `Duration.String`.
///
/// ```
/// assert_eq!(carrick_go::duration::format(5_400_000_000_000), "1h30m0s");
/// ```
pub fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    let (unit, name) = match total {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..SECOND => (1_000_000, "ms"),
        _ => {
            let seconds = with_fraction(total % (60 * SECOND), SECOND);
            let minutes = total / (60 * SECOND);
            return match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            };
        }
    };
    format!("{sign}{}{name}", with_fraction(total, unit))
}

/// Seconds alone, as protocol buffers write durations: `5400s`, `-1.5s`.
pub fn format_seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}s", with_fraction(nanos.unsigned_abs(), SECOND))
}

/// So many units, with as many decimals as it needs.
fn with_fraction(total: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    let fraction = format!("{:0digits$}", total % unit);
    match fraction.trim_end_matches('0') {
        "" => (total / unit).to_string(),
        fraction => format!("{}.{fraction}", total / unit),
    }
}

/// To the nearest second, half away from zero: `Duration.Round(time.Second)`.
pub fn round_to_second(nanos: i64) -> i64 {
    let second = SECOND.cast_signed();
    let rest = nanos % second;
    let cut = nanos - rest;
    if rest.unsigned_abs() * 2 < SECOND { cut } else { cut.saturating_add(second * rest.signum()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_go_prints_them_and_read_back() {
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
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(format(nanos), want);
            assert_eq!(parse(want), Some(nanos), "{want}");
        }
    }

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, want) in [
            ("0", 0),
            ("-0", 0),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("12\u{b5}s", 12_000),
            ("12\u{3bc}s", 12_000),
            ("-2m3.4s", -123_400_000_000),
            // Go calculates with floats: these are not a nanosecond less.
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("0.9223372036854775807h", 3_320_413_933_267),
            ("0.100000000000000000000h", 360_000_000_000),
            ("0.830103483285477580700h", 2_988_372_539_827),
        ] {
            assert_eq!(parse(text), Some(want), "{text}");
        }
        for wrong in [
            "",
            "-",
            "+",
            "3",
            "s",
            ".",
            "-.",
            ".s",
            "1x",
            "h",
            "1h-1m",
            "300000000h",
            "1.2.3s",
            "9223372036854775808ns",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn formats_take_words_too() {
        for (text, want) in [
            ("90m", Some("1h30m0s")),
            ("3 days", Some("72h0m0s")),
            ("1w 2 hours", Some("170h0m0s")),
            ("in 5 MINUTES or so", Some("5m0s")),
            ("2wks", None),
            ("7 microns", Some("7µs")),
            ("3 dogs", None),
            ("x", None),
            ("", None),
            ("99999999999999999999 days", None),
        ] {
            assert_eq!(parse_format(text).map(format).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn halves_round_away_from_zero() {
        for (text, want) in [("1.5s", "2s"), ("-1.5s", "-2s"), ("1.49s", "1s"), ("400ms", "0s")] {
            assert_eq!(parse(text).map(round_to_second).map(format).as_deref(), Some(want), "{text}");
        }
        assert_eq!(format_seconds(-1_500_000_000), "-1.5s");
        assert_eq!(format_seconds(5_400_000_000_000), "5400s");
    }
}
