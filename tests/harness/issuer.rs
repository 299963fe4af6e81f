//! An authorization server on loopback: a corner of [`FakeApp`], one for each tag.
//!
//! Under `https://api.example.com/oauth/{tag}/`: `authorize`, `token`, `revoke`, and `api/…`, which answers what it was sent to
//! whoever shows a good access token, and 401 to others. It keeps to the standards (single-use codes, exact redirect URI,
//! S256, client credentials, rotation that revokes a family at reuse) until a test asks for a fault. What it was asked is in
//! [`FakeApp::seen`] under the tag.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::{
    fake_app::{Seen, percent},
    unique,
};

/// What the server knows the project by.
pub const CLIENT_ID: &str = "client-1";
/// Its secret.
pub const CLIENT_SECRET: &str = "client-secret-0123456789";

/// An authorization server; cloning shares it.
#[derive(Debug, Clone)]
pub struct Issuer {
    origin: String,
    tag: String,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Whether answers of the token endpoint are held back.
    held: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    settings: Settings,
    faults: Vec<Fault>,
    codes: HashMap<String, Agreed>,
    /// Refresh token to family; a spent one stays, so that its reuse is seen.
    refresh: HashMap<String, Refresh>,
    /// Access token to family.
    access: HashMap<String, String>,
    revoked: Vec<String>,
    granted: BTreeMap<String, usize>,
}

/// How it behaves when nothing is at fault.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the person does at the authorization page.
    pub consent: Consent,
    /// `expires_in` of access tokens.
    pub lifetime: u64,
    /// Whether a connection gets a refresh token.
    pub refresh: bool,
    /// Whether a refresh token is good once; the second use revokes all that came of the same connection.
    pub rotate: bool,
    /// Whether clients have to send a challenge.
    pub pkce: bool,
}

/// What the person does at the authorization page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Agrees at once.
    Agree,
    /// Says no at once.
    Deny,
    /// Is shown a page with two links.
    Ask,
}

/// One answer that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The token endpoint takes so long, then does its work.
    Slow(Duration),
    /// It answers this status with a page, and does nothing.
    Status(u16),
    /// It does its work and then breaks: the answer is lost, status 502.
    Lost,
    /// It answers 200 with HTML.
    Html,
    /// It answers 200 with half a document.
    Malformed,
    /// It answers 200 with `error`.
    ErrorInside,
    /// It refuses: 400 with this `error`.
    Refused(&'static str),
    /// It answers a form.
    Form,
    /// Its answer has no `expires_in`.
    NoExpiry,
    /// Its `expires_in` is text.
    TextExpiry,
    /// The callback comes from another issuer (RFC 9207).
    OtherIssuer,
}

#[derive(Debug)]
struct Agreed {
    redirect_uri: String,
    challenge: Option<String>,
    scope: String,
}

#[derive(Debug)]
struct Refresh {
    family: String,
    scope: String,
    spent: bool,
}

impl Issuer {
    pub(crate) fn new(origin: &str, tag: &str) -> Self {
        let settings = Settings { consent: Consent::Agree, lifetime: 3600, refresh: true, rotate: true, pkce: true };
        let state = State {
            settings,
            faults: Vec::new(),
            codes: HashMap::new(),
            refresh: HashMap::new(),
            access: HashMap::new(),
            revoked: Vec::new(),
            granted: BTreeMap::new(),
        };
        let inner = Arc::new(Inner { state: Mutex::new(state), held: watch::channel(false).0 });
        Self { origin: origin.to_owned(), tag: tag.to_owned(), inner }
    }

    /// Where it is, as a manifest names it: `https://api.example.com/oauth/{tag}`.
    pub fn url(&self) -> String {
        format!("https://{}/oauth/{}", crate::fake_app::HOSTS[0], self.tag)
    }

    /// The scheme of a manifest whose accounts are connected here.
    pub fn scheme(&self) -> Value {
        json!({
            "mode": "OAUTH2", "name": "OAuth",
            "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
            "oauth2": { "authorize_url": format!("{}/authorize", self.url()), "token_url": format!("{}/token", self.url()) },
        })
    }

