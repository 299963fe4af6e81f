//! Names of tools and arguments. They are readable, short, and depend on the operation alone, so
//! that a growing description does not rename existing tools.

use std::collections::{BTreeMap, BTreeSet};

use heck::ToShoutySnakeCase;
use manifest::is_python_keyword;
use sha2::{Digest, Sha256};

use crate::Operation;

/// Largest number of letters of a slug, including the toolkit's name.
const MAX_SLUG_BYTES: usize = 64;
/// Largest number of letters of an argument's name. Model providers accept no longer names.
const MAX_ARGUMENT_BYTES: usize = 64;
/// Number of letters of the hash that replaces the part that was cut off.
const HASH_CHARS: usize = 6;

/// Returns the slug of each operation, in the order of the operations. An operation whose slug is
/// set by the overlay keeps it.
pub(crate) fn slugs(
    toolkit: &str,
    operations: &[Operation],
    given: &BTreeMap<String, String>,
) -> Vec<String> {
    let slugs: Vec<String> = operations
        .iter()
        .map(|operation| slug(toolkit, operation, given))
        .collect();
    let mut seen = BTreeMap::new();
    for slug in &slugs {
        *seen.entry(slug.as_str()).or_insert(0) += 1;
    }
    slugs
        .iter()
        .zip(operations)
        .map(|(slug, operation)| match seen[slug.as_str()] {
            1 => slug.clone(),
            // Several operations have the same name. They are equal in rank, so all get a hash.
            _ => hashed(
                slug,
                &format!("{} {} {}", operation.id, operation.method, operation.path),
            ),
        })
        .collect()
}

fn slug(toolkit: &str, operation: &Operation, given: &BTreeMap<String, String>) -> String {
    let prefix = toolkit.to_ascii_uppercase();
    let name = match given.get(&operation.id) {
        Some(given) => plain(given),
        None => plain(&operation.id.to_shouty_snake_case()),
    };
    let whole = match name.strip_prefix(&format!("{prefix}_")).unwrap_or(&name) {
        "" => format!("{prefix}_{}", hashed("TOOL", &operation.id)),
        suffix => format!("{prefix}_{suffix}"),
    };
    if whole.len() <= MAX_SLUG_BYTES {
        whole
    } else {
        hashed(&whole, &operation.id)
    }
}

/// Reduces a name to A-Z, 0-9 and single `_` between words.
fn plain(text: &str) -> String {
    let words = text
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .map(str::to_ascii_uppercase)
        .collect::<Vec<_>>()
        .join("_")
}

