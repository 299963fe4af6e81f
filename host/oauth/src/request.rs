//! Requests to a provider's OAuth endpoints.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use manifest::{AuthMode, Call, CallFormat, CallMethod, ClientAuth, Source};
use net::{
    Body, ErrorKind, HeaderMap, Limits, Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::{Flow, Refusal, Result, scheme, variables::Variables};

/// Field of a registration with the client authentication that the provider has registered. It may
/// be another one than was requested (RFC 7591, section 3.2.1).
pub const REGISTERED_AUTH: &str = "token_endpoint_auth_method";

/// Maximum size of a response in bytes. A token has a few thousand bytes at most.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;
/// Timeout of a request. Token endpoints of some providers take ten seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// All characters except the unreserved ones (RFC 3986, section 2.3).
const RESERVED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED_CHARACTERS).to_string()
}

/// Fills in the template of an address. A field value cannot lead outside its position in the
/// template.
pub(super) fn fill_url(flow: &Flow<'_>, template: &str) -> Result<Url> {
    let value = |name: &str| match name {
        "client_id" => flow.client_id(),
        // A segment of dots would lead to a parent path.
        name => flow
            .value(name)
            .filter(|value| !flow.is_secret(name) && !value.trim_matches('.').is_empty()),
    };
    let filled = manifest::fill_each(template, &value, |text| percent_encode(&text))
        .and_then(|filled| Url::parse(&filled).ok());
    let inside = filled.filter(|url| {
        let host = url.host_str().unwrap_or_default();
        url.scheme() == "https"
            && manifest::template_matches_host(template, host, url.port().unwrap_or(443))
    });
    inside.ok_or_else(|| {
        Refusal::unsent(format!(
            "the URL `{template}` cannot be built from the fields of the account"
        ))
    })
}

/// Sends a request with the standard parameters, the client's credentials if it is `authenticated`,
/// and the manifest's parameters.
pub(super) async fn send(
    variables: &Variables<'_>,
    call: &Call,
    authenticated: bool,
) -> Result<Response> {
    let oauth2 = variables.flow.oauth2()?;
    let mut url = fill_url(
        variables.flow,
        call.url.as_ref().unwrap_or(&oauth2.token_url),
    )?;
    let mut standard = variables.standard.clone();
    let mut headers = HeaderMap::new();
    if authenticated {
        let how = client_auth(variables.flow, oauth2.client_auth);
        authenticate(variables, how, &mut standard, &mut headers)?;
    }
    own_headers(variables, call, &mut headers)?;
    let parameters = parameters(variables, call, standard);
    let body = match (call.method, call.format) {
        (CallMethod::Get, _) | (_, CallFormat::Query) => {
            let existing = url.query().filter(|query| !query.is_empty());
            let query: Vec<_> = existing
                .map(str::to_owned)
                .into_iter()
                .chain((!parameters.is_empty()).then(|| form_encode(&parameters)))
                .collect();
            url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
            None
        }
        (CallMethod::Post, CallFormat::Form) => Some((
            "application/x-www-form-urlencoded",
            form_encode(&parameters),
        )),
        (CallMethod::Post, CallFormat::Json) => {
            let mut object = Map::new();
            parameters
                .into_iter()
                .for_each(|(name, value)| insert_nested(&mut object, &name, value));
            Some(("application/json", Value::Object(object).to_string()))
        }
    };
    let method = match call.method {
        CallMethod::Post => Method::POST,
        CallMethod::Get => Method::GET,
    };
    send_body(variables, method, url, headers, body).await
}

/// Posts an object, extended by the manifest's parameters.
pub(super) async fn send_json(
    variables: &Variables<'_>,
    call: &Call,
    mut object: Map<String, Value>,
) -> Result<Response> {
    let url = fill_url(variables.flow, call.url.as_deref().unwrap_or_default())?;
    let mut headers = HeaderMap::new();
    own_headers(variables, call, &mut headers)?;
    for (name, value) in parameters(variables, call, Vec::new()) {
        insert_nested(&mut object, &name, value);
    }
    let body = Some(("application/json", Value::Object(object).to_string()));
    send_body(variables, Method::POST, url, headers, body).await
}

