//! One object as a cache keeps it: a few header fields and compact bytes.

mod body;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;
use carrick_json::TooDeep;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::resource::Resource;

pub(crate) use body::{Body, Packed};

/// Where kcp records in which logical cluster an object is; whether the feature `kcp` is on or not.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

/// One object: its key and version decoded, the rest as JSON bytes without `managedFields`.
///
/// A `serde_json::Value` of a small object takes more than ten times the room, so caches hold this and decode on use.
#[derive(Clone)]
pub struct Object {
    /// Logical cluster, from annotation `kcp.io/cluster`; empty on servers that have none.
    pub cluster: Arc<str>,
    /// Namespace; empty for cluster-wide objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// Resource version.
    pub resource_version: Arc<str>,
    /// `metadata.generation`; 0 if the kind has none.
    pub generation: i64,
    deleting: bool,
    /// Why only its metadata is there; small, because there are many objects.
    lacks: Option<Lacks>,
    body: Body,
}

/// Why there is only the metadata of an object.
#[derive(Clone, Copy)]
enum Lacks {
    /// It nests so many levels, which is too deep.
    TooDeep(NonZeroU32),
    /// There is no room for so many bytes, and perhaps none for all of its finalizers.
    NoRoom { bytes: u32, finalizers_cut: bool },
}

/// How many bytes of labels, of annotations, of finalizers and of owners an object keeps for which there is no room.
const KEPT: usize = 8 << 10;

/// Why some JSON is no object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoObject {
    /// It is no JSON, or its metadata has wrong types.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It has no `metadata.name`.
    #[error("metadata.name is missing")]
    NoName,
}

impl Object {
    /// The object in a decoded form; `None` if it has no `metadata.name`.
    pub fn from_value(value: &Value) -> Option<Self> {
        // A Value always serialises: its keys are strings and its numbers are finite.
        let text = serde_json::to_string(value).ok()?;
        Self::parse(&text, None).ok()
    }

