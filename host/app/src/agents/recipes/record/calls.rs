//! The calls of tools in runs, in the store.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Collection, Document, Erasure, Field, Kind, Query, Record};

use crate::{
    App, Result,
    core::{
        ids::{LogId, RecipeRunId},
        vault::Sealed,
    },
    projects::Project,
};

pub(crate) static CALLS_COLLECTION: Collection = Collection {
    name: "recipe_calls",
    erasure: Erasure::Project,
    fields: &[Field::new("run", Kind::Text)],
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::agents::recipes) struct StoredCall {
    run: String,
    /// Slug of the tool.
    pub tool: String,
    /// Path of the call in the run, such as `send[2]`.
    pub place: String,
    /// Log record of the execution; absent until the tool has ended, or if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<LogId>,
    /// Result; absent until the tool has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Sealed<CallResult>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::agents::recipes) struct CallResult {
    /// Data of the tool.
    pub data: Value,
    /// The failure.
    pub error: Option<String>,
}

impl Document for StoredCall {
    const COLLECTION: &'static Collection = &CALLS_COLLECTION;
}

impl StoredCall {
    pub(in crate::agents::recipes) fn new(run: &str, tool: &str, place: &str) -> Self {
        Self {
            run: run.to_owned(),
            tool: tool.to_owned(),
            place: place.to_owned(),
            log_id: None,
            result: None,
        }
    }

    /// Returns the size of the sealed result in bytes.
    pub(super) fn result_size(&self) -> usize {
        self.result.as_ref().map_or(0, Sealed::size)
    }
}

/// Returns the id of a call. The ids of a run sort by number.
pub(in crate::agents::recipes) fn call_id(run: &str, number: usize) -> String {
    format!("{run}_{number:05}")
}

/// Returns the calls of a run, in their order.
pub(in crate::agents::recipes) async fn calls_of(
    app: &App,
    project: &str,
    run: &str,
) -> Result<Vec<Record<StoredCall>>> {
    let query = Query::for_project(project).is("run", run);
    let mut calls = app.store.find::<StoredCall>(&query).await?.records;
    calls.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(calls)
}

/// Returns the path of the newest call of a run.
pub(in crate::agents::recipes) async fn newest_place(
    app: &App,
    project: &Project,
    run: &RecipeRunId,
) -> Result<Option<String>> {
    let calls = Query::for_project(project.id.as_str()).is("run", run.as_str());
    let newest = app.store.first::<StoredCall>(calls.descending()).await?;
    Ok(newest.map(|call| call.body.place))
}
