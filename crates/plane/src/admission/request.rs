//! One write as admission sees it, and the documents that describe it.

use serde_json::{Map, Value, json};

use carrick_kcp::CLUSTER_ANNOTATION;

use crate::caller::Caller;
use crate::resource::Resource;
use crate::status::Status;

/// One write that asks for admission. The objects are in the version of the request; null where there is none.
pub(crate) struct AdmissionRequest<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'static str,
    /// The kind.
    pub(crate) resource: &'a Resource,
    /// The version of the request.
    pub(crate) version: &'a str,
    /// `status` or another subresource, empty for the object itself.
    pub(crate) subresource: &'a str,
    /// The logical cluster; empty outside of kcp.
    pub(crate) cluster: &'a str,
    /// The namespace; of a Namespace its own name.
    pub(crate) namespace: &'a str,
    /// The name; empty while the server has not generated it.
    pub(crate) name: &'a str,
    /// Who asks.
    pub(crate) caller: &'a Caller,
    /// The options of the request, such as `CreateOptions`.
    pub(crate) options: Value,
    /// Nothing will be stored.
    pub(crate) dry_run: bool,
    /// The object before the write.
    pub(crate) old: &'a Value,
}

impl AdmissionRequest<'_> {
    /// Whether the request is about a Namespace.
    pub(super) fn is_namespace(&self) -> bool {
        self.resource.group.is_empty() && *self.resource.plural == *"namespaces"
    }

    /// The `request` of an `AdmissionReview` in one version of the kind, without the objects.
    pub(super) fn describe(&self, version: &str) -> Value {
        let Self { resource, caller, .. } = self;
        let kind = |version: &str| match self.subresource {
            "scale" => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            _ => json!({"group": &*resource.group, "version": version, "kind": &*resource.kind}),
        };
        let served =
            |version: &str| json!({"group": &*resource.group, "version": version, "resource": &*resource.plural});
        let mut user = Map::new();
        user.insert("username".into(), caller.user.as_str().into());
        if !caller.uid.is_empty() {
            user.insert("uid".into(), caller.uid.as_str().into());
        }
        if !caller.groups.is_empty() {
            user.insert("groups".into(), json!(caller.groups));
        }
        if !caller.extra.is_empty() {
            user.insert("extra".into(), json!(caller.extra));
        }
        let mut request = json!({
            "kind": kind(version), "resource": served(version),
            "requestKind": kind(self.version), "requestResource": served(self.version),
            "operation": self.operation, "userInfo": user, "dryRun": self.dry_run, "options": self.options,
        });
        let optional = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (key, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
            request[key] = value.into();
        }
        request
    }

    /// An object as webhooks see it: in kcp it says where it lives.
    pub(super) fn located(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let (false, Some(Value::Object(metadata))) = (self.cluster.is_empty(), object.get_mut("metadata")) {
            match metadata.get_mut("annotations") {
                Some(Value::Object(annotations)) => {
                    annotations.insert(CLUSTER_ANNOTATION.to_owned(), self.cluster.into());
                }
                _ => {
                    metadata.insert("annotations".to_owned(), json!({CLUSTER_ANNOTATION: self.cluster}));
                }
            }
        }
        object
    }

    /// A refusal by admission, about the object of this request.
    pub(super) fn refusal(&self, object: &Value, why: &str) -> Status {
        let text = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
        let name = match self.name {
            "" => text("name").or_else(|| text("generateName")).unwrap_or("Unknown"),
            name => name,
        };
        Status::forbidden(&self.resource.group, &self.resource.plural, name, why)
    }
}

/// An error inside of the server, as Kubernetes reports it.
pub(super) fn internal(why: &str) -> Status {
    let mut status = Status::internal(format!("Internal error occurred: {why}"));
    status.details = json!({"causes": [{"message": why}]});
    status
}