fn own_headers(variables: &Variables<'_>, call: &Call, headers: &mut HeaderMap) -> Result<()> {
    for (name, template) in &call.headers {
        if let (Ok(name), Some(value)) = (
            HeaderName::try_from(name),
            manifest::fill(template, variables),
        ) {
            headers.insert(name, sensitive_header(&value)?);
        }
    }
    Ok(())
}

async fn send_body(
    variables: &Variables<'_>,
    method: Method,
    url: Url,
    mut headers: HeaderMap,
    body: Option<(&'static str, String)>,
) -> Result<Response> {
    let body = match body {
        Some((kind, text)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            Body::Bytes(text.into())
        }
        None => Body::Empty,
    };
    send_request(variables.flow, method, url, headers, body).await
}

/// Fetches a document of a provider, with a bearer token if one is given. No client certificate is
/// used.
pub(super) async fn get(net: &net::Client, url: Url, token: Option<&str>) -> Result<Response> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert(
            AUTHORIZATION,
            sensitive_header(&Zeroizing::new(format!("Bearer {token}")))?,
        );
    }
    send_with(net, Method::GET, url, headers, Body::Empty).await
}

/// Sends a request to the provider, with the account's client certificate if it has one (RFC 8705).
pub(super) async fn send_request(
    flow: &Flow<'_>,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let identity = scheme::identity(flow.scheme, flow.values).map_err(Refusal::unsent)?;
    send_with(
        &flow.net.clone().with_identity(identity),
        method,
        url,
        headers,
        body,
    )
    .await
}

async fn send_with(
    net: &net::Client,
    method: Method,
    url: Url,
    mut headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    headers
        .entry(ACCEPT)
        .or_insert(HeaderValue::from_static("application/json"));
    let request = net::Request {
        method,
        url,
        headers,
        body,
        limits: Limits::within(REQUEST_TIMEOUT, MAX_RESPONSE_BYTES),
    };
    net.send(request)
        .await
        .map_err(|failure| match failure.kind {
            ErrorKind::Denied | ErrorKind::InvalidRequest => Refusal::unsent(failure.message),
            ErrorKind::TooLarge => Refusal::malformed(failure.message).after_success(),
            kind @ (ErrorKind::Dns
            | ErrorKind::Connect
            | ErrorKind::Tls
            | ErrorKind::Timeout
            | ErrorKind::NoMemory
            | ErrorKind::Protocol) => Refusal::Unavailable {
                reason: failure.message,
                retry_after: None,
                // Without a connection, nothing reached the provider.
                may_have_issued: !matches!(
                    kind,
                    ErrorKind::Dns | ErrorKind::Connect | ErrorKind::Tls
                ),
            },
        })
}

/// Method of client authentication that a request uses.
#[derive(Clone, Copy)]
enum RequestAuth {
    /// The manifest's.
    Declared(ClientAuth),
    /// The client id alone, even if the client has a secret.
    PublicClient,
}

/// Returns the method of client authentication: the one that the provider has registered for a
/// client of this server, or else the manifest's.
fn client_auth(flow: &Flow<'_>, declared: ClientAuth) -> RequestAuth {
    let is_dynamic = flow.scheme.mode == AuthMode::DcrOauth && flow.client.id.is_empty();
    let registered = flow.value(REGISTERED_AUTH).filter(|_| is_dynamic);
    RequestAuth::Declared(match registered.as_deref() {
        Some("none") => return RequestAuth::PublicClient,
        Some("client_secret_post") => ClientAuth::Body,
        // The secret as user name is a variant of the same method.
        Some("client_secret_basic") if declared != ClientAuth::SecretAsUser => ClientAuth::Basic,
        Some("private_key_jwt") => ClientAuth::PrivateKeyJwt,
        _ => declared,
    })
}

