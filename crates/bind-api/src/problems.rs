//! Why a condition does not hold: one variant per reason, with the type of the condition, its severity and a message that names the way out.
//!
//! Reasons that kube-bind has are called as there; those that it lacks are marked as ours.

use crate::conditions::{
    CONNECTED, CONSUMER_IN_SYNC, Condition, DRAINED, EXISTING_OBJECTS, EXPORTS_READY, HEALTHY, HEARTBEATING,
    INFORMERS_SYNCED, OBJECTS_SYNCED, PERMISSION_CLAIM, PROVIDER_IN_SYNC, SCHEMA_IN_SYNC, SECRET_VALID, SYNCED,
    Severity, VALID_VERSION,
};

/// Declares an enum of problems with the condition, reason and severity of each.
macro_rules! problems {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$doc:meta])* $variant:ident($condition:ident, $reason:literal, $severity:ident, $message:literal)
                { $($(#[$field_doc:meta])* $field:ident,)* },)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$doc])*
                #[error($message)]
                $variant { $($(#[$field_doc])* $field: String,)* },
            )*
        }

        impl $name {
            /// The type of the condition that does not hold.
            pub fn condition_type(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $condition,)* }
            }

            /// Why, in one word.
            pub fn reason(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $reason,)* }
            }

            /// How severe it is.
            pub fn severity(&self) -> Severity {
                match self { $(Self::$variant { .. } => Severity::$severity,)* }
            }

            /// The condition that says so.
            pub fn condition(&self) -> Condition {
                Condition::fails(self.condition_type(), self.severity(), self.reason(), self.to_string())
            }
        }

        impl From<&$name> for Condition {
            fn from(problem: &$name) -> Self {
                problem.condition()
            }
        }
    };
}

