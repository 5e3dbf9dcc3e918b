//! The types that a CRD is read into: their fields, in the order in which Kubernetes shows them.

/// A type with fields.
#[derive(Debug)]
pub(super) struct Record {
    /// Its name in error messages.
    pub name: &'static str,
    pub fields: &'static [Field],
}

/// A field of a record.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name in documents.
    pub key: &'static str,
    /// Its name in values that error messages show.
    pub shown: &'static str,
    pub kind: Kind,
    pub need: FieldPresence,
}

/// When a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPresence {
    /// Always, with an empty value if there is none.
    Always,
    /// Unless it is empty.
    Filled,
    /// Whenever it was given.
    Given,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A text whose type has a name of its own.
    Named(&'static str),
    Flag,
    Int32,
    Int64,
    Float,
    /// Base64.
    Bytes,
    /// Any value.
    Any,
    Record(&'static Record),
    /// The record of a schema, which holds further ones.
    Schema,
    List(&'static Kind),
    Map(&'static Kind),
    /// A schema, or true or false.
    SchemaOrFlag,
    /// A schema, or a list of schemas.
    SchemaOrList,
    /// A schema, or a list of texts.
    SchemaOrTexts,
}

impl Kind {
    /// The fields, if it has any.
    pub fn record(self) -> Option<&'static Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Schema => Some(&PROPS),
            _ => None,
        }
    }

    /// The name of the type in error messages.
    pub fn name(self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Named(name) => name.to_owned(),
            Self::Flag => "bool".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Float => "float64".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Any => "v1.JSON".to_owned(),
            Self::Record(record) => format!("v1.{}", record.name),
            Self::Schema => format!("v1.{}", PROPS.name),
            Self::List(Self::Record(record)) if record.name == "ValidationRule" => "v1.ValidationRules".to_owned(),
            Self::List(kind) => format!("[]{}", kind.name()),
            Self::Map(kind) => format!("map[string]{}", kind.name()),
            Self::SchemaOrFlag => "v1.JSONSchemaPropsOrBool".to_owned(),
            Self::SchemaOrList => "v1.JSONSchemaPropsOrArray".to_owned(),
            Self::SchemaOrTexts => "v1.JSONSchemaPropsOrStringArray".to_owned(),
        }
    }
}

const fn always(key: &'static str, shown: &'static str, kind: Kind) -> Field {
    Field { key, shown, kind, need: FieldPresence::Always }
}

const fn filled(key: &'static str, shown: &'static str, kind: Kind) -> Field {
    Field { key, shown, kind, need: FieldPresence::Filled }
}

const fn given(key: &'static str, shown: &'static str, kind: Kind) -> Field {
    Field { key, shown, kind, need: FieldPresence::Given }
}

const TEXTS: Kind = Kind::List(&Kind::Text);
const SCHEMAS: Kind = Kind::List(&Kind::Schema);
const NAMED_SCHEMAS: Kind = Kind::Map(&Kind::Schema);

/// `spec` of a CRD.
pub(super) static SPEC: Record = Record {
    name: "CustomResourceDefinitionSpec",
    fields: &[
        always("group", "Group", Kind::Text),
        always("names", "Names", Kind::Record(&NAMES)),
        always("scope", "Scope", Kind::Named("v1.ResourceScope")),
        always("versions", "Versions", Kind::List(&Kind::Record(&VERSION))),
        given("conversion", "Conversion", Kind::Record(&CONVERSION)),
        filled("preserveUnknownFields", "PreserveUnknownFields", Kind::Flag),
    ],
};

static NAMES: Record = Record {
    name: "CustomResourceDefinitionNames",
    fields: &[
        always("plural", "Plural", Kind::Text),
        filled("singular", "Singular", Kind::Text),
        filled("shortNames", "ShortNames", TEXTS),
        always("kind", "Kind", Kind::Text),
        filled("listKind", "ListKind", Kind::Text),
        filled("categories", "Categories", TEXTS),
    ],
};

/// An entry of `spec.versions`.
pub(super) static VERSION: Record = Record {
    name: "CustomResourceDefinitionVersion",
    fields: &[
        always("name", "Name", Kind::Text),
        always("served", "Served", Kind::Flag),
        always("storage", "Storage", Kind::Flag),
        filled("deprecated", "Deprecated", Kind::Flag),
        given("deprecationWarning", "DeprecationWarning", Kind::Text),
        given("schema", "Schema", Kind::Record(&VALIDATION)),
        given("subresources", "Subresources", Kind::Record(&SUBRESOURCES)),
        filled("additionalPrinterColumns", "AdditionalPrinterColumns", Kind::List(&Kind::Record(&COLUMN))),
        filled("selectableFields", "SelectableFields", Kind::List(&Kind::Record(&SELECTABLE))),
    ],
};

static VALIDATION: Record =
    Record { name: "CustomResourceValidation", fields: &[given("openAPIV3Schema", "OpenAPIV3Schema", Kind::Schema)] };

static SUBRESOURCES: Record = Record {
    name: "CustomResourceSubresources",
    fields: &[given("status", "Status", Kind::Record(&STATUS)), given("scale", "Scale", Kind::Record(&SCALE))],
};

static STATUS: Record = Record { name: "CustomResourceSubresourceStatus", fields: &[] };

static SCALE: Record = Record {
    name: "CustomResourceSubresourceScale",
    fields: &[
        always("specReplicasPath", "SpecReplicasPath", Kind::Text),
        always("statusReplicasPath", "StatusReplicasPath", Kind::Text),
        given("labelSelectorPath", "LabelSelectorPath", Kind::Text),
    ],
};

