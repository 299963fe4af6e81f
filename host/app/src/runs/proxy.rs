//! Proxy requests: requests of a caller to a provider, with the credential of a connected account.
//!
//! The credential must not be sent to any other provider. A request may go below the account's base
//! URL, to a host of the same registrable domain, or to a host that the toolkit may reach. Any
//! other request is refused before anything is sent. The request leaves through the sandbox like a
//! request of a guest, so network policy, credential injection and redaction are the same.
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use manifest::EgressRule;
use sandbox::{
    Cause, Failure, Limits, Outcome, Policy, ProxyFailure, ProxyOutcome, ProxyRequest,
    ProxyResponse as ReceivedResponse, Usage,
};
use serde_json::{Value, json};
use url::Url;

use super::log;
use crate::{
    App, Error, Result,
    accounts::{self, CredentialChoice, CustomCredential, Granted, ProxyContext},
    catalog::Release,
    core::ids::{AccountId, LogId},
    files::{self, Link},
    projects::SharedProject,
};

/// The name of proxy requests in the execution log and in the allowed tools of an auth config.
const TOOL_SLUG: &str = "PROXY_EXECUTE";
/// Maximum size of a request body, in bytes.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Maximum size of text in a response, in bytes. Longer text becomes a file.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Prefixes of media types that are treated as binary, even if the bytes are valid text.
const BINARY_MEDIA_TYPES: [&str; 7] = [
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
];

/// A proxy request.
#[derive(Debug)]
pub struct Proxy {
    /// The user, or `None` for the user of the account.
    pub user_id: Option<String>,
    /// The connected account whose credential is used.
    pub account: Option<AccountId>,
    /// A complete credential sent with the request.
    pub custom: Option<CustomCredential>,
    /// The path below the account's base URL, or an absolute URL.
    pub endpoint: String,
    /// The HTTP method, in upper case.
    pub method: String,
    /// The names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The names and values of query parameters.
    pub query: Vec<(String, String)>,
    /// The request body.
    pub body: Option<ProxyBody>,
    /// The id of the request, for the log.
    pub request_id: String,
}

/// The body of a proxy request.
#[derive(Debug)]
pub enum ProxyBody {
    /// JSON text.
    Json(Bytes),
    /// Bytes that are sent unchanged, at most 4 MiB, with their media type.
    Bytes(Bytes, Option<String>),
    /// The content of a public URL, with a media type that replaces the one of its response.
    Url(String, Option<String>),
}

/// The response of the provider, with any status.
#[derive(Debug)]
pub struct ProxyResponse {
    /// The id of the log record.
    pub log_id: LogId,
    /// The HTTP status code of the provider.
    pub status: u16,
    /// The response headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The response body.
    pub body: ResponseBody,
}

/// The body of a response.
#[derive(Debug)]
pub enum ResponseBody {
    /// An empty body.
    Empty,
    /// A JSON body.
    Json(Value),
    /// A text body that is not JSON.
    Text(String),
    /// A binary or large body, which is stored as a file.
    File(Link),
}

