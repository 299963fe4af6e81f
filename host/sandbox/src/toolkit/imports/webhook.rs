//! Import that verifies webhook requests with a secret that the guest does not see.
//!
//! Problem: a provider signs its requests with a secret of the trigger's configuration. A guest that
//! gets the secret can sign requests of its own, or show the secret in an event.
//!
//! Guarantee: a guest that imports this interface gets the name of each secret instead of its text,
//! and learns only if a signature is right. It gets no MAC. Comparisons take constant time.
//!
//! A guest that does not import it gets the configuration unchanged, because a released component
//! verifies by itself. For both, the secrets are removed from the log and from what `receive`
//! returns.

use std::{collections::BTreeMap, ops::RangeInclusive};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use wasmtime::Result;

use crate::{
    Action, Failure, MAX_SECRETS, Output, Policy, Secret,
    cassette::SignedMessage,
    contract::v1::{
        types::ToolError,
        webhook::{Algorithm, Error, Host},
    },
    failure,
    redact::{Redactor, StepsExhausted, replace_ranges},
    toolkit::State,
};

/// Maximum size of a message, in bytes: a request body and what a provider signs with it.
pub const MAX_SIGNED_MESSAGE_BYTES: usize = (1 << 20) + (64 << 10);
/// Maximum size of all messages of one call, in bytes.
pub const MAX_SIGNED_BYTES_PER_CALL: usize = 16 << 20;
/// Text before the base64 of a secret of Standard Webhooks.
pub const STANDARD_WEBHOOKS_PREFIX: &str = "whsec_";
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
        let withhold = withhold && !policy.write_only.is_empty();
        let config = if withhold {
            value.to_string().into()
        } else {
            config
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

    fn verify(
        &mut self,
        name: &str,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> std::result::Result<bool, Error> {
        if message.len() > MAX_SIGNED_MESSAGE_BYTES {
            return Err(error(
                "too_large",
                format!("a signed message has at most {MAX_SIGNED_MESSAGE_BYTES} bytes"),
            ));
        }
        self.signed_bytes += message.len();
        if self.signed_bytes > MAX_SIGNED_BYTES_PER_CALL {
            return Err(error(
                "limit",
                format!(
                    "the signed messages of a call have at most {MAX_SIGNED_BYTES_PER_CALL} bytes together"
                ),
            ));
        }
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
        let key = secret.as_bytes();
        Ok(match algorithm {
            Algorithm::HmacSha1 => is_mac::<Hmac<Sha1>>(key, message, signature),
            Algorithm::HmacSha256 => is_mac::<Hmac<Sha256>>(key, message, signature),
            Algorithm::HmacSha512 => is_mac::<Hmac<Sha512>>(key, message, signature),
            Algorithm::StandardWebhooks => {
                let key = standard_webhooks_key(secret).ok_or_else(|| {
                    error(
                        "unusable",
                        format!(
                            "the secret `{name}` is not base64 after `{STANDARD_WEBHOOKS_PREFIX}`"
                        ),
                    )
                })?;
                is_mac::<Hmac<Sha256>>(&key, message, signature)
            }
            Algorithm::Token => is_token(key, signature),
        })
    }
}

impl Host for State {
    fn verify(
        &mut self,
        secret: String,
        algorithm: Algorithm,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<std::result::Result<bool, Error>> {
        self.count_host_call()?;
        let secrets = &mut self.webhook_secrets;
        let Some(session) = &self.session else {
            return Ok(secrets.verify(&secret, algorithm, &message, &signature));
        };
        let message = SignedMessage {
            algorithm,
            message: message.into(),
            signature: signature.into(),
        };
        session.verification(self.trace.redactor(), message, |signed| {
            secrets.verify(&secret, algorithm, &signed.message, &signed.signature)
        })
    }
}

/// Removes secrets from the events and the response of a webhook request, because they leave the
/// platform.
pub(crate) fn redacted(
    output: Output,
    redactor: &Redactor,
) -> std::result::Result<Output, Failure> {
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

fn redacted_bytes(
    bytes: bytes::Bytes,
    redactor: &Redactor,
) -> std::result::Result<bytes::Bytes, Failure> {
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

/// Returns true if a signature is the MAC of a message. Takes constant time.
fn is_mac<M: KeyInit + Mac>(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    M::new_from_slice(key)
        .is_ok_and(|mac| mac.chain_update(message).verify_slice(signature).is_ok())
}

/// Returns the key that a secret of Standard Webhooks encodes; `None` if it is not base64.
fn standard_webhooks_key(secret: &str) -> Option<Vec<u8>> {
    let base64 = secret.strip_prefix(STANDARD_WEBHOOKS_PREFIX);
    STANDARD.decode(base64.unwrap_or(secret)).ok()
}

/// Returns the MAC of a message; `None` for an algorithm without a MAC, and for a malformed secret.
pub(crate) fn sign(algorithm: Algorithm, secret: &str, message: &[u8]) -> Option<Vec<u8>> {
    let key = secret.as_bytes();
    match algorithm {
        Algorithm::HmacSha1 => mac_of::<Hmac<Sha1>>(key, message),
        Algorithm::HmacSha256 => mac_of::<Hmac<Sha256>>(key, message),
        Algorithm::HmacSha512 => mac_of::<Hmac<Sha512>>(key, message),
        Algorithm::StandardWebhooks => {
            mac_of::<Hmac<Sha256>>(&standard_webhooks_key(secret)?, message)
        }
        Algorithm::Token => None,
    }
}

fn mac_of<M: KeyInit + Mac>(key: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let mac = M::new_from_slice(key).ok()?;
    Some(mac.chain_update(message).finalize().into_bytes().to_vec())
}

/// Returns true if a request carries the secret itself. Compares MACs of both, in constant time.
fn is_token(secret: &[u8], token: &[u8]) -> bool {
    let mac = |text: &[u8]| {
        Hmac::<Sha256>::new_from_slice(secret).map(|mac| mac.chain_update(text).finalize())
    };
    mac(secret).is_ok_and(|secret| mac(token).is_ok_and(|token| token == secret))
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

    fn verify(secret: &str, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let (_, mut secrets) = taken(&json!({ "secret": secret }), &["secret"], true);
        secrets
            .verify("secret", algorithm, message, signature)
            .unwrap()
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
    fn documented_signatures_are_accepted() {
        let bytes = |digits: &str| hex::decode(digits).unwrap();
        // RFC 2202 and RFC 4231, test case 2.
        let message = b"what do ya want for nothing?";
        for (algorithm, digits) in [
            (
                Algorithm::HmacSha1,
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            ),
            (
                Algorithm::HmacSha256,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                Algorithm::HmacSha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            assert!(verify("Jefe", algorithm, message, &bytes(digits)));
            assert!(!verify("Jefe", algorithm, b"what else?", &bytes(digits)));
            assert!(!verify("other", algorithm, message, &bytes(digits)));
            assert!(!verify("Jefe", algorithm, message, &bytes(&digits[2..])));
            assert!(!verify("Jefe", algorithm, message, b""));
        }
        // Example of the specification of Standard Webhooks.
        let signature = STANDARD
            .decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
            .unwrap();
        let message = br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        for secret in [secret, &secret["whsec_".len()..]] {
            assert!(verify(
                secret,
                Algorithm::StandardWebhooks,
                message,
                &signature
            ));
        }
        assert!(verify("abcdefgh", Algorithm::Token, b"", b"abcdefgh"));
        assert!(!verify("abcdefgh", Algorithm::Token, b"", b"abcdefg"));
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
