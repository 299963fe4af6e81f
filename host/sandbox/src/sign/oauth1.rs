//! OAuth 1.0 (RFC 5849, section 3).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use manifest::{Hash, SignatureMethod};
use net::{Url, header::AUTHORIZATION};
use url::form_urlencoded;

use super::{Moment, Unsigned, body, header, hmac, host, is_form, percent};
use crate::Secret;

pub(super) struct Keys {
    pub(super) method: SignatureMethod,
    pub(super) consumer_key: Secret,
    pub(super) consumer_secret: Secret,
    /// Empty where there is no account yet, or none at all.
    pub(super) token: Secret,
    pub(super) token_secret: Secret,
    pub(super) realm: Option<Secret>,
}

pub(super) fn sign(
    keys: &Keys,
    request: &mut net::Request,
    more: &[(&str, &str)],
    at: &Moment,
) -> Result<Vec<Secret>, Unsigned> {
    let seconds = at.seconds();
    let mut protocol = vec![
        ("oauth_consumer_key", keys.consumer_key.expose()),
        ("oauth_nonce", at.nonce.as_str()),
        ("oauth_signature_method", keys.method.as_str()),
        ("oauth_timestamp", seconds.as_str()),
        ("oauth_version", "1.0"),
    ];
    protocol.extend(Some(("oauth_token", keys.token.expose())).filter(|(_, token)| !token.is_empty()));
    protocol.extend(more);
    let key =
        Secret::from(format!("{}&{}", percent(keys.consumer_secret.expose()), percent(keys.token_secret.expose())));
    let signed = |hash| {
        let base = base(request, &protocol);
        hmac(hash, key.expose().as_bytes(), base.as_bytes()).map(|bytes| Secret::from(STANDARD.encode(bytes)))
    };
    let signature = match keys.method {
        SignatureMethod::Plaintext => key.clone(),
        SignatureMethod::HmacSha1 => signed(Hash::Sha1)?,
        SignatureMethod::HmacSha256 => signed(Hash::Sha256)?,
    };
    protocol.push(("oauth_signature", signature.expose()));
    // The realm is a quoted string and no part of what is signed (section 3.5.1).
    let realm = keys.realm.iter().map(|realm| format!("realm=\"{}\"", realm.expose().replace(['"', '\\'], "")));
    let written = protocol.iter().map(|(name, value)| format!("{name}=\"{}\"", percent(value)));
    let value = format!("OAuth {}", realm.chain(written).collect::<Vec<_>>().join(", "));
    request.headers.insert(AUTHORIZATION, header(&value)?);
    Ok(vec![signature])
}

/// What is signed (section 3.4.1): method, address without query, and every parameter wherever it stands.
fn base(request: &net::Request, protocol: &[(&str, &str)]) -> String {
    let form = body(request).filter(|_| is_form(&request.headers)).unwrap_or_default();
    let given = request.url.query_pairs().chain(form_urlencoded::parse(form));
    let mut parameters: Vec<_> = given.map(|(name, value)| (percent(&name), percent(&value))).collect();
    parameters.extend(protocol.iter().map(|(name, value)| (percent(name), percent(value))));
    parameters.sort_unstable();
    let parameters: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}&{}&{}", request.method, percent(&address(&request.url)), percent(&parameters.join("&")))
}

/// Section 3.4.1.2.
fn address(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), host(url), url.path())
}
