//! Why an object could not be reconciled, and who needs to know.

use std::time::Duration;

use carrick_client::Error;
use carrick_json::TooDeep;
use carrick_sync::executor::{StepError, Target, Verb, asks_to_wait};
use thiserror::Error;

use super::feedback::failing::Station;
use super::reader::ReadError;
use crate::agent::platform_mesh::consumer::CONSUMER_CLUSTER;
use crate::decide::report::{Unplaced, UnplacedReason};
use crate::decide::{DecideError, ObjectAddress};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};

/// How much a consumer is told of what is wrong: events have their limits.
const LONGEST_DETAIL: usize = 800;

/// Whoever has to wait this long for a server is reported, although the server will have time again.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// One word for orders that are held because they have gone back in time.
pub(super) const HELD: &str = "Held";

/// What a consumer is told of what only the provider can do something about.
pub(super) const PROVIDER_SIDE: &str = "Failed to process object: a provider-side issue has occurred.";

/// Why an object could not be reconciled.
#[derive(Debug, Error)]
pub(super) enum ReconcileError {
    /// Something that the rules need cannot be read in the workspace.
    #[error("cannot read {what} in logical cluster {cluster}: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// In which cluster.
        cluster: String,
        /// What the server said.
        source: Error,
    },
    /// The workspace path cannot be read.
    #[error(
        "cannot read the path of logical cluster {cluster}: {source}; has its binding accepted the claim for logicalclusters?"
    )]
    Path {
        /// Which cluster.
        cluster: String,
        /// What the server said.
        source: Error,
    },
    /// Names depend on who is behind a broker, and that is not known yet.
    #[error(
        "spec.naming uses .ConsumerCluster, and the broker has not noted yet whose order this is (annotation {}); it is placed as soon as that is known",
        CONSUMER_CLUSTER
    )]
    NoConsumer,
    /// An object nests too deep to be copied.
    #[error("{what}: {problem}")]
    TooDeep {
        /// Which one.
        what: String,
        /// How deep.
        problem: TooDeep,
    },
    /// Its workspace has no room for it.
    #[error("{}", no_room(*.bytes, *.most))]
    NoRoom {
        /// How many bytes it takes.
        bytes: usize,
        /// How many the orders of one workspace may take.
        most: usize,
    },
    /// Related objects cannot be read.
    #[error(transparent)]
    Related(#[from] ReadError),
    /// The rules fail on this object.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// Something cannot be done for some related objects; everything else was done.
    #[error("{}", .0.iter().map(|problem| problem.told.as_str()).collect::<Vec<_>>().join("; "))]
    Problems(Vec<Problem>, #[source] Option<Box<ReadError>>),
    /// Everything was done, but there is something to know; nothing is retried until something changes.
    #[error("{}", .0.join("; "))]
    Notices(Vec<String>),
    /// A write failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A server asked to wait, and that time is not over: nothing is sent meanwhile, whatever has changed.
    #[error("{said}")]
    Throttled {
        /// What it said, with how long.
        said: String,
        /// How much of that is left.
        left: Duration,
    },
    /// Somebody else was faster again and again, and no event says so.
    #[error(
        "{step} ({rounds} times in a row); somebody else keeps writing it, or the agent does not see what is there: if no second agent is at work, restart this one"
    )]
    Contested {
        /// What failed.
        #[source]
        step: StepError,
        /// How often in a row.
        rounds: u32,
    },
}

/// Something that cannot be done.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    /// For the provider.
    pub told: String,
    /// For the consumer: nothing of the provider's servers, accounts and rights.
    pub for_consumer: String,
}

impl From<&ReadError> for Problem {
    fn from(error: &ReadError) -> Self {
        Self { told: error.to_string(), for_consumer: error.for_consumer() }
    }
}

impl From<&String> for Problem {
    /// What was decided on the objects alone holds nothing of servers.
    fn from(text: &String) -> Self {
        Self { told: text.clone(), for_consumer: text.clone() }
    }
}

