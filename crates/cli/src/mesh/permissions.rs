//! Roles of people in the portal: the ProviderPermissions, from a file that the provider writes.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use carrick_json::manifest;
use serde_json::{Map, Value, json};

use super::{PROVIDERS, api_version};
use crate::init::offer::Offer;

/// Relations that the mesh itself gives to every kind.
const RESERVED: [&str; 11] = [
    "parent",
    "member",
    "owner",
    "get",
    "update",
    "delete",
    "patch",
    "watch",
    "manage_iam_roles",
    "get_iam_roles",
    "get_iam_users",
];
/// What `defaultPermissions` may say.
const DEFAULTS: [&str; 5] = ["get", "update", "delete", "patch", "watch"];
/// The longest relation that the mesh's store takes. It cuts the group of a longer one from the left.
const LONGEST_RELATION: usize = 50;

/// What people may do, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Permissions {
    roles: Vec<Value>,
    permissions: Map<String, Value>,
}

/// A kind as the mesh names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKind {
    kind: String,
    singular: String,
    plural: String,
    group: String,
}

impl NamedKind {
    /// What consumers see of an offer.
    pub fn of(offer: &Offer) -> Self {
        let Offer { kind, singular, plural, kcp_group: group, .. } = offer.seen();
        Self { kind, singular, plural, group }
    }

    /// The key of both maps, which is not the name of the CRD.
    fn key(&self) -> String {
        format!("{}.{}", self.singular, self.group)
    }

    fn is_called(&self, name: &str) -> bool {
        name == self.plural || name == format!("{}.{}", self.plural, self.group) || name == self.key()
    }

    /// What the mesh makes of these names, where that may surprise its owner.
    pub fn notes(&self) -> Vec<String> {
        let Self { kind, singular, plural, group } = self;
        let mut notes = Vec::new();
        if *singular != kind.to_lowercase() {
            notes.push(format!(
                "{kind} has the singular {singular}; Platform Mesh looks for roles of {}, so people get none in its portal",
                kind.to_lowercase()
            ));
        }
        let relation = format!("create_{}_{plural}", group.replace('.', "_"));
        if relation.len() > LONGEST_RELATION {
            let cut = relation.len() - LONGEST_RELATION;
            notes.push(format!(
                "Platform Mesh cuts {cut} characters from the left of group {group} to call a right {LONGEST_RELATION} characters \
                 long; groups that end alike get the same rights"
            ));
        }
        notes
    }
}

impl Permissions {
    /// Reads a file.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let place = file.display();
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {place}"))?;
        Self::parse(&manifest::text(&bytes)).with_context(|| format!("--roles {place}"))
    }

    /// A whole ProviderPermissions, or `roles` and `permissions` of its spec alone.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let all = carrick_json::yaml::values(text)?;
        let [one] = all.as_slice() else { bail!("it holds {} documents; one is wanted", all.len()) };
        let spec = if one["kind"] == "ProviderPermissions" { &one["spec"] } else { one };
        let fields = spec.as_object().context("it is no object; write roles: … and permissions: … in YAML")?;
        for name in fields.keys() {
            ensure!(
                ["roles", "permissions", "apiExport"].contains(&name.as_str()),
                "there is no field {name}; there are roles and permissions"
            );
        }
        let roles = spec["roles"].as_array().cloned().unwrap_or_default();
        let permissions = spec["permissions"].as_object().cloned().unwrap_or_default();
        ensure!(!roles.is_empty() || !permissions.is_empty(), "it has neither roles nor permissions");
        for group in &roles {
            check_roles(group)?;
        }
        for (key, one) in &permissions {
            check_permissions(key, one)?;
        }
        Ok(Self { roles, permissions })
    }

    /// What was written, for a file.
    pub fn written(&self) -> Value {
        json!({ "roles": self.roles, "permissions": self.permissions })
    }

    /// The object for an export, with the mesh's keys for the kinds in it.
    pub fn object(&self, export: &str, kinds: &[NamedKind]) -> anyhow::Result<Value> {
        let key = |name: &str| {
            let found = kinds.iter().find(|kind| kind.is_called(name));
            let known = || kinds.iter().map(|kind| kind.plural.as_str()).collect::<Vec<_>>().join(", ");
            found.map(NamedKind::key).with_context(|| format!("--roles speaks of {name:?}, and {} is offered", known()))
        };
        let mut roles = self.roles.clone();
        for group in &mut roles {
            let name = group["groupResource"].as_str().unwrap_or_default();
            group["groupResource"] = json!(key(name)?);
        }
        let mut permissions = Map::new();
        for (name, value) in &self.permissions {
            permissions.insert(key(name)?, value.clone());
        }
        let mut spec = json!({ "apiExport": { "ref": { "name": export } } });
        if !roles.is_empty() {
            spec["roles"] = json!(roles);
        }
        if !permissions.is_empty() {
            spec["permissions"] = json!(permissions);
        }
        Ok(json!({
            "apiVersion": api_version(PROVIDERS),
            "kind": "ProviderPermissions",
            "metadata": { "name": export },
            "spec": spec,
        }))
    }
}

