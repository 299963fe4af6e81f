//! The holders of keys, who are the callers of requests.

use std::sync::atomic::{AtomicI64, Ordering};

use store::Time;
use uuid::Uuid;

use super::KeyKind;
use crate::{
    core::ids::OrganizationId,
    projects::{SharedProject, members::Member, permissions::KeyRestrictions},
};

/// The authenticated holder of an API key, who is the caller of a request.
#[derive(Debug)]
pub struct Holder {
    /// The public id of the key.
    pub key_id: String,
    /// The display name of the key.
    pub key_name: String,
    /// The creation time of the key.
    pub key_created_at: Time,
    /// The owner that the key gives access to.
    pub owner: Owner,
    /// The restrictions of the key.
    pub rights: KeyRestrictions,
    /// The name of the organization.
    pub organization_name: String,
    pub(super) owner_id: String,
    /// The id of the key's record, a keyed hash of the key.
    pub(crate) record_id: String,
    /// The time of the last use, in epoch milliseconds.
    pub(super) last_use: AtomicI64,
    /// The last use that was written to the store, in epoch milliseconds.
    pub(super) written_use: AtomicI64,
}

/// The owner that a key gives access to.
#[derive(Debug)]
pub enum Owner {
    /// One project.
    Project(SharedProject),
    /// The organization.
    Organization(OrganizationId),
    /// Every project, with the permissions of this member.
    Member(Box<Member>),
}

impl Holder {
    /// Returns the organization whose quota the request uses.
    #[must_use]
    pub fn organization(&self) -> &OrganizationId {
        match &self.owner {
            Owner::Project(project) => &project.organization,
            Owner::Organization(id) => id,
            Owner::Member(member) => &member.organization,
        }
    }

    /// Returns the kind of the key.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        match &self.owner {
            Owner::Project(_) => KeyKind::Project,
            Owner::Organization(_) => KeyKind::Organization,
            Owner::Member(_) => KeyKind::User,
        }
    }

    /// Returns the id of the key's owner.
    #[must_use]
    pub fn owner_id(&self) -> &str {
        &self.owner_id
    }

    /// Returns a UUID of the key, for clients that expect one. It is the same on every server.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        // The id of the record is a keyed hash of the secret, in hexadecimal digits.
        let digits = self.record_id.get(..32).unwrap_or_default();
        let bits = u128::from_str_radix(digits, 16).unwrap_or_default();
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Records that a request came with the key.
    pub fn record_use(&self, now: Time) {
        self.last_use.store(now.0, Ordering::Relaxed);
    }
}
