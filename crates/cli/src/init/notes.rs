//! What a provider should know before the files are applied. Pure.

use super::offer::Offer;

/// Things that work, but perhaps not as wanted.
pub fn notes(offer: &Offer) -> Vec<String> {
    let Offer { group, kcp_group, kind, deprecated, without_status, .. } = offer;
    let mut notes = Vec::new();
    if !without_status.is_empty() {
        notes.push(format!(
            "{kind} {} has no status subresource: consumers will not see what your operator reports. Add \
             subresources: {{status: {{}}}} to the CRD.",
            without_status.join(", ")
        ));
    }
    match deprecated.as_slice() {
        [] => {}
        old if offer.versions.iter().any(|version| old.contains(version)) => {
            notes.push(format!("all served versions of {kind} are deprecated: {}.", old.join(", ")));
        }
        old => notes.push(format!(
            "deprecated versions of {kind} are not offered: {}. To offer them, add them to spec.resource.versions of \
             the PublishedResource.",
            old.join(", ")
        )),
    }
    if group != kcp_group && offer.choices.group.is_none() && offer.implemented.is_none() {
        let own = if group.is_empty() { "the core group".to_owned() } else { format!("group {group}") };
        notes.push(format!(
            "kcp does not take kinds of {own}, which belongs to Kubernetes. The files offer {kind} in {kcp_group}: that \
             name is a placeholder, choose one of yours with --group."
        ));
    }
    if let Some(implemented) = &offer.implemented {
        notes.push(format!(
            "the steps that make a {kind} of an order of {} are a first draft, by fields of the same name: complete \
             spec.implements.spec of the PublishedResource. carrick toolkit crd tries them on generated orders.",
            implemented.api.resource
        ));
        notes.extend(implemented.doubts.iter().map(|doubt| format!("the draft fails: {doubt}")));
    }
    let seen = offer.seen();
    notes.extend(seen.order().problem.map(|problem| {
        let kind = &seen.kind;
        format!(
            "no order was found that the schema of {kind} allows; change consumer-workspace/2-order.yaml: {problem}."
        )
    }));
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::offer::Choices;
    use super::super::offer::tests::bucket;
    use super::*;

    #[test]
    fn a_good_crd_needs_no_note() {
        assert_eq!(notes(&Offer::new(&bucket(), Choices::default()).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn what_may_surprise_is_told() {
        let mut crd = bucket();
        crd["spec"]["group"] = json!("");
        crd["spec"]["versions"][1]["subresources"] = json!({});
        let mut old = crd["spec"]["versions"][1].clone();
        old["name"] = json!("v1beta1");
        old["deprecated"] = json!(true);
        old["storage"] = json!(false);
        crd["spec"]["versions"].as_array_mut().unwrap().push(old);
        let rules = json!([{ "rule": "false", "message": "never" }]);
        crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules;
        let notes = notes(&Offer::new(&crd, Choices::default()).unwrap()).join("\n");
        for wanted in [
            "Bucket v1 has no status subresource",
            "not offered: v1beta1.",
            "choose one of yours with --group",
            "never.",
        ] {
            assert!(notes.contains(wanted), "{wanted}: {notes}");
        }
    }
}
