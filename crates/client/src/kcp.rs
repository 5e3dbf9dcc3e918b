//! kcp's kinds as types: the same verbs, for objects that are read and written as what they are. Fields that this version of
//! `carrick-kcp` does not know survive.

use carrick_kcp::kinds::{KcpObject, Kind};
use serde_json::Value;

use crate::client::{Client, ListOptions};
use crate::error::Error;
use crate::object::Object;
use crate::resource::Resource;

/// A kcp kind as requests name it; all of them are cluster-wide.
impl From<Kind> for Resource {
    fn from(kind: Kind) -> Self {
        Self::cluster_wide(kind.group, kind.version, kind.kind, kind.plural)
    }
}

impl Client {
    /// One object of a kind of kcp; `None` if it does not exist.
    pub async fn get_kcp<K: KcpObject>(&self, name: &str) -> Result<Option<K>, Error> {
        let found = self.get(&K::KIND.into(), None, name).await?;
        found.map(|object| self.read(name, object)).transpose()
    }

    /// All objects of a kind of kcp that match.
    pub async fn list_kcp<K: KcpObject>(&self, options: &ListOptions) -> Result<Vec<K>, Error> {
        let all = self.list_compact(&K::KIND.into(), None, options).await?;
        let read = |object: &Object| object.decode().map_err(|error| self.unreadable::<K>(&object.name, &error));
        all.iter().map(read).collect()
    }

    /// Creates an object of a kind of kcp and returns what the server made of it.
    pub async fn create_kcp<K: KcpObject>(&self, object: &K) -> Result<K, Error> {
        let name = &object.metadata().name;
        let written = self.create(&K::KIND.into(), None, &self.write(name, object)?).await?;
        self.read(name, written)
    }

    /// Replaces an object of a kind of kcp and returns what the server made of it.
    pub async fn replace_kcp<K: KcpObject>(&self, object: &K) -> Result<K, Error> {
        let name = &object.metadata().name;
        let written = self.replace(&K::KIND.into(), None, &self.write(name, object)?).await?;
        self.read(name, written)
    }

    fn read<K: KcpObject>(&self, name: &str, object: Value) -> Result<K, Error> {
        serde_json::from_value(object).map_err(|error| self.unreadable::<K>(name, &error))
    }

    fn write<K: KcpObject>(&self, name: &str, object: &K) -> Result<Value, Error> {
        let request = || format!("{} {name} at {}", K::KIND.kind, self.url());
        serde_json::to_value(object).map_err(|error| Error::Request { request: request(), problem: error.to_string() })
    }

    fn unreadable<K: KcpObject>(&self, name: &str, error: &serde_json::Error) -> Error {
        Error::Decode { request: format!("{} {name} at {}", K::KIND.kind, self.url()), problem: error.to_string() }
    }
}
