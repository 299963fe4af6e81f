//! Accounts as responses show them, alone and in lists.

use std::collections::HashSet;

use serde_json::Value;
use store::{Cursor, Listed, Query, Record, Time, Window};
use uuid::Uuid;

use super::{
    Account, AccountType, Status, Values,
    account::{AUTH_CONFIG_GONE, record},
    auth_configs::{self, AuthConfig},
    credential::{Credential, REDIRECT_URL_VALUE, open_values},
    scheme,
};
use crate::{
    App, Result,
    accounts::errors,
    catalog::LATEST,
    core::{ids::AccountId, large_pages::LargePage},
    projects::Project,
};

/// Number of accounts whose credentials and auth configs are read at a time. They have up to 64 and 128 KiB.
const ACCOUNTS_PER_READ: usize = 32;

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

/// An account as one request stored it. Answers show this, because a read after the commit shows what
/// other requests did since then.
pub(super) struct Connected {
    pub(super) account: Record<Account>,
    pub(super) credential: Record<Credential>,
    pub(super) config: Record<AuthConfig>,
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

/// Returns an account of the project. Fails if the account does not exist.
pub async fn get(app: &App, project: &Project, id: &AccountId) -> Result<AccountView> {
    let record = record(app, project, id).await?;
    let (mut views, _) = views(app, project, vec![record]).await?;
    views.pop().ok_or_else(|| errors::account_not_found(id))
}

/// Returns the view of an account that was connected with a request, as this request stored it.
pub(super) async fn connected_view(
    app: &App,
    project: &Project,
    connected: Connected,
) -> Result<AccountView> {
    let credential = &connected.credential;
    let values = open_values(&app.vault, credential, app.clock.now()).await?;
    let (account, config) = (connected.account, Some(&connected.config));
    Ok(view(app, project, account, credential, values, config))
}

/// Returns a page of accounts and their total number. A page whose values have more than
/// [`MAX_PAGE_BYTES`](store::MAX_PAGE_BYTES) ends before its limit. Fails if a credential cannot be decrypted.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<AccountView>> {
    let statuses = filter.statuses.iter().map(|status| status.into_str());
    let mut query = Query::for_project(project.id.as_str())
        .window(window)
        .filter("status", statuses);
    for (field, accepted) in [
        ("toolkit", &filter.toolkits),
        ("user_id", &filter.users),
        ("auth_config", &filter.auth_configs),
        ("id", &filter.ids),
    ] {
        query = query.filter(field, accepted.iter().map(String::as_str));
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
    let accounts = app.store.list::<Account>(&query).await?;
    let mut page = LargePage::new(accounts, ACCOUNTS_PER_READ);
    while let Some(part) = page.next_part(|record| cursor(record, filter.by_change)) {
        let (views, bytes) = views(app, project, part).await?;
        page.add(views, bytes);
    }
    Ok(page.end())
}

fn cursor(record: &Record<Account>, by_change: bool) -> Cursor {
    Cursor {
        value: by_change.then(|| record.body.changed_at.0.into()),
        ..Cursor::at(record)
    }
}

/// Returns the views of accounts, without those that were deleted after they were read, and the size
/// of their values in the store. Reads all credentials with one query, and all auth configs with
/// another.
async fn views(
    app: &App,
    project: &Project,
    records: Vec<Record<Account>>,
) -> Result<(Vec<AccountView>, usize)> {
    let owner = project.id.as_str();
    let ids: Vec<&str> = records.iter().map(|record| &*record.id).collect();
    let credentials = app.store.get_many::<Credential>(owner, &ids).await?;
    let unique_configs: HashSet<&str> = records
        .iter()
        .map(|record| record.body.auth_config.as_str())
        .collect();
    let config_ids: Vec<&str> = unique_configs.into_iter().collect();
    let configs = app.store.get_many::<AuthConfig>(owner, &config_ids).await?;
    let now = app.clock.now();
    let mut views = Vec::with_capacity(records.len());
    let mut bytes = 0;
    for record in records {
        if let Some(credential) = credentials.get(&record.id) {
            bytes += credential.body.values.size();
            let values = open_values(&app.vault, credential, now).await?;
            let config = configs.get(record.body.auth_config.as_str());
            views.push(view(app, project, record, credential, values, config));
        }
    }
    Ok((views, bytes))
}

fn view(
    app: &App,
    project: &Project,
    mut record: Record<Account>,
    credential: &Record<Credential>,
    mut values: Values,
    config: Option<&Record<AuthConfig>>,
) -> AccountView {
    let problem = match config {
        Some(_) => credential.body.refresh_problem(app.clock.now()),
        None => Some(AUTH_CONFIG_GONE),
    };
    if record.body.status.is_connected() && problem.is_some() {
        record.body.status_reason = problem.map(str::to_owned);
    }
    let redirect_url = values
        .get(REDIRECT_URL_VALUE)
        .and_then(Value::as_str)
        .map(str::to_owned);
    if project.stored.config.mask_secrets {
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        let mode = record.body.scheme;
        let scheme = release.as_ref().and_then(|release| release.scheme(mode));
        values = scheme::mask_values(scheme, &values);
    }
    let mut view = AccountView::new(record, values, config);
    if view.record.body.status.is_pending() {
        view.redirect_url = redirect_url;
    }
    view
}

impl AccountView {
    /// Returns the view of an account without an authorization address.
    pub(super) fn new(
        record: Record<Account>,
        mut values: Values,
        config: Option<&Record<AuthConfig>>,
    ) -> Self {
        if !record.body.status.is_pending() {
            // The address contains a secret and is not valid anymore.
            values.remove(REDIRECT_URL_VALUE);
        }
        Self {
            values,
            redirect_url: None,
            config_uuid: config.map(|config| config.body.uuid),
            config_disabled: config
                .is_none_or(|config| config.body.status == auth_configs::Status::Disabled),
            managed: config.is_some_and(|config| config.body.managed),
            record,
        }
    }
}
