//! What a provider needs.

use serde_json::{Value, json};

use super::build::{
    OldVersion, Presentation, age_column, anything, column, crd, immutable, list, object, ready_column, required,
    some_text, text, time, with, word,
};
use super::parts::{
    VERSION_PATTERN, conditions, conditions_status, local_secret, namespaces, permission_claims, phase, resources,
    schema_update_policy, standard_conditions,
};
use crate::kinds::{
    API_SERVICE_EXPORT, API_SERVICE_EXPORT_REQUEST, API_SERVICE_EXPORT_TEMPLATE, API_SERVICE_NAMESPACE,
    BINDABLE_RESOURCES_REQUEST, BOUND_SCHEMA, CLUSTER, CLUSTER_BINDING, COLLECTION,
};

const SCOPES: &[&str] = &["Cluster", "Namespaced"];

fn binding_kind(columns: Vec<Value>, v1alpha1: OldVersion) -> Presentation {
    Presentation { short_names: &[], categories: &["kube-bindings"], columns, v1alpha1 }
}

fn catalogue_kind(columns: Vec<Value>) -> Presentation {
    Presentation { short_names: &[], categories: &["kube-bind"], columns, v1alpha1: OldVersion::Never }
}

pub(super) fn export_request() -> Value {
    let spec = object(
        "What is asked for.",
        [
            ("resources", immutable(resources(), "resources")),
            ("permissionClaims", immutable(permission_claims(), "permissionClaims")),
            ("namespaces", immutable(namespaces(), "namespaces")),
            ("schemaUpdatePolicy", immutable(schema_update_policy(), "schemaUpdatePolicy")),
            ("parameters", immutable(anything("Whatever the provider understands."), "parameters")),
        ],
    );
    let status = object(
        "How far it is.",
        [("phase", phase()), ("terminalMessage", text("Why it has failed for good.")), ("conditions", conditions())],
    );
    crd(
        API_SERVICE_EXPORT_REQUEST,
        "Asks for an APIServiceExport of the same name.",
        &binding_kind(vec![ready_column(), age_column()], OldVersion::Alike),
        required(spec, &["resources"]),
        with(status, "default", json!({})),
    )
}

pub(super) fn export() -> Value {
    let isolations = &["Prefixed", "Namespaced", "None"];
    let isolation = word("How consumers are kept apart.", isolations);
    let old = word("The old name of isolation.", isolations);
    let scope = word("What the konnector may watch.", SCOPES);
    let spec = object(
        "What is exported.",
        [
            ("resources", immutable(resources(), "resources")),
            ("permissionClaims", immutable(permission_claims(), "permissionClaims")),
            ("informerScope", immutable(scope, "informerScope")),
            ("isolation", immutable(isolation, "isolation")),
            ("clusterScopedIsolation", immutable(old, "clusterScopedIsolation")),
        ],
    );
    let established = column("Established", ".status.conditions[?(@.type==\"Established\")].status");
    crd(
        API_SERVICE_EXPORT,
        "Gives one consumer the APIs that it lists.",
        &binding_kind(vec![with(established, "priority", json!(5)), age_column()], OldVersion::Different),
        required(spec, &["informerScope", "isolation", "resources"]),
        conditions_status(),
    )
}

fn names(about: &str) -> Value {
    let texts = |about: &str| with(list(about, json!({"type": "string"})), "x-kubernetes-list-type", json!("atomic"));
    let names = object(
        about,
        [
            ("plural", text("In URLs.")),
            ("singular", text("For users of kubectl.")),
            ("kind", text("In objects.")),
            ("listKind", text("In lists of objects.")),
            ("shortNames", texts("Abbreviations.")),
            ("categories", texts("Groups of resources.")),
        ],
    );
    required(names, &["kind", "plural"])
}

fn map_list(schema: Value) -> Value {
    with(with(schema, "x-kubernetes-list-type", json!("map")), "x-kubernetes-list-map-keys", json!(["name"]))
}

