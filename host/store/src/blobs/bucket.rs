//! Blobs in a bucket of an S3-compatible service.
//!
//! An object holds the bytes exactly as they were put, so that a client can read it through a
//! signed link. The checksum is in the object's metadata. If the bucket does not answer, calls fail
//! as *unavailable* after a few seconds; nothing here waits for it to return.

use super::{Blobs, SignedOperation, SignedUrl, SignedUrlTerms, TOO_LARGE, check};
use crate::Error;
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use md5::{Digest, Md5};
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path;
use object_store::signer::{HeaderName, HeaderValue, Method, SignedUrlOptions, Signer};
use object_store::{
    Attribute, Attributes, ClientOptions, ObjectStore, ObjectStoreExt, PutOptions, RetryConfig,
};
use std::fmt::{Display, Formatter};
use std::time::Duration;
use thiserror::Error as ThisError;

/// Maximum time to connect to the bucket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Time since the first attempt of a request after which no retry is started.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of retries of a request.
const MAX_RETRIES: usize = 2;
/// Metadata entry for the CRC-32 of an object, eight hexadecimal digits.
const CRC32_ATTRIBUTE: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("crc32"));

/// Metadata entry for the MD5 of an object that a client put itself, in hexadecimal.
const MD5_ATTRIBUTE: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("md5"));
/// Header that sets [`MD5_ATTRIBUTE`] in an upload.
const MD5_HEADER: &str = "x-amz-meta-md5";

/// Address and credentials of a bucket.
#[derive(Clone)]
pub struct BucketSettings {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of every key, without a slash at either end. It may be empty.
    pub prefix: String,
    /// Endpoint of the service, if it is not Amazon's. Plain `http` is allowed only for an endpoint
    /// named here.
    pub endpoint: Option<String>,
    /// Region that requests are signed for.
    pub region: String,
    /// Access key id of the server's credentials.
    pub access_key_id: String,
    /// Secret key that signs requests. It appears in no error and no log.
    pub secret_access_key: String,
    /// True if clients get signed links to the bucket, to read and write blobs there themselves.
    pub presigned: bool,
    /// Session token of temporary credentials.
    pub session_token: Option<String>,
}

/// Reason why a bucket cannot be used at all, or cannot be used now.
#[derive(Debug, ThisError)]
pub enum BucketError {
    /// The settings are not valid for a client.
    #[error("the settings of {at} cannot be used: {reason}")]
    Settings {
        /// The bucket's address.
        at: String,
        /// Problem that was found.
        reason: String,
    },
    /// The service refuses the credentials.
    #[error(
        "{at} refuses the credentials; check the access key, its secret and its rights to list, read, write and delete"
    )]
    Refused {
        /// The bucket's address.
        at: String,
    },
    /// The bucket does not exist.
    #[error("{at} does not exist; create the bucket, or correct its name, endpoint and region")]
    Missing {
        /// The bucket's address.
        at: String,
    },
    /// The service does not answer.
    #[error("{at} does not answer: {reason}")]
    Unreachable {
        /// The bucket's address.
        at: String,
        /// Problem that was found.
        reason: String,
    },
}

/// Blobs as objects of a bucket.
pub struct Bucket {
    store: AmazonS3,
    prefix: Path,
    /// Description for messages: `s3://bucket/prefix at endpoint`.
    at: String,
    presigned: bool,
}

impl Bucket {
    /// Prepares a client. Sends no request.
    ///
    /// # Errors
    /// [`BucketError::Settings`].
    pub fn new(settings: BucketSettings) -> Result<Bucket, BucketError> {
        let prefix = &settings.prefix;
        let place = settings.endpoint.as_ref().unwrap_or(&settings.region);
        let at = format!("the bucket s3://{}/{prefix} at {place}", settings.bucket);
        let endpoint = settings.endpoint.as_deref().unwrap_or_default();
        let plain = endpoint.starts_with("http://");
        let client = ClientOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT)
            .with_allow_http(plain);
        let retry = RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(settings.bucket)
            .with_region(settings.region)
            .with_access_key_id(settings.access_key_id)
            .with_secret_access_key(settings.secret_access_key)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_client_options(client)
            .with_retry(retry);
        if let Some(endpoint) = settings.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(token) = settings.session_token {
            builder = builder.with_token(token);
        }
        let prefix = Path::parse(&settings.prefix).map_err(|cause| invalid_settings(&at, cause))?;
        let store = builder
            .build()
            .map_err(|cause| invalid_settings(&at, cause))?;
        Ok(Bucket {
            store,
            prefix,
            at,
            presigned: settings.presigned,
        })
    }

    /// Checks that the bucket exists and accepts the credentials.
    ///
    /// # Errors
    /// An error if the bucket does not exist, refuses the credentials or does not answer.
    pub async fn probe(&self) -> Result<(), BucketError> {
        let Some(Err(error)) = self.store.list(Some(&self.prefix)).next().await else {
            return Ok(());
        };
        // The error of a list request does not tell the reason. The error of a read does.
        let at = self.at.clone();
        Err(
            match self.store.get(&self.prefix.clone().join("probe")).await {
                Err(cause) if refuses(&cause) => BucketError::Refused { at },
                Err(object_store::Error::NotFound { .. }) => BucketError::Missing { at },
                _ => self.unreachable(error),
            },
        )
    }

    /// Tests every operation that the server uses, with a temporary object.
    ///
    /// # Errors
    /// As [`Bucket::probe`], or when the bucket does not return the bytes that were put.
    pub async fn check_operations(&self) -> Result<(), BucketError> {
        self.probe().await?;
        // Two checks at a time use different objects.
        let number = getrandom::u64().map_err(|cause| self.unreachable(cause))?;
        let key = format!("doctor-{number:016x}");
        let tried = async {
            self.put(&key, Bytes::from_static(b"is this kept?")).await?;
            let read = self.get(&key).await?;
            self.remove(&key).await?;
            Ok::<_, Error>(read)
        };
        match tried.await {
            Ok(Some(read)) if *read == *b"is this kept?" => Ok(()),
            Ok(_) => Err(self.unreachable("an object that was put cannot be read")),
            Err(error) => Err(self.unreachable(error)),
        }
    }

    fn unreachable(&self, reason: impl Display) -> BucketError {
        BucketError::Unreachable {
            at: self.at.clone(),
            reason: reason.to_string(),
        }
    }

    fn path(&self, key: &str) -> Result<Path, Error> {
        check(key)?;
        Ok(self.prefix.clone().join(key))
    }

    /// Converts an error of the bucket to an error for the caller. The full error goes to the log
    /// only: callers must not learn the bucket's address.
    fn to_error(&self, key: &str, error: &object_store::Error) -> Error {
        tracing::warn!(at = self.at, key, %error, "request to the bucket failed");
        Error::Unavailable(match refuses(error) {
            true => "the bucket of blobs refuses the server's credentials".to_owned(),
            false => "the bucket of blobs does not answer".to_owned(),
        })
    }
}

