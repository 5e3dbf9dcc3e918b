//! Requests about large objects, without a decoded form of them anywhere.

use http::Method;

use crate::client::Client;
use crate::error::Error;
use crate::object::Object;
use crate::payload::{JSON, Text};
use crate::resource::Resource;

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

    /// Creates an object from its JSON; the answer of the server is ignored.
    pub async fn create_text(&self, resource: &Resource, namespace: Option<&str>, json: Vec<u8>) -> Result<(), Error> {
        let path = resource.list_path(namespace);
        self.bytes(Method::POST, &path, Some((JSON, &Text(json.into())))).await.map(drop)
    }
}
