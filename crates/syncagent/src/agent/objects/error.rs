//! Why an object could not be reconciled, and who needs to know.

use carrick_client::Error;
use carrick_execute::StepError;
use carrick_json::TooDeep;
use thiserror::Error;

use super::failing::Station;
use super::reader::ReadError;
use crate::decide::{DecideError, ObjectAddress};
use crate::rules::Rules;
use crate::rules::metadata::{KCP_SIDE, SERVICE_SIDE, SourceKey};

/// How much a consumer is told of what is wrong: events have their limits.
const LONGEST_DETAIL: usize = 800;

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
    /// An object nests too deep to be copied.
    #[error("{what}: {problem}")]
    TooDeep {
        /// Which one.
        what: String,
        /// How deep.
        problem: TooDeep,
    },
    /// Related objects cannot be read.
    #[error(transparent)]
    Related(#[from] ReadError),
    /// The rules fail on this object.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// Something cannot be done for some related objects; everything else was done.
    #[error("{}", .0.join("; "))]
    Problems(Vec<String>, #[source] Option<Box<ReadError>>),
    /// Everything was done, but there is something to know; nothing is retried until something changes.
    #[error("{}", .0.join("; "))]
    Notices(Vec<String>),
    /// A write failed.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl ReconcileError {
    /// One word for metrics, if no server is to blame.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Path { .. } | Self::Related(_) | Self::Problems(..) => "Related",
            Self::Notices(_) => "Status",
            Self::Decide(_) => "Rules",
            Self::TooDeep { .. } => "TooDeep",
            Self::Step(_) => "Taken",
        }
    }

    /// Where on its way the order stopped.
    pub fn station(&self, rules: &Rules, key: &SourceKey) -> Station {
        let at = match self {
            Self::Read { .. } | Self::Path { .. } => return Station::Order,
            Self::Related(_) | Self::Problems(..) => return Station::Related,
            Self::Notices(_) | Self::Step(StepError::StatusRefused(_)) => return Station::Status,
            Self::Step(StepError::Write { at, verb, .. }) if *at == source_at(rules, key) => {
                return if *verb == "write-status" { Station::Status } else { Station::Order };
            }
            Self::Step(StepError::Write { at, .. } | StepError::Foreign { at, .. } | StepError::Refused { at, .. }) => {
                at
            }
            Self::Step(StepError::Stale(at) | StepError::CopyLeft(at)) => at,
            // Whatever else may come to fail on the way is a write of the copy.
            Self::TooDeep { .. } | Self::Decide(_) | Self::Step(_) => return Station::Copy,
        };
        let sides = [KCP_SIDE, SERVICE_SIDE];
        let is_elsewhere = sides.iter().any(|side| at.starts_with(&format!("{} ", side.name)));
        // A namespace and what is remembered are needed for the copy.
        let of_copy = at.starts_with(&format!("{} {} ", SERVICE_SIDE.name, rules.local.kind));
        if of_copy || !is_elsewhere { Station::Copy } else { Station::Related }
    }

    /// What the consumer is told. What a consumer cannot do anything about stays with the provider.
    pub fn for_consumer(&self) -> String {
        let detail = match self {
            Self::Path { .. } => return "Failed to retrieve workspace path, cannot process object.".to_owned(),
            Self::Decide(DecideError::Refused(refusal)) => return format!("Not placed: {refusal}"),
            Self::Decide(
                error @ (DecideError::Taken(_) | DecideError::Earlier { .. } | DecideError::Disputed { .. }),
            ) => error.to_string(),
            Self::Problems(problems, _) => problems.join("; "),
            Self::TooDeep { problem, .. } => format!("{problem}."),
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

    /// Why the object, or its last change, was not placed, if that will not change by itself. The order is told, not its related objects.
    pub fn refusal(&self) -> Option<String> {
        let told = match self {
            _ if self.is_race() || self.is_transient() => return None,
            Self::Problems(..) | Self::Notices(_) => return None,
            Self::Decide(DecideError::Refused(refusal)) => refusal.to_string(),
            Self::Step(StepError::Write { verb: "create" | "edit" | "replace" | "apply", source, .. }) => {
                denial(source).unwrap_or_else(|| self.for_consumer())
            }
            _ => self.for_consumer(),
        };
        Some(told.chars().take(LONGEST_DETAIL).collect())
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
            | Self::TooDeep { .. }
            | Self::Step(_) => None,
        }
    }
}