    /// Reads an object; items of lists lack `apiVersion` and `kind`, which then come from the resource.
    pub(crate) fn parse(text: &str, resource: Option<&Resource>) -> Result<Self, NoObject> {
        let Members(mut top) = serde_json::from_str(text)?;
        let metadata =
            top.iter().find(|(key, _)| key == "metadata").map(|(_, raw)| raw.get()).ok_or(NoObject::NoName)?;
        let metadata = without_managed_fields(metadata)?;
        let header: Header = serde_json::from_str(&metadata)?;
        if header.name.is_empty() {
            return Err(NoObject::NoName);
        }
        let mut extra = String::new();
        if let Some(resource) = resource {
            if !has(&top, "apiVersion") {
                push_member(&mut extra, "apiVersion", &Value::from(resource.api_version()).to_string())?;
                extra.push(',');
            }
            if !has(&top, "kind") {
                push_member(&mut extra, "kind", &Value::from(&*resource.kind).to_string())?;
                extra.push(',');
            }
        }
        top.retain(|(key, _)| key != "metadata");
        let too_deep = top.iter().find_map(|(_, raw)| TooDeep::check(raw.get().as_bytes()).err());
        let too_deep = too_deep.and_then(|found| NonZeroU32::new(u32::try_from(found.levels).unwrap_or(u32::MAX)));
        if too_deep.is_some() {
            // Nobody can read the rest, and whoever takes this for the whole object must get an error: see `read`.
            top.retain(|(key, _)| key == "apiVersion" || key == "kind");
        }
        let mut body = String::with_capacity(if too_deep.is_some() { 0 } else { text.len() });
        body.push('{');
        body.push_str(&extra);
        body.push_str(r#""metadata":"#);
        body.push_str(&metadata);
        for (key, raw) in &top {
            body.push(',');
            push_member(&mut body, key, raw.get())?;
        }
        body.push('}');
        let annotation = |key: &str| header.annotations.as_ref().and_then(|all| all.get(key)).map_or("", |v| &**v);
        Ok(Self {
            cluster: annotation(CLUSTER_ANNOTATION).into(),
            namespace: (*header.namespace).into(),
            name: (*header.name).into(),
            uid: (*header.uid).into(),
            resource_version: (*header.resource_version).into(),
            generation: header.generation,
            deleting: header.deletion_timestamp.is_some(),
            lacks: too_deep.map(Lacks::TooDeep),
            body: Body::Plain(Bytes::from(body.into_bytes().into_boxed_slice())),
        })
    }

    /// The object, decoded; of one that nests too deep only apiVersion, kind and metadata. Whoever needs the whole calls [`Object::read`].
    pub fn value(&self) -> Value {
        // The bytes were valid JSON when the object was made, and not too deep, so this cannot fail.
        carrick_json::from_slice(&self.bytes()).unwrap_or_default()
    }

    /// The whole object, decoded, or why it cannot be.
    pub fn read(&self) -> Result<Value, Error> {
        let failed = |problem: String| Error::Decode { request: format!("object {self:?}"), problem };
        if let Some(problem) = self.problem() {
            return Err(failed(problem));
        }
        carrick_json::from_slice(&self.bytes()).map_err(|error| failed(error.to_string()))
    }

    /// How deep the object nests, if that is too deep to be read.
    pub fn too_deep(&self) -> Option<TooDeep> {
        match self.lacks {
            Some(Lacks::TooDeep(levels)) => Some(TooDeep { levels: levels.get() as usize }),
            _ => None,
        }
    }

    /// How many bytes the object would take in a cache that had no room for it, so that there is only its metadata.
    pub fn left_out(&self) -> Option<usize> {
        match self.lacks {
            Some(Lacks::NoRoom { bytes, .. }) => Some(bytes as usize),
            _ => None,
        }
    }

    /// Whether it was left out with so many finalizers that only some of them are there: whoever writes these would remove the others.
    pub fn lacks_finalizers(&self) -> bool {
        matches!(self.lacks, Some(Lacks::NoRoom { finalizers_cut: true, .. }))
    }

    /// What a cache keeps of an object for which it has no room: apiVersion, kind and metadata, without the long part of labels, annotations,
    /// finalizers and owners. `bytes` is what the whole would take.
    #[must_use]
    pub fn without_content_of(&self, bytes: usize) -> Self {
        self.head(bytes, KEPT)
    }

    /// The same with all of them, for whoever is about to write finalizers. No cache keeps that.
    #[must_use]
    pub fn without_content_for_now(&self, bytes: usize) -> Self {
        self.head(bytes, usize::MAX)
    }

    fn head(&self, bytes: usize, kept: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let json = self.bytes();
        // What is left out is not even decoded: whoever writes large objects must not keep the watch busy.
        let Members(mut members) = serde_json::from_slice(&json).unwrap_or(Members(Vec::new()));
        members.retain(|(key, _)| ["apiVersion", "kind", "metadata"].contains(&key.as_str()));
        let decoded = members.iter().filter_map(|(key, raw)| Some((key, carrick_json::from_str(raw.get()).ok()?)));
        let mut head: BTreeMap<&String, Value> = decoded.collect();
        let mut metadata = head.iter_mut().find(|(key, _)| **key == "metadata").map(|(_, metadata)| metadata);
        let mut finalizers_cut = false;
        for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
            match metadata.as_mut().and_then(|metadata| metadata.get_mut(part)) {
                Some(Value::Object(all)) => shorten(all, kept),
                Some(Value::Array(all)) => finalizers_cut |= shorten_list(all, kept) && part == "finalizers",
                _ => {}
            }
        }
        let text = serde_json::to_string(&head).unwrap_or_default();
        let body = Body::Plain(Bytes::from(text.into_bytes().into_boxed_slice()));
        Self { lacks: self.lacks.or(Some(Lacks::NoRoom { bytes, finalizers_cut })), body, ..self.clone() }
    }

    /// How many bytes its JSON takes in memory.
    pub fn kept(&self) -> usize {
        self.body.kept()
    }

