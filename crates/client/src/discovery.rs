//! Finding out what a server calls a kind.
//!
//! Only the group asked for is fetched, so a broken aggregated API of another group does not matter.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::client::Client;
use crate::error::Error;
use crate::resource::Resource;

/// A kind as a server serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural name in URLs.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Short names for the command line.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// The group's preferred version if it serves the kind, else the first that does.
    pub preferred: String,
    /// All versions that serve the kind, in the server's order.
    pub versions: Vec<FoundVersion>,
}

/// One version of a [`Found`] kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion {
    /// Version, such as `v1`.
    pub name: String,
    /// Subresources, such as `status` and `scale`.
    pub subresources: BTreeSet<String>,
    /// Verbs of the main resource.
    pub verbs: Vec<String>,
}

impl Found {
    /// The kind in one of its versions; `None` if that version does not serve it.
    pub fn resource(&self, version: &str) -> Option<Resource> {
        let version = self.versions.iter().find(|served| served.name == version)?;
        Some(Resource {
            group: self.group.as_str().into(),
            version: version.name.as_str().into(),
            kind: self.kind.as_str().into(),
            plural: self.plural.as_str().into(),
            namespaced: self.namespaced,
        })
    }
}

/// Looks a kind up in its group; `None` if the server does not serve it.
pub async fn find_kind(client: &Client, group: &str, kind: &str) -> Result<Option<Found>, Error> {
    let Some((preferred, versions)) = group_versions(client, group).await? else { return Ok(None) };
    let mut found: Option<Found> = None;
    for version in versions {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        // A version listed by the group but not served is on its way in or out.
        let Some(list) = fetch::<ResourceList>(client, &path).await? else { continue };
        let Some(main) = list.resources.iter().find(|entry| entry.kind == kind && !entry.name.contains('/')) else {
            continue;
        };
        let prefix = format!("{}/", main.name);
        let subresources =
            list.resources.iter().filter_map(|entry| entry.name.strip_prefix(&prefix)).map(str::to_owned).collect();
        let served = FoundVersion { name: version.clone(), subresources, verbs: main.verbs.clone() };
        let found = found.get_or_insert_with(|| Found {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: main.name.clone(),
            singular: main.singular_name.clone(),
            namespaced: main.namespaced,
            short_names: main.short_names.clone(),
            categories: main.categories.clone(),
            preferred: version.clone(),
            versions: Vec::new(),
        });
        if version == preferred {
            found.preferred.clone_from(&version);
        }
        found.versions.push(served);
    }
    Ok(found)
}

/// The preferred version of a group and all its versions; `None` if the server does not serve the group.
pub(crate) async fn group_versions(client: &Client, group: &str) -> Result<Option<(String, Vec<String>)>, Error> {
    if group.is_empty() {
        let core = fetch::<CoreVersions>(client, "/api").await?;
        return Ok(core.map(|core| (core.versions.first().cloned().unwrap_or_default(), core.versions)));
    }
    let group = fetch::<Group>(client, &format!("/apis/{group}")).await?;
    Ok(group.map(|group| {
        (group.preferred_version.version, group.versions.into_iter().map(|entry| entry.version).collect())
    }))
}

async fn fetch<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<Option<T>, Error> {
    match client.raw_get(path).await {
        Ok(value) => serde_json::from_value(value).map(Some).map_err(|problem| Error::Decode {
            request: client.describe(&http::Method::GET, path),
            problem: problem.to_string(),
        }),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
struct CoreVersions {
    versions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    versions: Vec<GroupVersion>,
    #[serde(default)]
    preferred_version: GroupVersion,
}

#[derive(Default, Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<ServedResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServedResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    verbs: Vec<String>,
    short_names: Vec<String>,
    categories: Vec<String>,
}
