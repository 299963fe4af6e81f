//! User ids: a project's own identifiers for its users.

use crate::{Result, accounts::errors};

/// Default user id of requests.
pub const DEFAULT_USER: &str = "default";

/// Maximum length of a user id in characters.
pub(super) const MAX_USER_ID_CHARS: usize = 256;

/// Returns the user id of a request. Fails if the user id is longer than 256 characters.
pub fn parse_user_id(given: Option<&str>) -> Result<String> {
    let user = given
        .map(str::trim)
        .filter(|user| !user.is_empty())
        .unwrap_or(DEFAULT_USER);
    if user.chars().count() > MAX_USER_ID_CHARS {
        return Err(errors::invalid("user_id: at most 256 characters"));
    }
    Ok(user.to_owned())
}
