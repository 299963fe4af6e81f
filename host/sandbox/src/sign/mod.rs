//! Signatures: the proof of a credential in a request, in place of the credential.
//!
//! A request is signed when nothing of it changes any more, and once more when it is sent once more: each signature has its own
//! time and its own random word. What signs is read from the manifest; nothing here knows an application, but for the one
//! service whose name Signature Version 4 itself makes a difference for.

mod aws;
mod oauth1;
mod rsa;
mod template;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use manifest::{Digest, Hash, Sign, SignatureMethod};
use net::{
    HeaderMap, Url,
    header::{CONTENT_TYPE, HeaderValue},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

use crate::Secret;

/// What stands for itself in a signature of every kind (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters of a random word.
const NONCE: usize = 32;

/// What signs the requests of one account. Does not print its values.
#[derive(Clone)]
pub struct Signing {
    how: Sign,
    values: Vec<(String, Secret)>,
}

/// When and as which one a request is signed.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub ms: i64,
    /// A word that no other request has.
    pub nonce: String,
}

/// A request cannot be signed. The text goes to the guest: no secret in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be signed: {0}")]
pub struct Unsigned(String);

impl Signing {
    /// Signs as `how` says, with values by name.
    pub fn new(how: Sign, values: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { how, values: values.into_iter().map(|(name, value)| (name, value.into())).collect() }
    }

    /// Names of the headers that it writes, in lower case.
    #[must_use]
    pub fn header_names(&self) -> Vec<&str> {
        self.how.header_names()
    }

    /// Names of the query parameters that it writes.
    #[must_use]
    pub fn query_names(&self) -> Vec<&str> {
        self.how.query_names()
    }

    /// Refuses a key that cannot sign, as far as there is one: those of most ways to sign are any text.
    ///
    /// # Errors
    /// When a private key is none; for people, without the key.
    pub fn check(&self) -> Result<(), String> {
        match &self.how {
            Sign::Oauth1 { method: SignatureMethod::RsaSha1, private_key, .. } => match self.filled(private_key) {
                Ok(key) => rsa::Key::from_pem(key.expose()).map(drop).map_err(|Unsigned(why)| why),
                Err(_) => Ok(()),
            },
            Sign::Oauth1 { .. } | Sign::AwsSigv4 { .. } | Sign::Template { .. } => Ok(()),
        }
    }

    /// Signs a request that is complete otherwise, in the place of a signature that it has. `protocol` are further parameters of
    /// the OAuth 1 protocol. Answers what an application must not give back: whoever reads a signature can send the request once
    /// more, in some schemes at any time.
    ///
    /// # Errors
    /// When a value is missing, or the request has no form that can be signed.
    pub fn sign(
        &self,
        request: &mut net::Request,
        protocol: &[(&str, &str)],
        at: &Moment,
    ) -> Result<Vec<Secret>, Unsigned> {
        match &self.how {
            Sign::Oauth1 { method, consumer_key, consumer_secret, private_key, token, token_secret, realm } => {
                let secrets = || Ok(oauth1::both(&self.filled(consumer_secret)?, &self.filled(token_secret)?));
                let proof = match method {
                    SignatureMethod::Plaintext => oauth1::Proof::Secrets(secrets()?),
                    SignatureMethod::HmacSha1 => oauth1::Proof::Hmac(Hash::Sha1, secrets()?),
                    SignatureMethod::HmacSha256 => oauth1::Proof::Hmac(Hash::Sha256, secrets()?),
                    SignatureMethod::RsaSha1 => {
                        oauth1::Proof::Key(rsa::Key::from_pem(self.filled(private_key)?.expose())?)
                    }
                };
                let keys = oauth1::Keys {
                    method: *method,
                    consumer_key: self.filled(consumer_key)?,
                    token: self.filled(token)?,
                    proof,
                    realm: realm.as_ref().map(|realm| self.filled(realm)).transpose()?,
                };
                oauth1::sign(&keys, request, protocol, at)
            }
            Sign::AwsSigv4 { access_key_id, secret_access_key, session_token, region, service } => {
                let keys = aws::Keys {
                    access_key_id: self.filled(access_key_id)?,
                    secret_access_key: self.filled(secret_access_key)?,
                    session_token: session_token.as_ref().and_then(|token| self.filled(token).ok()),
                    region: self.filled(region)?,
                    service: self.filled(service)?,
                };
                aws::sign(&keys, request, at)
            }
            Sign::Template { request: placements } => template::sign(self, placements, request, at),
        }
    }

    fn filled(&self, template: &str) -> Result<Secret, Unsigned> {
        let filled = manifest::fill(template, &|name: &str| self.value(name));
        filled.map(Secret::from).ok_or_else(|| Unsigned(format!("the account lacks a value for `{template}`")))
    }

    fn value(&self, name: &str) -> Option<String> {
        let (_, value) = self.values.iter().find(|(own, _)| own == name)?;
        Some(value.expose().to_owned())
    }
}

impl Moment {
    /// A moment with a word that nobody guesses.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random(ms: i64) -> Result<Self, Unsigned> {
        let mut bytes = [0; NONCE / 2];
        getrandom::fill(&mut bytes).map_err(|cause| Unsigned(format!("there are no random bytes: {cause}")))?;
        Ok(Self { ms, nonce: hex::encode(bytes) })
    }

    fn seconds(&self) -> String {
        (self.ms / 1000).to_string()
    }

    fn date(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.ms).unwrap_or_default()
    }
}

/// The value of a digest, in hex or base64; none for a wrong number of arguments.
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
    Some(if digest.base64 { STANDARD.encode(bytes) } else { hex::encode(bytes) })
}

/// RFC 2104.
fn hmac(hash: Hash, key: &[u8], text: &[u8]) -> Result<Vec<u8>, Unsigned> {
    fn of<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Result<Vec<u8>, Unsigned> {
        let mac = <M as KeyInit>::new_from_slice(key);
        let mut mac = mac.map_err(|_| Unsigned("its key cannot be used".to_owned()))?;
        mac.update(text);
        Ok(mac.finalize().into_bytes().to_vec())
    }
    match hash {
        Hash::Sha1 => of::<Hmac<Sha1>>(key, text),
        Hash::Sha256 => of::<Hmac<Sha256>>(key, text),
        Hash::Sha512 => of::<Hmac<Sha512>>(key, text),
    }
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// The body, where its bytes are known: those of parts are written while they are sent.
fn body(request: &net::Request) -> Option<&[u8]> {
    match &request.body {
        net::Body::Empty => Some(&[]),
        net::Body::Bytes(bytes) => Some(bytes),
        net::Body::Multipart(_) => None,
    }
}

/// Whether a body is `application/x-www-form-urlencoded`.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type
        .split(';')
        .next()
        .is_some_and(|name| name.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

/// Host and, where it is not that of the scheme, port: as the header `host` has it.
fn host(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}

fn header(value: &str) -> Result<HeaderValue, Unsigned> {
    let mut value =
        HeaderValue::from_str(value).map_err(|_| Unsigned("a value cannot stand in a header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Signing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signing").field("how", &self.how).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
