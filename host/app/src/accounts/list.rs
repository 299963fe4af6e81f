//! Accounts as responses show them, alone and in lists.

use serde_json::Value;
use store::{Listed, Query, Record, Time, Window};
use uuid::Uuid;

use super::{
    Account, AccountType, Status, Values,
    account::record,
    auth_configs::{self, AuthConfig},
    authorize::REDIRECT_URL_VALUE,
    credential::{OUTCOME_UNKNOWN_REASON, open_credential},
    scheme,
};
use crate::{
    App, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::ids::AccountId,
    projects::Project,
};

/// An account as responses show it.
#[derive(Debug)]
pub struct AccountView {
    /// The account.
    pub record: Record<Account>,
    /// Values of the account, masked unless the project has disabled masking.
    pub values: Values,
    /// Legacy id of the auth config, if the config still exists.
    pub config_uuid: Option<Uuid>,
    /// True if the auth config is disabled or deleted.
    pub config_disabled: bool,
    /// True if the auth config uses the operator's OAuth app.
    pub managed: bool,
    /// Authorization address, while the account waits for its user.
    pub redirect_url: Option<String>,
}

/// Filter for lists of accounts. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Slugs of toolkits.
    pub toolkits: Vec<String>,
    /// Statuses.
    pub statuses: Vec<Status>,
    /// User ids.
    pub users: Vec<String>,
    /// Ids of auth configs.
    pub auth_configs: Vec<String>,
    /// Ids of accounts.
    pub ids: Vec<String>,
    /// Private or shared accounts; both if absent.
    pub account_type: Option<AccountType>,
    /// True to sort by last change instead of by creation.
    pub by_change: bool,
    /// True for the oldest first.
    pub ascending: bool,
    /// Latest time of creation.
    pub until: Option<Time>,
}

/// Returns an account of the project.
///
/// # Errors
/// Fails if the account does not exist.
pub async fn get(app: &App, project: &Project, id: &AccountId) -> Result<AccountView> {
    let record = record(app, project, id).await?;
    let config = auth_configs::find(app, project, &record.body.auth_config).await?;
    to_view(app, project, record, config.as_ref()).await
}

/// Returns a page of accounts and their total number.
///
/// # Errors
/// Fails if the store cannot be read or a credential cannot be decrypted.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<AccountView>> {
    let mut query = Query::for_project(project.id.as_str()).window(window);
    for (field, accepted) in [
        ("toolkit", &filter.toolkits),
        ("user_id", &filter.users),
        ("auth_config", &filter.auth_configs),
        ("id", &filter.ids),
    ] {
        if !accepted.is_empty() {
            query = query.any_of(field, accepted.iter().map(String::as_str));
        }
    }
    if !filter.statuses.is_empty() {
        query = query.any_of(
            "status",
            filter.statuses.iter().map(|status| status.into_str()),
        );
    }
    query = match filter.account_type {
        None => query,
        // Accounts that are older than sharing have no account type.
        Some(AccountType::Private) => query.is_not("account_type", AccountType::Shared.into_str()),
        Some(AccountType::Shared) => query.is("account_type", AccountType::Shared.into_str()),
    };
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    if filter.by_change {
        query = query.order_by("changed_at");
    }
    if !filter.ascending {
        query = query.descending();
    }
    let Listed {
        items: records,
        total,
        next,
    } = app.store.list::<Account>(&query).await?;
    let mut configs = std::collections::HashMap::new();
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        let id = record.body.auth_config.clone();
        if !configs.contains_key(&id) {
            configs.insert(id.clone(), auth_configs::find(app, project, &id).await?);
        }
        let config = configs.get(&id).and_then(Option::as_ref);
        match to_view(app, project, record, config).await {
            // The account was deleted after the page was read.
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_FOUND) => {}
            done => views.push(done?),
        }
    }
    Ok(Listed {
        items: views,
        total,
        next,
    })
}

async fn to_view(
    app: &App,
    project: &Project,
    mut record: Record<Account>,
    config: Option<&Record<AuthConfig>>,
) -> Result<AccountView> {
    let (mut values, credential) = open_credential(app, project, &record).await?;
    if record.body.status.is_connected() && credential.body.is_uncertain(app.clock.now()) {
        record.body.status_reason = Some(OUTCOME_UNKNOWN_REASON.to_owned());
    }
    if !matches!(record.body.status, Status::Initializing | Status::Initiated) {
        // The address contains a secret and is no longer valid.
        values.remove(REDIRECT_URL_VALUE);
    }
    let redirect_url = values
        .get(REDIRECT_URL_VALUE)
        .and_then(Value::as_str)
        .map(str::to_owned);
    if project.stored.config.mask_secrets {
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        values = scheme::mask_values(
            release
                .as_deref()
                .and_then(|release| scheme_of(release, &record.body)),
            &values,
        );
    }
    Ok(AccountView {
        values,
        redirect_url,
        config_uuid: config.map(|config| config.body.uuid),
        config_disabled: config
            .is_none_or(|config| config.body.status == auth_configs::Status::Disabled),
        managed: config.is_some_and(|config| config.body.managed),
        record,
    })
}

fn scheme_of<'a>(release: &'a Release, account: &Account) -> Option<&'a manifest::AuthScheme> {
    release.scheme(account.scheme)
}
