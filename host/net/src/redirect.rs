//! Redirects, for callers that ask for them.
//!
//! An application that redirects may be compromised, or may redirect to a place where a credential must not go. So only
//! redirects to the same host are followed, every hop passes the caller's rule and the guard again, and the headers that
//! carry a credential are left out as soon as scheme or port differ. Everything else is an answer for the caller.

use reqwest::{
    Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION},
};
use tokio::time::Instant;
use url::Url;

use crate::{Body, Client, Error, Origin, Request, Response};

impl Client {
    /// Sends a request and follows at most `hops` redirects to the same host that `allowed` agrees to.
    ///
    /// Headers named in `credentials` go only to the origin of the first request. A body that cannot be sent again is
    /// not. A redirect that is not followed is the answer. The time limits cover all hops together.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub async fn send_following(
        &self,
        request: Request,
        hops: usize,
        credentials: &[HeaderName],
        allowed: impl Fn(&Method, &Url) -> bool + Send,
    ) -> Result<Response, Error> {
        let Request { mut method, mut url, mut headers, body, mut limits } = request;
        let first = Origin::of(&url);
        let deadline = Instant::now() + limits.total;
        let (mut body, mut spare) = split(body);
        let mut left = hops;
        loop {
            limits.total = deadline.saturating_duration_since(Instant::now());
            let sent = Request { method: method.clone(), url: url.clone(), headers: headers.clone(), body, limits };
            let answer = self.send(sent).await?;
            let next = if left == 0 { None } else { follow(&answer, &method, &url) };
            let Some((next_method, next_url)) = next else { return Ok(answer) };
            if next_method != method {
                spare = Some(Body::Empty);
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_ENCODING);
            }
            let Some(again) = spare.take().filter(|_| allowed(&next_method, &next_url)) else { return Ok(answer) };
            if Origin::of(&next_url) != first {
                credentials.iter().for_each(|name| drop(headers.remove(name)));
            }
            (method, url) = (next_method, next_url);
            (body, spare) = split(again);
            left -= 1;
        }
    }
}

/// A body and, when it can be sent again, a second one.
fn split(body: Body) -> (Body, Option<Body>) {
    match body {
        Body::Empty => (Body::Empty, Some(Body::Empty)),
        Body::Bytes(bytes) => (Body::Bytes(bytes.clone()), Some(Body::Bytes(bytes))),
        form @ Body::Multipart(_) => (form, None),
    }
}

/// Where a redirect leads, when it stays on the same host.
fn follow(answer: &Response, method: &Method, url: &Url) -> Option<(Method, Url)> {
    let method = match answer.status {
        StatusCode::SEE_OTHER if *method != Method::HEAD => Method::GET,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if *method == Method::POST => Method::GET,
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => method.clone(),
        _ => return None,
    };
    let next = url.join(answer.headers.get(LOCATION)?.to_str().ok()?).ok()?;
    let same_host = next.host() == url.host() && matches!(next.scheme(), "http" | "https");
    same_host.then_some((method, next))
}
