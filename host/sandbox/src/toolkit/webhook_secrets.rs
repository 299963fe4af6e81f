//! Secrets of a trigger's configuration, with which a provider signs its webhook requests.
//!
//! Problem: a guest that gets such a secret can sign requests of its own, or show the secret in an
//! event.
//!
//! Guarantee: a guest that imports the interface for verification gets the name of each secret instead
//! of its text, and learns only if a signature is right. It gets no MAC.
//!
//! A guest that does not import it gets the configuration unchanged, because a released component
//! verifies by itself. For both, the secrets are removed from the log and from what `receive`
//! returns.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde_json::Value;

use crate::{
    Action, Failure, MAX_SECRETS, Output, Policy, Secret,
    contract::v1::{
        types::ToolError,
        webhook::{Algorithm, Error},
    },
    failure,
    redact::{Redactor, StepsExhausted, replace_ranges},
    webhook_signature::{self, STANDARD_WEBHOOKS_PREFIX},
};

/// Maximum size of a message, in bytes: a request body and what a provider signs with it.
pub const MAX_SIGNED_MESSAGE_BYTES: usize = (1 << 20) + (64 << 10);
/// Maximum size of all messages of one call, in bytes.
pub const MAX_SIGNED_BYTES_PER_CALL: usize = 16 << 20;
/// Sizes of the secrets that are searched for, in bytes. Shorter ones may be common words, and
/// longer ones cost too much.
const REDACTED_SECRET_BYTES: RangeInclusive<usize> = 8..=1024;

/// Secrets of the configuration of a call of `receive`, by the name that the guest uses.
#[derive(Default)]
pub(crate) struct WebhookSecrets {
    by_name: BTreeMap<String, Secret>,
    /// Size of the messages verified so far, in bytes.
    signed_bytes: usize,
}

impl WebhookSecrets {
    /// Takes the secrets of an action, and returns the action as the guest gets it: with `withhold`
    /// without the secrets.
    pub(crate) fn take(action: Action, policy: &Policy, withhold: bool) -> (Action, Self) {
        let mut secrets = Self::default();
        let Action::Receive {
            trigger,
            config,
            request,
        } = action
        else {
            return (action, secrets);
        };
        let mut value = match serde_json::from_slice(&config) {
            Ok(value) if !policy.write_only.is_empty() => value,
            _ => Value::Null,
        };
        secrets.take_from(&mut value, policy, "");
        let config = match withhold && !policy.write_only.is_empty() {
            true => value.to_string().into(),
            false => config,
        };
        let action = Action::Receive {
            trigger,
            config,
            request,
        };
        (action, secrets)
    }

    /// Replaces each secret below `path` by its name.
    fn take_from(&mut self, value: &mut Value, policy: &Policy, path: &str) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let path = path_below(path, name);
                    if !policy.write_only.contains(name) {
                        self.take_from(value, policy, &path);
                    } else if let Value::String(text) = value {
                        let secret = std::mem::replace(text, path.clone());
                        self.by_name.insert(path, secret.into());
                    } else {
                        *value = Value::Null;
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.take_from(item, policy, &path_below(path, &index.to_string()));
                }
            }
            _ => {}
        }
    }

    /// Returns true if there are no secrets, as in every call of a tool.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns a redactor for the secrets.
    pub(crate) fn redactor(&self) -> Redactor {
        let secrets = self.by_name.values();
        let long_enough =
            secrets.filter(|secret| REDACTED_SECRET_BYTES.contains(&secret.expose().len()));
        Redactor::new(long_enough.take(MAX_SECRETS))
    }

    /// Counts the bytes of a signed message. Fails if they are too many.
    fn count_signed(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > MAX_SIGNED_MESSAGE_BYTES {
            return Err(error(
                "too_large",
                format!("a signed message has at most {MAX_SIGNED_MESSAGE_BYTES} bytes"),
            ));
        }
        self.signed_bytes += bytes;
        if self.signed_bytes > MAX_SIGNED_BYTES_PER_CALL {
            return Err(error(
                "limit",
                format!(
                    "the signed messages of a call have at most {MAX_SIGNED_BYTES_PER_CALL} bytes together"
                ),
            ));
        }
        Ok(())
    }

    /// Returns true if a signature of a message is right.
    pub(super) fn verify(
        &mut self,
        name: &str,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, Error> {
        self.count_signed(message.len())?;
        let secret = self.by_name.get(name).map(Secret::expose).ok_or_else(|| {
            error(
                "not_found",
                format!("this call has no secret `{name}`; use the value of a `writeOnly` property of the trigger's configuration"),
            )
        })?;
        // Anybody can sign with an empty secret.
        if secret.is_empty() {
            return Err(error("unusable", format!("the secret `{name}` is empty")));
        }
        webhook_signature::is_right(algorithm, secret, message, signature).ok_or_else(|| {
            error(
                "unusable",
                format!("the secret `{name}` is not base64 after `{STANDARD_WEBHOOKS_PREFIX}`"),
            )
        })
    }
}

/// Removes secrets from the events and the response of a webhook request, because they leave the
/// platform.
pub(crate) fn redacted(output: Output, redactor: &Redactor) -> Result<Output, Failure> {
    let Output::Received {
        mut events,
        status,
        media_type,
        body,
    } = output
    else {
        return Ok(output);
    };
    for event in &mut events {
        event.id = redactor.redact_text(&event.id);
        event.payload = redacted_bytes(std::mem::take(&mut event.payload), redactor)?;
    }
    Ok(Output::Received {
        events,
        status,
        media_type,
        body: redacted_bytes(body, redactor)?,
    })
}