impl Display for Bucket {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.at)
    }
}

fn invalid_settings(at: &str, cause: impl Display) -> BucketError {
    BucketError::Settings {
        at: at.to_owned(),
        reason: cause.to_string(),
    }
}

fn damaged(key: &str, reason: &str) -> Error {
    Error::Damaged {
        what: format!("blob {key}"),
        reason: reason.to_owned(),
    }
}

fn refuses(error: &object_store::Error) -> bool {
    matches!(
        error,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. }
    )
}

#[async_trait]
impl Blobs for Bucket {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        let path = self.path(key)?;
        let attributes = Attributes::from_iter([(CRC32_ATTRIBUTE, checksum(&bytes))]);
        let options = PutOptions {
            attributes,
            ..PutOptions::default()
        };
        let put = self.store.put_opts(&path, bytes.into(), options).await;
        put.map(drop).map_err(|error| self.to_error(key, &error))
    }

    async fn get_at_most(&self, key: &str, max_bytes: u64) -> Result<Option<Bytes>, Error> {
        let found = match self.store.get(&self.path(key)?).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| self.to_error(key, &error))?,
        };
        // Until here only the head of the response has been read.
        if found.meta.size > max_bytes {
            return Err(damaged(key, TOO_LARGE));
        }
        let client_md5 = found
            .attributes
            .get(&MD5_ATTRIBUTE)
            .map(|value| value.to_string());
        let expected = found
            .attributes
            .get(&CRC32_ATTRIBUTE)
            .map(|value| value.to_string());
        let bytes = found
            .bytes()
            .await
            .map_err(|error| self.to_error(key, &error))?;
        match expected {
            Some(expected) if expected == checksum(&bytes) => Ok(Some(bytes)),
            Some(_) => Err(damaged(key, "its checksum does not match")),
            None if client_md5.is_some_and(|md5| md5 == hex::encode(Md5::digest(&bytes))) => {
                Ok(Some(bytes))
            }
            None => Err(damaged(
                key,
                "its object has no checksum in its metadata, or a different one",
            )),
        }
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match self.store.head(&self.path(key)?).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.to_error(key, &error)),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.to_error(key, &error)),
        }
    }

    async fn signed(
        &self,
        key: &str,
        operation: SignedOperation,
        terms: SignedUrlTerms<'_>,
    ) -> Result<Option<SignedUrl>, Error> {
        if !self.presigned {
            return Ok(None);
        }
        let SignedUrlTerms { md5, .. } = terms;
        let path = self.path(key)?;
        let (method, shown, headers) = match operation {
            // A bucket knows neither name nor type of its objects, and a browser must not open one
            // as a page.
            SignedOperation::Get => {
                let shown = [
                    ("response-content-type", terms.media_type),
                    ("response-content-disposition", terms.disposition),
                ];
                (Method::GET, shown.to_vec(), Vec::new())
            }
            SignedOperation::Put => {
                let encoded =
                    BASE64.encode(hex::decode(md5).map_err(|_| Error::Key(md5.to_owned()))?);
                let bound = [
                    ("content-md5", encoded),
                    ("content-type", terms.media_type.to_owned()),
                    (MD5_HEADER, md5.to_owned()),
                ];
                (
                    Method::PUT,
                    Vec::new(),
                    bound.map(|(name, value)| (name.to_owned(), value)).into(),
                )
            }
        };
        let with_query = SignedUrlOptions::new().with_query(shown);
        let options = headers
            .iter()
            .try_fold(with_query, |options, (name, value)| {
                let value = HeaderValue::from_str(value).ok()?;
                Some(
                    options
                        .with_signed_header(HeaderName::from_bytes(name.as_bytes()).ok()?, value),
                )
            })
            .ok_or_else(|| Error::Key(terms.media_type.to_owned()))?;
        let url = self
            .store
            .signed_url_opts(method, &path, terms.ttl, &options)
            .await
            .map_err(|error| self.to_error(key, &error))?
            .into();
        Ok(Some(SignedUrl { url, headers }))
    }

    async fn keys(&self) -> Result<Vec<String>, Error> {
        let objects = self.store.list(Some(&self.prefix)).map_ok(|object| {
            let mut parts = object.location.prefix_match(&self.prefix)?;
            let key = parts.next()?.as_ref().to_owned();
            parts.next().is_none().then_some(key)
        });
        let listed: Vec<_> = objects
            .try_collect()
            .await
            .map_err(|error| self.to_error("", &error))?;
        let mut keys: Vec<_> = listed.into_iter().flatten().collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}
