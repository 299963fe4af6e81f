//! Components in OCI registries, in the layout that WebAssembly tools share: one manifest, one
//! configuration, one layer.
//!
//! A registry is not trusted: the bytes that it returns match the requested digest, or the pull
//! fails. The signature is stored as an annotation of the manifest, because every registry keeps a
//! manifest byte for byte, but not every registry lists referrers. This crate only transports the
//! signature. Other code verifies it.

mod access;
mod artifact;

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, NaiveDate, Utc};
use futures::TryStreamExt;
use oci_client::{
    Client, Reference,
    annotations::{
        ORG_OPENCONTAINERS_IMAGE_DESCRIPTION, ORG_OPENCONTAINERS_IMAGE_TITLE,
        ORG_OPENCONTAINERS_IMAGE_VERSION,
    },
    client::{ClientConfig, ClientProtocol},
    errors::{OciDistributionError, OciErrorCode},
    manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest},
    secrets::RegistryAuth,
};

pub use access::Access;
use artifact::{CONFIG_MEDIA_TYPE, LAYER_MEDIA_TYPE};

/// Annotation of the manifest with the minisign signature of the component, with the exact text of
/// its file.
pub const SIGNATURE_ANNOTATION: &str = "toolhost.toolkit.minisign";
/// Maximum size of a component, in bytes. It is the limit of a server.
pub const MAX_COMPONENT_BYTES: usize = 24 << 20;
/// Optional prefix of a reference.
pub const OCI_SCHEME: &str = "oci://";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without a byte from the registry.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time of a whole push or pull.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of tags named in an error.
const MAX_LISTED_TAGS: usize = 20;

/// One location in one registry.
pub struct RegistryReference {
    client: Client,
    auth: RegistryAuth,
    reference: Reference,
    /// True if the reference names a tag.
    tagged: bool,
}

/// The description of a component for its manifest.
#[derive(Debug, Clone)]
pub struct ComponentInfo {
    /// Slug of the toolkit.
    pub slug: String,
    /// Description for users.
    pub description: String,
    /// Dated version, `YYYYMMDD_NN`. It is the tag if the reference lacks one.
    pub version: String,
}

/// The result of a push.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// Reference with tag and digest.
    pub reference: String,
    /// Digest of the manifest, `sha256:…`.
    pub digest: String,
}

/// The result of a pull.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Reference with its digest.
    pub reference: String,
    /// Digest of the manifest.
    pub digest: String,
    /// Bytes of the component.
    pub component: Bytes,
    /// Signature of the component, if it has one. It is not verified yet.
    pub signature: Option<String>,
}

