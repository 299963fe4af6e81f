//! Signatures: proof of a credential in a request without the credential itself.
//!
//! A request is signed when it is otherwise complete, and signed again for each retry. Each
//! signature has its own time and nonce. The manifest defines how to sign. No provider is
//! hard-coded, except for S3, which Signature Version 4 itself treats differently.

mod aws;
mod oauth1;
mod template;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use manifest::{Digest, Hash, RSA_SHA1_PROBLEM, Sign, SignatureMethod};
use net::{
    HeaderMap, Url,
    header::{CONTENT_TYPE, HeaderValue},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::Secret;

/// All characters except the unreserved ones, which no signature scheme encodes (RFC 3986, section 2.3).
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Number of characters of a nonce.
const NONCE_CHARS: usize = 32;

/// Signer for the requests of one account. Its values are hidden in `Debug` output.
#[derive(Clone)]
pub struct Signing {
    scheme: Sign,
    values: Vec<(String, Secret)>,
}

/// Time and nonce of a signature.
#[derive(Debug, Clone)]
pub struct SignatureStamp {
    /// Time in milliseconds since 1970.
    pub ms: i64,
    /// Nonce, unique per request.
    pub nonce: String,
}

/// Error for a request that cannot be signed. The guest sees the text, so it must not contain a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be signed: {0}")]
pub struct SigningError(String);

impl Signing {
    /// Creates a signer that uses the scheme `how` and these values by name.
    pub fn new(scheme: Sign, values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            scheme,
            values: values
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
        }
    }

    /// Returns the names of the headers that it writes, in lower case.
    #[must_use]
    pub fn header_names(&self) -> Vec<&str> {
        self.scheme.header_names()
    }

    /// Returns the names of the query parameters that it writes.
    #[must_use]
    pub fn query_names(&self) -> Vec<&str> {
        self.scheme.query_names()
    }

    /// Signs an otherwise complete request and replaces an existing signature. `protocol` are
    /// further parameters of the OAuth 1 protocol. Returns the secrets to redact from the response:
    /// a reader of a signature can send the request again, in some schemes at any time.
    ///
    /// # Errors
    /// Returns an error if a value is missing or if the request has a form that cannot be signed.
    pub fn sign(
        &self,
        request: &mut net::Request,
        protocol: &[(&str, &str)],
        stamp: &SignatureStamp,
    ) -> Result<Vec<Secret>, SigningError> {
        match &self.scheme {
            Sign::Oauth1 {
                method,
                consumer_key,
                consumer_secret,
                token,
                token_secret,
                realm,
                ..
            } => {
                let proof = self.oauth1_proof(*method, consumer_secret, token_secret)?;
                let keys = oauth1::Keys {
                    method: *method,
                    consumer_key: self.fill(consumer_key)?,
                    token: self.fill(token)?,
                    proof,
                    realm: realm.as_ref().map(|realm| self.fill(realm)).transpose()?,
                };
                oauth1::sign(&keys, request, protocol, stamp)
            }
            Sign::AwsSigv4 {
                access_key_id,
                secret_access_key,
                session_token,
                region,
                service,
            } => {
                let keys = aws::Keys {
                    access_key_id: self.fill(access_key_id)?,
                    secret_access_key: self.fill(secret_access_key)?,
                    session_token: session_token
                        .as_ref()
                        .and_then(|token| self.fill(token).ok()),
                    region: self.fill(region)?,
                    service: self.fill(service)?,
                };
                aws::sign(&keys, request, stamp)
            }
            Sign::Template {
                request: placements,
            } => template::sign(self, placements, request, stamp),
        }
    }

    fn oauth1_proof(
        &self,
        method: SignatureMethod,
        consumer_secret: &str,
        token_secret: &str,
    ) -> Result<oauth1::Proof, SigningError> {
        let hash = match method {
            SignatureMethod::Plaintext => None,
            SignatureMethod::HmacSha1 => Some(Hash::Sha1),
            SignatureMethod::HmacSha256 => Some(Hash::Sha256),
            SignatureMethod::RsaSha1 => return Err(SigningError(RSA_SHA1_PROBLEM.to_owned())),
        };
        let secrets = oauth1::join_secrets(&self.fill(consumer_secret)?, &self.fill(token_secret)?);
        Ok(match hash {
            None => oauth1::Proof::Secrets(secrets),
            Some(hash) => oauth1::Proof::Hmac(hash, secrets),
        })
    }

    fn fill(&self, template: &str) -> Result<Secret, SigningError> {
        let filled = manifest::fill(template, &|name: &str| self.value(name));
        filled
            .map(Secret::from)
            .ok_or_else(|| SigningError(format!("the account lacks a value for `{template}`")))
    }

    fn value(&self, name: &str) -> Option<String> {
        let (_, value) = self.values.iter().find(|(own, _)| own == name)?;
        Some(value.expose().to_owned())
    }
}

