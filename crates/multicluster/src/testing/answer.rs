//! Requests to a server in memory, and its answers.

use std::collections::HashMap;
use std::convert::Infallible;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};

use super::objects::{ObjectKey, Objects, Refusal};

/// What a server sends.
pub(super) type Answer = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// What a request is about.
pub(super) struct Target {
    pub(super) plural: String,
    /// None for all clusters at once.
    pub(super) cluster: Option<String>,
    namespace: String,
    /// None for a list.
    name: Option<String>,
    query: HashMap<String, String>,
}

impl Target {
    /// Reads a URL; none if it leads to no object of any kind.
    pub(super) fn read(url: &http::Uri) -> Option<Self> {
        let mut segments = url.path().split('/').filter(|segment| !segment.is_empty()).peekable();
        let cluster = segments.next_if_eq(&"clusters").and_then(|_| segments.next()).map(str::to_owned);
        // /api/v1 or /apis/<group>/<version>
        let is_core = segments.next()? == "api";
        segments.nth(usize::from(!is_core))?;
        let rest: Vec<&str> = segments.collect();
        let (namespace, plural, name) = match rest[..] {
            ["namespaces", namespace, plural, ref rest @ ..] => (namespace, plural, rest.first()),
            [plural, ref rest @ ..] => ("", plural, rest.first()),
            [] => return None,
        };
        let pairs = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        Some(Self {
            plural: plural.to_owned(),
            cluster,
            namespace: namespace.to_owned(),
            name: name.map(|name| (*name).to_owned()),
            query: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        })
    }

    pub(super) fn is_watch(&self) -> bool {
        self.query.get("watch").is_some_and(|value| value == "true")
    }

    pub(super) fn is_list(&self) -> bool {
        self.name.is_none()
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey {
            plural: self.plural.clone(),
            cluster: self.cluster.clone().unwrap_or_default(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

/// Does what a request asks for.
pub(super) fn answer(objects: &mut Objects, target: &Target, parts: &Parts, body: &[u8]) -> Answer {
    let Some(name) = &target.name else {
        if parts.method == Method::POST {
            return written(create(objects, target, body));
        }
        return if target.is_watch() { watch(objects, target) } else { list(objects, target) };
    };
    let key = target.key(name);
    match parts.method {
        Method::GET => match objects.get(&key) {
            Some(object) => whole(200, object),
            None => refusal(404, "NotFound", &format!("{} {name:?} not found", target.plural)),
        },
        Method::PUT => written(parse(body).and_then(|object| objects.update(key, object))),
        Method::DELETE => written(objects.delete(&key)),
        Method::PATCH => {
            let media_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            written(patch(objects, key, media_type, body))
        }
        _ => refusal(405, "MethodNotAllowed", "the fake server knows no such method"),
    }
}

fn list(objects: &Objects, target: &Target) -> Answer {
    let (version, items) = objects.list(&target.plural, target.cluster.as_deref(), &target.namespace);
    whole(200, &json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

fn watch(objects: &mut Objects, target: &Target) -> Answer {
    let since = target.query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or_default();
    match objects.watch(&target.plural, since) {
        Some(lines) => stream(200, lines),
        None => refusal(410, "Expired", "the resource version is too old"),
    }
}

fn create(objects: &mut Objects, target: &Target, body: &[u8]) -> Result<Value, Refusal> {
    let object = parse(body)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err((422, "Invalid", "metadata.name is required: the fake server generates none".to_owned()));
    }
    objects.create(target.key(name), object)
}

fn patch(objects: &mut Objects, key: ObjectKey, media_type: &str, body: &[u8]) -> Result<Value, Refusal> {
    match media_type {
        "application/merge-patch+json" => objects.patch(key, &parse(body)?),
        "application/apply-patch+yaml" => {
            let object = parse(body)?;
            if objects.get(&key).is_some() { objects.patch(key, &object) } else { objects.create(key, object) }
        }
        other => {
            let message = format!("the fake server knows merge patches and server-side apply, not {other:?}");
            Err((415, "UnsupportedMediaType", message))
        }
    }
}

fn parse(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| (400, "BadRequest", format!("the body is not JSON: {error}")))
}

fn written(result: Result<Value, Refusal>) -> Answer {
    match result {
        Ok(object) => whole(200, &object),
        Err((code, reason, message)) => refusal(code, reason, &message),
    }
}

/// An answer in the form of a Kubernetes `Status`.
pub(super) fn refusal(code: u16, reason: &str, message: &str) -> Answer {
    whole(code, &json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}))
}

fn whole(code: u16, value: &Value) -> Answer {
    let (sender, receiver) = mpsc::unbounded();
    // The receiver is right here.
    let _ = sender.unbounded_send(Bytes::from(value.to_string()));
    stream(code, receiver)
}

fn stream(code: u16, lines: mpsc::UnboundedReceiver<Bytes>) -> Answer {
    let frames = lines.map(|line| Ok(Frame::data(line))).boxed();
    let mut answer = Response::new(StreamBody::new(frames));
    *answer.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lead_to_kinds_clusters_and_objects() {
        let cases = [
            ("/api/v1/configmaps?watch=true", "configmaps all clusters, , watch"),
            ("/clusters/c/api/v1/namespaces/ns/configmaps/m", "configmaps of c, ns, m"),
            ("/apis/apps/v1/namespaces/ns/deployments/d/status", "deployments all clusters, ns, d"),
            ("/apis/g/v1/widgets/w", "widgets all clusters, , w"),
            ("/api/v1/namespaces/ns", "namespaces all clusters, , ns"),
            ("/api/v1/namespaces", "namespaces all clusters, , list"),
            ("/version", "nothing"),
            ("/", "nothing"),
        ];
        for (url, wanted) in cases {
            let found = Target::read(&url.parse().unwrap()).map(|target| {
                let cluster = target.cluster.as_ref().map_or("all clusters".to_owned(), |name| format!("of {name}"));
                let last = if target.is_watch() { "watch" } else { target.name.as_deref().unwrap_or("list") };
                format!("{} {cluster}, {}, {last}", target.plural, target.namespace)
            });
            assert_eq!(found.as_deref().unwrap_or("nothing"), wanted, "{url}");
        }
    }
}
