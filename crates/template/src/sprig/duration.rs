//! Durations in Go's notation, such as `1h30m`.

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// `time.ParseDuration`, in nanoseconds.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total = total.checked_add(whole.checked_mul(unit)?)?.checked_add(part(fraction, unit))?;
        rest = tail;
    }
    if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// A decimal fraction of a unit.
fn part(fraction: &str, unit: u64) -> u64 {
    let mut nanos: u128 = 0;
    let mut scale: u128 = 1;
    for digit in fraction.bytes().take(18) {
        nanos = nanos * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(nanos * u128::from(unit) / scale).unwrap_or(0)
}

/// `Duration.String`
pub(super) fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let total = nanos.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < SECOND {
        let (unit, name) = match total {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{name}", with_fraction(total, unit));
    }
    let seconds = format!("{}s", with_fraction(total % (60 * SECOND), SECOND));
    let minutes = total / (60 * SECOND);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}"),
    }
}

fn with_fraction(total: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    let fraction = format!("{:0digits$}", total % unit);
    match fraction.trim_end_matches('0') {
        "" => (total / unit).to_string(),
        fraction => format!("{}.{fraction}", total / unit),
    }
}

/// To the nearest second, half away from zero.
pub(super) fn round_to_second(nanos: i64) -> i64 {
    let second = SECOND.cast_signed();
    let rest = nanos % second;
    let cut = nanos - rest;
    if rest.unsigned_abs() * 2 < SECOND { cut } else { cut.saturating_add(second * rest.signum()) }
}
