//! Discovery of endpoints, if a manifest names only the provider's issuer or its API (RFC 8414, RFC
//! 9728, and the authorization text of the Model Context Protocol).
//!
//! An issuer is trusted only about itself: its metadata must be served at an address derived from
//! its identifier, and must repeat that identifier. Metadata is cached for one hour, and for longer
//! while the issuer is unavailable, so that an outage of the metadata prevents no refresh.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use manifest::{AuthMode, AuthScheme, Call};
use net::{HeaderMap, Url};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    Flow, Refusal, Result, after,
    request::{self, fill_url},
    variables::member,
};

/// Timeout of all requests for the metadata of one issuer together. A refresh has 30 seconds, and token
/// endpoints of some providers take ten.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which metadata is considered fresh.
const METADATA_TTL: Duration = Duration::from_secs(3_600);
/// Maximum number of cached issuers.
const MAX_CACHED_ISSUERS: usize = 256;
/// Maximum length of an address in bytes.
const MAX_URL_BYTES: usize = 2_048;

/// Metadata of an issuer.
#[derive(Debug, Clone, Default)]
struct Metadata {
    issuer: String,
    authorize: Option<String>,
    token: Option<String>,
    register: Option<String>,
    revoke: Option<String>,
    names_issuer: bool,
}

/// Metadata cache of issuers; one instance per process.
#[derive(Debug, Default)]
pub struct MetadataCache {
    cached: Mutex<HashMap<Url, (i64, Metadata)>>,
}

impl MetadataCache {
    /// Returns the scheme of a flow with all endpoints that its provider publishes.
    ///
    /// # Errors
    /// See [`Refusal`]. Also fails if a required endpoint is missing from both manifest and
    /// metadata.
    pub async fn resolve<'a>(&self, flow: &Flow<'a>) -> Result<Cow<'a, AuthScheme>> {
        let oauth2 = flow.scheme.oauth2.as_ref();
        let Some((oauth2, identifier)) = oauth2.and_then(|oauth2| {
            Some((oauth2, oauth2.issuer.as_ref().or(oauth2.resource.as_ref())?))
        }) else {
            return Ok(Cow::Borrowed(flow.scheme));
        };
        let published = self
            .metadata(flow, fill_url(flow, identifier)?, oauth2.issuer.is_some())
            .await?;
        let (mode, mut oauth2) = (flow.scheme.mode, oauth2.clone());
        if oauth2.token_url.is_empty() {
            oauth2.token_url = published
                .token
                .clone()
                .ok_or_else(|| missing_endpoint(&published.issuer, "token endpoint"))?;
        }
        if oauth2.authorize_url.is_empty() && mode.redirects() {
            oauth2.authorize_url = published
                .authorize
                .clone()
                .ok_or_else(|| missing_endpoint(&published.issuer, "authorization endpoint"))?;
        }
        if mode == AuthMode::DcrOauth {
            // A project may use a client of its own, so a missing registration endpoint is not an
            // error.
            let register = oauth2.register.get_or_insert_default();
            register.url = register.url.take().or(published.register);
        }
        if oauth2.revoke.is_none() {
            oauth2.revoke = published.revoke.map(|url| Call {
                url: Some(url),
                ..Call::default()
            });
        }
        oauth2.names_issuer |= published.names_issuer;
        oauth2.issuer = Some(published.issuer);
        Ok(Cow::Owned(AuthScheme {
            oauth2: Some(oauth2),
            ..flow.scheme.clone()
        }))
    }

    async fn metadata(
        &self,
        flow: &Flow<'_>,
        identifier: Url,
        is_issuer: bool,
    ) -> Result<Metadata> {
        let cached = self.cached.lock().get(&identifier).cloned();
        if let Some((read, metadata)) = &cached
            && after(*read, METADATA_TTL) > flow.now_ms
        {
            return Ok(metadata.clone());
        }
        let found = discover(flow.net, &identifier, is_issuer).await;
        match (found, cached) {
            (Ok(metadata), _) => {
                let mut all = self.cached.lock();
                if all.len() >= MAX_CACHED_ISSUERS {
                    all.clear();
                }
                all.insert(identifier, (flow.now_ms, metadata.clone()));
                Ok(metadata)
            }
            (Err(_), Some((_, old))) => Ok(old),
            (Err(refusal), None) => Err(refusal),
        }
    }
}

