//! Usage counts, computed from the log as far back as it is kept.

use std::collections::BTreeMap;

use super::{
    filter::{Field, Filter},
    page::ExecutionRecord,
    read::{PAGES_PER_QUERY, read_pages},
};
use crate::{App, Result, projects::Project};

/// The property by which executions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Slug of the tool.
    Tool,
    /// Slug of the toolkit.
    Toolkit,
    /// The user.
    User,
    /// The outcome.
    Status,
    /// The project.
    Project,
}

impl Grouping {
    fn key<'a>(self, run: &'a ExecutionRecord, project: &'a Project) -> &'a str {
        match self {
            Self::Tool => &run.tool,
            Self::Toolkit => &run.toolkit,
            Self::User => &run.user,
            Self::Status => run.status.into_str(),
            Self::Project => project.id.as_str(),
        }
    }
}

/// Adds the executions of a project that match the filter, and have one of the selected values in
/// each selected field. An empty list of values selects all.
pub async fn count(
    app: &App,
    project: &Project,
    filter: &Filter,
    selected: &[(Field, &[String])],
    grouping: Grouping,
    counts: &mut BTreeMap<String, u64>,
) -> Result<()> {
    app.log.wait_until_written().await?;
    for part in 0.. {
        let offset = part * PAGES_PER_QUERY;
        let (pages, is_last) = read_pages(app, filter.query(project), offset).await?;
        let runs = pages.iter().flat_map(|page| &page.body.runs);
        let counted = runs.filter(|run| {
            filter.holds(run)
                && selected
                    .iter()
                    .all(|(field, values)| values.is_empty() || field.is_one_of(run, values))
        });
        for run in counted {
            let key = grouping.key(run, project);
            match counts.get_mut(key) {
                Some(count) => *count += 1,
                None => drop(counts.insert(key.to_owned(), 1)),
            }
        }
        if is_last {
            break;
        }
    }
    Ok(())
}
