//! A fake OAuth 2 authorization server on loopback, part of [`FakeApp`], with one instance per tag.
//!
//! Below `https://api.example.com/oauth/{tag}/` it serves `authorize`, `token`, `revoke`,
//! `register` and `api/…`. The `api` path responds with its path and a user if the access token
//! is valid, and with 401 otherwise. The metadata of the server and of `api` are at the paths that the
//! standards define. The server follows the standards (single-use codes, exact redirect URI, S256,
//! client credentials, grants bound to one client, refresh token rotation that revokes a token
//! family on reuse) until a test requests a fault. Requests that it received are in
//! [`FakeApp::seen`] under the tag.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use axum::{
    Json,
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use url::form_urlencoded::byte_serialize;

use crate::{
    client::http,
    fake_app::{FAKE_APP_HOSTS, ReceivedRequest, pairs, percent, visit},
    marked, secret,
    signed::public_key,
    unique, wait_until,
};

/// Client id of the project at the server.
pub const CLIENT_ID: &str = "client-1";
/// Secret of that client.
pub const CLIENT_SECRET: &str = marked!("client-secret-");

/// Id of a client without a secret.
pub const PUBLIC_CLIENT_ID: &str = "public-1";
/// Subject token that the server exchanges for an access token (RFC 8693).
pub const SUBJECT_TOKEN: &str = marked!("subject-");

/// A fake authorization server. Clones share its state.
#[derive(Debug, Clone)]
pub struct Issuer {
    origin: String,
    tag: String,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// True while responses of the token and registration endpoints are delayed.
    held: watch::Sender<bool>,
    /// True while caught requests wait.
    shut: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    settings: Settings,
    faults: VecDeque<Fault>,
    codes: HashMap<String, Grant>,
    /// Refresh tokens by value. A used token stays in the map, so that its reuse is detected.
    refresh: HashMap<String, Refresh>,
    /// Token family of each access token.
    access: HashMap<String, String>,
    revoked: Vec<String>,
    granted: BTreeMap<String, usize>,
    /// Registered clients and clients with a metadata document, with the secret of each that has
    /// one.
    clients: HashMap<String, Option<String>>,
    /// Public key of the project's client, if it signs assertions (RFC 7523).
    client_key: Vec<u8>,
    /// Number of requests to catch, and number of requests caught.
    to_catch: usize,
    caught: usize,
    /// All issued secrets: codes, tokens and client secrets.
    secrets: Vec<String>,
}

/// Behavior of the server in the absence of faults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// True if the user agrees at the authorization page, which asks nothing.
    pub agrees: bool,
    /// `expires_in` of access tokens, in seconds.
    pub lifetime: u64,
    /// True if a code exchange also issues a refresh token.
    pub refresh: bool,
    /// True if a refresh token is valid once. Its second use then revokes all tokens of the same
    /// family.
    pub rotate: bool,
    /// True if clients must send a code challenge.
    pub pkce: bool,
    /// `client_secret_expires_at` of a registered client. `None` for a public client.
    pub client_secret: Option<i64>,
    /// True if callbacks carry `iss` (RFC 9207).
    pub names_issuer: bool,
    /// Metadata members that replace the correct ones.
    pub says: Map<String, Value>,
    /// Status with which the API rejects a token.
    pub rejects_with: u16,
    /// Client authentication that the server registers for every client, whatever the client asks
    /// for.
    pub registers: Option<&'static str>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agrees: true,
            lifetime: 3600,
            refresh: true,
            rotate: true,
            pkce: true,
            client_secret: None,
            names_issuer: false,
            says: Map::new(),
            rejects_with: 401,
            registers: None,
        }
    }
}

