//! What all kinds share: metadata and label selectors, as far as this crate needs them.

use std::collections::BTreeMap;

use crate::object::object;
use crate::{CLUSTER_ANNOTATION, PATH_ANNOTATION};

object! {
    /// Metadata of an object. Times are kept as the server wrote them.
    ObjectMeta {
        /// Name.
        name: String => "name",
        /// Prefix from which the server makes a name.
        generate_name: String => "generateName",
        /// Namespace; kcp's own kinds have none.
        namespace: String => "namespace",
        /// What tells this object from others that had its name before.
        uid: String => "uid",
        /// Version for optimistic locking.
        resource_version: String => "resourceVersion",
        /// Counts changes of the spec.
        generation: Option<i64> => "generation",
        /// When it was created.
        creation_timestamp: String => "creationTimestamp",
        /// When its deletion was asked for.
        deletion_timestamp: String => "deletionTimestamp",
        /// Labels.
        labels: BTreeMap<String, String> => "labels",
        /// Annotations.
        annotations: BTreeMap<String, String> => "annotations",
        /// Who holds it until they are done.
        finalizers: Vec<String> => "finalizers",
        /// The objects it belongs to.
        owner_references: Vec<OwnerReference> => "ownerReferences",
    }
}

impl ObjectMeta {
    /// Metadata with nothing but a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.labels.insert(key.into(), value.into());
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.annotations.insert(key.into(), value.into());
    }

    /// Name of the logical cluster that the object lives in; kcp adds it to whatever it returns.
    pub fn cluster(&self) -> Option<&str> {
        self.annotation(CLUSTER_ANNOTATION)
    }

    /// Path of the workspace, on kinds that carry it.
    pub fn path(&self) -> Option<&str> {
        self.annotation(PATH_ANNOTATION)
    }

    /// Whether deletion has begun.
    pub fn is_deleting(&self) -> bool {
        !self.deletion_timestamp.is_empty()
    }

    /// Whether this finalizer holds the object.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|held| held == finalizer)
    }

    /// Adds a finalizer unless it is there.
    pub fn add_finalizer(&mut self, finalizer: &str) {
        if !self.has_finalizer(finalizer) {
            self.finalizers.push(finalizer.to_owned());
        }
    }

    /// Removes a finalizer.
    pub fn remove_finalizer(&mut self, finalizer: &str) {
        self.finalizers.retain(|held| held != finalizer);
    }
}

object! {
    /// An object that another one belongs to.
    OwnerReference {
        /// Group and version of the owner.
        api_version: String => "apiVersion",
        /// Kind of the owner.
        kind: String => "kind",
        /// Name of the owner.
        name: String => "name",
        /// Uid of the owner.
        uid: String => "uid",
        /// Whether this owner manages the object.
        controller: bool => "controller",
        /// Whether the owner's deletion waits for the object's.
        block_owner_deletion: bool => "blockOwnerDeletion",
    }
}

impl OwnerReference {
    /// A reference to an object of a kind of kcp.
    pub fn to<K: crate::kinds::KcpObject>(owner: &K) -> Self {
        let metadata = owner.metadata();
        Self {
            api_version: K::KIND.api_version(),
            kind: K::KIND.kind.to_owned(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            ..Self::default()
        }
    }
}

object! {
    /// Selects objects by their labels. An empty one selects everything.
    LabelSelector {
        /// Labels that must be there with these values.
        match_labels: BTreeMap<String, String> => "matchLabels",
        /// Conditions on labels, all of which must hold.
        match_expressions: Vec<LabelSelectorRequirement> => "matchExpressions",
    }
}

object! {
    /// A condition on one label.
    LabelSelectorRequirement {
        /// The label.
        key: String => "key",
        /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
        operator: String => "operator",
        /// What `In` and `NotIn` compare with.
        values: Vec<String> => "values",
    }
}
