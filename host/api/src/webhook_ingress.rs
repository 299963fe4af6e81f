//! Webhooks of providers, at public addresses.
//!
//! The toolkit verifies the signature over the exact bytes of the body. A response discloses nothing
//! to a sender that does not know the secret: every unknown address is refused with the same words, and so
//! is every wrong signature. Everything else is refused with its reason, which the provider's record of
//! deliveries shows to the developer.

use std::sync::Arc;

use app::{
    Class,
    events::{
        errors,
        ingress::{self, Address, Inbound},
    },
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use http::{
    ApiError, ApiResult, CURRENT_REQUEST, HttpError, IN_TABLE, NoKey, Path, Server, body,
    limiter::Caller, permits,
};

/// Maximum size of the body of a webhook, in bytes.
pub const MAX_WEBHOOK_BYTES: usize = 1 << 20;
/// End of the path of an older address, which has the id of a project. The id in another address is
/// that of a webhook endpoint.
const OF_PROJECT_SUFFIX: &str = "/handle";

/// Receives a webhook of a provider.
#[utoipa::path(
    post, path = IN_TABLE, operation_id = "receive",
    request_body(content = String, content_type = "*/*", description = "The webhook as the provider signed it"),
    responses(
        (status = 200, description = "The events are stored; the text is that of a handshake", body = String, content_type = "text/plain"),
        (status = 401, description = "The signature is missing or wrong"),
        (status = 404, description = "The address does not exist"),
    ),
)]
pub(crate) async fn receive(
    _: NoKey,
    State(server): State<Arc<Server>>,
    Path((toolkit, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let is_of_project = request.uri().path().ends_with(OF_PROJECT_SUFFIX);
    let address = if is_of_project {
        ingress::of_project(&server.app, &toolkit, &id).await
    } else {
        ingress::endpoint(&server.app, &toolkit, &id).await
    };
    match received(&server, address, request).await {
        Ok(response) => {
            let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::OK);
            let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
            (status, [(header::CONTENT_TYPE, media_type)], response.text).into_response()
        }
        Err(ApiError::App(cause)) if cause.info().class == Class::NotFound => {
            ApiError::Http(HttpError::UnknownRoute(None)).into_response()
        }
        Err(ApiError::App(cause)) if cause.info().class == Class::Unauthenticated => {
            tracing::debug!(%cause, "a webhook is not signed");
            let refusal = errors::webhook_not_signed("it is missing or wrong");
            ApiError::App(refusal).into_response()
        }
        Err(failure) => failure.into_response(),
    }
}

/// Answers a provider that verifies an address for webhooks.
#[utoipa::path(get, path = IN_TABLE, operation_id = "verify", responses(
    (status = 200, description = "The text of the handshake", body = String, content_type = "text/plain"),
    (status = 401, description = "The signature is missing or wrong"),
    (status = 404, description = "The address does not exist"),
))]
pub(crate) async fn verify(
    key: NoKey,
    server: State<Arc<Server>>,
    path: Path<(String, String)>,
    request: Request,
) -> Response {
    receive(key, server, path, request).await
}

async fn received(
    server: &Server,
    address: app::Result<Address>,
    request: Request,
) -> ApiResult<ingress::Response> {
    let address = address?;
    server.limiter.rates.count_webhook(&address.key)?;
    let caller = Caller {
        tenant: address.project.tenant.clone(),
        stranger: Some(CURRENT_REQUEST.with(|context| context.peer)),
    };
    permits::acquire_for_project(&server.limiter, caller).await?;
    let query = request.uri().query();
    let mut inbound = Inbound {
        method: request.method().to_string(),
        path: query.map(|query| format!("?{query}")).unwrap_or_default(),
        headers: joined(request.headers()),
        ..Inbound::default()
    };
    inbound.body = body::read(server, request, MAX_WEBHOOK_BYTES).await?;
    Ok(ingress::receive(&server.app, &address, &inbound).await?)
}

/// Returns each header once. Lines of the same name are joined (RFC 9110, section 5.3), so that a
/// request with two signatures is not accepted for one of them.
fn joined(headers: &HeaderMap) -> Vec<(String, String)> {
    let names = headers.keys();
    let value = |name| {
        let lines: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|line| String::from_utf8_lossy(line.as_bytes()))
            .collect();
        lines.join(", ")
    };
    names.map(|name| (name.to_string(), value(name))).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn lines_of_one_header_are_joined() {
        let lines = [("x-signature", "a"), ("x-other", "é"), ("x-signature", "b")];
        let headers = lines.map(|(name, value)| {
            let value = HeaderValue::from_bytes(value.as_bytes());
            (HeaderName::from_static(name), value.unwrap())
        });
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            joined(&HeaderMap::from_iter(headers)),
            [pair("x-signature", "a, b"), pair("x-other", "é")]
        );
    }
}
