//! Which connection a request uses.
//!
//! On one HTTP/2 connection a server answers a limited number of requests at a time, kube-apiserver 100, and whatever exceeds that waits without a
//! word. A watch is a request that stays, so a hundred watches would leave room for nothing else. Therefore the first connection carries
//! all requests and a few watches, and further watches get connections of their own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::uri::Authority;
use http::{Request, Response, Uri};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Builder, Client, ResponseFuture};
use kube::client::Body;
use tower::Service;

/// Watches on the first connection.
const BESIDE_REQUESTS: usize = 32;
/// Watches on every other connection: a little less than the least that servers are asked to allow.
const PER_CONNECTION: usize = 90;

/// Which of a server's connections a request uses; the first unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lane(pub(super) usize);

/// How many watches each connection carries.
#[derive(Default)]
pub(super) struct Seats {
    taken: Mutex<HashMap<Authority, Vec<usize>>>,
}

impl Seats {
    /// A seat for a watch; other requests need none.
    pub(super) fn take(self: &Arc<Self>, url: &Uri) -> Option<Seat> {
        let host = url.authority().filter(|_| is_watch(url))?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = taken.entry(host.clone()).or_default();
        let room =
            |(lane, watches): (usize, &usize)| *watches < if lane == 0 { BESIDE_REQUESTS } else { PER_CONNECTION };
        let lane = lanes.iter().enumerate().position(room).unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(0);
        }
        lanes[lane] += 1;
        Some(Seat { seats: Arc::clone(self), host: host.clone(), lane: Lane(lane) })
    }
}

fn is_watch(url: &Uri) -> bool {
    url.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

/// A watch's place on a connection; free again when dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    host: Authority,
    pub(super) lane: Lane,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watches) = taken.get_mut(&self.host).and_then(|lanes| lanes.get_mut(self.lane.0)) {
            *watches -= 1;
        }
    }
}

/// The body of an answer, with its seat until it ends.
pub(crate) struct Seated {
    body: Incoming,
    _seat: Option<Seat>,
}

impl Seated {
    pub(super) fn new(answer: Response<Incoming>, seat: Option<Seat>) -> Response<Self> {
        answer.map(|body| Self { body, _seat: seat })
    }
}

impl HttpBody for Seated {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// One client for each connection; they are made when they are needed first.
#[derive(Clone)]
pub(super) struct Lanes<C> {
    builder: Builder,
    connector: C,
    clients: Arc<Mutex<Vec<Client<C, Body>>>>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Lanes<C> {
    pub(super) fn new(builder: Builder, connector: C) -> Self {
        Self { builder, connector, clients: Arc::default() }
    }

    fn client(&self, Lane(lane): Lane) -> Client<C, Body> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        while clients.len() <= lane {
            clients.push(self.builder.build(self.connector.clone()));
        }
        clients[lane].clone()
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Service<Request<Body>> for Lanes<C> {
    type Response = Response<Incoming>;
    type Error = hyper_util::client::legacy::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let lane = request.extensions().get::<Lane>().copied().unwrap_or_default();
        self.client(lane).request(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_fill_one_connection_after_the_other_and_leave_room_for_requests() {
        let seats = Arc::<Seats>::default();
        let watch = Uri::from_static("https://one/api/v1/secrets?limit=5&watch=true");
        assert!(seats.take(&Uri::from_static("https://one/api/v1/secrets?watching=true")).is_none());
        let mut held: Vec<_> = (0..200).map(|_| seats.take(&watch).unwrap()).collect();
        let on = |held: &[Seat], lane| held.iter().filter(|seat| seat.lane == Lane(lane)).count();
        assert_eq!([0, 1, 2, 3].map(|lane| on(&held, lane)), [32, 90, 78, 0]);
        let other = seats.take(&Uri::from_static("https://two/api/v1/secrets?watch=1")).unwrap();
        assert_eq!(other.lane, Lane(0));
        held.remove(0);
        assert_eq!(seats.take(&watch).unwrap().lane, Lane(0), "what is free again is used first");
    }
}