/// Sends a request with the credential of an account and records it.
///
/// # Errors
/// Returns an error if the request is refused or the provider does not respond.
pub async fn proxy(app: &App, project: &SharedProject, request: Proxy) -> Result<ProxyResponse> {
    let choice = CredentialChoice {
        user_id: request.user_id,
        account: request.account,
        custom: request.custom,
    };
    let ProxyContext {
        release,
        user,
        base_url,
        granted,
    } = accounts::proxy_context(app, project, TOOL_SLUG, choice).await?;
    let (mut url, policy) = resolve_target(&release, base_url.as_deref(), &request.endpoint)?;
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    let mut headers = request.headers;
    let body = match request.body {
        None => None,
        Some(body) => Some(body_bytes(app, project, body, &mut headers).await?),
    };
    let slot = app.log.reserve().await?;
    let started_at = app.clock.now();
    let log_id = app.sequence.log(started_at);
    let arguments = json!({"endpoint": without_query(&request.endpoint), "method": request.method, "bytes": body.as_ref().map(Bytes::len)});
    let Granted {
        grant,
        account,
        auth_config,
        source,
        ..
    } = granted;
    let proxy_request = ProxyRequest {
        tenant: project.tenant.clone(),
        policy: Arc::new(policy),
        grant,
        limits: Limits::default(),
        method: request.method,
        url: url.into(),
        headers,
        body,
    };
    let sent = app
        .sandbox
        .send_proxy_request(proxy_request)
        .await
        .map_err(|refusal| super::refusal_error(refusal, &release))?;
    let ProxyOutcome {
        response: answer,
        requests,
        log,
        wall,
    } = sent;
    let (summary, failure) = match &answer {
        Ok(answer) => (
            json!({"status": answer.status, "bytes": answer.body.len()}),
            None,
        ),
        Err(failed) => (
            json!({}),
            Some(format!("{}: {}", failed.kind, failed.message)),
        ),
    };
    let outcome = Outcome {
        output: Err(unused_result()),
        requests,
        log,
        usage: Usage {
            wall,
            ..Usage::default()
        },
        files: Vec::new(),
        memory: None,
        state: BTreeMap::new(),
    };
    let toolkit = release.slug.clone();
    let written = slot.submit(log::Entry {
        id: log_id.clone(),
        project: project.clone(),
        user,
        account,
        auth_config,
        source,
        request_id: request.request_id,
        started_at,
        ended_at: app.clock.now(),
        arguments: arguments.to_string().into(),
        tokens: None,
        data: summary.to_string().into(),
        error: failure,
        cassette: None,
        tool: TOOL_SLUG.into(),
        release,
        outcome,
    });
    if !written.await {
        return Err(Error::Unavailable(
            "the request was sent, but its record could not be written".into(),
        ));
    } // The memory permit is held until the body has become a file or a part of the response.
    let ReceivedResponse {
        status,
        headers,
        body,
        memory: _memory,
    } = answer.map_err(proxy_error)?;
    let body = to_response_body(app, project, &toolkit, &headers, body).await?;
    Ok(ProxyResponse {
        log_id,
        status,
        headers,
        body,
    })
}

/// Returns the URL of a request, and the policy that also limits its redirects.
fn resolve_target(release: &Release, base: Option<&str>, endpoint: &str) -> Result<(Url, Policy)> {
    let mismatch = || Error::OriginMismatch {
        endpoint: crate::core::truncate(without_query(endpoint)),
        toolkit: release.slug.to_string(),
    };
    let base = base.and_then(|base| Url::parse(base).ok());
    let policy = Policy {
        egress: egress_rules(release, base.as_ref()),
        read_only: false,
    };
    let first_segment = endpoint.split(['/', '?', '#']).next().unwrap_or_default();
    let relative = !first_segment.ends_with(':')
        && !endpoint.starts_with("//")
        && !first_segment.starts_with(['\\', '@']);
    let url = if relative {
        let base = base.ok_or_else(mismatch)?;
        Url::parse(&format!(
            "{}/{}",
            base.as_str().trim_end_matches('/'),
            endpoint.trim_start_matches('/')
        ))
    } else {
        Url::parse(endpoint)
    };
    let url = url.map_err(|_| mismatch())?;
    let plain = url.username().is_empty() && url.password().is_none();
    if plain && policy.reaches(&url) {
        Ok((url, policy))
    } else {
        Err(mismatch())
    }
}

/// Removes the query and the fragment of a URL, which may contain secrets.
fn without_query(endpoint: &str) -> &str {
    endpoint.split(['?', '#']).next().unwrap_or_default()
}

/// Returns the hosts that a credential of the toolkit may be sent to if the provider's API is at
/// `base`.
pub(super) fn allowed_origins(release: &Release, base: Option<&str>) -> Vec<EgressRule> {
    egress_rules(
        release,
        base.and_then(|base| Url::parse(base).ok()).as_ref(),
    )
}

