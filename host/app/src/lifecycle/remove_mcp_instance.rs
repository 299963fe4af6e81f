//! Deletion of instances of MCP servers, with the accounts of their users.

use store::Window;

use super::remove_account::remove_account;
use crate::{
    App, Result, accounts,
    agents::{errors, mcp_servers},
    core::ids::AccountId,
    projects::Project,
};

/// Number of accounts in one read.
const PAGE_SIZE: u64 = 100;

/// Deletes the instance of a user, and the user's accounts of the server's auth configs. Returns
/// the number of deleted accounts. The instance is erased last, so that a repeated call continues
/// an interrupted one. Fails if the server or the instance does not exist.
pub async fn remove_mcp_instance(
    app: &App,
    project: &Project,
    server: &str,
    instance: &str,
) -> Result<u64> {
    let server = mcp_servers::get(app, project, server).await?;
    let instance = mcp_servers::find_instance(app, project, &server.id, instance).await?;
    let configs = server.body.auth_configs.iter();
    let filter = accounts::Filter {
        users: vec![instance.body.user_id.clone()],
        auth_configs: configs.map(ToString::to_string).collect(),
        ..accounts::Filter::default()
    };
    let removed = match filter.auth_configs.is_empty() {
        // An empty list does not filter.
        true => 0,
        false => remove_accounts(app, project, &filter).await?,
    };
    mcp_servers::remove_instance(app, project, &instance.id).await?;
    Ok(removed)
}

/// Deletes the accounts that match a filter. Returns their number.
async fn remove_accounts(app: &App, project: &Project, filter: &accounts::Filter) -> Result<u64> {
    let mut removed = 0;
    loop {
        let found = accounts::list(app, project, filter, Window::first(PAGE_SIZE)).await?;
        if found.items.is_empty() {
            return Ok(removed);
        }
        for account in found.items {
            let id = AccountId::parse(&account.record.id)?;
            match remove_account(app, project, &id, false).await {
                Ok(()) => removed += 1,
                // Another request deleted it.
                Err(cause) if cause.is(&errors::ACCOUNT_NOT_FOUND) => {}
                Err(cause) => return Err(cause),
            }
        }
    }
}
