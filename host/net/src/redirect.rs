//! Follows redirects for callers that request it.
//!
//! Problem: a provider that redirects may be compromised, or may redirect to a host that must not
//! get the credential.
//!
//! Guarantee: only redirects to the same host are followed. Each hop passes the caller's rule and
//! the guard again. The headers with a credential are removed as soon as scheme or port differ.
//! Every other redirect is returned to the caller.

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
        let first = Origin::from_url(&request.url);
        let deadline = Instant::now() + request.limits.total;
        let mut client = self;
        let without_identity = self.with_identity(None);
        let mut left = hops;
        loop {
            request.limits.total = deadline.saturating_duration_since(Instant::now());
            let method = request.method.clone();
            let url = request.url.clone();
            let limits = request.limits;
            let mut headers = request.headers.clone();
            let mut retry_body = copy_body(&request.body);
            let response = client.send(request).await?;
            let next = if left == 0 {
                None
            } else {
                redirect_target(&response, &method, &url)
            };
            let Some((next_method, next_url)) = next else {
                return Ok(response);
            };
            if next_method != method {
                retry_body = Some(Body::Empty);
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_ENCODING);
            }
            let Some(body) = retry_body else {
                return Ok(response);
            };
            if Origin::from_url(&next_url) != first {
                credentials
                    .iter()
                    .for_each(|name| drop(headers.remove(name)));
                client = &without_identity;
            }
            request = Request {
                method: next_method,
                url: next_url,
                headers,
                body,
                limits,
            };
            if !follow(&mut request) {
                return Ok(response);
            }
            left -= 1;
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
