//! Deletion of connected accounts, with the trigger instances that use them.

use crate::{App, Result, accounts, core::ids::AccountId, events::triggers, projects::Project};

/// Deletes an account, erases its credential, and deletes its trigger instances, whose providers
/// are asked to send no more events. With `revoke`, the provider is asked to revoke the tokens, if
/// it can be reached. If the deletion is interrupted before the instances are deleted, the next
/// poll of each instance finds no account and deletes the instance. Fails if the account does not
/// exist.
pub async fn remove_account(
    app: &App,
    project: &Project,
    id: &AccountId,
    revoke: bool,
) -> Result<()> {
    triggers::subscribing::unsubscribe_before_removal(app, project, Some(id)).await;
    accounts::remove(app, project, id, revoke).await?;
    triggers::remove_of_account(app, project, id).await
}
