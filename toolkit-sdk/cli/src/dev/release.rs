//! Versions of a toolkit in development: each good build that differs from the previous one gets
//! the next version.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail};
use chrono::{Days, NaiveDate};
use manifest::{Manifest, Version};
use reqwest::Method;
use sandbox::Digest;

use super::Api;
use crate::{
    build::Built,
    publish::{self, Published},
};

/// Maximum number of versions to try if others publish at the same time.
const MAX_ATTEMPTS: usize = 20;
const CONFLICT_STATUS: u16 = 409;

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
        // The section with the manifest is the last one, and its bytes are determined by the
        // manifest.
        let section = manifest::embed(Vec::new(), &built.manifest);
        let code = bytes
            .strip_suffix(&section[..])
            .context("the component does not end with its manifest")?;
        let mut manifest = built.manifest.clone();
        let content = Digest::compute(&manifest::embed(code.to_vec(), &manifest));
        let last = self.served.get(&manifest.slug);
        if let Some(last) = last.filter(|last| last.content == content) {
            return Ok(Served {
                new: false,
                ..last.clone()
            });
        }
        let last = match last {
            Some(last) => Some(last.manifest.version.clone()),
            None => self.newest(&manifest.slug).await?,
        };
        if let Some(next) = last.as_ref().map(next_version).transpose()? {
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

    /// Publishes under the manifest's version, or under a later one if that is taken.
    async fn publish(&self, code: &[u8], manifest: &mut Manifest) -> Result<()> {
        let server = self.api.publisher();
        for _ in 0..MAX_ATTEMPTS {
            let bytes = manifest::embed(code.to_vec(), manifest);
            // Compatibility is not checked between two saves of a toolkit in development.
            let Published { status, answer, .. } = server
                .publish((bytes, manifest.clone()), None, true)
                .await?;
            match status {
                200..300 => return Ok(()),
                CONFLICT_STATUS => manifest.version = next_version(&manifest.version)?,
                other => bail!(
                    "{} was not published: {}",
                    manifest.slug,
                    publish::org_refusal(other, &answer)
                ),
            }
        }
        bail!(
            "{} was not published: each version that was tried is already published; try again",
            manifest.slug
        )
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

/// Returns the next version: the next number of the same day, or the first of the next day.
fn next_version(version: &Version) -> Result<Version> {
    let none = || anyhow!("no version follows {version}");
    let (day, number) = version.as_str().split_once('_').ok_or_else(none)?;
    let next = match number.parse::<u8>()? {
        99.. => {
            let day = NaiveDate::parse_from_str(day, "%Y%m%d").map_err(|_| none())?;
            day.checked_add_days(Days::new(1))
                .ok_or_else(none)?
                .format("%Y%m%d_00")
                .to_string()
        }
        number => format!("{day}_{:02}", number + 1),
    };
    Ok(next.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_version_of_day_precedes_next_day() {
        for (version, next) in [
            ("20261121_00", "20261121_01"),
            ("20261121_09", "20261121_10"),
            ("20261121_99", "20261122_00"),
            ("20261231_99", "20270101_00"),
        ] {
            let version: Version = version.parse().unwrap();
            assert_eq!(next_version(&version).unwrap().as_str(), next);
            assert!(next_version(&version).unwrap() > version);
        }
        assert!(
            next_version(&"20260231_99".parse().unwrap()).is_err(),
            "no such day"
        );
    }
}
