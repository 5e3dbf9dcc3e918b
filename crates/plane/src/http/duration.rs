//! Ages as kubectl shows them.

use jiff::Timestamp;

/// How long ago a time was: `30s`, `2m14s`, `16m`, `18d`.
pub(super) fn since(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => human(Timestamp::now().duration_since(then).as_secs()),
        Err(_) => "<unknown>".into(),
    }
}

fn human(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    let pair = |whole: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200.. if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_follow_kubectl() {
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (134, "2m14s"),
            (180, "3m"),
            (960, "16m"),
            (3 * 3600 + 60, "3h1m"),
            (20 * 3600, "20h"),
            (49 * 3600, "2d1h"),
            (18 * 86_400, "18d"),
            (3 * 365 * 86_400, "3y"),
        ] {
            assert_eq!(human(seconds), expected);
        }
    }
}
