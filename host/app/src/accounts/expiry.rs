//! Expiry of connected accounts: a connected account expires when its credential can no longer be
//! refreshed, and in no other way. A pending account whose time ends was never connected.

use store::{Batch, Record};

use super::{
    Account, AccountView, Event, TokenManager, Values, auth_configs, scheme, tokens::TokenOwner,
};
use crate::Result;

impl TokenManager {
    /// Adds the expiry of an account to a batch, unless the account is not connected any more.
    pub(super) async fn add_expiry(
        &self,
        owner: &TokenOwner,
        batch: Batch,
        mut account: Record<Account>,
        values: &Values,
        reason: &str,
    ) -> Result<Batch> {
        let Some(status) = account.body.status.after(Event::RefreshFailed) else {
            return Ok(batch);
        };
        account.body.set_status(status, Some(reason), batch.now);
        let batch = batch.update(&account);
        let config = auth_configs::find(&self.store, &owner.project, &owner.auth_config).await?;
        let values = scheme::mask_values(owner.scheme().ok(), values);
        let view = AccountView::new(account, values, config.as_ref());
        self.expiry.add(batch, view).await
    }
}
