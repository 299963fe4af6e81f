//! Lists of tools and toolkits.
//!
//! The whole catalog is in memory, so a list is a filter over a snapshot. Tools are searched for as in
//! sessions ([`ToolIndex`](super::ToolIndex)); those that have all words of the query literally follow, for
//! queries such as a part of a slug. The search for toolkits is literal: every word must occur in the slug, the
//! name or the description. Occurrences in the slug and the name rank higher.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use store::Time;

use super::{Counts, Release, ResolvedTool, Snapshot, Tool, Toolkit, versions::Unresolved};
use crate::{App, Result, projects::Project};

/// Maximum number of tools that a search ranks.
const MAX_RANKED_TOOLS: usize = 100;
/// Maximum number of characters of a query that are ranked by.
const MAX_QUERY_CHARS: usize = 1_024;

/// The version of each toolkit that a list uses.
#[derive(Debug, Clone)]
pub struct VersionSelector {
    /// The version for toolkits that `by_toolkit` does not name.
    pub default: String,
    /// The versions of single toolkits, by slug.
    pub by_toolkit: HashMap<String, String>,
}

impl VersionSelector {
    /// Selects one version for every toolkit.
    #[must_use]
    pub fn all(version: &str) -> Self {
        Self {
            default: version.to_owned(),
            by_toolkit: HashMap::new(),
        }
    }

    /// Returns the version selected for a toolkit.
    #[must_use]
    pub fn for_toolkit(&self, toolkit: &str) -> &str {
        self.by_toolkit.get(toolkit).unwrap_or(&self.default)
    }
}

/// A filter for tools. Empty fields do not filter.
#[derive(Debug, Clone)]
pub struct ToolFilter {
    /// The slugs to list. If not empty, all other filters except the versions are ignored.
    pub slugs: Vec<String>,
    /// The slugs of the toolkits.
    pub toolkits: Vec<String>,
    /// The tags and hints, of which a tool has at least one.
    pub tags: Vec<String>,
    /// The OAuth scopes, of which a tool needs at least one.
    pub scopes: Vec<String>,
    /// True for important tools only, false for all others only.
    pub important: Option<bool>,
    /// The search words.
    pub search: String,
    /// True if tools of completely deprecated toolkits are included.
    pub deprecated: bool,
    /// The versions of the toolkits.
    pub versions: VersionSelector,
}

/// The publisher of a toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolkitKind {
    /// Any publisher.
    Any,
    /// The installation.
    Native,
    /// A project.
    Custom,
}

/// The order of a list of toolkits.
#[derive(Debug, Clone, Default)]
pub enum ToolkitOrder {
    /// The best match of the search first, then the newest.
    #[default]
    Newest,
    /// The most used first, then the best match of the search, then the newest.
    Usage(Counts),
    /// By name.
    Name,
}

impl ToolkitOrder {
    /// Sorts toolkits with their scores, of which the newest is first.
    fn sort(&self, matches: &mut [(u32, Arc<Toolkit>)]) {
        match self {
            Self::Newest => matches.sort_by_key(|(score, _)| Reverse(*score)),
            Self::Usage(counts) => matches.sort_by_key(|(score, toolkit)| {
                (Reverse(counts.get(&toolkit.slug)), Reverse(*score))
            }),
            Self::Name => matches.sort_by_key(|(_, toolkit)| {
                (toolkit.current().name.to_lowercase(), toolkit.slug.clone())
            }),
        }
    }
}

/// A filter for toolkits. Empty fields do not filter.
#[derive(Debug, Clone)]
pub struct ToolkitFilter {
    /// The slugs of the toolkits.
    pub slugs: Vec<String>,
    /// The category, by id or by name.
    pub category: String,
    /// The search words.
    pub search: String,
    /// True if completely deprecated toolkits are included.
    pub deprecated: bool,
    /// The order of the list.
    pub order: ToolkitOrder,
    /// The publisher of the toolkits.
    pub kind: ToolkitKind,
}

