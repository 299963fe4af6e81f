//! The parts that every module uses: the clock, ids, errors, strict JSON, placeholders, sealed secrets,
//! escaping of invisible characters, misspelled names, caches of what was read, the threads for work
//! on large bodies, the shares of projects in the processors, and tasks that outlive their callers. This
//! module imports no other module of the crate except the [`App`](crate::App) that it is part of.

mod class;
pub mod clock;
pub(crate) mod error;
pub mod errors;
pub mod ids;
pub mod json;
pub(crate) mod large_pages;
pub mod large_work;
pub mod mapping;
pub(crate) mod read_cache;
pub mod request_id;
pub mod shares;
pub mod spelling;
pub mod tasks;
pub mod trace;
pub mod vault;
pub mod visible;

use url::{Host, Url};

/// The value of the project field in records that belong to the whole installation.
pub(crate) const INSTALLATION_PROJECT: &str = "installation";
/// Target of log lines about changes that operators want to trace: keys, members, settings,
/// publications. The lines name ids, never values.
pub(crate) const AUDIT_LOG_TARGET: &str = "toolhost::audit";
/// Length in characters of the shortest secret of which responses show a part.
pub(crate) const MIN_SHOWN_SECRET_CHARS: usize = 8;

/// Replacement for text that [`shown_slug`] does not repeat.
const NOT_A_SLUG: &str = "(not a slug of at most 80 letters, digits, `_` and `-`)";

/// Returns a slug that a caller sent, for use in a message. Text that cannot be a slug is not repeated: it could
/// be a secret.
#[must_use]
pub fn shown_slug(text: &str) -> &str {
    let text = text.trim();
    let is_well_formed = (1..=80).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_well_formed { text } else { NOT_A_SLUG }
}

/// Truncates an untrusted string for use in a message.
#[must_use]
pub fn truncate(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Returns true if the host of a URL is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_no_slug_is_not_shown() {
        for slug in ["github", "GITHUB_LIST-ITEMS_2"] {
            assert_eq!(shown_slug(&format!(" {slug} ")), slug);
        }
        for text in ["", "Bearer abc", "pass.word!", "é", &"a".repeat(81)] {
            assert_eq!(shown_slug(text), NOT_A_SLUG, "{text}");
        }
    }
}