/// Fetches the metadata of an issuer, or of the one that an API names.
async fn discover(net: &net::Client, identifier: &Url, is_issuer: bool) -> Result<Metadata> {
    let fetching = async {
        if is_issuer {
            return fetch_metadata(net, identifier).await;
        }
        match find_issuer(net, identifier).await? {
            Some(issuer) => fetch_metadata(net, &issuer).await,
            None => fetch_origin_metadata(net, identifier).await,
        }
    };
    let fetched = timeout(DISCOVERY_TIMEOUT, fetching).await;
    fetched.unwrap_or_else(|_| {
        let seconds = DISCOVERY_TIMEOUT.as_secs();
        Err(Refusal::Unavailable {
            reason: format!("`{identifier}` published no metadata within {seconds} s"),
            retry_after: None,
            may_have_issued: false,
        })
    })
}

fn missing_endpoint(issuer: &str, endpoint: &str) -> Refusal {
    Refusal::malformed(format!("the metadata of `{issuer}` names no {endpoint}"))
}

/// Returns the first issuer that an API names (RFC 9728, section 3), or `None` if the API lacks
/// metadata.
async fn find_issuer(net: &net::Client, resource: &Url) -> Result<Option<Url>> {
    let Some(answer) = fetch_resource_metadata(net, resource).await? else {
        return Ok(None);
    };
    let is_own = [resource, &origin(resource)]
        .iter()
        .any(|name| repeats_identifier(&answer, "resource", name));
    let issuer = url(&answer, "authorization_servers.0")
        .filter(|_| is_own)
        .and_then(|url| Url::parse(&url).ok());
    issuer.map(Some).ok_or_else(|| {
        Refusal::malformed(format!(
            "the metadata of `{resource}` names no authorization server"
        ))
    })
}

/// Fetches the metadata of an API: for its path, for its origin, or where its challenge says that it
/// is (RFC 9728, sections 3.1 and 5.1).
async fn fetch_resource_metadata(net: &net::Client, resource: &Url) -> Result<Option<Value>> {
    let mut names = vec![resource.clone(), origin(resource)];
    names.dedup();
    for name in &names {
        let address = well_known(name, "oauth-protected-resource");
        let answer = fetch_document(net, address).await?;
        if answer.is_some() {
            return Ok(answer);
        }
    }
    let response = request::get(net, resource.clone(), None).await?;
    match challenged_metadata(&response.headers) {
        Some(address) => fetch_document(net, address).await,
        None => Ok(None),
    }
}

/// Returns the address of the metadata that a challenge names.
fn challenged_metadata(headers: &HeaderMap) -> Option<Url> {
    let mut parameters = net::challenges(headers).flat_map(|challenge| challenge.params);
    let (_, value) = parameters.find(|(name, _)| *name == "resource_metadata")?;
    let address = Url::parse(&value.to_unescaped()).ok()?;
    (address.scheme() == "https").then_some(address)
}

/// Fetches the metadata of an issuer (RFC 8414, section 3), or its OpenID Connect Discovery
/// document.
async fn fetch_metadata(net: &net::Client, issuer: &Url) -> Result<Metadata> {
    let found = find_metadata(net, issuer).await?;
    found.ok_or_else(|| Refusal::malformed(format!("`{issuer}` publishes no metadata")))
}