problems! {
    /// What can be wrong with an APIServiceBinding.
    BindingProblem {
        /// The Secret with the kubeconfig does not exist.
        SecretNotFound(SECRET_VALID, "KubeconfigSecretNotFound", Error,
            "kubeconfig secret {secret} not found; create it again, or run kubectl bind deploy") {
            /// Namespace and name.
            secret,
        },
        /// The Secret holds no kubeconfig that can be used.
        SecretInvalid(SECRET_VALID, "KubeconfigSecretInvalid", Error,
            "kubeconfig secret {secret} cannot be used: {problem}") {
            /// Namespace and name.
            secret,
            /// What is wrong, without a word of its content.
            problem,
        },
        /// Objects could not be read in time.
        InformerSyncTimeout(INFORMERS_SYNCED, "InformerSyncTimeout", Error,
            "objects of {what} could not be read yet: {problem}") {
            /// Which objects of which side.
            what,
            /// What the server said last.
            problem,
        },
        /// The heartbeat could not be written.
        HeartbeatFailed(HEARTBEATING, "ClusterBindingUpdateFailed", Warning,
            "the heartbeat could not be written to the provider's ClusterBinding: {problem}") {
            /// What the server said.
            problem,
        },
        /// Another cluster heartbeats with the same identity (ours).
        ForeignHeartbeat(HEARTBEATING, "ForeignHeartbeat", Error,
            "another konnector heartbeats in contract namespace {contract}: {evidence}; give each cluster an identity and a contract of its own") {
            /// The contract namespace.
            contract,
            /// What was seen.
            evidence,
        },
        /// There is no export of this name.
        ExportNotFound(CONNECTED, "APIServiceExportNotFound", Error,
            "APIServiceExport {export} not found on the provider; ask for it with an APIServiceExportRequest, or delete this binding") {
            /// Its name.
            export,
        },
        /// The provider has deleted the export, or is about to (ours).
        ExportWithdrawn(CONNECTED, "APIServiceExportWithdrawn", Error,
            "the provider has withdrawn APIServiceExport {export}: objects stay here, but nothing is synced any more; delete this binding when they are no longer needed") {
            /// Its name.
            export,
        },
        /// The request for the export has failed for good.
        ExportFailed(CONNECTED, "APIServiceExportFailed", Error,
            "the provider has refused APIServiceExport {export}: {problem}") {
            /// Its name.
            export,
            /// The provider's words.
            problem,
        },
        /// A BoundSchema cannot be read or makes no CRD.
        SchemaFetchFailed(CONNECTED, "BoundSchemaFetchFailed", Error,
            "BoundSchema {schema} cannot be used: {problem}") {
            /// Its name.
            schema,
            /// What is wrong.
            problem,
        },
        /// There is a CRD of this name already.
        ForeignCrd(CONNECTED, "ForeignCustomResourceDefinition", Error,
            "CustomResourceDefinition {crd} belongs to {owner} and is left alone; delete it, or this binding") {
            /// Its name.
            crd,
            /// Whom it belongs to.
            owner,
        },
        /// The CRD could not be created.
        CrdCreateFailed(CONNECTED, "CustomResourceDefinitionCreateFailed", Error,
            "CustomResourceDefinition {crd} could not be created: {problem}") {
            /// Its name.
            crd,
            /// What the server said.
            problem,
        },
        /// The CRD could not be updated.
        CrdUpdateFailed(SCHEMA_IN_SYNC, "CustomResourceDefinitionUpdateFailed", Error,
            "CustomResourceDefinition {crd} could not be updated: {problem}") {
            /// Its name.
            crd,
            /// What the server said.
            problem,
        },
        /// The APIExport that APIs should be offered in cannot be used (ours).
        ExportUnavailable(CONNECTED, "APIExportUnavailable", Error, "APIs cannot be offered to workspaces: {problem}") {
            /// What is wrong with it.
            problem,
        },
        /// An export of this name at another provider has the binding (ours).
        NameClash(CONNECTED, "NameClash", Error,
            "APIServiceExport {export} of contract namespace {contract} has no binding of its own: this one belongs to another provider") {
            /// Its name.
            export,
            /// The contract namespace of the export that is left out.
            contract,
        },
        /// The kubeconfig leads to another contract than before (ours).
        ContractChanged(CONNECTED, "ContractChanged", Error,
            "the kubeconfig leads to another contract than before: {change}; delete the binding and create it again if that is meant") {
            /// What is another one.
            change,
        },
        /// The schema of the export has changed in a way that the CRD cannot follow.
        SchemaBroken(SCHEMA_IN_SYNC, "CustomResourceDefinitionUpdateFailed", Error,
            "CustomResourceDefinition {crd} cannot follow the provider's schema: {problem}") {
            /// Its name.
            crd,
            /// What cannot be followed.
            problem,
        },
        /// An object that was there before stands where a claimed one belongs (ours).
        ClaimConflict(PERMISSION_CLAIM, "ClaimConflict", Warning,
            "claimed {resource} {object} is left alone: {problem}") {
            /// The claimed resource.
            resource,
            /// Namespace and name on the consumer.
            object,
            /// What stands in the way.
            problem,
        },
        /// Several of those (ours).
        ClaimConflicts(PERMISSION_CLAIM, "ClaimConflict", Warning, "{problems}") {
            /// What stands in the way of which object.
            problems,
        },
        /// Some objects cannot be synced (ours).
        ObjectsFailing(OBJECTS_SYNCED, "ObjectsFailing", Warning, "{problems}") {
            /// Which ones, and why.
            problems,
        },
        /// Nobody knows what should become of objects that the provider had before (ours).
        ExistingUnknown(EXISTING_OBJECTS, "UnknownExistingObjects", Error, "{problem}") {
            /// What the annotation says, and what it may say.
            problem,
        },
        /// The binding is being deleted, and that takes its time (ours).
        Draining(DRAINED, "Draining", Info, "{progress}") {
            /// What is waited for.
            progress,
        },
        /// The binding is being deleted, and something stands in the way (ours).
        DrainBlocked(DRAINED, "DrainBlocked", Warning, "{problem}") {
            /// What it is, and the way out.
            problem,
        },
        /// The provider claims what nobody here has accepted (ours).
        ClaimsNotAccepted(PERMISSION_CLAIM, "ClaimsNotAccepted", Warning,
            "the provider claims {claims}, and nothing of that is read or written before somebody accepts it: \
             kubectl annotate apiservicebinding {binding} --overwrite kube-bind.io/accepted-claims={marks}") {
            /// What it claims.
            claims,
            /// The binding.
            binding,
            /// What accepts all claims of the binding.
            marks,
        },
        /// A claim cannot be followed (ours).
        ClaimInvalid(PERMISSION_CLAIM, "InvalidPermissionClaim", Error, "claim on {resource} is not followed: {problem}") {
            /// The claimed resource.
            resource,
            /// What is wrong with it.
            problem,
        },
    }
}

