//! Verification of signed webhooks.
//!
//! Most providers sign a webhook with HMAC-SHA256 (RFC 2104, FIPS 180-4) under a secret that they
//! share with the receiver, and send the result in a header. Which bytes are signed, and the form
//! of the header, are in the provider's documentation: [`Signature`] describes both.
//!
//! The platform keeps a secret of type [`Secret`] and verifies with it, so that the toolkit never
//! sees it. A secret passed as a string is in the toolkit's own memory. Use a string only if the
//! key has to be derived from the secret in a way that no [`Algorithm`] supports.
//!
//! Needs the SDK's feature `webhook`.

use std::borrow::Cow;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use sha2::Sha256;

use crate::{Inbound, Result, ToolError, host};

/// Number of bytes of an HMAC-SHA256.
const SIGNATURE_BYTES: usize = 32;
/// Kind of the platform's failure for an empty or malformed secret.
const UNUSABLE_SECRET: &str = "unusable";

/// Secret of a trigger's configuration, which the platform keeps. Its schema has `writeOnly`.
///
/// ```
/// use toolkit_sdk::prelude::*;
/// use toolkit_sdk::webhook::{Algorithm, Secret};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Config {
///     /// Token that the provider sends with each webhook.
///     #[schemars(length(min = 16))]
///     token: Secret,
/// }
///
/// fn verify(config: &Config, request: &Inbound) -> Result<bool> {
///     let token = request.header("x-gitlab-token").unwrap_or_default();
///     config.token.verify(Algorithm::Token, b"", token.as_bytes())
/// }
/// ```
///
/// In a component, the value is only the name of the property. In native tests it is the secret.
/// Once a component uses the type anywhere, the platform withholds every `writeOnly` property of
/// the configurations of its webhook triggers.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Verifies the bytes of a signature of a message. [`Signature`] does it for the usual form.
    ///
    /// # Errors
    /// `unauthorized` if the secret is empty or malformed; `internal` if the message is larger than
    /// the platform accepts.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> Result<bool> {
        host::verify_webhook(&self.0, algorithm, message, signature).map_err(|failure| {
            if failure.kind == UNUSABLE_SECRET {
                ToolError::unauthorized(failure.message)
            } else {
                ToolError::internal(format!(
                    "the signature cannot be verified: {}",
                    failure.message
                ))
            }
        })
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "writeOnly": true })
    }
}

/// Algorithm by which the platform verifies a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-1.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-512.
    HmacSha512,
    /// HMAC-SHA256 whose key is the secret's base64, behind `whsec_` or alone: Standard Webhooks.
    StandardWebhooks,
    /// No MAC: the request carries the secret itself.
    Token,
}

/// Key of a [`Signature`]: a [`Secret`], or a string in the toolkit's memory.
pub trait Key: sealed::Sealed {}

impl Key for &Secret {}
impl Key for &str {}
impl Key for &String {}

mod sealed {
    use super::{Algorithm, Hmac, KeyInit, Mac, Result, Secret, Sha256, ToolError};

    pub trait Sealed {
        /// Verifies an HMAC-SHA256.
        fn is_signature(&self, message: &[&[u8]], signature: &[u8]) -> Result<bool>;
    }

    impl Sealed for &Secret {
        fn is_signature(&self, message: &[&[u8]], signature: &[u8]) -> Result<bool> {
            self.verify(Algorithm::HmacSha256, &message.concat(), signature)
        }
    }

    impl Sealed for &str {
        fn is_signature(&self, message: &[&[u8]], signature: &[u8]) -> Result<bool> {
            // Every sender can sign with an empty secret.
            if self.is_empty() {
                return Err(ToolError::unauthorized("the secret is empty"));
            }
            let mut mac = Hmac::<Sha256>::new_from_slice(self.as_bytes()).map_err(|cause| {
                ToolError::internal(format!("the secret cannot be used: {cause}"))
            })?;
            message.iter().for_each(|part| mac.update(part));
            Ok(mac.verify_slice(signature).is_ok())
        }
    }

    impl Sealed for &String {
        fn is_signature(&self, message: &[&[u8]], signature: &[u8]) -> Result<bool> {
            self.as_str().is_signature(message, signature)
        }
    }
}