/// A role that the mesh does not validate would break the model of every consumer that binds the export.
fn check_roles(group: &Value) -> anyhow::Result<()> {
    let of = group["groupResource"].as_str().filter(|name| !name.is_empty());
    let of = of.context("each of roles needs groupResource, the plural of a kind")?;
    let mut seen = BTreeSet::new();
    let roles = group["roles"].as_array().filter(|roles| !roles.is_empty());
    for role in roles.with_context(|| format!("the roles of {of} are missing"))? {
        let text = |field: &str| role[field].as_str().unwrap_or_default();
        let id = text("id");
        check_relation(of, id)?;
        ensure!(seen.insert(id), "{of} has two roles with the id {id}");
        for field in ["displayName", "description", "definition"] {
            ensure!(!text(field).is_empty(), "role {id} of {of} has no {field}");
        }
    }
    Ok(())
}

fn check_permissions(of: &str, permissions: &Value) -> anyhow::Result<()> {
    for name in permissions["defaultPermissions"].as_object().into_iter().flat_map(Map::keys) {
        let known = DEFAULTS.contains(&name.as_str());
        ensure!(known, "defaultPermissions of {of} has no {name}; there are {}", DEFAULTS.join(", "));
    }
    for (name, definition) in permissions["additionalPermissions"].as_object().into_iter().flatten() {
        check_relation(of, name)?;
        let said = definition.as_str().is_some_and(|text| !text.is_empty());
        ensure!(said, "additional permission {name} of {of} has no definition");
    }
    Ok(())
}

fn check_relation(of: &str, id: &str) -> anyhow::Result<()> {
    let is_plain =
        id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-');
    ensure!(
        is_plain && !id.is_empty() && id.len() <= LONGEST_RELATION,
        "{id:?} of {of} is no id; use at most {LONGEST_RELATION} lower-case letters, digits, dashes and underscores"
    );
    ensure!(
        !RESERVED.contains(&id),
        "Platform Mesh itself gives {id} to {of}; choose another id than {}",
        RESERVED.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(singular: &str, plural: &str, group: &str) -> NamedKind {
        let [singular, plural, group] = [singular, plural, group].map(str::to_owned);
        NamedKind { kind: "Bucket".to_owned(), singular, plural, group }
    }

    const FILE: &str = "
roles:
- groupResource: buckets
  roles:
  - {id: auditor, displayName: Auditor, description: Reads, definition: '[user] or owner'}
permissions:
  buckets.example.com:
    defaultPermissions: {get: auditor or member}
    additionalPermissions: {restart: owner}
";

    #[test]
    fn kinds_get_the_keys_that_the_mesh_looks_for() {
        let object = Permissions::parse(FILE).unwrap();
        let object = object.object("example.com", &[kind("bucket", "buckets", "example.com")]).unwrap();
        assert_eq!(object["spec"]["apiExport"]["ref"]["name"], "example.com");
        assert_eq!(object["spec"]["roles"][0]["groupResource"], "bucket.example.com");
        assert_eq!(object["spec"]["roles"][0]["roles"][0]["id"], "auditor");
        assert_eq!(object["spec"]["permissions"]["bucket.example.com"]["additionalPermissions"]["restart"], "owner");
        let error = Permissions::parse(FILE).unwrap().object("e", &[kind("pail", "pails", "e")]).unwrap_err();
        assert!(error.to_string().contains("pails is offered"), "{error}");
    }

    #[test]
    fn what_would_break_the_model_of_every_consumer_is_refused() {
        let role = |role: &str| format!("roles:\n- groupResource: buckets\n  roles:\n  - {{{role}}}\n");
        for (text, wanted) in [
            (role("id: auditor, displayName: A, description: D"), "role auditor of buckets has no definition"),
            (role("id: owner, displayName: A, description: D, definition: '[user]'"), "itself gives owner"),
            (role("id: A b, displayName: A, description: D, definition: '[user]'"), "is no id"),
            ("permissions: {buckets: {defaultPermissions: {list: member}}}".to_owned(), "has no list"),
            ("permissions: {buckets: {additionalPermissions: {watch: member}}}".to_owned(), "itself gives watch"),
            (
                "permissions: {buckets: {additionalPermissions: {restart: ''}}}".to_owned(),
                "restart of buckets has no definition",
            ),
            ("role: []".to_owned(), "there is no field role"),
            ("roles: []".to_owned(), "neither roles nor permissions"),
        ] {
            let error = Permissions::parse(&text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn names_that_the_mesh_reads_otherwise_are_noted() {
        assert!(kind("bucket", "buckets", "example.com").notes().is_empty());
        let told = kind("pail", "buckets", "example.com").notes();
        assert!(told.len() == 1 && told[0].contains("roles of bucket"), "{told:?}");
        let long = kind("bucket", "buckets", "storage.services.of-a-company.example.com").notes();
        assert!(long.len() == 1 && long[0].contains("cuts 6 characters"), "{long:?}");
    }
}
