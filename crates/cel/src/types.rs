//! The types of expressions, as far as they are known before there is data.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::escape::escape;

/// A type; `dyn` where only the data decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Dyn,
    /// Not decided yet: the element type of `[]`.
    Free,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// The type of a type.
    Meta(Arc<Type>),
    Url,
    Quantity,
    Ip,
    Cidr,
    Semver,
    Format,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// An object with known fields; two are the same only if they come from the same place of a schema.
    Object(Arc<Fields>),
    /// Stands for any type within one signature.
    Param(char),
}

/// The fields of an object, named as rules name them.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Where the object is in its schema.
    pub path: String,
    pub fields: BTreeMap<String, Type>,
}

impl Fields {
    /// The type of a field, named as it is escaped; words that the parser takes need no escape.
    pub fn field(&self, name: &str) -> Option<&Type> {
        self.fields.get(name).or_else(|| {
            let reserved = escape(name).filter(|escaped| *escaped == format!("__{name}__"))?;
            self.fields.get(&reserved)
        })
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Type {
    pub fn list(item: Type) -> Self {
        Self::List(Arc::new(item))
    }

    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub fn meta(of: Type) -> Self {
        Self::Meta(Arc::new(of))
    }

    pub fn optional(value: Type) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// The type with this name in expressions.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "null_type" => Self::Null,
            "type" => Self::meta(Self::Dyn),
            "list" => Self::list(Self::Dyn),
            "map" => Self::map(Self::Dyn, Self::Dyn),
            "google.protobuf.Duration" => Self::Duration,
            "google.protobuf.Timestamp" => Self::Timestamp,
            "optional_type" => Self::optional(Self::Dyn),
            "net.IP" => Self::Ip,
            "net.CIDR" => Self::Cidr,
            _ => return None,
        })
    }

    /// The name without parameters.
    pub fn name(&self) -> &str {
        match self {
            Self::Dyn | Self::Free | Self::Param(_) => "dyn",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Meta(_) => "type",
            Self::Url => "kubernetes.URL",
            Self::Quantity => "kubernetes.Quantity",
            Self::Ip => "net.IP",
            Self::Cidr => "net.CIDR",
            Self::Semver => "kubernetes.Semver",
            Self::Format => "kubernetes.NamedFormat",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Object(_) => "object",
        }
    }

    /// Whether a parameter of a signature is part of it.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Param(_) => true,
            Self::List(inner) | Self::Optional(inner) | Self::Meta(inner) => inner.is_open(),
            Self::Map(key, value) => key.is_open() || value.is_open(),
            _ => false,
        }
    }

    /// Whether values can be sorted.
    pub fn has_order(&self) -> bool {
        use Type::{Bool, Bytes, Double, Duration, Dyn, Free, Int, String, Timestamp, Uint};
        matches!(self, Dyn | Free | Int | Uint | Double | Bool | Duration | Timestamp | String | Bytes)
    }

    /// Whether null may stand for a value of this type.
    fn takes_null(&self) -> bool {
        use Type::{Cidr, Duration, Format, Ip, Object, Optional, Quantity, Semver, Timestamp, Url};
        matches!(self, Duration | Timestamp | Object(_) | Optional(_) | Url | Quantity | Ip | Cidr | Semver | Format)
    }

    /// Whether a value of the other type can be passed where this one is wanted.
    pub fn accepts(&self, given: &Type, bound: &mut Bindings) -> bool {
        match (self, given) {
            (Self::Param(name), given) => bound.accept(*name, given),
            (Self::Dyn | Self::Free, _) | (_, Self::Dyn | Self::Free) | (Self::Meta(_), Self::Meta(_)) => true,
            (Self::List(wanted), Self::List(given)) | (Self::Optional(wanted), Self::Optional(given)) => {
                wanted.accepts(given, bound)
            }
            (Self::Map(key, value), Self::Map(given_key, given_value)) => {
                key.accepts(given_key, bound) && value.accepts(given_value, bound)
            }
            (wanted, Self::Null) if wanted.takes_null() => true,
            (Self::Null, given) if given.takes_null() => true,
            (wanted, given) => wanted == given,
        }
    }

    /// Whether both types could be that of one value.
    pub fn fits(&self, other: &Type) -> bool {
        self.accepts(other, &mut Bindings::default())
    }

    /// Whether both are the same type where both are decided.
    pub fn agrees(&self, other: &Type) -> bool {
        match (self, other) {
            (Self::Free, _) | (_, Self::Free) => true,
            (Self::List(a), Self::List(b))
            | (Self::Optional(a), Self::Optional(b))
            | (Self::Meta(a), Self::Meta(b)) => a.agrees(b),
            (Self::Map(k, v), Self::Map(k2, v2)) => k.agrees(k2) && v.agrees(v2),
            (a, b) => a == b,
        }
    }

    /// The type that holds values of both, `dyn` if that is all one can say.
    pub fn join(&self, other: &Type) -> Type {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Self::Free, other) | (other, Self::Free) => other.clone(),
            (Self::Null, given) | (given, Self::Null) if given.takes_null() => given.clone(),
            (Self::Meta(_), Self::Meta(_)) => other.clone(),
            (Self::List(a), Self::List(b)) => Self::list(a.join(b)),
            (Self::Optional(a), Self::Optional(b)) => Self::optional(a.join(b)),
            (Self::Map(k, v), Self::Map(k2, v2)) => Self::map(k.join(k2), v.join(v2)),
            _ => Self::Dyn,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Param(name) => write!(f, "{name}"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::Meta(of) => write!(f, "type({of})"),
            Self::Object(fields) => f.write_str(&fields.path),
            other => f.write_str(other.name()),
        }
    }
}

/// What the parameters of one signature stand for in one call.
#[derive(Default)]
pub(crate) struct Bindings {
    bound: Vec<(char, Type)>,
}

impl Bindings {
    fn accept(&mut self, name: char, given: &Type) -> bool {
        let Some(at) = self.bound.iter().position(|(known, _)| *known == name) else {
            self.bound.push((name, given.clone()));
            return true;
        };
        let known = self.bound[at].1.clone();
        if !known.fits(given) {
            return false;
        }
        self.bound[at].1 = known.join(given);
        true
    }

    /// The type with its parameters replaced.
    pub fn apply(&self, wanted: &Type) -> Type {
        match wanted {
            Type::Param(name) => {
                self.bound.iter().find(|(known, _)| known == name).map_or(Type::Free, |(_, bound)| bound.clone())
            }
            Type::List(item) => Type::list(self.apply(item)),
            Type::Optional(value) => Type::optional(self.apply(value)),
            Type::Meta(of) => Type::meta(self.apply(of)),
            Type::Map(key, value) => Type::map(self.apply(key), self.apply(value)),
            other => other.clone(),
        }
    }
}
