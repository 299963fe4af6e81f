//! Expiry of connected accounts, which is an event.
//!
//! The event is stored in the batch in which the account expires. Its data are those that a request
//! for the account returns then, with every secret masked.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use store::Batch;

use super::{
    AccountData, errors,
    event::{EventKind, NewEvent},
    outbox::Outbox,
};
use crate::{
    Result,
    accounts::{AccountView, ExpiryListener},
    core::ids::{AccountId, ProjectId},
};

/// Makes an event of each expiry of an account.
pub(crate) struct ExpiryEvents {
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) data: AccountData,
}

impl ExpiryListener for ExpiryEvents {
    fn add(&self, batch: Batch, account: AccountView) -> BoxFuture<'_, Result<Batch>> {
        async move {
            let project = ProjectId::parse(&account.record.project)?;
            let id = AccountId::parse(&account.record.id)?;
            let data = (self.data)(account)
                .map_err(|cause| errors::internal(format!("cannot write an event: {cause}")))?;
            let event = NewEvent {
                account: Some(id),
                ..NewEvent::new(EventKind::AccountExpired, data.into())
            };
            self.outbox.add(&project, batch, &event).await
        }
        .boxed()
    }
}
