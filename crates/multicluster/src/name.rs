//! Names of clusters and endpoints.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a cluster, unique within its fleet and never empty. Cloning is cheap.
///
/// For kcp it is the name of the logical cluster, such as `2hrqj6q1dn8mkyur`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterName(Arc<str>);

/// A cluster must have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a cluster is empty; every cluster needs one, `local` for example")]
pub struct EmptyName;

impl ClusterName {
    /// A name, unless it is empty.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, EmptyName> {
        let name = name.into();
        if name.is_empty() { Err(EmptyName) } else { Ok(Self(name)) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as shared text.
    pub fn to_arc(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl TryFrom<&str> for ClusterName {
    type Error = EmptyName;
    fn try_from(name: &str) -> Result<Self, EmptyName> {
        Self::new(name)
    }
}

impl TryFrom<String> for ClusterName {
    type Error = EmptyName;
    fn try_from(name: String) -> Result<Self, EmptyName> {
        Self::new(name)
    }
}

impl TryFrom<Arc<str>> for ClusterName {
    type Error = EmptyName;
    fn try_from(name: Arc<str>) -> Result<Self, EmptyName> {
        Self::new(name)
    }
}

impl FromStr for ClusterName {
    type Err = EmptyName;
    fn from_str(name: &str) -> Result<Self, EmptyName> {
        Self::new(name)
    }
}

/// Which endpoint: its URL, or whatever else its provider calls it. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(Arc<str>);

impl EndpointId {
    /// An id of any text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EndpointId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<Arc<str>> for EndpointId {
    fn from(id: Arc<str>) -> Self {
        Self(id)
    }
}

/// Both are texts to whoever reads them.
macro_rules! text {
    ($name:ident) => {
        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

text!(ClusterName);
text!(EndpointId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_a_name() {
        assert_eq!(ClusterName::new(""), Err(EmptyName));
        assert_eq!("a".parse::<ClusterName>().unwrap(), "a");
    }
}
