//! WorkspaceType.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::apis::VirtualWorkspace;
use crate::condition::Condition;
use crate::kinds::WORKSPACE_TYPE;
use crate::object::{kind, object, words};

kind! {
    /// A WorkspaceType says what new workspaces of that type contain and where they may be created.
    WorkspaceType = WORKSPACE_TYPE {
        /// The rules of the type.
        spec: WorkspaceTypeSpec => "spec",
        /// What kcp says about it.
        status: WorkspaceTypeStatus => "status",
    }
}

object! {
    /// The rules of a type.
    WorkspaceTypeSpec {
        /// Whether new workspaces wait for an initializer of this type.
        initializer: bool => "initializer",
        /// Whether deleted workspaces wait for a terminator of this type.
        terminator: bool => "terminator",
        /// Other types whose rules apply as well.
        extend: WorkspaceTypeExtension => "extend",
        /// Labels of new workspaces.
        additional_workspace_labels: BTreeMap<String, String> => "additionalWorkspaceLabels",
        /// The type of children that name none.
        default_child_workspace_type: Option<WorkspaceTypeReference> => "defaultChildWorkspaceType",
        /// Which types children may have.
        limit_allowed_children: Option<WorkspaceTypeSelector> => "limitAllowedChildren",
        /// Which types parents may have.
        limit_allowed_parents: Option<WorkspaceTypeSelector> => "limitAllowedParents",
        /// Exports that are bound in new workspaces.
        default_api_bindings: Vec<ApiExportReference> => "defaultAPIBindings",
        /// Whether those bindings follow later changes.
        default_api_binding_lifecycle: BindingLifecycle => "defaultAPIBindingLifecycle",
        /// Who else may log in.
        authentication_configurations: Vec<Value> => "authenticationConfigurations",
        /// What the initializer may do, as rules of RBAC.
        initializer_permissions: Vec<Value> => "initializerPermissions",
        /// What the terminator may do, as rules of RBAC.
        terminator_permissions: Vec<Value> => "terminatorPermissions",
    }
}

object! {
    /// Other types whose rules apply as well.
    WorkspaceTypeExtension {
        /// The types.
        with: Vec<WorkspaceTypeReference> => "with",
    }
}

object! {
    /// A WorkspaceType by workspace and name.
    WorkspaceTypeReference {
        /// Its name.
        name: String => "name",
        /// Path of its workspace; empty for a search in this workspace and those above it.
        path: String => "path",
    }
}

impl WorkspaceTypeReference {
    /// The type of this name in the workspace of this path.
    pub fn new(path: impl Into<String>, name: impl Into<String>) -> Self {
        Self { path: path.into(), name: name.into(), ..Self::default() }
    }
}

object! {
    /// A choice of types.
    WorkspaceTypeSelector {
        /// Not a single one.
        none: bool => "none",
        /// These; any if empty.
        types: Vec<WorkspaceTypeReference> => "types",
    }
}

object! {
    /// An APIExport that is bound in new workspaces.
    ApiExportReference {
        /// Path of its workspace; empty for that of the type.
        path: String => "path",
        /// Its name.
        export: String => "export",
    }
}

words! {
    /// Whether default bindings follow later changes of the type.
    BindingLifecycle {
        /// They are made once.
        InitializeOnly,
        /// They are kept up to date.
        Maintain,
    }
}

object! {
    /// What kcp says about a type.
    WorkspaceTypeStatus {
        /// URLs of the virtual workspaces for initializers and terminators.
        virtual_workspaces: Vec<VirtualWorkspace> => "virtualWorkspaces",
        /// Conditions.
        conditions: Vec<Condition> => "conditions",
    }
}
