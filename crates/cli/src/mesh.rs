//! Everything that speaks of platform-mesh.io: its APIs are young, and what changes of them changes here.
//!
//! ```text
//!  flags ──▶ card         what a provider says of itself: the ProviderMetadata
//!        ──▶ portal       list, form and details of a kind: the ContentConfiguration
//!        ──▶ permissions  roles of people in the portal: the ProviderPermissions
//!        ──▶ home         the Provider, whose workspace the mesh makes, and the policy that says who may bind
//!        ──▶ served       the type of a workspace, and whether it serves the mesh's kinds
//!        ──▶ broker       AcceptAPIs, by which a broker learns which orders come here
//!        ──▶ managed      the ManagedProvider, which does all of it with the chart
//! ```

pub(crate) mod broker;
pub(crate) mod card;
pub(crate) mod flags;
pub(crate) mod home;
pub(crate) mod managed;
pub(crate) mod permissions;
pub(crate) mod portal;
pub(crate) mod served;

/// Group of what the portal shows.
pub const UI: &str = "ui.platform-mesh.io";
/// Group of providers and of the roles of people.
pub const PROVIDERS: &str = "providers.platform-mesh.io";
/// Group of accounts and policies.
pub const CORE: &str = "core.platform-mesh.io";
/// The version of all three.
pub const VERSION: &str = "v1alpha1";
/// Label that joins an export, its card and its pages: all have the export's name in it.
pub const CONTENT_FOR: &str = "ui.platform-mesh.io/content-for";

/// `<group>/<version>`.
pub fn api_version(group: &str) -> String {
    format!("{group}/{VERSION}")
}

/// Whether people complete objects of a group after they were created, so that these are never changed again.
pub fn is_completed_by_people(group: &str) -> bool {
    group == UI
}

/// What to do if a kind of a group stays unknown.
pub fn hint(group: &str) -> &'static str {
    if group.ends_with("platform-mesh.io") {
        ", which only workspaces of Platform Mesh serve: bind its APIExports there, or leave out --platform-mesh"
    } else {
        ""
    }
}
