//! URLs, taken apart and put together as Go's net/url does.

use carrick_go::url::{Url, User};

use crate::{
    functions::{Args, Function, Type},
    heap::{Heap, Outcome},
    value::{Map, Str, Value},
};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("urlParse", &[Type::Str], url_parse), Function::new("urlJoin", &[Type::Map], url_join)];

fn url_parse(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let text = args.bytes(0)?;
    heap.scan(4 * text.len())?;
    heap.take(2 * text.len())?;
    // The whole message quotes the URL, which may have been made from a secret.
    let url = Url::parse(text).map_err(|error| format!("unable to parse url: {}", error.plain()))?;
    let user = url.user.as_ref().map(User::to_bytes).unwrap_or_default();
    let hostname = url.host_name().to_vec();
    let parts = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ];
    heap.any_map(parts.into_iter().map(|(key, value)| (Str::from(key), Value::from(value))).collect())
}

fn url_join(heap: &Heap, args: Args<'_>) -> Outcome<Value> {
    let map = args.map(0)?;
    let user = part(map, "userinfo")?;
    let user = if user.is_empty() {
        None
    } else {
        Url::parse(&[b"proto://", user.as_slice(), b"@host"].concat()).map_err(|error| error.plain())?.user
    };
    let url = Url {
        scheme: part(map, "scheme")?,
        opaque: part(map, "opaque")?,
        user,
        host: part(map, "host")?,
        path: part(map, "path")?,
        query: part(map, "query")?,
        fragment: part(map, "fragment")?,
        ..Url::default()
    };
    heap.str(url.to_bytes())
}

fn part(map: &Map, key: &str) -> Outcome<Vec<u8>> {
    match map.get(&Str::from(key)) {
        None => Ok(Vec::new()),
        Some(Value::Str(text)) => Ok(text.as_bytes().to_vec()),
        Some(other) => {
            Err(format!("unable to parse {key} key, must be of type string, but {} found", other.kind_name()).into())
        }
    }
}
