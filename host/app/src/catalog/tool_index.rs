//! Search for tools by what they do.
//!
//! The index holds the tools of the current version of each toolkit that is not deprecated. It is
//! built by the first search after a change of the catalog, once for all searches that wait for it,
//! and then kept until the catalog changes again. A search therefore finds every tool that was
//! published before the search started.

use std::sync::{Arc, Weak};

use search::{Document, Index};
pub use search::{Field as SearchField, Match};

use super::{Catalog, ResolvedTool, Snapshot, errors};
use crate::Result;

/// Number of bytes of a body that take as long as ranking one tool.
const BYTES_PER_TOOL: usize = 8;

/// The index of a snapshot of the catalog.
pub struct ToolIndex {
    tools: Vec<ResolvedTool>,
    index: Index,
}

/// A tool that a search found.
#[derive(Debug)]
pub struct RankedTool {
    /// The tool.
    pub found: ResolvedTool,
    /// The score, greater for a better match and comparable within one search.
    pub score: f32,
    /// The share of the query that the tool matches, between 0 and 1.
    pub coverage: f32,
    /// The words of the query that the tool matches.
    pub matches: Vec<Match>,
}

/// The index that was built last, and the snapshot that it was built of.
pub(super) type BuiltIndex = Arc<tokio::sync::Mutex<Option<(Weak<Snapshot>, Arc<ToolIndex>)>>>;

impl Catalog {
    /// Returns the index of the current snapshot. Fails if the index cannot be built.
    pub async fn tool_index(&self) -> Result<Arc<ToolIndex>> {
        let mut built = self.index.clone().lock_owned().await;
        let snapshot = self.snapshot();
        let of = Arc::downgrade(&snapshot);
        if let Some((indexed, index)) = &*built
            && Weak::ptr_eq(indexed, &of)
        {
            return Ok(index.clone());
        }
        // The thread holds the lock, because the search may be gone before the index is built.
        let building = tokio::task::spawn_blocking(move || {
            let index = Arc::new(ToolIndex::build(&snapshot));
            *built = Some((of, index.clone()));
            index
        });
        building
            .await
            .map_err(|_| errors::unavailable("the tools could not be indexed"))
    }
}

impl ToolIndex {
    fn build(snapshot: &Snapshot) -> Self {
        let tools: Vec<_> = snapshot
            .toolkits()
            .filter(|toolkit| !toolkit.is_deprecated())
            .flat_map(|toolkit| toolkit.current().resolved_tools())
            .collect();
        Self {
            index: Index::build(tools.iter().map(document)),
            tools,
        }
    }

    /// Returns the work of searches, as the size of a body that takes as long.
    #[must_use]
    pub fn search_cost(&self, queries: usize) -> usize {
        queries * self.tools.len() * BYTES_PER_TOOL
    }

    /// Returns the tools that fit a query best, the best first. Only permitted tools are counted
    /// and ranked.
    #[must_use]
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        permitted: impl Fn(&ResolvedTool) -> bool,
    ) -> Vec<RankedTool> {
        let hits = self
            .index
            .search(query, limit, |tool: usize| permitted(&self.tools[tool]));
        let ranked = hits.into_iter().map(|hit| RankedTool {
            found: self.tools[hit.tool].clone(),
            score: hit.score,
            coverage: hit.coverage,
            matches: hit.matches,
        });
        ranked.collect()
    }
}

fn document(found: &ResolvedTool) -> Document<'_> {
    let (release, tool) = (&found.release, &found.tool);
    let labels = tool.tags.iter().chain(&release.categories);
    Document {
        slug: &tool.slug,
        name: &tool.name,
        description: &tool.description,
        toolkit: &release.slug,
        toolkit_name: &release.name,
        parameters: tool.parameters.iter().map(|name| &**name).collect(),
        tags: labels.map(String::as_str).collect(),
        synonyms: tool.synonyms.iter().map(String::as_str).collect(),
    }
}
