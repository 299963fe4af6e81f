//! Admission of requests to MCP endpoints: their host, their origin and their key.
//!
//! An assistant runs on a user's machine, where a web page may send requests too. A page that
//! resolves its own host name to the address of this server (DNS rebinding) is recognized by that
//! name, and any other page by its origin. An IP address cannot be rebound.

use std::{net::IpAddr, sync::Arc};

use app::agents::mcp_servers::McpCaller;
use axum::{
    extract::{FromRequestParts, Request},
    http::{HeaderMap, header, uri::Authority},
};
use url::Url;

use crate::{
    Server,
    http::{ApiResult, ProjectKey, auth, errors},
};

/// Checks that a request is for a host of this server, and not of a web page on another one.
pub(super) fn check_host(server: &Server, headers: &HeaderMap) -> ApiResult<()> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let given = text(header::HOST).unwrap_or_default();
    let host = given.parse::<Authority>();
    let host = host.as_ref().map_or("", Authority::host);
    let public = server.config.public_url.as_ref().and_then(Url::host_str);
    let named = server.config.mcp.allowed_hosts.iter().map(String::as_str);
    let own: Vec<_> = public.into_iter().chain(named).collect();
    if !is_own(host, &own) {
        return Err(errors::host_not_allowed(host).into());
    }
    let Some(origin) = text(header::ORIGIN) else {
        return Ok(());
    };
    let page = Url::parse(origin).ok();
    let page = page.as_ref().and_then(Url::host_str).unwrap_or_default();
    if is_same(page, host) || own.iter().any(|own| is_same(own, page)) {
        Ok(())
    } else {
        Err(errors::origin_not_allowed(origin).into())
    }
}

/// Returns true if a host is an IP address, `localhost` or one of the named hosts.
fn is_own(host: &str, named: &[&str]) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || named.iter().any(|own| is_same(own, host))
}

/// Returns true if two hosts are equal, or are both names of this machine.
fn is_same(one: &str, other: &str) -> bool {
    let is_local = |host: &str| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
    };
    one.eq_ignore_ascii_case(other) || (is_local(one) && is_local(other))
}

/// Admits a request to an MCP server. A key is needed only if the project requires it, but a key that
/// is sent has to be one of the project.
pub(super) async fn admit(
    server: &Arc<Server>,
    caller: &McpCaller,
    request: Request,
) -> ApiResult<Request> {
    let project = &caller.project;
    let (mut parts, body) = request.into_parts();
    let has_key = [auth::PROJECT, auth::ORGANIZATION, auth::USER]
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    let is_required = project.stored.config.require_mcp_key;
    if has_key || is_required {
        let key = ProjectKey::from_request_parts(&mut parts, server).await?;
        if key.project.id != project.id {
            let wrong_key = || errors::key_of_other_kind("the project's", "another project's");
            return Err(if is_required {
                wrong_key()
            } else {
                caller.not_found()
            }
            .into());
        }
    } else {
        auth::admit_without_key(server, project).await?;
    }
    Ok(Request::from_parts(parts, body))
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
            assert!(is_own(host, &named), "{host}");
        }
        for host in [
            "",
            "evil.example.com",
            "tools.example.com.evil.example",
            "127.0.0.1.evil",
        ] {
            assert!(!is_own(host, &named), "{host}");
        }
    }

    #[test]
    fn names_of_this_machine_are_equal() {
        assert!(is_same("localhost", "127.0.0.1") && is_same("[::1]", "localhost"));
        assert!(is_same("A.example", "a.example"));
        assert!(!is_same("localhost", "10.0.0.1") && !is_same("a.example", "b.example"));
    }
}
