//! Cursors of lists. A cursor is the name of the last item of a page.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use rmcp::ErrorData;

pub(super) fn encode(last: &str) -> String {
    BASE64.encode(last)
}

pub(super) fn decode(cursor: &str) -> Result<String, ErrorData> {
    let last = BASE64.decode(cursor).ok();
    let last = last.and_then(|name| String::from_utf8(name).ok());
    last.ok_or_else(invalid)
}

/// Returns the error for a cursor that no list has given.
pub(super) fn invalid() -> ErrorData {
    ErrorData::invalid_params("the cursor is not valid: list from the start", None)
}
