//! A client of one base URL: JSON verbs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use crate::channel::{AnswerBody, Channel};
use crate::connect::{ConnectError, parse_url, show};
use crate::error::{Error, Status, chain};
use crate::object::Object;
use crate::payload::{Form, JSON, Payload};
use crate::resource::{Resource, push_query};
use crate::transport::Host;

/// How long a whole request may take, the body of the answer included. Watches have limits of their own.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);
const PAGE_SIZE: u32 = 500;
/// What a page counts for at least.
const SMALLEST_PAGE: usize = 64 << 10;
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A client scoped to one base URL. Cloning is cheap; see [`crate::Server`] for where clients come from.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    channel: Channel,
    url: Arc<str>,
    default_namespace: Arc<str>,
    form: Form,
    /// The field manager of writes.
    manager: Option<Arc<str>>,
    kube: Mutex<Option<Kept>>,
}

/// A kube client that was made before. Each has a task of its own.
struct Kept {
    client: kube::Client,
    used: Instant,
}

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListOptions {
    /// Label selector.
    pub label_selector: Option<String>,
    /// Field selector.
    pub field_selector: Option<String>,
}

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

/// One page of a list.
pub(crate) struct Page {
    pub(crate) items: Vec<Object>,
    pub(crate) resource_version: String,
    pub(crate) next: Option<String>,
    /// What it counts for in the limit on lists. Small pages count as if they were larger, so that empty ones have an end too.
    pub(crate) bytes: usize,
}

impl Client {
    pub(crate) fn on(channel: Channel, url: Arc<str>, default_namespace: Arc<str>) -> Self {
        let (form, manager) = (Form::Whole, None);
        Self { inner: Arc::new(Inner { channel, url, default_namespace, form, manager, kube: Mutex::default() }) }
    }

    /// The same client, which gets only the metadata of objects. Servers that cannot leave out the rest send everything.
    #[must_use]
    pub fn metadata_only(&self) -> Self {
        let Inner { channel, url, default_namespace, .. } = &*self.inner;
        let (channel, url, default_namespace) = (channel.clone(), url.clone(), default_namespace.clone());
        let (form, manager) = (Form::Metadata, None);
        Self { inner: Arc::new(Inner { channel, url, default_namespace, form, manager, kube: Mutex::default() }) }
    }

    /// The same client with this field manager, under which servers record its writes. The default is the name of the program, as with other clients.
    #[must_use]
    pub fn writing_as(&self, manager: &str) -> Self {
        let Inner { channel, url, default_namespace, form, .. } = &*self.inner;
        let (channel, url, default_namespace) = (channel.clone(), url.clone(), default_namespace.clone());
        let (form, manager) = (*form, Some(manager.into()));
        Self { inner: Arc::new(Inner { channel, url, default_namespace, form, manager, kube: Mutex::default() }) }
    }

    /// The base URL, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// A client at another URL with the same credentials and pool, such as a virtual workspace's `<url>/clusters/*`.
    ///
    /// A client made from a [`kube::Client`] cannot leave its server.
    pub fn at_url(&self, url: &str) -> Result<Self, ConnectError> {
        if let Channel::Kube(_) = self.inner.channel {
            let problem = "a kube::Client cannot leave its server; make the client from a kube::Config".to_owned();
            return Err(ConnectError::Url { url: url.to_owned(), problem });
        }
        Ok(self.at(&show(&parse_url(url)?)))
    }

    /// The same for a URL that the server publishes, whose address is replaced as [`Server::redirect`](crate::Server::redirect) says.
    pub fn at_published_url(&self, url: &str) -> Result<Self, ConnectError> {
        match self.inner.channel.transport() {
            Some(transport) => self.at_url(&transport.redirected(parse_url(url)?).to_string()),
            None => self.at_url(url),
        }
    }

