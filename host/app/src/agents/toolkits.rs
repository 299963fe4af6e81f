//! The toolkits of a session, with the accounts that it uses for them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{Config, SessionCaller, errors, scope};
use crate::{
    App, Result,
    accounts::{self, SessionAccount, oauth_apps},
    catalog::{AuthMode, Snapshot, Toolkit, ToolkitFilter, ToolkitKind, ToolkitOrder},
    core::shown_slug,
};

/// A filter for the toolkits of a session.
#[derive(Debug, Default)]
pub struct SessionToolkitFilter {
    /// Slugs of toolkits, which are listed whether the session permits them or not; those that it
    /// permits without any.
    pub slugs: Vec<String>,
    /// True for toolkits with an active account only.
    pub connected: bool,
    /// The search words.
    pub search: String,
}

/// A toolkit as a session sees it.
#[derive(Debug)]
pub struct SessionToolkit {
    /// The toolkit.
    pub toolkit: Arc<Toolkit>,
    /// True if the session permits it.
    pub enabled: bool,
    /// True if the operator has an OAuth app for it.
    pub managed: bool,
    /// The account that the session uses for it.
    pub account: Option<Arc<SessionAccount>>,
}

/// Returns the toolkits of a session that match a filter.
pub async fn toolkits(
    app: &App,
    caller: &SessionCaller,
    catalog: &Snapshot,
    filter: SessionToolkitFilter,
) -> Result<Vec<SessionToolkit>> {
    let config = caller.config();
    let is_named = !filter.slugs.is_empty();
    let accounts = accounts_by_toolkit(app, caller).await?;
    let apps = oauth_apps::list(app).await?;
    let managed: HashSet<_> = apps.into_iter().map(|app| app.id).collect();
    let matches = catalog.find_toolkits(&ToolkitFilter {
        slugs: filter.slugs,
        category: String::new(),
        search: filter.search,
        deprecated: is_named,
        order: ToolkitOrder::Newest,
        kind: ToolkitKind::Any,
    });
    let views = matches.into_iter().map(|toolkit| SessionToolkit {
        enabled: scope::permit_toolkit(config, &toolkit.slug).is_ok(),
        managed: managed.contains(&*toolkit.slug)
            && toolkit.current().scheme(AuthMode::Oauth2).is_some(),
        account: accounts.get(&*toolkit.slug).cloned(),
        toolkit,
    });
    Ok(views
        .filter(|view| is_named || view.enabled)
        .filter(|view| !filter.connected || view.account.is_some())
        .collect())
}

/// Finds a toolkit that a field of a call names.
pub(super) fn named<'c>(
    catalog: &'c Snapshot,
    field: &str,
    slug: &str,
) -> Result<&'c Arc<Toolkit>> {
    catalog.toolkit(slug.trim()).ok_or_else(|| {
        catalog.missing([slug], || {
            let suggested = format!("{}{}", shown_slug(slug), catalog.similar_toolkit(slug));
            let line = format!("{field}: there is no {suggested}");
            errors::invalid_toolkit_slugs(suggested).with_contained_problems(vec![line])
        })
    })
}

/// Returns the account that a session uses by default for each toolkit, if it is active.
pub(super) async fn accounts_by_toolkit(
    app: &App,
    caller: &SessionCaller,
) -> Result<HashMap<String, Arc<SessionAccount>>> {
    let config = caller.config();
    let pinned: Vec<_> = config
        .connected_accounts
        .values()
        .filter_map(|ids| ids.first())
        .collect();
    let user = &config.user_id;
    let usable = accounts::accounts_of_session(app, &caller.project, user, &pinned).await?;
    let mut by_toolkit = HashMap::new();
    for account in usable {
        if may_be_default(config, &account) {
            by_toolkit
                .entry(account.record.body.toolkit.clone())
                .or_insert_with(|| Arc::new(account));
        }
    }
    Ok(by_toolkit)
}

/// Returns true if a session uses an account unless a call names another.
fn may_be_default(config: &Config, account: &SessionAccount) -> bool {
    let record = &account.record;
    let toolkit = &record.body.toolkit;
    match (
        config.connected_accounts.get(toolkit),
        config.auth_configs.get(toolkit),
    ) {
        (Some(pinned), _) => pinned
            .first()
            .is_some_and(|first| first.as_str() == record.id),
        (None, Some(auth_config)) => {
            record.body.auth_config == *auth_config && !account.is_shared()
        }
        (None, None) => account.in_sessions && !account.is_shared(),
    }
}
