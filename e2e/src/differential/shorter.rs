//! A sequence with one request less.

use super::request::{Request, When};

/// The sequence without the request at an index. A request that is sent until it is refused only waits for the one before it to take effect: it
/// goes with that one, and not alone. Otherwise it would wait for a refusal that never comes, or nobody would wait for one that does.
pub fn without(sequence: &[Request], index: usize) -> Option<Vec<Request>> {
    let waits = |request: &Request| request.when == When::Refused;
    if sequence.get(index).is_none_or(waits) {
        return None;
    }
    let end = index + 1 + sequence[index + 1..].iter().take_while(|request| waits(request)).count();
    Some(sequence[..index].iter().chain(&sequence[end..]).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::request::Body;

    #[test]
    fn who_waits_for_a_refusal_goes_with_its_reason() {
        let request = |path: &str| Request::new("GET", path, Body::None);
        let sequence = [request("/a"), request("/delete"), request("/probe").when(When::Refused), request("/b")];
        let paths = |index| {
            without(&sequence, index).map(|left| left.into_iter().map(|request| request.path).collect::<Vec<_>>())
        };
        assert_eq!(paths(0).unwrap(), ["/delete", "/probe", "/b"]);
        assert_eq!(paths(1).unwrap(), ["/a", "/b"]);
        assert_eq!(paths(2), None);
        assert_eq!(paths(3).unwrap(), ["/a", "/delete", "/probe"]);
        assert_eq!(paths(4), None);
    }
}
