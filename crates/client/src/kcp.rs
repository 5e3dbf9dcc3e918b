//! kcp's kinds as types: the same verbs, for objects that are read and written as what they are. Fields that this version of
//! `carrick-kcp` does not know survive.

use carrick_kcp::kinds::{KcpObject, Kind, VersionedObject};
use serde_json::Value;

use crate::client::Client;
use crate::discovery::group_versions;
use crate::error::Error;
use crate::lists::ListOptions;
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

    /// The newest version in which the server has a kind that comes in several. The server is asked once; all clones of this client know it then.
    pub async fn newest<K: VersionedObject>(&self) -> Result<Kind, Error> {
        // Nothing may be served yet. All releases of kcp of the last years have the newest version.
        Ok(self.served::<K>().await?.unwrap_or(K::KIND))
    }

    /// The same; `None` while the server does not know the API group.
    pub async fn served<K: VersionedObject>(&self) -> Result<Option<Kind>, Error> {
        let served = match self.known_versions(K::KIND.group) {
            Some(served) => served,
            None => match group_versions(self, K::KIND.group).await {
                Ok(Some((_, served))) => self.know_versions(K::KIND.group, served),
                Ok(None) => return Ok(None),
                // Whoever may not see what there is may still use it.
                Err(error) if error.is_forbidden() => return Ok(Some(K::KIND)),
                Err(error) => return Err(error),
            },
        };
        Ok(Some(K::newest_of(served.iter().map(String::as_str))))
    }

    /// One object in the newest version that the server has; `None` if it does not exist.
    pub async fn get_newest<K: VersionedObject>(&self, name: &str) -> Result<Option<K>, Error> {
        let kind = self.newest::<K>().await?;
        let found = self.get(&kind.into(), None, name).await?;
        found.map(|object| self.read_version(&kind, name, object)).transpose()
    }

    /// All objects that match, in the newest version that the server has.
    pub async fn list_newest<K: VersionedObject>(&self, options: &ListOptions) -> Result<Vec<K>, Error> {
        let kind = self.newest::<K>().await?;
        let all = self.list_compact(&kind.into(), None, options).await?;
        all.iter().map(|object| self.read_version(&kind, &object.name, object.read()?)).collect()
    }

    /// Creates an object in the newest version that the server has, and returns what the server made of it.
    pub async fn create_newest<K: VersionedObject>(&self, object: &K) -> Result<K, Error> {
        let (kind, name) = (self.newest::<K>().await?, &object.metadata().name);
        let written = self.create(&kind.into(), None, &self.write_version(&kind, object)?).await?;
        self.read_version(&kind, name, written)
    }

    /// Replaces an object in the newest version that the server has, and returns what the server made of it.
    pub async fn replace_newest<K: VersionedObject>(&self, object: &K) -> Result<K, Error> {
        let (kind, name) = (self.newest::<K>().await?, &object.metadata().name);
        let written = self.replace(&kind.into(), None, &self.write_version(&kind, object)?).await?;
        self.read_version(&kind, name, written)
    }

    /// Changes an object by a merge patch that means the same in all versions, and returns what the server made of it.
    pub async fn patch_newest<K: VersionedObject>(&self, name: &str, patch: &Value) -> Result<K, Error> {
        let kind = self.newest::<K>().await?;
        let written = self.merge_patch(&kind.into(), None, name, patch).await?;
        self.read_version(&kind, name, written)
    }

    fn read_version<K: VersionedObject>(&self, kind: &Kind, name: &str, object: Value) -> Result<K, Error> {
        K::from_version(kind.version, object).map_err(|error| self.unreadable::<K>(name, &error))
    }

    fn write_version<K: VersionedObject>(&self, kind: &Kind, object: &K) -> Result<Value, Error> {
        let request = || format!("{} {} at {}", kind.kind, object.metadata().name, self.url());
        object
            .to_version(kind.version)
            .map_err(|error| Error::Request { request: request(), problem: error.to_string() })
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
