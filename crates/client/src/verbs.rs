//! Reading and writing single objects.

use http::Method;
use serde_json::{Value, json};

use crate::channel::DRY_RUN;
use crate::client::Client;
use crate::error::Error;
use crate::payload::{AsYaml, JSON};
use crate::resource::{Resource, push_query};

const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only this version of the object.
    pub resource_version: Option<String>,
    /// What happens to dependants: `Background`, `Foreground` or `Orphan`; the server's default if absent.
    pub propagation_policy: Option<String>,
}

impl Client {
    /// One object; `None` if it does not exist.
    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Error> {
        let path = resource.object_path(namespace, name, None);
        match self.json(Method::GET, &path, None).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, but a server that does not serve the kind says nothing about the object: that is an error.
    pub async fn get_served(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, Error> {
        match self.raw_get(&resource.object_path(namespace, name, None)).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_missing(name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object and returns what the server made of it. As with all writes, of an answer that nests too deep to be read that is
    /// apiVersion, kind and metadata.
    pub async fn create(&self, resource: &Resource, namespace: Option<&str>, object: &Value) -> Result<Value, Error> {
        self.json(Method::POST, &resource.list_path(namespace), Some((JSON, object))).await
    }

    /// What the server would make of an object if it were created: checked, completed and pruned, and not stored. Clients that only read may ask.
    pub async fn create_dry_run(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Value, Error> {
        let path = format!("{}?{DRY_RUN}", resource.list_path(namespace));
        self.json(Method::POST, &path, Some((JSON, object))).await
    }

    /// Replaces an object; its name is taken from its metadata.
    pub async fn replace(&self, resource: &Resource, namespace: Option<&str>, object: &Value) -> Result<Value, Error> {
        self.put(resource, namespace, object, None).await
    }

    /// Replaces the status of an object; its name is taken from its metadata.
    pub async fn replace_status(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Value, Error> {
        self.put(resource, namespace, object, Some("status")).await
    }

    /// Applies an RFC 7386 merge patch to an object.
    pub async fn merge_patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Error> {
        let target = resource.object_path(namespace, name, None);
        self.json(Method::PATCH, &target, Some((MERGE_PATCH, patch))).await
    }

    /// Sends a JSON patch: all of its operations, or none.
    pub async fn json_patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Error> {
        let target = resource.object_path(namespace, name, None);
        self.json(Method::PATCH, &target, Some((JSON_PATCH, patch))).await
    }

    /// Applies an RFC 7386 merge patch to the status of an object.
    pub async fn merge_patch_status(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Error> {
        let target = resource.object_path(namespace, name, Some("status"));
        self.json(Method::PATCH, &target, Some((MERGE_PATCH, patch))).await
    }

    /// Applies an object server-side: what it says becomes so, whoever said otherwise, and what the same manager said before and does not
    /// say any more goes away. Fields that the server does not know are refused.
    pub async fn apply(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        self.apply_with(resource, namespace, object, &[("fieldManager", manager), ("fieldValidation", "Strict")]).await
    }

    /// The same, but fields that the server does not know are dropped, as with other writes.
    pub async fn apply_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        self.apply_with(resource, namespace, object, &[("fieldManager", manager)]).await
    }

    async fn apply_with(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
        options: &[(&str, &str)],
    ) -> Result<Value, Error> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let mut query = String::new();
        for (key, value) in options.iter().chain(&[("force", "true")]) {
            push_query(&mut query, key, value);
        }
        let target = format!("{}{query}", resource.object_path(namespace, name, None));
        self.json(Method::PATCH, &target, Some((APPLY_PATCH, &AsYaml(object)))).await
    }

    /// Deletes an object. A missing one is an error like any other; see [`Error::is_not_found`].
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), Error> {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        for (field, value) in [("uid", &options.uid), ("resourceVersion", &options.resource_version)] {
            if let Some(value) = value {
                body["preconditions"][field] = json!(value);
            }
        }
        if let Some(policy) = &options.propagation_policy {
            body["propagationPolicy"] = json!(policy);
        }
        let path = resource.object_path(namespace, name, None);
        self.bytes(Method::DELETE, &path, Some((JSON, &body))).await.map(drop)
    }

    async fn put(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: &Value,
        subresource: Option<&str>,
    ) -> Result<Value, Error> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let path = resource.object_path(namespace, name, subresource);
        if name.is_empty() {
            let problem = "the object has no metadata.name".to_owned();
            return Err(Error::Request { request: self.describe(&Method::PUT, &path), problem });
        }
        self.json(Method::PUT, &path, Some((JSON, object))).await
    }
}
