//! Changes to an existing object: what update, patch and apply share.

use std::sync::Arc;

use serde_json::Value;

use super::admit::Admitted;
use super::base::Api;
use super::change::{Change, ChangeSource};
use super::create::review_view;
use super::decode::decode;
use super::object::{drop_empty_metadata, remove_meta, strip_cluster, whole_numbers};
use super::scope::{Scope, store_error};
use super::write::{WriteOptions, Written};
use super::{etcd, managed, meta, rules};
use crate::caller::Caller;
use crate::config::Mode;
use crate::request::Operation;
use crate::resource::Resource;
use crate::status::{Cause, Status};
use crate::store::{Expect, Key, StoreError, Stored, revision_of};

/// How often a lost race is retried, unless the client requires a certain revision.
const ATTEMPTS: usize = 5;

impl Api {
    /// Replaces an object.
    pub fn update(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        self.put(caller, scope, name, "", object, options)
    }

    /// Replaces an object through a subresource: `status`, `finalize` or none.
    pub fn put(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        subresource: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let key = scope.key(name)?;
        if subresource.is_empty() && rules::created_by_put(&scope.resource) && !self.store.has(&key) {
            check_name(caller, name, &object)?;
            let mut object = object;
            object["metadata"]["name"] = name.into();
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            if self.mode == Mode::Kcp && !uid.is_empty() {
                return Err(etcd::other_uid(self.mode, &scope.resource, &key, uid, ""));
            }
            return self.create(caller, scope, object, options);
        }
        // The body is checked first, whether the object exists or not.
        let mut object = object;
        let mut warnings = decode(scope, &mut object, options, ChangeSource::Put)?;
        warnings.extend(meta::dedup_owners(&mut object, false));
        let change = Change { caller, scope, name, subresource, options, source: ChangeSource::Put };
        let mut written = self.put_decoded(&change, &object).map_err(|status| status.warned(&warnings))?;
        warnings.append(&mut written.warnings);
        Ok(Written { warnings, ..written })
    }

    fn put_decoded(&self, change: &Change<'_>, object: &Value) -> Result<Written, Status> {
        let Change { caller, scope, name, .. } = *change;
        let resource = &scope.resource;
        check_name(caller, name, object)?;
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if revision.is_empty() && resource.is_custom() && !caller.system {
            self.fetch(scope, name)?;
            let cause = Cause::invalid("metadata.resourceVersion", &0.into(), "must be specified for an update");
            return Err(Status::invalid(&resource.group, &resource.plural, name, &[cause]));
        }
        self.modify(change, |_| Ok(object.clone()))
    }

    /// Changes the number of replicas of an object; `make` gives the object with the new number.
    pub(crate) fn rescale(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        options: &WriteOptions,
        make: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        self.modify(&Change { caller, scope, name, subresource: "scale", options, source: ChangeSource::Patch }, make)
    }

