//! Which trials on real servers are played: all of them, the fixed core that CI plays whatever the clock says, or the rest.

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use libtest_mimic::{Arguments, Conclusion};

/// `1` for the core alone, `0` for everything else; `e2e/real --core` and `--rest` set it.
const CHOICE: &str = "CARRICK_CORE";

/// The names of the core, with what each shows.
pub const LIST: &str = include_str!("../../core.txt");

/// How many of the core have to be played.
pub const FEWEST: u64 = 30;

/// A choice among all trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those of the list.
    Core,
    /// All others.
    Rest,
}

impl Selection {
    /// What the environment asks for.
    pub fn wanted() -> anyhow::Result<Self> {
        match std::env::var(CHOICE).unwrap_or_default().as_str() {
            "" => Ok(Self::All),
            "1" => Ok(Self::Core),
            "0" => Ok(Self::Rest),
            other => bail!("{CHOICE} is {other:?}; 1 means the core of e2e/core.txt, 0 everything else"),
        }
    }

    /// Those of all trials that are played. Whatever is asked for, a name in the list that no trial has is an error.
    pub fn of<T>(self, all: Vec<T>, name: impl Fn(&T) -> &str) -> anyhow::Result<Vec<T>> {
        if self == Self::All {
            return Ok(all);
        }
        let core: BTreeSet<&str> = names().collect();
        let known: BTreeSet<&str> = all.iter().map(&name).collect();
        let unknown: Vec<&str> = core.difference(&known).copied().collect();
        ensure!(
            unknown.is_empty(),
            "e2e/core.txt names {}, which no scenario is called any more; put the new name there, or another scenario",
            unknown.join(", ")
        );
        let is_played = |trial: &T| core.contains(name(trial)) == (self == Self::Core);
        Ok(all.into_iter().filter(is_played).collect())
    }

    /// What is wrong with a run in which no trial failed.
    pub fn lacks(self, arguments: &Arguments, conclusion: &Conclusion) -> Option<String> {
        let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
        let few = self == Self::Core && whole && conclusion.num_passed < FEWEST;
        few.then(|| {
            format!("only {} scenarios of the core were played; at least {FEWEST} have to be", conclusion.num_passed)
        })
    }
}

/// The names in the list.
pub fn names() -> impl Iterator<Item = &'static str> {
    LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_whitespace().next())
}