/// Keeps the words that fit, and appends a hash of the whole.
fn hashed(slug: &str, whole: &str) -> String {
    let max_length = MAX_SLUG_BYTES - HASH_CHARS - 1;
    let kept = match slug.get(..max_length) {
        Some(kept) if slug.len() > max_length => {
            kept.rsplit_once('_').map_or(kept, |(words, _)| words)
        }
        _ => slug,
    };
    format!(
        "{}_{}",
        kept.trim_end_matches('_'),
        digest(whole).to_ascii_uppercase()
    )
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest
        .iter()
        .take(HASH_CHARS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns the name of an argument: letters, digits, `_`, `.` and `-`. A keyword of Python gets an
/// underscore at its end.
pub(crate) fn argument(name: &str) -> String {
    let words: String = name
        .trim_end_matches("[]")
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || "_.-".contains(letter) {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let plain = words.trim_matches('_');
    match plain {
        "" => format!("value_{}", digest(name)),
        long if long.len() > MAX_ARGUMENT_BYTES => {
            format!(
                "{}_{}",
                &long[..MAX_ARGUMENT_BYTES - HASH_CHARS - 1],
                digest(name)
            )
        }
        // An underscore of the name itself stays: `_links` is not `links`.
        _ if words.len() <= MAX_ARGUMENT_BYTES && words == name && !is_python_keyword(name) => {
            words
        }
        keyword if is_python_keyword(keyword) => format!("{keyword}_"),
        plain => plain.to_owned(),
    }
}

/// Returns a unique name: `suffix` is added until the name is not taken.
pub(crate) fn distinct(name: String, suffix: &str, taken: &BTreeSet<String>) -> String {
    let mut name = name;
    while taken.contains(&name) {
        name = argument(&format!("{name}_{suffix}"));
    }
    name
}

/// Returns the name of an account's field: `[a-z][a-z0-9_]*`, at most 48 letters.
pub(crate) fn field(name: &str) -> String {
    let lower = plain(name).to_ascii_lowercase();
    let snake = lower.trim_start_matches(|letter: char| !letter.is_ascii_lowercase());
    match snake
        .get(..snake.len().min(48))
        .map(|name| name.trim_end_matches('_'))
    {
        Some("") | None => "value".to_owned(),
        Some(name) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(id: &str) -> Operation {
        let (method, path) = id.split_once(' ').unwrap_or(("GET", "/"));
        Operation {
            id: id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            ..Operation::default()
        }
    }

    fn named(ids: &[&str]) -> Vec<String> {
        let operations: Vec<_> = ids.iter().map(|id| operation(id)).collect();
        slugs("acme", &operations, &BTreeMap::new())
    }

    #[test]
    fn a_tool_is_named_after_its_operation() {
        let expected = [
            ("repos/list-for-user", "ACME_REPOS_LIST_FOR_USER"),
            ("getUserById", "ACME_GET_USER_BY_ID"),
            ("acme_list_items", "ACME_LIST_ITEMS"),
            ("GET /users/{id}/posts", "ACME_GET_USERS_ID_POSTS"),
            ("HTMLToPDF2", "ACME_HTML_TO_PDF2"),
        ];
        for (id, slug) in expected {
            assert_eq!(named(&[id]), [slug], "{id}");
        }
        assert_eq!(
            named(&["größe"])[0]
                .chars()
                .filter(|letter| !letter.is_ascii())
                .count(),
            0
        );
        assert!(named(&["日本"])[0].starts_with("ACME_TOOL_"));
    }

    #[test]
    fn long_slugs_are_shortened_with_distinct_hashes() {
        let long = "projects_locations_collections_data_stores_branches_documents_";
        let names = named(&[&format!("{long}create"), &format!("{long}delete")]);
        assert!(
            names
                .iter()
                .all(|name| name.len() <= 64 && !name.contains("__")),
            "{names:?}"
        );
        assert_ne!(names[0], names[1]);
        assert_eq!(
            named(&[&format!("{long}create")])[0],
            names[0],
            "a name does not depend on the others"
        );
    }

    #[test]
    fn names_do_not_depend_on_order() {
        let forwards = named(&["a/b", "a_b", "c"]);
        let backwards = named(&["c", "a_b", "a/b"]);
        assert_eq!(
            forwards.iter().rev().collect::<Vec<_>>(),
            backwards.iter().collect::<Vec<_>>()
        );
        assert_ne!(forwards[0], forwards[1]);
        assert_eq!(forwards[2], "ACME_C");
    }

    #[test]
    fn argument_names_suit_model_providers() {
        for (name, expected) in [
            ("filter[name]", "filter_name"),
            ("ids[]", "ids"),
            ("$top", "top"),
            ("X-Request-Id", "X-Request-Id"),
            ("_links", "_links"),
            ("a.b", "a.b"),
            ("from", "from_"),
            ("_from", "_from"),
            ("in[]", "in_"),
        ] {
            assert_eq!(argument(name), expected, "{name}");
        }
        assert!(argument("日本").starts_with("value_"));
        assert_eq!(argument(&"x".repeat(200)).len(), 64);
        let taken = BTreeSet::from(["id".to_owned()]);
        assert_eq!(distinct("id".to_owned(), "query", &taken), "id_query");
    }

    #[test]
    fn a_field_has_a_name_that_templates_take() {
        for (name, expected) in [
            ("yourDomain", "yourdomain"),
            ("X-API-Key", "x_api_key"),
            ("9a", "a"),
            ("", "value"),
        ] {
            assert_eq!(field(name), expected, "{name}");
        }
    }
}
