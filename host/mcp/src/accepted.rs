//! Media types of responses that a client accepts.

use axum::http::{HeaderMap, HeaderValue, header};
use net::text::essence;

use super::{EVENT_STREAM_MEDIA_TYPE, JSON_MEDIA_TYPE};

/// The header as `rmcp` demands it.
const BOTH_MEDIA_TYPES: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// Kinds of responses that a client accepts (RFC 9110, section 12.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    /// True if it names streams. A client that accepts any type expects one message.
    pub(super) streams: bool,
}

impl Accepted {
    /// Accepts one message alone.
    pub(super) const JSON_ALONE: Self = Self {
        json: true,
        streams: false,
    };

    /// Reads the header. A request without it accepts any type.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        if ranges(headers).next().is_none() {
            return Self::JSON_ALONE;
        }
        Self {
            json: is_accepted(headers, &[JSON_MEDIA_TYPE, "application/*", "*/*"]),
            streams: is_accepted(headers, &[EVENT_STREAM_MEDIA_TYPE, "text/*"]),
        }
    }

    /// Writes the header that `rmcp` demands of a client that accepts JSON.
    pub(super) fn declare(self, headers: &mut HeaderMap) {
        if self.json {
            headers.insert(header::ACCEPT, BOTH_MEDIA_TYPES);
        }
    }
}

/// Iterates over the media ranges that the header lists.
fn ranges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let given = headers.get_all(header::ACCEPT).iter();
    given
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|range| !range.trim().is_empty())
}

/// Returns true if a client accepts a media type. `including` are the ranges that include it, in the order of
/// their precedence: the first one that the header lists decides.
fn is_accepted(headers: &HeaderMap, including: &[&str]) -> bool {
    let weighted = including.iter().find_map(|known| {
        let same = ranges(headers).filter(|range| essence(range).eq_ignore_ascii_case(known));
        same.map(|range| !has_no_weight(range))
            .reduce(|one, other| one || other)
    });
    weighted.unwrap_or(false)
}

/// Returns true if the body of a request is declared as JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    content_type(headers).is_some_and(|given| given.eq_ignore_ascii_case(JSON_MEDIA_TYPE))
}

/// Returns the media type of a body without its parameters, if the message declares one.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::CONTENT_TYPE)?;
    given.to_str().ok().map(essence)
}

/// Returns true if a range has the weight 0, by which it is excluded.
fn has_no_weight(range: &str) -> bool {
    let weights = range.split(';').skip(1).filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    weights
        .filter_map(|weight| weight.parse::<f32>().ok())
        .any(|weight| weight == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_that_allows_json_is_read() {
        for (given, json, streams) in [
            (None, true, false),
            (Some(""), true, false),
            (Some("application/json"), true, false),
            (Some("*/*"), true, false),
            (Some("application/*"), true, false),
            (Some("application/json, text/plain, */*"), true, false),
            (Some("application/json, text/event-stream"), true, true),
            (Some("Application/JSON;q=0.9,text/event-stream"), true, true),
            (Some("text/event-stream, */*;q=0.1"), true, true),
            (Some("text/event-stream"), false, true),
            (Some("text/event-stream, application/json;q=0"), false, true),
            (Some("application/json; q=0.0"), false, false),
            (Some("application/json;q=0, */*"), false, false),
            (Some("*/*;q=0, application/json"), true, false),
            (Some("text/html"), false, false),
        ] {
            let mut headers = HeaderMap::new();
            let value = given.map(HeaderValue::from_static);
            headers.extend(value.map(|value| (header::ACCEPT, value)));
            let expected = Accepted { json, streams };
            assert_eq!(Accepted::of(&headers), expected, "{given:?}");
        }
    }
}