fn redacted_bytes(bytes: bytes::Bytes, redactor: &Redactor) -> Result<bytes::Bytes, Failure> {
    let ranges = redactor.find(&bytes).map_err(|StepsExhausted| {
        failure::invalid("the result is withheld: searching it for secrets takes too many steps")
    })?;
    Ok(match ranges.as_slice() {
        [] => bytes,
        ranges => replace_ranges(&bytes, ranges).into_owned().into(),
    })
}

/// Removes secrets from the error of a guest, because the sender of a webhook request gets its
/// message.
pub(crate) fn redacted_error(error: ToolError, redactor: &Redactor) -> ToolError {
    ToolError {
        message: redactor.redact_text(&error.message),
        details: error
            .details
            .map(|details| redactor.redact_bytes(&details).into_owned()),
        ..error
    }
}

fn path_below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

fn error(kind: &str, message: String) -> Error {
    Error {
        kind: kind.to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::{Event, Inbound};

    fn taken(config: &Value, names: &[&str], withhold: bool) -> (Value, WebhookSecrets) {
        let action = Action::Receive {
            trigger: "HAND_NEWS".into(),
            config: config.to_string().into(),
            request: Inbound::default(),
        };
        let policy = Policy {
            write_only: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Policy::default()
        };
        let (action, secrets) = WebhookSecrets::take(action, &policy, withhold);
        let Action::Receive { config, .. } = action else {
            unreachable!("it stays what it is")
        };
        (serde_json::from_slice(&config).unwrap(), secrets)
    }

    #[test]
    fn guest_gets_names_of_secrets() {
        let config = json!({
            "secret": "abcdefgh", "repository": "a/b",
            "apps": [{ "secret": "ijklmnop", "name": "x" }], "other": { "secret": 7 }, "none": null,
        });
        let (seen, secrets) = taken(&config, &["secret", "none"], true);
        assert_eq!(
            seen,
            json!({
                "secret": "secret", "repository": "a/b",
                "apps": [{ "secret": "apps/0/secret", "name": "x" }], "other": { "secret": null }, "none": null,
            })
        );
        assert_eq!(secrets.by_name["apps/0/secret"].expose(), "ijklmnop");
        assert_eq!(taken(&config, &["secret"], false).0, config);
        assert_eq!(taken(&config, &[], true).0, config);
    }

    #[test]
    fn only_receive_has_secrets() {
        let action = Action::Poll {
            trigger: "HAND_NEWS".into(),
            config: Bytes::from_static(br#"{"secret":"abcdefgh"}"#),
            cursor: Bytes::new(),
        };
        let policy = Policy {
            write_only: ["secret".to_owned()].into(),
            ..Policy::default()
        };
        let (action, secrets) = WebhookSecrets::take(action, &policy, true);
        assert!(secrets.by_name.is_empty());
        assert!(matches!(action, Action::Poll { config, .. } if config.ends_with(b"efgh\"}")));
    }

    #[test]
    fn verification_is_refused_with_reason() {
        let config = json!({ "secret": "not base64!", "empty": "" });
        let (_, mut secrets) = taken(&config, &["secret", "empty"], true);
        let mut refusal = |name: &str, algorithm, size: usize| {
            let refused = secrets.verify(name, algorithm, &vec![0; size], b"x");
            let error = refused.unwrap_err();
            assert!(!error.message.contains("base64!"), "{}", error.message);
            error.kind
        };
        assert_eq!(refusal("other", Algorithm::Token, 1), "not_found");
        assert_eq!(refusal("empty", Algorithm::Token, 1), "unusable");
        assert_eq!(
            refusal("secret", Algorithm::StandardWebhooks, 1),
            "unusable"
        );
        let most = MAX_SIGNED_MESSAGE_BYTES;
        assert_eq!(
            refusal("secret", Algorithm::HmacSha1, most + 1),
            "too_large"
        );
        for _ in 0..MAX_SIGNED_BYTES_PER_CALL / most {
            let verified = secrets.verify("secret", Algorithm::HmacSha1, &vec![0; most], b"x");
            assert!(!verified.unwrap());
        }
        let refused = secrets.verify("secret", Algorithm::HmacSha1, &vec![0; most], b"x");
        assert_eq!(refused.unwrap_err().kind, "limit");
    }

    #[test]
    fn results_carry_no_secret() {
        let (_, secrets) = taken(&json!({ "secret": "abcdefgh" }), &["secret"], true);
        let output = Output::Received {
            events: vec![Event {
                id: "1 abcdefgh".to_owned(),
                payload: Bytes::from_static(br#"{"text":"abcdefgh"}"#),
            }],
            status: 200,
            media_type: "text/plain".to_owned(),
            body: Bytes::from_static(b"abcdefgh"),
        };
        let text = format!("{:?}", redacted(output, &secrets.redactor()).unwrap());
        assert!(!text.contains("abcdefgh"), "{text}");
        assert!(text.contains("[redacted]"), "{text}");
    }

    #[test]
    fn errors_carry_no_secret() {
        let (_, secrets) = taken(&json!({ "secret": "abcdefgh" }), &["secret"], false);
        let error = ToolError {
            kind: "unauthorized".to_owned(),
            message: "not signed with abcdefgh".to_owned(),
            retry_after_ms: None,
            upstream_status: None,
            details: Some(br#"{"expected":"abcdefgh"}"#.to_vec()),
        };
        let error = redacted_error(error, &secrets.redactor());
        assert_eq!(error.kind, "unauthorized");
        assert_eq!(error.message, "not signed with [redacted]");
        assert_eq!(
            error.details.as_deref(),
            Some(&br#"{"expected":"[redacted]"}"#[..])
        );
    }
}
