//! Blobs in a bucket that speaks the S3 protocol.
//!
//! Objects hold the bytes as they were put, so that others may be given a link to one; the checksum stands in their
//! metadata. A bucket that does not answer is *unavailable* after a few seconds; nothing here waits for it to come back.

use super::{Blobs, Signed, SignedUrl, Terms, check};
use crate::Error;
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use md5::{Digest, Md5};
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum};
use object_store::path::Path;
use object_store::signer::{HeaderName, HeaderValue, Method, SignedUrlOptions, Signer};
use object_store::{Attribute, Attributes, ClientOptions, ObjectStore, ObjectStoreExt, PutOptions, RetryConfig};
use std::fmt::{Display, Formatter};
use std::time::Duration;
use thiserror::Error as ThisError;

/// How long connecting to a bucket may take, one request, and a request with those after it that try again.
const CONNECT: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(60);
const TRYING: Duration = Duration::from_secs(5);
const TRIES_MORE: usize = 2;
/// Where the checksum of an object stands: eight hexadecimal digits.
const CHECKSUM: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("crc32"));

/// The same of an object that a client put itself: its MD5, in hexadecimal.
const DIGEST: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("md5"));
const DIGEST_HEADER: &str = "x-amz-meta-md5";

/// Which bucket, where, and who asks.
#[derive(Clone)]
pub struct BucketSettings {
    /// Its name.
    pub bucket: String,
    /// What every key begins with, without a slash at either end; may be empty.
    pub prefix: String,
    /// Where the service is, when it is not Amazon's. Only an endpoint named here may be one of plain `http`.
    pub endpoint: Option<String>,
    /// The region that requests are signed for.
    pub region: String,
    /// Who asks.
    pub access_key_id: String,
    /// The key that signs. It appears in no error and no log.
    pub secret_access_key: String,
    /// Whether the bucket is told of in links, so that clients get and put blobs there themselves.
    pub presigned: bool,
    /// Of temporary credentials.
    pub session_token: Option<String>,
}

/// Why a bucket cannot be used, or not now.
#[derive(Debug, ThisError)]
pub enum BucketError {
    /// The settings do not make a client.
    #[error("the settings of {at} cannot be used: {reason}")]
    Settings {
        /// The bucket's address.
        at: String,
        /// What was found.
        reason: String,
    },
    /// The service does not let us in.
    #[error(
        "{at} refuses the credentials; check the access key, its secret and its rights to list, read, write and delete"
    )]
    Refused {
        /// The bucket's address.
        at: String,
    },
    /// There is no such bucket.
    #[error("{at} does not exist; make the bucket, or correct its name, endpoint and region")]
    Missing {
        /// The bucket's address.
        at: String,
    },
    /// The service does not answer.
    #[error("{at} does not answer: {reason}")]
    Away {
        /// The bucket's address.
        at: String,
        /// What was found.
        reason: String,
    },
}

/// Blobs as objects of a bucket.
pub struct Bucket {
    store: AmazonS3,
    prefix: Path,
    /// For messages: `s3://bucket/prefix at endpoint`.
    at: String,
    presigned: bool,
}