/// HMAC-SHA256 of a webhook request, sent as 64 hexadecimal digits in a header. Meant to be a
/// constant of the toolkit.
///
/// ```
/// use toolkit_sdk::prelude::*;
/// use toolkit_sdk::webhook::{Secret, Signature};
///
/// const SIGNATURE: Signature = Signature::header("x-hub-signature-256")
///     .prefix("sha256=")
///     .hint("enter the same secret at GitHub and here");
///
/// fn verify(request: &Inbound, secret: &Secret) -> Result<()> {
///     SIGNATURE.verify(request, secret)
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    header: &'static str,
    prefix: &'static str,
    hint: &'static str,
}

impl Signature {
    /// Describes a signature in the header with this name.
    #[must_use]
    pub const fn header(name: &'static str) -> Self {
        Self {
            header: name,
            prefix: "",
            hint: "enter the signing secret of the webhook",
        }
    }

    /// Sets the text before the digits in the header, for example `sha256=`.
    #[must_use]
    pub const fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// Sets the advice at the end of each error message: where the user finds the secret.
    #[must_use]
    pub const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Verifies a signature over the exact bytes of the body. The digits are compared in constant
    /// time, in upper or lower case.
    ///
    /// The age of the request is not checked. If the provider signs a time, compare it with
    /// [`crate::clock`] after this call, because an attacker may send a captured request again.
    ///
    /// # Errors
    /// `unauthorized` if the header is missing or has another form, the signature belongs to
    /// another secret or body, or the secret is empty.
    pub fn verify(&self, request: &Inbound, secret: impl Key) -> Result<()> {
        self.verify_message(request, secret, [request.body.as_slice()])
    }

    /// Verifies a signature over another message than the body. `message` is the list of its
    /// parts in order, for example a time from a header, a separator and the body.
    ///
    /// # Errors
    /// As for [`Self::verify`].
    pub fn verify_message<'a>(
        &self,
        request: &Inbound,
        secret: impl Key,
        message: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let digits = request
            .header(self.header)
            .and_then(|value| value.strip_prefix(self.prefix))
            .ok_or_else(|| {
                let problem = format!("the header `{}` has no signature", self.header);
                self.refusal(&format!("the request is not signed: {problem}"))
            })?;
        let wrong = || self.refusal("the signature is wrong");
        let signature = decode_hex(digits).ok_or_else(wrong)?;
        let message: Vec<&[u8]> = message.into_iter().collect();
        let verified = secret.is_signature(&message, &signature).map_err(|error| {
            if error.kind() == "unauthorized" {
                self.refusal(error.text())
            } else {
                error
            }
        })?;
        if verified { Ok(()) } else { Err(wrong()) }
    }

    fn refusal(&self, problem: &str) -> ToolError {
        ToolError::unauthorized(format!("{problem}; {}", self.hint))
    }
}

