//! How much a change harms.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a change harms those who use an API. The later ones are worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Every object that was valid before is valid after, and stored the same in every field that the API had before.
    #[default]
    Compatible,
    /// Some objects that were valid are refused. Those that are stored are still read, and can be updated where they are invalid only in
    /// parts that do not change; they can be labelled, released and removed.
    Tightening,
    /// Data is dropped or changes its meaning, a version or a name goes away, clients that only read stop working, or stored objects
    /// cannot even be released.
    Breaking,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Compatible => "compatible",
            Self::Tightening => "tightening",
            Self::Breaking => "breaking",
        })
    }
}
