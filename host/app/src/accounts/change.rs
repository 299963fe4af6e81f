//! Changes of accounts: pause and resume, alias, sharing, and field values.

use manifest::AuthScheme;
use store::{Batch, Record};

use super::{
    Account, Event, SharingChange, Status, Values,
    account::{COLLECTION, map_alias_conflict, parse_alias, record, status_conflict, unique_alias},
    auth_configs,
    authorize::user_values,
    credential::open_credential,
    scheme,
    tokens::obtains_from_fields,
};
use crate::{
    App, Result, accounts::errors, catalog::LATEST, core::ids::AccountId, projects::Project,
};

/// Pauses or resumes an account.
///
/// # Errors
/// Fails if the account does not exist or is not connected, or if the store refuses.
pub async fn set_enabled(
    app: &App,
    project: &Project,
    id: &AccountId,
    enabled: bool,
) -> Result<()> {
    let now = app.clock.now();
    let event = if enabled {
        Event::Enabled
    } else {
        Event::Disabled
    };
    let change = |account: &mut Account| -> Result<()> {
        let status = account
            .status
            .after(event)
            .ok_or_else(|| status_conflict(id, account.status, event))?;
        account.set_status(status, None, now);
        Ok(())
    };
    let done = app
        .store
        .edit(project.id.as_str(), id.as_str(), now, change)
        .await?;
    done.ok_or_else(|| errors::account_not_found(id))
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

/// Changes the alias, the sharing or the field values of an account. Returns its status.
///
/// # Errors
/// Fails if the account does not exist, the alias is taken, lists are given for a private account,
/// the fields are incomplete, the tokens come from the provider, or the store refuses.
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
        let sharing = account.body.sharing.with(&changes.sharing)?;
        if sharing != account.body.sharing {
            (account.body.sharing, account.body.changed_at) = (sharing, now);
        }
        if let Some(alias) = &alias {
            let body = &mut account.body;
            body.alias_of = alias.as_ref().map(|alias| unique_alias(&body.user_id, &body.toolkit, alias));
            body.alias.clone_from(alias);
            body.changed_at = now;
        }
        if let Some((scheme, given)) = &changes.fields {
            let release = app.catalog.release(&account.body.toolkit, LATEST)?;
            let mode = auth_configs::offered_scheme(&release, scheme)?;
            if mode != account.body.scheme || mode.redirects() {
                return Err(errors::account_refused(format!(
                    "account {id} is connected with {}: only fields of this scheme can be changed, and tokens cannot be set",
                    account.body.scheme.as_str()
                )));
            }
            let (values, credential) = open_credential(app, project, &account).await?;
            let scheme = release.scheme(mode);
            let mut values = merged_values(scheme, user_values(mode, &values), given)?;
let mut lifetime = None;
            if let Some(scheme) = scheme.filter(|_| obtains_from_fields(mode)) {
                let config = auth_configs::get(app, project, &account.body.auth_config).await?;
                (values, lifetime) = app.accounts.obtain(&config, scheme, values).await?;
            }
            let body = app.accounts.build_credential(&project.id, id, scheme, &values, lifetime).await?;
            batch = batch.update(&Record { body, ..credential });
            let status = account.body.status;
            let status = status.after(Event::Filled).ok_or_else(|| status_conflict(id, status, Event::Filled))?;
            account.body.set_status(status, None, now);
        }
        Ok((batch.update(&account), account.body.status))
    });
    changed.await.map_err(map_alias_conflict)
}

/// Merges given values over existing ones; null removes a value.
fn merged_values(
    scheme: Option<&AuthScheme>,
    mut values: Values,
    given: &Values,
) -> Result<Values> {
    // A key may also be sent, and be stored, under a general name.
    let normalize = |values| match scheme {
        Some(scheme) => scheme::normalize_names(scheme, values),
        None => values,
    };
    values.extend(normalize(given.clone()));
    values = normalize(values);
    values.retain(|_, value| !value.is_null());
    match scheme {
        Some(scheme) => scheme::complete(scheme, values).map_err(errors::account_fields),
        None => Ok(values),
    }
}
