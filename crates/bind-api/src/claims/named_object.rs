//! An object that another one names.

use crate::mapping::ObjectKey;

/// An object that another one names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedObject {
    /// Its namespace; none for any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl NamedObject {
    /// Whether an object of this key is meant.
    pub fn is(&self, key: &ObjectKey) -> bool {
        self.name == key.name
            && self.namespace.as_ref().is_none_or(|namespace| key.namespace.as_ref() == Some(namespace))
    }
}