/// Returns the egress rules: the toolkit's own hosts, and all hosts of the base URL's registrable
/// domain.
fn egress_rules(release: &Release, base: Option<&Url>) -> Vec<EgressRule> {
    let rule = |host: String, port: Option<u16>| EgressRule {
        host,
        port,
        methods: Vec::new(),
        path_prefix: None,
    };
    let mut rules: Vec<_> = release
        .egress
        .iter()
        .map(|own| rule(own.host.clone(), own.port))
        .collect();
    if let Some(base) = base
        && let Some(host) = base.domain()
    {
        rules.push(rule(host.to_owned(), base.port()));
        if let Some(domain) = psl::domain_str(host) {
            rules.push(rule(domain.to_owned(), base.port()));
            rules.push(rule(format!("*.{domain}"), base.port()));
        }
    }
    rules
}

/// Returns the bytes to send. Adds their media type to the headers unless the caller has set one.
async fn body_bytes(
    app: &App,
    project: &SharedProject,
    body: ProxyBody,
    headers: &mut Vec<(String, String)>,
) -> Result<Bytes> {
    let (bytes, media_type) = match body {
        ProxyBody::Json(bytes) => (bytes, Some("application/json".to_owned())),
        ProxyBody::Bytes(bytes, media_type) => (bytes, media_type),
        ProxyBody::Url(url, media_type) => {
            let (bytes, own) = download(app, project, &url).await?;
            (bytes, media_type.or(own))
        }
    };
    if bytes.len() > MAX_BODY_BYTES {
        return Err(Error::invalid(format!(
            "the body has {} bytes; at most {MAX_BODY_BYTES} can be sent",
            bytes.len()
        )));
    }
    if let Some(media_type) = media_type
        && !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        headers.push(("content-type".to_owned(), media_type));
    }
    Ok(bytes)
}

/// Downloads a URL without a credential. Returns its content and media type.
async fn download(
    app: &App,
    project: &SharedProject,
    address: &str,
) -> Result<(Bytes, Option<String>)> {
    let invalid = |why: &str| Error::invalid(format!("binary_body.url: {why}"));
    let url = Url::parse(address).map_err(|_| invalid("is not a URL"))?;
    let host = url
        .domain()
        .ok_or_else(|| invalid("must have a host name, not an IP address"))?
        .to_owned();
    let rule = EgressRule {
        host,
        port: url.port(),
        methods: Vec::new(),
        path_prefix: None,
    };
    let proxy_request = ProxyRequest {
        tenant: project.tenant.clone(),
        policy: Arc::new(Policy {
            egress: vec![rule],
            read_only: true,
        }),
        grant: None,
        limits: Limits {
            file: MAX_BODY_BYTES as u64,
            ..Limits::default()
        },
        method: "GET".to_owned(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
    };
    let sent = app
        .sandbox
        .send_proxy_request(proxy_request)
        .await
        .map_err(|refusal| match refusal {
            sandbox::Refusal::TenantBusy => Error::ProjectBusy,
            _ => Error::NodeBusy,
        })?;
    let answer = sent.response.map_err(|failed| invalid(&failed.message))?;
    if !(200..300).contains(&answer.status) {
        return Err(invalid(&format!(
            "the response has the status {}",
            answer.status
        )));
    }
    let media_type = header(&answer.headers, "content-type").map(str::to_owned);
    Ok((answer.body, media_type))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(own, _)| own == name)
        .map(|(_, value)| value.as_str())
}