impl RegistryReference {
    /// Prepares the access to `[oci://]HOST[:PORT]/PATH[:TAG][@DIGEST]`. Sends nothing.
    ///
    /// # Errors
    /// An error if the reference cannot be read or names no registry, or when stored credentials cannot be
    /// used.
    pub fn new(reference: &str, access: &Access) -> Result<Self> {
        let text = reference.strip_prefix(OCI_SCHEME).unwrap_or(reference);
        let form = "write HOST[:PORT]/PATH[:TAG][@sha256:…]";
        let (host, _) = text
            .split_once('/')
            .with_context(|| format!("`{text}` names no registry; {form}"))?;
        ensure!(
            host.contains(['.', ':']) || host == "localhost",
            "`{text}` names no registry; {form}"
        );
        let parsed: Reference = text
            .parse()
            .map_err(|cause| anyhow::anyhow!("`{text}` is not a reference ({cause}); {form}"))?;
        let tagged = text
            .split('@')
            .next()
            .and_then(|name| name.rsplit('/').next())
            .is_some_and(|n| n.contains(':'));
        let protocol = if access.plain(parsed.registry()) {
            ClientProtocol::Http
        } else {
            ClientProtocol::Https
        };
        let client = Client::try_from(ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_TIMEOUT),
            read_timeout: Some(READ_TIMEOUT),
            user_agent: concat!("toolhost/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        })
        .context("cannot set up TLS")?;
        Ok(Self {
            client,
            auth: access.credentials(parsed.registry())?,
            reference: parsed,
            tagged,
        })
    }

    /// Pushes a component. The same bytes, description and signature result in the same digest.
    ///
    /// # Errors
    /// An error if the reference has a digest, which only the result can have, or when the registry
    /// refuses.
    pub async fn push(
        &self,
        component: Vec<u8>,
        about: &ComponentInfo,
        signature: Option<&str>,
    ) -> Result<Pushed> {
        ensure!(
            self.reference.digest().is_none(),
            "{} has a digest; push to a tag",
            self.reference
        );
        ensure!(
            component.len() <= MAX_COMPONENT_BYTES,
            "the component is larger than {} MiB",
            MAX_COMPONENT_BYTES >> 20
        );
        let tag = if self.tagged {
            self.reference.tag().unwrap_or_default()
        } else {
            &about.version
        };
        let to = Reference::with_tag(
            self.reference.registry().into(),
            self.reference.repository().into(),
            tag.into(),
        );
        let sending = async {
            self.client
                .store_auth_if_needed(to.resolve_registry(), &self.auth)
                .await;
            let file_name = format!("{}.wasm", about.slug);
            let (config, layer) = artifact::describe(component, file_name, day(&about.version))?;
            let layers = [layer];
            let mut manifest =
                OciImageManifest::build(&layers, &config, Some(annotations(about, signature)));
            manifest.media_type = Some(OCI_IMAGE_MEDIA_TYPE.into());
            let [layer] = layers;
            let body = serde_json::to_vec(&manifest)?;
            let digest = oci_client::client::ImageLayer::new(body.clone(), String::new(), None)
                .sha256_digest();
            let told = |cause| self.explain(cause, "push to");
            for (data, digest) in [
                (layer.data.clone(), layer.sha256_digest()),
                (config.data.clone(), config.sha256_digest()),
            ] {
                let pushed = self.client.push_blob(&to, data, &digest).await;
                pushed.map_err(told)?;
            }
            let kind = OCI_IMAGE_MEDIA_TYPE
                .parse()
                .context("a media type is a header value")?;
            self.client
                .push_manifest_raw(&to, body, kind)
                .await
                .map_err(told)?;
            Ok(Pushed {
                reference: format!("{to}@{digest}"),
                digest,
            })
        };
        within(sending, &to).await
    }

    /// Pulls the component. If the reference has a tag and a digest, the tag must point to the
    /// digest.
    ///
    /// # Errors
    /// An error if the component does not exist, is not a component, is too large, or has other bytes than
    /// its digest.
    pub async fn pull(&self) -> Result<Pulled> {
        within(self.fetch(), &self.reference).await
    }

    async fn fetch(&self) -> Result<Pulled> {
        let wanted = self.reference.digest();
        let at = &self.reference;
        let registry = at.registry().to_owned();
        let repository = at.repository().to_owned();
        let asked = match at.tag().filter(|_| self.tagged) {
            Some(tag) => Reference::with_tag(registry.clone(), repository.clone(), tag.into()),
            None => at.clone(),
        };
        let (body, digest) = match self
            .client
            .pull_manifest_raw(&asked, &self.auth, &[OCI_IMAGE_MEDIA_TYPE])
            .await
        {
            Ok(found) => found,
            Err(cause) => return Err(self.missing(cause).await),
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
            bail!(
                "{asked} now has the digest {digest}, not {wanted}: the tag was moved; name the digest alone, or the new digest"
            );
        }
        let manifest: OciImageManifest = serde_json::from_slice(&body)
            .with_context(|| format!("the manifest of {asked} cannot be read"))?;
        let layer = only_layer(&manifest)
            .with_context(|| format!("{asked} is not a WebAssembly component"))?;
        let pinned = Reference::with_digest(registry, repository, digest.clone());
        let component = self.blob(&pinned, &layer).await?;
        let signature = manifest
            .annotations
            .and_then(|mut all| all.remove(SIGNATURE_ANNOTATION));
        Ok(Pulled {
            reference: pinned.whole(),
            digest,
            component,
            signature,
        })
    }

    async fn blob(&self, at: &Reference, layer: &OciDescriptor) -> Result<Bytes> {
        let failed = || format!("cannot pull {} of {at}", layer.digest);
        let mut stream = self
            .client
            .pull_blob_stream(at, layer)
            .await
            .with_context(failed)?;
        let mut bytes = BytesMut::new();
        // The stream ends with an error if the bytes do not match the digest.
        while let Some(chunk) = stream.try_next().await.with_context(failed)? {
            bytes.extend_from_slice(&chunk);
            ensure!(
                bytes.len() <= MAX_COMPONENT_BYTES,
                "{at} is larger than {} MiB",
                MAX_COMPONENT_BYTES >> 20
            );
        }
        Ok(bytes.freeze())
    }

    /// Converts a failed pull to an error that names the existing tags.
    async fn missing(&self, cause: OciDistributionError) -> anyhow::Error {
        let is_unknown = match &cause {
            OciDistributionError::ImageManifestNotFoundError(_) => true,
            OciDistributionError::RegistryError { envelope, .. } => envelope
                .errors
                .iter()
                .any(|error| error.code == OciErrorCode::ManifestUnknown),
            _ => false,
        };
        if !is_unknown {
            return self.explain(cause, "pull");
        }
        let tags = self
            .client
            .list_tags(&self.reference, &self.auth, Some(MAX_LISTED_TAGS), None)
            .await;
        let there = tags.map(|found| found.tags).unwrap_or_default();
        let hint = if there.is_empty() {
            String::new()
        } else {
            format!("; its tags are {}", there.join(", "))
        };
        anyhow::anyhow!("{} does not exist{hint}", self.reference)
    }

    fn explain(&self, cause: OciDistributionError, what: &str) -> anyhow::Error {
        let hint = match &cause {
            OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_)
            | OciDistributionError::ServerError {
                code: 401 | 403, ..
            } => "; log in with `docker login`, or give --username and --password",
            OciDistributionError::RequestError(cause) if cause.is_connect() => {
                "; check the address; a registry without TLS needs --plain-http"
            }
            _ => "",
        };
        let message = format!("cannot {what} {}{hint}", self.reference);
        anyhow::Error::new(cause).context(message)
    }
}

