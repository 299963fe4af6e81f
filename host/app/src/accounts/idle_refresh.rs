//! The job that refreshes the tokens of idle accounts.

use std::time::Duration;

use store::{Batch, CommitError, Query, Record};
use tokio::task::JoinSet;

use super::{Account, Status, credential::Credential, refresh::RefreshReason, tokens::TokenOwner};
use crate::{
    App, Result,
    catalog::LATEST,
    core::ids::{AccountId, ProjectId},
    projects,
    work::JobClaim,
};

/// Interval of the job that refreshes idle accounts.
pub(crate) const IDLE_REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of idle accounts that one run of the job refreshes.
const IDLE_REFRESH_BATCH_SIZE: u64 = 50;

/// Concurrency of these refreshes. Several at a time limit the delay that an unresponsive provider
/// causes for the other accounts.
const IDLE_REFRESH_CONCURRENCY: usize = 8;

/// Refreshes accounts that have been idle for a long time, so that their refresh tokens do not
/// expire unused.
pub(crate) async fn refresh_idle(app: &App, claim: &JobClaim) -> Result<()> {
    let now = app.accounts.now().await?;
    let query = Query::all_projects()
        .below("due", now.0.saturating_add(1))
        .order_by("due")
        .page(0, IDLE_REFRESH_BATCH_SIZE);
    let mut refreshing = JoinSet::new();
    for record in app.store.find::<Credential>(&query).await?.records {
        let account = if projects::is_live(&app.store, &record.project).await? {
            app.store
                .get::<Account>(&record.project, &record.id)
                .await?
        } else {
            None
        };
        let release = account
            .as_ref()
            .and_then(|account| app.catalog.release(&account.body.toolkit, LATEST).ok());
        match (account, release) {
            (Some(account), Some(release)) if account.body.status == Status::Active => {
                let owner = TokenOwner {
                    project: ProjectId::parse(&record.project)?,
                    account: AccountId::parse(&record.id)?,
                    auth_config: account.body.auth_config,
                    release,
                    mode: account.body.scheme,
                };
                if refreshing.len() >= IDLE_REFRESH_CONCURRENCY {
                    refreshing.join_next().await;
                }
                let manager = app.accounts.clone();
                // Failures are stored with the account and logged.
                refreshing.spawn(async move {
                    manager
                        .fresh_values(&owner, RefreshReason::Idle)
                        .await
                        .is_ok()
                });
            }
            _ => {
                let body = Credential {
                    due: None,
                    ..record.body
                };
                match claim
                    .commit(Batch::at(now).update(&Record { body, ..record }))
                    .await
                {
                    Err(CommitError::Stale) => claim.check().await?,
                    done => done?,
                }
            }
        }
    }
    while refreshing.join_next().await.is_some() {}
    Ok(())
}
