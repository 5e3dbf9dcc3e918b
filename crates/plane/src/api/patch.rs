//! Patch.

use super::base::Api;
use super::change::{Change, ChangeSource};
use super::scope::Scope;
use super::write::{WriteOptions, Written};
use crate::caller::Caller;
use crate::config::Mode;
use crate::patch::Patch;
use crate::status::Status;

/// Media types of patches for custom kinds.
const CUSTOM_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+yaml",
];

/// The patch types that custom kinds accept; kcp's list ends with the same type twice.
pub(crate) fn custom_patches(mode: Mode) -> &'static [&'static str] {
    if mode == Mode::Kcp { &CUSTOM_TYPES[..] } else { &CUSTOM_TYPES[..3] }
}

impl Api {
    /// Changes an object, or one of its subresources.
    pub fn patch(
        &self,
        caller: &Caller,
        scope: &Scope,
        name: &str,
        subresource: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        let source = match patch {
            Patch::Strategic(patch) => ChangeSource::Strategic(patch),
            _ => ChangeSource::Patch,
        };
        let change = Change { caller, scope, name, subresource, options, source };
        match patch {
            Patch::Apply(config) => self.apply(caller, scope, name, subresource, config, options),
            Patch::Strategic(_) if scope.resource.is_custom() => {
                Err(Status::unsupported_media(custom_patches(self.mode)))
            }
            _ => self.modify(&change, |current| patch.apply_to(current)),
        }
    }
}
