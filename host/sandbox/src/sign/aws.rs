//! AWS Signature Version 4, in the header.
//!
//! The signed and the sent request must be equal to the byte, and a URL can be encoded in several
//! ways. Path and query are therefore first rewritten into the canonical encoding.

use manifest::Hash;
use net::header::{AUTHORIZATION, HeaderName};
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{
    SignatureStamp, SigningError, body_bytes, hmac, host, joined_pairs, percent, sensitive_header,
};
use crate::Secret;

const ALGORITHM_NAME: &str = "AWS4-HMAC-SHA256";
/// Replacement for the digest of a body whose bytes are written while they are sent. TLS protects
/// those.
const UNSIGNED_BODY: &str = "UNSIGNED-PAYLOAD";
/// Headers that `net` and intermediaries may change.
const UNSIGNED_HEADERS: [&str; 4] = ["accept-encoding", "authorization", "host", "user-agent"];

pub(super) struct Keys {
    pub(super) access_key_id: Secret,
    pub(super) secret_access_key: Secret,
    pub(super) session_token: Option<Secret>,
    pub(super) region: Secret,
    pub(super) service: Secret,
}

pub(super) fn sign(
    keys: &Keys,
    request: &mut net::Request,
    stamp: &SignatureStamp,
) -> Result<Vec<Secret>, SigningError> {
    let region = keys.region.expose();
    let service = keys.service.expose();
    let is_s3 = service == "s3" || service.starts_with("s3-");
    respell(request, is_s3);
    let time = stamp.date().format("%Y%m%dT%H%M%SZ").to_string();
    let digest = match body_bytes(request) {
        Some(bytes) => hex::encode(Sha256::digest(bytes)),
        None => UNSIGNED_BODY.to_owned(),
    };
    let headers = &mut request.headers;
    headers.insert("x-amz-date", sensitive_header(&time)?);
    match keys
        .session_token
        .as_ref()
        .filter(|token| !token.expose().is_empty())
    {
        Some(token) => {
            drop(headers.insert("x-amz-security-token", sensitive_header(token.expose())?))
        }
        None => drop(headers.remove("x-amz-security-token")),
    }
    if is_s3 || digest == UNSIGNED_BODY {
        headers.insert("x-amz-content-sha256", sensitive_header(&digest)?);
    }
    let signed = signed_headers(request);
    let names = signed
        .iter()
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>()
        .join(";");
    let lines: String = signed
        .iter()
        .map(|(name, value)| format!("{name}:{value}\n"))
        .collect();
    let method = &request.method;
    let path = signed_path(request.url.path(), is_s3);
    let query = request.url.query().unwrap_or_default();
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}");
    let day = &time[..8];
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let text = format!(
        "{ALGORITHM_NAME}\n{time}\n{scope}\n{}",
        hex::encode(Sha256::digest(canonical))
    );
    let key = signing_key(keys, day)?;
    let signature = hex::encode(hmac(Hash::Sha256, &key, text.as_bytes())?);
    let id = keys.access_key_id.expose();
    let value = format!(
        "{ALGORITHM_NAME} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    );
    request
        .headers
        .insert(AUTHORIZATION, sensitive_header(&value)?);
    Ok(vec![signature.into()])
}

/// Returns the path as it is signed. All services except S3 sign it encoded once more than it is sent.
fn signed_path(path: &str, is_s3: bool) -> String {
    if is_s3 {
        return path.to_owned();
    }
    path.split('/').map(percent).collect::<Vec<_>>().join("/")
}

/// Returns the key that signs the requests of one day to a service in a region.
fn signing_key(keys: &Keys, day: &str) -> Result<Zeroizing<Vec<u8>>, SigningError> {
    let secret = format!("AWS4{}", keys.secret_access_key.expose());
    let mut key = Zeroizing::new(secret.into_bytes());
    for part in [
        day,
        keys.region.expose(),
        keys.service.expose(),
        "aws4_request",
    ] {
        key = Zeroizing::new(hmac(Hash::Sha256, &key, part.as_bytes())?);
    }
    Ok(key)
}

/// Encodes path and query canonically and sorts the query.
fn respell(request: &mut net::Request, is_s3: bool) {
    let url = &mut request.url;
    let path = canonical_path(url.path(), is_s3);
    url.set_path(&path);
    let pairs = url
        .query_pairs()
        .map(|(name, value)| (percent(&name), percent(&value)));
    let query = joined_pairs(pairs.collect());
    url.set_query((!query.is_empty()).then_some(&*query));
}

/// Returns a path in the canonical encoding. Only S3 keeps empty segments.
fn canonical_path(path: &str, is_s3: bool) -> String {
    let segments = path
        .split('/')
        .filter(|segment| is_s3 || !segment.is_empty())
        .map(|segment| {
            percent_decode_str(segment)
                .decode_utf8()
                .map_or_else(|_| segment.to_owned(), |decoded| percent(&decoded))
        });
    let joined = segments.collect::<Vec<_>>().join("/");
    if is_s3 {
        return joined;
    }
    let has_end = path.ends_with('/') && !joined.is_empty();
    format!("/{joined}{}", if has_end { "/" } else { "" })
}

fn joined_values(request: &net::Request, name: &HeaderName) -> String {
    let values = request.headers.get_all(name).iter().map(|value| {
        String::from_utf8_lossy(value.as_bytes())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    values.collect::<Vec<_>>().join(",")
}

/// Returns every signed header with its values joined, ordered by name.
fn signed_headers(request: &net::Request) -> Vec<(String, String)> {
    let names = request
        .headers
        .keys()
        .filter(|name| !UNSIGNED_HEADERS.contains(&name.as_str()));
    let mut signed: Vec<_> = names
        .map(|name| (name.as_str().to_owned(), joined_values(request, name)))
        .chain([("host".to_owned(), host(&request.url))])
        .collect();
    signed.sort_unstable();
    signed
}
