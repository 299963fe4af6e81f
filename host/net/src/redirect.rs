//! Follows redirects for callers that request it.
//!
//! Problem: a provider that redirects may be compromised, or may redirect to a host that must not
//! get the credential.
//!
//! Guarantee: only redirects to the same host are followed. Each hop passes the caller's rule and
//! the guard again. The headers with a credential are removed as soon as scheme or port differ.
//! Every other redirect is returned to the caller.

use std::borrow::Cow;

use reqwest::{
    Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION},
};
use tokio::time::Instant;
use url::Url;

use crate::{Body, Client, Error, Origin, Request, Response};

impl Client {
    /// Sends a request and follows at most `hops` redirects to the same host that `follow` accepts.
    /// `follow` may change the next request, for example to sign it again.
    ///
    /// Headers named in `credentials` and the client certificate go only to the origin of the first
    /// request. A redirect is not followed if it needs a body that cannot be sent again. Otherwise
    /// the redirect itself is returned as the response. The time limits cover all hops together.
    ///
    /// # Errors
    /// Returns the errors of [`Client::send`].
    pub async fn send_following(
        &self,
        mut request: Request,
        hops: usize,
        credentials: &[HeaderName],
        mut follow: impl FnMut(&mut Request) -> bool + Send,
    ) -> Result<Response, Error> {
        let mut first = None;
        let deadline = Instant::now() + request.limits.total;
        let mut client = Cow::Borrowed(self);
        let mut left = hops;
        loop {
            let again = copy_body(&request.body);
            let body = std::mem::take(&mut request.body);
            let response = client.send_with_body(&request, body).await?;
            let target = redirect_target(&response, &request.method, &request.url);
            let Some((method, url)) = target.filter(|_| left > 0) else {
                return Ok(response);
            };
            let next_body = if method == request.method {
                again
            } else {
                request.headers.remove(CONTENT_TYPE);
                request.headers.remove(CONTENT_ENCODING);
                Some(Body::Empty)
            };
            let Some(body) = next_body else {
                return Ok(response);
            };
            let first = first.get_or_insert_with(|| Origin::from_url(&request.url));
            if Origin::from_url(&url) != *first {
                for name in credentials {
                    request.headers.remove(name);
                }
                client = Cow::Owned(self.clone().with_identity(None));
            }
            request = Request {
                method,
                url,
                body,
                ..request
            };
            if !follow(&mut request) {
                return Ok(response);
            }
            left -= 1;
            request.limits.total = deadline.saturating_duration_since(Instant::now());
        }
    }
}

/// Returns a copy of the body if it can be sent again.
fn copy_body(body: &Body) -> Option<Body> {
    match body {
        Body::Empty => Some(Body::Empty),
        Body::Bytes(bytes) => Some(Body::Bytes(bytes.clone())),
        Body::Multipart(_) => None,
    }
}

/// Returns the target of a redirect if it stays on the same host.
fn redirect_target(response: &Response, method: &Method, url: &Url) -> Option<(Method, Url)> {
    let method = match response.status {
        StatusCode::SEE_OTHER if *method != Method::HEAD => Method::GET,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if *method == Method::POST => Method::GET,
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => method.clone(),
        _ => return None,
    };
    let next = url
        .join(response.headers.get(LOCATION)?.to_str().ok()?)
        .ok()?;
    let same_host = next.host() == url.host() && matches!(next.scheme(), "http" | "https");
    same_host.then_some((method, next))
}