fn schema_version() -> Value {
    let column = object(
        "A column.",
        [
            ("name", text("Its name.")),
            ("type", text("Its type.")),
            ("format", text("Its format.")),
            ("description", text("What it shows.")),
            (
                "priority",
                json!({"type": "integer", "format": "int32", "description": "Columns above 0 are for wide tables."}),
            ),
            ("jsonPath", text("Where its content is.")),
        ],
    );
    let scale = object(
        "How the resource is scaled.",
        [
            ("specReplicasPath", text("Where the wanted number is.")),
            ("statusReplicasPath", text("Where the real number is.")),
            ("labelSelectorPath", text("Where the selector is.")),
        ],
    );
    let subresources = object(
        "Its subresources.",
        [
            ("status", anything("There is a status.")),
            ("scale", required(scale, &["specReplicasPath", "statusReplicasPath"])),
        ],
    );
    let schema = anything("The schema, as in a CRD or as in an APIResourceSchema of kcp.");
    let selectable = required(object("A field.", [("jsonPath", text("Where it is."))]), &["jsonPath"]);
    let version = object(
        "A version.",
        [
            ("name", with(some_text("Its name."), "pattern", json!(VERSION_PATTERN))),
            ("served", json!({"type": "boolean", "default": true, "description": "Whether it is served."})),
            ("storage", json!({"type": "boolean", "description": "Whether objects are stored in it."})),
            ("deprecated", json!({"type": "boolean", "description": "Whether clients are warned off it."})),
            ("deprecationWarning", text("The text of that warning.")),
            ("schema", with(schema, "x-kubernetes-map-type", json!("atomic"))),
            ("subresources", subresources),
            (
                "additionalPrinterColumns",
                map_list(list("Columns of tables.", required(column, &["jsonPath", "name", "type"]))),
            ),
            // kube-bind drops them; without them field selectors of the provider's API do not work for consumers.
            ("selectableFields", list("Fields that selectors may use.", selectable)),
        ],
    );
    required(version, &["name", "schema", "served", "storage"])
}

pub(super) fn bound_schema() -> Value {
    let client = object(
        "How to call it.",
        [
            ("url", with(text("Where it is."), "format", json!("uri"))),
            ("caBundle", with(text("Who signs its certificate."), "format", json!("byte"))),
        ],
    );
    let review_versions = list("The versions of reviews that it takes.", json!({"type": "string"}));
    let webhook = object(
        "The webhook.",
        [
            ("clientConfig", client),
            ("conversionReviewVersions", with(review_versions, "x-kubernetes-list-type", json!("atomic"))),
        ],
    );
    let conversion = object(
        "How objects move between versions.",
        [
            ("strategy", word("None or Webhook.", &["None", "Webhook"])),
            ("webhook", required(webhook, &["conversionReviewVersions"])),
        ],
    );
    let rule = "(self.strategy == 'None' && !has(self.webhook)) || (self.strategy == 'Webhook' && has(self.webhook))";
    let conversion = with(
        required(conversion, &["strategy"]),
        "x-kubernetes-validations",
        json!([{"rule": rule, "message": "Webhook must be specified if strategy=Webhook"}]),
    );
    let versions = map_list(list("Its versions.", schema_version()));
    let spec = object(
        "What the API looks like to consumers.",
        [
            ("informerScope", word("What the konnector may watch.", SCOPES)),
            ("group", text("API group, empty for core.")),
            ("names", names("How the resource is called.")),
            ("scope", word("Whether objects live in namespaces.", SCOPES)),
            ("versions", with(versions, "minItems", json!(1))),
            ("conversion", conversion),
        ],
    );
    let status = object(
        "What became of it on the consumer.",
        [
            ("acceptedNames", names("The names it got.")),
            ("storedVersions", list("The versions in which objects were ever stored.", json!({"type": "string"}))),
            (
                "instantiations",
                json!({"type": "integer", "description": "The number of objects; nobody counts them today."}),
            ),
            ("conditions", conditions()),
        ],
    );
    let look = Presentation { short_names: &["bs"], ..binding_kind(vec![age_column()], OldVersion::Never) };
    let spec = required(spec, &["group", "informerScope", "names", "scope", "versions"]);
    crd(BOUND_SCHEMA, "The CRD that a consumer gets, and what became of it.", &look, spec, status)
}

pub(super) fn namespace() -> Value {
    let status = object(
        "What was assigned.",
        [
            ("namespace", text("The provider's namespace; empty as long as there is none.")),
            // kube-bind has none here, so nobody learns why nothing is assigned.
            ("conditions", conditions()),
        ],
    );
    crd(
        API_SERVICE_NAMESPACE,
        "Assigns a namespace of the provider to the consumer's namespace of its name.",
        &binding_kind(vec![column("Namespace", ".status.namespace"), age_column()], OldVersion::Alike),
        json!({"type": "object", "description": "There is nothing to be said."}),
        status,
    )
}

