//! The messages of built-in kinds, read from a table that `e2e/protobuf` makes from Kubernetes' Go types.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("messages.txt");

/// The message of a schema, which the forms of schemas refer to.
const SCHEMA: &str = "apiextensions.JSONSchemaProps";

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// How one value is encoded, and what it is in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Int32,
    Int64,
    Flag,
    Double,
    /// Base64 in JSON.
    Bytes,
    /// A message with seconds and nanoseconds.
    Time,
    MicroTime,
    /// A message with a text.
    Quantity,
    /// A number or a text.
    IntOrText,
    /// A message that carries JSON in its first field.
    Json,
    /// A message with a list of texts.
    Texts,
    /// A schema or a list of schemas.
    SchemaOrSchemas,
    SchemaOrFlag,
    SchemaOrTexts,
    /// Another message.
    Message(MessageId),
}

/// A message's place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageId(usize);

impl MessageId {
    /// The message itself.
    pub(crate) fn get(self) -> &'static Message {
        &TABLE.messages[self.0]
    }
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    One,
    Many,
    /// Values by name.
    Map,
}

/// One field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(super) number: u64,
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) count: Count,
    /// Its fields belong to the enclosing message.
    pub(crate) inline: bool,
    /// It can be unset; other fields are always sent.
    pub(super) optional: bool,
    /// JSON shows it even if it is empty.
    pub(super) shown: bool,
}

impl Field {
    /// Whether it can be unset.
    pub(crate) fn is_optional(&self) -> bool {
        self.optional
    }

    /// Whether JSON shows it even if it is empty.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown
    }
}

/// One message.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its name, such as `core.PodSpec`.
    pub(crate) name: &'static str,
    /// Whether objects of it stand alone.
    is_kind: bool,
    /// Its fields, by number.
    pub(crate) fields: Vec<Field>,
}

impl Message {
    pub(super) fn field(&self, number: u64) -> Option<&Field> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok().map(|index| &self.fields[index])
    }
}

struct Table {
    messages: Vec<Message>,
    names: HashMap<&'static str, MessageId>,
    /// Packages by API version.
    packages: HashMap<&'static str, &'static str>,
}

impl Table {
    fn read() -> Self {
        let lines = || TEXT.lines().filter(|line| !line.starts_with('#'));
        let packages = lines().filter_map(|line| line.split_once(" = ")).collect();
        let parts: Vec<(&str, &str)> = lines().filter_map(|line| line.split_once(": ")).collect();
        let plain = |name: &'static str| name.trim_end_matches('!');
        let names: HashMap<_, _> =
            parts.iter().enumerate().map(|(index, (name, _))| (plain(name), MessageId(index))).collect();
        let message = |(name, fields): &(&'static str, &'static str)| Message {
            name: plain(name),
            is_kind: name.ends_with('!'),
            fields: fields.split("; ").filter_map(|text| field(text, &names)).collect(),
        };
        Self { messages: parts.iter().map(message).collect(), names, packages }
    }
}

fn field(text: &'static str, names: &HashMap<&'static str, MessageId>) -> Option<Field> {
    let mut parts = text.split(' ');
    let (number, name, form) = (parts.next()?, parts.next()?, parts.next()?);
    let (count, form) = match (form.strip_prefix("[]"), form.strip_prefix("{}")) {
        (Some(item), _) => (Count::Many, item),
        (_, Some(item)) => (Count::Map, item),
        _ => (Count::One, form),
    };
    let form = match form {
        "text" => Form::Text,
        "int32" => Form::Int32,
        "int64" => Form::Int64,
        "flag" => Form::Flag,
        "double" => Form::Double,
        "bytes" => Form::Bytes,
        "time" => Form::Time,
        "microtime" => Form::MicroTime,
        "quantity" => Form::Quantity,
        "intstr" => Form::IntOrText,
        "json" => Form::Json,
        "texts" => Form::Texts,
        "schema|schemas" => Form::SchemaOrSchemas,
        "schema|flag" => Form::SchemaOrFlag,
        "schema|texts" => Form::SchemaOrTexts,
        other => Form::Message(*names.get(other.strip_prefix('@')?)?),
    };
    let digits = number.trim_end_matches(['=', '*', '!']);
    Some(Field {
        number: digits.parse().ok()?,
        name,
        form,
        count,
        inline: number.contains('='),
        optional: number.contains('*'),
        shown: number.contains('!'),
    })
}

/// A message such as `apps.Deployment`.
pub(crate) fn named(name: &str) -> Option<&'static Message> {
    TABLE.names.get(name).map(|id| id.get())
}

/// The message of a schema.
pub(super) fn schema() -> Option<&'static Message> {
    named(SCHEMA)
}

/// The message of a kind, if it is a built-in one.
pub(crate) fn kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    // Every group has these options.
    if kind == "DeleteOptions" {
        return named("meta.DeleteOptions");
    }
    let own = TABLE.packages.get(api_version).and_then(|package| named(&format!("{package}.{kind}")));
    // The first document of discovery lacks an API version.
    let general =
        || matches!(api_version, "" | "v1" | "meta.k8s.io/v1").then(|| named(&format!("meta.{kind}"))).flatten();
    own.or_else(general).filter(|message| message.is_kind)
}

/// All kinds with a message, by API version and kind.
#[cfg(test)]
pub(super) fn kinds() -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    for (version, package) in &TABLE.packages {
        for message in TABLE.messages.iter().filter(|message| message.is_kind) {
            if let Some((own, kind)) = message.name.rsplit_once('.')
                && own == *package
            {
                all.push((*version, kind));
            }
        }
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::resource::builtin::builtins;

    #[test]
    fn the_table_is_whole() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#') && line.contains(": "));
        let mut count = 0;
        for line in lines {
            let (name, fields) = line.split_once(": ").unwrap();
            let message = named(name.trim_end_matches('!')).unwrap();
            assert_eq!(message.fields.len(), fields.split("; ").filter(|text| !text.is_empty()).count(), "{name}");
            assert!(message.fields.is_sorted_by_key(|field| field.number), "{name}");
            count += 1;
        }
        assert_eq!(TABLE.messages.len(), count);
        assert!(schema().is_some());
        assert!(kind("v1", "Container").is_none());
        assert!(kind("example.io/v1", "Widget").is_none());
        assert!(kind("apps.example.io/v1", "Deployment").is_none());
        assert!(kind("meta.k8s.io/v1", "PartialObjectMetadataList").is_some());
    }

    #[test]
    fn every_kind_that_is_built_in_has_a_message() {
        for mode in [Mode::Kube, Mode::Kcp] {
            for resource in builtins(mode) {
                let version = resource.api_version(&resource.versions[0].name);
                assert!(kind(&version, &resource.kind).is_some(), "{version} {}", resource.kind);
                let list = kind(&version, &resource.list_kind);
                assert_eq!(list.is_none(), resource.is_review(), "{version} {}", resource.list_kind);
            }
        }
    }
}
