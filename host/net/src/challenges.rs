//! Challenges of a response that asks for a credential (RFC 9110, section 11.6.1).

use http_auth::{ChallengeRef, parser::ChallengeParser};
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};

/// Returns the challenges of a response, without malformed ones.
pub fn challenges(headers: &HeaderMap) -> impl Iterator<Item = ChallengeRef<'_>> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    let texts = values.filter_map(|value| HeaderValue::to_str(value).ok());
    texts.flat_map(ChallengeParser::new).flatten()
}
