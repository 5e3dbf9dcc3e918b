//! Delete and deletecollection.

use serde_json::{Value, json};

use super::admit::Admitted;
use super::base::Api;
use super::object::strip_cluster;
use super::read::{ListOptions, Listed};
use super::scope::{Scope, store_error};
use super::update::is_finished;
use super::write::Written;
use super::{meta, rules};
use crate::caller::Caller;
use crate::request::Operation;
use crate::status::{Cause, Status};
use crate::store::{Expect, Key, StoreError, Stored};
use crate::time::now;

const ATTEMPTS: usize = 5;

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// Options of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this revision.
    pub revision: Option<String>,
    /// What happens to dependents; by default they are deleted afterwards, unless finalizers say otherwise.
    pub propagation: Option<Propagation>,
    /// The options as they were sent, for webhooks and policies.
    pub sent: Value,
    /// The object is one of a whole collection that is deleted: webhooks and policies do not receive its name.
    pub collection: bool,
}

impl DeleteOptions {
    /// Reads the body of a DELETE request.
    pub fn from_value(value: &Value) -> Result<Self, Status> {
        let invalid = |cause: Cause| Status::invalid("meta.k8s.io", "DeleteOptions", "", &[cause]);
        if !value["orphanDependents"].is_null() && !value["propagationPolicy"].is_null() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            return Err(invalid(Cause::invalid("propagationPolicy", &value["propagationPolicy"], detail)));
        }
        let propagation = match (value["propagationPolicy"].as_str(), value["orphanDependents"].as_bool()) {
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
            (Some(other), _) => {
                let known = [json!("Foreground"), json!("Background"), json!("Orphan"), json!("nil")];
                return Err(invalid(Cause::unsupported("propagationPolicy", &other.into(), &known)));
            }
        };
        let dry_run = match value["dryRun"].as_array().map(Vec::as_slice) {
            None | Some([]) => false,
            Some([only]) if only == "All" => true,
            Some(_) => {
                return Err(invalid(Cause::unsupported("dryRun", &value["dryRun"], &[json!("All")])));
            }
        };
        let text = |key: &str| value["preconditions"][key].as_str().map(str::to_owned);
        Ok(Self {
            dry_run,
            uid: text("uid"),
            revision: text("resourceVersion"),
            propagation,
            sent: value.clone(),
            collection: false,
        })
    }
}

