//! The words in which consumers are told what happened.

use super::{Event, ObjectAddress};

/// Reason and message of an event, as the reference agent words them.
pub fn texts(event: Event) -> (&'static str, &'static str) {
    match event {
        Event::Accepted => ("ObjectAccepted", "Object has been seen by the service provider."),
        Event::Placed => ("ObjectPlaced", "Object has been placed."),
        Event::Synced => ("ObjectSynced", "The current desired state of the object has been synchronized."),
        Event::StatusSynced => ("ObjectStatusSynced", "The current object status has been updated."),
        Event::Cleanup => ("ObjectCleanup", "Object deletion has been started."),
        Event::Pruned => ("ObjectCleanup", "Deleted orphaned copy of a related resource."),
        Event::Deleted => ("ObjectDeleted", "Object deletion has been completed, finalizer has been removed."),
        Event::Released => ("ObjectReleased", "Object is not synchronized any more, finalizer has been removed."),
        Event::StatusSubresourceMissing => (
            "StatusSubresourceMissing",
            "Cannot sync status: the destination resource does not have a status subresource. Set syncStatus: false or add subresources.status to the CRD.",
        ),
        Event::StatusAltered => (
            "StatusAltered",
            "The status was stored differently from how it was reported: its schema lacks some of the fields, or has defaults for others.",
        ),
        Event::StatusRefused => (
            "StatusRefused",
            "The reported status was refused, because it does not fit the schema. It is sent again when it changes.",
        ),
    }
}

/// A notice about a status that was refused.
pub fn refused_status(at: &ObjectAddress) -> String {
    format!("the status of {at} was refused, because it does not fit the schema; it is sent again when it changes")
}
