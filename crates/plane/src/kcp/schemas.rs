//! The virtual workspace of a consumer's schemas: whoever may read the APIBindings of a workspace sees the APIResourceSchemas behind them,
//! wherever they are stored.

use std::sync::Arc;

use carrick_kcp::path::is_label;

use super::authorize::{decide, refusal};
use super::data::{BINDINGS, Data, EXPORTS, SCHEMAS};
use super::object::{items, text};
use crate::caller::Caller;
use crate::extension::{Kinds, VirtualView};
use crate::request::{Attributes, Target};
use crate::resource::Resource;
use crate::status::Status;
use crate::store::Key;

const SERVICE: &str = "/services/apiresourceschema/";
const COLLECTION: &str = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas/";
const READ: [&str; 3] = ["get", "list", "watch"];

/// Opens the virtual workspace behind a URL path, if it is one of schemas.
pub fn open(data: &Data, kinds: Kinds<'_>, path: &str) -> Option<VirtualView> {
    let (consumer, rest) = resolve(path)?;
    let consumer: Arc<str> = consumer.into();
    let served = served(data, &consumer);
    let mut resources = Vec::new();
    if !served.is_empty() {
        let all = kinds(&consumer);
        resources.extend(all.iter().find(|resource| resource.stored_kind() == *SCHEMAS).map(|found| readable(found)));
    }
    // Objects with a name are in one cluster; without a name, all clusters are searched.
    let name = rest.strip_prefix(COLLECTION).map(|rest| rest.trim_end_matches('/')).filter(|name| !name.is_empty());
    let target = match name {
        Some(name) => {
            let home = served.iter().find(|(_, served)| **served == *name).map(|(home, _)| home);
            Target::One(home.unwrap_or(&consumer).clone())
        }
        None => Target::All,
    };
    let (shown, asked) = ((data.clone(), consumer.clone()), (data.clone(), consumer));
    Some(VirtualView {
        rest: rest.to_owned(),
        target,
        resources: resources.into(),
        // Bindings may come and go during a watch.
        visible: Arc::new(move |key, _| shows(&shown.0, &shown.1, key)),
        authorize: Arc::new(move |caller, attributes| authorize(&asked.0, &asked.1, caller, attributes)),
        admit: None,
        passes: |_| false,
    })
}

/// The consumer's cluster and the path within; the clusters in the path must be the consumer, or all.
fn resolve(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(SERVICE)?;
    let (consumer, rest) = split(rest);
    if !is_label(consumer) {
        return None;
    }
    let Some(inside) = rest.strip_prefix("/clusters/") else { return Some((consumer, or_root(rest))) };
    let (target, rest) = split(inside);
    (target == consumer || matches!(target, "*" | "%2A" | "%2a")).then_some((consumer, or_root(rest)))
}

fn split(path: &str) -> (&str, &str) {
    path.find('/').map_or((path, ""), |slash| path.split_at(slash))
}

fn or_root(rest: &str) -> &str {
    if rest.is_empty() { "/" } else { rest }
}

fn readable(resource: &Resource) -> Arc<Resource> {
    let mut resource = resource.clone();
    resource.verbs = READ.to_vec();
    Arc::new(resource)
}

/// Cluster and name of every schema behind the bindings of a cluster.
fn served(data: &Data, consumer: &str) -> Vec<(Arc<str>, Arc<str>)> {
    let mut all = Vec::new();
    for (_, binding) in data.list(&BINDINGS, Some(consumer)) {
        let home = text(&binding, "/status/apiExportClusterName");
        let name = text(&binding, "/spec/reference/export/name");
        if text(&binding, "/status/phase") != "Bound" || home.is_empty() || name.is_empty() {
            continue;
        }
        let Some(export) = data.get(&EXPORTS, home, name) else { continue };
        let schemas = items(&export, "/spec/resources").iter().map(|resource| text(resource, "/schema"));
        all.extend(schemas.map(|schema| (home.into(), schema.into())));
    }
    all
}

fn shows(data: &Data, consumer: &str, key: &Key) -> bool {
    key.kind == *SCHEMAS && served(data, consumer).iter().any(|(home, name)| *home == key.cluster && *name == key.name)
}

fn authorize(data: &Data, consumer: &str, caller: &Caller, attributes: &Attributes) -> Result<(), Status> {
    let read = Attributes {
        verb: "get".into(),
        group: "apis.kcp.io".into(),
        version: "v1alpha2".into(),
        resource: "apibindings".into(),
        ..Attributes::default()
    };
    if READ.contains(&attributes.verb.as_str()) && decide(data, caller, consumer, &read).is_allowed() {
        Ok(())
    } else {
        Err(refusal(caller, attributes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_one_consumer() {
        let cases = [
            ("/services/apiresourceschema/abc/clusters/abc/apis", Some(("abc", "/apis"))),
            ("/services/apiresourceschema/abc/clusters/*/apis/x", Some(("abc", "/apis/x"))),
            ("/services/apiresourceschema/abc/apis", Some(("abc", "/apis"))),
            ("/services/apiresourceschema/abc/clusters/abc", Some(("abc", "/"))),
            ("/services/apiresourceschema/abc", Some(("abc", "/"))),
            ("/services/apiresourceschema/abc/clusters/other/apis", None),
            ("/services/apiresourceschema/*/clusters/*/apis", None),
            ("/services/apiresourceschema/root:org/clusters/*/apis", None),
            ("/services/apiexport/abc", None),
        ];
        for (path, expected) in cases {
            assert_eq!(resolve(path), expected, "{path}");
        }
    }
}
