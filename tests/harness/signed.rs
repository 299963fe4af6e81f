//! Fake providers that require signed requests and verify the signatures by the standards alone.
//!
//! [`Provider`] is an OAuth 1.0 provider (RFC 5849), part of [`FakeApp`](crate::FakeApp) under
//! `https://api.example.com/oauth1/{tag}/`, with `request`, `authorize`, `token` and `api/…`. The
//! `api` path returns the request to a caller that signs as an account, and 401 otherwise. A nonce
//! is valid once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::{Mutex, MutexGuard};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::{
    fake_app::{FAKE_APP_HOSTS, ReceivedRequest, pairs, visit},
    marked,
    tls::openssl,
    unique,
};

/// Consumer key of the project at providers.
const CONSUMER_KEY: &str = "consumer-1";
/// Consumer secret, with characters that encodings change.
pub const CONSUMER_SECRET: &str = marked!("consumer&secret+");

/// Bytes that are percent-encoded (RFC 5849, section 3.6).
const RESERVED_BYTES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An OAuth 1.0 provider. Clones share its state.
#[derive(Debug, Clone)]
pub struct Provider {
    origin: String,
    tag: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// Signature method as the manifest names it.
    method: String,
    agrees: bool,
    /// Secret, callback and verifier of temporary tokens.
    temporary: HashMap<String, Temporary>,
    /// Secrets of the accounts' tokens.
    accounts: HashMap<String, String>,
    nonces: BTreeSet<String>,
}

#[derive(Debug)]
struct Temporary {
    secret: String,
    callback: String,
    verifier: Option<String>,
}

