//! OAuth 1.0 (RFC 5849, section 3).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use manifest::{Hash, SignatureMethod};
use net::{Url, header::AUTHORIZATION};
use url::form_urlencoded;

use super::{
    SignatureStamp, SigningError, body_bytes, hmac, host, is_form, joined_pairs, percent,
    sensitive_header,
};
use crate::Secret;

pub(super) struct Keys {
    pub(super) method: SignatureMethod,
    pub(super) consumer_key: Secret,
    /// Token; empty if the account does not exist yet or is not needed.
    pub(super) token: Secret,
    pub(super) proof: Proof,
    pub(super) realm: Option<Secret>,
}

/// Material that produces a signature.
pub(super) enum Proof {
    /// Secrets of client and account, which are the signature (section 3.4.4).
    Secrets(Secret),
    /// Secrets of client and account as the key of an HMAC (section 3.4.2).
    Hmac(Hash, Secret),
}

/// Joins the secrets of client and account into one text.
pub(super) fn join_secrets(client: &Secret, account: &Secret) -> Secret {
    Secret::from(format!(
        "{}&{}",
        percent(client.expose()),
        percent(account.expose())
    ))
}

pub(super) fn sign(
    keys: &Keys,
    request: &mut net::Request,
    more: &[(&str, &str)],
    stamp: &SignatureStamp,
) -> Result<Vec<Secret>, SigningError> {
    let seconds = stamp.seconds();
    let mut protocol = vec![
        ("oauth_consumer_key", keys.consumer_key.expose()),
        ("oauth_nonce", stamp.nonce.as_str()),
        ("oauth_signature_method", keys.method.as_str()),
        ("oauth_timestamp", seconds.as_str()),
        ("oauth_version", "1.0"),
    ];
    protocol
        .extend(Some(("oauth_token", keys.token.expose())).filter(|(_, token)| !token.is_empty()));
    protocol.extend(more);
    let signature = match &keys.proof {
        Proof::Secrets(secrets) => secrets.clone(),
        Proof::Hmac(hash, key) => {
            let made = hmac(
                *hash,
                key.expose().as_bytes(),
                signature_base(request, &protocol).as_bytes(),
            )?;
            STANDARD.encode(made).into()
        }
    };
    protocol.push(("oauth_signature", signature.expose()));
    // The realm is a quoted string and is not signed (section 3.5.1).
    let realm = keys
        .realm
        .iter()
        .map(|realm| format!("realm=\"{}\"", realm.expose().replace(['"', '\\'], "")));
    let written = protocol
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", percent(value)));
    let value = format!(
        "OAuth {}",
        realm.chain(written).collect::<Vec<_>>().join(", ")
    );
    request
        .headers
        .insert(AUTHORIZATION, sensitive_header(&value)?);
    Ok(vec![signature])
}

/// Builds the signature base string (section 3.4.1): method, URL without query, and the parameters
/// from all places.
fn signature_base(request: &net::Request, protocol: &[(&str, &str)]) -> String {
    let form = body_bytes(request)
        .filter(|_| is_form(&request.headers))
        .unwrap_or_default();
    let given = request
        .url
        .query_pairs()
        .chain(form_urlencoded::parse(form));
    let mut parameters: Vec<_> = given
        .map(|(name, value)| (percent(&name), percent(&value)))
        .collect();
    parameters.extend(
        protocol
            .iter()
            .map(|(name, value)| (percent(name), percent(value))),
    );
    format!(
        "{}&{}&{}",
        request.method,
        percent(&base_string_uri(&request.url)),
        percent(&joined_pairs(parameters))
    )
}

/// Returns the base string URI (section 3.4.1.2).
fn base_string_uri(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), host(url), url.path())
}
