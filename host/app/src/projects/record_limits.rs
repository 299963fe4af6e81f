//! Limits on the records of a project: their number by kind, and the bytes that it adds in a day.
//!
//! A number is read from the store, but not for each record: a part of what is left is granted in
//! memory, so that counting costs little until a project is near its limit. Records that exist above
//! a limit stay.

use store::{Collection, Query};

use crate::{App, Error, Result, core::ids::ProjectId, projects::errors};

/// Part of what is left that a server grants without counting again. Fewer servers than this do not
/// exceed a limit together.
const GRANT_DIVISOR: u64 = 16;

/// Maximum numbers of records of one project.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordLimits {
    /// Connected accounts.
    pub accounts: u64,
    /// Auth configs.
    pub auth_configs: u64,
    /// Tool router sessions.
    pub sessions: u64,
    /// MCP servers.
    pub mcp_servers: u64,
    /// Instances of MCP servers.
    pub mcp_instances: u64,
    /// Recipes of all users.
    pub recipes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RecordKind {
    Account,
    AuthConfig,
    Session,
    McpServer,
    McpInstance,
    Recipe,
}

impl RecordLimits {
    /// Returns the limit, and the name of the records in the plural.
    fn of_kind(&self, kind: RecordKind) -> (u64, &'static str) {
        match kind {
            RecordKind::Account => (self.accounts, "connected accounts"),
            RecordKind::AuthConfig => (self.auth_configs, "auth configs"),
            RecordKind::Session => (self.sessions, "tool router sessions"),
            RecordKind::McpServer => (self.mcp_servers, "MCP servers"),
            RecordKind::McpInstance => (self.mcp_instances, "instances of MCP servers"),
            RecordKind::Recipe => (self.recipes, "recipes"),
        }
    }
}

impl RecordKind {
    /// Returns the error of a project that has `most` records of the kind, whose name is `name`.
    fn exceeded(self, name: &str, most: u64) -> Error {
        match self {
            Self::Account | Self::Session | Self::McpInstance | Self::Recipe => {
                errors::too_many_records(name, most)
            }
            // Their numbers follow from no setting.
            Self::AuthConfig | Self::McpServer => errors::too_many_fixed_records(name, most),
        }
    }
}

/// Admits a new record of a project. Fails if the project has as many of its kind as it may have.
pub(crate) async fn admit(
    app: &App,
    project: &ProjectId,
    kind: RecordKind,
    collection: &'static Collection,
) -> Result<()> {
    if app.quotas.use_grant(project, kind) {
        return Ok(());
    }
    let (most, name) = app.quotas.record_limits().of_kind(kind);
    let all = Query::for_project(project.as_str()).page(0, 0);
    let count = app.store.rows(collection, &all).await?.total;
    if count >= most {
        return Err(kind.exceeded(name, most));
    }
    app.quotas
        .grant(project, kind, (most - count) / GRANT_DIVISOR);
    Ok(())
}

/// Counts the bytes of a record that a project or another owner adds. Fails if it has added too many
/// in a day.
pub(crate) fn count_bytes(app: &App, owner: &str, bytes: usize) -> Result<()> {
    if app.quotas.take_record(owner, bytes, app.clock.now()) {
        return Ok(());
    }
    Err(errors::records_full())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_a_setting_only_if_one_exists() {
        for (kind, has_setting) in [
            (RecordKind::Account, true),
            (RecordKind::Recipe, true),
            (RecordKind::AuthConfig, false),
            (RecordKind::McpServer, false),
        ] {
            let hint = kind.exceeded("records", 1).info().hint;
            assert_eq!(hint.contains("`limits."), has_setting, "{kind:?}");
        }
    }
}
