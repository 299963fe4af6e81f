//! Puts the signing secret of a webhook into the request that subscribes at the provider.
//!
//! The guest writes a placeholder at the position that its manifest declares. No other part of a
//! request, and no request without the account's credential, gets the secret.

use std::borrow::Cow;

use serde_json::Value;

use super::payload::Payload;
use crate::HandedOverSecret;

/// Replaces the placeholder in the body of a request.
pub(super) fn insert<'a>(secret: &HandedOverSecret, payload: Cow<'a, Payload>) -> Cow<'a, Payload> {
    let Payload::Bytes(bytes) = &*payload else {
        return payload;
    };
    let Ok(mut body) = serde_json::from_slice::<Value>(bytes) else {
        return payload;
    };
    match body.pointer_mut(&secret.pointer) {
        Some(Value::String(text)) if text == manifest::SECRET_PLACEHOLDER => {
            secret.secret.expose().clone_into(text);
        }
        _ => return payload,
    }
    Cow::Owned(Payload::Bytes(body.to_string().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_declared_place_gets_the_secret() {
        let secret = HandedOverSecret {
            pointer: "/config/secret".to_owned(),
            secret: "canary-4711".into(),
        };
        let placeholder = manifest::SECRET_PLACEHOLDER;
        let sent = |body: Value| {
            let payload = Payload::Bytes(body.to_string().into());
            match insert(&secret, Cow::Owned(payload)).into_owned() {
                Payload::Bytes(bytes) => serde_json::from_slice::<Value>(&bytes).unwrap(),
                _ => Value::Null,
            }
        };
        assert_eq!(
            sent(json!({ "config": { "secret": placeholder }, "name": placeholder })),
            json!({ "config": { "secret": "canary-4711" }, "name": placeholder })
        );
        for body in [
            json!({ "config": { "secret": "own" } }),
            json!({ "config": { "secret": format!("{placeholder}!") } }),
            json!([placeholder]),
        ] {
            assert_eq!(sent(body.clone()), body);
        }
    }
}