impl Provider {
    pub(crate) fn new(origin: &str, tag: &str) -> Self {
        let state = State {
            method: "HMAC-SHA1".to_owned(),
            agrees: true,
            temporary: HashMap::new(),
            accounts: HashMap::new(),
            nonces: BTreeSet::new(),
        };
        Self {
            origin: origin.to_owned(),
            tag: tag.to_owned(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the address as a manifest names it.
    pub fn url(&self) -> String {
        format!("https://{}/oauth1/{}", FAKE_APP_HOSTS[0], self.tag)
    }

    /// Returns a manifest's auth scheme for accounts at this provider.
    pub fn scheme(&self) -> Value {
        let url = |name: &str| format!("{}/{name}", self.url());
        json!({
            "mode": "OAUTH1", "name": "OAuth", "sign": { "with": "oauth1", "method": self.state().method, "realm": "tests" },
            "oauth1": {
                "request_url": url("request"), "authorize_url": url("authorize"), "token_url": url("token"),
                "request_params": { "scope": "read write" }, "identity": "screen_name",
            },
        })
    }

    /// Returns the credentials of an auth config for this provider.
    pub fn credentials() -> Value {
        json!({ "consumer_key": CONSUMER_KEY, "consumer_secret": CONSUMER_SECRET })
    }

    /// Sets the signature method that the provider requires.
    pub fn signs_with(&self, method: &str) {
        self.state().method = method.to_owned();
    }

    /// Makes the user deny authorization.
    pub fn deny_authorization(&self) {
        self.state().agrees = false;
    }

    /// Opens an address of the provider as a browser does, and returns the redirect target.
    pub async fn visit(&self, url: &str) -> String {
        visit(&self.origin, &self.url(), url).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Responds to a request below `/oauth1/{tag}/`.
    pub(crate) fn answer(&self, seen: &ReceivedRequest) -> Response {
        let mut state = self.state();
        match seen.path.split('/').nth(3).unwrap_or_default() {
            "request" => state.request(seen),
            "authorize" => state.authorize(seen),
            "token" => state.token(seen),
            "api" => {
                let secret = |state: &State, token: &str| state.accounts.get(token).cloned();
                let (status, body) = match state.signed(seen, secret) {
                    Ok(_) => (
                        StatusCode::OK,
                        json!({ "path": seen.path, "query": seen.query }),
                    ),
                    Err(why) => (StatusCode::UNAUTHORIZED, json!({ "error": why })),
                };
                (status, body.to_string()).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

impl State {
    /// Verifies the signature of a request with a secret looked up by the token, and returns the
    /// protocol parameters.
    ///
    /// # Errors
    /// The reason for which the signature is refused.
    fn signed(
        &mut self,
        seen: &ReceivedRequest,
        secret: impl Fn(&Self, &str) -> Option<String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let given = protocol(seen.header("authorization")).ok_or("there is no signature")?;
        let get = |name: &str| given.get(name).cloned().unwrap_or_default();
        if get("oauth_consumer_key") != CONSUMER_KEY || get("oauth_signature_method") != self.method
        {
            return Err("another client or another method".to_owned());
        }
        if !self.nonces.insert(get("oauth_nonce")) {
            return Err("the nonce was used".to_owned());
        }
        let secret = secret(self, &get("oauth_token")).ok_or("the token is not known")?;
        let key = format!("{}&{}", encoded(CONSUMER_SECRET), encoded(&secret));
        let text = base_string(seen, &given);
        let signature = get("oauth_signature");
        let good = match self.method.as_str() {
            "HMAC-SHA1" => STANDARD.encode(mac::<Hmac<Sha1>>(key.as_bytes(), &text)) == signature,
            "HMAC-SHA256" => {
                STANDARD.encode(mac::<Hmac<Sha256>>(key.as_bytes(), &text)) == signature
            }
            _ => key == signature,
        };
        if good {
            Ok(given)
        } else {
            Err(format!("the signature is not over {text}"))
        }
    }

    fn request(&mut self, seen: &ReceivedRequest) -> Response {
        let given = match self.signed(seen, |_, token| token.is_empty().then(String::new)) {
            Ok(given) if given.contains_key("oauth_callback") => given,
            Ok(_) => return oauth1_error("there is no callback"),
            Err(why) => return oauth1_error(&why),
        };
        let token = format!("tmp-{}", unique(8));
        let secret = crate::secret();
        let answer = format!(
            "oauth_token={token}&oauth_token_secret={secret}&oauth_callback_confirmed=true"
        );
        let temporary = Temporary {
            secret,
            callback: given["oauth_callback"].clone(),
            verifier: None,
        };
        self.temporary.insert(token, temporary);
        answer.into_response()
    }

    fn authorize(&mut self, seen: &ReceivedRequest) -> Response {
        let parameters: BTreeMap<_, _> = pairs(seen.query.as_bytes());
        let token = parameters.get("oauth_token").cloned().unwrap_or_default();
        let Some(temporary) = self.temporary.get_mut(&token) else {
            return oauth1_error("the token is not known");
        };
        let verifier = format!("v-{}", crate::secret());
        temporary.verifier = Some(verifier.clone());
        let word = if self.agrees {
            format!("oauth_token={token}&oauth_verifier={verifier}")
        } else {
            format!("denied={token}")
        };
        (
            StatusCode::FOUND,
            [(header::LOCATION, format!("{}&{word}", temporary.callback))],
        )
            .into_response()
    }

    fn token(&mut self, seen: &ReceivedRequest) -> Response {
        let secret = |state: &Self, token: &str| Some(state.temporary.get(token)?.secret.clone());
        let given = match self.signed(seen, secret) {
            Ok(given) => given,
            Err(why) => return oauth1_error(&why),
        };
        let temporary = self
            .temporary
            .remove(&given["oauth_token"])
            .expect("its signature was good");
        let verifier = temporary.verifier.as_ref();
        if verifier.is_none() || verifier != given.get("oauth_verifier") {
            return oauth1_error("nobody has agreed");
        }
        let token = format!("acc-{}", crate::secret());
        let secret = format!("{}/+", crate::secret());
        let answer = format!(
            "oauth_token={token}&oauth_token_secret={}&screen_name=amy",
            encoded(&secret)
        );
        self.accounts.insert(token, secret);
        answer.into_response()
    }
}

/// Creates a new RSA private key in PEM (PKCS#8).
pub fn private_key(bits: u32) -> String {
    let key = openssl(Path::new("/"), &format!("genrsa {bits}"));
    String::from_utf8(key).expect("PEM is text")
}

/// Returns the public key of a private key in PEM, as DER (RFC 8017).
pub(crate) fn public_key(pem: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("key"), pem).expect("a file can be written");
    let arguments = "rsa -in key -RSAPublicKey_out -outform DER";
    openssl(folder.path(), arguments)
}

fn oauth1_error(why: &str) -> Response {
    (StatusCode::UNAUTHORIZED, why.to_owned()).into_response()
}

/// Parses the parameters in the header (RFC 5849, section 3.5.1).
fn protocol(header: &str) -> Option<BTreeMap<String, String>> {
    let pairs = header.strip_prefix("OAuth ")?.split(", ").map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((
            decoded(name),
            decoded(value.strip_prefix('"')?.strip_suffix('"')?),
        ))
    });
    pairs.collect()
}

/// Builds the signature base string (RFC 5849, section 3.4.1) for the address to which the caller
/// sent the request.
fn base_string(seen: &ReceivedRequest, protocol: &BTreeMap<String, String>) -> String {
    let mut all: Vec<_> = pairs(seen.query.as_bytes());
    let media_type = seen.header("content-type");
    if media_type.starts_with("application/x-www-form-urlencoded") {
        all.extend(pairs::<Vec<_>>(&seen.body));
    }
    let mut own = protocol.clone();
    own.retain(|name, _| !["realm", "oauth_signature"].contains(&name.as_str()));
    all.extend(own);
    let encode = |(name, value): &(String, String)| (encoded(name), encoded(value));
    let mut all: Vec<_> = all.iter().map(encode).collect();
    all.sort();
    let parameters = all.iter().map(|(name, value)| format!("{name}={value}"));
    let parameters = parameters.collect::<Vec<_>>().join("&");
    let address = format!("https://{}{}", FAKE_APP_HOSTS[0], seen.path);
    let (address, parameters) = (encoded(&address), encoded(&parameters));
    format!("{}&{address}&{parameters}", seen.method)
}

/// Returns true if a request for `https://api.example.com` carries the signature of this key (AWS
/// Signature Version 4).
pub fn is_signed_by_aws_key(seen: &ReceivedRequest, secret: &str) -> bool {
    let header = seen.header("authorization");
    let part = |name: &str| {
        let mut parts = header.split([' ', ',']);
        let found = parts.find_map(|part| part.strip_prefix(name));
        found.unwrap_or_default()
    };
    let (names, signature) = (part("SignedHeaders="), part("Signature="));
    let credential = part("Credential=").split_once('/');
    let scope = credential.map_or("", |(_, scope)| scope);
    let lines = names.split(';').map(|name| match name {
        "host" => format!("host:{}\n", FAKE_APP_HOSTS[0]),
        _ => format!("{name}:{}\n", seen.header(name).trim()),
    });
    let lines: String = lines.collect();
    let path: Vec<_> = seen.path.split('/').map(encoded).collect();
    let pairs = seen.query.split('&').filter(|pair| !pair.is_empty());
    let mut query: Vec<_> = pairs.collect();
    query.sort_unstable();
    let (path, query, body) = (path.join("/"), query.join("&"), sha256(&seen.body));
    let method = &seen.method;
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");
    let (date, digest) = (seen.header("x-amz-date"), sha256(canonical.as_bytes()));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}");
    let first = format!("AWS4{secret}").into_bytes();
    let next = |key: Vec<u8>, part: &str| mac::<Hmac<Sha256>>(&key, part);
    let key = scope.split('/').fold(first, next);
    !signature.is_empty() && hex::encode(mac::<Hmac<Sha256>>(&key, &text)) == signature
}

/// Returns the HMAC-SHA256 in hex.
pub fn hmac_sha256(key: &str, text: &str) -> String {
    hex::encode(mac::<Hmac<Sha256>>(key.as_bytes(), text))
}

/// Returns the SHA-256 digest of a body in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn mac<M: Mac + KeyInit>(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key has any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED_BYTES).to_string()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
