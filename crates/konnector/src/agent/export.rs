//! The APIExport through which a konnector serves workspaces, in the place of CRDs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carrick_bind_api::carrick_kcp::apis::v1alpha1::ApiExportEndpointSlice;
use carrick_bind_api::carrick_kcp::apis::v1alpha2::ApiExport;
use carrick_bind_api::carrick_kcp::kinds::{API_EXPORT_ENDPOINT_SLICE, API_EXPORT_V2, API_RESOURCE_SCHEMA};
use carrick_bind_api::v1alpha2::{ApiServiceBinding, ApiServiceBindingBundle};
use carrick_client::watch::WatchOptions;
use carrick_client::{Client, Error};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::notifier::Notifier;
use super::workspaces::Workspaces;
use super::writer::Writer;
use crate::decide::Seen;
use crate::decide::export;

/// The APIExport through which a konnector serves workspaces.
pub struct Export {
    client: Client,
    /// The workspaces that bind it.
    pub workspaces: Arc<Workspaces>,
    slice_name: String,
    slice: Arc<Cache>,
    /// The export, as soon as the slice says which one it is.
    offered: Arc<Cache>,
    /// APIResourceSchemas, their metadata only.
    schemas: Arc<Cache>,
    /// Schemas that were needed as a whole, by name. They never change.
    whole: Mutex<BTreeMap<String, Arc<Value>>>,
    /// Claims of others that were warned of.
    narrow: Mutex<Vec<String>>,
}

impl Export {
    /// Begins to watch.
    pub fn start(client: &Client, slice_name: &str, notifier: &Notifier, stop: &CancellationToken) -> Arc<Self> {
        let slice = Cache::new(format!("APIExportEndpointSlice {slice_name}"), notifier);
        let options = WatchOptions::fields(format!("metadata.name={slice_name}"));
        let kind = API_EXPORT_ENDPOINT_SLICE.into();
        tokio::spawn(Arc::clone(&slice).follow(client.clone(), kind, options, stop.clone()));
        let schemas = Cache::new("APIResourceSchemas", notifier);
        let (kind, all) = (API_RESOURCE_SCHEMA.into(), WatchOptions::default());
        tokio::spawn(Arc::clone(&schemas).follow(client.metadata_only(), kind, all, stop.clone()));
        let offered = Cache::new("the APIExport", notifier);
        let this = Arc::new(Self {
            client: client.clone(),
            workspaces: Workspaces::start(client.clone(), slice_name, stop),
            slice_name: slice_name.to_owned(),
            slice,
            offered,
            schemas,
            whole: Mutex::default(),
            narrow: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&this).follow_export(notifier.clone(), stop.clone()));
        this
    }

    /// Watches the export that the slice names, which cannot be another one later.
    async fn follow_export(self: Arc<Self>, notifier: Notifier, stop: CancellationToken) {
        let mut changes = notifier.subscribe();
        let name = loop {
            if let Some(name) = self.name() {
                break name;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = changes.changed() => {}
            }
        };
        let options = WatchOptions::fields(format!("metadata.name={name}"));
        Arc::clone(&self.offered).follow(self.client.clone(), API_EXPORT_V2.into(), options, stop).await;
    }

    /// The name of the export, once the slice was seen.
    fn name(&self) -> Option<String> {
        let Seen::Present(slice) = self.slice.get("", &self.slice_name) else { return None };
        let slice: ApiExportEndpointSlice = slice.decode().ok()?;
        Some(slice.spec.export.name).filter(|name| !name.is_empty())
    }

    /// Whether everything was read once; before that nobody knows what is listed.
    pub fn has_synced(&self) -> bool {
        self.slice.has_synced() && self.schemas.has_synced()
    }

    /// The export, or why it is not known.
    fn seen(&self) -> Result<ApiExport, String> {
        let Some(name) = self.name() else {
            let missing =
                || format!("APIExportEndpointSlice {} does not exist, or names no APIExport", self.slice_name);
            return Err(self.slice.unknown().unwrap_or_else(missing));
        };
        match self.offered.get("", &name) {
            Seen::Present(object) => {
                object.decode().map_err(|error| format!("APIExport {name} cannot be read: {error}"))
            }
            Seen::Absent => Err(format!("APIExport {name} does not exist in this workspace; create it, empty")),
            Seen::Unknown(why) => Err(why),
        }
    }

    /// Those of these CRDs for which the export lists a schema, made of that.
    pub async fn crds(&self, names: impl IntoIterator<Item = String>) -> Result<BTreeMap<String, Value>, String> {
        let export = self.seen()?;
        let mut found = BTreeMap::new();
        for name in names {
            let Some(schema) = export::listed(&export, &name) else { continue };
            let whole = self.schema(schema).await.map_err(|error| error.to_string())?;
            found.insert(name, export::crd_of(&whole));
        }
        Ok(found)
    }

    async fn schema(&self, name: &str) -> Result<Arc<Value>, Error> {
        if let Some(known) = self.whole.lock().get(name).cloned() {
            return Ok(known);
        }
        let found = self.client.get(&API_RESOURCE_SCHEMA.into(), None, name).await?;
        // Whose an API without a schema is nobody knows, so it is left alone.
        let Some(found) = found else { return Ok(Arc::default()) };
        let found = Arc::new(found);
        self.whole.lock().insert(name.to_owned(), Arc::clone(&found));
        Ok(found)
    }

