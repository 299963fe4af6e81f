//! Measures of this server for the metrics of the operator. Taking them costs requests nothing.

use std::sync::Arc;

use sandbox::Gauges;
use store::CommitCounts;

pub use crate::work::QueueDepth;
use crate::{
    App, Result,
    accounts::{self, RefreshCounts},
    agents::recipes,
    events::{
        self,
        triggers::{actions, polling, subscribing},
    },
    lifecycle::remove_project,
    runs::ToolkitCounts,
    work::{JobState, queue_depth},
};

/// Counts since the start of the server, and its current load.
pub struct Measures<'a> {
    /// Counts of executions by toolkit.
    pub executions: Vec<(Arc<str>, Arc<ToolkitCounts>)>,
    /// Counts of attempts to refresh tokens.
    pub refreshes: &'a RefreshCounts,
    /// Counts of commits.
    pub commits: &'a CommitCounts,
    /// The load of the sandbox.
    pub sandbox: Gauges,
    /// Number of slots of the execution log's buffer in use.
    pub log_slots: usize,
}

/// Takes the measures that this process keeps in memory.
pub fn measure(app: &App) -> Measures<'_> {
    Measures {
        executions: app.executions.read(),
        refreshes: &app.accounts.refreshes,
        commits: app.store.commit_counts(),
        sandbox: app.sandbox.gauges(),
        log_slots: app.log.used_slots(),
    }
}

/// Reads the depths of all queues. They are those of the store: all servers have the same.
pub async fn queue_depths(app: &App) -> Result<Vec<QueueDepth>> {
    let claims = app.claims();
    let mut depths = vec![
        queue_depth::<JobState>("jobs", &claims).await?,
        accounts::idle_refresh(app).depth(&claims).await?,
        remove_project::queue().depth(&claims).await?,
        events::sending::queue(app).depth(&claims).await?,
        polling::queue().depth(&claims).await?,
        subscribing::queue().depth(&claims).await?,
        actions::running::queue().depth(&claims).await?,
        recipes::queue().depth(&claims).await?,
    ];
    if app.sink.is_some() {
        depths.push(events::sink::queue().depth(&claims).await?);
    }
    Ok(depths)
}
