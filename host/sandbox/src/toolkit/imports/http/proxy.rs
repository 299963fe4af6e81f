//! Proxy request: one request of the caller without a guest, with the same rules, guard, credential
//! and redaction as a guest's request.
//!
//! Headers and query parameters that only the platform may write are left out and not refused. A
//! caller's HTTP library may write some of them on its own, and the credential of the account takes
//! precedence.
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use net::Url;
use scopeguard::ScopeGuard;
use tokio::{runtime::Handle, sync::Semaphore, time::timeout};

use super::{HttpResult, Node, Outgoing, OutgoingParts, credential, error, rules};
use crate::{
    File, Level, Outcome, ProxyRequest, ProxyResponse, Reservation,
    contract::v1::http::{Body, Content, Request},
    failure,
    files::Files,
    observer::Observer,
};

/// Id of the body among the files of the request.
const BODY_FILE_ID: &str = "body";

/// Time beyond the exchange for refreshing a credential and redacting it from the response.
const OVERHEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Sends the request and reads the whole response into `memory`, a reservation of the tenant. If the
/// future is dropped, the outcome is passed to `on_cancel`.
pub(crate) async fn send_proxy_request(
    node: &Arc<Node>,
    memory: Reservation,
    cpu_permits: &Arc<Semaphore>,
    request: ProxyRequest,
    on_cancel: impl FnOnce(Outcome<ProxyResponse>),
) -> Outcome<ProxyResponse> {
    let limits = request.limits.clamped();
    let running = scopeguard::guard(Observer::new(Instant::now(), &limits), |observer| {
        on_cancel(observer.outcome(Err(failure::cancelled())));
    });
    let (body, body_file) = body_as_file(request.body);
    let files = Files::new(body_file, None, memory, &limits);
    let parts = OutgoingParts {
        node: node.clone(),
        tenant: request.tenant,
        cpu_permits: cpu_permits.clone(),
        policy: request.policy,
        grant: request.grant,
        limits,
        run_trace: request.trace,
        caller_runtime: Handle::current(),
        max_decoded_file_bytes: request.max_text_bytes,
    };
    let outgoing = Outgoing::new(&parts, running.trace.clone());
    let mut guest_request = Request {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body,
        credential: String::new(),
        timeout_ms: 0,
        into_blob: true,
    };
    for name in outgoing.remove_platform_parts(&mut guest_request).await {
        let message = format!("`{name}` is set by the host and was removed from the request");
        running.trace.log(Level::Warn, &message);
    }
    let sending = Arc::new(outgoing).send(guest_request, files.clone(), limits.wall);
    let all = limits.wall + OVERHEAD_TIMEOUT;
    let sent = timeout(all, sending).await.unwrap_or_else(|_| {
        Err(error(
            "timeout",
            format!("the whole request exceeded its timeout of {all:?}; try again later"),
        ))
    });
    outcome(&ScopeGuard::into_inner(running), sent, &files)
}

/// Returns the body of the guest's request, with the file that contains it.
fn body_as_file(bytes: Option<Bytes>) -> (Body, Vec<File>) {
    let Some(bytes) = bytes else {
        return (Body::Empty, Vec::new());
    };
    let file = File {
        id: BODY_FILE_ID.into(),
        name: BODY_FILE_ID.into(),
        media_type: String::new(),
        bytes,
    };
    (
        Body::Content(Content::Blob(BODY_FILE_ID.into())),
        vec![file],
    )
}

/// Returns the outcome of a request that has ended.
fn outcome(observer: &Observer, sent: HttpResult, files: &Files) -> Outcome<ProxyResponse> {
    let response = match sent {
        Ok(response) => response,
        Err(error) => return observer.outcome(Err(failure::from_request_error(error))),
    };
    // The one created file is the response body, even if the request was retried.
    let response_body = files.take_created().pop().map(|file| file.bytes);
    let returned = ProxyResponse {
        status: response.status,
        headers: response.headers,
        body: response_body.unwrap_or_default(),
    };
    Outcome {
        memory: files.take_memory(),
        ..observer.outcome(Ok(returned))
    }
}

impl Outgoing {
    /// Removes the parts of a request that only the platform writes and returns their names.
    async fn remove_platform_parts(&self, request: &mut Request) -> Vec<String> {
        // A request without a credential is refused when it is sent.
        let credential = match &self.grant {
            Some(grant) => grant.credential().await.ok(),
            None => None,
        };
        let filled_names = credential
            .as_deref()
            .map(credential::header_names)
            .unwrap_or_default();
        let mut removed: Vec<String> = Vec::new();
        request.headers.retain(|(name, _)| {
            let ours = manifest::is_platform_header(name)
                || credential::contains_name(&filled_names, name);
            if ours {
                removed.push(crate::trace::cut(name, 100).to_owned());
            }
            !ours
        });
        if let Some(credential) = &credential {
            let names = credential::query_names(credential);
            removed.extend(remove_parameters(&mut request.url, names));
        }
        removed
    }
}

/// Removes query parameters from a URL. Returns their names if it had one of them.
fn remove_parameters(address: &mut String, names: Vec<&str>) -> Vec<String> {
    let Ok(mut url) = Url::parse(address) else {
        return Vec::new();
    };
    let kept: Vec<_> = url
        .query_pairs()
        .into_owned()
        .filter(|(given, _)| !names.iter().any(|name| given.eq_ignore_ascii_case(name)))
        .collect();
    if kept.len() == url.query_pairs().count() {
        return Vec::new();
    }
    url.query_pairs_mut().clear().extend_pairs(kept);
    *address = url.into();
    names.into_iter().map(str::to_owned).collect()
}

impl crate::Policy {
    /// Returns true if a rule names the host and the port of a URL.
    #[must_use]
    pub fn reaches(&self, url: &Url) -> bool {
        url.scheme() == "https"
            && self
                .egress
                .iter()
                .any(|rule| rules::host_matches(rule, url))
    }
}