    /// The schemas of a binding, each with the name of its CRD and its uid.
    fn schemas_of(&self, binding: &ApiServiceBinding) -> Seen<Vec<(String, String, String)>> {
        if let Some(why) = self.schemas.unknown() {
            return Seen::Unknown(why);
        }
        let uid = binding.metadata.uid.as_str();
        let all = self.schemas.objects();
        let owned = all.iter().filter(|schema| {
            let value = schema.value();
            let mut owners = value["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["uid"] == uid && owner["controller"] == true)
        });
        let named = owned.filter_map(|it| Some((export::crd_name(&it.name)?, it.name.to_string(), it.uid.to_string())));
        Seen::Present(named.collect())
    }

    /// The CRDs for which the export lists a schema of a binding, each with its uid.
    pub fn crds_of(&self, binding: &ApiServiceBinding) -> Seen<Vec<(String, String)>> {
        let all = match self.schemas_of(binding) {
            Seen::Present(all) if all.is_empty() => return Seen::Present(Vec::new()),
            Seen::Present(all) => all,
            Seen::Absent => return Seen::Absent,
            Seen::Unknown(why) => return Seen::Unknown(why),
        };
        match self.seen() {
            Ok(export) => {
                let is_listed = |crd: &str, schema: &str| export::listed(&export, crd) == Some(schema);
                let listed = all.into_iter().filter(|(crd, schema, _)| is_listed(crd, schema));
                Seen::Present(listed.map(|(crd, _, uid)| (crd, uid)).collect())
            }
            Err(why) => Seen::Unknown(why),
        }
    }

    /// Whether there are schemas of a binding, listed or not: older ones are kept as long as it lives.
    pub fn has_schemas_of(&self, binding: &ApiServiceBinding) -> bool {
        self.schemas_of(binding).present().is_none_or(|all| !all.is_empty())
    }

    /// Creates the schema that stands for a CRD, and lists it.
    pub async fn list(&self, writer: &Writer, crd: &Value) -> Result<(), String> {
        let schema = export::schema_of(crd);
        let name = schema["metadata"]["name"].as_str().unwrap_or_default();
        if export::listed(&self.seen()?, &export::crd_name(name).unwrap_or_default()) == Some(name) {
            return Ok(());
        }
        // The name tells the content, so one that is there already will do, if it is this binding's.
        let created = writer.create(&API_RESOURCE_SCHEMA.into(), &schema).await;
        if !created.map_err(|error| error.to_string())? {
            let owner = |schema: &Value| schema["metadata"]["ownerReferences"][0]["uid"].clone();
            let there = self.schema(name).await.map_err(|error| error.to_string())?;
            if owner(&there) != owner(&schema) {
                self.whole.lock().remove(name);
                return Err(format!("APIResourceSchema {name} belongs to somebody else; delete it if nobody needs it"));
            }
        }
        match export::with_schema(&self.seen()?, name)? {
            Some(export) => self.write(writer, &export).await.map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes the APIs of a binding off the list, and deletes their schemas.
    pub async fn withdraw(&self, writer: &Writer, binding: &ApiServiceBinding) -> Result<(), String> {
        let schemas = self.schemas_of(binding);
        let schemas = schemas.present().map(Vec::as_slice).unwrap_or_default();
        let names: BTreeSet<String> = schemas.iter().map(|(_, name, _)| name.clone()).collect();
        if let Some(export) = export::without(&self.seen()?, &names) {
            // Schemas go when nobody refers to them any more.
            return self.write(writer, &export).await.map_err(|error| error.to_string());
        }
        for (_, name, uid) in schemas {
            let deleted = writer.delete(&API_RESOURCE_SCHEMA.into(), name, uid).await;
            deleted.map_err(|error| error.to_string())?;
            self.whole.lock().remove(name);
        }
        Ok(())
    }

    /// Claims what the bindings of this workspace need.
    pub async fn claim(
        &self,
        writer: &Writer,
        bindings: &[ApiServiceBinding],
        bundles: &[ApiServiceBindingBundle],
    ) -> Result<(), String> {
        let (export, wanted) = (self.seen()?, export::wanted_claims(bindings, bundles));
        let narrow = export::narrow_claims(&export, &wanted);
        if *self.narrow.lock() != narrow {
            if !narrow.is_empty() {
                tracing::warn!(
                    apiexport = export.metadata.name,
                    claims = narrow.join(", "),
                    "Claims that others have made in the APIExport do not allow what providers need; remove them, or add verbs."
                );
            }
            *self.narrow.lock() = narrow;
        }
        match export::with_claims(&export, &wanted) {
            Some(export) => self.write(writer, &export).await.map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Replaces the export, unless it has changed since it was seen.
    async fn write(&self, writer: &Writer, export: &ApiExport) -> Result<(), Error> {
        let value = serde_json::to_value(export).unwrap_or_default();
        match writer.replace(&API_EXPORT_V2.into(), &value).await {
            // The newer one is on its way, and everything is decided anew then.
            Err(error) if error.is_conflict() => Ok(()),
            written => written,
        }
    }
}
