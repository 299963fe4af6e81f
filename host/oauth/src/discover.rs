//! Discovery of endpoints, if a manifest names only the provider's issuer or its API (RFC 8414, RFC
//! 9728).
//!
//! An issuer is trusted only about itself: its metadata must be served at an address derived from
//! its identifier, and must repeat that identifier. Metadata is cached for one hour, and for longer
//! while the issuer is unavailable, so that an outage of the metadata prevents no refresh.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use manifest::{AuthMode, AuthScheme, Call};
use net::Url;
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Flow, Refusal, Result, after,
    request::{self, fill_url},
    variables::member,
};

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
        let missing = |endpoint| {
            Refusal::malformed(format!(
                "the metadata of `{}` names no {endpoint}",
                published.issuer
            ))
        };
        if oauth2.token_url.is_empty() {
            oauth2.token_url = published
                .token
                .clone()
                .ok_or_else(|| missing("token endpoint"))?;
        }
        if oauth2.authorize_url.is_empty() && mode.redirects() {
            oauth2.authorize_url = published
                .authorize
                .clone()
                .ok_or_else(|| missing("authorization endpoint"))?;
        }
        if mode == AuthMode::DcrOauth {
            // A project may use a client of its own, so a missing registration endpoint is no
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
        let fetching = async {
            let issuer = if is_issuer {
                identifier.clone()
            } else {
                find_issuer(flow.net, &identifier).await?
            };
            fetch_metadata(flow.net, &issuer).await
        };
        match (fetching.await, cached) {
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

/// Returns the first issuer that an API names (RFC 9728, section 3).
async fn find_issuer(net: &net::Client, resource: &Url) -> Result<Url> {
    let answer = fetch_document(net, well_known(resource, "oauth-protected-resource")).await?;
    let answer = answer.filter(|answer| repeats_identifier(answer, "resource", resource));
    let issuer = answer.and_then(|answer| url(&answer, "authorization_servers.0"));
    let issuer = issuer.and_then(|url| Url::parse(&url).ok());
    issuer.ok_or_else(|| {
        Refusal::malformed(format!(
            "the metadata of `{resource}` names no authorization server"
        ))
    })
}

/// Fetches the metadata of an issuer (RFC 8414, section 3), or its OpenID Connect Discovery
/// document.
async fn fetch_metadata(net: &net::Client, issuer: &Url) -> Result<Metadata> {
    let mut answer = fetch_document(net, well_known(issuer, "oauth-authorization-server")).await?;
    if answer.is_none() {
        let mut other = issuer.clone();
        other.set_path(&format!(
            "{}/.well-known/openid-configuration",
            issuer.path().trim_end_matches('/')
        ));
        answer = fetch_document(net, other).await?;
    }
    let answer =
        answer.ok_or_else(|| Refusal::malformed(format!("`{issuer}` publishes no metadata")))?;
    if !repeats_identifier(&answer, "issuer", issuer) {
        return Err(Refusal::malformed(format!(
            "the metadata at `{issuer}` names another issuer"
        )));
    }
    Ok(Metadata {
        issuer: member(&answer, "issuer").unwrap_or_default(),
        authorize: url(&answer, "authorization_endpoint"),
        token: url(&answer, "token_endpoint"),
        register: url(&answer, "registration_endpoint"),
        revoke: url(&answer, "revocation_endpoint"),
        names_issuer: answer["authorization_response_iss_parameter_supported"] == true,
    })
}

/// Fetches a JSON document; none if the provider does not have it.
async fn fetch_document(net: &net::Client, url: Url) -> Result<Option<Value>> {
    let response = request::get(net, url.clone(), None).await?;
    if response.status.is_server_error() || matches!(response.status.as_u16(), 408 | 425 | 429) {
        let reason = format!("`{url}` responded with status {}", response.status);
        return Err(Refusal::Unavailable {
            reason,
            retry_after: None,
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

/// Returns true if a member repeats the identifier. Without a path, the trailing slash is optional.
fn repeats_identifier(answer: &Value, member: &str, name: &Url) -> bool {
    answer[member]
        .as_str()
        .is_some_and(|own| Url::parse(own).is_ok_and(|own| own == *name))
}

/// Returns an `https` address without template placeholders. The egress guard checks its host.
fn url(answer: &Value, path: &str) -> Option<String> {
    let url = Url::parse(&member(answer, path)?).ok()?;
    let plain = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
    let url = String::from(url);
    (plain && url.len() <= MAX_URL_BYTES && !url.contains(['{', '}', '#'])).then_some(url)
}