    /// A client below the base URL, such as at `/clusters/root:a`.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        let path = path.trim_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        self.at(&format!("{}{slash}{path}", self.inner.url))
    }

    /// The same client with another default namespace.
    #[must_use]
    pub fn with_default_namespace(&self, namespace: &str) -> Self {
        Self::on(self.inner.channel.clone(), self.inner.url.clone(), namespace.into())
    }

    /// The namespace of typed requests that name none.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    fn at(&self, url: &str) -> Self {
        Self::on(self.inner.channel.clone(), url.into(), self.inner.default_namespace.clone())
    }

    /// A kube client on the same URL and pool, for typed use. Must be called inside a tokio runtime.
    pub fn kube(&self) -> kube::Client {
        let build = || {
            // Not `self`: the service would keep alive the very thing that keeps it.
            let (channel, url) = (self.inner.channel.clone(), self.inner.url.clone());
            let service = service_fn(move |request| forward(channel.clone(), url.clone(), request));
            kube::Client::new(service, self.inner.default_namespace.to_string())
        };
        let mut kept = self.inner.kube.lock();
        let kept = kept.get_or_insert_with(|| Kept { client: build(), used: Instant::now() });
        kept.used = Instant::now();
        kept.client.clone()
    }

    /// Drops the kube client if [`Client::kube`] was not called for this long, and returns whether it did. Clones that are in use stay usable, and
    /// the next call of [`Client::kube`] makes another one.
    pub fn drop_idle_kube(&self, idle: Duration) -> bool {
        self.inner.kube.lock().take_if(|kept| kept.used.elapsed() >= idle).is_some()
    }

    /// One object; `None` if it does not exist.
    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Error> {
        let path = resource.object_path(namespace, name, None);
        match self.json(Method::GET, &path, None).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects that match, fetched page by page; without a namespace, those of all namespaces.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Vec<Value>, Error> {
        let all = self.list_compact(resource, namespace, options).await?;
        all.iter().map(Object::read).collect()
    }

    /// The same in compact form, which takes far less room.
    pub async fn list_compact(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Vec<Object>, Error> {
        let mut page = self.list_page(resource, namespace, options, Some(PAGE_SIZE), None).await?;
        let (mut all, mut bytes) = (page.items, page.bytes);
        while let Some(token) = page.next {
            page = match self.list_page(resource, namespace, options, Some(PAGE_SIZE), Some(&token)).await {
                Ok(page) => page,
                Err(error) if error.is_gone() => {
                    // The pages were read too slowly; a list in one piece cannot expire.
                    all.clear();
                    bytes = 0;
                    self.list_page(resource, namespace, options, None, None).await?
                }
                Err(error) => return Err(error),
            };
            bytes += page.bytes;
            if bytes > self.most() {
                return Err(self.too_large(&resource.list_path(namespace)));
            }
            all.append(&mut page.items);
        }
        Ok(all)
    }

    /// Creates an object and returns what the server made of it. As with all writes, of an answer that nests too deep to be read that is
    /// apiVersion, kind and metadata.
    pub async fn create(&self, resource: &Resource, namespace: Option<&str>, object: &Value) -> Result<Value, Error> {
        self.json(Method::POST, &resource.list_path(namespace), Some((JSON, object))).await
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
        self.json(Method::PATCH, &target, Some((APPLY_PATCH, object))).await
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

    /// The JSON at any path below the base URL, such as `/apis` or `/openapi/v2`.
    pub async fn raw_get(&self, path: &str) -> Result<Value, Error> {
        self.json(Method::GET, path, None).await
    }

    /// Sends JSON to any path below the base URL; the content of a good answer is ignored.
    pub async fn raw_post(&self, path: &str, body: &Value) -> Result<(), Error> {
        self.bytes(Method::POST, path, Some((JSON, body))).await.map(drop)
    }

    /// The server's time as in its `Date` header, if it sends one.
    pub async fn date(&self) -> Result<Option<String>, Error> {
        let answer = self.send(Method::GET, "/version", None).await?;
        Ok(answer.headers().get(DATE).and_then(|value| value.to_str().ok()).map(str::to_owned))
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

    /// One page of a list; `limit: None` asks for everything at once.
    pub(crate) async fn list_page(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
        limit: Option<u32>,
        token: Option<&str>,
    ) -> Result<Page, Error> {
        let mut query = options.query();
        if let Some(limit) = limit {
            push_query(&mut query, "limit", &limit.to_string());
        }
        if let Some(token) = token {
            push_query(&mut query, "continue", token);
        }
        let path = format!("{}{query}", resource.list_path(namespace));
        let body = self.bytes_as(self.inner.form.of_lists(), Method::GET, &path, None).await?;
        Page::parse(&body, resource).map_err(|problem| Error::Decode {
            request: self.describe(&Method::GET, &path),
            problem: problem.to_string(),
        })
    }

    async fn json(&self, method: Method, path: &str, body: Option<(&str, &dyn Payload)>) -> Result<Value, Error> {
        let request = self.describe(&method, path);
        let written = method != Method::GET;
        let noted =
            self.inner.manager.as_deref().filter(|_| written && method != Method::DELETE && !path.contains('?'));
        let path = noted.map_or(Cow::Borrowed(path), |manager| {
            let mut query = String::new();
            push_query(&mut query, "fieldManager", manager);
            Cow::Owned(format!("{path}{query}"))
        });
        let answer = self.bytes(method, &path, body).await?;
        carrick_json::from_slice(&answer).or_else(|problem| {
            // What was written is written, however deep the rest of the object nests: its metadata is answer enough.
            let head =
                written.then(|| std::str::from_utf8(&answer).ok().and_then(|text| Object::parse(text, None).ok()));
            match head.flatten().filter(|object| object.too_deep().is_some()) {
                Some(object) => Ok(object.value()),
                None => Err(Error::Decode { request, problem: problem.to_string() }),
            }
        })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn bytes(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Bytes, Error> {
        self.bytes_as(self.inner.form.of_objects(), method, path, body).await
    }

    async fn bytes_as(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Bytes, Error> {
        let request = self.describe(&method, path);
        let whole = async {
            let answer = self.send_as(accept, method, path, body).await?;
            read(answer, &request, self.most()).await
        };
        tokio::time::timeout(REQUEST_TIMEOUT, whole).await.unwrap_or_else(|_| {
            let problem = format!("not answered within {} s", REQUEST_TIMEOUT.as_secs());
            Err(Error::Transport { request: request.clone(), problem })
        })
    }

    /// Sends a request and returns the head of a good answer, its body still to be read.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Response<AnswerBody>, Error> {
        self.send_as(self.inner.form.of_objects(), method, path, body).await
    }

    async fn send_as(
        &self,
        accept: &str,
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Response<AnswerBody>, Error> {
        let request = self.describe(&method, path);
        let failed = |problem: String| Error::Request { request: request.clone(), problem };
        let mut content_type = None;
        let mut bytes = Bytes::new();
        if let Some((kind, value)) = body {
            content_type = Some(kind);
            bytes = value.to_json().map_err(|error| failed(error.to_string()))?;
        }
        let message = || {
            let url = format!("{}{path}", self.inner.url);
            let mut builder = Request::builder().method(&method).uri(url).header(ACCEPT, accept);
            if let Some(content_type) = content_type {
                builder = builder.header(CONTENT_TYPE, content_type);
            }
            builder.body(Body::from(bytes.clone())).map_err(|error| failed(error.to_string()))
        };
        let channel = &self.inner.channel;
        let lost = |error: BoxError| Error::Transport { request: request.clone(), problem: chain(&*error) };
        let credentials = channel.credentials();
        let mut answer = channel.send(message()?).await.map_err(lost)?;
        // Nothing was done, and there are other credentials by now.
        if answer.status() == StatusCode::UNAUTHORIZED && channel.credentials() != credentials {
            answer = channel.send(message()?).await.map_err(lost)?;
        }
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = read(answer, &request, self.most()).await.unwrap_or_default();
        Err(Status::parse(code, seconds.map(Duration::from_secs), &request, &body).into())
    }

    /// How many bytes are taken from the server at a time.
    pub(crate) fn most(&self) -> usize {
        self.inner.channel.most()
    }

    /// There is more of a list than is taken.
    pub(crate) fn too_large(&self, path: &str) -> Error {
        Error::TooLarge { request: self.describe(&Method::GET, path), most: self.most() }
    }

    /// Waits before something is tried again that failed: at most so long, and no longer than until the server is back or there are other
    /// credentials.
    pub async fn pause(&self, longest: Duration) {
        let Some(host) = self.host() else { return tokio::time::sleep(longest).await };
        let mut retries = host.retries();
        let _ = tokio::time::timeout(longest, retries.changed()).await;
    }

    /// What is known about the server.
    pub(crate) fn host(&self) -> Option<Arc<Host>> {
        self.inner.channel.host(&self.inner.url)
    }

    /// Notes that the connection to the server may be broken.
    pub(crate) fn doubt(&self) {
        self.inner.channel.doubt(&self.inner.url);
    }

    /// Method and URL, for messages. Queries are left out: they are long and hold nothing that helps.
    pub(crate) fn describe(&self, method: &Method, path: &str) -> String {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        format!("{method} {}{path}", self.inner.url)
    }
}

impl From<kube::Client> for Client {
    /// A client that sends through a kube client. A client made from a [`kube::Config`] is better: it speaks HTTP/2, so
    /// that all watches share one connection, and it can reach other hosts with the same credentials.
    fn from(client: kube::Client) -> Self {
        let namespace = client.default_namespace().into();
        Self::on(Channel::Kube(client), "".into(), namespace)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl ListOptions {
    /// The objects with these labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..Self::default() }
    }

    /// The objects with these fields, such as `metadata.name=a`.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { field_selector: Some(selector.into()), ..Self::default() }
    }

    /// The start of a query string, or nothing.
    pub(crate) fn query(&self) -> String {
        let mut query = String::new();
        for (key, selector) in [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)] {
            if let Some(selector) = selector.as_deref().filter(|selector| !selector.is_empty()) {
                push_query(&mut query, key, selector);
            }
        }
        query
    }
}

impl Page {
    fn parse(body: &[u8], resource: &Resource) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(default)]
            metadata: ListMetadata,
            #[serde(borrow, default)]
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct ListMetadata {
            resource_version: String,
            r#continue: String,
        }
        let list: List = serde_json::from_slice(body)?;
        let mut items = Vec::new();
        for raw in list.items.unwrap_or_default() {
            match Object::parse(raw.get(), Some(resource)) {
                Ok(object) => items.push(object),
                Err(problem) => tracing::warn!(%resource, %problem, "skipping an item of a list"),
            }
        }
        let next = Some(list.metadata.r#continue).filter(|token| !token.is_empty());
        let bytes = body.len().max(SMALLEST_PAGE);
        Ok(Self { items, resource_version: list.metadata.resource_version, next, bytes })
    }
}

/// Reads the rest of an answer.
async fn read(answer: Response<AnswerBody>, request: &str, most: usize) -> Result<Bytes, Error> {
    let (mut body, mut parts, mut length) = (answer.into_body(), Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Error::Transport { request: request.to_owned(), problem: chain(&*error) })?;
        let Ok(part) = frame.into_data() else { continue };
        length += part.len();
        if length > most {
            return Err(Error::TooLarge { request: request.to_owned(), most });
        }
        parts.push(part);
    }
    // Most answers come in one piece, which need not be copied.
    if parts.len() == 1 { Ok(parts.swap_remove(0)) } else { Ok(parts.concat().into()) }
}

/// Sends a request of a kube client, which knows only the part of the URL below the base.
async fn forward(
    channel: Channel,
    base: Arc<str>,
    mut request: Request<Body>,
) -> Result<Response<AnswerBody>, BoxError> {
    let path = request.uri().path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    *request.uri_mut() = format!("{base}{path}").parse::<http::Uri>()?;
    channel.send(request).await
}
