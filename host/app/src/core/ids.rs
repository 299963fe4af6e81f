//! Ids: a prefix that names the kind, and twelve random characters.
//!
//! Each kind is a separate type, so that the id of an account cannot be passed as the id of a
//! project. Log ids start with their creation time, so that they sort by it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use store::Time;
use uuid::Uuid;

use crate::{Result, core::errors};

/// The characters of ids, in ASCII order, so that numbers of equal length sort as text. `_` and `-`
/// are left out so that a double click selects a whole id.
const ID_ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Number of characters after the prefix.
const RANDOM_CHARS: usize = 12;
/// Number of characters after the prefix of an unguessable id, enough for 128 random bits.
const UNGUESSABLE_CHARS: usize = 22;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $what:literal, [$prefix:literal $(, $other:literal)*];)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns a new random id.
            #[must_use]
            pub fn random() -> Self {
                Self(format!("{}{}", $prefix, random_text(RANDOM_CHARS)).into())
            }

            /// Parses an id. Fails with [`errors::MALFORMED_ID`] if the text cannot be an id of
            /// this kind.
            pub fn parse(text: &str) -> Result<Self> {
                if well_formed(text, &[$prefix $(, $other)*]) {
                    Ok(Self(text.into()))
                } else {
                    Err(errors::malformed_id($what, $prefix))
                }
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// The id of an organization.
    OrganizationId, "an organization", ["ok_", "org_"];
    /// The id of a project.
    ProjectId, "a project", ["proj_", "pr_"];
    /// The id of a member of the organization.
    MemberId, "a member", ["om_"];
    /// The id of an auth config.
    AuthConfigId, "an auth config", ["ac_"];
    /// The id of a connected account.
    AccountId, "a connected account", ["ca_"];
    /// The id of a trigger instance.
    TriggerInstanceId, "a trigger instance", ["ti_"];
    /// The id of a webhook subscription.
    SubscriptionId, "a webhook subscription", ["ws_"];
    /// The id of a webhook endpoint.
    EndpointId, "a webhook endpoint", ["we_"];
    /// The id of the delivery of an event to a webhook subscription.
    DeliveryId, "a delivery", ["wd_"];
    /// The id of a tool router session.
    SessionId, "a tool router session", ["trs_"];
    /// The id of a run of a recipe.
    RecipeRunId, "a run of a recipe", ["rr_"];
    /// The id of a file.
    FileId, "a file", ["file_", "sfile_"];
    /// The id of an execution and its log record.
    LogId, "a log", ["log_"];
}

/// A generator of ids that do not repeat within a process and need no random bytes per id. These
/// ids are not secret.
#[derive(Debug)]
pub struct Sequence(AtomicU64);

impl Sequence {
    /// Creates a sequence that starts at a random number, so that ids of two processes are unlikely
    /// to collide.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(u64::from_le_bytes(random())))
    }

    /// Returns the next log id. It sorts after all ids of earlier milliseconds.
    #[must_use]
    pub fn log(&self, time: Time) -> LogId {
        let mut text = *b"log_000000000000";
        write_number(&mut text[4..11], u64::try_from(time.0).unwrap_or(0));
        write_number(&mut text[11..], self.0.fetch_add(1, Ordering::Relaxed));
        LogId(ascii_text(&text).into())
    }

    /// Returns the next request id.
    #[must_use]
    pub fn request(&self) -> Arc<str> {
        let mut text = *b"req_00000000000";
        write_number(&mut text[4..], self.0.fetch_add(1, Ordering::Relaxed));
        ascii_text(&text).into()
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new()
    }
}

impl FileId {
    /// Returns a new random id of a file of a tool router session.
    #[must_use]
    pub fn of_session() -> Self {
        Self(format!("sfile_{}", random_text(RANDOM_CHARS)).into())
    }

    /// Returns true for the id of a file of a tool router session.
    #[must_use]
    pub fn is_of_session(&self) -> bool {
        self.0.starts_with("sfile_")
    }
}

impl EndpointId {
    /// Returns a new id that cannot be guessed.
    #[must_use]
    pub fn unguessable() -> Self {
        Self(format!("we_{}", random_text(UNGUESSABLE_CHARS)).into())
    }
}

