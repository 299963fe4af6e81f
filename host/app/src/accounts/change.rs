//! Changes of accounts: pause and resume, alias, sharing, and field values.

use store::Batch;

use super::{
    Account, Event, SharingChange, Status, Values,
    account::{COLLECTION, map_alias_conflict, parse_alias, record, status_after, unique_alias},
    auth_configs,
    fields::fill,
};
use crate::{App, Result, accounts::errors, core::ids::AccountId, projects::Project};

/// Pauses or resumes an account. Fails if the account does not exist or is not connected. One whose auth
/// config was deleted cannot be resumed.
pub async fn set_enabled(
    app: &App,
    project: &Project,
    id: &AccountId,
    enabled: bool,
) -> Result<()> {
    if enabled {
        let account = record(app, project, id).await?;
        let config = auth_configs::find(&app.store, &project.id, &account.body.auth_config).await?;
        if config.is_none() {
            let problem = format!("the auth config of account {id} was deleted");
            return Err(errors::account_refused(problem));
        }
    }
    let now = app.clock.now();
    let event = match enabled {
        true => Event::Enabled,
        false => Event::Disabled,
    };
    let owner = project.id.as_str();
    app.store
        .edit(
            owner,
            id.as_str(),
            now,
            |account: &mut Account| -> Result<()> {
                let status = status_after(id, account.status, event)?;
                account.set_status(status, None, now);
                Ok(())
            },
        )
        .await?
        .ok_or_else(|| errors::account_not_found(id))
}

/// Changes of an account. Absent fields stay as they are.
#[derive(Debug, Default)]
pub struct Changes {
    /// Name that the user gives to the account; an empty text removes it.
    pub alias: Option<String>,
    /// Scheme that the caller expects, and values of its fields; null removes a value.
    pub fields: Option<(String, Values)>,
    /// Users who may use the account.
    pub sharing: SharingChange,
}

/// Changes the alias, the sharing or the field values of an account. Returns its status. Fails if
/// the account does not exist, the alias is taken, lists are given for a private account, the
/// fields are incomplete, or the tokens come from the provider.
pub async fn change(
    app: &App,
    project: &Project,
    id: &AccountId,
    changes: Changes,
) -> Result<Status> {
    let alias = changes
        .alias
        .map(|alias| parse_alias(Some(alias)))
        .transpose()?;
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let now = app.clock.now();
        let mut account = record(app, project, id).await?;
        let mut batch = Batch::at(now);
        let body = &mut account.body;
        let sharing = body.sharing.with(&changes.sharing)?;
        if sharing != body.sharing {
            (body.sharing, body.changed_at) = (sharing, now);
        }
        if let Some(alias) = &alias {
            body.alias_of = alias
                .as_ref()
                .map(|alias| unique_alias(&body.user_id, &body.toolkit, alias));
            body.alias.clone_from(alias);
            body.changed_at = now;
        }
        if let Some((scheme, given)) = &changes.fields {
            let credential = fill(app, project, id, &mut account, scheme, given).await?;
            account.body.changed_at = now;
            batch = batch.update(&credential);
        }
        Ok((batch.update(&account), account.body.status))
    });
    changed.await.map_err(map_alias_conflict)
}
