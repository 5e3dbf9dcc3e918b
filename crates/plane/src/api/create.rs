//! Create.

use serde_json::Value;

use super::admit::Admitted;
use super::base::Api;
use super::change::ChangeSource;
use super::decode::decode;
use super::object::{drop_empty_metadata, remove_meta, strip_cluster, whole_numbers};
use super::scope::{Scope, store_error};
use super::write::{WriteOptions, Written};
use super::{managed, meta, rules, typed};
use crate::auth::escalation::Grant;
use crate::caller::Caller;
use crate::config::Mode;
use crate::extension::Review;
use crate::request::Operation;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use crate::store::{Expect, Key, Kind, StoreError, revision_of};
use crate::time::now;

const GENERATE_ATTEMPTS: usize = 8;

impl Api {
    /// Stores a new object.
    pub fn create(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.create_as(caller, scope, object, options, ChangeSource::Put)
    }

    /// Stores a new object of server-side apply; its `managedFields` is final already.
    pub(super) fn create_applied(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.create_as(caller, scope, object, options, ChangeSource::Apply)
    }

    fn create_as(
        &self,
        caller: &Caller,
        scope: &Scope,
        object: Value,
        options: &WriteOptions,
        source: ChangeSource<'_>,
    ) -> Result<Written, Status> {
        let generated = object["metadata"]["name"].as_str().is_none_or(str::is_empty)
            && object["metadata"]["generateName"].as_str().is_some_and(|prefix| !prefix.is_empty());
        for _ in 1..if generated { GENERATE_ATTEMPTS } else { 1 } {
            match self.create_once(caller, scope, object.clone(), options, source) {
                Err(status) if status.reason == "AlreadyExists" => {}
                other => return other,
            }
        }
        self.create_once(caller, scope, object, options, source)
    }

    fn create_once(
        &self,
        caller: &Caller,
        scope: &Scope,
        mut object: Value,
        options: &WriteOptions,
        source: ChangeSource<'_>,
    ) -> Result<Written, Status> {
        if scope.resource.terminating {
            let message = "create not allowed while custom resource definition is terminating";
            return Err(match self.mode {
                Mode::Kube => Status::new(405, "MethodNotAllowed", message),
                Mode::Kcp => {
                    Status::forbidden(&scope.resource.group, &scope.resource.plural, meta::name_of(&object), message)
                }
            });
        }
        let mut warnings = decode(scope, &mut object, options, source)?;
        warnings.extend(meta::dedup_owners(&mut object, source == ChangeSource::Apply));
        warnings.extend(meta::finalizer_warnings(&scope.resource, &object, None, self.release.label_words()));
        let created = self.create_decoded(caller, scope, object, options, source, &mut warnings);
        let object = created.map_err(|status| status.warned(&warnings))?;
        warnings.extend(rules::warnings(&scope.resource, &object, None));
        Ok(Written { code: 201, object, warnings })
    }

    fn create_decoded(
        &self,
        caller: &Caller,
        scope: &Scope,
        mut object: Value,
        options: &WriteOptions,
        source: ChangeSource<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Value, Status> {
        let resource = &scope.resource;
        let cluster = scope.cluster()?.clone();
        // A text that is no revision is ignored.
        let pinned = revision_of(&object) != 0;
        let version = scope.version()?;
        // An object that does not fit its kind has no field owners, even if only its status, which is dropped, does not fit.
        let fits = !resource.is_custom() || typed::faults(scope, &object)?.is_empty();
        strip_cluster(&mut object);
        drop_empty_metadata(&mut object);
        let status = match (version.status, object.as_object_mut()) {
            (true, Some(map)) => map.remove("status"),
            _ => None,
        };
        rules::empty_status(resource, &mut object);
        if let Some(schema) = &version.schema {
            schema.apply_defaults(&mut object);
        }
        rules::complete(resource, &mut object, None);
        review_view(caller, scope, "", None, &mut object)?;
        let owned = match source {
            ChangeSource::Apply => managed::entries(&object),
            _ if fits => managed::written(scope, None, &rules::settled(resource, &object), options, ""),
            _ => Vec::new(),
        };
        reset_metadata(&mut object, rules::has_generation(resource));
        let sent_name = meta::name_of(&object).to_owned();
        let name = name_new_object(scope, &mut object);
        rules::prepare(self, scope, &cluster, &mut object, None);
        self.review(caller, scope, Operation::Create, "", None, &mut object)?;
        self.check_namespace(caller, scope, &cluster, &name)?;
        let admitted = Admitted {
            caller,
            scope,
            operation: Operation::Create,
            subresource: "",
            name: &sent_name,
            old: &Value::Null,
            options: &options.sent,
            dry_run: options.dry_run,
        };
        self.mutate_new(&admitted, &mut object, status, &owned, warnings)?;
        let name = meta::name_of(&object).to_owned();
        let prefix = object["metadata"]["generateName"].as_str().filter(|prefix| !prefix.is_empty());
        let mut causes: Vec<Cause> = match (rules::name_rule(resource), name.as_str()) {
            (_, "") => vec![Cause::required("metadata.name", "name or generateName is required")],
            (None, _) => Vec::new(),
            (Some(rule), name) => {
                let generated = prefix.and_then(|prefix| meta::check_generate_name(rule, prefix));
                generated.into_iter().chain(meta::check_name(rule, name)).collect()
            }
        };
        causes.extend(self.metadata_faults(resource, &object));
        causes.extend(rules::validate(self, scope, &cluster, &object, None));
        if let Some(schema) = version.schema.as_ref().filter(|_| !rules::checks_all(resource)) {
            causes.extend(self.checked(schema.validate(&object, None)));
        }
        if !causes.is_empty() {
            return Err(Status::invalid(&resource.group, &resource.kind, &name, &causes));
        }
        rules::settle(resource, &mut object);
        managed::set_entries(&mut object, owned);
        self.validate(&admitted, &object, warnings)?;
        self.configurations.expect(resource, &object);
        whole_numbers(&mut object);
        self.store_form(resource, &cluster, &scope.version, &mut object)?;
        let key = scope.key(&name)?;
        if options.dry_run {
            if self.store.has(&key) {
                return Err(self.exists(scope, &key));
            }
            rules::unestablished(resource, &mut object);
            return self.undecorated(scope, &cluster, object.into());
        }
        if pinned {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Status::new(500, "", message));
        }
        let naming = rules::name_kind(self, resource, &cluster, &mut object, None);
        let stored = self.store.commit(&key, Expect::Absent, Some(object));
        drop(naming);
        let stored = stored.map_err(|error| match error {
            StoreError::Exists => self.exists(scope, &key),
            other => store_error(scope, &name, &other),
        })?;
        self.present(scope, &key, stored.object)
    }

