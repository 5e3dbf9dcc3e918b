//! Shards that count for themselves: every shard of a real kcp has an etcd of its own, so that versions of one say nothing about versions of
//! another. Shards of the plane share one store; the versions that some of them show are shifted on their way in and out.

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;

use super::reply::Reply;

const FIELD: &[u8] = b"\"resourceVersion\"";

/// The query of a request to a shard that is so far ahead.
pub(super) fn inward_query(query: &str, ahead: u64) -> String {
    let shifted = query.split('&').map(|pair| match pair.strip_prefix("resourceVersion=") {
        Some(version) => format!("resourceVersion={}", inward(version, ahead)),
        None => pair.to_owned(),
    });
    shifted.collect::<Vec<_>>().join("&")
}

/// The body of a request to such a shard.
pub(super) fn inward_body(body: &Bytes, ahead: u64) -> Bytes {
    if let Ok(Value::Array(mut steps)) = serde_json::from_slice(body) {
        for step in steps.iter_mut().filter(|step| step["path"] == "/metadata/resourceVersion") {
            if let Some(version) = step["value"].as_str() {
                step["value"] = inward(version, ahead).into();
            }
        }
        return Value::Array(steps).to_string().into();
    }
    replace(body, |version| inward(version, ahead))
}

/// What such a shard answers.
pub(super) fn outward(reply: Reply, ahead: u64) -> Reply {
    let shift =
        move |version: &str| version.parse::<u64>().map_or(String::new(), |version| (version + ahead).to_string());
    reply.map(|body| {
        // Every line of a watch is one frame, and so is every other answer.
        body.map_frame(move |frame| frame.map_data(|data| replace(&data, shift))).boxed_unsync()
    })
}

/// A version as the store knows it. What is too low for the shard is as old as can be.
fn inward(version: &str, ahead: u64) -> String {
    match version.parse::<u64>() {
        Ok(0) | Err(_) => version.to_owned(),
        Ok(version) => version.saturating_sub(ahead).max(1).to_string(),
    }
}

/// Replaces all versions in a JSON text; what is no number stays.
fn replace(text: &Bytes, shift: impl Fn(&str) -> String) -> Bytes {
    let mut result = Vec::new();
    let mut rest: &[u8] = text;
    while let Some(at) = rest.windows(FIELD.len()).position(|part| part == FIELD) {
        let (before, after) = rest.split_at(at + FIELD.len());
        result.extend_from_slice(before);
        let skipped = after.iter().take_while(|byte| matches!(byte, b':' | b' ' | b'"')).count();
        let digits = after[skipped..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        result.extend_from_slice(&after[..skipped]);
        let number = std::str::from_utf8(&after[skipped..skipped + digits]).unwrap_or_default();
        match number {
            "" | "0" => result.extend_from_slice(number.as_bytes()),
            number => result.extend_from_slice(shift(number).as_bytes()),
        }
        rest = &after[skipped + digits..];
    }
    if result.is_empty() {
        return text.clone();
    }
    result.extend_from_slice(rest);
    result.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shifted_on_both_ways_and_nothing_else() {
        let sent = Bytes::from_static(
            br#"{"metadata":{"resourceVersion":"1005","x":"7"},"items":[{"resourceVersion": "1006"},{"resourceVersion":""}]}"#,
        );
        let stored = inward_body(&sent, 1000);
        let wanted = br#"{"metadata":{"resourceVersion":"5","x":"7"},"items":[{"resourceVersion": "6"},{"resourceVersion":""}]}"#;
        assert_eq!(stored, Bytes::from_static(wanted));
        assert_eq!(replace(&stored, |version| (version.parse::<u64>().unwrap() + 1000).to_string()), sent);
        let patch = Bytes::from_static(br#"[{"op":"add","path":"/metadata/resourceVersion","value":"1005"}]"#);
        let wanted = br#"[{"op":"add","path":"/metadata/resourceVersion","value":"5"}]"#;
        assert_eq!(inward_body(&patch, 1000), Bytes::from_static(wanted));
        assert_eq!(inward_query("watch=1&resourceVersion=1009&limit=2", 1000), "watch=1&resourceVersion=9&limit=2");
        assert_eq!(inward_query("resourceVersion=0", 1000), "resourceVersion=0");
        assert_eq!(inward_query("resourceVersion=3", 1000), "resourceVersion=1", "a version of another shard");
    }
}
