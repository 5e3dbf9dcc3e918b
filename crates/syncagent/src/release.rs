//! Names of agents that are no more, without an agent: whoever serves the export has their part. For `carrick release`.

use std::collections::BTreeSet;
use std::sync::Arc;

use carrick_client::Error;
use carrick_kcp::apis::v1alpha2::ApiExport;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::config::AgentConfig;
use crate::agent::connect::{self, ConnectError, KcpLocations};
use crate::agent::health::Health;
use crate::api::{FORMER_AGENTS, KEEPER};
use crate::rules::keeper::{Beat, Keeper, read, read_former, write_former};

/// Why a name cannot be released.
#[derive(Debug, Error)]
pub enum ReleaseError {
    /// The slice or the export cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A server does not answer, or refuses.
    #[error("cannot {action} APIExport {export}: {source}")]
    Request {
        /// What was tried.
        action: &'static str,
        /// Name of the export.
        export: String,
        /// What the server said.
        source: Box<Error>,
    },
    /// There is no such export.
    #[error("APIExport {0} does not exist")]
    NoExport(String),
    /// The agent is at work.
    #[error(
        "agent {agent} keeps {resources} in this APIExport and was there {seconds} s ago; stop it first, and wait until that is {expires} s ago, or let \
         another agent take over with --take-over"
    )]
    AtWork {
        /// Its name.
        agent: String,
        /// What it keeps.
        resources: String,
        /// When it was last seen.
        seconds: i64,
        /// When it counts as gone.
        expires: i64,
    },
    /// Such a name cannot be written down.
    #[error("{0:?} is no name of an agent")]
    NoName(String),
}

/// Who serves an export, and who did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agents {
    /// Name of the export.
    pub export: String,
    /// Agents that keep something in it.
    pub serving: BTreeSet<String>,
    /// Names of agents that are no more.
    pub former: BTreeSet<String>,
}

/// The export whose former agents are to be known.
pub struct Releaser {
    places: KcpLocations,
    beat: Beat,
}

impl Releaser {
    /// Connects as an agent with this configuration would.
    pub async fn connect(config: &AgentConfig) -> Result<Self, ReleaseError> {
        let part = Arc::new(Health::default()).part("connection to kcp");
        let places = connect::connect(&config.kcp, &config.slice, true, &part, &CancellationToken::new()).await?;
        // Nobody tells it to stop, so there is an answer.
        let places = places.ok_or_else(|| ReleaseError::NoExport(config.slice.to_string()))?;
        Ok(Self { places, beat: config.timing.into() })
    }

    /// Who serves the export, and who did.
    pub async fn agents(&self) -> Result<Agents, ReleaseError> {
        Ok(self.described(&self.export().await?))
    }

    /// Notes that an agent is no more, or takes that back.
    pub async fn note(&self, name: &str, is_former: bool) -> Result<Agents, ReleaseError> {
        if name.is_empty() || name.contains([',', '/', ' ']) {
            return Err(ReleaseError::NoName(name.to_owned()));
        }
        loop {
            let export = self.export().await?;
            let mut former = read_former(export.metadata.annotation(FORMER_AGENTS));
            if is_former {
                self.check(&export, name)?;
                former.insert(name.to_owned());
            } else {
                former.remove(name);
            }
            let patch = json!({ "metadata": {
                "resourceVersion": export.metadata.resource_version,
                "annotations": { FORMER_AGENTS: write_former(&former) },
            }});
            let written = self.places.export.client.patch_newest::<ApiExport>(&self.places.export_name, &patch).await;
            match written {
                Ok(written) => return Ok(self.described(&written)),
                // Agents renew their entries now and then.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(self.failed("annotate", error)),
            }
        }
    }

    /// Refuses the name of an agent that is at work.
    fn check(&self, export: &ApiExport, name: &str) -> Result<(), ReleaseError> {
        let Some(keeper) = self.at_work(export).into_iter().find(|keeper| keeper.agent == name) else { return Ok(()) };
        Err(ReleaseError::AtWork {
            agent: keeper.agent.clone(),
            resources: keeper.keeps.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
            seconds: keeper.age(Timestamp::now().as_millisecond()) / 1000,
            expires: self.beat.old / 1000,
        })
    }

    fn at_work(&self, export: &ApiExport) -> Vec<Keeper> {
        let now = Timestamp::now().as_millisecond();
        let mut keepers = read(export.metadata.annotation(KEEPER));
        keepers.retain(|keeper| keeper.age(now) < self.beat.old && !keeper.keeps.is_empty());
        keepers
    }

    fn described(&self, export: &ApiExport) -> Agents {
        Agents {
            export: self.places.export_name.clone(),
            serving: self.at_work(export).into_iter().map(|keeper| keeper.agent).collect(),
            former: read_former(export.metadata.annotation(FORMER_AGENTS)),
        }
    }

    async fn export(&self) -> Result<ApiExport, ReleaseError> {
        let name = &self.places.export_name;
        let found = self.places.export.client.get_newest(name).await.map_err(|error| self.failed("read", error))?;
        found.ok_or_else(|| ReleaseError::NoExport(name.clone()))
    }

    fn failed(&self, action: &'static str, source: Error) -> ReleaseError {
        ReleaseError::Request { action, export: self.places.export_name.clone(), source: Box::new(source) }
    }
}
