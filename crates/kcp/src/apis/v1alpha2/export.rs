//! APIExport, v1alpha2.

use serde_json::Value;
use serde_json::value::RawValue;

use super::claim::PermissionClaim;
use crate::apis::{ApiExportStatus, Identity, MaximalPermissionPolicy, split_schema_name, v1alpha1};
use crate::convert::{KEPT_V1_CLAIMS, written};
use crate::kinds::API_EXPORT_V2;
use crate::object::{kind, object};

kind! {
    /// An APIExport offers a set of APIs to other workspaces, which bind them with an APIBinding.
    ApiExport = API_EXPORT_V2 {
        /// What is offered.
        spec: ApiExportSpec => "spec",
        /// What kcp says about it.
        status: ApiExportStatus => "status",
    }
}

impl ApiExport {
    /// Names of the schemas whose objects are ordinary custom resources: what v1alpha1 calls `latestResourceSchemas`.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        self.spec.resources.iter().filter(|resource| resource.is_ordinary()).map(|resource| resource.schema.as_str())
    }

    /// Claims as they were written in v1alpha1, as far as kcp has kept them.
    pub fn v1_claims(&self) -> Vec<v1alpha1::PermissionClaim> {
        let kept = self.metadata.annotation(KEPT_V1_CLAIMS);
        kept.and_then(|kept| serde_json::from_str(kept).ok()).unwrap_or_default()
    }

    /// Offers the resource that a schema is for, in place of an older schema of it. Nothing is changed about a resource whose objects somebody
    /// else keeps; false then.
    pub fn offer(&mut self, schema: &str) -> bool {
        let new = ResourceSchema::of(schema);
        match self.spec.resources.iter_mut().find(|entry| entry.group == new.group && entry.name == new.name) {
            Some(entry) if entry.is_ordinary() => schema.clone_into(&mut entry.schema),
            Some(_) => return false,
            None => self.spec.resources.push(new),
        }
        true
    }

    /// Claims all objects of a resource with all verbs.
    pub fn claim_all(&mut self, group: &str, resource: &str, identity_hash: &str) {
        let mut claim = PermissionClaim::new(group, resource, &["*"]);
        identity_hash.clone_into(&mut claim.identity_hash);
        self.claim(claim);
    }

    /// Adds a claim. Whoever reads the export in v1alpha1 sees one that was made there for all objects: without that note kcp shows one which
    /// says neither `all` nor which objects, and refuses every write in v1alpha1.
    pub fn claim(&mut self, claim: PermissionClaim) {
        let note = v1alpha1::PermissionClaim::all(&*claim.group, &*claim.resource, &*claim.identity_hash);
        self.spec.permission_claims.push(claim);
        let Some(mut kept) = self.kept_v1_claims() else { return };
        let known = kept.iter().filter_map(|kept| read_v1(kept)).any(|known| known.key() == note.key());
        let written = serde_json::to_value(&note).map(|note| written(&note));
        if let (false, Ok(Ok(note))) = (known, written.map(RawValue::from_string)) {
            kept.push(note);
            self.keep_v1_claims(&kept);
        }
    }

    /// Takes back claims, and what is kept of them for readers in v1alpha1.
    pub fn drop_claims(&mut self, goes: impl Fn(&PermissionClaim) -> bool) {
        let gone: Vec<PermissionClaim> = self.spec.permission_claims.extract_if(.., |claim| goes(claim)).collect();
        let Some(mut kept) = self.kept_v1_claims().filter(|_| !gone.is_empty()) else { return };
        kept.retain(|kept| read_v1(kept).is_none_or(|kept| !gone.iter().any(|gone| gone.key() == kept.key())));
        self.keep_v1_claims(&kept);
    }

    /// What is kept of claims in v1alpha1, one text each; nothing if that cannot be read and is better left alone.
    fn kept_v1_claims(&self) -> Option<Vec<Box<RawValue>>> {
        self.metadata
            .annotation(KEPT_V1_CLAIMS)
            .map_or_else(|| Some(Vec::new()), |kept| serde_json::from_str(kept).ok())
    }

    fn keep_v1_claims(&mut self, kept: &[Box<RawValue>]) {
        if kept.is_empty() {
            self.metadata.annotations.remove(KEPT_V1_CLAIMS);
        } else {
            let kept: Vec<&str> = kept.iter().map(|kept| kept.get()).collect();
            self.metadata.annotate(KEPT_V1_CLAIMS, format!("[{}]", kept.join(",")));
        }
    }
}

fn read_v1(kept: &RawValue) -> Option<v1alpha1::PermissionClaim> {
    serde_json::from_str(kept.get()).ok()
}

object! {
    /// What an APIExport offers.
    ApiExportSpec {
        /// The exported resources and the schema of each.
        resources: Vec<ResourceSchema> => "resources",
        /// What the provider asks to see and do in consumers' workspaces.
        permission_claims: Vec<PermissionClaim> => "permissionClaims",
        /// Where the identity comes from.
        identity: Identity => "identity",
        /// An upper bound of what consumers may do.
        maximal_permission_policy: Option<MaximalPermissionPolicy> => "maximalPermissionPolicy",
    }
}

object! {
    /// An exported resource.
    ResourceSchema {
        /// Plural resource name.
        name: String => "name",
        /// API group, empty for core.
        group: String => "group" [always],
        /// Name of the APIResourceSchema.
        schema: String => "schema",
        /// Where objects are kept.
        storage: ResourceSchemaStorage => "storage",
    }
}

impl ResourceSchema {
    /// The resource that the name of an APIResourceSchema stands for, kept as ordinary custom resources.
    pub fn of(schema: &str) -> Self {
        let (_, resource, group) = split_schema_name(schema).unwrap_or_default();
        Self {
            name: resource.to_owned(),
            group: if group == "core" { String::new() } else { group.to_owned() },
            schema: schema.to_owned(),
            storage: ResourceSchemaStorage { crd: Some(CrdStorage::default()), ..ResourceSchemaStorage::default() },
            ..Self::default()
        }
    }

    /// Whether its objects are ordinary custom resources.
    pub fn is_ordinary(&self) -> bool {
        self.storage.crd.is_some()
    }
}

object! {
    /// Where the objects of an exported resource are kept.
    ResourceSchemaStorage {
        /// As ordinary custom resources.
        crd: Option<CrdStorage> => "crd",
        /// By somebody else, who serves them through a virtual workspace.
        virtual_: Option<VirtualStorage> => "virtual",
    }
}

object! {
    /// Ordinary custom resources; there is nothing to be set.
    CrdStorage {}
}

object! {
    /// Objects that are served through a virtual workspace.
    VirtualStorage {
        /// The object that knows the URLs.
        reference: Value => "reference",
        /// Identity of the export that owns the objects.
        identity_hash: String => "identityHash",
    }
}
