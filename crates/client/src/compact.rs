//! Requests about large objects, without a decoded form of them anywhere.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::client::{Client, JSON};
use crate::error::Error;
use crate::object::Object;
use crate::resource::Resource;

/// How much of objects is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of them.
    Whole,
    /// Their metadata; all of them where a server cannot tell it apart.
    Metadata,
}

impl Form {
    /// What to accept as an answer about one object, or as the events of a watch.
    pub(crate) fn of_objects(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }

    /// What to accept as a list.
    pub(crate) fn of_lists(self) -> &'static str {
        match self {
            Self::Whole => JSON,
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

/// What can be sent as the body of a request.
pub(crate) trait Payload: Sync {
    /// The JSON text.
    fn to_json(&self) -> Result<Bytes, serde_json::Error>;
}

impl Payload for Value {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

/// JSON that was written already.
struct Text(Bytes);

impl Payload for Text {
    fn to_json(&self) -> Result<Bytes, serde_json::Error> {
        Ok(self.0.clone())
    }
}

impl Client {
    /// One object as the server wrote it, in compact form; `None` if it does not exist.
    pub async fn get_compact(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, Error> {
        let path = resource.object_path(namespace, name, None);
        let body = match self.bytes(Method::GET, &path, None).await {
            Ok(body) => body,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let problem = |problem: String| Error::Decode { request: self.describe(&Method::GET, &path), problem };
        let text = std::str::from_utf8(&body).map_err(|error| problem(error.to_string()))?;
        Object::parse(text, Some(resource)).map(Some).map_err(|error| problem(error.to_string()))
    }

    /// Creates an object from its JSON; what the server made of it is not looked at.
    pub async fn create_text(&self, resource: &Resource, namespace: Option<&str>, json: Vec<u8>) -> Result<(), Error> {
        let path = resource.list_path(namespace);
        self.bytes(Method::POST, &path, Some((JSON, &Text(json.into())))).await.map(drop)
    }
}
