//! Content negotiation: which form of a response the client accepts.

use http::{HeaderMap, header};

use crate::protobuf;
use crate::status::Status;

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    /// JSON with line breaks, for people.
    Pretty,
    Yaml,
    /// Only for kinds that are built in, and for metadata.
    Protobuf,
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

/// What the client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accept {
    pub(super) format: Format,
    pub(super) shape: Shape,
    /// The encoding of errors, which always have their own shape.
    pub(super) errors: Format,
    /// Encoding and shape of kinds that have no messages, if the client accepts any.
    json: Option<(Format, Shape)>,
}

impl Accept {
    /// What the client gets of a kind whose objects are not sent as protobuf.
    pub(super) fn without_messages(mut self) -> Result<Self, Status> {
        (self.format, self.shape) = self.json.ok_or_else(Status::not_acceptable)?;
        Ok(self)
    }
}

/// The first acceptable form in the client's order; shapes that this server does not produce are skipped.
pub(super) fn accept(headers: &HeaderMap, pretty: bool) -> Result<Accept, Status> {
    let text: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let joined = text.join(",");
    let json = if pretty || for_people(headers) { Format::Pretty } else { Format::Json };
    // Nearly every client sends nothing or just this.
    let forms: Vec<(Format, Shape)> = if matches!(joined.trim(), "" | "application/json") {
        vec![(json, Shape::Object)]
    } else {
        let form =
            |clause| one(clause).map(|(format, shape)| (if format == Format::Json { json } else { format }, shape));
        ordered(&joined).into_iter().filter_map(form).collect()
    };
    let (format, shape) = *forms.first().ok_or_else(Status::not_acceptable)?;
    let whole = |form: &&(Format, Shape)| form.1 == Shape::Object;
    let fits = |form: &&(Format, Shape)| **form != (Format::Protobuf, Shape::Object);
    Ok(Accept {
        format,
        shape,
        // The real server shows errors to clients that accept none as it shows them to people.
        errors: forms.iter().find(whole).map_or(Format::Pretty, |form| form.0),
        json: forms.iter().find(fits).copied(),
    })
}

/// The clauses of an Accept header, what the client prefers first.
fn ordered(text: &str) -> Vec<&str> {
    let mut clauses: Vec<&str> = text.split(',').map(str::trim).collect();
    if clauses.len() > 1 {
        clauses.sort_by_key(|clause| {
            let weight = clause.split(';').find_map(|part| part.trim().strip_prefix("q=")?.parse::<f32>().ok());
            let media = clause.split(';').next().unwrap_or_default().trim_end();
            let order = std::cmp::Reverse(weight.map_or(1000, thousandths));
            (order, media.starts_with('*'), media.ends_with('*'))
        });
    }
    clauses
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 1000")]
fn thousandths(weight: f32) -> u16 {
    (weight.clamp(0.0, 1.0) * 1000.0) as u16
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

fn one(clause: &str) -> Option<(Format, Shape)> {
    let mut parts = clause.split(';').map(str::trim);
    let format = match parts.next()? {
        "application/json" | "application/*" | "*/*" => Format::Json,
        "application/yaml" => Format::Yaml,
        protobuf::MEDIA => Format::Protobuf,
        _ => return None,
    };
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let get = |key: &str| parameters.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let shape = match get("as") {
        None => Shape::Object,
        _ if get("g") != Some("meta.k8s.io") || get("v") != Some("v1") => return None,
        // Tables have no message.
        Some("Table") if format == Format::Protobuf => return None,
        Some("Table") => Shape::Table,
        Some("PartialObjectMetadata") => Shape::Partial,
        Some("PartialObjectMetadataList") => Shape::PartialList,
        Some(_) => return None,
    };
    Some((format, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &str) -> Option<Accept> {
        let mut headers = HeaderMap::new();
        if !text.is_empty() {
            headers.insert(header::ACCEPT, text.parse().unwrap());
        }
        accept(&headers, false).ok()
    }

    #[test]
    fn the_first_form_we_can_make_wins() {
        let table = Some((Format::Json, Shape::Table));
        let plain = Some((Format::Json, Shape::Object));
        let protobuf = Some((Format::Protobuf, Shape::Object));
        for (text, expected) in [
            ("", plain),
            ("*/*", plain),
            ("application/json", plain),
            ("application/vnd.kubernetes.protobuf, */*", protobuf),
            ("application/vnd.kubernetes.protobuf;stream=watch", protobuf),
            ("*/*, application/vnd.kubernetes.protobuf", protobuf),
            ("application/vnd.kubernetes.protobuf;q=0.4,application/json;q=0.5", plain),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", plain),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json", plain),
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", plain),
            ("application/yaml", Some((Format::Yaml, Shape::Object))),
            ("application/cbor", None),
            ("application/vnd.kubernetes.protobuf", protobuf),
        ] {
            assert_eq!(accepted(text).map(|accept| (accept.format, accept.shape)), expected, "{text}");
        }
    }

    #[test]
    fn kinds_without_messages_and_errors_have_forms_of_their_own() {
        let metadata = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let json = (Format::Json, Shape::Object);
        let partial = (Format::Protobuf, Shape::Partial);
        for (text, errors, custom) in [
            (protobuf::MEDIA.to_owned(), Format::Protobuf, None),
            (format!("{},application/json", protobuf::MEDIA), Format::Protobuf, Some(json)),
            (format!("{};{metadata},application/json", protobuf::MEDIA), Format::Json, Some(partial)),
            ("application/yaml".to_owned(), Format::Yaml, Some((Format::Yaml, Shape::Object))),
        ] {
            let accept = accepted(&text).unwrap();
            let got = accept.without_messages().ok().map(|accept| (accept.format, accept.shape));
            assert_eq!((accept.errors, got), (errors, custom), "{text}");
        }
    }
}
