//! MCP servers that were read lately, so that a call at the address of one does not read it again.
//!
//! Guarantee: a change by this process is seen by the next call, and one by another process within a
//! second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use store::Record;

use super::McpServer;
use crate::{
    App, Result,
    core::{ids::ProjectId, read_cache::ReadCache},
};

/// Time after which a server is read again.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of servers that are kept.
const MAX_KEPT_SERVERS: usize = 1_000;
/// Maximum number of tools, toolkits and auth configs of a cached server. A larger server is read for
/// each call.
const MAX_KEPT_NAMES: usize = 200;

#[derive(Debug)]
pub(crate) struct CachedServer {
    pub record: Record<McpServer>,
    pub project: ProjectId,
}

/// The servers that were read lately, each with the time at which it was read.
pub(crate) type ServerCache = ReadCache<String, (Instant, Arc<CachedServer>)>;

/// Creates an empty cache.
pub(crate) fn new_cache() -> ServerCache {
    ReadCache::new(MAX_KEPT_SERVERS)
}

/// Runs a change of a server and drops the server from the cache, even if the change fails.
pub(super) async fn invalidate<T>(app: &App, id: &str, change: impl Future<Output = T>) -> T {
    let changed = change.await;
    app.mcp_servers.invalidate(|key, _| key == id);
    changed
}

/// Returns a server of any project by its id, if it exists.
pub(super) async fn lookup(app: &App, id: &str) -> Result<Option<Arc<CachedServer>>> {
    if let Some(server) = fresh(&app.mcp_servers, id) {
        return Ok(Some(server));
    }
    let changes = app.mcp_servers.changes();
    let read_at = Instant::now();
    let Some(record) = app.store.lookup::<McpServer>(id).await? else {
        return Ok(None);
    };
    let project = ProjectId::parse(&record.project)?;
    let server = Arc::new(CachedServer { record, project });
    keep(&app.mcp_servers, &server, read_at, changes);
    Ok(Some(server))
}

fn fresh(cache: &ServerCache, id: &str) -> Option<Arc<CachedServer>> {
    let (read_at, server) = cache.get(id)?;
    (read_at.elapsed() < MAX_AGE).then_some(server)
}

fn keep(cache: &ServerCache, server: &Arc<CachedServer>, read_at: Instant, changes: u64) {
    let body = &server.record.body;
    let names = body.allowed_tools.len() + body.toolkits.len() + body.auth_configs.len();
    if names <= MAX_KEPT_NAMES {
        cache.insert(server.record.id.clone(), (read_at, server.clone()), changes);
    }
}

#[cfg(test)]
mod tests {
    use store::Time;

    use super::*;

    #[test]
    fn old_and_large_servers_are_not_kept() {
        let cache = new_cache();
        let now = Instant::now();
        let is_kept = |id: &str, tools, read_at| {
            let project = ProjectId::random();
            let body = McpServer {
                allowed_tools: vec!["A".to_owned(); tools],
                ..McpServer::default()
            };
            let record = Record::inserted(project.as_str(), id, Time(0), body);
            let server = Arc::new(CachedServer { record, project });
            keep(&cache, &server, read_at, 0);
            fresh(&cache, id).is_some()
        };
        assert!(is_kept("new", MAX_KEPT_NAMES, now));
        assert!(!is_kept("large", MAX_KEPT_NAMES + 1, now));
        assert!(!is_kept("old", 0, now.checked_sub(MAX_AGE).unwrap()));
    }
}
