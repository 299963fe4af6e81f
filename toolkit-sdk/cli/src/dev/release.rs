//! Versions of a toolkit in development: each good build that differs from the previous one gets
//! the next version.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use manifest::{Manifest, Version};
use reqwest::Method;
use sandbox::Digest;

use super::Api;
use crate::{
    build::Built,
    publish::{self, Published},
};

/// Served version of each toolkit.
pub(crate) struct Releases<'d> {
    api: &'d Api,
    served: HashMap<String, Served>,
}

/// A served toolkit.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) manifest: Manifest,
    /// Digest of the component, independent of its version.
    content: Digest,
    /// Size of the component in bytes.
    pub(crate) size: u64,
    /// True if this build published it.
    pub(crate) new: bool,
}

impl<'d> Releases<'d> {
    pub(crate) fn new(api: &'d Api) -> Self {
        Self {
            api,
            served: HashMap::new(),
        }
    }

    /// Publishes a build, unless it is already served.
    pub(crate) async fn serve(&mut self, built: &Built) -> Result<Served> {
        let bytes = std::fs::read(&built.file)
            .with_context(|| format!("cannot read {}", built.file.display()))?;
        let code = publish::code_of(&bytes, &built.manifest)?;
        let mut manifest = built.manifest.clone();
        let content = Digest::compute(&manifest::embed(code.to_vec(), &manifest));
        let last = self.served.get(&manifest.slug);
        if let Some(last) = last.filter(|last| last.content == content) {
            return Ok(Served {
                new: false,
                ..last.clone()
            });
        }
        let last_version = match last {
            Some(last) => Some(last.manifest.version.clone()),
            None => self.newest(&manifest.slug).await?,
        };
        if let Some(next) = last_version
            .as_ref()
            .map(publish::next_version)
            .transpose()?
        {
            manifest.version = next.max(manifest.version);
        }
        self.publish(code, &mut manifest).await?;
        let served = Served {
            manifest,
            content,
            size: built.size,
            new: true,
        };
        self.served
            .insert(served.manifest.slug.clone(), served.clone());
        Ok(served)
    }

    /// Publishes under the manifest's version, or under a later one if that one is taken.
    async fn publish(&self, code: &[u8], manifest: &mut Manifest) -> Result<()> {
        // Compatibility is not checked between two saves of a toolkit in development.
        let publisher = self.api.publisher();
        let published = publisher.publish_next(code, manifest, true);
        let Published { status, answer, .. } = published.await?;
        if status >= 300 {
            bail!(
                "{} was not published: {}",
                manifest.slug,
                publish::org_refusal(status, &answer)
            );
        }
        Ok(())
    }

    /// Returns the newest version on the server.
    async fn newest(&self, slug: &str) -> Result<Option<Version>> {
        let Some(toolkit) = self
            .api
            .ask(Method::GET, &format!("/toolkits/{slug}"), None)
            .await?
        else {
            return Ok(None);
        };
        Ok(toolkit["meta"]["version"]
            .as_str()
            .and_then(|version| version.parse().ok()))
    }
}
