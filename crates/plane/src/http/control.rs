//! The fault layer over plain HTTP, for clients under test in other processes. Only administrators (`system:masters`) get in.
//!
//! | request | does |
//! | --- | --- |
//! | `GET /faults` | rules with their hits, and counts |
//! | `POST /faults` | adds the rule in the body, such as `{"match":{"verbs":["create"]},"turn":{"nth":2},"effect":"applyThenCut"}` |
//! | `DELETE /faults`, `/faults/<id>` | removes all rules, or one |
//! | `GET /held`, `DELETE /held` | lists, or drops, writes that are held back |
//! | `POST /held/release` | executes those that match the body, or all |
//! | `GET /watches` | open watches |
//! | `POST /watches/cut`, `/stall`, `/resume` | cuts, silences or resumes the watches that match the body, such as `{"resource":"secrets"}`
//! |
//! | `GET /endpoints` | endpoints and whether they run |
//! | `POST /endpoints/<n>/stop`, `/start`, `/disconnect` | stops, starts or disconnects one |
//! | `GET /requests`, `DELETE /requests` | lists, or clears, the last requests |

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use crate::auth::Tokens;
use crate::faults::{Faults, Match, Record, Rule, RuleId};

/// How many requests are remembered.
const REMEMBERED: usize = 10_000;
const BODY: usize = 64 * 1024;

/// The state of the control endpoint.
pub(crate) struct Control {
    faults: Faults,
    tokens: Arc<Tokens>,
    endpoints: Vec<Arc<Endpoint>>,
    requests: Arc<Mutex<VecDeque<Record>>>,
}

type ControlResponse = Result<Value, (u16, String)>;

impl Control {
    pub(crate) fn new(faults: Faults, tokens: Arc<Tokens>, endpoints: Vec<Arc<Endpoint>>) -> Self {
        let requests = Arc::new(Mutex::new(VecDeque::new()));
        let kept = requests.clone();
        faults.observe(move |record| {
            let mut kept = kept.lock();
            if kept.len() == REMEMBERED {
                kept.pop_front();
            }
            kept.push_back(record.clone());
        });
        Self { faults, tokens, endpoints, requests }
    }

    /// Serves until stopped.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let control = Arc::new(self);
        let mut connections = JoinSet::new();
        loop {
            let stream = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::debug!(%error, "the control endpoint cannot accept a connection");
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let control = control.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| {
                    let control = control.clone();
                    async move { Ok::<_, Infallible>(control.answer(request).await) }
                });
                // Clients may disconnect at any time.
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (code, value) = match self.act(request).await {
            Ok(value) => (200, value),
            Err((code, message)) => (code, json!({"code": code, "message": message})),
        };
        let mut response = Response::new(Full::new(Bytes::from(format!("{value}\n"))));
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
        response
    }

    async fn act(&self, request: Request<Incoming>) -> ControlResponse {
        let text = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = text.and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
        if !self.tokens.caller(token).is_some_and(|caller| caller.is_in("system:masters")) {
            return Err((401, "say who you are with the bearer token of an administrator".to_owned()));
        }
        let (parts, body) = request.into_parts();
        let content = Limited::new(body, BODY).collect().await;
        let content = content.map_err(|error| (400, format!("cannot read the body: {error}")))?.to_bytes();
        let path: Vec<&str> = parts.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        match (&parts.method, path.as_slice()) {
            (&Method::GET, ["faults"]) => Ok(self.rules()),
            (&Method::POST, ["faults"]) => {
                let rule: Rule = read(&content)?;
                Ok(json!({"id": self.faults.add(rule)}))
            }
            (&Method::DELETE, ["faults"]) => {
                self.faults.clear();
                Ok(json!({}))
            }
            (&Method::DELETE, ["faults", id]) => {
                let id = id.parse().map_err(|_| (400, format!("{id:?} is not the number of a rule")))?;
                Ok(json!({"hits": self.faults.remove(RuleId(id))}))
            }
            (&Method::GET, ["held"]) => Ok(json!({"held": self.faults.held()})),
            (&Method::DELETE, ["held"]) => {
                self.faults.forget_held();
                Ok(json!({}))
            }
            (&Method::POST, ["held", "release"]) => {
                let wanted: Match = if content.is_empty() { Match::any() } else { read(&content)? };
                let done = self.faults.release(&wanted).await;
                let done: Vec<Value> = done.iter().map(|(ask, code)| json!({"ask": ask, "code": code})).collect();
                Ok(json!({"done": done}))
            }
            (&Method::GET, ["watches"]) => Ok(json!({"watches": self.faults.open_watches()})),
            (&Method::POST, ["watches", order]) => self.order(order, &content),
            (&Method::GET, ["endpoints"]) => {
                let mut all = Vec::new();
                for endpoint in &self.endpoints {
                    let running = endpoint.is_running().await;
                    all.push(json!({"number": endpoint.number(), "shard": endpoint.shard(), "url": endpoint.url(), "running": running}));
                }
                Ok(json!({"endpoints": all}))
            }
            (&Method::POST, ["endpoints", number, order]) => self.endpoint(number, order).await,
            (&Method::GET, ["requests"]) => Ok(json!({"requests": *self.requests.lock()})),
            (&Method::DELETE, ["requests"]) => {
                self.requests.lock().clear();
                Ok(json!({}))
            }
            _ => Err((404, format!("there is no {} {}", parts.method, parts.uri.path()))),
        }
    }

    fn rules(&self) -> Value {
        let rules = self.faults.rules(|id, rule, hits| json!({"id": id, "rule": rule, "hits": hits}));
        json!({"rules": rules, "counts": self.faults.counts()})
    }

    fn order(&self, order: &str, content: &[u8]) -> ControlResponse {
        let wanted: Match = if content.is_empty() { Match::any() } else { read(content)? };
        let reported = match order {
            "cut" => self.faults.cut_watches(&wanted),
            "stall" => self.faults.stall_watches(&wanted),
            "resume" => self.faults.resume_watches(),
            _ => return Err((404, format!("watches cannot {order:?}: say cut, stall or resume"))),
        };
        Ok(json!({"watches": reported}))
    }

    async fn endpoint(&self, number: &str, order: &str) -> ControlResponse {
        let found = self.endpoints.iter().find(|endpoint| endpoint.number().to_string() == number);
        let endpoint = found.ok_or_else(|| (404, format!("there is no endpoint {number:?}")))?;
        match order {
            "stop" => endpoint.stop().await,
            "start" => endpoint.start().await.map_err(|error| (500, format!("cannot listen again: {error}")))?,
            "disconnect" => endpoint.disconnect().await,
            _ => return Err((404, format!("endpoints cannot {order:?}: say stop, start or disconnect"))),
        }
        Ok(json!({}))
    }
}

fn read<T: DeserializeOwned>(content: &[u8]) -> Result<T, (u16, String)> {
    serde_json::from_slice(content).map_err(|error| (400, format!("cannot understand the body: {error}")))
}
