//! Signatures of requests, for providers that require a proof with every request instead of a
//! credential that they could read.
//!
//! The platform signs a complete request. It signs again when the request follows a redirect within
//! the origin, and never for another origin. Values are templates over the scheme's fields and over
//! the values that a flow obtains.

use serde::{Deserialize, Serialize};

use crate::Placement;

/// Names that templates of a scheme of mode `OAUTH1` may use in addition to its fields: values of
/// the client and of the account.
pub const OAUTH1_VALUES: [&str; 4] = [
    "consumer_key",
    "consumer_secret",
    "oauth_token",
    "oauth_token_secret",
];

/// Names of request values that templates of [`Sign::Template`] may use in addition to the fields
/// of their scheme. `query` is as it is sent. `sorted_query` is the same, sorted by name and then
/// by value. `body_sha256` is lower-case hex. `random` is the same everywhere in one request.
pub const REQUEST_VALUES: [&str; 11] = [
    "method",
    "host",
    "path",
    "query",
    "sorted_query",
    "body",
    "body_sha256",
    "now",
    "now_ms",
    "now_iso",
    "random",
];

/// Problem of a scheme that names [`SignatureMethod::RsaSha1`].
pub const RSA_SHA1_PROBLEM: &str =
    "RSA-SHA1 is not supported; use HMAC-SHA1, HMAC-SHA256 or PLAINTEXT";

/// A method of signing requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "with", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sign {
    /// `authorization: OAuth …` over method, address and parameters (RFC 5849, section 3).
    Oauth1 {
        /// Signature method.
        #[serde(default, skip_serializing_if = "crate::flow::is_default")]
        method: SignatureMethod,
        /// Template of the client's identifier.
        #[serde(default = "consumer_key")]
        consumer_key: String,
        /// Template of the client's shared secret.
        #[serde(default = "consumer_secret")]
        consumer_secret: String,
        /// Ignored. Manifests of [`SignatureMethod::RsaSha1`] contain it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        private_key: Option<String>,
        /// Template of the account's identifier. Empty where a client signs for itself.
        #[serde(default = "oauth_token")]
        token: String,
        /// Template of the account's shared secret.
        #[serde(default = "oauth_token_secret")]
        token_secret: String,
        /// Template of the protection realm (RFC 5849, section 3.5.1).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        realm: Option<String>,
    },
    /// `authorization: AWS4-HMAC-SHA256 …` over the whole request (AWS Signature Version 4).
    AwsSigv4 {
        /// Template of the access key id.
        access_key_id: String,
        /// Template of the secret access key.
        secret_access_key: String,
        /// Template of the session token of temporary keys. Left out when its value is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_token: Option<String>,
        /// Template of the region, for example `{region}`.
        region: String,
        /// Template of the service, for example `s3`.
        service: String,
    },
    /// Digests over parts of the request, in any header or query parameter.
    Template {
        /// Headers and query parameters. Their templates may contain digests and name
        /// [`REQUEST_VALUES`].
        request: Vec<Placement>,
    },
}

/// The signature method of OAuth 1.0 (RFC 5849, section 3.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignatureMethod {
    /// HMAC with SHA-1 (section 3.4.2).
    #[default]
    #[serde(rename = "HMAC-SHA1")]
    HmacSha1,
    /// HMAC with SHA-256, which many providers use instead.
    #[serde(rename = "HMAC-SHA256")]
    HmacSha256,
    /// RSA with SHA-1 (section 3.4.3). Not supported: it is refused at publication and in calls,
    /// and known only so that stored manifests can be read.
    #[serde(rename = "RSA-SHA1")]
    RsaSha1,
    /// The secrets themselves (section 3.4.4), protected only by TLS.
    #[serde(rename = "PLAINTEXT")]
    Plaintext,
}

impl SignatureMethod {
    /// Returns the name in `oauth_signature_method`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HmacSha1 => "HMAC-SHA1",
            Self::HmacSha256 => "HMAC-SHA256",
            Self::RsaSha1 => "RSA-SHA1",
            Self::Plaintext => "PLAINTEXT",
        }
    }
}

impl Sign {
    /// Creates an OAuth 1.0 signature with the values that most providers use.
    #[must_use]
    pub fn oauth1() -> Self {
        Self::Oauth1 {
            method: SignatureMethod::default(),
            consumer_key: consumer_key(),
            consumer_secret: consumer_secret(),
            private_key: None,
            token: oauth_token(),
            token_secret: oauth_token_secret(),
            realm: None,
        }
    }

    /// Returns every template in use, with the name of its field.
    #[must_use]
    pub fn templates(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Oauth1 {
                consumer_key,
                consumer_secret,
                token,
                token_secret,
                realm,
                ..
            } => {
                let own = [
                    ("consumer_key", consumer_key),
                    ("consumer_secret", consumer_secret),
                    ("token", token),
                    ("token_secret", token_secret),
                ];
                let realm = realm.iter().map(|realm| ("realm", realm));
                own.into_iter()
                    .chain(realm)
                    .map(|(name, template)| (name, template.as_str()))
                    .collect()
            }
            Self::AwsSigv4 {
                access_key_id,
                secret_access_key,
                session_token,
                region,
                service,
            } => {
                let own = [
                    ("access_key_id", access_key_id),
                    ("secret_access_key", secret_access_key),
                    ("region", region),
                    ("service", service),
                ];
                let session = session_token.iter().map(|token| ("session_token", token));
                own.into_iter()
                    .chain(session)
                    .map(|(name, template)| (name, template.as_str()))
                    .collect()
            }
            Self::Template { request } => {
                let values = request.iter().filter_map(|placement| match placement {
                    Placement::Header { name, value } | Placement::Query { name, value } => {
                        Some((name.as_str(), value.as_str()))
                    }
                    Placement::Basic { .. } | Placement::Path { .. } => None,
                });
                values.collect()
            }
        }
    }

    /// Returns the names of the headers that the signature writes, in lower case.
    #[must_use]
    pub fn header_names(&self) -> Vec<&str> {
        match self {
            Self::Oauth1 { .. } => vec!["authorization"],
            Self::AwsSigv4 { .. } => {
                vec![
                    "authorization",
                    "x-amz-date",
                    "x-amz-content-sha256",
                    "x-amz-security-token",
                ]
            }
            Self::Template { request } => {
                let names = request.iter().filter_map(|placement| match placement {
                    Placement::Header { name, .. } => Some(name.as_str()),
                    Placement::Query { .. } | Placement::Basic { .. } | Placement::Path { .. } => {
                        None
                    }
                });
                names.collect()
            }
        }
    }

    /// Returns the names of the query parameters that the signature writes.
    #[must_use]
    pub fn query_names(&self) -> Vec<&str> {
        let Self::Template { request } = self else {
            return Vec::new();
        };
        let names = request.iter().filter_map(|placement| match placement {
            Placement::Query { name, .. } => Some(name.as_str()),
            Placement::Header { .. } | Placement::Basic { .. } | Placement::Path { .. } => None,
        });
        names.collect()
    }
}

fn consumer_key() -> String {
    "{consumer_key}".to_owned()
}

fn consumer_secret() -> String {
    "{consumer_secret}".to_owned()
}

fn oauth_token() -> String {
    "{oauth_token}".to_owned()
}

fn oauth_token_secret() -> String {
    "{oauth_token_secret}".to_owned()
}