pub(super) fn cluster_binding() -> Value {
    let spec = object(
        "What the provider says to the consumer.",
        [
            (
                "kubeconfigSecretRef",
                immutable(local_secret("The Secret with the consumer's kubeconfig."), "kubeconfigSecretRef"),
            ),
            ("providerPrettyName", some_text("What the provider calls itself.")),
            ("serviceProviderSpec", anything("Whatever the provider wants to keep here.")),
        ],
    );
    let consumer_secret = object(
        "Where the consumer keeps its kubeconfig.",
        [("name", text("Name of the Secret.")), ("namespace", text("Namespace of the Secret."))],
    );
    let status = object(
        "What the konnector says, and the provider about that.",
        [
            ("lastHeartbeatTime", time("When the konnector was last there.")),
            ("heartbeatInterval", text("How often it comes.")),
            ("konnectorVersion", text("Its version.")),
            ("consumerSecretRef", required(consumer_secret, &["name", "namespace"])),
            ("conditions", conditions()),
        ],
    );
    let heartbeat = with(column("Last Heartbeat", ".status.lastHeartbeatTime"), "type", json!("date"));
    let columns =
        vec![column("Konnector Version", ".status.konnectorVersion"), heartbeat, ready_column(), age_column()];
    let mut crd = crd(
        CLUSTER_BINDING,
        "Stands for the consumer: its credentials and its heartbeat.",
        &binding_kind(columns, OldVersion::Alike),
        required(spec, &["kubeconfigSecretRef", "providerPrettyName"]),
        status,
    );
    let rule =
        json!([{"rule": "self.metadata.name == \"cluster\"", "message": "cluster binding name should be cluster"}]);
    for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rule.clone();
    }
    crd
}

pub(super) fn bindable_resources_request() -> Value {
    let identity = object(
        "The consumer.",
        // Go's typed clients write empty texts; the backend says what is wrong with them.
        [("identity", text("What tells it from all others.")), ("prettyName", text("What people call it."))],
    );
    let spec = object(
        "Who asks for a contract.",
        [
            (
                "templateRef",
                required(
                    object("A template that must exist.", [("name", text("Its name; none if empty."))]),
                    &["name"],
                ),
            ),
            ("clusterIdentity", identity),
            ("author", text("Who asks.")),
            ("kubeconfigSecretRef", local_secret("Where to put the answer.")),
            ("ttlAfterFinished", text("How long the request stays once it is done.")),
        ],
    );
    let status = object(
        "How far it is.",
        [
            ("phase", phase()),
            ("namespace", text("The contract namespace.")),
            ("kubeconfigSecretRef", local_secret("The Secret with the answer.")),
            ("completionTime", time("When it was done.")),
            ("conditions", standard_conditions()),
        ],
    );
    let columns = vec![column("Template", ".spec.templateRef.name"), column("Phase", ".status.phase"), age_column()];
    crd(
        BINDABLE_RESOURCES_REQUEST,
        "Asks for a contract; the answer is a Secret.",
        &binding_kind(columns, OldVersion::Never),
        required(spec, &["author", "clusterIdentity"]),
        with(status, "default", json!({})),
    )
}

pub(super) fn template() -> Value {
    let spec = object(
        "What is offered.",
        [
            ("scope", word("Whether objects live in namespaces; for people only.", SCOPES)),
            ("description", text("What it is good for.")),
            ("resources", resources()),
            ("permissionClaims", permission_claims()),
            ("namespaces", namespaces()),
            ("schemaUpdatePolicy", schema_update_policy()),
        ],
    );
    let columns = vec![
        column("Resources", ".spec.resources[*].group"),
        column("PermissionClaims", ".spec.permissionClaims[*].resource"),
        age_column(),
    ];
    crd(
        API_SERVICE_EXPORT_TEMPLATE,
        "A set of APIs that consumers can order.",
        &catalogue_kind(columns),
        required(spec, &["resources", "scope"]),
        conditions_status(),
    )
}

pub(super) fn collection() -> Value {
    let template = required(object("A template.", [("name", text("Its name."))]), &["name"]);
    let templates = with(list("The templates.", template), "minItems", json!(1));
    let spec =
        object("Which templates.", [("description", text("What they have in common.")), ("templates", templates)]);
    let columns =
        vec![column("Description", ".spec.description"), column("Templates", ".spec.templates[*].name"), age_column()];
    crd(COLLECTION, "Groups templates.", &catalogue_kind(columns), required(spec, &["templates"]), conditions_status())
}

pub(super) fn cluster() -> Value {
    crd(
        CLUSTER,
        "Owns the rights of those who may log in.",
        &catalogue_kind(vec![ready_column()]),
        json!({"type": "object", "description": "There is nothing to be said."}),
        conditions_status(),
    )
}