    /// The error for a name that is taken.
    fn exists(&self, scope: &Scope, key: &Key) -> Status {
        let mut status = Status::already_exists(&scope.resource.group, &scope.resource.plural, &key.name);
        let ends = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
        if self.store.get(key).is_some_and(|stored| ends(&stored.object)) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        status
    }

    /// What is wrong with the metadata of an object, in the wording of the server that is emulated.
    pub(super) fn metadata_faults(&self, resource: &Resource, object: &Value) -> Vec<Cause> {
        meta::check_metadata(object, self.release.label_words(), rules::has_strict_finalizers(resource))
    }

    /// Extension and view admission; the plane's own writes are not reviewed.
    pub(super) fn review(
        &self,
        caller: &Caller,
        scope: &Scope,
        operation: Operation,
        subresource: &str,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), Status> {
        if caller.system {
            return Ok(());
        }
        let cluster = scope.cluster()?.clone();
        let resource = scope.resource.clone();
        let mut review = Review { operation, subresource, caller, resource: &resource, cluster: &cluster, old, object };
        // Other writes were reviewed there before anybody owned a field.
        if let Some(admit) = scope.admit.as_ref().filter(|_| operation == Operation::Delete) {
            admit(&mut review)?;
        }
        if let Some(extension) = &self.extension {
            extension.admit(&mut review)?;
        }
        // A write through a virtual workspace has only the rights that the consumer has granted.
        if scope.admit.is_none() && operation != Operation::Delete && rules::is_rbac(&resource) {
            let grant = Grant { plural: &resource.plural, namespace: &scope.namespace, object, old };
            self.check_grant(caller, &cluster, &grant)?;
        }
        strip_cluster(object);
        Ok(())
    }

    fn check_namespace(&self, caller: &Caller, scope: &Scope, cluster: &str, name: &str) -> Result<(), Status> {
        let resource = &scope.resource;
        if !resource.namespaced {
            return Ok(());
        }
        let key = Key::new(&Kind::new("", "namespaces"), cluster, "", &scope.namespace);
        let Some(namespace) = self.store.get(&key) else {
            return Err(Status::not_found("", "namespaces", &scope.namespace));
        };
        if namespace.object["metadata"]["deletionTimestamp"].is_string() && !caller.system {
            return Err(Status::namespace_terminating(&resource.group, &resource.plural, name, &scope.namespace));
        }
        Ok(())
    }
}

/// Admission of a virtual workspace, which sees a write before the server that stores it does.
pub(super) fn review_view(
    caller: &Caller,
    scope: &Scope,
    subresource: &str,
    old: Option<&Value>,
    object: &mut Value,
) -> Result<(), Status> {
    let Some(admit) = scope.admit.as_ref().filter(|_| !caller.system) else { return Ok(()) };
    let cluster = scope.cluster()?.clone();
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let resource = &scope.resource;
    admit(&mut Review { operation, subresource, caller, resource, cluster: &cluster, old, object })
}

/// Sets the fields that the server decides, and drops those that a client must not set.
fn reset_metadata(object: &mut Value, counted: bool) {
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
        remove_meta(object, key);
    }
    if counted || object["metadata"]["generation"] == 0 {
        remove_meta(object, "generation");
    }
    object["metadata"]["uid"] = meta::uid().into();
    object["metadata"]["creationTimestamp"] = now().into();
}

fn name_new_object(scope: &Scope, object: &mut Value) -> String {
    let resource = &scope.resource;
    let given = meta::name_of(object).to_owned();
    let name = if given.is_empty() {
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default();
        if prefix.is_empty() { String::new() } else { meta::generated_name(prefix) }
    } else {
        given
    };
    object["metadata"]["name"] = name.clone().into();
    if rules::has_generation(resource) {
        object["metadata"]["generation"] = 1.into();
    }
    drop_empty_metadata(object);
    name
}
