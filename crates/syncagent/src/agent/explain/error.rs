//! Why nothing can be explained.

use std::time::Duration;

use carrick_client::Error;
use thiserror::Error;

use crate::agent::connect::ConnectError;

/// Why nothing can be explained.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The slice or the export cannot be found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// PublishedResources or CRDs cannot be read.
    #[error("cannot read what is published within {} s: {problem}", .patience.as_secs())]
    Catalog {
        /// How long it was tried.
        patience: Duration,
        /// What does not work.
        problem: String,
    },
    /// Something in the export's workspace cannot be read.
    #[error("cannot read {what} in the workspace of the APIExport: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// What the server said.
        source: Box<Error>,
    },
    /// There is no such PublishedResource.
    #[error("there is no PublishedResource {name:?} here{}", there_are(.known))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// There is no such workspace among those of the consumers.
    #[error("no consumer's workspace is called {workspace:?}: none of that name has bound the APIExport{}", there_are(.known))]
    NoWorkspace {
        /// The workspace asked for.
        workspace: String,
        /// Those that have bound the export.
        known: Vec<String>,
    },
    /// There is no such object.
    #[error("no object {object} is offered{}{}", place(.workspace.as_deref()), or_left_alone(.idle))]
    NoObject {
        /// The object asked for.
        object: String,
        /// The workspace asked for.
        workspace: Option<String>,
        /// PublishedResources whose objects are not looked at, with the reason.
        idle: Vec<String>,
    },
}

/// How many names an error lists.
const LISTED: usize = 10;

fn there_are(names: &[String]) -> String {
    let more = if names.len() > LISTED { ", …" } else { "" };
    match names {
        [] => "; there is none at all".to_owned(),
        names => format!("; there are {}{more}", names[..names.len().min(LISTED)].join(", ")),
    }
}

fn or_left_alone(idle: &[String]) -> String {
    match idle {
        [] => "; see what is there with `carrick explain` and no object".to_owned(),
        idle => format!(", or it is among those that are left alone: {}", idle.join("; ")),
    }
}

fn place(workspace: Option<&str>) -> String {
    workspace.map(|workspace| format!(" in workspace {workspace}")).unwrap_or_default()
}
