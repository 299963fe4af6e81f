//! `s3.*`: the service that has the bucket.

use anyhow::{Result, ensure};
use store::BucketSettings;
use url::Url;

use super::{Config, setting::settings, values::Secret};

/// Settings that are also read from the names that other programs use in the environment.
pub(super) const AWS_VARIABLES: [(&str, &str); 6] = [
    ("s3.endpoint", "AWS_ENDPOINT_URL"),
    ("s3.region", "AWS_REGION"),
    ("s3.region", "AWS_DEFAULT_REGION"),
    ("s3.access_key_id", "AWS_ACCESS_KEY_ID"),
    ("s3.secret_access_key", "AWS_SECRET_ACCESS_KEY"),
    ("s3.session_token", "AWS_SESSION_TOKEN"),
];

settings! {
    /// The service that has the bucket of `blobs`. Keys that are not set here are read from the
    /// environment names that other programs use, too.
    pub struct S3 {
        /// The service, if it is not Amazon's. Only a named one may use plain `http`.
        #[setting(unset = "value of `AWS_ENDPOINT_URL`", example = "https://s3.example.com")]
        pub endpoint: Option<Url>,
        /// Region. If it is not set, `AWS_REGION` and `AWS_DEFAULT_REGION` are read.
        pub region: String = "us-east-1".into(),
        /// Access key id of the bucket.
        #[setting(unset = "value of `AWS_ACCESS_KEY_ID`", example = "AKIAEXAMPLE")]
        pub access_key_id: Option<String>,
        /// Secret of the access key.
        #[setting(unset = "value of `AWS_SECRET_ACCESS_KEY`", example = "secret")]
        pub secret_access_key: Option<Secret>,
        /// Token of a temporary access key.
        #[setting(unset = "value of `AWS_SESSION_TOKEN`", example = "token")]
        pub session_token: Option<Secret>,
        /// Clients download files from the bucket itself, and upload them to it, by presigned
        /// links; they must reach its endpoint, and send with an upload the headers that the
        /// response lists. Otherwise files pass through this server.
        pub presigned: bool = false,
    }
}

impl Config {
    /// Returns the bucket of the blobs; `None` if they are in the data directory.
    ///
    /// # Errors
    /// If the address is not a bucket, or a required setting is missing.
    pub fn bucket(&self) -> Result<Option<BucketSettings>> {
        let Some(address) = &self.blobs else {
            return Ok(None);
        };
        let place = address
            .strip_prefix("s3://")
            .unwrap_or_default()
            .trim_end_matches('/');
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        ensure!(
            !bucket.is_empty(),
            "`blobs` is `{address}`: it must be `s3://bucket` or `s3://bucket/prefix`"
        );
        let s3 = &self.s3;
        let (Some(access_key_id), Some(secret)) = (&s3.access_key_id, &s3.secret_access_key) else {
            anyhow::bail!(
                "`blobs` is {address}, and no key to it is set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        };
        if let Some(endpoint) = &s3.endpoint {
            ensure!(
                matches!(endpoint.scheme(), "http" | "https"),
                "`s3.endpoint` is not an http address: it must begin with `https://` or `http://`"
            );
        }
        let endpoint = s3.endpoint.as_ref().map(Url::as_str);
        Ok(Some(BucketSettings {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            endpoint: endpoint.map(|endpoint| endpoint.trim_end_matches('/').to_owned()),
            region: s3.region.clone(),
            access_key_id: access_key_id.clone(),
            secret_access_key: secret.expose().to_string(),
            session_token: s3
                .session_token
                .as_ref()
                .map(|token| token.expose().to_string()),
            presigned: s3.presigned,
        }))
    }
}