impl Api {
    /// Deletes one object, or marks it for deletion if it has finalizers.
    pub fn delete(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Written, Status> {
        let mut attempt = 1;
        loop {
            let (key, stored) = self.to_delete(scope, name)?;
            match self.delete_once(caller, scope, &key, &stored, options) {
                Err(StoreError::Stale(_)) if options.revision.is_none() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(store_error(scope, name, &error)),
                Ok(result) => return result,
            }
        }
    }

    /// Virtual workspaces find whatever there is, and leave it to their admission what may be deleted.
    fn to_delete(&self, scope: &Scope, name: &str) -> Result<(Key, Stored), Status> {
        if !scope.is_forwarded() {
            return self.fetch(scope, name);
        }
        let key = scope.key(name)?;
        self.store.get(&key).map(|stored| (key, stored)).ok_or_else(|| scope.not_found(name))
    }

    fn delete_once(
        &self,
        caller: &Caller,
        scope: &Scope,
        key: &Key,
        stored: &Stored,
        options: &DeleteOptions,
    ) -> Result<Result<Written, Status>, StoreError> {
        let resource = &scope.resource;
        let mut current = match self.present(scope, key, stored.object.clone()) {
            Ok(current) => current,
            Err(status) => return Ok(Err(status)),
        };
        let mut warnings = Vec::new();
        let refused = check_preconditions(scope, &key.name, stored, options)
            .and_then(|()| rules::check_delete(resource, &key.name, caller))
            .and_then(|()| {
                let mut object = current.clone();
                self.review(caller, scope, Operation::Delete, "", Some(&current), &mut object)
            });
        strip_cluster(&mut current);
        let admitted = Admitted {
            caller,
            scope,
            operation: Operation::Delete,
            subresource: "",
            name: if options.collection { "" } else { &key.name },
            old: &current,
            options: &options.sent,
            dry_run: options.dry_run,
        };
        if let Err(status) = refused.and_then(|()| self.admit_deletion(&admitted, &mut warnings)) {
            return Ok(Err(status.warned(&warnings)));
        }
        let mut marked = Value::clone(&stored.object);
        mark(scope, options.propagation, &mut marked);
        let expect = Expect::Revision(stored.revision);
        let written = |object: Value| Ok(Ok(Written { code: 200, object, warnings: warnings.clone() }));
        let shown = |object: std::sync::Arc<Value>| match self.present(scope, key, object) {
            Ok(object) => written(object),
            Err(status) => Ok(Err(status)),
        };
        if is_finished(resource, &marked) {
            if !options.dry_run {
                self.store.commit(key, expect, None)?;
            }
            return written(json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details(scope, &key.name, &stored.object),
            }));
        }
        if options.dry_run {
            return shown(marked.into());
        }
        let stored = self.store.commit(key, expect, Some(marked))?;
        shown(stored.object)
    }

    /// Deletes the selected objects, one by one; the response is the list as it was before.
    pub fn delete_collection(
        &self,
        caller: &Caller,
        scope: &Scope,
        selection: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Listed, Status> {
        scope.cluster()?;
        let listed = self.list(scope, &ListOptions { revision: None, limit: 0, ..selection.clone() })?;
        let options = &DeleteOptions { collection: true, ..options.clone() };
        for (key, _) in &listed.objects {
            let one = scope.clone().in_namespace(&key.namespace);
            match self.delete(caller, &one, &key.name, options) {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(Listed { revision: self.store.revision(), ..listed })
    }
}

fn details(scope: &Scope, name: &str, object: &Value) -> Value {
    let resource = &scope.resource;
    let mut details = json!({"name": name, "kind": &*resource.plural, "uid": object["metadata"]["uid"]});
    if !resource.group.is_empty() {
        details["group"] = (*resource.group).into();
    }
    details
}

fn check_preconditions(scope: &Scope, name: &str, stored: &Stored, options: &DeleteOptions) -> Result<(), Status> {
    let resource = &scope.resource;
    let uid = stored.object["metadata"]["uid"].as_str().unwrap_or_default();
    if let Some(wanted) = options.uid.as_ref().filter(|wanted| *wanted != uid) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and \
             then recreated"
        );
        return Err(Status::conflict(&resource.group, &resource.kind, name, &why));
    }
    let revision = stored.revision.to_string();
    if let Some(wanted) = options.revision.as_ref().filter(|wanted| **wanted != revision) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). The \
             object might have been modified"
        );
        return Err(Status::conflict(&resource.group, &resource.kind, name, &why));
    }
    Ok(())
}

/// Marks an object for deletion: adds the finalizer of the propagation policy and the deletion timestamp.
fn mark(scope: &Scope, propagation: Option<Propagation>, object: &mut Value) {
    let mut finalizers: Vec<String> = meta::texts(object, "finalizers").into_iter().map(str::to_owned).collect();
    let before = finalizers.clone();
    if let Some(propagation) = propagation {
        let wanted = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some("foregroundDeletion"),
            Propagation::Orphan => Some("orphan"),
        };
        finalizers.retain(|name| !matches!(name.as_str(), "orphan" | "foregroundDeletion") || wanted == Some(name));
        finalizers.extend(wanted.filter(|name| !finalizers.iter().any(|found| found == name)).map(str::to_owned));
    }
    let deleting = object["metadata"]["deletionTimestamp"].is_string();
    let own = rules::delete_finalizer(&scope.resource)
        .filter(|name| !deleting && !finalizers.iter().any(|found| found == name));
    finalizers.extend(own.map(str::to_owned));
    if finalizers != before {
        object["metadata"]["finalizers"] = finalizers.into();
    }
    if deleting {
        return;
    }
    object["metadata"]["deletionTimestamp"] = now().into();
    // Namespaces are not deleted at once.
    if !rules::is_namespace(&scope.resource) {
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    }
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = (generation + 1).into();
    }
    if rules::is_namespace(&scope.resource) {
        object["status"]["phase"] = "Terminating".into();
    }
}