impl ReconcileError {
    /// One word for metrics, if no server is to blame.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Path { .. } | Self::Related(_) | Self::Problems(..) => "Related",
            Self::Notices(_) => "Status",
            Self::Decide(DecideError::Held(_)) => HELD,
            Self::Decide(_) => "Rules",
            Self::NoConsumer => "NoConsumer",
            Self::TooDeep { .. } => "TooDeep",
            Self::Throttled { .. } => "TooManyRequests",
            Self::NoRoom { .. } => "NoRoom",
            Self::Step(StepError::Undone { .. }) => "Contested",
            Self::Step(StepError::TooOften { .. }) => "TooOften",
            Self::Step(_) => "Taken",
            Self::Contested { .. } => "Conflict",
        }
    }

    /// Where on its way the order stopped.
    pub fn station(&self, rules: &Rules, key: &SourceKey) -> Station {
        let step = match self {
            Self::Step(step) | Self::Contested { step, .. } => Some(step),
            _ => None,
        };
        let step = match (self, step) {
            (Self::Read { .. } | Self::Path { .. } | Self::NoConsumer, _) => return Station::Order,
            (Self::Related(_) | Self::Problems(..), _) => return Station::Related,
            (Self::Notices(_), _) | (_, Some(StepError::StatusRefused(_))) => return Station::Status,
            (_, Some(step)) => step,
            (_, None) => return Station::Copy,
        };
        // A namespace and what is remembered are needed for the copy.
        let Some(Target::Object(at)) = step.target() else { return Station::Copy };
        match step {
            StepError::Write { verb: Verb::WriteStatus, .. } if is_source(&at, rules, key) => Station::Status,
            _ if is_source(&at, rules, key) => Station::Order,
            _ if at.side == SERVICE_SIDE && at.kind.kind == rules.local.kind => Station::Copy,
            _ => Station::Related,
        }
    }

    /// What the consumer is told. What a consumer cannot do anything about stays with the provider.
    pub fn for_consumer(&self) -> String {
        let detail = match self {
            Self::Path { .. } => return "Failed to retrieve workspace path, cannot process object.".to_owned(),
            Self::Decide(DecideError::Refused(refusal)) => return format!("Not placed: {refusal}"),
            Self::Decide(DecideError::Held(setback)) => return setback.for_consumer().to_owned(),
            Self::Decide(
                error @ (DecideError::Taken(_) | DecideError::Earlier { .. } | DecideError::Disputed { .. }),
            ) => error.to_string(),
            Self::Problems(problems, _) => {
                problems.iter().map(|problem| problem.for_consumer.as_str()).collect::<Vec<_>>().join("; ")
            }
            Self::TooDeep { problem, .. } => format!("{problem}."),
            Self::NoRoom { .. } => self.to_string(),
            Self::Step(error) => match error.for_consumer() {
                Some(detail) => detail,
                None => return PROVIDER_SIDE.to_owned(),
            },
            _ => return PROVIDER_SIDE.to_owned(),
        };
        let detail: String = detail.chars().take(LONGEST_DETAIL).collect();
        format!("Failed to process object: {detail}")
    }

    /// Whether the provider does not want the object, although everything works.
    pub fn is_unwanted(&self) -> bool {
        matches!(self, Self::Decide(DecideError::Refused(_)))
    }

    /// Whether the order has gone back in time, and waits until somebody decides.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Decide(DecideError::Held(_)))
    }

    /// Why the object, or its last change, was not placed, if that will not change by itself. The order is told, not its related objects.
    pub fn refusal(&self) -> Option<String> {
        let told = match self {
            _ if self.is_race() || self.is_transient() || self.pause().is_some() => return None,
            Self::Problems(..) | Self::Notices(_) => return None,
            Self::Decide(DecideError::Refused(refusal)) => refusal.to_string(),
            Self::Step(StepError::Write { verb, source, .. }) if verb.places() => {
                source.denial().map_or_else(|| self.for_consumer(), str::to_owned)
            }
            _ => self.for_consumer(),
        };
        Some(told.chars().take(LONGEST_DETAIL).collect())
    }

    /// Why the order, or its last change, was not placed, for its status. Whoever cannot be reached is not named.
    pub fn unplaced(&self, rules: &Rules, key: &SourceKey) -> Option<Unplaced> {
        if let Self::Decide(DecideError::Refused(refusal)) = self {
            return Some(Unplaced { reason: UnplacedReason::of(refusal), message: refusal.to_string() });
        }
        if self.is_transient() && !self.is_race() && self.station(rules, key) == Station::Copy {
            let message = "the provider's cluster cannot be reached at the moment; it is tried again".to_owned();
            return Some(Unplaced { reason: UnplacedReason::Unreachable, message });
        }
        self.refusal().map(|message| Unplaced { reason: UnplacedReason::Refused, message })
    }

    /// How long the next attempt has to wait, because something undoes what is written, or because a server asks for that.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::Step(step) => step.pause().or_else(|| self.asks_to_wait()),
            Self::Throttled { left, .. } => Some(*left),
            _ => self.asks_to_wait(),
        }
    }

    /// How long a server asks to wait with the next attempt.
    pub fn asks_to_wait(&self) -> Option<Duration> {
        match self {
            Self::Step(step) | Self::Contested { step, .. } => step.asks_to_wait(),
            Self::Problems(_, Some(cause)) => match &**cause {
                ReadError::Server { source, .. } => asks_to_wait(source),
                _ => None,
            },
            _ => self.server_error().and_then(asks_to_wait),
        }
    }

    /// What is told to the provider: a server that asks to wait for long is a reason that lasts.
    pub fn told(&self) -> (String, bool) {
        let Some(wait) = self.asks_to_wait() else { return (self.to_string(), !self.is_transient()) };
        let seconds = wait.as_secs();
        (format!("{self}; the server asks to wait for {seconds} s"), wait >= LONG_WAIT)
    }

    /// Whether another object has the name of the copy.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Step(error) if error.is_taken())
    }

    /// Whether a server knows us and says no.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Step(error) => error.is_forbidden(),
            _ => self.server_error().is_some_and(Error::is_forbidden),
        }
    }

    /// Whether somebody else was faster, which is no failure.
    pub fn is_race(&self) -> bool {
        matches!(self, Self::Step(error) if error.is_race())
    }

    /// Whether a server is at fault, so that it may work by itself later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::NoConsumer => true,
            Self::Step(error) => error.is_transient(),
            _ => self.server_error().is_some_and(Error::is_transient),
        }
    }

    /// What a server said to a read.
    fn server_error(&self) -> Option<&Error> {
        match self {
            Self::Read { source, .. } | Self::Path { source, .. } | Self::Related(ReadError::Server { source, .. }) => {
                Some(source)
            }
            Self::Related(_)
            | Self::Problems(..)
            | Self::Notices(_)
            | Self::Decide(_)
            | Self::NoConsumer
            | Self::TooDeep { .. }
            | Self::NoRoom { .. }
            | Self::Step(_)
            | Self::Throttled { .. }
            | Self::Contested { .. } => None,
        }
    }
}

