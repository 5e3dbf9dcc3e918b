//! The values that expressions compute with. Copying one is cheap: everything large is shared.

pub(crate) mod cidr;
pub(crate) mod format;
pub(crate) mod key;
pub(crate) mod quantity;
pub(crate) mod time;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use carrick_go::regex::GoRegex;
use carrick_go::semver::Version;
use carrick_go::url::Url;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::types::Type;
use cidr::Cidr;
use format::Format;
use key::Key;
use quantity::Quantity;
use time::Time;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Time),
    List(Arc<List>),
    Map(Arc<Map>),
    Optional(Option<Arc<Value>>),
    /// A type by its name.
    Type(Arc<str>),
    Url(Arc<Url>),
    Quantity(Arc<Quantity>),
    Ip(IpAddr),
    Cidr(Cidr),
    Semver(Arc<Version>),
    Format(&'static Format),
    /// Text that was compiled to a pattern, because it is a literal.
    Pattern(Arc<GoRegex>),
}

/// A value or why there is none.
pub(crate) type Outcome = Result<Value, EvalError>;

/// A map, in the order of its keys, so that the same input always gives the same output.
pub(crate) type Map = BTreeMap<Key, Value>;

/// A list and how it is compared and added to.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub items: Vec<Value>,
    pub kind: ListKind,
}

/// The `x-kubernetes-list-type` of a list.
#[derive(Debug, Clone, Default)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    /// These fields identify an item.
    Map(Arc<[String]>),
}

impl Value {
    /// Text.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// A plain list.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(List { items, kind: ListKind::Atomic }))
    }

    /// A map.
    pub fn map(entries: Map) -> Self {
        Self::Map(Arc::new(entries))
    }

    /// An optional value.
    pub fn optional(value: Option<Value>) -> Self {
        Self::Optional(value.map(Arc::new))
    }

    /// A count; none is larger than memory.
    pub fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// As the key of a map, if it can be one.
    pub fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Null => Key::Null,
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Int(*value),
            Self::Uint(value) => Key::Uint(*value),
            Self::Double(value) => Key::Double(*value),
            Self::String(text) => Key::String(Arc::clone(text)),
            Self::Duration(nanos) => Key::Duration(*nanos),
            Self::Timestamp(time) => Key::Timestamp(*time),
            Self::Type(name) => Key::Type(Arc::clone(name)),
            _ => return None,
        })
    }

    /// The type that `type()` shows.
    pub fn kind(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) | Self::Pattern(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::meta(Type::Dyn),
            Self::Url(_) => Type::Url,
            Self::Quantity(_) => Type::Quantity,
            Self::Ip(_) => Type::Ip,
            Self::Cidr(_) => Type::Cidr,
            Self::Semver(_) => Type::Semver,
            Self::Format(_) => Type::Format,
        }
    }

    /// Whether the value belongs to a library of Kubernetes, where it can be compared with its own kind only.
    pub fn is_foreign(&self) -> bool {
        use Value::{Cidr, Format, Ip, Quantity, Semver, Url};
        matches!(self, Url(_) | Quantity(_) | Ip(_) | Cidr(_) | Semver(_) | Format(_))
    }

    /// Whether `optional.ofNonZeroValue` drops the value.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) | Self::Int(0) | Self::Uint(0) | Self::Duration(0) => true,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Timestamp(time) => time.nanos == -62_135_596_800_000_000_000,
            _ => false,
        }
    }

    /// Whether two values are equal; values of different types are not, except numbers.
    pub fn equals(&self, other: &Self, budget: &Budget) -> Result<bool, EvalError> {
        budget.step()?;
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(_) | Self::Uint(_) | Self::Double(_), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                numbers(self, other) == Some(Ordering::Equal)
            }
            (Self::String(a), Self::String(b)) => {
                budget.bytes(a.len().min(b.len()))?;
                a == b
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                budget.bytes(a.len().min(b.len()))?;
                a == b
            }
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a.nanos == b.nanos,
            (Self::List(a), Self::List(b)) => a.equals(b, budget)?,
            (Self::Map(a), Self::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, value) in a.iter() {
                    budget.step()?;
                    let Some(other) = key.find(b) else { return Ok(false) };
                    if !value.equals(other, budget)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b, budget)?,
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a.to_bytes() == b.to_bytes(),
            (Self::Quantity(a), Self::Quantity(b)) => a.cmp(b) == Ordering::Equal,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a.compare(b) == Ordering::Equal,
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => false,
        })
    }

    /// Which of two values is larger; none for values that have no order.
    pub fn compare(&self, other: &Self, budget: &Budget) -> Result<Option<Ordering>, EvalError> {
        budget.step()?;
        Ok(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => {
                budget.bytes(a.len().min(b.len()))?;
                Some(a.cmp(b))
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                budget.bytes(a.len().min(b.len()))?;
                Some(a.cmp(b))
            }
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.nanos.cmp(&b.nanos)),
            _ => numbers(self, other),
        })
    }
}

