//! What the konnector of a Deployment may do on its own cluster.

use std::collections::{BTreeMap, BTreeSet};

use carrick_bind_api::grant::RolesLine;
use carrick_bind_api::install;
use carrick_bind_api::names::KONNECTOR_NAMESPACE;
use carrick_bind_api::roles::{self, Subject};
use carrick_client::{Client, Resource};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::Asking;
use crate::bind::doctor::facts::KonnectorRights;

/// How many questions are open at a time.
const IN_FLIGHT: usize = 16;

/// A right, as a rule has it: one verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    namespace: String,
    group: String,
    resource: String,
    name: String,
    verb: String,
}

impl Asking {
    /// Whether a konnector may do here what it must; nothing if it works elsewhere, with a kubeconfig.
    pub(super) async fn konnector_rights(&self, client: &Client, deployment: &Value) -> Option<KonnectorRights> {
        let (subject, slice) = konnector(deployment)?;
        let needed = async {
            let mut all = roles::base(&subject);
            let more = carrick_konnector::agent::roles::of_cluster(client, &subject, slice.as_deref());
            all.extend(self.within(more).await.map_err(|error| error.to_string())?);
            Ok::<_, String>(rights(&all))
        };
        let denied = match needed.await {
            Ok(needed) => self.denied_to(client, &subject, needed).await,
            Err(problem) => Err(problem),
        };
        let account = format!("{}/{}", subject.namespace, subject.account);
        Some(KonnectorRights { account, line: RolesLine::new(&subject, slice.as_deref()), denied })
    }

    async fn denied_to(
        &self,
        client: &Client,
        subject: &Subject,
        needed: BTreeSet<Right>,
    ) -> Result<Vec<String>, String> {
        let reviews =
            &Resource::cluster_wide("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
        let asked = stream::iter(needed).map(|right| async move {
            let answer = self.within(client.create(reviews, None, &review(subject, &right))).await;
            let is_allowed = answer.map_err(|error| error.to_string())?["status"]["allowed"] == true;
            Ok::<_, String>((!is_allowed).then_some(right))
        });
        let all: Vec<Option<Right>> = asked.buffered(IN_FLIGHT).try_collect().await?;
        Ok(shown(all.into_iter().flatten()))
    }
}

/// Who the konnector of a Deployment is, and the slice that it serves; nothing if it works with a kubeconfig.
fn konnector(deployment: &Value) -> Option<(Subject, Option<String>)> {
    let pod = &deployment["spec"]["template"]["spec"];
    let words = |field: &str| pod["containers"][0][field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = words("command").chain(words("args")).collect();
    let flag = |name: &str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let rest = word.strip_prefix(name)?;
            let value = if rest.is_empty() { words.get(at + 1).copied() } else { rest.strip_prefix('=') };
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        })
    };
    if flag("--kubeconfig").is_some() {
        return None;
    }
    let usual = install::subject();
    let subject = Subject {
        account: pod["serviceAccountName"].as_str().unwrap_or("default").to_owned(),
        namespace: KONNECTOR_NAMESPACE.to_owned(),
        lease_namespace: flag("--lease-namespace").unwrap_or(usual.lease_namespace),
        lease_name: flag("--lease-name").unwrap_or(usual.lease_name),
    };
    Some((subject, flag("--apiexport-endpointslice-ref")))
}

/// Every single right in some roles.
fn rights(roles: &[Value]) -> BTreeSet<Right> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
    let mut all = BTreeSet::new();
    for role in roles {
        let namespace = text(&role["metadata"]["namespace"]);
        for rule in role["rules"].as_array().into_iter().flatten() {
            let mut names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                names.push(String::new());
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        all.extend(names.iter().map(|name| Right {
                            namespace: namespace.clone(),
                            group: group.clone(),
                            resource: resource.clone(),
                            name: name.clone(),
                            verb: verb.clone(),
                        }));
                    }
                }
            }
        }
    }
    all
}

fn review(subject: &Subject, right: &Right) -> Value {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let accounts = "system:serviceaccounts";
    json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{}:{}", subject.namespace, subject.account),
            "groups": [accounts, format!("{accounts}:{}", subject.namespace), "system:authenticated"],
            "resourceAttributes": {
                "group": right.group, "resource": resource, "subresource": subresource, "name": right.name,
                "namespace": right.namespace, "verb": right.verb,
            },
        },
    })
}

/// Rights in words, those on one resource together.
fn shown(rights: impl IntoIterator<Item = Right>) -> Vec<String> {
    let mut by_resource: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Right { namespace, group, resource, name, verb } in rights {
        let (plural, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if subresource.is_empty() { "" } else { "/" };
        let named = if name.is_empty() { name } else { format!(" {name}") };
        let place = if namespace.is_empty() { namespace } else { format!(" in namespace {namespace}") };
        let what = format!("{plural}{dot}{group}{slash}{subresource}{named}{place}");
        by_resource.entry(what).or_default().push(verb);
    }
    by_resource.into_iter().map(|(what, verbs)| format!("{} {what}", verbs.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_says_who_its_konnector_is_unless_that_works_elsewhere() {
        let deployment = |args: &[&str]| {
            let pod = json!({"serviceAccountName": "k", "containers": [{"args": args}]});
            json!({"spec": {"template": {"spec": pod}}})
        };
        let found = konnector(&deployment(&["--lease-namespace=l", "--apiexport-endpointslice-ref", "s"]));
        let (subject, slice) = found.unwrap();
        assert_eq!((subject.account.as_str(), subject.lease_namespace.as_str()), ("k", "l"));
        assert_eq!(slice.as_deref(), Some("s"));
        let (subject, slice) = konnector(&deployment(&["--kubeconfig="])).unwrap();
        assert_eq!((subject.lease_namespace.as_str(), slice), ("kube-bind", None));
        assert!(konnector(&deployment(&["--kubeconfig", "/etc/k"])).is_none());
    }

    #[test]
    fn rights_are_shown_by_resource() {
        let role = json!({"metadata": {"namespace": "n"}, "rules": [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get", "list"]},
            {"apiGroups": ["g"], "resources": ["things/status"], "verbs": ["update"]}]});
        let all = shown(rights(&[role]));
        assert_eq!(all, ["get, list secrets a in namespace n", "update things.g/status in namespace n"]);
    }
}