impl Bucket {
    /// Prepares a client; nothing is asked yet.
    ///
    /// # Errors
    /// [`BucketError::Settings`].
    pub fn new(settings: BucketSettings) -> Result<Bucket, BucketError> {
        let BucketSettings {
            bucket,
            prefix,
            endpoint,
            region,
            access_key_id,
            secret_access_key,
            session_token,
            presigned,
        } = settings;
        let place = endpoint.as_deref().map_or_else(|| region.clone(), str::to_owned);
        let at = format!("the bucket s3://{bucket}/{prefix} at {place}");
        let plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let client = ClientOptions::new().with_connect_timeout(CONNECT).with_timeout(REQUEST).with_allow_http(plain);
        let retry = RetryConfig { max_retries: TRIES_MORE, retry_timeout: TRYING, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(region)
            .with_access_key_id(access_key_id)
            .with_secret_access_key(secret_access_key)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_client_options(client)
            .with_retry(retry);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(token) = session_token {
            builder = builder.with_token(token);
        }
        let bad = |reason: &dyn Display| BucketError::Settings { at: at.clone(), reason: reason.to_string() };
        let prefix = Path::parse(&prefix).map_err(|cause| bad(&cause))?;
        let store = builder.build().map_err(|cause| bad(&cause))?;
        Ok(Bucket { store, prefix, at, presigned })
    }

    /// Asks whether the bucket is there and lets us in.
    ///
    /// # Errors
    /// When it is not, does not, or does not answer.
    pub async fn probe(&self) -> Result<(), BucketError> {
        let Some(Err(error)) = self.store.list(Some(&self.prefix)).next().await else { return Ok(()) };
        // The error of a list does not tell why, that of an object does.
        let at = self.at.clone();
        Err(match self.store.get(&self.prefix.clone().join("probe")).await {
            Err(cause) if refuses(&cause) => BucketError::Refused { at },
            Err(object_store::Error::NotFound { .. }) => BucketError::Missing { at },
            _ => BucketError::Away { at, reason: error.to_string() },
        })
    }

    /// Tries everything the server will do, with an object of its own that is gone again after.
    ///
    /// # Errors
    /// As [`Bucket::probe`], or when the bucket does not answer with what was put.
    pub async fn try_out(&self) -> Result<(), BucketError> {
        self.probe().await?;
        let key = "doctor";
        let away = |reason: String| BucketError::Away { at: self.at.clone(), reason };
        let tried = async {
            self.put(key, Bytes::from_static(b"is this kept?")).await?;
            let read = self.get(key).await?;
            self.remove(key).await?;
            Ok::<_, Error>(read)
        };
        match tried.await {
            Ok(Some(read)) if *read == *b"is this kept?" => Ok(()),
            Ok(_) => Err(away("an object that was put cannot be read".to_owned())),
            Err(error) => Err(away(error.to_string())),
        }
    }

    fn path(&self, key: &str) -> Result<Path, Error> {
        check(key)?;
        Ok(self.prefix.clone().join(key))
    }

    /// What an answer of the bucket means to whoever asked for a blob. The whole story is for the log: callers need not
    /// know where the bucket is.
    fn trouble(&self, key: &str, error: &object_store::Error) -> Error {
        tracing::warn!(at = self.at, key, %error, "the bucket cannot be used");
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

fn refuses(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. })
}

#[async_trait]
impl Blobs for Bucket {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        let path = self.path(key)?;
        let attributes = Attributes::from_iter([(CHECKSUM, checksum(&bytes))]);
        let options = PutOptions { attributes, ..PutOptions::default() };
        let put = self.store.put_opts(&path, bytes.into(), options).await;
        put.map(drop).map_err(|error| self.trouble(key, &error))
    }

    async fn get(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let found = match self.store.get(&self.path(key)?).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| self.trouble(key, &error))?,
        };
        let of_client = found.attributes.get(&DIGEST).map(|value| value.to_string());
        let expected = found.attributes.get(&CHECKSUM).map(|value| value.to_string());
        let bytes = found.bytes().await.map_err(|error| self.trouble(key, &error))?;
        let damaged = |reason: &str| Error::Damaged { what: format!("blob {key}"), reason: reason.into() };
        match expected {
            Some(expected) if expected == checksum(&bytes) => Ok(Some(bytes)),
            Some(_) => Err(damaged("its checksum does not fit")),
            None if of_client.is_some_and(|md5| md5 == hex::encode(Md5::digest(&bytes))) => Ok(Some(bytes)),
            None => Err(damaged("its object has no checksum in its metadata, or another one")),
        }
    }

    async fn remove(&self, key: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.trouble(key, &error)),
        }
    }

    async fn signed(&self, key: &str, way: Signed, terms: Terms<'_>) -> Result<Option<SignedUrl>, Error> {
        if !self.presigned {
            return Ok(None);
        }
        let Terms { md5, media_type, disposition, lasts } = terms;
        let path = self.path(key)?;
        let (method, shown, headers) = match way {
            // A bucket knows neither name nor type of what it holds, and a page in it must not be opened as one.
            Signed::Get => {
                let shown = [("response-content-type", media_type), ("response-content-disposition", disposition)];
                (Method::GET, shown.to_vec(), Vec::new())
            }
            Signed::Put => {
                let encoded = BASE64.encode(hex::decode(md5).map_err(|_| Error::Key(md5.to_owned()))?);
                let bound = [
                    ("content-md5", encoded),
                    ("content-type", media_type.to_owned()),
                    (DIGEST_HEADER, md5.to_owned()),
                ];
                (Method::PUT, Vec::new(), bound.map(|(name, value)| (name.to_owned(), value)).into())
            }
        };
        let options = SignedUrlOptions::new().with_query(shown);
        let options = headers.iter().try_fold(options, |options, (name, value)| {
            let value = HeaderValue::from_str(value).ok()?;
            Some(options.with_signed_header(HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        let options = options.ok_or_else(|| Error::Key(media_type.to_owned()))?;
        let url = self.store.signed_url_opts(method, &path, lasts, &options).await;
        let url = url.map_err(|error| self.trouble(key, &error))?.into();
        Ok(Some(SignedUrl { url, headers }))
    }

    async fn keys(&self) -> Result<Vec<String>, Error> {
        let listed = self.store.list(Some(&self.prefix)).map_ok(|object| {
            let mut parts = object.location.prefix_match(&self.prefix)?;
            let key = parts.next()?.as_ref().to_owned();
            parts.next().is_none().then_some(key)
        });
        let listed: Vec<_> = listed.try_collect().await.map_err(|error| self.trouble("", &error))?;
        let mut keys: Vec<_> = listed.into_iter().flatten().collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}