/// A single faulty response of the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request is processed after this delay.
    Slow(Duration),
    /// This status and an HTML page. The request is not processed.
    Status(u16),
    /// The request is processed, and its response is lost: status 502.
    Lost,
    /// A refusal: 400 with this `error`.
    Refused(&'static str),
    /// A refusal whose `error_description` and `error_uri` repeat the whole request and a token.
    Echoes,
    /// Status 200 with this body.
    Says(&'static str),
    /// Status 200 with an access token of this many bytes.
    Long(usize),
    /// A redirection of the client, with its request, to a path that the test observes.
    Onward,
    /// The response lacks `expires_in`.
    NoExpiry,
}

#[derive(Debug)]
struct Grant {
    client: String,
    redirect_uri: String,
    challenge: Option<String>,
    scope: String,
}

#[derive(Debug)]
struct Refresh {
    client: String,
    family: String,
    scope: String,
    spent: bool,
}

impl Issuer {
    pub(crate) fn new(origin: &str, tag: &str) -> Self {
        let state = State {
            clients: HashMap::from([
                (CLIENT_ID.to_owned(), Some(CLIENT_SECRET.to_owned())),
                (PUBLIC_CLIENT_ID.to_owned(), None),
            ]),
            ..State::default()
        };
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            held: watch::channel(false).0,
            shut: watch::channel(false).0,
        });
        Self {
            origin: origin.to_owned(),
            tag: tag.to_owned(),
            inner,
        }
    }

    /// Returns the address as a manifest names it: `https://api.example.com/oauth/{tag}`.
    pub fn url(&self) -> String {
        format!("https://{}/oauth/{}", FAKE_APP_HOSTS[0], self.tag)
    }

    /// Returns a manifest's auth scheme for accounts at this server.
    pub fn scheme(&self) -> Value {
        json!({
            "mode": "OAUTH2", "name": "OAuth",
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
            "oauth2": { "authorize_url": format!("{}/authorize", self.url()), "token_url": format!("{}/token", self.url()) },
        })
    }

    /// Returns the credentials of an auth config for this server.
    pub fn credentials() -> Value {
        json!({ "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET })
    }

    /// Returns the scheme for a mode in which toolhost registers its own client and discovers the
    /// endpoints from the metadata.
    pub fn discovered(&self, mode: &str) -> Value {
        let mut scheme = self.scheme();
        (scheme["mode"], scheme["oauth2"]) = (
            mode.into(),
            json!({ "issuer": self.url(), "scopes": ["read"] }),
        );
        scheme
    }

    /// Deletes every registered client.
    pub fn forget_clients(&self) {
        self.state()
            .clients
            .retain(|id, _| [CLIENT_ID, PUBLIC_CLIENT_ID].contains(&id.as_str()));
    }

    /// Accepts assertions of the project's client signed with this private key, given in PEM.
    pub fn knows_key(&self, pem: &str) {
        self.state().client_key = public_key(pem);
    }

    /// Changes the settings.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state().settings);
    }

    /// Applies a fault to the next `times` responses of the token endpoint.
    pub fn fault(&self, fault: Fault, times: usize) {
        self.state()
            .faults
            .extend(std::iter::repeat_n(fault, times));
    }

    /// Removes all pending faults.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Delays responses of the token and registration endpoints after the requests are processed, or
    /// releases them.
    pub fn hold(&self, held: bool) {
        self.inner.held.send_replace(held);
    }

    /// Catches the next request to the token endpoint: it waits before it is processed. Later
    /// requests are not delayed.
    pub fn catch_next(&self) {
        self.inner.shut.send_replace(true);
        self.state().to_catch += 1;
    }

    /// Releases the caught requests.
    pub fn release_caught(&self) {
        self.inner.shut.send_replace(false);
    }

    /// Returns the number of requests caught so far.
    pub fn caught(&self) -> usize {
        self.state().caught
    }

    /// Returns every code, token and client secret issued so far.
    pub fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    /// Returns the number of valid access tokens.
    pub fn good(&self) -> usize {
        let state = self.state();
        let families = state.access.values();
        families
            .filter(|family| !state.revoked.contains(family))
            .count()
    }

    /// Returns the number of times tokens were issued for this grant type.
    pub fn granted(&self, grant_type: &str) -> usize {
        self.state().granted.get(grant_type).copied().unwrap_or(0)
    }

    /// Waits until tokens were issued for this grant type this many times.
    pub async fn wait_for(&self, grant_type: &str, count: usize) {
        let what = format!("{grant_type} is granted {count} times");
        wait_until(&what, async || self.granted(grant_type) == count).await;
    }

    /// Invalidates all access tokens, as if they had expired. Refresh tokens stay valid.
    pub fn expire(&self) {
        self.state().access.clear();
    }

    /// Revokes all issued tokens, as if the user had removed the connection at the provider.
    pub fn revoke_all(&self) {
        let mut state = self.state();
        let State {
            refresh, revoked, ..
        } = &mut *state;
        revoked.extend(refresh.values().map(|refresh| refresh.family.clone()));
        state.access.clear();
    }

    /// Returns true if an access token is valid.
    pub fn knows(&self, access_token: &str) -> bool {
        let state = self.state();
        let family = state.access.get(access_token);
        family.is_some_and(|family| !state.revoked.contains(family))
    }

    /// Opens an address of the server as a browser does, and returns the redirect target.
    pub async fn visit(&self, url: &str) -> String {
        visit(&self.origin, &self.url(), url).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock()
    }

    /// Responds to a request below `/oauth/{tag}/`.
    pub(crate) async fn answer(&self, seen: &ReceivedRequest) -> Response {
        match seen.path.split('/').nth(3).unwrap_or_default() {
            "authorize" => {
                let parameters = pairs(seen.query.as_bytes());
                self.read_client(&parameters).await;
                self.authorize(&parameters)
            }
            "register" => {
                let answer = self.register(seen);
                self.wait_while_held().await;
                answer
            }
            "token" => self.token(seen).await,
            "revoke" => self.revoke(seen),
            "api" => {
                let token = seen
                    .header("authorization")
                    .strip_prefix("Bearer ")
                    .unwrap_or_default();
                let mut body = json!({ "path": seen.path, "user": "amy@example.com" });
                if self.knows(token) {
                    return body.to_string().into_response();
                }
                body["error"] = "token_expired".into();
                let status = self.state().settings.rejects_with;
                let status = StatusCode::from_u16(status).expect("a test names a status");
                let challenge = "Bearer error=\"invalid_token\"";
                let challenge = [(header::WWW_AUTHENTICATE, challenge)];
                (status, challenge, body.to_string()).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    async fn wait_while_held(&self) {
        let mut held = self.inner.held.subscribe();
        held.wait_for(|held| !held).await.ok();
    }

    /// Returns the metadata of the authorization server (RFC 8414) or of its API (RFC 9728).
    pub(crate) fn metadata(&self, of_api: bool) -> Response {
        let own = self.url();
        let state = self.state();
        let mut metadata = if of_api {
            json!({ "resource": format!("{own}/api"), "authorization_servers": [own] })
        } else {
            json!({
                "issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                "registration_endpoint": format!("{own}/register"), "revocation_endpoint": format!("{own}/revoke"),
                "authorization_response_iss_parameter_supported": state.settings.names_issuer,
            })
        };
        let members = metadata.as_object_mut().expect("it is one");
        members.extend(state.settings.says.clone());
        Json(metadata).into_response()
    }

    /// Registers a client (RFC 7591), or reads a registered client (RFC 7592).
    fn register(&self, seen: &ReceivedRequest) -> Response {
        let mut state = self.state();
        if seen.method == "GET" {
            let id = seen.path.rsplit('/').next().unwrap_or_default();
            let own = seen.header("authorization") == format!("Bearer {}", registration_token(id));
            let status = match own && state.clients.contains_key(id) {
                true => StatusCode::OK,
                false => StatusCode::UNAUTHORIZED,
            };
            return (status, "{}").into_response();
        }
        let parameters: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let uris = parameters["redirect_uris"].as_array().map_or(0, Vec::len);
        if uris != 1 || parameters["client_name"].as_str().is_none_or(str::is_empty) {
            return oauth_error(StatusCode::BAD_REQUEST, "invalid_client_metadata");
        }
        let id = format!("dyn-{}", unique(8));
        let mut answer = json!({
            "client_id": id, "registration_client_uri": format!("{}/register/{id}", self.url()),
            "registration_access_token": registration_token(&id),
        });
        if let Some(how) = state.settings.registers {
            answer["token_endpoint_auth_method"] = how.into();
        }
        let secret = state.settings.client_secret.map(|ends| {
            let secret = format!("dyn-secret-{}", secret());
            (answer["client_secret"], answer["client_secret_expires_at"]) =
                (secret.clone().into(), ends.into());
            secret
        });
        state
            .secrets
            .extend(secret.iter().cloned().chain([registration_token(&id)]));
        state.clients.insert(id, secret);
        *state.granted.entry("registration".to_owned()).or_default() += 1;
        (StatusCode::CREATED, Json(answer)).into_response()
    }

    /// Reads the metadata document of a client at its id, if that is a URL.
    async fn read_client(&self, parameters: &BTreeMap<String, String>) {
        let id = parameters.get("client_id");
        let Some(id) = id.filter(|id| id.starts_with("http")) else {
            return;
        };
        let Ok(answer) = http().get(id).send().await else {
            return;
        };
        let metadata: Value = answer.json().await.unwrap_or_default();
        let back = metadata["redirect_uris"][0].as_str();
        let proper =
            metadata["client_id"] == *id && metadata["token_endpoint_auth_method"] == "none";
        if proper && back == parameters.get("redirect_uri").map(String::as_str) {
            self.state().clients.insert(id.clone(), None);
        }
    }

    fn authorize(&self, parameters: &BTreeMap<String, String>) -> Response {
        let get = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let mut state = self.state();
        let challenge = parameters.get("code_challenge").cloned();
        let is_bound = challenge.is_some() && get("code_challenge_method") == "S256";
        let proper = get("response_type") == "code"
            && state.clients.contains_key(&get("client_id"))
            && get("redirect_uri").starts_with("http")
            && !get("state").is_empty()
            && (is_bound || !state.settings.pkce);
        if !proper {
            let refusal = format!("this is no request for authorization: {parameters:?}");
            return (StatusCode::BAD_REQUEST, refusal).into_response();
        }
        let redirect_uri = get("redirect_uri");
        let separator = if redirect_uri.contains('?') { '&' } else { '?' };
        let decision = if state.settings.agrees {
            let code = format!("code-{}", secret());
            let agreed = Grant {
                client: get("client_id"),
                redirect_uri: redirect_uri.clone(),
                challenge,
                scope: get("scope"),
            };
            state.secrets.push(code.clone());
            state.codes.insert(code.clone(), agreed);
            format!("code={code}")
        } else {
            "error=access_denied&error_description=Not%20today".to_owned()
        };
        let shown = percent(&get("state"));
        let mut to = format!("{redirect_uri}{separator}{decision}&state={shown}");
        if state.settings.names_issuer {
            to += &format!("&iss={}", percent(&self.url()));
        }
        (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
    }

    async fn token(&self, seen: &ReceivedRequest) -> Response {
        if self.state().catch() {
            let mut shut = self.inner.shut.subscribe();
            shut.wait_for(|shut| !shut).await.ok();
        }
        let fault = self.state().faults.pop_front();
        match fault {
            Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
            Some(Fault::Status(status)) => {
                let status = StatusCode::from_u16(status).expect("a test names a status");
                return (status, Html("<h1>Sorry</h1>")).into_response();
            }
            Some(Fault::Echoes) => {
                let body = String::from_utf8_lossy(&seen.body);
                let told = format!("{:?} {body} {}", seen.headers, marked!("at-"));
                let refusal = json!({ "error": "invalid_grant", "error_description": told, "error_uri": told });
                return (StatusCode::BAD_REQUEST, Json(refusal)).into_response();
            }
            Some(Fault::Refused(error)) => return oauth_error(StatusCode::BAD_REQUEST, error),
            Some(Fault::Says(body)) => {
                let media_type = [(header::CONTENT_TYPE, "application/json")];
                return (media_type, body).into_response();
            }
            Some(Fault::Long(size)) => {
                return Json(json!({ "access_token": "a".repeat(size) })).into_response();
            }
            Some(Fault::Onward) => {
                let to = format!("{}/onward", self.url());
                return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response();
            }
            _ => {}
        }
        let given = self.state().grant(seen);
        self.wait_while_held().await;
        let mut given = match given {
            Ok(given) => given,
            Err((status, error)) => return oauth_error(status, error),
        };
        match fault {
            Some(Fault::Lost) => return (StatusCode::BAD_GATEWAY, "lost").into_response(),
            Some(Fault::NoExpiry) => {
                let members = given.as_object_mut().expect("an answer is an object");
                members.remove("expires_in");
            }
            _ => {}
        }
        Json(given).into_response()
    }

    /// Revokes a token (RFC 7009). An unknown token is not an error. A request without client
    /// authentication needs only the token.
    fn revoke(&self, seen: &ReceivedRequest) -> Response {
        let parameters: BTreeMap<_, _> = pairs(&seen.body);
        let mut state = self.state();
        let is_said =
            parameters.contains_key("client_id") || !seen.header("authorization").is_empty();
        if is_said && state.client(seen, &parameters).is_none() {
            return oauth_error(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        let token = parameters.get("token").cloned().unwrap_or_default();
        let refresh = state.refresh.get(&token);
        let family = refresh.map(|refresh| &refresh.family);
        let family = family.or(state.access.get(&token)).cloned();
        state.revoked.extend(family);
        StatusCode::OK.into_response()
    }
}

impl State {
    /// Returns true if a request is to be caught.
    fn catch(&mut self) -> bool {
        let is_caught = self.to_catch > 0;
        self.to_catch -= usize::from(is_caught);
        self.caught += usize::from(is_caught);
        is_caught
    }

    fn grant(&mut self, seen: &ReceivedRequest) -> Result<Value, (StatusCode, &'static str)> {
        let parameters: BTreeMap<_, _> = pairs(&seen.body);
        let get = |name: &str| parameters.get(name).cloned().unwrap_or_default();
        let bad = |error| (StatusCode::BAD_REQUEST, error);
        let grant_type = get("grant_type");
        let client = self.client(seen, &parameters);
        if ![JWT_BEARER, SAML_BEARER].contains(&grant_type.as_str()) && client.is_none() {
            return Err((StatusCode::UNAUTHORIZED, "invalid_client"));
        }
        let client = client.unwrap_or_default();
        let (family, scope, refresh) = match grant_type.as_str() {
            "authorization_code" => {
                let agreed = self.codes.remove(&get("code"));
                let agreed = agreed.ok_or(bad("invalid_grant"))?;
                let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier")));
                // A verifier without a challenge shows that the challenge was removed from the
                // authorization request (RFC 9700, section 4.8.2).
                let proven = match agreed.challenge {
                    Some(challenge) => challenge == proof,
                    None => !parameters.contains_key("code_verifier"),
                };
                if !proven || agreed.redirect_uri != get("redirect_uri") || agreed.client != client
                {
                    return Err(bad("invalid_grant"));
                }
                (unique(8), agreed.scope, self.settings.refresh)
            }
            "refresh_token" => {
                let rotate = self.settings.rotate;
                let known = self.refresh.get_mut(&get("refresh_token"));
                let known = known.ok_or(bad("invalid_grant"))?;
                let reused = std::mem::replace(&mut known.spent, rotate) && rotate;
                if reused {
                    self.revoked.push(known.family.clone());
                }
                if self.revoked.contains(&known.family) || known.client != client {
                    return Err(bad("invalid_grant"));
                }
                (known.family.clone(), known.scope.clone(), rotate)
            }
            "client_credentials" => (unique(8), get("scope"), false),
            "password" if get("password") == "pass" => (unique(8), get("scope"), true),
            TOKEN_EXCHANGE if get("subject_token") == SUBJECT_TOKEN => {
                (unique(8), get("scope"), false)
            }
            JWT_BEARER if get("assertion").split('.').count() == 3 => {
                (unique(8), get("scope"), false)
            }
            SAML_BEARER if is_saml(&get("assertion")) => (unique(8), get("scope"), false),
            "password" | TOKEN_EXCHANGE | JWT_BEARER | SAML_BEARER => {
                return Err(bad("invalid_grant"));
            }
            _ => return Err(bad("unsupported_grant_type")),
        };
        *self.granted.entry(grant_type).or_default() += 1;
        let access_token = format!("at-{}", secret());
        self.access.insert(access_token.clone(), family.clone());
        self.secrets.push(access_token.clone());
        let mut given = json!({
            "access_token": access_token, "token_type": "Bearer", "expires_in": self.settings.lifetime, "scope": scope.clone(),
        });
        if refresh {
            let token = format!("rt-{}", secret());
            given["refresh_token"] = token.clone().into();
            self.secrets.push(token.clone());
            self.refresh.insert(
                token,
                Refresh {
                    client,
                    family,
                    scope,
                    spent: false,
                },
            );
        }
        Ok(given)
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const SAML_BEARER: &str = "urn:ietf:params:oauth:grant-type:saml2-bearer";

/// Returns true if the SAML assertion names a user of this provider (RFC 7522, section 2.1).
fn is_saml(assertion: &str) -> bool {
    let xml = URL_SAFE_NO_PAD
        .decode(assertion)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    xml.is_some_and(|xml| xml.starts_with("<saml2:Assertion") && xml.contains("amy@example.com"))
}

impl State {
    /// Returns the authenticated client. A client authenticates by header or by body, not by both
    /// (RFC 6749, section 2.3). A client without a secret is identified by its id alone, and a
    /// client that signs by its assertion alone (RFC 7523, section 2.2).
    fn client(
        &self,
        seen: &ReceivedRequest,
        parameters: &BTreeMap<String, String>,
    ) -> Option<String> {
        if let Some(assertion) = parameters.get("client_assertion") {
            let (signed, signature) = assertion.rsplit_once('.')?;
            let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
            let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &self.client_key);
            let good = !parameters.contains_key("client_secret")
                && key.verify(signed.as_bytes(), &signature).is_ok();
            return good.then(|| CLIENT_ID.to_owned());
        }
        let header = seen.header("authorization");
        let named = parameters.get("client_id");
        let shown = parameters.get("client_secret");
        let found = self.clients.iter().find(|(id, secret)| match secret {
            None => named == Some(id) && shown.is_none() && header.is_empty(),
            Some(secret) => {
                let pair = format!("{}:{}", form_word(id), form_word(secret));
                let as_user = format!("{secret}:");
                let by_header = [pair, as_user]
                    .iter()
                    .any(|pair| header == format!("Basic {}", STANDARD.encode(pair)));
                let by_body = named == Some(id) && shown == Some(secret);
                by_header != by_body && (by_body || shown.is_none())
            }
        });
        found.map(|(id, _)| id.clone())
    }
}

/// Encodes a word as a form does.
fn form_word(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

/// Returns the registration access token of a client, with which it reads its own registration.
fn registration_token(id: &str) -> String {
    format!("{}-{id}", marked!("reg-"))
}

fn oauth_error(status: StatusCode, error: &str) -> Response {
    let body = json!({ "error": error, "error_description": "as the test asks" });
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FakeApp;

    async fn post(issuer: &Issuer, form: &str) -> (u16, Value) {
        let url = format!("{}/oauth/{}/token", issuer.origin, issuer.tag);
        let body = format!("{form}&client_id={CLIENT_ID}&client_secret={CLIENT_SECRET}");
        let answer = http().post(url).body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    #[tokio::test]
    async fn code_and_refresh_token_work_once() {
        let issuer = FakeApp::start().issuer("t1");
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest("v"));
        let url = format!(
            "{}/authorize?response_type=code&client_id={CLIENT_ID}&redirect_uri=https://a.example/&state=s&\
             code_challenge={challenge}&code_challenge_method=S256",
            issuer.url()
        );
        let back = issuer.visit(&url).await;
        let code = back
            .strip_prefix("https://a.example/?code=")
            .unwrap()
            .strip_suffix("&state=s")
            .unwrap();
        let form = format!(
            "grant_type=authorization_code&code={code}&redirect_uri=https://a.example/&code_verifier=v"
        );
        let (status, first) = post(&issuer, &form).await;
        assert_eq!(status, 200, "{first}");
        assert_eq!(post(&issuer, &form).await.1["error"], "invalid_grant");
        let refresh = format!(
            "grant_type=refresh_token&refresh_token={}",
            first["refresh_token"].as_str().unwrap()
        );
        let (_, second) = post(&issuer, &refresh).await;
        assert!(issuer.knows(second["access_token"].as_str().unwrap()));
        assert_eq!(post(&issuer, &refresh).await.1["error"], "invalid_grant");
        assert!(!issuer.knows(second["access_token"].as_str().unwrap()));
        assert_eq!(
            (
                issuer.granted("refresh_token"),
                issuer.granted("authorization_code")
            ),
            (1, 1)
        );
    }
}
