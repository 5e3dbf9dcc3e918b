//! Conversion: versions in kcp that the CRD does not have, and rules that lead from one version to another.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::schema::{Described, described};
use super::{CelMutation, DeleteMutation, RegexMutation, TemplateMutation};

described! {
    /// Versions in kcp, and rules that lead from one to another.
    pub struct Conversion {
        /// Versions as they look in kcp, written as in a CRD. One that the CRD does not have is added; of one that it has, under the name
        /// that it has in kcp, the given fields replace those of the CRD.
        pub versions: Vec<PublishedVersion> = json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] }),
        /// How objects get from one version to another. From every published version, rules must lead to every other one, directly or by
        /// way of a third.
        pub rules: Vec<ConversionRule>,
        /// Where kcp has objects converted. Absent means that kcp changes nothing but the apiVersion, and the rules apply only between kcp
        /// and the service cluster.
        pub webhook: Option<ConversionWebhook>,
    }

    /// How objects get from one version to another.
    pub struct ConversionRule {
        /// The version they are in, by its name in kcp.
        @required
        pub from: String = json!({ "minLength": 1 }),
        /// The version they are to be in, by its name in kcp.
        @required
        pub to: String = json!({ "minLength": 1 }),
        /// What changes, in order. All other fields stay as they are.
        pub steps: Vec<ConversionStep>,
        /// Paths of fields that the other version has no place for. Their values are kept in an annotation, and are there again after the way
        /// back.
        pub preserve: Vec<String>,
    }

    /// One change. Exactly one of move, delete, regex, template and cel must be set.
    pub struct ConversionStep {
        /// CEL expression over self and other; unless it is true, the step is left out.
        pub when: String,
        /// Moves a value to another path. What is not there is not moved.
        pub r#move: Option<MoveStep>,
        /// Removes the value at a path.
        pub delete: Option<DeleteMutation>,
        /// Replaces text in the value at a path.
        pub regex: Option<RegexMutation>,
        /// Sets the result of a Go template.
        pub template: Option<TemplateMutation>,
        /// Sets the result of a CEL expression, in which self is the object so far and other the object before this rule.
        pub cel: Option<CelMutation>,
    }

    /// Moves a value to another path.
    pub struct MoveStep {
        /// Path of the value.
        @required
        pub from: String,
        /// Path it gets.
        @required
        pub to: String,
    }

    /// Where kcp has objects converted.
    pub struct ConversionWebhook {
        /// Address that kcp can reach, for example that of an agent with --conversion-address.
        @required
        pub url: String = json!({ "pattern": "^https://" }),
        /// PEM certificates that kcp trusts there, in base64. Absent means those of kcp's machine.
        pub ca_bundle: String,
    }
}

/// One version as it looks in kcp, kept as it is: the entry of a CRD's `spec.versions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PublishedVersion(pub Value);

impl PublishedVersion {
    /// Its name in kcp.
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }
}

impl Described for PublishedVersion {
    fn schema() -> Value {
        let any = |description: &str| json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": description });
        json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 1, "description": "Name, such as v1." },
                "served": { "type": "boolean", "description": "Whether consumers can use it. Absent means that they can, or what the CRD says." },
                "storage": { "type": "boolean", "description": "Whether kcp stores objects in it. At most one can be true." },
                "deprecated": { "type": "boolean", "description": "Whether whoever uses it is warned." },
                "deprecationWarning": { "type": "string", "description": "Text of that warning." },
                "schema": any("The schema, as openAPIV3Schema."),
                "subresources": any("status and scale."),
                "additionalPrinterColumns": {
                    "type": "array",
                    "description": "Columns of tables.",
                    "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            },
        })
    }
}