/// Returns the metadata of the origin of an API without metadata of its own, or the default
/// endpoints there (Model Context Protocol, version 2025-03-26).
async fn fetch_origin_metadata(net: &net::Client, resource: &Url) -> Result<Metadata> {
    let origin = origin(resource);
    if let Some(found) = find_metadata(net, &origin).await? {
        return Ok(found);
    }
    let issuer = origin.as_str().trim_end_matches('/').to_owned();
    Ok(Metadata {
        authorize: Some(format!("{issuer}/authorize")),
        token: Some(format!("{issuer}/token")),
        register: Some(format!("{issuer}/register")),
        revoke: None,
        names_issuer: false,
        issuer,
    })
}

/// Fetches the metadata of an issuer at the addresses that the standards define, if it is at one of
/// them.
async fn find_metadata(net: &net::Client, issuer: &Url) -> Result<Option<Metadata>> {
    let mut appended = issuer.clone();
    let path = issuer.path().trim_end_matches('/');
    appended.set_path(&format!("{path}/.well-known/openid-configuration"));
    let mut places = vec![
        well_known(issuer, "oauth-authorization-server"),
        well_known(issuer, "openid-configuration"),
        appended,
    ];
    places.dedup();
    for place in places {
        if let Some(answer) = fetch_document(net, place).await? {
            return read_metadata(&answer, issuer).map(Some);
        }
    }
    Ok(None)
}

fn read_metadata(answer: &Value, issuer: &Url) -> Result<Metadata> {
    if !repeats_identifier(answer, "issuer", issuer) {
        return Err(Refusal::malformed(format!(
            "the metadata at `{issuer}` names another issuer"
        )));
    }
    Ok(Metadata {
        issuer: member(answer, "issuer").unwrap_or_default(),
        authorize: url(answer, "authorization_endpoint"),
        token: url(answer, "token_endpoint"),
        register: url(answer, "registration_endpoint"),
        revoke: url(answer, "revocation_endpoint"),
        names_issuer: answer["authorization_response_iss_parameter_supported"] == true,
    })
}

/// Returns the origin of an address, as an address.
fn origin(of: &Url) -> Url {
    let mut url = of.clone();
    url.set_path("/");
    url.set_query(None);
    url
}

/// Fetches a JSON document, or returns `None` if the provider does not have it.
async fn fetch_document(net: &net::Client, url: Url) -> Result<Option<Value>> {
    let response = request::get(net, url.clone(), None).await?;
    if response.status.is_server_error() || matches!(response.status.as_u16(), 408 | 425 | 429) {
        let reason = format!("`{url}` responded with status {}", response.status);
        return Err(Refusal::Unavailable {
            reason,
            retry_after: None,
            may_have_issued: false,
        });
    }
    let answer = response
        .status
        .is_success()
        .then(|| serde_json::from_str::<Value>(&response.text()).ok());
    Ok(answer.flatten().filter(Value::is_object))
}

/// Inserts the well-known path between host and path (RFC 8414, section 3.1; RFC 9728, section
/// 3.1).
fn well_known(of: &Url, name: &str) -> Url {
    let mut url = of.clone();
    url.set_path(&format!(
        "/.well-known/{name}{}",
        of.path().trim_end_matches('/')
    ));
    url
}

/// Returns true if a field repeats the identifier. Without a path, the trailing slash is optional.
fn repeats_identifier(answer: &Value, member: &str, name: &Url) -> bool {
    answer[member]
        .as_str()
        .is_some_and(|own| Url::parse(own).is_ok_and(|own| own == *name))
}

/// Returns an `https` address without template placeholders. The egress guard checks its host.
fn url(answer: &Value, path: &str) -> Option<String> {
    let parsed = Url::parse(&member(answer, path)?).ok()?;
    let plain =
        parsed.scheme() == "https" && parsed.username().is_empty() && parsed.password().is_none();
    let url = String::from(parsed);
    (plain && url.len() <= MAX_URL_BYTES && !url.contains(['{', '}', '#'])).then_some(url)
}
