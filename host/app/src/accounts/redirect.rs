//! Addresses to which browsers are redirected: by providers, and at the end of a connection attempt.

use url::Url;

use crate::{App, Result, accounts::errors, core::ids::AccountId};

/// Maximum length of a redirect address in bytes.
const MAX_URL_BYTES: usize = 2_048;

/// Path to which providers redirect browsers.
const CALLBACK_PATH: &str = "/api/v3/toolkits/auth/callback";

/// Path of the result page, for projects that set no callback URL.
const DONE_PATH: &str = "/link/done";

impl App {
    /// Returns the final address for a browser: the project's callback URL with its own query, or a
    /// page of this server.
    pub(super) fn return_url(
        &self,
        callback_url: Option<&str>,
        id: &AccountId,
        outcome: std::result::Result<(), String>,
    ) -> String {
        let status = if outcome.is_ok() { "success" } else { "failed" };
        let mut query = vec![("status", status)];
        let error = outcome.err().unwrap_or_default();
        let url = callback_url.and_then(|url| {
            query.push(("connected_account_id", id.as_str()));
            if !error.is_empty() {
                query.push(("error", &error));
            }
            with_query(url, &query).ok()
        });
        url.unwrap_or_else(|| format!("{}{DONE_PATH}?status={status}", self.base_url()))
    }
}

/// Returns the address to which providers redirect browsers, unless an auth config sets another
/// one.
pub(super) fn callback_url(app: &App) -> String {
    format!("{}{CALLBACK_PATH}", app.base_url())
}

/// Checks that a browser may be redirected to an address.
pub(crate) fn check_redirect_url(name: &str, url: String) -> Result<String> {
    let fits = url.len() <= MAX_URL_BYTES;
    let good = Url::parse(&url).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    });
    if fits && good {
        Ok(url)
    } else {
        Err(errors::invalid(format!(
            "{name}: must be an http or https URL of at most {MAX_URL_BYTES} bytes without user name and password"
        )))
    }
}

/// Appends parameters to the query of an address. Fails if it cannot be parsed.
pub(super) fn with_query(url: &str, parameters: &[(&str, &str)]) -> Result<String> {
    let mut url =
        Url::parse(url).map_err(|_| errors::internal("a validated URL cannot be parsed"))?;
    url.query_pairs_mut().extend_pairs(parameters);
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_url_keeps_its_query_and_is_http() {
        let url = with_query(
            "https://app.example/back?a=1&b=%20#top",
            &[("status", "failed"), ("error", "a b&c")],
        );
        assert_eq!(
            url.unwrap(),
            "https://app.example/back?a=1&b=%20&status=failed&error=a+b%26c#top"
        );
        check_redirect_url("callback_url", "http://localhost:3000/done".to_owned()).unwrap();
    }
}
