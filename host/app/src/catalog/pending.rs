//! Toolkits that the start of this server is still publishing. They are not unknown, so requests for
//! them are to be retried.

use std::{collections::BTreeSet, sync::Arc};

use super::{Catalog, Snapshot, errors};
use crate::{Error, core::shown_slug};

/// Slugs of the toolkits that are still to be published, and the number of all.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    slugs: BTreeSet<String>,
    total: usize,
}

impl Pending {
    /// Notes that a version of a toolkit was published.
    pub(super) fn remove(&mut self, slug: &str) {
        self.slugs.remove(slug);
    }

    /// Returns true if a slug is that of a toolkit to be published, or may be that of one of its tools or
    /// trigger types.
    fn has(&self, slug: &str) -> bool {
        let slug = slug.trim().to_ascii_lowercase();
        self.slugs.iter().any(|toolkit| {
            let rest = slug.strip_prefix(toolkit.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }
}

impl Catalog {
    /// Notes which toolkits are being published; an empty set ends it.
    pub async fn set_pending(&self, slugs: BTreeSet<String>) {
        let _changing = self.changing.lock().await;
        let mut next = Snapshot::clone(&self.current.load());
        next.pending = Pending {
            total: slugs.len(),
            slugs,
        };
        self.current.store(Arc::new(next));
    }
}

impl Snapshot {
    /// Returns the numbers of published toolkits and of all, while the start is publishing some.
    #[must_use]
    pub fn publication_progress(&self) -> Option<(usize, usize)> {
        let Pending { slugs, total } = &self.pending;
        (!slugs.is_empty()).then(|| (total - slugs.len(), *total))
    }

    /// Returns the error for slugs of toolkits, tools or trigger types of which some are missing:
    /// `otherwise`, unless one is still being published.
    pub fn missing<'a>(
        &self,
        slugs: impl IntoIterator<Item = &'a str>,
        otherwise: impl FnOnce() -> Error,
    ) -> Error {
        let pending = slugs.into_iter().find(|slug| self.pending.has(slug));
        match (pending, self.publication_progress()) {
            (Some(slug), Some((published, total))) => {
                errors::still_publishing(shown_slug(slug), published, total)
            }
            _ => otherwise(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::LATEST;

    #[test]
    fn toolkits_being_published_are_not_unknown() {
        let mut snapshot = Snapshot::default();
        assert_eq!(snapshot.publication_progress(), None);
        snapshot.pending = Pending {
            slugs: ["github", "slack"].map(str::to_owned).into(),
            total: 3,
        };
        assert_eq!(snapshot.publication_progress(), Some((1, 3)));
        let pending = [
            snapshot.tool("github_get_me", LATEST).unwrap_err(),
            snapshot.release("Slack", LATEST).unwrap_err(),
        ];
        for refused in pending {
            assert!(refused.is(&errors::STILL_PUBLISHING), "{refused}");
            assert!(refused.to_string().contains("1 of 3"), "{refused}");
            assert!(refused.retry_after().is_some());
        }
        let unknown = snapshot.tool("GITHUBX_GET", LATEST).unwrap_err();
        assert!(unknown.is(&errors::TOOL_NOT_FOUND), "{unknown}");
        snapshot.pending.remove("slack");
        let unknown = snapshot.release("slack", LATEST).unwrap_err();
        assert!(unknown.is(&errors::TOOLKIT_NOT_FOUND), "{unknown}");
    }
}
