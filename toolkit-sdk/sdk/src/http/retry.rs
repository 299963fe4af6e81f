//! Time to wait before a retry, as the provider's response states it. Many headers are in use in
//! addition to the one standard header.

use std::time::{Duration, UNIX_EPOCH};

use super::Response;

/// Headers that state the end of a rate limit, in order of precedence.
const RESET_HEADERS: [&str; 8] = [
    "x-ratelimit-reset-after",
    "x-ratelimit-reset",
    "ratelimit-reset",
    "x-rate-limit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-rate-limit-reset-requests",
    "rate-limit-reset",
];

/// Longest wait that counts as a hint.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// Returns the time to wait, if the headers state it.
pub(super) fn after(response: &Response, now_ms: u64) -> Option<Duration> {
    let exact = response
        .header("retry-after-ms")
        .and_then(|value| value.trim().parse().ok())
        .map(Duration::from_millis);
    exact
        .or_else(|| {
            response
                .header("retry-after")
                .and_then(|value| read(value, now_ms))
        })
        .or_else(|| {
            RESET_HEADERS
                .iter()
                .find_map(|name| response.header(name).and_then(|value| read(value, now_ms)))
        })
        .filter(|wait| *wait <= MAX_RETRY_AFTER)
}

/// Parses a number of seconds, a time as seconds or milliseconds since 1970, a date, or a duration
/// like `1m30s`.
fn read(value: &str, now_ms: u64) -> Option<Duration> {
    let value = value.trim();
    if let Ok(number) = value.parse::<f64>() {
        return number_of_seconds(number, now_ms);
    }
    if let Ok(date) = httpdate::parse_http_date(value) {
        let at = date.duration_since(UNIX_EPOCH).ok()?;
        return Some(at.saturating_sub(Duration::from_millis(now_ms)));
    }
    parse_units(value)
}

fn number_of_seconds(number: f64, now_ms: u64) -> Option<Duration> {
    let now = Duration::from_millis(now_ms);
    let parsed = if number >= 1e12 {
        Duration::try_from_secs_f64(number / 1000.0)
    } else {
        Duration::try_from_secs_f64(number)
    };
    let at = parsed.ok()?;
    Some(if number >= 1e9 {
        at.saturating_sub(now)
    } else {
        at
    })
}

/// Parses `6m0s`, `1s` or `20ms`.
fn parse_units(mut text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    while !text.is_empty() {
        let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = text[..digits].parse().ok()?;
        let rest = &text[digits..];
        let end = rest
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        total += Duration::try_from_secs_f64(number * unit).ok()?;
        text = &rest[end..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::read;

    const NOW_MS: u64 = 1_792_584_000_000;

    #[test]
    fn every_known_form_of_a_hint_is_read() {
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(read("120", NOW_MS), seconds(120));
        assert_eq!(read("1.5", NOW_MS), Some(Duration::from_millis(1500)));
        assert_eq!(read("1792584060", NOW_MS), seconds(60));
        assert_eq!(read("1792584060000", NOW_MS), seconds(60));
        assert_eq!(
            read("Wed, 21 Oct 2026 08:00:30 GMT", NOW_MS),
            read("1792569630", NOW_MS)
        );
        assert_eq!(read("6m0s", NOW_MS), seconds(360));
        assert_eq!(read("20ms", NOW_MS), Some(Duration::from_millis(20)));
    }

    #[test]
    fn past_reset_means_now_and_nonsense_nothing() {
        assert_eq!(read("1500000000", NOW_MS), Some(Duration::ZERO));
        for nonsense in ["soon", "", "-5", "NaN", "5 minutes", "m"] {
            assert_eq!(
                read(nonsense, NOW_MS).filter(|wait| !wait.is_zero()),
                None,
                "{nonsense}"
            );
        }
    }
}
