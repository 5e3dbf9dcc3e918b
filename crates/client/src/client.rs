//! A client of one base URL, and how it sends requests.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::{BoxError, service_fn};

use crate::channel::{AnswerBody, Channel};
use crate::connect::{ConnectError, parse_url, show};
use crate::error::{Error, Status, chain};
use crate::object::Object;
use crate::payload::{Form, JSON, Payload};
use crate::resource::push_query;
use crate::transport::Host;
use crate::wording;

/// How long a whole request may take, the body of the answer included. Watches have limits of their own.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// A client scoped to one base URL. Cloning is cheap; see [`crate::Server`] for where clients come from.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

/// Says what helps against a right that is missing, given the server's words about it.
type Advice = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// An API group and its versions.
#[cfg(feature = "kcp")]
type ServedVersions = (&'static str, Arc<[String]>);

struct Inner {
    channel: Channel,
    url: Arc<str>,
    default_namespace: Arc<str>,
    form: Form,
    /// The field manager of writes.
    manager: Option<Arc<str>>,
    /// What errors say about rights that are missing.
    advice: Option<Advice>,
    kube: Mutex<Option<Kept>>,
    /// Versions of the API group that was asked for.
    #[cfg(feature = "kcp")]
    versions: Mutex<Option<ServedVersions>>,
}

impl Inner {
    fn new(
        channel: Channel,
        url: Arc<str>,
        default_namespace: Arc<str>,
        form: Form,
        manager: Option<Arc<str>>,
        advice: Option<Advice>,
    ) -> Self {
        Self {
            channel,
            url,
            default_namespace,
            form,
            manager,
            advice,
            kube: Mutex::default(),
            #[cfg(feature = "kcp")]
            versions: Mutex::default(),
        }
    }
}

/// A kube client that was made before. Each has a task of its own.
struct Kept {
    client: kube::Client,
    used: Instant,
}

impl Client {
    pub(crate) fn on(channel: Channel, url: Arc<str>, default_namespace: Arc<str>) -> Self {
        let (form, manager) = (Form::Whole, None);
        Self { inner: Arc::new(Inner::new(channel, url, default_namespace, form, manager, None)) }
    }

    /// The same client, which gets only the metadata of objects. Servers that cannot leave out the rest send everything.
    #[must_use]
    pub fn metadata_only(&self) -> Self {
        let Inner { channel, url, default_namespace, advice, .. } = &*self.inner;
        let (channel, url, default_namespace) = (channel.clone(), url.clone(), default_namespace.clone());
        let (form, manager) = (Form::Metadata, None);
        Self { inner: Arc::new(Inner::new(channel, url, default_namespace, form, manager, advice.clone())) }
    }

    /// The same client with this field manager, under which servers record its writes. The default is the name of the program, as with other clients.
    #[must_use]
    pub fn writing_as(&self, manager: &str) -> Self {
        let Inner { channel, url, default_namespace, form, advice, .. } = &*self.inner;
        let (channel, url, default_namespace) = (channel.clone(), url.clone(), default_namespace.clone());
        let (form, manager) = (*form, Some(manager.into()));
        Self { inner: Arc::new(Inner::new(channel, url, default_namespace, form, manager, advice.clone())) }
    }

    /// The same client, whose errors say what helps against a right that is missing: `advice` gets the server's words about it, such as
    /// `"u" cannot list resource "widgets" in API group "example.io"`. See [`Status::cure`].
    #[must_use]
    pub fn advising(&self, advice: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let Inner { channel, url, default_namespace, form, manager, .. } = &*self.inner;
        let (channel, url, default_namespace) = (channel.clone(), url.clone(), default_namespace.clone());
        let advice: Option<Advice> = Some(Arc::new(advice));
        Self { inner: Arc::new(Inner::new(channel, url, default_namespace, *form, manager.clone(), advice)) }
    }

    /// The versions of an API group, if they were asked for before.
    #[cfg(feature = "kcp")]
    pub(crate) fn known_versions(&self, group: &str) -> Option<Arc<[String]>> {
        let known = self.inner.versions.lock();
        known.as_ref().filter(|(known, _)| *known == group).map(|(_, versions)| versions.clone())
    }

    /// Remembers the versions of an API group for all clones of this client.
    #[cfg(feature = "kcp")]
    pub(crate) fn know_versions(&self, group: &'static str, versions: Vec<String>) -> Arc<[String]> {
        let versions: Arc<[String]> = versions.into();
        *self.inner.versions.lock() = Some((group, versions.clone()));
        versions
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
        self.moved(self.inner.url.clone(), namespace.into())
    }

    /// The namespace of typed requests that name none.
    pub fn default_namespace(&self) -> &str {
        &self.inner.default_namespace
    }

    fn at(&self, url: &str) -> Self {
        self.moved(url.into(), self.inner.default_namespace.clone())
    }

    fn moved(&self, url: Arc<str>, namespace: Arc<str>) -> Self {
        let (channel, advice) = (self.inner.channel.clone(), self.inner.advice.clone());
        Self { inner: Arc::new(Inner::new(channel, url, namespace, Form::Whole, None, advice)) }
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

    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Value, Error> {
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
        self.bytes_as((self.inner.form.of_objects(), self.most()), method, path, body).await
    }

    /// The body of a list of so many bytes at most, in the form that the client asks lists for.
    pub(crate) async fn list_bytes(&self, path: &str, most: usize) -> Result<Bytes, Error> {
        self.bytes_as((self.inner.form.of_lists(), most), Method::GET, path, None).await
    }

    async fn bytes_as(
        &self,
        (accept, most): (&str, usize),
        method: Method,
        path: &str,
        body: Option<(&str, &dyn Payload)>,
    ) -> Result<Bytes, Error> {
        let request = self.describe(&method, path);
        let whole = async {
            let answer = self.send_as(accept, method, path, body).await?;
            read(answer, &request, most).await
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
        let status = Status::parse(code, seconds.map(Duration::from_secs), &request, &body);
        Err(self.advised(status).into())
    }

    /// The same answer, with what helps if a right is missing.
    fn advised(&self, mut status: Status) -> Status {
        if let (403, Some(advice)) = (status.code, &self.inner.advice) {
            status.cure = wording::missing_right(&status.message).and_then(|missing| advice(missing));
        }
        status
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