/// Compares numbers of any types; integers become doubles when compared with one.
#[allow(clippy::cast_precision_loss)] // as the API server does it
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    let whole = |value: &Value| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    let double = |value: &Value| match value {
        Value::Double(value) => Some(*value),
        other => whole(other).map(|whole| whole as f64),
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => double(a)?.partial_cmp(&double(b)?),
    }
}

impl List {
    /// Whether an equal item is in the list.
    pub fn contains(&self, wanted: &Value, budget: &Budget) -> Result<bool, EvalError> {
        for item in &self.items {
            if item.equals(wanted, budget)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn equals(&self, other: &Self, budget: &Budget) -> Result<bool, EvalError> {
        if self.items.len() != other.items.len() {
            return Ok(false);
        }
        match &self.kind {
            ListKind::Atomic => {
                for (a, b) in self.items.iter().zip(&other.items) {
                    if !a.equals(b, budget)? {
                        return Ok(false);
                    }
                }
            }
            ListKind::Set => {
                for item in &self.items {
                    if !other.contains(item, budget)? {
                        return Ok(false);
                    }
                }
            }
            ListKind::Map(keys) => {
                for item in &self.items {
                    let Some(at) = find(&other.items, item, keys, budget)? else { return Ok(false) };
                    if !item.equals(&other.items[at], budget)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// This list and the other: sets take what they do not have, map lists replace what has the same key.
    pub fn plus(&self, other: &Self, budget: &Budget) -> Result<Self, EvalError> {
        budget.charge((self.items.len() + other.items.len()) as u64)?;
        let mut items = self.items.clone();
        for item in &other.items {
            match &self.kind {
                ListKind::Atomic => items.push(item.clone()),
                ListKind::Set => {
                    if !self.contains(item, budget)? {
                        items.push(item.clone());
                    }
                }
                ListKind::Map(keys) => match find(&items, item, keys, budget)? {
                    Some(at) => items[at] = item.clone(),
                    None => items.push(item.clone()),
                },
            }
        }
        Ok(Self { items, kind: self.kind.clone() })
    }
}

/// Where the item with the same key fields is.
fn find(items: &[Value], wanted: &Value, keys: &[String], budget: &Budget) -> Result<Option<usize>, EvalError> {
    'items: for (at, item) in items.iter().enumerate() {
        let (Value::Map(a), Value::Map(b)) = (item, wanted) else { continue };
        for key in keys {
            let key = Key::String(key.as_str().into());
            let same = match (a.get(&key), b.get(&key)) {
                (Some(a), Some(b)) => a.equals(b, budget)?,
                (a, b) => a.is_none() && b.is_none(),
            };
            if !same {
                continue 'items;
            }
        }
        return Ok(Some(at));
    }
    Ok(None)
}

impl From<&Key> for Value {
    fn from(key: &Key) -> Self {
        match key {
            Key::Null => Self::Null,
            Key::Bool(value) => Self::Bool(*value),
            Key::Int(value) => Self::Int(*value),
            Key::Uint(value) => Self::Uint(*value),
            Key::Double(value) => Self::Double(*value),
            Key::String(text) => Self::String(Arc::clone(text)),
            Key::Duration(nanos) => Self::Duration(*nanos),
            Key::Timestamp(time) => Self::Timestamp(*time),
            Key::Type(name) => Self::Type(Arc::clone(name)),
        }
    }
}

/// The error for arguments of the wrong types; it names the types, never the values.
pub(crate) fn overload(name: &str, arguments: &[Value]) -> EvalError {
    let kinds: Vec<String> = arguments.iter().map(|argument| argument.kind().name().to_owned()).collect();
    EvalError::NoSuchOverload(format!("{name}({})", kinds.join(", ")))
}
