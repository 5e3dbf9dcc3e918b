//! Where writes meet webhooks and policies, and objects the webhooks that convert them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::base::Api;
use super::managed::{self, ManagedEntry};
use super::meta;
use super::object::strip_cluster;
use super::scope::Scope;
use crate::admission::{AdmissionRequest, Around, Configured};
use crate::caller::Caller;
use crate::config::Mode;
use crate::request::Operation;
use crate::resource::Resource;
use crate::resource::groups::ADMISSION;
use crate::status::Status;
use crate::store::{Key, Kind};
use crate::webhook::{LONGEST, Service};

/// One write that asks for admission.
#[derive(Clone, Copy)]
pub(super) struct Admitted<'a> {
    pub(super) caller: &'a Caller,
    pub(super) scope: &'a Scope,
    pub(super) operation: Operation,
    pub(super) subresource: &'a str,
    /// Empty while it is not known.
    pub(super) name: &'a str,
    /// The object before the write, null if there was none.
    pub(super) old: &'a Value,
    /// The options of the request, as they were sent.
    pub(super) options: &'a Value,
    pub(super) dry_run: bool,
}

impl Api {
    /// What is configured for a write; `None` if nothing is.
    fn configured(&self, admitted: &Admitted<'_>) -> Option<(Arc<str>, Arc<Configured>)> {
        let resource = &admitted.scope.resource;
        if !self.configurations.are_used() || admitted.caller.system || *resource.group == *ADMISSION {
            return None;
        }
        let cluster = admitted.scope.cluster().ok()?;
        let source = match &self.extension {
            Some(extension) => extension.admission_source(cluster, resource),
            None => cluster.clone(),
        };
        let configured = self.configurations.of(&self.store, &source);
        Some((source, configured))
    }

    /// Lets webhooks change an object; null on deletion. The object comes with its field owners, which webhooks see.
    pub(super) fn mutate(
        &self,
        admitted: &Admitted<'_>,
        object: &mut Value,
        owned: &[ManagedEntry],
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some((source, configured)) = self.configured(admitted) else { return Ok(()) };
        // What a scale turns into is decided by the kind, not by webhooks.
        if !configured.mutates() || admitted.subresource == "scale" {
            return Ok(());
        }
        if !object.is_null() {
            managed::set_entries(object, owned.to_vec());
        }
        self.around(admitted, &source, |request, around| configured.mutate(request, object, around, warnings))?;
        strip_cluster(object);
        dedup(warnings);
        Ok(())
    }

