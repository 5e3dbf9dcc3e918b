//! What a reconciler wants next.

use std::time::Duration;

/// What a reconciler, or an error policy, wants next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    #[default]
    AwaitChange,
    /// Another look after this time, or earlier if something changes.
    Requeue(Duration),
    /// Another look after a pause that grows from try to try, until one succeeds. The right answer to most errors.
    Backoff,
}

impl Action {
    /// Nothing until something changes.
    pub const fn await_change() -> Self {
        Self::AwaitChange
    }

    /// Another look after this time, or earlier if something changes.
    pub const fn requeue(after: Duration) -> Self {
        Self::Requeue(after)
    }

    /// Another look after a pause that grows from try to try, until one succeeds.
    pub const fn backoff() -> Self {
        Self::Backoff
    }
}

impl From<kube::runtime::controller::Action> for Action {
    fn from(action: kube::runtime::controller::Action) -> Self {
        requeue_after(&action).map_or(Self::AwaitChange, Self::Requeue)
    }
}

/// kube keeps the delay of its actions to itself, except in their debug form.
fn requeue_after(action: &kube::runtime::controller::Action) -> Option<Duration> {
    let text = format!("{action:?}");
    let (_, text) = text.split_once("Some(")?;
    let (text, _) = text.split_once(')')?;
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let nanos_of_unit: u64 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "µs" => 1_000,
        _ => 1,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut nanos = 0;
    let mut place = nanos_of_unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos += u64::from(digit - b'0') * place;
    }
    let whole = if unit == "s" { Duration::from_secs(whole) } else { Duration::from_nanos(whole * nanos_of_unit) };
    Some(whole + Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::runtime::controller::Action as KubeAction;

    #[test]
    fn actions_of_kube_keep_their_delay() {
        let delays = [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_nanos(1_500),
            Duration::from_micros(7),
            Duration::from_millis(5),
            Duration::from_nanos(5_000_001),
            Duration::from_secs(1),
            Duration::new(3, 141_592_653),
            Duration::from_hours(1),
            Duration::MAX,
        ];
        for delay in delays {
            assert_eq!(Action::from(KubeAction::requeue(delay)), Action::Requeue(delay));
        }
        assert_eq!(Action::from(KubeAction::await_change()), Action::AwaitChange);
    }
}
