//! The keys of maps.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use carrick_go::{duration, float};

use super::time::Time;

/// The key of a map. Numbers of different types are different keys, though each finds the other.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Duration(i64),
    Timestamp(Time),
    /// The name of a type.
    Type(Arc<str>),
}

impl Key {
    /// Numbers are ordered among each other, other keys by their type first.
    fn rank(&self) -> (u8, f64, i128, u8, &str) {
        #[allow(clippy::cast_precision_loss)] // equal ones differ in the exact value
        match self {
            Self::Null => (0, 0.0, 0, 0, ""),
            Self::Bool(value) => (1, 0.0, i128::from(*value), 0, ""),
            Self::Int(value) => (2, *value as f64, i128::from(*value), 0, ""),
            Self::Uint(value) => (2, *value as f64, i128::from(*value), 1, ""),
            Self::Double(value) => (2, *value, 0, 2, ""),
            Self::String(text) => (3, 0.0, 0, 0, text),
            Self::Duration(nanos) => (4, 0.0, i128::from(*nanos), 0, ""),
            Self::Timestamp(time) => (5, 0.0, time.nanos * 1_000_000 + i128::from(time.offset), 0, ""),
            Self::Type(name) => (6, 0.0, 0, 0, name),
        }
    }

    /// The same number as a key of another type, for those that can be one.
    fn others(&self) -> [Option<Key>; 2] {
        let int = |value: i128| i64::try_from(value).ok().map(Key::Int);
        let uint = |value: i128| u64::try_from(value).ok().map(Key::Uint);
        match self {
            Self::Int(value) => [uint(i128::from(*value)), None],
            Self::Uint(value) => [int(i128::from(*value)), None],
            #[allow(clippy::cast_possible_truncation)] // whole and far inside the range
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 1e20 => {
                [int(*value as i128), uint(*value as i128)]
            }
            _ => [None, None],
        }
    }

    /// The value of the key or, failing that, of the same number of another type.
    pub fn find<'m, V>(&self, map: &'m BTreeMap<Key, V>) -> Option<&'m V> {
        map.get(self).or_else(|| self.others().iter().flatten().find_map(|other| map.get(other)))
    }

    /// The index into a list that a whole number stands for; none for anything else.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Int(at) => usize::try_from(*at).ok(),
            Self::Uint(at) => usize::try_from(*at).ok(),
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole, and beyond any list at worst
            Self::Double(at) if at.fract() == 0.0 && *at >= 0.0 => Some(*at as usize),
            _ => None,
        }
    }

    /// The key as text: the name of a field in JSON.
    pub fn text(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(key) => key.to_string(),
            Self::Int(key) => key.to_string(),
            Self::Uint(key) => key.to_string(),
            Self::Double(key) => float::format(*key, 'g', None),
            Self::String(key) | Self::Type(key) => key.to_string(),
            Self::Duration(key) => duration::format(*key),
            Self::Timestamp(key) => key.text(),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.rank(), other.rank());
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then((a.2, a.3, a.4).cmp(&(b.2, b.3, b.4)))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
