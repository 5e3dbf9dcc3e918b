//! Integers with names, as Go's `iota` constants are.

use crate::{
    gjson::Kind,
    time::{MONTHS, WEEKDAYS},
};

/// A number of a type that prints its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// The type of a gjson result.
    Kind(Kind),
    /// From 1.
    Month(i64),
    /// From Sunday, which is 0.
    Weekday(i64),
}

impl Named {
    pub(crate) fn number(self) -> i64 {
        match self {
            Named::Kind(kind) => kind as i64,
            Named::Month(number) | Named::Weekday(number) => number,
        }
    }

    pub(crate) fn name(self) -> String {
        let of = |names: &[&'static str], index: i64| usize::try_from(index).ok().and_then(|i| names.get(i)).copied();
        let (name, type_name) = match self {
            Named::Kind(kind) => (Some(kind.name()), ""),
            Named::Month(number) => (of(&MONTHS, number - 1), "Month"),
            Named::Weekday(number) => (of(&WEEKDAYS, number), "Weekday"),
        };
        name.map_or_else(|| format!("%!{type_name}({})", self.number()), str::to_owned)
    }

    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Named::Kind(_) => "gjson.Type",
            Named::Month(_) => "time.Month",
            Named::Weekday(_) => "time.Weekday",
        }
    }

    /// Another number of the same type, as a loop up to this one meets it.
    pub(crate) fn like(self, number: i64) -> Option<Named> {
        Some(match self {
            Named::Kind(_) => Named::Kind(Kind::of(number)?),
            Named::Month(_) => Named::Month(number),
            Named::Weekday(_) => Named::Weekday(number),
        })
    }
}