    /// The credentials of an auth config for it.
    pub fn credentials() -> Value {
        json!({ "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET })
    }

    /// Changes how it behaves.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state().settings);
    }

    /// The next so many answers that can have this fault have it.
    pub fn fault(&self, fault: Fault, times: usize) {
        self.state().faults.extend(std::iter::repeat_n(fault, times));
    }

    /// Ends all faults.
    pub fn mend(&self) {
        self.state().faults.clear();
    }

    /// Holds answers of the token endpoint back, after its work is done, or lets them go.
    pub fn hold(&self, held: bool) {
        self.inner.held.send_replace(held);
    }

    /// How often tokens were given for this grant type.
    pub fn granted(&self, grant_type: &str) -> usize {
        self.state().granted.get(grant_type).copied().unwrap_or(0)
    }

    /// Makes all access tokens bad, as if their time were over. Refresh tokens stay good.
    pub fn expire(&self) {
        self.state().access.clear();
    }

    /// Takes back everything it gave, as a person does who removes the connection there.
    pub fn withdraw(&self) {
        let mut state = self.state();
        let families: Vec<_> = state.refresh.values().map(|refresh| refresh.family.clone()).collect();
        state.revoked.extend(families);
        state.access.clear();
    }

    /// Whether an access token is good.
    pub fn knows(&self, access_token: &str) -> bool {
        let state = self.state();
        state.access.get(access_token).is_some_and(|family| !state.revoked.contains(family))
    }

    /// Opens an address of it as a browser does, and answers where the browser is sent on.
    ///
    /// # Panics
    /// When it sends nobody on.
    pub async fn visit(&self, url: &str) -> String {
        let (status, location, body) = self.open(url).await;
        location.unwrap_or_else(|| panic!("{url} answered {status}: {body}"))
    }

    /// Opens an address of it as a browser does: status, where the browser is sent on, and page.
    ///
    /// # Panics
    /// When the address is not its own.
    #[expect(clippy::disallowed_methods, reason = "the test is the browser, not the server")]
    pub async fn open(&self, url: &str) -> (u16, Option<String>, String) {
        let own = url.strip_prefix(&self.url()).unwrap_or_else(|| panic!("{url} is not below {}", self.url()));
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        let request = client.expect("a client can be made").get(format!("{}/oauth/{}{own}", self.origin, self.tag));
        let answer = request.send().await.expect("the application answers");
        let location = answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        (answer.status().as_u16(), location, answer.text().await.unwrap_or_default())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().expect("no panic holds it")
    }

    /// Answers a request below `/oauth/{tag}/`.
    pub(crate) async fn answer(&self, seen: &Seen) -> Response {
        match seen.path.split('/').nth(3).unwrap_or_default() {
            "authorize" => self.authorize(&pairs(&seen.query)),
            "token" => self.token(seen).await,
            "revoke" => self.revoke(seen),
            "api" => {
                let token = seen.header("authorization").strip_prefix("Bearer ").unwrap_or_default();
                let status = if self.knows(token) { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
                (status, json!({ "path": seen.path, "user": "amy@example.com" }).to_string()).into_response()
            }
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn authorize(&self, asked: &BTreeMap<String, String>) -> Response {
        let get = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let mut state = self.state();
        let challenge = asked.get("code_challenge").cloned();
        let proper = get("response_type") == "code"
            && get("client_id") == CLIENT_ID
            && get("redirect_uri").starts_with("http")
            && !get("state").is_empty()
            && (!state.settings.pkce || (challenge.is_some() && get("code_challenge_method") == "S256"));
        if !proper {
            return (StatusCode::BAD_REQUEST, format!("this is no request for authorization: {asked:?}"))
                .into_response();
        }
        let decision = match (state.settings.consent, get("decision").as_str()) {
            (Consent::Agree, _) | (Consent::Ask, "agree") => "agree",
            (Consent::Deny, _) | (Consent::Ask, "deny") => "deny",
            (Consent::Ask, _) => {
                let query: Vec<_> = asked.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
                let link =
                    |decision: &str| format!("<a href=\"?{}&decision={decision}\">{decision}</a>", query.join("&"));
                return Html(format!("<h1>Agree?</h1>{} {}", link("agree"), link("deny"))).into_response();
            }
        };
        let mut to = format!("{}{}", get("redirect_uri"), if get("redirect_uri").contains('?') { "&" } else { "?" });
        if decision == "agree" {
            let code = format!("code-{}", unique(8));
            to += &format!("code={code}&state={}", percent(&get("state")));
            let agreed = Agreed { redirect_uri: get("redirect_uri"), challenge, scope: get("scope") };
            state.codes.insert(code, agreed);
        } else {
            to += &format!("error=access_denied&error_description=Not%20today&state={}", percent(&get("state")));
        }
        if state.take(|fault| fault == Fault::OtherIssuer).is_some() {
            to += &format!("&iss={}", percent("https://other.example.com"));
        }
        (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
    }

    async fn token(&self, seen: &Seen) -> Response {
        let fault = self.state().take(|fault| fault != Fault::OtherIssuer);
        match fault {
            Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
            Some(Fault::Status(status)) => {
                let status = StatusCode::from_u16(status).expect("a test names a status");
                return (status, Html("<h1>Sorry</h1>")).into_response();
            }
            Some(Fault::Html) => return Html("<h1>Welcome</h1>").into_response(),
            Some(Fault::Malformed) => return as_json(StatusCode::OK, "{\"access_token\":\"a"),
            Some(Fault::ErrorInside) => return refused(StatusCode::OK, "invalid_grant"),
            Some(Fault::Refused(error)) => return refused(StatusCode::BAD_REQUEST, error),
            _ => {}
        }
        let given = self.state().grant(seen);
        let mut held = self.inner.held.subscribe();
        held.wait_for(|held| !held).await.ok();
        let mut given = match given {
            Ok(given) => given,
            Err((status, error)) => return refused(status, error),
        };
        match fault {
            Some(Fault::Lost) => return (StatusCode::BAD_GATEWAY, "lost").into_response(),
            Some(Fault::NoExpiry) => drop(given.as_object_mut().and_then(|given| given.remove("expires_in"))),
            Some(Fault::TextExpiry) => given["expires_in"] = given["expires_in"].to_string().into(),
            Some(Fault::Form) => {
                let members = given.as_object().expect("an answer is an object").iter();
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let form: Vec<_> = members.map(|(name, value)| format!("{name}={}", percent(&text(value)))).collect();
                return ([(header::CONTENT_TYPE, "application/x-www-form-urlencoded")], form.join("&")).into_response();
            }
            _ => {}
        }
        as_json(StatusCode::OK, &given.to_string())
    }

    /// RFC 7009: an unknown token is fine too.
    fn revoke(&self, seen: &Seen) -> Response {
        let (asked, mut state) = (pairs(&String::from_utf8_lossy(&seen.body)), self.state());
        if !is_client(seen, &asked) {
            return refused(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        let token = asked.get("token").cloned().unwrap_or_default();
        let family = state.refresh.get(&token).map(|refresh| refresh.family.clone());
        let family = family.or_else(|| state.access.get(&token).cloned());
        state.revoked.extend(family);
        StatusCode::OK.into_response()
    }
}

impl State {
    fn take(&mut self, wanted: impl Fn(Fault) -> bool) -> Option<Fault> {
        let at = self.faults.iter().position(|&fault| wanted(fault))?;
        Some(self.faults.remove(at))
    }

    fn grant(&mut self, seen: &Seen) -> Result<Value, (StatusCode, &'static str)> {
        let asked = pairs(&String::from_utf8_lossy(&seen.body));
        let get = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let bad = |error| (StatusCode::BAD_REQUEST, error);
        let grant_type = get("grant_type");
        if ![JWT_BEARER, SAML_BEARER].contains(&grant_type.as_str()) && !is_client(seen, &asked) {
            return Err((StatusCode::UNAUTHORIZED, "invalid_client"));
        }
        let (family, scope, refresh) = match grant_type.as_str() {
            "authorization_code" => {
                let agreed = self.codes.remove(&get("code")).ok_or(bad("invalid_grant"))?;
                let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(get("code_verifier")));
                let proven = agreed.challenge.is_none_or(|challenge| challenge == proof);
                if !proven || agreed.redirect_uri != get("redirect_uri") {
                    return Err(bad("invalid_grant"));
                }
                (unique(8), agreed.scope, self.settings.refresh)
            }
            "refresh_token" => {
                let rotate = self.settings.rotate;
                let known = self.refresh.get_mut(&get("refresh_token")).ok_or(bad("invalid_grant"))?;
                let reused = std::mem::replace(&mut known.spent, rotate) && rotate;
                let (family, scope) = (known.family.clone(), known.scope.clone());
                if reused {
                    self.revoked.push(family.clone());
                }
                if self.revoked.contains(&family) {
                    return Err(bad("invalid_grant"));
                }
                (family, scope, rotate)
            }
            "client_credentials" => (unique(8), get("scope"), false),
            "password" if get("password") == "pass" => (unique(8), get("scope"), true),
            "password" => return Err(bad("invalid_grant")),
            JWT_BEARER if get("assertion").split('.').count() == 3 => (unique(8), get("scope"), false),
            SAML_BEARER if is_saml(&get("assertion")) => (unique(8), get("scope"), false),
            JWT_BEARER | SAML_BEARER => return Err(bad("invalid_grant")),
            _ => return Err(bad("unsupported_grant_type")),
        };
        *self.granted.entry(grant_type).or_default() += 1;
        let access_token = format!("at-{}", unique(8));
        self.access.insert(access_token.clone(), family.clone());
        let mut given = json!({
            "access_token": access_token, "token_type": "Bearer", "expires_in": self.settings.lifetime, "scope": scope.clone(),
        });
        if refresh {
            let token = format!("rt-{}", unique(8));
            given["refresh_token"] = token.clone().into();
            self.refresh.insert(token, Refresh { family, scope, spent: false });
        }
        Ok(given)
    }
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

const SAML_BEARER: &str = "urn:ietf:params:oauth:grant-type:saml2-bearer";

/// Whether a person of this application is asserted (RFC 7522, section 2.1).
fn is_saml(assertion: &str) -> bool {
    let xml = URL_SAFE_NO_PAD.decode(assertion).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    xml.is_some_and(|xml| xml.starts_with("<saml2:Assertion") && xml.contains("amy@example.com"))
}

/// By the header or by the body, not by both (RFC 6749, section 2.3).
fn is_client(seen: &Seen, asked: &BTreeMap<String, String>) -> bool {
    let pair = format!("{}:{}", percent_word(CLIENT_ID), percent_word(CLIENT_SECRET));
    let header = seen.header("authorization") == format!("Basic {}", STANDARD.encode(pair));
    let is = |name: &str, value: &str| asked.get(name).is_some_and(|given| given == value);
    let body = is("client_id", CLIENT_ID) && is("client_secret", CLIENT_SECRET);
    header != body && (body || !asked.contains_key("client_secret"))
}

/// As a form writes it; the client's names hold nothing but letters, digits and `-`.
fn percent_word(text: &str) -> String {
    percent(text).replace("%2D", "-")
}

fn pairs(form: &str) -> BTreeMap<String, String> {
    let read = reqwest::Url::parse(&format!("https://form.example/?{form}")).expect("a form is a query");
    read.query_pairs().into_owned().collect()
}

fn refused(status: StatusCode, error: &str) -> Response {
    as_json(status, &json!({ "error": error, "error_description": "as the test asks" }).to_string())
}

fn as_json(status: StatusCode, body: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_owned()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FakeApp;

    #[expect(clippy::disallowed_methods, reason = "the test is the client, not the server")]
    async fn post(issuer: &Issuer, form: &str) -> (u16, Value) {
        let url = format!("{}/oauth/{}/token", issuer.origin, issuer.tag);
        let body = format!("{form}&client_id={CLIENT_ID}&client_secret={CLIENT_SECRET}");
        let answer = reqwest::Client::new().post(url).body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    #[tokio::test]
    async fn a_code_is_good_once_and_a_refresh_token_used_twice_ends_everything() {
        let issuer = FakeApp::start().issuer("t1");
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest("v"));
        let url = format!(
            "{}/authorize?response_type=code&client_id={CLIENT_ID}&redirect_uri=https://a.example/&state=s&\
             code_challenge={challenge}&code_challenge_method=S256",
            issuer.url()
        );
        let back = issuer.visit(&url).await;
        let code = back.strip_prefix("https://a.example/?code=").unwrap().strip_suffix("&state=s").unwrap();
        let form = format!("grant_type=authorization_code&code={code}&redirect_uri=https://a.example/&code_verifier=v");
        let (status, first) = post(&issuer, &form).await;
        assert_eq!(status, 200, "{first}");
        assert_eq!(post(&issuer, &form).await.1["error"], "invalid_grant");
        let refresh = format!("grant_type=refresh_token&refresh_token={}", first["refresh_token"].as_str().unwrap());
        let (_, second) = post(&issuer, &refresh).await;
        assert!(issuer.knows(second["access_token"].as_str().unwrap()));
        assert_eq!(post(&issuer, &refresh).await.1["error"], "invalid_grant");
        assert!(!issuer.knows(second["access_token"].as_str().unwrap()));
        assert_eq!((issuer.granted("refresh_token"), issuer.granted("authorization_code")), (1, 1));
    }
}
