//! Slugs of toolkits that an author names.

use anyhow::{Result, bail};
use heck::ToSnakeCase;
use manifest::is_slug;

/// Maximum length of a slug.
const MAX_SLUG_BYTES: usize = 48;

/// Checks a slug.
///
/// # Errors
/// If it is not one. The error has the rule, and the slug that is most like the name.
pub(crate) fn check(slug: &str) -> Result<()> {
    if is_slug(slug) {
        return Ok(());
    }
    let example = suggestion(slug).map(|valid| format!(", for example `{valid}`"));
    bail!(
        "`{slug}` is not a slug; write 2 to 48 of a-z, 0-9 and _, beginning with a letter, not ending with _{}",
        example.unwrap_or_default()
    )
}

/// Returns the slug that is most like a name.
fn suggestion(name: &str) -> Option<String> {
    let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), " ");
    let mut slug = plain
        .to_snake_case()
        .trim_start_matches(|c: char| !c.is_ascii_lowercase())
        .to_owned();
    slug.truncate(MAX_SLUG_BYTES);
    let slug = slug.trim_end_matches('_');
    is_slug(slug).then(|| slug.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_slug_suggests_a_valid_one() {
        for (name, example) in [
            ("Bad Name", "_, for example `bad_name`"),
            ("7zip-tools", "_, for example `zip_tools`"),
            ("name_", "_, for example `name`"),
            ("ß", "not ending with _"),
        ] {
            let refused = check(name).unwrap_err().to_string();
            assert!(refused.ends_with(example), "{refused}");
        }
        check("bad_name").unwrap();
    }
}