fn no_room(bytes: usize, most: usize) -> String {
    format!(
        "the orders of this workspace take more than the {most} bytes that the agent keeps of one workspace (--max-cached-bytes): \
         this one, of {bytes} bytes, waits until others are deleted or shrink, or the provider raises the limit"
    )
}

/// Whether that is the order itself.
fn is_source(at: &ObjectAddress, rules: &Rules, key: &SourceKey) -> bool {
    at.is_same_object(&ObjectAddress::of_source(KCP_SIDE, &rules.remote, key))
}

#[cfg(test)]
mod tests {
    use carrick_client::Status;

    use super::*;
    use crate::decide::{Refusal, Side};
    use crate::rules::ApiKind;

    fn address(side: Side, kind: &str, namespace: &str, name: &str) -> ObjectAddress {
        let kind = ApiKind {
            group: if kind == "CronTab" { "example.com" } else { "" }.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
        };
        ObjectAddress { side, kind: kind.into(), namespace: Some(namespace.into()), name: name.into() }
    }

    fn refused(verb: Verb, at: impl Into<Target>, code: u16, message: &str) -> ReconcileError {
        let reason = match code {
            403 => "Forbidden",
            409 => "Conflict",
            422 => "Invalid",
            _ => "",
        };
        let status = Status { code, reason: reason.into(), message: message.to_owned(), ..Status::default() };
        StepError::Write { verb, at: at.into(), source: status.into() }.into()
    }

    fn answered(code: u16, message: &str) -> ReconcileError {
        refused(Verb::Create, address(SERVICE_SIDE, "Bucket", "ns", "one"), code, message)
    }