/// Converts a response body to the form that callers receive.
async fn to_response_body(
    app: &App,
    project: &SharedProject,
    toolkit: &str,
    headers: &[(String, String)],
    body: Bytes,
) -> Result<ResponseBody> {
    if body.is_empty() {
        return Ok(ResponseBody::Empty);
    }
    let media_type = header(headers, "content-type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let binary = BINARY_MEDIA_TYPES
        .iter()
        .any(|family| media_type.starts_with(family))
        && !media_type.starts_with("image/svg");
    let parsed = if binary || body.len() > MAX_TEXT_BYTES {
        Err(body)
    } else {
        let (size, parse) = (body.len(), move || parse_text(body));
        app.large_work.run(&project.tenant, size, parse).await?
    };
    match parsed {
        Ok(body) => Ok(body),
        Err(body) => {
            let media_type = if media_type.is_empty() {
                "application/octet-stream"
            } else {
                &media_type
            };
            let made = files::NewFile {
                toolkit,
                tool: TOOL_SLUG,
                name: "answer",
                media_type,
                bytes: body,
            };
            Ok(ResponseBody::File(
                files::store_new(app, project, made).await?,
            ))
        }
    }
}

/// Parses a body as JSON, or as text if it is not JSON. Returns a body that is not text unchanged.
fn parse_text(body: Bytes) -> std::result::Result<ResponseBody, Bytes> {
    match std::str::from_utf8(&body) {
        Ok(text) if !text.contains('\0') => Ok(serde_json::from_str(text)
            .map_or_else(|_| ResponseBody::Text(text.to_owned()), ResponseBody::Json)),
        _ => Err(body),
    }
}

fn proxy_error(failed: ProxyFailure) -> Error {
    let ProxyFailure { kind, message } = failed;
    match kind.as_str() {
        "denied" => Error::ProxyDenied(message),
        "invalid_request" => Error::invalid(message),
        "credential" => Error::AccountRefused(message),
        "timeout" => Error::UpstreamTimeout(message),
        _ => Error::UpstreamFailed(message),
    }
}

/// Returns a placeholder for the result of an execution. The log does not read the result of a
/// proxy request.
fn unused_result() -> Failure {
    Failure {
        cause: Cause::Host,
        kind: String::new(),
        message: String::new(),
        retry_after: None,
        upstream_status: None,
        details: None,
    }
}

#[cfg(test)]
mod tests {
    use sandbox::Digest;
    use store::Time;

    use super::*;
    use crate::catalog::SchemaFile;

    fn release(egress: Value) -> Release {
        let manifest = json!({ "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d", "version": "20260101_00", "egress": egress, "tools": [], });
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let manifest = manifest.to_string();
        let manifest = serde_json::from_str(&manifest).unwrap();
        Release::new(manifest, Digest::compute(b""), 0, Time(0), &mut schema_file).unwrap()
    }

    #[test]
    fn proxy_url_stays_within_provider_domain() {
        let release = release(json!([{"host": "api.acme.co.uk"}, {"host": "files.acme-cdn.net"}]));
        let base = Some("https://api.acme.co.uk/v1/");
        for (endpoint, expected) in [
            ("items?a=b", Some("https://api.acme.co.uk/v1/items?a=b")),
            (
                "/items?to=https://evil.net",
                Some("https://api.acme.co.uk/v1/items?to=https://evil.net"),
            ),
            ("/items", Some("https://api.acme.co.uk/v1/items")),
            (
                "https://api.acme.co.uk/v2",
                Some("https://api.acme.co.uk/v2"),
            ),
            (
                "https://uploads.acme.co.uk/x",
                Some("https://uploads.acme.co.uk/x"),
            ),
            ("https://acme.co.uk/x", Some("https://acme.co.uk/x")),
            (
                "https://files.acme-cdn.net/x",
                Some("https://files.acme-cdn.net/x"),
            ),
            ("https://evil.co.uk/x", None),
            ("https://acme.co.uk.evil.net/x", None),
            ("https://notacme.co.uk/x", None),
            ("http://api.acme.co.uk/x", None),
            ("https://api.acme.co.uk:8443/x", None),
            ("https://u:p@api.acme.co.uk/x", None),
            ("https://api.acme.co.uk@evil.net/x", None),
            ("//evil.net/x", None),
            ("\\\\evil.net/x", None),
            ("@evil.net/x", None),
            ("https://127.0.0.1/x", None),
            ("https://[::1]/x", None),
            ("file:///etc/passwd", None),
        ] {
            let found = resolve_target(&release, base, endpoint)
                .ok()
                .map(|(url, _)| url.to_string());
            assert_eq!(found.as_deref(), expected, "{endpoint}");
        }
    }

    #[test]
    fn public_suffix_does_not_share_domains() {
        let release = release(json!([{"host": "acme.github.io"}]));
        assert!(
            resolve_target(
                &release,
                Some("https://acme.github.io"),
                "https://other.github.io/"
            )
            .is_err()
        );
        assert!(resolve_target(&release, None, "/relative").is_err());
    }
}