async fn within<T>(work: impl Future<Output = Result<T>>, at: &Reference) -> Result<T> {
    let done = tokio::time::timeout(TOTAL_TIMEOUT, work).await;
    done.unwrap_or_else(|_| {
        bail!(
            "{} did not finish in {} s",
            at.registry(),
            TOTAL_TIMEOUT.as_secs()
        )
    })
}

/// Returns the component's layer, without the alternative addresses that a manifest may give for
/// it.
fn only_layer(manifest: &OciImageManifest) -> Result<OciDescriptor> {
    let kind = &manifest.config.media_type;
    ensure!(
        kind == CONFIG_MEDIA_TYPE,
        "the configuration has type {kind}"
    );
    let [layer] = manifest.layers.as_slice() else {
        bail!(
            "the artifact has {} layers instead of one",
            manifest.layers.len()
        )
    };
    ensure!(
        layer.media_type == LAYER_MEDIA_TYPE,
        "the layer has type {}",
        layer.media_type
    );
    let fits = usize::try_from(layer.size).is_ok_and(|size| size <= MAX_COMPONENT_BYTES);
    ensure!(
        fits,
        "the layer has {} bytes; at most {} MiB are supported",
        layer.size,
        MAX_COMPONENT_BYTES >> 20
    );
    Ok(OciDescriptor {
        urls: None,
        ..layer.clone()
    })
}

fn annotations(about: &ComponentInfo, signature: Option<&str>) -> BTreeMap<String, String> {
    let pairs = [
        (ORG_OPENCONTAINERS_IMAGE_TITLE, about.slug.as_str()),
        (
            ORG_OPENCONTAINERS_IMAGE_DESCRIPTION,
            about.description.as_str(),
        ),
        (ORG_OPENCONTAINERS_IMAGE_VERSION, about.version.as_str()),
    ];
    let signature = signature.map(|text| (SIGNATURE_ANNOTATION, text));
    pairs
        .into_iter()
        .chain(signature)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Returns the day of a dated version as the creation time, so that a repeated push creates nothing
/// new.
fn day(version: &str) -> DateTime<Utc> {
    let date = version
        .get(..8)
        .and_then(|date| NaiveDate::parse_from_str(date, "%Y%m%d").ok());
    date.and_then(|date| date.and_hms_opt(0, 0, 0))
        .map(|time| time.and_utc())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(reference: &str) -> Result<RegistryReference> {
        RegistryReference::new(reference, &Access::default())
    }

    #[test]
    fn a_reference_names_its_registry() {
        for good in [
            "oci://localhost:5000/a",
            "localhost:5000/a:b",
            "registry.example/a/b:20260101_00",
            "localhost/a",
        ] {
            place(good).unwrap_or_else(|cause| panic!("{good}: {cause:#}"));
        }
        for bad in [
            "hello",
            "team/hello:1",
            "localhost:5000/UPPER",
            "localhost:5000/a@sha256:12",
            "",
        ] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_tag_is_told_from_a_port() {
        assert!(!place("localhost:5000/a").unwrap().tagged);
        assert!(place("localhost:5000/a:b").unwrap().tagged);
        let digest = format!("sha256:{}", "0".repeat(64));
        assert!(!place(&format!("localhost:5000/a@{digest}")).unwrap().tagged);
        assert!(
            place(&format!("localhost:5000/a:b@{digest}"))
                .unwrap()
                .tagged
        );
    }

    #[test]
    fn layer_is_fetched_only_from_the_registry() {
        let layer = |media_type: &str, size| OciDescriptor {
            media_type: media_type.into(),
            digest: "sha256:00".into(),
            size,
            urls: Some(vec!["http://169.254.169.254/".into()]),
            ..OciDescriptor::default()
        };
        let manifest = |layers: Vec<OciDescriptor>| OciImageManifest {
            config: layer(CONFIG_MEDIA_TYPE, 2),
            layers,
            ..OciImageManifest::default()
        };
        let wasm = || layer(LAYER_MEDIA_TYPE, 8);
        assert_eq!(only_layer(&manifest(vec![wasm()])).unwrap().urls, None);
        for bad in [
            vec![],
            vec![wasm(), wasm()],
            vec![layer("text/plain", 8)],
            vec![layer(LAYER_MEDIA_TYPE, 1 << 30)],
        ] {
            only_layer(&manifest(bad)).unwrap_err();
        }
    }

    #[test]
    fn version_day_is_the_creation_time() {
        assert_eq!(day("20260102_00").to_rfc3339(), "2026-01-02T00:00:00+00:00");
        assert_eq!(day("soon"), DateTime::<Utc>::default());
    }
}