static COLUMN: Record = Record {
    name: "CustomResourceColumnDefinition",
    fields: &[
        always("name", "Name", Kind::Text),
        always("type", "Type", Kind::Text),
        filled("format", "Format", Kind::Text),
        filled("description", "Description", Kind::Text),
        filled("priority", "Priority", Kind::Int32),
        always("jsonPath", "JSONPath", Kind::Text),
    ],
};

static SELECTABLE: Record = Record { name: "SelectableField", fields: &[always("jsonPath", "JSONPath", Kind::Text)] };

static CONVERSION: Record = Record {
    name: "CustomResourceConversion",
    fields: &[
        always("strategy", "Strategy", Kind::Named("v1.ConversionStrategyType")),
        given("webhook", "Webhook", Kind::Record(&WEBHOOK)),
    ],
};

static WEBHOOK: Record = Record {
    name: "WebhookConversion",
    fields: &[
        given("clientConfig", "ClientConfig", Kind::Record(&CLIENT)),
        always("conversionReviewVersions", "ConversionReviewVersions", TEXTS),
    ],
};

static CLIENT: Record = Record {
    name: "WebhookClientConfig",
    fields: &[
        given("url", "URL", Kind::Text),
        given("service", "Service", Kind::Record(&SERVICE)),
        filled("caBundle", "CABundle", Kind::Bytes),
    ],
};

static SERVICE: Record = Record {
    name: "ServiceReference",
    fields: &[
        always("namespace", "Namespace", Kind::Text),
        always("name", "Name", Kind::Text),
        given("path", "Path", Kind::Text),
        given("port", "Port", Kind::Int32),
    ],
};

/// A schema.
pub(super) static PROPS: Record = Record {
    name: "JSONSchemaProps",
    fields: &[
        filled("id", "ID", Kind::Text),
        filled("$schema", "Schema", Kind::Named("v1.JSONSchemaURL")),
        given("$ref", "Ref", Kind::Text),
        filled("description", "Description", Kind::Text),
        filled("type", "Type", Kind::Text),
        filled("nullable", "Nullable", Kind::Flag),
        filled("format", "Format", Kind::Text),
        filled("title", "Title", Kind::Text),
        given("default", "Default", Kind::Any),
        given("maximum", "Maximum", Kind::Float),
        filled("exclusiveMaximum", "ExclusiveMaximum", Kind::Flag),
        given("minimum", "Minimum", Kind::Float),
        filled("exclusiveMinimum", "ExclusiveMinimum", Kind::Flag),
        given("maxLength", "MaxLength", Kind::Int64),
        given("minLength", "MinLength", Kind::Int64),
        filled("pattern", "Pattern", Kind::Text),
        given("maxItems", "MaxItems", Kind::Int64),
        given("minItems", "MinItems", Kind::Int64),
        filled("uniqueItems", "UniqueItems", Kind::Flag),
        given("multipleOf", "MultipleOf", Kind::Float),
        filled("enum", "Enum", Kind::List(&Kind::Any)),
        given("maxProperties", "MaxProperties", Kind::Int64),
        given("minProperties", "MinProperties", Kind::Int64),
        filled("required", "Required", TEXTS),
        given("items", "Items", Kind::SchemaOrList),
        filled("allOf", "AllOf", SCHEMAS),
        filled("oneOf", "OneOf", SCHEMAS),
        filled("anyOf", "AnyOf", SCHEMAS),
        given("not", "Not", Kind::Schema),
        filled("properties", "Properties", NAMED_SCHEMAS),
        given("additionalProperties", "AdditionalProperties", Kind::SchemaOrFlag),
        filled("patternProperties", "PatternProperties", NAMED_SCHEMAS),
        filled("dependencies", "Dependencies", Kind::Map(&Kind::SchemaOrTexts)),
        given("additionalItems", "AdditionalItems", Kind::SchemaOrFlag),
        filled("definitions", "Definitions", NAMED_SCHEMAS),
        given("externalDocs", "ExternalDocs", Kind::Record(&DOCS)),
        given("example", "Example", Kind::Any),
        given("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Kind::Flag),
        filled("x-kubernetes-embedded-resource", "XEmbeddedResource", Kind::Flag),
        filled("x-kubernetes-int-or-string", "XIntOrString", Kind::Flag),
        filled("x-kubernetes-list-map-keys", "XListMapKeys", TEXTS),
        given("x-kubernetes-list-type", "XListType", Kind::Text),
        given("x-kubernetes-map-type", "XMapType", Kind::Text),
        filled("x-kubernetes-validations", "XValidations", Kind::List(&Kind::Record(&RULE))),
    ],
};

static DOCS: Record = Record {
    name: "ExternalDocumentation",
    fields: &[filled("description", "Description", Kind::Text), filled("url", "URL", Kind::Text)],
};

/// An entry of `x-kubernetes-validations`.
pub(super) static RULE: Record = Record {
    name: "ValidationRule",
    fields: &[
        always("rule", "Rule", Kind::Text),
        filled("message", "Message", Kind::Text),
        filled("messageExpression", "MessageExpression", Kind::Text),
        given("reason", "Reason", Kind::Named("v1.FieldValueErrorReason")),
        filled("fieldPath", "FieldPath", Kind::Text),
        given("optionalOldSelf", "OptionalOldSelf", Kind::Flag),
    ],
};