/// Decodes the hexadecimal digits of a signature. Returns `None` for any other string.
fn decode_hex(digits: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * SIGNATURE_BYTES {
        return None;
    }
    let mut bytes = [0; SIGNATURE_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from((high << 4) | low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_SIGNATURE: Signature = Signature::header("x-signature").prefix("sha256=");
    /// Example of GitHub's documentation ("Validating webhook deliveries").
    const EXAMPLE_SECRET: &str = "It's a Secret to Everybody";
    const EXAMPLE_BODY: &[u8] = b"Hello, World!";
    const EXAMPLE_DIGITS: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn request(header: Option<&str>, body: &[u8]) -> Inbound {
        let headers = header.map(|value| ("x-signature".to_owned(), value.to_owned()));
        Inbound {
            method: "POST".to_owned(),
            headers: headers.into_iter().collect(),
            body: body.to_owned(),
            ..Inbound::default()
        }
    }

    fn refusal(header: Option<&str>, secret: &str, body: &[u8]) -> String {
        let error = HEADER_SIGNATURE
            .verify(&request(header, body), secret)
            .expect_err("the request is refused");
        assert_eq!(error.kind(), "unauthorized");
        error.text().to_owned()
    }

    #[test]
    fn documented_example_is_accepted() {
        for digits in [EXAMPLE_DIGITS.to_owned(), EXAMPLE_DIGITS.to_uppercase()] {
            let signed = request(Some(&format!("sha256={digits}")), EXAMPLE_BODY);
            HEADER_SIGNATURE
                .verify(&signed, EXAMPLE_SECRET)
                .expect("it is valid");
        }
    }

    #[test]
    fn platform_verifies_with_its_secret() {
        let header = format!("sha256={EXAMPLE_DIGITS}");
        let signed = request(Some(&header), EXAMPLE_BODY);
        HEADER_SIGNATURE
            .verify(&signed, &Secret::from(EXAMPLE_SECRET))
            .expect("it is valid");
        for (secret, problem) in [
            ("other", "the signature is wrong; enter"),
            ("", "the secret is empty; enter"),
        ] {
            let error = HEADER_SIGNATURE.verify(&signed, &Secret::from(secret));
            let error = error.expect_err("the request is refused");
            assert_eq!(error.kind(), "unauthorized");
            assert!(error.text().starts_with(problem), "{}", error.text());
        }
    }

    #[test]
    fn every_algorithm_verifies_in_native_tests() {
        // RFC 2202, test case 2.
        let message = b"what do ya want for nothing?";
        let secret = Secret::from("Jefe");
        let sha1 =
            b"\xef\xfc\xdf\x6a\xe5\xeb\x2f\xa2\xd2\x74\x16\xd5\xf1\x84\xdf\x9c\x25\x9a\x7c\x79";
        assert_eq!(secret.verify(Algorithm::HmacSha1, message, sha1), Ok(true));
        assert_eq!(
            secret.verify(Algorithm::HmacSha512, message, sha1),
            Ok(false)
        );
        assert_eq!(secret.verify(Algorithm::Token, b"", b"Jefe"), Ok(true));
        assert_eq!(
            secret.verify(Algorithm::StandardWebhooks, message, sha1),
            Ok(false)
        );
        let error = Secret::from("whsec_!").verify(Algorithm::StandardWebhooks, message, sha1);
        assert_eq!(error.expect_err("it is not base64").kind(), "unauthorized");
    }

    #[test]
    fn secret_is_write_only_and_undisclosed() {
        let mut generator = SchemaGenerator::default();
        let schema = Secret::json_schema(&mut generator);
        assert_eq!(schema.get("writeOnly"), Some(&true.into()));
        assert!(!format!("{:?}", Secret::from(EXAMPLE_SECRET)).contains("Secret to"));
    }

    #[test]
    fn hmac_matches_rfc_4231() {
        let digits = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let signed = request(Some(digits), b"");
        let message = [&b"what do ya want "[..], b"for nothing?"];
        Signature::header("X-Signature")
            .verify_message(&signed, "Jefe", message)
            .expect("test case 2 is valid");
    }

    #[test]
    fn other_secret_or_body_is_refused() {
        let header = format!("sha256={EXAMPLE_DIGITS}");
        let wrong = "the signature is wrong; enter the signing secret of the webhook";
        for (secret, body) in [("other", EXAMPLE_BODY), (EXAMPLE_SECRET, b"Hello, world!")] {
            assert_eq!(refusal(Some(&header), secret, body), wrong);
        }
        let unset = refusal(Some(&header), "", EXAMPLE_BODY);
        assert!(unset.starts_with("the secret is empty"), "{unset}");
    }

    #[test]
    fn missing_signature_names_the_header() {
        for header in [None, Some(EXAMPLE_DIGITS), Some("")] {
            let message = refusal(header, EXAMPLE_SECRET, EXAMPLE_BODY);
            assert!(
                message.starts_with("the request is not signed: the header `x-signature`"),
                "{message}"
            );
        }
    }

    #[test]
    fn malformed_signatures_are_refused() {
        let long = format!("{EXAMPLE_DIGITS}00");
        let signed = format!("+{}", &EXAMPLE_DIGITS[1..]);
        let wide = "é".repeat(32);
        for digits in ["", "00", &EXAMPLE_DIGITS[2..], &long, &signed, &wide] {
            let header = format!("sha256={digits}");
            let message = refusal(Some(&header), EXAMPLE_SECRET, EXAMPLE_BODY);
            assert!(message.starts_with("the signature is wrong"), "{message}");
        }
    }
}
