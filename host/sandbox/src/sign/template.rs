//! Digests over the parts of a request that the manifest names.

use std::cell::RefCell;

use chrono::SecondsFormat;
use manifest::{Digest, Placement, Source};
use net::header::HeaderName;
use sha2::{Digest as _, Sha256};

use super::{SignatureStamp, Signing, SigningError, body_bytes, digest, host, sensitive_header};
use crate::Secret;

/// Values for the templates of one request.
struct Values<'a> {
    signing: &'a Signing,
    request: &'a net::Request,
    stamp: &'a SignatureStamp,
    /// Every computed digest.
    made: RefCell<Vec<Secret>>,
}

pub(super) fn sign(
    signing: &Signing,
    placements: &[Placement],
    request: &mut net::Request,
    stamp: &SignatureStamp,
) -> Result<Vec<Secret>, SigningError> {
    remove_signature(signing, request);
    let values = Values {
        signing,
        request,
        stamp,
        made: RefCell::default(),
    };
    let mut filled = Vec::new();
    for placement in placements {
        let (Placement::Header { name, value } | Placement::Query { name, value }) = placement
        else {
            continue;
        };
        let value = manifest::fill(value, &values).ok_or_else(|| {
            SigningError(format!(
                "a value for `{name}` is missing, or the body of the request has no text"
            ))
        })?;
        filled.push((placement, name, Secret::from(value)));
    }
    let made = values.made.take();
    for (placement, name, value) in filled {
        if matches!(placement, Placement::Query { .. }) {
            request
                .url
                .query_pairs_mut()
                .append_pair(name, value.expose());
        } else {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| SigningError(format!("`{name}` is not a header name")))?;
            request
                .headers
                .insert(name, sensitive_header(value.expose())?);
        }
    }
    Ok(made)
}

/// Removes an earlier signature from the URL.
fn remove_signature(signing: &Signing, request: &mut net::Request) {
    let names = signing.query_names();
    let kept: Vec<_> = request
        .url
        .query_pairs()
        .into_owned()
        .filter(|(given, _)| !names.iter().any(|name| given.eq_ignore_ascii_case(name)))
        .collect();
    if kept.len() < request.url.query_pairs().count() {
        request.url.query_pairs_mut().clear().extend_pairs(kept);
    }
}

impl Source for Values<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let request = self.request;
        let stamp = self.stamp;
        let query = request.url.query().unwrap_or_default();
        Some(match name {
            "method" => request.method.to_string(),
            "host" => host(&request.url),
            "path" => request.url.path().to_owned(),
            "query" => query.to_owned(),
            "sorted_query" => {
                let mut pairs: Vec<_> = query.split('&').collect();
                pairs.sort_unstable();
                pairs.join("&")
            }
            "body" => String::from_utf8(body_bytes(request)?.to_vec()).ok()?,
            "body_sha256" => hex::encode(Sha256::digest(body_bytes(request)?)),
            "now" => stamp.seconds(),
            "now_ms" => stamp.ms.to_string(),
            "now_iso" => stamp.date().to_rfc3339_opts(SecondsFormat::Secs, true),
            "random" => stamp.nonce.clone(),
            own => return self.signing.value(own),
        })
    }

    fn digest(&self, function: Digest, arguments: &[String]) -> Option<String> {
        let made = digest(function, arguments)?;
        self.made.borrow_mut().push(made.as_str().into());
        Some(made)
    }
}
