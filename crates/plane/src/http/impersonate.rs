//! Impersonation: acting as somebody else, with the right to do so.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderValue};

use super::root::permitted;
use crate::api::Api;
use crate::auth::rbac;
use crate::caller::Caller;
use crate::config::Mode;
use crate::release::Release;
use crate::request::Attributes;
use crate::status::Status;

const EXTRA: &str = "impersonate-extra-";
const ACCOUNTS: &str = "system:serviceaccount";
const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// In kcp, only members may act as members of these groups.
const SPECIAL: [&str; 6] = [
    MASTERS,
    "system:kcp:logical-cluster-admin",
    "system:kcp:external-logical-cluster-admin",
    "system:kcp:tenancy:workspace-bootstrapper",
    "system:kcp:admin",
    AUTHENTICATED,
];

/// Whom a caller wants to act as.
pub(super) struct Wanted {
    user: String,
    groups: Vec<String>,
    extra: Vec<(String, String)>,
    uid: String,
}

/// Whom the headers of a request name; `None` if nobody.
pub(super) fn wanted(release: Release, headers: &HeaderMap, path: &str) -> Result<Option<Wanted>, Status> {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra = Vec::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.push((super::request::unescape(key, false), text(value)));
        }
    }
    let wanted = Wanted {
        user: first("impersonate-user"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra,
        uid: first("impersonate-uid"),
    };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.groups.is_empty() && wanted.extra.is_empty() && wanted.uid.is_empty() {
        return Ok(None);
    }
    let why = format!("requested [{}] without impersonating a user", wanted.listed());
    Err(if release.blames_the_client() {
        Status::bad_request(why)
    } else {
        Status::plain(500, format!("Internal Server Error: {path:?}: {why}\n"))
    })
}

impl Wanted {
    /// What is requested besides a user, as Go prints object references.
    fn listed(&self) -> String {
        const VERSION: &str = "authentication.k8s.io/v1";
        let mut all = String::new();
        let mut add = |kind: &str, name: &str, version: &str, path: &str| {
            let gap = if all.is_empty() { "" } else { " " };
            // Writing into a text cannot fail.
            let _ = write!(all, "{gap}{{{kind}  {name}  {version}  {path}}}");
        };
        for group in &self.groups {
            add("Group", group, "", "");
        }
        for (key, value) in &self.extra {
            add("UserExtra", value, VERSION, key);
        }
        if !self.uid.is_empty() {
            add("UID", &self.uid, VERSION, "");
        }
        all
    }

    /// The namespace and name of the service account, if it is one.
    fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(ACCOUNTS)?.strip_prefix(':')?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
    }

    /// Everything the caller needs the right to impersonate.
    fn attributes(&self) -> Vec<Attributes> {
        let about = |resource: &str, name: &str| Attributes {
            verb: "impersonate".into(),
            resource: resource.into(),
            name: name.into(),
            ..Attributes::default()
        };
        let extended = |attributes: Attributes| Attributes {
            group: "authentication.k8s.io".into(),
            version: "v1".into(),
            ..attributes
        };
        let mut all = vec![match self.account() {
            Some((namespace, name)) => Attributes { namespace: namespace.into(), ..about("serviceaccounts", name) },
            None => about("users", &self.user),
        }];
        all.extend(self.groups.iter().map(|group| about("groups", group)));
        let extra = self.extra.iter();
        all.extend(
            extra.map(|(key, value)| Attributes { subresource: key.clone(), ..extended(about("userextras", value)) }),
        );
        if !self.uid.is_empty() {
            all.push(extended(about("uids", &self.uid)));
        }
        all
    }

    fn caller(self) -> Caller {
        let of_account = self.account().map(|(namespace, _)| format!("{ACCOUNTS}s:{namespace}"));
        let mut groups = self.groups;
        if let (true, Some(of_namespace)) = (groups.is_empty(), of_account) {
            groups = vec![format!("{ACCOUNTS}s"), of_namespace];
        }
        let missing = |group: &str| !groups.iter().any(|found| found == group);
        if self.user == "system:anonymous" {
            if missing(UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.into());
            }
        } else if missing(AUTHENTICATED) && missing(UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        let mut caller = Caller { user: self.user, uid: self.uid, groups, ..Caller::default() };
        for (key, value) in self.extra {
            caller.extra.entry(key).or_default().push(value);
        }
        caller
    }
}

