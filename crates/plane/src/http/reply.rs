//! Responses.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::Value;

use super::negotiate::Format;
use crate::protobuf;
use crate::status::Status;

/// The fault layer withholds the response, or the rest of it.
#[derive(Debug, thiserror::Error)]
#[error("cut on purpose")]
pub(crate) struct Cut;

/// The body of every response.
pub(super) type Body = UnsyncBoxBody<Bytes, Cut>;
/// Every response.
pub(super) type Reply = Response<Body>;

/// A response with a body.
pub(super) fn raw(code: u16, media: &str, content: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(content.into()).map_err(|never| match never {}).boxed_unsync());
    *reply.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut reply, media);
    reply
}

fn set(reply: &mut Reply, media: &str) {
    let headers = reply.headers_mut();
    let audit = uuid::Uuid::new_v4().to_string();
    let pairs = [(header::CONTENT_TYPE, media), (header::CACHE_CONTROL, "no-cache, private")];
    for (name, text) in pairs {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&audit) {
        headers.insert("audit-id", value);
    }
}

/// A streamed response.
pub(super) fn stream(media: &str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    set(&mut reply, media);
    reply
}

/// A plain-text response.
pub(super) fn text(code: u16, content: &str) -> Reply {
    raw(code, "text/plain; charset=utf-8", content.to_owned())
}

/// A value in the format the client wants.
pub(super) fn object(code: u16, value: &impl Serialize, format: Format) -> Reply {
    match format {
        Format::Json => {
            // Most objects fit, so nothing is moved while they are written.
            let mut content = Vec::with_capacity(2048);
            match serde_json::to_writer(&mut content, value) {
                Ok(()) => {
                    content.push(b'\n');
                    raw(code, "application/json", content)
                }
                Err(error) => text(500, &format!("cannot encode the answer: {error}\n")),
            }
        }
        Format::Pretty => match serde_json::to_vec_pretty(value) {
            Ok(mut content) => {
                content.push(b'\n');
                raw(code, "application/json", content)
            }
            Err(error) => text(500, &format!("cannot encode the answer: {error}\n")),
        },
        Format::Yaml => match serde_saphyr::to_string(value) {
            Ok(content) => raw(code, "application/yaml", content),
            Err(error) => text(500, &format!("cannot encode the answer: {error}\n")),
        },
        // Documents that are no objects only exist in JSON.
        Format::Protobuf => match serde_json::to_value(value).ok().and_then(|value| protobuf::encode(&value)) {
            Some(content) => raw(code, protobuf::MEDIA, content),
            None => object(code, value, Format::Json),
        },
    }
}

/// An error response.
pub(super) fn status(status: &Status, format: Format) -> Reply {
    let mut reply = match &status.text {
        Some(content) => text(status.code, content),
        None => object(status.code, &status.value(), format),
    };
    if let Some(seconds) = status.details.get("retryAfterSeconds").and_then(Value::as_u64) {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(reply, status.warnings.as_deref().map_or(&[], Vec::as_slice))
}

/// Adds `Warning` headers.
pub(super) fn warn(mut reply: Reply, warnings: &[String]) -> Reply {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // Nothing is sent twice, and what does not fit into a header is not sent at all.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\""))
            && !reply.headers().get_all(header::WARNING).iter().any(|reported| *reported == value)
        {
            reply.headers_mut().append(header::WARNING, value);
        }
    }
    reply
}
