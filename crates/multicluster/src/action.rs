//! What a reconciler wants next.

use std::time::Duration;

use kube::runtime::controller::Action as KubeAction;

/// What a reconciler, or an error policy, wants next.
///
/// kube's own [`Action`](KubeAction) can be used instead wherever a reconciler returns one: it is converted without loss.
///
/// ```
/// # use std::time::Duration;
/// use carrick_multicluster::Action;
///
/// let hourly = Action::requeue(Duration::from_secs(3600));
/// assert_eq!(hourly, kube::runtime::controller::Action::requeue(Duration::from_secs(3600)).into());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    #[default]
    AwaitChange,
    /// Reconcile again after this time, or earlier if something changes. Any time is allowed; [`Duration::MAX`] never comes.
    Requeue(Duration),
    /// Reconcile again after a pause that grows with every failure, until one succeeds. The right answer to most errors.
    Backoff,
}

impl Action {
    /// Nothing until something changes.
    pub const fn await_change() -> Self {
        Self::AwaitChange
    }

    /// Reconcile again after this time, or earlier if something changes.
    pub const fn requeue(after: Duration) -> Self {
        Self::Requeue(after)
    }

    /// Reconcile again after a pause that grows with every failure, until one succeeds.
    pub const fn backoff() -> Self {
        Self::Backoff
    }
}

impl From<KubeAction> for Action {
    /// kube keeps the delay of its actions to itself, except in their debug form. What is read there is compared with the action, so a
    /// version of kube that prints another form cannot make a requeue vanish: the object is then requeued with [`Action::Backoff`].
    fn from(action: KubeAction) -> Self {
        convert(&action, &format!("{action:?}"))
    }
}

fn convert(action: &KubeAction, shown: &str) -> Action {
    if *action == KubeAction::await_change() {
        return Action::AwaitChange;
    }
    if let Some(after) = requeue_after(shown).filter(|after| *action == KubeAction::requeue(*after)) {
        return Action::Requeue(after);
    }
    tracing::warn!(shown, "An action of kube is not understood, so its object is requeued with growing pauses.");
    Action::Backoff
}

fn requeue_after(text: &str) -> Option<Duration> {
    let (_, text) = text.split_once("Some(")?;
    let (text, _) = text.split_once(')')?;
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let nanos_of_unit: u64 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "µs" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let mut nanos = 0;
    let mut place = nanos_of_unit;
    for digit in fraction.bytes() {
        place /= 10;
        nanos += u64::from(digit.checked_sub(b'0')?) * place;
    }
    let whole =
        if unit == "s" { Duration::from_secs(whole) } else { Duration::from_nanos(whole.checked_mul(nanos_of_unit)?) };
    whole.checked_add(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_action_in_another_form_is_not_taken_for_the_end() {
        let action = KubeAction::requeue(Duration::from_secs(5));
        for shown in ["Action { after: 5s }", "Some(5 seconds)", "Some(7s)", "Some(5)", "Some(5x)", "Some(5.:s)", ""] {
            assert_eq!(convert(&action, shown), Action::Backoff, "{shown}");
        }
        assert_eq!(convert(&action, "Some(5s)"), Action::Requeue(Duration::from_secs(5)));
        assert_eq!(convert(&KubeAction::await_change(), "whatever"), Action::AwaitChange);
    }
}