    /// Computes a new state from the current one (in the scope's version) and stores it.
    pub(super) fn modify(
        &self,
        change: &Change<'_>,
        make: impl Fn(&Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        let Change { scope, name, source, .. } = *change;
        let mut attempt = 1;
        loop {
            let (key, stored) = self.fetch(scope, name)?;
            let current = self.present(scope, &key, stored.object.clone())?;
            let wanted = make(&current)?;
            let pinned = match wanted["metadata"]["resourceVersion"].as_str() {
                None | Some("") => false,
                // A patch starts from the current state, so its revision is no precondition.
                Some(text) => source == ChangeSource::Put || text != stored.revision.to_string(),
            };
            match self.replace(change, &key, &stored, current, wanted) {
                Err(Failure::Raced) if !pinned && attempt < ATTEMPTS => attempt += 1,
                Err(Failure::Raced) => {
                    return Err(Status::stale(&scope.resource.group, &scope.resource.plural, name));
                }
                Err(Failure::Refused(status)) => return Err(status),
                Ok(written) => return Ok(written),
            }
        }
    }

    fn replace(
        &self,
        change: &Change<'_>,
        key: &Key,
        stored: &Stored,
        current: Value,
        mut wanted: Value,
    ) -> Result<Written, Failure> {
        let Change { scope, options, source, .. } = *change;
        let mut warnings = match source {
            // The body was decoded before the object was looked up.
            ChangeSource::Put => Vec::new(),
            _ => decode(scope, &mut wanted, options, source)?,
        };
        warnings.extend(meta::dedup_owners(&mut wanted, true));
        warnings.extend(meta::finalizer_warnings(&scope.resource, &wanted, Some(&current), self.release.label_words()));
        let annotated = strip_cluster(&mut wanted);
        match self.replaced(change, key, stored, current, wanted, &mut warnings) {
            // An object that is not stored is returned as it was sent.
            Ok(object) if options.dry_run && !annotated => {
                Ok(Written { code: 200, object: self.undecorated(scope, &key.cluster, object)?, warnings })
            }
            Ok(object) => {
                warnings.extend(rules::warnings(&scope.resource, &object, Some(&stored.object)));
                Ok(Written { code: 200, object: self.present(scope, key, object)?, warnings })
            }
            Err(Failure::Refused(status)) => Err(status.warned(&warnings).into()),
            Err(raced) => Err(raced),
        }
    }

    /// The rest of a change, once its body has been decoded.
    fn replaced(
        &self,
        change: &Change<'_>,
        key: &Key,
        stored: &Stored,
        mut current: Value,
        mut wanted: Value,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<Value>, Failure> {
        let Change { caller, scope, name, subresource, options, source } = *change;
        let resource = &scope.resource;
        let version = scope.version()?;
        strip_cluster(&mut current);
        check_identity(self.mode, change, (key, stored), &current, &wanted)?;
        if let Some(schema) = &version.schema {
            schema.apply_defaults(&mut wanted);
        }
        drop_empty_metadata(&mut wanted);
        if subresource.is_empty() {
            rules::complete(resource, &mut wanted, Some(&current));
        }
        review_view(caller, scope, subresource, Some(&current), &mut wanted)?;
        let owned = match (source, subresource) {
            (ChangeSource::Apply, _) => managed::entries(&wanted),
            (_, "scale") => {
                let path = version.scale.as_ref().map_or("", |scale| &scale.spec);
                managed::scaled(scope, &current, &wanted, options, path)
            }
            _ => managed::written(scope, Some(&current), &rules::settled(resource, &wanted), options, subresource),
        };
        let admitted = Admitted {
            caller,
            scope,
            operation: Operation::Update,
            subresource,
            name,
            old: &current,
            options: &options.sent,
            dry_run: options.dry_run,
        };
        self.mutate(&admitted, &mut wanted, &owned, warnings)?;
        keep_server_fields(&current, &mut wanted);
        limit_to_subresource(resource, subresource, version.status, &current, &mut wanted);
        if subresource.is_empty() {
            rules::prepare(self, scope, &key.cluster, &mut wanted, Some(&current));
        }
        bump_generation(scope, version.status, &current, &mut wanted);
        self.review(caller, scope, Operation::Update, subresource, Some(&current), &mut wanted)?;
        // Kubernetes validates metadata more than once.
        let faults = self.metadata_faults(resource, &wanted);
        let mut causes: Vec<Cause> = (0..rules::looks(resource)).flat_map(|_| faults.clone()).collect();
        let twice_more = faults.into_iter().filter(|fault| !fault.field.starts_with("metadata.finalizers"));
        causes.extend(twice_more.flat_map(|fault| [fault.clone(), fault]));
        causes.extend(new_finalizers(&current, &wanted));
        if subresource.is_empty() || subresource == "scale" {
            causes.extend(rules::validate(self, scope, &key.cluster, &wanted, Some(&current)));
        }
        if let Some(schema) = version.schema.as_ref().filter(|_| !rules::checks_all(resource)) {
            causes.extend(self.checked(match subresource {
                "status" if resource.is_custom() => schema.validate_status(&wanted, &current),
                _ => schema.validate(&wanted, Some(&current)),
            }));
        }
        if subresource == "status" {
            causes.extend(rules::validate_status(scope, &wanted));
        }
        if !causes.is_empty() {
            return Err(Status::invalid(&resource.group, &resource.kind, name, &causes).into());
        }
        rules::settle(resource, &mut wanted);
        managed::set_entries(&mut wanted, owned);
        self.validate(&admitted, &wanted, warnings)?;
        self.configurations.expect(resource, &wanted);
        self.store_change(change, key, stored, wanted)
    }

    fn store_change(
        &self,
        change: &Change<'_>,
        key: &Key,
        stored: &Stored,
        mut wanted: Value,
    ) -> Result<Arc<Value>, Failure> {
        let resource = &change.scope.resource;
        self.store_form(resource, &key.cluster, &change.scope.version, &mut wanted)?;
        whole_numbers(&mut wanted);
        let gone = is_finished(resource, &wanted);
        if change.options.dry_run {
            return Ok(Arc::new(wanted));
        }
        let expect = Expect::Revision(stored.revision);
        let whole = change.subresource.is_empty() && !gone;
        let _naming =
            whole.then(|| rules::name_kind(self, resource, &key.cluster, &mut wanted, Some(&stored.object))).flatten();
        let result = if gone {
            // The response has the object as it was sent, with its old revision.
            wanted["metadata"]["resourceVersion"] = stored.revision.to_string().into();
            let shown = Arc::new(wanted.clone());
            self.store.commit(key, expect, None).map(|_| shown)
        } else {
            self.store.commit(key, expect, Some(wanted)).map(|stored| stored.object)
        };
        result.map_err(|error| match error {
            StoreError::Stale(_) => Failure::Raced,
            other => store_error(change.scope, change.name, &other).into(),
        })
    }
}

enum Failure {
    Raced,
    Refused(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// Whether an object is being deleted and nothing holds it any more.
pub(super) fn is_finished(resource: &crate::resource::Resource, object: &Value) -> bool {
    let waits = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    object["metadata"]["deletionTimestamp"].is_string()
        && !waits(&object["metadata"]["finalizers"])
        && !(rules::is_namespace(resource) && waits(&object["spec"]["finalizers"]))
}

pub(super) fn check_name(caller: &Caller, name: &str, object: &Value) -> Result<(), Status> {
    let found = meta::name_of(object);
    if found.is_empty() && !caller.system {
        let message = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(message));
    }
    if !found.is_empty() && found != name {
        let message = format!("the name of the object ({found}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(message));
    }
    Ok(())
}

fn check_identity(
    mode: Mode,
    change: &Change<'_>,
    (key, stored): (&Key, &Stored),
    current: &Value,
    wanted: &Value,
) -> Result<(), Failure> {
    let Change { caller, scope, name, source, .. } = *change;
    let resource = &scope.resource;
    if source != ChangeSource::Apply {
        check_name(caller, name, wanted)?;
    }
    let uid = wanted["metadata"]["uid"].as_str().unwrap_or_default();
    let present = current["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != present {
        if source != ChangeSource::Put {
            let cause = Cause::invalid("metadata.uid", &uid.into(), "field is immutable");
            return Err(Status::invalid(&resource.group, &resource.kind, name, &[cause]).into());
        }
        return Err(etcd::other_uid(mode, resource, key, uid, present).into());
    }
    let revision = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !revision.is_empty() && revision.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {revision:?}: invalid syntax");
        return Err(Status::new(500, "", message).into());
    }
    if !revision.is_empty() && revision_of(wanted) != stored.revision {
        return Err(Failure::Raced);
    }
    Ok(())
}

fn keep_server_fields(current: &Value, wanted: &mut Value) {
    for key in [
        "name",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        match current["metadata"].get(key) {
            Some(value) => wanted["metadata"][key] = value.clone(),
            None => remove_meta(wanted, key),
        }
    }
    remove_meta(wanted, "selfLink");
}

/// The status endpoint changes nothing but the status and, of many built-in kinds, the metadata; the main endpoint changes everything but the status.
fn limit_to_subresource(resource: &Resource, subresource: &str, has_status: bool, current: &Value, wanted: &mut Value) {
    let take = |from: &Value, to: &mut Value, key: &str| match from.get(key) {
        Some(value) => to[key] = value.clone(),
        None => {
            if let Some(map) = to.as_object_mut() {
                map.remove(key);
            }
        }
    };
    match subresource {
        "status" => {
            let mut limited = current.clone();
            take(wanted, &mut limited, "status");
            if rules::takes_metadata_with_status(resource) {
                take(wanted, &mut limited, "metadata");
                for key in rules::kept_with_status(resource) {
                    take(&current["metadata"], &mut limited["metadata"], key);
                }
            }
            *wanted = limited;
        }
        "finalize" => {
            let mut limited = current.clone();
            let left = wanted["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
            limited["spec"]["finalizers"] = left.into();
            *wanted = limited;
        }
        _ if has_status => take(current, wanted, "status"),
        _ => {}
    }
}

fn bump_generation(scope: &Scope, has_status: bool, current: &Value, wanted: &mut Value) {
    if !rules::has_generation(&scope.resource) {
        return;
    }
    let relevant = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !has_status,
        _ => true,
    };
    let (Some(old), Some(new)) = (current.as_object(), wanted.as_object()) else { return };
    let changed = old.iter().any(|(key, value)| relevant(key) && new.get(key) != Some(value))
        || new.keys().any(|key| relevant(key) && !old.contains_key(key));
    if changed {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or(0);
        wanted["metadata"]["generation"] = (generation + 1).into();
    }
}

fn new_finalizers(current: &Value, wanted: &Value) -> Option<Cause> {
    if !current["metadata"]["deletionTimestamp"].is_string() {
        return None;
    }
    let old = meta::texts(current, "finalizers");
    let added: Vec<String> = meta::texts(wanted, "finalizers")
        .iter()
        .filter(|name| !old.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    (!added.is_empty()).then(|| {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        Cause::forbidden("metadata.finalizers", &detail)
    })
}
