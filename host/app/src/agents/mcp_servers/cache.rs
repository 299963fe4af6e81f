//! MCP servers that were read lately, so that a call at the address of one does not read it again.
//!
//! Guarantee: a change by this process is seen by the next call, and one by another process within a
//! second.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use store::Record;

use super::McpServer;
use crate::{App, Result};

/// Time after which a server is read again.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of servers that are kept.
const MAX_KEPT_SERVERS: usize = 1_000;
/// Maximum number of tools, toolkits and auth configs of a server that is kept. A larger one is read
/// for each call.
const MAX_KEPT_NAMES: usize = 200;

/// The servers that were read lately.
#[derive(Default)]
pub(crate) struct ServerCache(RwLock<Cached>);

#[derive(Default)]
struct Cached {
    servers: HashMap<String, Entry>,
    /// The number of changes. A server that was read before a change is not kept after it.
    changes: u64,
}

struct Entry {
    server: Arc<Record<McpServer>>,
    read_at: Instant,
}

impl ServerCache {
    /// Runs a change of a server and drops the server, even if the change fails.
    pub(super) async fn invalidate<T>(&self, id: &str, change: impl Future<Output = T>) -> T {
        let changed = change.await;
        let mut cached = self.0.write();
        cached.changes += 1;
        cached.servers.remove(id);
        changed
    }

    /// Returns a server that is kept, or else the number of changes.
    fn get(&self, id: &str) -> std::result::Result<Arc<Record<McpServer>>, u64> {
        let cached = self.0.read();
        let entry = cached.servers.get(id);
        let entry = entry.filter(|entry| entry.read_at.elapsed() < MAX_AGE);
        entry
            .map(|entry| entry.server.clone())
            .ok_or(cached.changes)
    }

    /// Keeps a server that was read when there had been a number of changes.
    fn insert(&self, server: &Arc<Record<McpServer>>, read_at: Instant, changes: u64) {
        let body = &server.body;
        let names = body.allowed_tools.len() + body.toolkits.len() + body.auth_configs.len();
        let mut cached = self.0.write();
        if names > MAX_KEPT_NAMES || cached.changes != changes {
            return;
        }
        if cached.servers.len() >= MAX_KEPT_SERVERS {
            cached.servers.clear();
        }
        let id = server.id.clone();
        let server = server.clone();
        cached.servers.insert(id, Entry { server, read_at });
    }
}

/// Returns a server of any project by its id, if it exists.
pub(super) async fn lookup(app: &App, id: &str) -> Result<Option<Arc<Record<McpServer>>>> {
    let changes = match app.mcp_servers.get(id) {
        Ok(server) => return Ok(Some(server)),
        Err(changes) => changes,
    };
    let read_at = Instant::now();
    let found = app.store.lookup::<McpServer>(id).await?.map(Arc::new);
    if let Some(server) = &found {
        app.mcp_servers.insert(server, read_at, changes);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use store::Time;

    use super::*;

    fn server(id: &str, tools: usize) -> Arc<Record<McpServer>> {
        Arc::new(Record {
            id: id.to_owned(),
            project: "p".to_owned(),
            revision: 1,
            created_at: Time(0),
            updated_at: Time(0),
            deleted_at: None,
            body: McpServer {
                allowed_tools: vec!["A".to_owned(); tools],
                ..McpServer::default()
            },
        })
    }

    #[tokio::test]
    async fn server_read_before_its_change_is_dropped() {
        let cache = ServerCache::default();
        let now = Instant::now();
        cache.insert(&server("a", 0), now, 0);
        assert!(cache.get("a").is_ok());
        cache.invalidate("a", async {}).await;
        assert!(cache.get("a").is_err_and(|changes| changes == 1));
        cache.insert(&server("a", 0), now, 0);
        assert!(cache.get("a").is_err(), "it was read before the change");
        cache.insert(&server("a", 0), now, 1);
        assert!(cache.get("a").is_ok());
    }

    #[test]
    fn old_and_large_servers_are_not_kept() {
        let cache = ServerCache::default();
        let now = Instant::now();
        cache.insert(&server("large", MAX_KEPT_NAMES + 1), now, 0);
        assert!(cache.get("large").is_err());
        cache.insert(&server("old", 0), now.checked_sub(MAX_AGE).unwrap(), 0);
        assert!(cache.get("old").is_err());
        for number in 0..=MAX_KEPT_SERVERS {
            cache.insert(&server(&number.to_string(), 0), now, 0);
        }
        assert!(cache.0.read().servers.len() <= MAX_KEPT_SERVERS);
    }
}