problems! {
    /// What can be wrong with an APIServiceBindingBundle.
    BundleProblem {
        /// The Secret with the kubeconfig does not exist.
        SecretNotFound(SECRET_VALID, "KubeconfigSecretNotFound", Error,
            "kubeconfig secret {secret} not found; create it again, or run kubectl bind deploy") {
            /// Namespace and name.
            secret,
        },
        /// The Secret holds no kubeconfig that can be used.
        SecretInvalid(SECRET_VALID, "KubeconfigSecretInvalid", Error,
            "kubeconfig secret {secret} cannot be used: {problem}") {
            /// Namespace and name.
            secret,
            /// What is wrong, without a word of its content.
            problem,
        },
        /// No client could be made for the provider.
        ProviderClientError(SYNCED, "ProviderClientError", Error, "the provider cannot be reached: {problem}") {
            /// What is wrong.
            problem,
        },
        /// The exports could not be listed, or the list is not to be trusted.
        ListExportsFailed(SYNCED, "ListExportsFailed", Error,
            "the exports of contract namespace {contract} are not known, so no binding is deleted: {problem}") {
            /// The contract namespace.
            contract,
            /// What the server said.
            problem,
        },
        /// The bindings could not be listed.
        ListBindingsFailed(SYNCED, "ListBindingsFailed", Error, "the bindings are not known: {problem}") {
            /// What the server said.
            problem,
        },
        /// Some bindings could not be created or deleted.
        SyncErrors(SYNCED, "SyncErrors", Error, "not all bindings are as they should be: {problem}") {
            /// Which ones, and why.
            problem,
        },
    }
}

problems! {
    /// What can be wrong with a ClusterBinding.
    ClusterBindingProblem {
        /// The provider's Secret does not exist.
        ProviderSecretNotFound(SECRET_VALID, "ProviderSecretNotFound", Warning, "provider secret {secret} not found") {
            /// Namespace and name.
            secret,
        },
        /// The provider's Secret holds no kubeconfig that can be used.
        ProviderSecretInvalid(SECRET_VALID, "ProviderSecretInvalid", Warning,
            "provider secret {secret} is not taken over: {problem}") {
            /// Namespace and name.
            secret,
            /// What is wrong, without a word of its content.
            problem,
        },
        /// The konnector's version is not one.
        VersionUnknown(VALID_VERSION, "ParseError", Warning, "konnector version {version:?} cannot be read: {problem}") {
            /// The version.
            version,
            /// What is wrong with it.
            problem,
        },
        /// No konnector was there yet.
        FirstHeartbeatPending(HEALTHY, "FirstHeartbeatPending", Info, "waiting for the first heartbeat") {},
        /// The konnector does not say how often it comes.
        IntervalMissing(HEALTHY, "HeartbeatIntervalMissing", Info, "waiting for the konnector's heartbeat interval") {},
        /// The konnector is overdue.
        HeartbeatTimeout(HEALTHY, "HeartbeatTimeout", Error,
            "no heartbeat within {limit}: the last one was at {last}; check the konnector and its way to this server") {
            /// How long it may stay away.
            limit,
            /// When it was last there.
            last,
        },
        /// The konnector's clock is ahead.
        HeartbeatTimeDrift(HEALTHY, "HeartbeatTimeDrift", Warning,
            "the heartbeat is {ahead} ahead of this clock; set the clocks of both clusters") {
            /// By how much.
            ahead,
        },
    }
}