    #[test]
    fn an_order_stops_at_the_station_whose_work_failed() {
        use crate::rules::tests::{crontab, published};
        let rules = Rules::compile(&published(serde_json::json!({})), &crontab(), "agent").unwrap();
        let key = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "one".into() };
        let order = || ObjectAddress::of_source(KCP_SIDE, &rules.remote, &key);
        let copy = || address(SERVICE_SIDE, &rules.local.kind, "c", "x");
        let write = |verb, at: Target| refused(verb, at, 403, "");
        let foreign = |at: ObjectAddress| StepError::Refused { at, advice: "" }.into();
        let memory = Target::Memory("state Secret of ns/one in logical cluster c".to_owned());
        for (error, station) in [
            (write(Verb::SetFinalizers, order().into()), Station::Order),
            (write(Verb::WriteStatus, order().into()), Station::Status),
            (write(Verb::Create, copy().into()), Station::Copy),
            (write(Verb::Create, Target::Namespace("c".to_owned())), Station::Copy),
            (write(Verb::Remember, memory), Station::Copy),
            (write(Verb::Create, address(KCP_SIDE, "Secret", "ns", "one-credentials").into()), Station::Related),
            (write(Verb::Delete, address(SERVICE_SIDE, "ConfigMap", "c", "one").into()), Station::Related),
            (foreign(copy()), Station::Copy),
            (foreign(address(KCP_SIDE, "Secret", "ns", "x")), Station::Related),
            (StepError::StatusRefused("s".to_owned()).into(), Station::Status),
            (ReconcileError::Notices(vec!["n".to_owned()]), Station::Status),
            (ReconcileError::Contested { step: StepError::Stale(copy()), rounds: 3 }, Station::Copy),
            (ReconcileError::Problems(vec![Problem::from(&"p".to_owned())], None), Station::Related),
            (ReconcileError::Decide(Refusal::Rule("r".to_owned()).into()), Station::Copy),
        ] {
            assert_eq!(error.station(&rules, &key), station, "{error}");
        }
    }

    /// Whichever way a copy is written, and so with either memory, the same answer of a server says the same.
    #[test]
    fn what_is_reported_does_not_depend_on_how_a_copy_is_written() {
        let policy = "admission webhook \"w\" denied the request: no";
        let right = "User \"agent\" cannot patch resource";
        let told = |detail: &str| format!("Failed to process object: {detail}");
        for verb in [Verb::Create, Verb::Edit, Verb::Apply, Verb::Adopt] {
            for (code, said, consumer, annotation) in [
                (422, "spec.size: too large", told("spec.size: too large"), Some(told("spec.size: too large"))),
                (403, policy, PROVIDER_SIDE.to_owned(), Some(policy.to_owned())),
                (403, right, PROVIDER_SIDE.to_owned(), Some(PROVIDER_SIDE.to_owned())),
                // Somebody else was faster: it is decided again, and nobody needs to know.
                (409, "the object has been modified", PROVIDER_SIDE.to_owned(), None),
            ] {
                let error = refused(verb, address(SERVICE_SIDE, "Bucket", "ns", "one"), code, said);
                assert_eq!(error.for_consumer(), consumer, "{error}");
                assert_eq!(error.refusal(), annotation, "{error}");
                assert_eq!(error.is_race(), code == 409, "{error}");
                let provider = error.to_string();
                assert!(provider.starts_with(&format!("cannot {verb} service Bucket ns/one: ")), "{provider}");
                assert!(provider.contains(said), "{provider}");
            }
        }
        // What does not come from the order says nothing about it.
        let state = Target::Memory("the state".to_owned());
        assert_eq!(refused(Verb::Remember, state, 422, "data: too large").for_consumer(), PROVIDER_SIDE);
    }

    #[test]
    fn consumers_learn_what_the_provider_refuses_and_nothing_about_its_servers() {
        for (error, told) in [
            (
                answered(403, "buckets \"a\" is forbidden: exceeded quota: q"),
                Some("buckets \"a\" is forbidden: exceeded quota: q"),
            ),
            (answered(503, "denied the request"), None),
            (ReconcileError::Decide(Refusal::Rule("too large".to_owned()).into()), Some("too large")),
            (ReconcileError::Notices(vec!["n".to_owned()]), None),
        ] {
            assert_eq!(error.refusal().as_deref(), told, "{error}");
        }
    }

    #[test]
    fn a_right_that_the_agent_lacks_is_the_providers_business() {
        use crate::rules::related::Gvr;
        let words = "secrets is forbidden: User \"system:serviceaccount:kcp-system:agent\" cannot list";
        let of = |side| {
            let gvr = Gvr { group: String::new(), version: "v1".to_owned(), resource: "secrets".to_owned() };
            let status =
                Status { code: 403, reason: "Forbidden".into(), message: words.to_owned(), ..Status::default() };
            let problem = Problem::from(&ReadError::of("credentials", side, &gvr, status.into()));
            assert!(problem.told.contains(words), "{}", problem.told);
            ReconcileError::Problems(vec![problem], None).for_consumer()
        };
        let told = of(SERVICE_SIDE);
        assert!(told.contains("\"credentials\"") && told.contains("provider-side issue"), "{told}");
        assert!(!told.contains("kcp-system") && !told.contains("ClusterRole"), "{told}");
        let told = of(KCP_SIDE);
        assert!(told.contains("APIBinding must accept the claim for secrets"), "{told}");
        assert!(!told.contains("kcp-system"), "{told}");
    }
}