    /// How many bytes its JSON has.
    pub fn length(&self) -> usize {
        self.body.length()
    }

    /// Why it cannot be read as a whole.
    fn problem(&self) -> Option<String> {
        match self.lacks? {
            Lacks::TooDeep(_) => self.too_deep().map(|too_deep| too_deep.to_string()),
            Lacks::NoRoom { bytes, .. } => Some(format!("there is no room for its {bytes} bytes")),
        }
    }

    /// The object decoded into a type.
    pub fn decode<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self.problem() {
            Some(problem) => Err(serde::de::Error::custom(problem)),
            None => carrick_json::from_slice(&self.bytes()),
        }
    }

    /// The object as JSON, without `managedFields`; of one that nests too deep only what [`Object::value`] has.
    pub fn bytes(&self) -> Bytes {
        self.body.bytes()
    }

    /// All labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.metadata().labels.unwrap_or_default()
    }

    /// All annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.metadata().annotations.unwrap_or_default()
    }

    /// The value of one label.
    pub fn label(&self, key: &str) -> Option<String> {
        self.labels().remove(key)
    }

    /// The value of one annotation.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.annotations().remove(key)
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Its JSON as it is kept.
    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The same object, whose names and JSON are kept in another way.
    pub(crate) fn kept_as(&self, cluster: Arc<str>, namespace: Arc<str>, body: Body) -> Self {
        Self { cluster, namespace, body, ..self.clone() }
    }

    fn metadata(&self) -> Metadata {
        #[derive(Default, Deserialize)]
        struct Outer {
            #[serde(default)]
            metadata: Metadata,
        }
        serde_json::from_slice::<Outer>(&self.bytes()).unwrap_or_default().metadata
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let header = |it: &Self| (it.cluster.clone(), it.namespace.clone(), it.name.clone(), it.uid.clone());
        let version = |it: &Self| (it.resource_version.clone(), it.generation, it.deleting);
        header(self) == header(other) && version(self) == version(other) && self.bytes() == other.bytes()
    }
}

impl Eq for Object {}

impl kube::runtime::reflector::Lookup for Object {
    type DynamicType = Resource;

    fn kind(resource: &Resource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.kind)
    }

    fn group(resource: &Resource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.group)
    }

    fn version(resource: &Resource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.version)
    }

    fn plural(resource: &Resource) -> Cow<'_, str> {
        Cow::Borrowed(&resource.plural)
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.name))
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        (!self.namespace.is_empty()).then_some(Cow::Borrowed(&self.namespace))
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.resource_version))
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.uid))
    }
}

impl std::fmt::Debug for Object {
    /// Shows the key only: the body may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}|{}/{}@{}", self.cluster, self.namespace, self.name, self.resource_version)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Header<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    annotations: Option<BTreeMap<String, String>>,
    generation: i64,
    deletion_timestamp: Option<IgnoredAny>,
}

fn without_managed_fields(metadata: &str) -> Result<String, serde_json::Error> {
    let Members(members) = serde_json::from_str(metadata)?;
    let mut text = String::from("{");
    for (key, raw) in members.iter().filter(|(key, _)| key != "managedFields") {
        if text.len() > 1 {
            text.push(',');
        }
        push_member(&mut text, key, raw.get())?;
    }
    text.push('}');
    Ok(text)
}

/// Keeps what is short, as far as there is room; what kcp and its agents have written first.
fn shorten(all: &mut serde_json::Map<String, Value>, mut left: usize) {
    let (of_kcp, others): (Vec<_>, Vec<_>) =
        std::mem::take(all).into_iter().partition(|(key, _)| key.contains("kcp.io/"));
    for (key, value) in of_kcp.into_iter().chain(others) {
        // With what JSON needs around them.
        let length = key.len() + value.as_str().map_or(0, str::len) + 6;
        if let Some(rest) = left.checked_sub(length) {
            left = rest;
            all.insert(key, value);
        }
    }
}

