//! User ids: a project's own identifiers for its users.

use crate::{Result, accounts::errors};

/// Default user id of requests.
pub const DEFAULT_USER: &str = "default";

/// Maximum length of a user id in characters.
pub const MAX_USER_ID_CHARS: usize = 256;

/// Returns the user id of a request, or the default without one. Fails if it is blank, because a request
/// with a missing value would act for another user, or longer than [`MAX_USER_ID_CHARS`].
pub fn parse_user_id(given: Option<&str>) -> Result<String> {
    let user = given.unwrap_or(DEFAULT_USER).trim();
    match user.chars().count() {
        0 => Err(errors::invalid("user_id: must have at least one character")),
        1..=MAX_USER_ID_CHARS => Ok(user.to_owned()),
        _ => Err(errors::invalid(format!(
            "user_id: at most {MAX_USER_ID_CHARS} characters"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ids_are_limited_in_characters() {
        assert!(parse_user_id(Some(&"é".repeat(MAX_USER_ID_CHARS))).is_ok());
        assert!(parse_user_id(Some(&"é".repeat(MAX_USER_ID_CHARS + 1))).is_err());
    }
}