    /// The same for a new object: what the server has decided already is not shown.
    pub(super) fn mutate_new(
        &self,
        admitted: &Admitted<'_>,
        object: &mut Value,
        status: Option<Value>,
        owned: &[ManagedEntry],
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        if !self.configured(admitted).is_some_and(|(_, configured)| configured.mutates()) {
            return Ok(());
        }
        let decided = ["uid", "creationTimestamp", "generation"];
        let kept: Vec<Value> = decided.iter().map(|key| object["metadata"][*key].clone()).collect();
        let name = object["metadata"]["name"].clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !decided.contains(&key.as_str()) && (key != "name" || !admitted.name.is_empty()));
        }
        let has_status = status.is_some();
        if let Some(status) = status {
            object["status"] = status;
        }
        self.mutate(admitted, object, owned, warnings)?;
        for (key, value) in decided.into_iter().zip(kept).filter(|(_, value)| !value.is_null()) {
            object["metadata"][key] = value;
        }
        if meta::name_of(object).is_empty() {
            object["metadata"]["name"] = name;
        }
        if let (true, Some(map)) = (has_status || admitted.scope.version()?.status, object.as_object_mut()) {
            map.remove("status");
        }
        Ok(())
    }

    /// Asks policies and webhooks whether a write may go on; the object is null on deletion.
    pub(super) fn validate(
        &self,
        admitted: &Admitted<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some((source, configured)) = self.configured(admitted) else { return Ok(()) };
        if !configured.validates() {
            return Ok(());
        }
        // Through this subresource a write is about the number of replicas and nothing else.
        let scales = (admitted.subresource == "scale")
            .then(|| [scale(admitted.scope, object), scale(admitted.scope, admitted.old)]);
        let (mut object, mut admitted) = (object, *admitted);
        if let Some([new, old]) = &scales {
            object = new;
            admitted.old = old;
        }
        let judged =
            self.around(&admitted, &source, |request, around| configured.validate(request, object, around, warnings));
        dedup(warnings);
        judged
    }

    /// Both for a deletion.
    pub(super) fn admit_deletion(&self, admitted: &Admitted<'_>, warnings: &mut Vec<String>) -> Result<(), Status> {
        self.mutate(admitted, &mut Value::Null, &[], warnings)?;
        self.validate(admitted, &Value::Null, warnings)
    }

    fn around<T>(
        &self,
        admitted: &Admitted<'_>,
        source: &str,
        run: impl FnOnce(&AdmissionRequest<'_>, &Around<'_>) -> T,
    ) -> T {
        let Admitted { scope, .. } = admitted;
        let (resource, cluster) = (&scope.resource, scope.cluster().map_or("", |cluster| &**cluster));
        let (operation, kind) = match admitted.operation {
            Operation::Create => ("CREATE", "CreateOptions"),
            Operation::Update => ("UPDATE", "UpdateOptions"),
            Operation::Delete => ("DELETE", "DeleteOptions"),
        };
        let mut options = if admitted.options.is_object() { admitted.options.clone() } else { json!({}) };
        options["kind"] = kind.into();
        options["apiVersion"] = "meta.k8s.io/v1".into();
        let is_namespace = resource.group.is_empty() && *resource.plural == *"namespaces";
        let request = AdmissionRequest {
            operation,
            resource,
            version: &scope.version,
            subresource: admitted.subresource,
            cluster,
            namespace: if is_namespace { admitted.name } else { &scope.namespace },
            name: admitted.name,
            caller: admitted.caller,
            options,
            dry_run: admitted.dry_run,
            old: admitted.old,
        };
        let convert = |object: &Value, version: &str| {
            let mut object = object.clone();
            if admitted.subresource == "scale" {
                return Ok(object);
            }
            self.to_api_version(resource, cluster, &resource.api_version(version), &mut object)
                .map(|()| object)
                .map_err(|status| status.message)
        };
        let resolve = |service: &Service| self.resolve(cluster, service);
        let around = Around {
            store: &self.store,
            cluster,
            source,
            resources: &|| self.resources(source),
            convert: &convert,
            client: &self.hooks,
            resolve: &resolve,
        };
        run(&request, &around)
    }

    /// Where a service is: nothing runs here, so only those with an external name or an address of their own can be reached.
    fn resolve(&self, cluster: &str, service: &Service) -> Result<(String, u16), String> {
        let Service { namespace, name, port } = service;
        if self.mode == Mode::Kcp {
            return Ok((format!("{name}.{namespace}.svc"), *port));
        }
        let key = Key::new(&Kind::new("", "services"), cluster, namespace, name);
        let Some(found) = self.store.get(&key) else { return Err(format!("service {name:?} not found")) };
        let spec = &found.object["spec"];
        let text = |key: &str| spec[key].as_str().unwrap_or_default();
        match (text("type"), text("clusterIP")) {
            ("ExternalName", _) => Ok((text("externalName").to_owned(), *port)),
            (_, address @ ("" | "None")) => Err(format!("cannot route to service with ClusterIP {address:?}")),
            (_, address) => {
                let ports = spec["ports"].as_array().into_iter().flatten();
                if ports.into_iter().any(|found| found["port"] == *port) {
                    Ok((address.to_owned(), *port))
                } else {
                    Err(format!("no service port {port} found for service {name:?}"))
                }
            }
        }
    }

    /// Converts an object in place to an API version of its kind.
    pub(super) fn to_api_version(
        &self,
        resource: &Resource,
        cluster: &str,
        wanted: &str,
        object: &mut Value,
    ) -> Result<(), Status> {
        if object["apiVersion"] == wanted {
            return Ok(());
        }
        if let Some(converted) = self.converted(resource, cluster, wanted, std::slice::from_ref(object))? {
            if let Some(first) = converted.into_iter().next() {
                *object = first;
            }
            return Ok(());
        }
        let found = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        if let Some(convert) = resource.convert {
            convert(&found, wanted, object);
        }
        object["apiVersion"] = wanted.into();
        Ok(())
    }

    /// Objects as the kind's webhook converts them, all in one call; `None` if the kind has no webhook.
    pub(super) fn converted(
        &self,
        resource: &Resource,
        cluster: &str,
        wanted: &str,
        objects: &[Value],
    ) -> Result<Option<Vec<Value>>, Status> {
        let Some(conversion) = resource.conversion.as_deref().filter(|_| !objects.is_empty()) else { return Ok(None) };
        let failed = |why: String| Status::new(500, "", why);
        let question = conversion.ask(objects, wanted).map_err(failed)?;
        let resolve = |service: &Service| self.resolve(cluster, service);
        let pending = self.hooks.start(conversion.address(), question.document.clone(), LONGEST, &resolve);
        question.answered(pending.wait()).map(Some).map_err(failed)
    }

    /// Whether requests may have to wait for webhooks.
    pub(crate) fn calls_webhooks(&self) -> bool {
        self.configurations.call_webhooks()
    }
}

/// The `Scale` of an object.
fn scale(scope: &Scope, object: &Value) -> Value {
    let Some(paths) = scope.version().ok().and_then(|version| version.scale.as_ref()) else { return Value::Null };
    let number = |path: &str| object.pointer(&path.replace('.', "/")).and_then(Value::as_i64).unwrap_or(0);
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {},
        "status": {"replicas": number(&paths.status)},
    });
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(key) {
            scale["metadata"][key] = value.clone();
        }
    }
    // Go leaves zero out.
    if number(&paths.spec) != 0 {
        scale["spec"]["replicas"] = number(&paths.spec).into();
    }
    scale
}

/// Clients receive every warning once.
fn dedup(warnings: &mut Vec<String>) {
    let mut seen: Vec<String> = Vec::new();
    for warning in warnings.drain(..) {
        if !seen.contains(&warning) {
            seen.push(warning);
        }
    }
    *warnings = seen;
}
