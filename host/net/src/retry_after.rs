//! The delay that a server asks for before the next request.

use std::time::{Duration, UNIX_EPOCH};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Maximum time that a server may ask to wait. A longer one counts as this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Returns the delay that a response asks for, in seconds or until a date (RFC 9110, section 10.2.3).
/// `now_ms` is the current time in epoch milliseconds.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let wait = match value.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            let date = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
            let left = i64::try_from(date).ok()?.saturating_sub(now_ms);
            Duration::from_millis(u64::try_from(left).unwrap_or(0))
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn server_may_ask_to_wait_a_day() {
        let asked = |value: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            let wait = retry_after(&headers, 784_111_777_000);
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(asked("120"), Some(120));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(asked("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(asked("9999999"), Some(86_400));
        assert_eq!(asked("soon"), None);
    }
}