impl SignatureStamp {
    /// Creates a value with an unpredictable nonce.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no random bytes.
    pub fn random(ms: i64) -> Result<Self, SigningError> {
        let mut bytes = [0; NONCE_CHARS / 2];
        getrandom::fill(&mut bytes).map_err(|cause| {
            SigningError(format!(
                "the operating system provides no random bytes: {cause}"
            ))
        })?;
        Ok(Self {
            ms,
            nonce: hex::encode(bytes),
        })
    }

    fn seconds(&self) -> String {
        (self.ms / 1000).to_string()
    }

    fn date(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.ms).unwrap_or_default()
    }
}

/// Computes a digest in hex or base64. Returns `None` for a wrong number of arguments.
#[must_use]
pub fn digest(digest: Digest, arguments: &[String]) -> Option<String> {
    let bytes = match (digest.keyed, arguments) {
        (false, [text]) => match digest.hash {
            Hash::Sha1 => Sha1::digest(text).to_vec(),
            Hash::Sha256 => Sha256::digest(text).to_vec(),
            Hash::Sha512 => Sha512::digest(text).to_vec(),
        },
        (true, [key, text]) => hmac(digest.hash, key.as_bytes(), text.as_bytes()).ok()?,
        _ => return None,
    };
    Some(if digest.base64 {
        STANDARD.encode(bytes)
    } else {
        hex::encode(bytes)
    })
}

/// Computes an HMAC (RFC 2104).
fn hmac(hash: Hash, key: &[u8], text: &[u8]) -> Result<Vec<u8>, SigningError> {
    fn compute<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Result<Vec<u8>, SigningError> {
        let mut mac = <M as KeyInit>::new_from_slice(key)
            .map_err(|_| SigningError("its key cannot be used".to_owned()))?;
        mac.update(text);
        Ok(mac.finalize().into_bytes().to_vec())
    }
    match hash {
        Hash::Sha1 => compute::<Hmac<Sha1>>(key, text),
        Hash::Sha256 => compute::<Hmac<Sha256>>(key, text),
        Hash::Sha512 => compute::<Hmac<Sha512>>(key, text),
    }
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, ENCODED_CHARACTERS).to_string()
}

/// Returns encoded parameters in order, each as `name=value`, separated by `&`.
fn joined_pairs(mut pairs: Vec<(String, String)>) -> String {
    pairs.sort_unstable();
    let written = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    written.collect::<Vec<_>>().join("&")
}

/// Returns the body if its bytes are known. Multipart bodies are written while they are sent.
fn body_bytes(request: &net::Request) -> Option<&[u8]> {
    match &request.body {
        net::Body::Empty => Some(&[]),
        net::Body::Bytes(bytes) => Some(bytes),
        net::Body::Multipart(_) => None,
    }
}

/// Returns true if a body is `application/x-www-form-urlencoded`.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    media_type.split(';').next().is_some_and(|name| {
        name.trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

/// Returns the host, with the port if it is not the default of the scheme, as in the `host` header.
fn host(url: &Url) -> String {
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}

fn sensitive_header(value: &str) -> Result<HeaderValue, SigningError> {
    net::credential_header(value).ok_or_else(|| {
        SigningError("a value contains characters that a header cannot have".to_owned())
    })
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
