//! Signatures of messages, in the form of Standard Webhooks.
//!
//! The key is the text of the secret as it stands. It has no prefix and is not base64.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns the value of the signature header: one signature per secret, separated by blanks.
/// `timestamp` is in Unix seconds.
pub(crate) fn signature<'a>(
    secrets: impl Iterator<Item = &'a str>,
    message_id: &str,
    timestamp: i64,
    body: &[u8],
) -> String {
    let sign = |secret: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .expect("this hash takes keys of every length");
        mac.update(format!("{message_id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    };
    secrets.map(sign).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_that_of_standard_webhooks() {
        // Made with the published library, whose key is the base64 text of these bytes.
        let signed = signature(
            ["the secret", "older"].into_iter(),
            "msg_1",
            1_700_000_000,
            b"{\"a\": 1}",
        );
        let (new, old) = signed.split_once(' ').unwrap();
        assert_eq!(new, "v1,T0/NnOhbsMNmjrGvCQ22eKkBJh7Sn6TBJJbke193Ogw=");
        assert!(old.starts_with("v1,") && old != new);
    }
}
