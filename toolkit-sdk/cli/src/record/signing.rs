//! Webhook requests of cases, signed again.
//!
//! A case must not hold the secret of a webhook, and without the secret the signature of a recorded
//! request is wrong. The secret is replaced by a placeholder, and each signature that was right by
//! that of the same message under the placeholder.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use bytes::Bytes;
use manifest::SECRET_PLACEHOLDER;
use sandbox::{
    Action, Inbound, STANDARD_WEBHOOKS_PREFIX,
    cassette::{Cassette, RecordedAction, SignedMessage},
};
use serde_json::Value;

use crate::run::FinishedCall;

/// Minimum length of a secret to replace inside other text, in bytes.
const MIN_SECRET_BYTES: usize = 8;

/// Returns the configuration and the request of a recorded webhook with a placeholder of the secret.
pub(super) fn sign_again(cassette: &Cassette, done: &FinishedCall) -> Result<(Value, Inbound)> {
    let (
        Action::Receive {
            config, request, ..
        },
        RecordedAction::Receive {
            request: recorded, ..
        },
    ) = (&done.action, &cassette.call)
    else {
        bail!("the recorded call receives no webhook");
    };
    let mut config: Value =
        serde_json::from_slice(config).context("the configuration of the call is not JSON")?;
    let mut secrets = Secrets {
        names: &done.write_only,
        signed: &cassette.signed,
        replaced: Vec::new(),
    };
    secrets.replace(&mut config);
    let mut replacements = secrets.signatures(&request.body);
    replacements.append(&mut secrets.replaced);
    let replace = |original: &str, recorded: String| {
        let new = replace_all(original, &replacements);
        // Other credentials are replaced in the recorded text.
        if new == original { recorded } else { new }
    };
    let headers = request
        .headers
        .iter()
        .zip(&recorded.headers)
        .map(|((name, value), (_, recorded))| (name.clone(), replace(value, recorded.clone())));
    let body = std::str::from_utf8(&request.body).map_or_else(
        |_| request.body.clone(),
        |body| {
            let recorded = recorded.body.bytes();
            replace(body, String::from_utf8_lossy(&recorded).into_owned()).into()
        },
    );
    let signed = Inbound {
        method: request.method.clone(),
        path: replace(&request.path, recorded.path.clone()),
        headers: headers.collect(),
        body,
    };
    if signed == *request && !replacements.is_empty() && done.outcome.output.is_ok() {
        eprintln!(
            "\nno signature was found in the request; sign that of the case with `{SECRET_PLACEHOLDER}`"
        );
    }
    Ok((config, signed))
}

/// Text and the text that replaces it.
type Replacement = (String, String);

/// Secrets of a configuration.
struct Secrets<'a> {
    /// Names of the properties with secrets.
    names: &'a BTreeSet<String>,
    /// Messages that the platform verified with them.
    signed: &'a [SignedMessage],
    /// Secrets and their placeholders.
    replaced: Vec<Replacement>,
}

impl Secrets<'_> {
    /// Replaces each secret of a configuration by its placeholder.
    fn replace(&mut self, config: &mut Value) {
        match config {
            Value::Object(properties) => {
                for (name, value) in properties {
                    match value {
                        Value::String(secret) if self.names.contains(name) => {
                            if !secret.is_empty() {
                                let placeholder = self.placeholder(secret);
                                let secret = std::mem::replace(secret, placeholder.clone());
                                self.replaced.push((secret, placeholder));
                            }
                        }
                        value => self.replace(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            _ => {}
        }
    }

    /// Returns the placeholder of a secret, which is base64 if the secret has to be.
    fn placeholder(&self, secret: &str) -> String {
        let encoded = STANDARD.encode(SECRET_PLACEHOLDER);
        if secret.starts_with(STANDARD_WEBHOOKS_PREFIX) {
            format!("{STANDARD_WEBHOOKS_PREFIX}{encoded}")
        } else if self
            .signed
            .iter()
            .any(|signed| signed.sign(SECRET_PLACEHOLDER).is_none())
        {
            encoded
        } else {
            SECRET_PLACEHOLDER.to_owned()
        }
    }

    /// Returns the signatures of the call and those that replace them, in each encoding. A toolkit
    /// that verifies by itself usually verifies the body.
    fn signatures(&self, body: &Bytes) -> Vec<Replacement> {
        let by_toolkit = self
            .replaced
            .iter()
            .flat_map(|(secret, placeholder)| {
                let signed = SignedMessage::of(body, secret).into_iter();
                signed.map(move |signed| (signed, placeholder.as_str()))
            })
            .filter(|_| self.signed.is_empty());
        let (_, placeholder) = self.replaced.first().cloned().unwrap_or_default();
        let by_platform = self
            .signed
            .iter()
            .cloned()
            .map(|signed| (signed, placeholder.as_str()));
        by_platform
            .chain(by_toolkit)
            .filter_map(|(signed, placeholder)| {
                Some((signed.signature().to_vec(), signed.sign(placeholder)?))
            })
            .flat_map(|(old, new)| encodings(&old).into_iter().zip(encodings(&new)))
            .collect()
    }
}

/// Returns the forms in which providers write a signature.
fn encodings(signature: &[u8]) -> [String; 6] {
    [
        hex::encode_upper(signature),
        hex::encode(signature),
        STANDARD.encode(signature),
        URL_SAFE.encode(signature),
        STANDARD_NO_PAD.encode(signature),
        URL_SAFE_NO_PAD.encode(signature),
    ]
}

fn replace_all(text: &str, replacements: &[Replacement]) -> String {
    replacements
        .iter()
        .fold(text.to_owned(), |text, (old, new)| {
            if text == *old {
                new.clone()
            } else if old.len() >= MIN_SECRET_BYTES {
                text.replace(old, new)
            } else {
                text
            }
        })
}