/// Returns the tools that match a filter. With a search, those that fit it best are first. Fails if too
/// many searches of the project are running.
pub async fn list_tools(
    app: &App,
    project: &Project,
    snapshot: &Snapshot,
    filter: ToolFilter,
) -> Result<Vec<ResolvedTool>> {
    let literal = snapshot.tools(&filter);
    if filter.search.trim().is_empty() || !filter.slugs.is_empty() {
        return Ok(literal);
    }
    let query: String = filter.search.chars().take(MAX_QUERY_CHARS).collect();
    let mut listed: HashMap<_, _> = snapshot
        .tools(&ToolFilter {
            search: String::new(),
            ..filter
        })
        .into_iter()
        .map(|resolved| (resolved.tool.slug.clone(), resolved))
        .collect();
    let index = app.catalog.tool_index().await?;
    let cost = index.search_cost(1);
    app.large_work
        .run(&project.tenant, cost, move || {
            let ranked = index.search(&query, MAX_RANKED_TOOLS, |resolved| {
                listed.contains_key(&resolved.tool.slug)
            });
            let mut matches: Vec<_> = ranked
                .into_iter()
                .filter_map(|ranked| listed.remove(&ranked.found.tool.slug))
                .collect();
            matches.extend(
                literal
                    .into_iter()
                    .filter(|resolved| listed.contains_key(&resolved.tool.slug)),
            );
            matches
        })
        .await
}

impl Snapshot {
    /// Returns the tools that match a filter. Without a search, the newest toolkit is first, and
    /// its tools are in the order of its manifest.
    #[must_use]
    pub fn tools(&self, filter: &ToolFilter) -> Vec<ResolvedTool> {
        if !filter.slugs.is_empty() {
            return self.named_tools(filter);
        }
        let words = words(&filter.search);
        let mut matches = Vec::new();
        for toolkit in self.newest_first() {
            if toolkit.is_deprecated() && !filter.deprecated
                || !slug_matches(&filter.toolkits, &toolkit.slug)
            {
                continue;
            }
            let version = filter.versions.for_toolkit(&toolkit.slug);
            let Some(release) = listed_release(toolkit, version) else {
                continue;
            };
            for tool in release.tools.iter().filter(|tool| filter.matches(tool)) {
                if let Some(score) = score(&words, &tool.slug, &tool.name, &tool.description) {
                    let (release, tool) = (release.clone(), tool.clone());
                    matches.push((score, ResolvedTool { release, tool }));
                }
            }
        }
        matches.sort_by_key(|(score, _)| Reverse(*score));
        matches.into_iter().map(|(_, resolved)| resolved).collect()
    }

    /// Returns the tools that a filter names.
    fn named_tools(&self, filter: &ToolFilter) -> Vec<ResolvedTool> {
        let mut seen = HashSet::new();
        let named = filter.slugs.iter().filter_map(|slug| {
            let version = filter.versions.for_toolkit(&self.toolkit_of(slug)?.slug);
            self.find_tool(slug, version)
        });
        let unique = named.filter(|resolved| seen.insert(resolved.tool.slug.clone()));
        unique.collect()
    }

    /// Returns the toolkits that match a filter.
    #[must_use]
    pub fn find_toolkits(&self, filter: &ToolkitFilter) -> Vec<Arc<Toolkit>> {
        if filter.kind == ToolkitKind::Custom {
            return Vec::new();
        }
        let words = words(&filter.search);
        let mut matches: Vec<_> = self
            .newest_first()
            .into_iter()
            .filter(|toolkit| filter.deprecated || !toolkit.is_deprecated())
            .filter(|toolkit| slug_matches(&filter.slugs, &toolkit.slug))
            .filter(|toolkit| {
                filter.category.is_empty() || in_category(toolkit.current(), &filter.category)
            })
            .filter_map(|toolkit| {
                let release = toolkit.current();
                let score = score(&words, &toolkit.slug, &release.name, &release.description)?;
                Some((score, toolkit.clone()))
            })
            .collect();
        filter.order.sort(&mut matches);
        matches.into_iter().map(|(_, toolkit)| toolkit).collect()
    }