/// Adds the client authentication (RFC 6749, section 2.3.1; RFC 7523, section 2.2).
fn authenticate(
    variables: &Variables<'_>,
    how: RequestAuth,
    parameters: &mut Vec<(&'static str, String)>,
    headers: &mut HeaderMap,
) -> Result<()> {
    // Some accounts have a client of their own.
    let id = variables.value("client_id");
    let RequestAuth::Declared(how) = how else {
        parameters.extend(id.map(|id| ("client_id", id)));
        return Ok(());
    };
    let secret = variables.value("client_secret").map(Zeroizing::new);
    match (how, &secret) {
        (ClientAuth::None, _) => {}
        (ClientAuth::Basic, Some(secret)) => {
            headers.insert(
                AUTHORIZATION,
                basic_header(
                    &percent_encode(&id.unwrap_or_default()),
                    &percent_encode(secret),
                )?,
            );
        }
        (ClientAuth::SecretAsUser, Some(secret)) => {
            headers.insert(AUTHORIZATION, basic_header(secret, "")?);
        }
        (ClientAuth::PrivateKeyJwt, _) => {
            let assertion = variables
                .value("assertion")
                .ok_or_else(|| Refusal::unsent("the toolkit declares no assertion"))?;
            parameters.extend(id.map(|id| ("client_id", id)));
            parameters.push((
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned(),
            ));
            parameters.push(("client_assertion", assertion));
        }
        (ClientAuth::Body | ClientAuth::Basic | ClientAuth::SecretAsUser, secret) => {
            parameters.extend(id.map(|id| ("client_id", id)));
            parameters.extend(
                secret
                    .as_ref()
                    .map(|secret| ("client_secret", secret.to_string())),
            );
        }
    }
    Ok(())
}

/// Returns the standard parameters, filtered and renamed as the manifest declares, followed by the
/// manifest's own parameters.
fn parameters(
    variables: &Variables<'_>,
    call: &Call,
    standard: Vec<(&'static str, String)>,
) -> Vec<(String, String)> {
    let sent = standard
        .into_iter()
        .filter(|(name, _)| !call.drop.iter().any(|dropped| dropped == name));
    let named = sent.map(|(name, value)| {
        let renamed = call.rename.get(name).map_or(name, String::as_str);
        (renamed.to_owned(), value)
    });
    let mut parameters: Vec<_> = named
        .filter(|(name, _)| !call.params.contains_key(name))
        .collect();
    let declared = call.params.iter();
    parameters.extend(
        declared.filter_map(|(name, template)| {
            Some((name.clone(), manifest::fill(template, variables)?))
        }),
    );
    parameters
}

pub(super) fn form_encode(parameters: &[(String, String)]) -> String {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Inserts a property into an object. A dot in its name denotes a nested object.
fn insert_nested(object: &mut Map<String, Value>, name: &str, value: String) {
    let inner = name.split_once('.').map(|(first, rest)| {
        (
            object.entry(first).or_insert_with(|| Map::new().into()),
            rest,
        )
    });
    match inner {
        Some((Value::Object(inner), rest)) => insert_nested(inner, rest, value),
        // If both `a` and `a.b` are given, the later one wins.
        Some((taken, _)) => *taken = value.into(),
        None => drop(object.insert(name.to_owned(), value.into())),
    }
}

fn basic_header(user: &str, password: &str) -> Result<HeaderValue> {
    let pair = Zeroizing::new(format!("{user}:{password}"));
    sensitive_header(&Zeroizing::new(format!("Basic {}", BASE64.encode(&*pair))))
}

fn sensitive_header(value: &str) -> Result<HeaderValue> {
    net::credential_header(value).ok_or_else(|| {
        Refusal::unsent("a value contains characters that are not allowed in a header")
    })
}
