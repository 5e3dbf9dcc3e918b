//! Conversions, compiled: how an object gets from one version to another.
//!
//! ```text
//!  kcp, v1 ──▶ Conversions ──▶ service cluster, v1alpha1     on the way, by the agent      (passage)
//!  kcp, v1 ◀──▶ kcp, v1alpha1                                at every request, by kcp's webhook (agent/conversion)
//! ```

mod passage;
mod route;
pub(super) mod step;

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::mutation::MutationError;
use super::ways::way;
use crate::api;
use route::Rule;
use step::ConversionStep;

pub use passage::Passage;
pub use route::Route;

/// Why conversions cannot be compiled, or an object cannot be converted.
#[derive(Debug, Error)]
pub enum ConversionError {
    /// A step is not valid, or failed on an object.
    #[error(transparent)]
    Step(#[from] MutationError),
    /// Two rules lead from the same version to the same other one.
    #[error("{at} leads from {from} to {to}, as an earlier rule does; remove one of the two")]
    Twice {
        /// Field of the PublishedResource.
        at: String,
        /// Version at the start.
        from: String,
        /// Version at the end.
        to: String,
    },
    /// A rule leads nowhere.
    #[error("{at} leads from {version} to itself; name two versions, or remove it")]
    Circle {
        /// Field of the PublishedResource.
        at: String,
        /// The version.
        version: String,
    },
    /// No rules lead from one version to another.
    #[error("spec.conversion.rules: nothing leads from {from} to {to}; add a rule, if only one without steps")]
    NoWay {
        /// Version at the start.
        from: String,
        /// Version at the end.
        to: String,
    },
}

/// Compiled rules between versions.
#[derive(Debug, Clone, Default)]
pub struct Conversions {
    rules: Vec<Arc<Rule>>,
}

impl Conversions {
    /// Compiles `spec.conversion`.
    pub fn compile(conversion: Option<&api::Conversion>) -> Result<Self, ConversionError> {
        let rules = conversion.map(|conversion| conversion.rules.as_slice()).unwrap_or_default();
        let mut compiled: Vec<Arc<Rule>> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let at = format!("spec.conversion.rules[{index}]");
            let (from, to) = (rule.from.clone(), rule.to.clone());
            if from == to {
                return Err(ConversionError::Circle { at, version: from });
            }
            if compiled.iter().any(|other| (&other.from, &other.to) == (&from, &to)) {
                return Err(ConversionError::Twice { at, from, to });
            }
            let steps = rule.steps.iter().enumerate();
            let steps = steps.map(|(index, step)| ConversionStep::compile(&format!("{at}.steps[{index}]"), step));
            let steps = steps.collect::<Result<_, _>>()?;
            compiled.push(Arc::new(Rule { from, to, steps, preserve: rule.preserve.clone() }));
        }
        Ok(Self { rules: compiled })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Makes sure that there is a way from every version to every other one.
    pub fn connect(&self, versions: &[&str]) -> Result<(), ConversionError> {
        for from in versions {
            for to in versions {
                self.route(from, to)?;
            }
        }
        Ok(())
    }

    /// The way from one version to another.
    pub fn route(&self, from: &str, to: &str) -> Result<Route, ConversionError> {
        let steps: Vec<(&str, &str)> = self.rules.iter().map(|rule| (rule.from.as_str(), rule.to.as_str())).collect();
        let taken = way(&steps, from, to);
        let taken = taken.ok_or_else(|| ConversionError::NoWay { from: from.to_owned(), to: to.to_owned() })?;
        Ok(Route(taken.into_iter().map(|index| Arc::clone(&self.rules[index])).collect()))
    }

    /// An object in another version of its kind.
    pub fn convert(&self, object: &Value, to: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let from = from.rsplit('/').next().unwrap_or_default();
        Ok(self.route(from, to)?.apply(object)?)
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // cases read best as plain literals
mod tests;