    /// Returns all categories in use, in alphabetical order.
    #[must_use]
    pub fn categories(&self) -> Vec<String> {
        let mut all: Vec<_> = self
            .toolkits()
            .flat_map(|toolkit| &toolkit.current().categories)
            .cloned()
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the snapshot as of the time when its newest release was published. The pages of a
    /// list stay consistent in this way, even if versions are published between them.
    #[must_use]
    pub fn at(&self, as_of: Time) -> Self {
        let toolkits = self
            .toolkits
            .iter()
            .filter_map(|(slug, toolkit)| Some((slug.clone(), toolkit_at(toolkit, as_of)?)));
        Self {
            toolkits: toolkits.collect(),
            tools: self.tools.clone(),
            triggers: self.triggers.clone(),
            pending: self.pending.clone(),
        }
    }

    /// Returns the publication time of the newest release.
    #[must_use]
    pub fn as_of(&self) -> Time {
        let times = self.toolkits().map(|toolkit| toolkit.updated_at());
        times.max().unwrap_or_default()
    }

    pub(super) fn newest_first(&self) -> Vec<&Arc<Toolkit>> {
        let mut all: Vec<_> = self.toolkits().collect();
        all.sort_by_key(|toolkit| (Reverse(toolkit.created_at()), toolkit.slug.clone()));
        all
    }
}

impl ToolFilter {
    fn matches(&self, tool: &Tool) -> bool {
        self.important
            .is_none_or(|important| important == tool.is_important())
            && any_if_listed(&self.tags, |tag| {
                tool.labels().any(|label| label.eq_ignore_ascii_case(tag))
            })
            && any_if_listed(&self.scopes, |scope| {
                tool.scopes.iter().any(|required| required == scope)
            })
    }
}

impl Tool {
    /// Returns the tags, and the hints by their names in the Model Context Protocol.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let hints = [
            ("readOnlyHint", self.hints.read_only),
            ("destructiveHint", self.hints.destructive),
            ("idempotentHint", self.hints.idempotent),
            ("openWorldHint", self.hints.open_world),
        ]
        .into_iter()
        .filter(|(_, holds)| *holds);
        let tags = self.tags.iter().map(String::as_str);
        tags.chain(hints.map(|(name, _)| name))
    }
}

/// Returns the release to list. For a completely deprecated toolkit, this is the newest one.
pub(super) fn listed_release<'a>(toolkit: &'a Toolkit, version: &str) -> Option<&'a Arc<Release>> {
    match toolkit.release(version) {
        Ok(release) => Some(release),
        Err(Unresolved::Deprecated) => Some(toolkit.newest()),
        Err(Unresolved::Unknown) => None,
    }
}

pub(super) fn slug_matches(wanted: &[String], slug: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one.eq_ignore_ascii_case(slug))
}

/// Compares categories so that `developer-tools` is also found by its display name, `Developer
/// tools`.
fn in_category(release: &Release, category: &str) -> bool {
    let mut categories = release.categories.iter();
    categories.any(|listed| folded_category(listed) == folded_category(category))
}

fn folded_category(category: &str) -> String {
    category.replace(['-', '_'], " ").to_lowercase()
}

/// Returns true if the list is empty, or if the predicate is true for one of its elements.
fn any_if_listed(list: &[String], predicate: impl Fn(&str) -> bool) -> bool {
    list.is_empty() || list.iter().any(|element| predicate(element))
}

/// Returns a toolkit with the releases that were published up to a time, or `None` if there were no
/// releases yet.
fn toolkit_at(toolkit: &Arc<Toolkit>, as_of: Time) -> Option<Arc<Toolkit>> {
    if toolkit.updated_at() <= as_of {
        return Some(toolkit.clone());
    }
    let mut earlier = Toolkit::clone(toolkit);
    earlier
        .releases
        .retain(|_, release| release.published_at <= as_of);
    (!earlier.releases.is_empty()).then(|| Arc::new(earlier))
}

fn words(search: &str) -> Vec<String> {
    search.split_whitespace().map(str::to_lowercase).collect()
}

/// Rates the match of a tool or toolkit with the search words. Returns `None` if a word is missing.
fn score(words: &[String], slug: &str, name: &str, description: &str) -> Option<u32> {
    if words.is_empty() {
        return Some(0);
    }
    let [slug, name, description] = [slug, name, description].map(str::to_lowercase);
    words.iter().try_fold(0, |sum, word| {
        let hit = u32::from(slug.contains(word)) * 4
            + u32::from(name.contains(word)) * 2
            + u32::from(description.contains(word));
        (hit > 0).then_some(sum + hit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_match_and_slugs_rank_first() {
        let text = "Fetches one page as text";
        let ask = |search: &str| score(&words(search), "DOCS_READ_PAGE", "Read page", text);
        assert_eq!(ask(""), Some(0));
        assert!(ask("READ page") > ask("fetches"));
        assert_eq!(ask("read nothing"), None);
        assert_eq!(ask("%"), None);
    }
}