/// The caller as whom the request goes on, in a cluster; virtual workspaces have none.
pub(super) fn answer(api: &Api, caller: &Caller, cluster: Option<&str>, wanted: Wanted) -> Result<Caller, Status> {
    let master = caller.is_in(MASTERS);
    if api.mode == Mode::Kcp
        && !master
        && wanted.groups.iter().any(|group| SPECIAL.contains(&group.as_str()) && !caller.is_in(group))
    {
        let message = "forbidden: impersonation is not allowed for the requestor";
        return Err(Status::new(403, "Forbidden", message).about_nothing());
    }
    for attributes in wanted.attributes() {
        match cluster {
            Some(cluster) => permitted(api, caller, cluster, &attributes)?,
            None if master => {}
            None => return Err(rbac::refusal(caller, &attributes, ": access denied")),
        }
    }
    let mut new = wanted.caller();
    // An administrator of one workspace must not gain somebody's rights in others.
    if let (Some(extension), Some(cluster), false) = (api.extension(), cluster, master) {
        extension.confine(&mut new, cluster);
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(*name, HeaderValue::from_static(value));
        }
        all
    }

    #[test]
    fn groups_follow_from_the_name_unless_they_are_given() {
        let acting = |pairs: &[(&'static str, &'static str)]| {
            wanted(Release::V1_35, &headers(pairs), "/").unwrap().unwrap().caller().groups
        };
        assert_eq!(acting(&[("impersonate-user", "bob")]), ["system:authenticated"]);
        assert_eq!(acting(&[("impersonate-user", "system:anonymous")]), ["system:unauthenticated"]);
        assert_eq!(
            acting(&[("impersonate-user", "bob"), ("impersonate-group", "system:unauthenticated")]),
            ["system:unauthenticated"]
        );
        assert_eq!(
            acting(&[("impersonate-user", "system:serviceaccount:ns:bot")]),
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        );
        assert_eq!(
            acting(&[("impersonate-user", "system:serviceaccount:ns:bot"), ("impersonate-group", "g")]),
            ["g", "system:authenticated"]
        );
    }

    #[test]
    fn nothing_can_be_impersonated_without_a_user() {
        assert!(wanted(Release::V1_35, &headers(&[]), "/").unwrap().is_none());
        let refused = |release| wanted(release, &headers(&[("impersonate-group", "g")]), "/api").err().unwrap();
        let why = "requested [{Group  g    }] without impersonating a user";
        assert_eq!((refused(Release::V1_35).code, &*refused(Release::V1_35).message), (400, why));
        assert_eq!(refused(Release::V1_34).message, format!("Internal Server Error: \"/api\": {why}\n"));
    }

    #[test]
    fn every_part_needs_a_right_of_its_own() {
        let pairs = [
            ("impersonate-user", "system:serviceaccount:ns:bot"),
            ("impersonate-group", "g"),
            ("impersonate-extra-example.com%2fkey", "v"),
            ("impersonate-uid", "1"),
        ];
        let all = wanted(Release::V1_35, &headers(&pairs), "/").unwrap().unwrap().attributes();
        let shown: Vec<_> = all
            .iter()
            .map(|a| format!("{}/{}/{} {}/{}", a.group, a.resource, a.subresource, a.namespace, a.name))
            .collect();
        assert_eq!(
            shown,
            [
                "/serviceaccounts/ ns/bot",
                "/groups/ /g",
                "authentication.k8s.io/userextras/example.com/key /v",
                "authentication.k8s.io/uids/ /1"
            ]
        );
    }
}