problems! {
    /// What can be wrong with an APIServiceExport.
    ExportProblem {
        /// A schema is missing.
        SchemaMissing(PROVIDER_IN_SYNC, "BoundSchemaMissing", Error, "BoundSchema {schema} not found") {
            /// Its name.
            schema,
        },
        /// The provider's schema has changed in a way that would break the consumer (ours).
        SchemaHeldBack(PROVIDER_IN_SYNC, "BreakingSchemaChange", Warning,
            "BoundSchema {schema} does not follow the provider's schema: {change}; serve a new version, or let the consumer bind again") {
            /// Its name.
            schema,
            /// What would break.
            change,
        },
        /// Consumers cannot be kept apart, so they may not write (ours).
        WritesRefused(PROVIDER_IN_SYNC, "PolicyMissing", Error,
            "nobody may write {schema}, which is cluster-scoped, because the ValidatingAdmissionPolicy that keeps consumers apart cannot be written: \
             {problem}; give the backend that right (in kcp: claim validatingadmissionpolicies and validatingadmissionpolicybindings in the APIExport \
             kube-bind.io, and accept that in the workspace), or use isolation namespaced") {
            /// Its name.
            schema,
            /// What the server said.
            problem,
        },
        /// There is no binding for it.
        BindingNotFound(CONNECTED, "APIServiceBindingNotFound", Info,
            "no APIServiceBinding {binding} on the consumer") {
            /// Its name.
            binding,
        },
        /// Its schemas cannot be used.
        SchemasNotValid(CONNECTED, "BoundSchemasNotValid", Error, "its schemas cannot be used: {problem}") {
            /// What is wrong.
            problem,
        },
        /// Nobody has said yet whether the consumer's CRDs follow.
        ConsumerUnknown(CONSUMER_IN_SYNC, "Unknown", Info, "the consumer has not said yet whether its schemas follow") {},
        /// There is nothing to follow.
        NotApplicable(CONSUMER_IN_SYNC, "NA", Info, "there is no APIServiceBinding") {},
    }
}

problems! {
    /// What can be wrong with an APIServiceExportRequest.
    RequestProblem {
        /// A schema is not offered.
        SchemaNotFound(EXPORTS_READY, "SchemaNotFound", Error,
            "schema {schema} is not offered; label it kube-bind.io/exported=true") {
            /// Its name.
            schema,
        },
        /// Schemas of different scopes cannot be exported together.
        DifferentScopes(EXPORTS_READY, "DifferentScopes", Error,
            "{cluster} is cluster-scoped and {namespaced} is namespaced; ask for them in two requests") {
            /// A cluster-scoped one.
            cluster,
            /// A namespaced one.
            namespaced,
        },
        /// A resource is asked for without a version (ours).
        NoVersions(EXPORTS_READY, "InvalidResource", Error, "{resource} is asked for without a version; name at least one") {
            /// The resource.
            resource,
        },
        /// Objects without a namespace cannot be kept in the contract's (ours).
        NotNamespaced(EXPORTS_READY, "NotNamespaced", Error,
            "schema {schema} is cluster-scoped, and with isolation Namespaced only namespaced ones can be exported") {
            /// Its name.
            schema,
        },
        /// A namespace is asked for that cannot be served (ours).
        InvalidNamespace(EXPORTS_READY, "InvalidNamespace", Error, "namespace {namespace} cannot be served: {problem}") {
            /// The consumer's namespace.
            namespace,
            /// What is wrong with it.
            problem,
        },
        /// Something is asked for that no ordered template has (ours).
        NotOrdered(EXPORTS_READY, "NotOrdered", Error,
            "{what} is part of no template that was ordered ({templates}); order one that has it, with kubectl bind or a BindableResourcesRequest") {
            /// What is asked for.
            what,
            /// What was ordered.
            templates,
        },
        /// There is an export of that name with other content (ours).
        OtherExport(EXPORTS_READY, "OtherExport", Error,
            "APIServiceExport {export} exists with other resources or claims, which cannot be changed; choose another name") {
            /// Its name.
            export,
        },
        /// Something is claimed that cannot be.
        InvalidClaim(PERMISSION_CLAIM, "InvalidPermissionClaim", Error, "{resource} cannot be claimed: {problem}") {
            /// The claimed resource.
            resource,
            /// What is wrong with the claim.
            problem,
        },
        /// Something is claimed twice.
        DuplicateClaim(PERMISSION_CLAIM, "DuplicatePermissionClaim", Error, "{resource} is claimed twice; put both selectors into one claim") {
            /// The claimed resource.
            resource,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_problem_is_a_condition_with_kube_binds_words() {
        let problem = BindingProblem::ForeignCrd { crd: "widgets.example.io".to_owned(), owner: "nobody".to_owned() };
        assert_eq!(
            serde_json::to_value(Condition::from(&problem)).unwrap(),
            json!({"type": "Connected", "status": "False", "severity": "Error", "reason": "ForeignCustomResourceDefinition",
                "message": "CustomResourceDefinition widgets.example.io belongs to nobody and is left alone; delete it, or this binding"})
        );
        let problem = ClusterBindingProblem::FirstHeartbeatPending {};
        assert_eq!((problem.condition_type(), problem.severity()), (HEALTHY, Severity::Info));
    }
}