/// The order itself, as steps name it.
fn source_at(rules: &Rules, key: &SourceKey) -> String {
    ObjectAddress::of_source(KCP_SIDE, &rules.remote, key).to_string()
}

/// What an admission webhook, a policy or a quota of the service cluster said. Who lacks a right is the provider's business.
fn denial(error: &Error) -> Option<String> {
    let status = error.status()?;
    let denied = ["denied the request", "denied request", "exceeded quota"];
    let denied = status.code < 500 && denied.iter().any(|words| status.message.contains(words));
    denied.then(|| status.message.clone())
}

#[cfg(test)]
mod tests {
    use carrick_client::Status;

    use super::*;
    use crate::decide::Refusal;

    fn answered(code: u16, message: &str) -> ReconcileError {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        StepError::Write { verb: "create", at: "service Bucket ns/one".to_owned(), source: status.into() }.into()
    }

    #[test]
    fn an_order_stops_at_the_station_whose_work_failed() {
        use crate::rules::tests::{crontab, published};
        let rules = Rules::compile(&published(serde_json::json!({})), &crontab(), "agent").unwrap();
        let key = SourceKey { cluster: "c".into(), namespace: "ns".into(), name: "one".into() };
        let write = |verb, at: &str| {
            let status = Status { code: 403, ..Status::default() };
            ReconcileError::Step(StepError::Write { verb, at: at.to_owned(), source: status.into() })
        };
        let foreign = |at: &str| StepError::Refused { at: at.to_owned(), advice: "" }.into();
        for (error, station) in [
            (write("set-finalizers", "kcp CronTab ns/one"), Station::Order),
            (write("write-status", "kcp CronTab ns/one"), Station::Status),
            (write("create", "service CronTab c/x"), Station::Copy),
            (write("create", "namespace c"), Station::Copy),
            (write("remember", "state Secret of ns/one in logical cluster c"), Station::Copy),
            (write("create", "kcp Secret ns/one-credentials"), Station::Related),
            (write("delete", "service ConfigMap c/one"), Station::Related),
            (foreign("service CronTab c/x"), Station::Copy),
            (foreign("kcp Secret ns/x"), Station::Related),
            (StepError::StatusRefused("s".to_owned()).into(), Station::Status),
            (ReconcileError::Notices(vec!["n".to_owned()]), Station::Status),
            (ReconcileError::Problems(vec!["p".to_owned()], None), Station::Related),
            (ReconcileError::Decide(Refusal::Rule("r".to_owned()).into()), Station::Copy),
        ] {
            assert_eq!(error.station(&rules, &key), station, "{error}");
        }
    }

    #[test]
    fn consumers_learn_what_the_provider_refuses_and_nothing_about_its_servers() {
        for (error, told) in [
            (
                answered(403, "admission webhook \"w\" denied the request: no"),
                Some("admission webhook \"w\" denied the request: no"),
            ),
            (
                answered(403, "buckets \"a\" is forbidden: exceeded quota: q"),
                Some("buckets \"a\" is forbidden: exceeded quota: q"),
            ),
            (answered(403, "User \"agent\" cannot create resource"), Some(PROVIDER_SIDE)),
            (answered(503, "denied the request"), None),
            (ReconcileError::Decide(Refusal::Rule("too large".to_owned()).into()), Some("too large")),
            (ReconcileError::Notices(vec!["n".to_owned()]), None),
        ] {
            assert_eq!(error.refusal().as_deref(), told, "{error}");
        }
    }
}
