//! Admission of requests to MCP endpoints: their host, their origin, and their key or access token.
//!
//! An assistant runs on a user's machine, where a web page may send requests too. A page that
//! resolves its own host name to the address of this server (DNS rebinding) is recognized by that
//! name, and any other page by its origin, unless it has a key or a token. An IP address cannot be
//! rebound.

use std::{net::IpAddr, sync::Arc};

use app::{
    Class,
    agents::{
        mcp_oauth::{self, Resource},
        mcp_servers::McpCaller,
    },
};
use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, HeaderName, Uri, header, request::Parts, uri::Authority},
    response::{IntoResponse, Response},
};
use http::{ApiError, ApiResult, ProjectKey, Server, auth, errors};
use url::Url;

use crate::oauth::metadata;

/// Checks that a request is for a host of this server.
pub(super) fn check_host(server: &Server, headers: &HeaderMap) -> ApiResult<()> {
    let host = host(headers);
    if is_own(&host, own_hosts(server)) {
        Ok(())
    } else {
        Err(errors::host_not_allowed(host).into())
    }
}

/// Checks that a request without a credential is not one of a web page on another host. A credential is
/// never sent by the browser alone, so that a page which has one was given it.
fn check_origin(server: &Server, headers: &HeaderMap) -> ApiResult<()> {
    let Some(origin) = text(headers, header::ORIGIN) else {
        return Ok(());
    };
    let page = Url::parse(origin).ok();
    let page = page.as_ref().and_then(Url::host_str).unwrap_or_default();
    if is_same(page, &host(headers)) || own_hosts(server).any(|own| is_same(own, page)) {
        Ok(())
    } else {
        Err(errors::origin_not_allowed(origin).into())
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the host of a request; empty if it does not name one.
fn host(headers: &HeaderMap) -> String {
    let given = text(headers, header::HOST).unwrap_or_default();
    let host = given.parse::<Authority>();
    host.as_ref().map_or("", Authority::host).to_owned()
}

/// Returns the host names of this server.
fn own_hosts(server: &Server) -> impl Iterator<Item = &str> {
    let public = server.config.public_url.as_ref().and_then(Url::host_str);
    let named = server.config.mcp.allowed_hosts.iter().map(String::as_str);
    public.into_iter().chain(named)
}

/// Returns true if a host is an IP address, `localhost` or one of the named hosts.
fn is_own<'a>(host: &str, mut named: impl Iterator<Item = &'a str>) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || named.any(|own| is_same(own, host))
}

/// Returns true if two hosts are equal, or are both names of this machine.
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (is_local(one) && is_local(other))
}

fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

/// Admits a request to an MCP server, and returns its key, if it has one. A key or an
/// access token is needed only if the project requires a key, but one that is sent has to be one of the
/// project.
pub(super) async fn admit(
    server: &Arc<Server>,
    caller: &McpCaller,
    request: Request,
) -> ApiResult<(Request, Option<ProjectKey>)> {
    let (mut parts, body) = request.into_parts();
    let is_required = caller.project.stored.config.require_mcp_key;
    let headers = &parts.headers;
    let mut admitted = None;
    if is_required || auth::has_key(headers) || access_token(headers).is_some() {
        let key = project_key(server, &mut parts, &caller.resource()).await?;
        if key.project.id != caller.project.id {
            let refusal = match is_required {
                true => errors::key_of_other_kind("the project's key", "another project's key"),
                false => caller.not_found(),
            };
            return Err(refusal.into());
        }
        admitted = Some(key);
    } else {
        check_origin(server, headers)?;
        auth::admit_without_key(server, &caller.project).await?;
    }
    Ok((Request::from_parts(parts, body), admitted))
}

/// Admits a request with its key, or with its access token for an endpoint. A token represents the
/// key with which its user has signed in.
pub(super) async fn project_key(
    server: &Arc<Server>,
    parts: &mut Parts,
    resource: &Resource,
) -> ApiResult<ProjectKey> {
    let Some(token) = access_token(&parts.headers) else {
        return ProjectKey::from_request_parts(parts, server).await;
    };
    if auth::has_key(&parts.headers) {
        return Err(errors::key_ambiguous().into());
    }
    let access = mcp_oauth::authenticate(&server.app, token, resource).await?;
    auth::admit_to_project(server, &access.holder, &access.project).await?;
    Ok(ProjectKey {
        server: server.clone(),
        project: access.project,
        holder: access.holder,
        consent: Some(access.consent_id),
    })
}

/// Returns the access token of a request (RFC 6750, section 2.1).
fn access_token(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = given.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the response to a request that was refused. One without valid credentials is told where an
/// assistant gets a token.
pub(super) fn refuse(server: &Server, endpoint: &Uri, cause: ApiError) -> Response {
    let (is_unauthenticated, has_token) = match &cause {
        ApiError::App(error) => (
            error.info().class == Class::Unauthenticated,
            error.is(&errors::MCP_TOKEN_INVALID),
        ),
        ApiError::Http(_) => (false, false),
    };
    let mut response = cause.into_response();
    if is_unauthenticated {
        let challenge = metadata::challenge(server, endpoint, has_token);
        let challenge = challenge.map(|challenge| (header::WWW_AUTHENTICATE, challenge));
        response.headers_mut().extend(challenge);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_host_names_are_refused() {
        let named = ["tools.example.com", "Internal"];
        for host in [
            "127.0.0.1",
            "10.1.2.3",
            "[::1]",
            "localhost",
            "tools.example.com",
            "internal",
        ] {
            assert!(is_own(host, named.into_iter()), "{host}");
        }
        for host in [
            "",
            "evil.example.com",
            "tools.example.com.evil.example",
            "127.0.0.1.evil",
        ] {
            assert!(!is_own(host, named.into_iter()), "{host}");
        }
    }

    #[test]
    fn names_of_this_machine_are_equal() {
        assert!(is_same("localhost", "127.0.0.1") && is_same("[::1]", "localhost"));
        assert!(is_same("A.example", "a.example"));
        assert!(!is_same("localhost", "10.0.0.1") && !is_same("a.example", "b.example"));
    }
}
