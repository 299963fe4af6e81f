//! Addresses that an application says itself, where a manifest names only its issuer or its API (RFC 8414, RFC 9728).
//!
//! An issuer is believed about itself alone: its metadata lie at an address that is made of its name, and repeat that name.
//! What they say is remembered for an hour, and for longer while it cannot be asked, so that an outage of metadata costs no
//! refresh.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use manifest::{AuthMode, AuthScheme, Call};
use net::Url;
use serde_json::Value;
use store::Time;

use super::{
    Flow, Refusal, Result,
    request::{self, address},
    variables::member,
};
use crate::connections::refresh::after;

/// How long metadata are taken for true.
const FRESH: Duration = Duration::from_secs(3_600);
/// Issuers that are remembered.
const REMEMBERED: usize = 256;
/// Bytes of an address.
const LONGEST: usize = 2_048;

/// What an issuer says of itself.
#[derive(Debug, Clone, Default)]
struct Metadata {
    issuer: String,
    authorize: Option<String>,
    token: Option<String>,
    register: Option<String>,
    revoke: Option<String>,
    names_issuer: bool,
}

/// Metadata of issuers. One in a process.
#[derive(Debug, Default)]
pub struct Issuers {
    known: Mutex<HashMap<Url, (Time, Metadata)>>,
}

impl Issuers {
    /// The scheme of a flow with every address that its application says itself.
    ///
    /// # Errors
    /// See [`Refusal`]; also when an address is needed that neither says.
    pub async fn described<'a>(&self, flow: &Flow<'a>) -> Result<Cow<'a, AuthScheme>> {
        let about = flow.scheme.oauth2.as_ref();
        let Some((about, named)) =
            about.and_then(|about| Some((about, about.issuer.as_ref().or(about.resource.as_ref())?)))
        else {
            return Ok(Cow::Borrowed(flow.scheme));
        };
        let said = self.metadata(flow, address(flow, named)?, about.issuer.is_some()).await?;
        let (mode, mut about) = (flow.scheme.mode, about.clone());
        let missing = |what| Refusal::malformed(format!("`{}` does not say where {what}", said.issuer));
        if about.token_url.is_empty() {
            about.token_url = said.token.clone().ok_or_else(|| missing("tokens are given"))?;
        }
        if about.authorize_url.is_empty() && mode.redirects() {
            about.authorize_url = said.authorize.clone().ok_or_else(|| missing("people agree"))?;
        }
        if mode == AuthMode::DcrOauth {
            // A project may have a client of its own there.
            let register = about.register.get_or_insert_default();
            register.url = register.url.take().or(said.register);
        }
        if about.revoke.is_none() {
            about.revoke = said.revoke.map(|url| Call { url: Some(url), ..Call::default() });
        }
        about.names_issuer |= said.names_issuer;
        about.issuer = Some(said.issuer);
        Ok(Cow::Owned(AuthScheme { oauth2: Some(about), ..flow.scheme.clone() }))
    }

    async fn metadata(&self, flow: &Flow<'_>, named: Url, is_issuer: bool) -> Result<Metadata> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&named).cloned();
        if let Some((read, metadata)) = &known
            && after(*read, FRESH) > flow.now
        {
            return Ok(metadata.clone());
        }
        let asked = async {
            let issuer = if is_issuer { named.clone() } else { issuer_of(flow.net, &named).await? };
            ask(flow.net, &issuer).await
        };
        match (asked.await, known) {
            (Ok(metadata), _) => {
                let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() >= REMEMBERED {
                    all.clear();
                }
                all.insert(named, (flow.now, metadata.clone()));
                Ok(metadata)
            }
            (Err(_), Some((_, old))) => Ok(old),
            (Err(refusal), None) => Err(refusal),
        }
    }
}

/// The issuer that an API names (RFC 9728, section 3): its first.
async fn issuer_of(net: &net::Client, resource: &Url) -> Result<Url> {
    let answer = document(net, well_known(resource, "oauth-protected-resource")).await?;
    let answer = answer.filter(|answer| is_named(answer, "resource", resource));
    let issuer = answer.and_then(|answer| url(&answer, "authorization_servers.0"));
    let issuer = issuer.and_then(|url| Url::parse(&url).ok());
    issuer.ok_or_else(|| Refusal::malformed(format!("`{resource}` does not say whose tokens it takes")))
}

/// What an issuer says of itself (RFC 8414, section 3), or as OpenID Connect Discovery has it.
async fn ask(net: &net::Client, issuer: &Url) -> Result<Metadata> {
    let mut answer = document(net, well_known(issuer, "oauth-authorization-server")).await?;
    if answer.is_none() {
        let mut other = issuer.clone();
        other.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
        answer = document(net, other).await?;
    }
    let answer = answer.ok_or_else(|| Refusal::malformed(format!("`{issuer}` says nothing of itself")))?;
    if !is_named(&answer, "issuer", issuer) {
        return Err(Refusal::malformed(format!("what is said at `{issuer}` is said of another issuer")));
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

/// A document of an application; none where it has none.
async fn document(net: &net::Client, url: Url) -> Result<Option<Value>> {
    let response = request::get(net, url.clone(), None).await?;
    if response.status.is_server_error() || matches!(response.status.as_u16(), 408 | 425 | 429) {
        let reason = format!("`{url}` answered {}", response.status);
        return Err(Refusal::Unavailable { reason, retry_after: None });
    }
    let answer = response.status.is_success().then(|| serde_json::from_slice::<Value>(&response.body).ok());
    Ok(answer.flatten().filter(Value::is_object))
}

/// The place is put between host and path (RFC 8414, section 3.1; RFC 9728, section 3.1).
fn well_known(of: &Url, name: &str) -> Url {
    let mut url = of.clone();
    url.set_path(&format!("/.well-known/{name}{}", of.path().trim_end_matches('/')));
    url
}

/// Without a path a name may end in a slash or not.
fn is_named(answer: &Value, member: &str, name: &Url) -> bool {
    answer[member].as_str().is_some_and(|own| Url::parse(own).is_ok_and(|own| own == *name))
}

/// An address that holds nothing that a template could take for a field. Where it leads is for the guard to say.
fn url(answer: &Value, path: &str) -> Option<String> {
    let url = Url::parse(&member(answer, path)?).ok()?;
    let plain = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
    let url = String::from(url);
    (plain && url.len() <= LONGEST && !url.contains(['{', '}', '#'])).then_some(url)
}
