//! Content negotiation: which form of a response the client accepts.

use http::{HeaderMap, header};

use crate::status::Status;

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    /// JSON with line breaks, for people.
    Pretty,
    Yaml,
}

/// The shape of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The object itself.
    Object,
    /// `meta.k8s.io/v1` Table.
    Table,
    /// `meta.k8s.io/v1` `PartialObjectMetadata`.
    Partial,
    /// `meta.k8s.io/v1` `PartialObjectMetadataList`.
    PartialList,
}

/// Encoding and shape together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accept {
    pub(super) format: Format,
    pub(super) shape: Shape,
}

const DEFAULT: Accept = Accept { format: Format::Json, shape: Shape::Object };

/// The first acceptable form in the client's order; shapes that this server does not produce are skipped.
pub(super) fn accept(headers: &HeaderMap, pretty: bool) -> Result<Accept, Status> {
    let text: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let joined = text.join(",");
    let chosen =
        if joined.trim().is_empty() { Some(DEFAULT) } else { joined.split(',').find_map(|clause| one(clause.trim())) };
    let mut accept = chosen.ok_or_else(Status::not_acceptable)?;
    if accept.format == Format::Json && (pretty || for_people(headers)) {
        accept.format = Format::Pretty;
    }
    Ok(accept)
}

/// The media type of discovery in one document.
pub(super) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether the client understands discovery in one document.
pub(super) fn accepts_aggregated(headers: &HeaderMap) -> bool {
    let wanted = ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"];
    let clauses = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    clauses.flat_map(|text| text.split(',')).any(|clause| {
        let parts: Vec<&str> = clause.split(';').map(str::trim).collect();
        parts.first() == Some(&"application/json") && wanted.iter().all(|part| parts.contains(part))
    })
}

fn for_people(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/"].iter().any(|prefix| agent.starts_with(prefix))
}

fn one(clause: &str) -> Option<Accept> {
    let mut parts = clause.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Format::Json,
        "application/yaml" => Format::Yaml,
        _ => return None,
    };
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let get = |key: &str| parameters.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let shape = match get("as") {
        None => Shape::Object,
        _ if get("g") != Some("meta.k8s.io") || get("v") != Some("v1") => return None,
        Some("Table") => Shape::Table,
        Some("PartialObjectMetadata") => Shape::Partial,
        Some("PartialObjectMetadataList") => Shape::PartialList,
        Some(_) => return None,
    };
    Some(Accept { format, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_we_can_make_wins() {
        let table = Some(Accept { format: Format::Json, shape: Shape::Table });
        let plain = Some(DEFAULT);
        for (text, expected) in [
            ("", plain),
            ("*/*", plain),
            ("application/json", plain),
            ("application/vnd.kubernetes.protobuf, */*", plain),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", plain),
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", plain),
            ("application/yaml", Some(Accept { format: Format::Yaml, shape: Shape::Object })),
            ("application/cbor", None),
            ("application/vnd.kubernetes.protobuf", None),
        ] {
            let mut headers = HeaderMap::new();
            if !text.is_empty() {
                headers.insert(header::ACCEPT, text.parse().unwrap());
            }
            assert_eq!(accept(&headers, false).ok(), expected, "{text}");
        }
    }
}