/// The same of a list; true if that is less than all.
fn shorten_list(all: &mut Vec<Value>, mut left: usize) -> bool {
    let before = all.len();
    let is_of_kcp = |value: &Value| value.as_str().is_some_and(|text| text.contains("kcp.io/"));
    let (of_kcp, others): (Vec<_>, Vec<_>) = std::mem::take(all).into_iter().partition(is_of_kcp);
    for value in of_kcp.into_iter().chain(others) {
        let length = value.as_str().map_or_else(|| value.to_string().len(), str::len) + 3;
        let Some(rest) = left.checked_sub(length) else { break };
        left = rest;
        all.push(value);
    }
    all.len() < before
}

fn has(members: &[(String, &RawValue)], wanted: &str) -> bool {
    members.iter().any(|(key, raw)| key == wanted && raw.get() != r#""""#)
}

fn push_member(text: &mut String, key: &str, raw: &str) -> Result<(), serde_json::Error> {
    text.push_str(&serde_json::to_string(key)?);
    text.push(':');
    text.push_str(raw);
    Ok(())
}

/// The members of a JSON object in their order, values not decoded. Of keys that come twice, servers take the last.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, _)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    match members.iter_mut().find(|(known, _)| *known == key) {
                        Some(known) => known.1 = value,
                        None => members.push((key, value)),
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn managed_fields_go_and_the_rest_stays() {
        let full = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a\"b": "c"},
            "metadata": {
                "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 3,
                "annotations": {"kcp.io/cluster": "abc"}, "labels": {"l": "v"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"manager": "m"}],
            },
        });
        let object = Object::from_value(&full).unwrap();
        let mut wanted = full.clone();
        wanted["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(object.value(), wanted);
        assert_eq!(format!("{object:?}"), "abc|ns/n@7");
        assert_eq!((object.uid.as_ref(), object.generation, object.is_deleting()), ("u", 3, true));
        assert_eq!(object.label("l").as_deref(), Some("v"));
        assert_eq!(object.annotation("kcp.io/cluster").as_deref(), Some("abc"));
        assert_eq!(object.label("other"), None);
    }

    #[test]
    fn list_items_get_their_kind_back() {
        let secrets = Resource::namespaced("", "v1", "Secret", "secrets");
        let bare = r#"{"metadata":{"name":"n","labels":null,"annotations":null}}"#;
        let object = Object::parse(bare, Some(&secrets)).unwrap();
        assert_eq!(object.value()["kind"], "Secret");
        assert_eq!(object.value()["apiVersion"], "v1");
        assert_eq!(object.cluster.as_ref(), "");
        assert!(!object.is_deleting() && object.labels().is_empty());
        let complete = r#"{"kind":"X","apiVersion":"y/v1","metadata":{"name":"n"}}"#;
        assert_eq!(Object::parse(complete, Some(&secrets)).unwrap().value()["kind"], "X");
    }

    #[test]
    fn an_object_without_room_is_known_by_its_metadata_and_says_so() {
        let long = "x".repeat(200_000);
        let full = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"long": &long},
            "metadata": {
                "name": "n", "uid": "u", "resourceVersion": "7", "finalizers": ["f"],
                "labels": {"l": "v"}, "annotations": {"a": &long, "b": "short", "kcp.io/cluster": "abc"},
            },
        });
        let whole = Object::from_value(&full).unwrap();
        let head = whole.without_content_of(whole.kept());
        assert_eq!((whole.left_out(), head.left_out()), (None, Some(whole.kept())));
        assert!(head.kept() < 1_000 && whole.length() > 400_000, "{}", head.kept());
        assert_eq!(head.value()["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(head.annotations().keys().collect::<Vec<_>>(), ["b", "kcp.io/cluster"]);
        assert_eq!((head.cluster.as_ref(), head.resource_version.as_ref()), ("abc", "7"));
        // Nobody takes it for the whole object.
        assert!(head.read().unwrap_err().to_string().contains("no room"));
        assert!(head.decode::<Value>().is_err());
    }

    #[test]
    fn no_part_of_the_metadata_of_an_object_without_room_is_long() {
        let finalizers: Vec<String> =
            (0..5_000).map(|number| format!("x.io/{number}")).chain(["a.kcp.io/ours".to_owned()]).collect();
        let owners: Vec<Value> = (0..5_000)
            .map(|number| json!({"apiVersion": "v1", "kind": "X", "name": "n", "uid": number.to_string()}))
            .collect();
        let annotations: serde_json::Map<String, Value> =
            (0..5_000).map(|number| (format!("a{number}"), json!("b"))).collect();
        let full = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "finalizers": &finalizers,
            "ownerReferences": owners, "annotations": &annotations, "labels": &annotations}});
        let whole = Object::from_value(&full).unwrap();
        let head = whole.without_content_of(whole.kept());
        assert!(head.kept() < 5 * KEPT && whole.length() > 300_000, "{} of {}", head.kept(), whole.length());
        assert!(head.lacks_finalizers() && !whole.lacks_finalizers());
        assert_eq!(head.value()["metadata"]["finalizers"][0], "a.kcp.io/ours", "whether it is held is known");
        // Whoever lets go of it has to know all of them.
        let now = whole.without_content_for_now(whole.kept());
        let all = now.value()["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
        assert_eq!((all, now.lacks_finalizers(), now.left_out()), (finalizers.len(), false, Some(whole.kept())));
    }

    /// An object whose spec nests so many levels.
    fn nested(levels: usize) -> String {
        let spec = format!("{}1{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
        format!(r#"{{"kind":"X","apiVersion":"y/v1","metadata":{{"name":"n","deletionTimestamp":"t"}},"spec":{spec}}}"#)
    }

    /// Threads of tests are small, and code is not optimised there.
    fn on_a_large_stack(test: impl FnOnce() + Send + 'static) {
        std::thread::Builder::new().stack_size(carrick_json::STACK).spawn(test).unwrap().join().unwrap();
    }

    #[test]
    fn an_object_is_read_to_the_deepest_level() {
        on_a_large_stack(|| {
            for levels in [2, 128, 129, 500, carrick_json::DEEPEST] {
                let text = nested(levels);
                let object = Object::parse(&text, None).unwrap();
                assert_eq!(object.too_deep(), None, "{levels}");
                let value = object.read().unwrap();
                assert_eq!(carrick_json::depth(value.to_string().as_bytes()), levels);
                assert_eq!((object.value(), object.decode().unwrap()), (value.clone(), value.clone()));
                assert_eq!(Object::from_value(&value).unwrap().read().unwrap(), value);
            }
        });
    }

    #[test]
    fn an_object_that_nests_too_deep_is_known_by_its_metadata_and_says_so() {
        for levels in [carrick_json::DEEPEST + 2, 9_999] {
            let object = Object::parse(&nested(levels), None).unwrap();
            let problem = object.read().unwrap_err().to_string();
            assert!(
                problem.contains("object |/n@") && problem.contains(&format!("{} levels", levels - 1)),
                "{problem}"
            );
            assert!(object.too_deep().is_some() && object.is_deleting() && object.decode::<Value>().is_err());
            let left = json!({"kind": "X", "apiVersion": "y/v1", "metadata": {"name": "n", "deletionTimestamp": "t"}});
            assert_eq!(object.value(), left);
        }
    }

    #[test]
    fn of_keys_that_come_twice_the_last_one_counts() {
        let text = r#"{"metadata":{"name":"first"},"spec":1,"metadata":{"name":"a","name":"last"},"spec":2}"#;
        let object = Object::parse(text, None).unwrap();
        assert_eq!(object.name.as_ref(), "last");
        assert_eq!(object.value(), json!({"metadata": {"name": "last"}, "spec": 2}));
    }

    #[test]
    fn things_without_a_name_are_refused() {
        for text in ["{}", r#"{"metadata":{}}"#, r#"{"metadata":{"name":""}}"#, "[]", "x"] {
            assert!(Object::parse(text, None).is_err(), "{text}");
        }
    }
}