impl DeliveryId {
    /// Returns the id of the only delivery of an event to a subscription.
    #[must_use]
    pub fn for_event(event: Uuid, subscription: &SubscriptionId) -> Self {
        let subscription = subscription.0.trim_start_matches("ws_");
        Self(format!("wd_{}_{subscription}", event.simple()).into())
    }
}

impl RecipeRunId {
    /// Returns the id of the only run for an event of a trigger instance.
    #[must_use]
    pub fn for_event(event: Uuid) -> Self {
        Self(format!("rr_{}", event.simple()).into())
    }
}

impl LogId {
    /// Returns the time at which the id was created, or `None` if it was not created by a
    /// [`Sequence`].
    #[must_use]
    pub fn time(&self) -> Option<Time> {
        let digits = self.0.strip_prefix("log_")?;
        if digits.len() != RANDOM_CHARS {
            return None;
        }
        let mut digits = digits.bytes().take(7);
        let number = digits.try_fold(0, |number, byte| {
            let digit = ID_ALPHABET.binary_search(&byte).ok()?;
            Some(number * 62 + digit as i64)
        });
        number.map(Time)
    }
}

/// Returns the last `N` digits of a number in base 62, as ASCII characters.
pub(crate) fn number_digits<const N: usize>(number: u64) -> [u8; N] {
    let mut digits = [0; N];
    write_number(&mut digits, number);
    digits
}

/// Returns characters of an id as text.
fn ascii_text(text: &[u8]) -> &str {
    str::from_utf8(text).expect("the characters of ids are ASCII")
}

/// Writes the last digits of a number in base 62, as many as fit.
fn write_number(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = ID_ALPHABET[(number % 62) as usize];
        number /= 62;
    }
}

/// Returns random characters of the alphabet.
#[must_use]
pub fn random_text(length: usize) -> String {
    let bytes = std::iter::repeat_with(random::<32>).flatten();
    // Bytes past the last whole multiple of 62 would make some characters more likely.
    let bytes = bytes.filter(|byte| *byte < 248).take(length);
    bytes
        .map(|byte| char::from(ID_ALPHABET[usize::from(byte % 62)]))
        .collect()
}

/// Returns random bytes of the operating system.
#[must_use]
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .expect("the operating system gives random bytes once it has started");
    bytes
}

fn well_formed(text: &str, prefixes: &[&str]) -> bool {
    let mut rests = prefixes
        .iter()
        .filter_map(|prefix| text.strip_prefix(prefix));
    rests.any(|rest| (RANDOM_CHARS..=64).contains(&rest.len()) && rest.bytes().all(is_allowed))
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_its_kind_parse() {
        let id = AccountId::random();
        assert_eq!(id.as_str().len(), 3 + RANDOM_CHARS);
        assert_eq!(AccountId::parse(id.as_str()).unwrap(), id);
        for text in [
            "",
            "ca_",
            "ca_short",
            "ac_abcdefghijkl",
            "ca_abc/def",
            "ca_a\0b",
            "CA_abcdefghijkl",
        ] {
            assert!(AccountId::parse(text).is_err(), "{text}");
        }
        let malformed = AccountId::parse("ca_nope").unwrap_err();
        let form = "`ca_` and at least 12 letters or digits";
        assert!(malformed.to_string().ends_with(form), "{malformed}");
        ProjectId::parse("pr_abcdefghijkl").unwrap();
        EndpointId::parse(EndpointId::unguessable().as_str()).unwrap();
        let delivery = DeliveryId::for_event(Uuid::nil(), &SubscriptionId::random());
        DeliveryId::parse(delivery.as_str()).unwrap();
    }

    #[test]
    fn log_ids_sort_by_time() {
        let ids = Sequence::new();
        let made: Vec<_> = [
            1_767_225_600_000,
            1_767_225_600_001,
            1_767_225_700_000,
            1_999_999_999_999,
        ]
        .map(|at| ids.log(Time(at)))
        .into();
        assert!(made.is_sorted());
        assert_eq!(made[0].time(), Some(Time(1_767_225_600_000)));
        assert_eq!(LogId::parse("log_abcdefghijkl-").unwrap().time(), None);
        LogId::parse(made[0].as_str()).unwrap();
    }

    #[test]
    fn log_ids_do_not_repeat_within_a_millisecond() {
        let ids = Sequence::new();
        let many: std::collections::HashSet<_> = (0..10_000).map(|_| ids.log(Time(1))).collect();
        assert_eq!(many.len(), 10_000);
    }
}
