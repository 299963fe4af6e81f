//! Values for the templates of a request.

use chrono::{DateTime, SecondsFormat};
use manifest::{AuthMode, Digest, Source};
use serde_json::Value;

use super::{Flow, Refusal, Result, assertion, text};

/// Values of one request. Standard parameters and client values take precedence over account
/// values.
pub(super) struct Variables<'a> {
    pub(super) flow: &'a Flow<'a>,
    /// Standard parameters with their values.
    pub(super) standard: Vec<(&'static str, String)>,
    extra: Vec<(&'static str, String)>,
}

impl<'a> Variables<'a> {
    /// Creates the values of a request that sends `standard` and also knows `extra`. Adds an
    /// assertion if the manifest declares one.
    pub(super) fn new(
        flow: &'a Flow<'a>,
        standard: Vec<(&'static str, String)>,
        extra: &[(&'static str, String)],
    ) -> Result<Self> {
        let mut extra = extra.to_vec();
        extra.push(("random", super::nonce()));
        let mut variables = Self {
            flow,
            standard,
            extra,
        };
        if let Some(assertion) = &flow.oauth2()?.assertion {
            let signed = assertion::sign(assertion, &variables, flow.now_ms)?;
            // For a key file, the assertion itself is the grant (RFC 7523, section 2.1).
            let granted = flow.scheme.mode == AuthMode::GoogleServiceAccount
                && !variables.standard.is_empty();
            let sent = if granted {
                &mut variables.standard
            } else {
                &mut variables.extra
            };
            sent.push(("assertion", signed));
        }
        Ok(variables)
    }

    /// Removes the sent values from a refusal.
    pub(super) fn redact(&self, refusal: Refusal) -> Refusal {
        let sent = self
            .standard
            .iter()
            .filter(|(name, _)| !["grant_type", "redirect_uri", "scope"].contains(name))
            .chain(self.extra.iter().filter(|(name, _)| *name == "assertion"))
            .map(|(_, value)| value.clone());
        let own = self
            .flow
            .scheme
            .secrets()
            .chain(["client_secret", "refresh_token"])
            .filter_map(|name| self.value(name));
        refusal.redact(sent.chain(own).collect())
    }

    fn client_value(&self, name: &str) -> Option<String> {
        let client = self.flow.client;
        match name {
            "client_id" => self.flow.client_id(),
            "client_secret" => client.secret.as_ref().map(|secret| secret.to_string()),
            "client_private_key" => client.private_key.as_ref().map(|key| key.to_string()),
            "client_key_id" => client.key_id.clone(),
            _ => None,
        }
    }

    fn clock_value(&self, name: &str) -> Option<String> {
        let now = self.flow.now_ms;
        match name {
            "now" => Some((now / 1000).to_string()),
            "now_ms" => Some(now.to_string()),
            "now_iso" => Some(
                DateTime::from_timestamp_millis(now)?.to_rfc3339_opts(SecondsFormat::Secs, true),
            ),
            _ => None,
        }
    }
}

impl Source for Variables<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let (field, path) = name.split_once('.').unwrap_or((name, ""));
        let sent = self
            .standard
            .iter()
            .chain(&self.extra)
            .find(|(own, _)| *own == field)
            .map(|(_, value)| value.clone());
        let value = sent
            .or_else(|| self.client_value(field))
            .or_else(|| self.flow.value(field))
            .or_else(|| self.clock_value(field))
            .filter(|value| !value.is_empty());
        if path.is_empty() {
            return value;
        }
        let whole = match value {
            Some(json) => serde_json::from_str(&json).ok()?,
            None => self.flow.values.get(field)?.clone(),
        };
        manifest::at(&whole, path).and_then(text)
    }

    fn digest(&self, digest: Digest, arguments: &[String]) -> Option<String> {
        sandbox::digest(digest, arguments)
    }
}

/// Returns a property of a JSON response or field as a string.
pub(super) fn member(answer: &Value, path: &str) -> Option<String> {
    manifest::at(answer, path)
        .and_then(text)
        .filter(|text| !text.is_empty())
}
