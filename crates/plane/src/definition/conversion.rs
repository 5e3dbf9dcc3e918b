//! `spec.conversion`: how objects get from one version to another.

use carrick_go::names;
use serde_json::{Value, json};

use super::faults::Faults;
use super::url;
use super::value::{is_true, text};

const PATH: &str = "spec.conversion";
const CLIENT: &str = "spec.conversion.webhookClientConfig";

/// What is wrong with a conversion. `bundle_counts` says whether certificates must be readable.
pub(super) fn check(conversion: &Value, preserve: bool, bundle_counts: bool, faults: &mut Faults) {
    if !conversion.is_object() {
        return;
    }
    let strategy = text(conversion, "strategy");
    let place = format!("{PATH}.strategy");
    if strategy != "None" && preserve {
        faults.invalid(&place, &strategy.into(), "must be None if spec.preserveUnknownFields is true");
    }
    match strategy {
        "" => faults.required(&place, ""),
        "None" | "Webhook" => {}
        _ => faults.unsupported(&place, &strategy.into(), &["None", "Webhook"]),
    }
    let webhook = &conversion["webhook"];
    let (client, versions) = (&webhook["clientConfig"], texts(&webhook["conversionReviewVersions"]));
    let listed = format!("{PATH}.conversionReviewVersions");
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_object() {
            faults.forbidden(CLIENT, why);
        }
        if !versions.is_empty() {
            faults.forbidden(&listed, why);
        }
        return;
    }
    if client.is_object() {
        check_client(client, bundle_counts, faults);
    } else {
        faults.required(CLIENT, "required when strategy is set to Webhook");
    }
    if versions.is_empty() {
        faults.required(&listed, "");
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let place = format!("{listed}[{index}]");
        if versions[..index].contains(version) {
            faults.invalid(&place, &(*version).into(), "duplicate version");
            continue;
        }
        for why in names::V1_34.dns1035_label(version) {
            faults.invalid(&place, &(*version).into(), &why);
        }
    }
    if !versions.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        faults.invalid(&listed, &json!(versions), "must include at least one of v1, v1beta1");
    }
}

/// Whether the certificates of a conversion can be read, if there are any.
pub(super) fn has_bad_bundle(conversion: &Value) -> bool {
    let bundle = text(&conversion["webhook"]["clientConfig"], "caBundle");
    !bundle.is_empty() && !is_pem(bundle)
}

fn is_pem(bundle: &str) -> bool {
    let bytes = data_encoding::BASE64.decode(bundle.as_bytes()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
}

fn check_client(client: &Value, bundle_counts: bool, faults: &mut Faults) {
    match (client["url"].as_str(), client["service"].is_object()) {
        (Some(_), true) | (None, false) => faults.required(CLIENT, "exactly one of url or service is required"),
        (Some(address), false) => url::check(address, &format!("{CLIENT}.url"), faults),
        (None, true) => check_service(&client["service"], &format!("{CLIENT}.service"), faults),
    }
    let bundle = text(client, "caBundle");
    if bundle_counts && !bundle.is_empty() && !is_pem(bundle) {
        let why = "unable to load root certificates: unable to parse bytes as PEM block";
        faults.invalid(&format!("{CLIENT}.caBundle"), &bundle.into(), why);
    }
}

/// What is wrong with the reference of a webhook to a service.
pub(crate) fn check_service(service: &Value, at: &str, faults: &mut Faults) {
    // Kubernetes swaps the two names in this check.
    for (field, key) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, key).is_empty() {
            faults.required(&format!("{at}.{field}"), "");
        }
    }
    let port = service["port"].as_i64().unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        faults.invalid(&format!("{at}.port"), &port.into(), why);
    }
    let path = text(service, "path");
    let place = format!("{at}.path");
    let mut fault = |why: &str| faults.invalid(&place, &path.into(), why);
    match path {
        "" | "/" => return,
        "//" => return fault("segment[0] may not be empty"),
        path if !path.starts_with('/') => fault("must start with a '/'"),
        _ => {}
    }
    let steps: String = path.chars().skip(1).collect();
    for (index, step) in steps.strip_suffix('/').unwrap_or(&steps).split('/').enumerate() {
        if step.is_empty() {
            fault(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in names::V1_34.dns1123_subdomain(step) {
            fault(&format!("segment[{index}]: {why}"));
        }
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether a CRD is established, after which its certificates must be good.
pub(super) fn is_established(crd: &Value) -> bool {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Established" && is_true(&one["status"]))
}
