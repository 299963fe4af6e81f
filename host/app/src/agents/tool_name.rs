//! Names of tools as assistants see them. Many assistants refuse a name of more than 64 characters,
//! and the slug of a tool may be longer.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// Maximum characters of the name of a tool.
pub const MAX_TOOL_NAME_CHARS: usize = 64;
/// Bytes of the digest that tells shortened names apart.
const DIGEST_BYTES: usize = 4;

/// Returns the name of a tool: its slug, or the beginning of a long slug and a digest of the slug.
#[must_use]
pub fn tool_name(slug: &str) -> Cow<'_, str> {
    if slug.len() <= MAX_TOOL_NAME_CHARS {
        return slug.into();
    }
    let digest = Sha256::digest(slug);
    let beginning: String = slug
        .chars()
        .take(MAX_TOOL_NAME_CHARS - 2 * DIGEST_BYTES - 1)
        .collect();
    format!("{beginning}_{}", hex::encode_upper(&digest[..DIGEST_BYTES])).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_slugs_keep_different_names() {
        let slug = |end: &str| format!("MAIL_{}{end}", "A".repeat(80));
        let names = [slug("B"), slug("C")].map(|slug| tool_name(&slug).into_owned());
        assert!(names.iter().all(|name| name.len() == MAX_TOOL_NAME_CHARS));
        assert_ne!(names[0], names[1]);
        let short = "A".repeat(MAX_TOOL_NAME_CHARS);
        assert_eq!(tool_name(&short), short);
    }
}
