//! Erasure of many records in small batches, so that other writers are not delayed. Under a claim, a
//! server that has lost it erases nothing.

use store::{Batch, Collection, CommitError, Query};

use super::claim::{Claim, Claimable};
use crate::{App, Result};

/// Erases all records of a list under a claim, as [`erase_list`] does.
pub(crate) async fn erase_all<T: Claimable>(
    claim: &Claim<T>,
    collection: &'static Collection,
    query: Query,
    page_records: u64,
) -> Result<()> {
    let query = query.page(0, page_records).uncounted().without_bodies();
    loop {
        let rows = claim.store().rows(collection, &query).await?.rows;
        if rows.is_empty() {
            return Ok(());
        }
        let batch = claim.batch().await?;
        let batch = rows
            .iter()
            .fold(batch, |batch, row| batch.purge_row(collection, row));
        claim.succeeded(claim.commit(batch).await).await?;
        tokio::task::yield_now().await;
    }
}

/// Erases all records of a list, `page_records` at a time. Their bodies are not read. Records that are
/// changed meanwhile are read again.
pub(crate) async fn erase_list(
    app: &App,
    collection: &'static Collection,
    query: Query,
    page_records: u64,
) -> Result<()> {
    let query = query.page(0, page_records).uncounted().without_bodies();
    loop {
        let rows = app.store.rows(collection, &query).await?.rows;
        if rows.is_empty() {
            return Ok(());
        }
        let batch = rows.iter().fold(Batch::at(app.clock.now()), |batch, row| {
            batch.purge_row(collection, row)
        });
        match app.store.commit(batch).await {
            Ok(()) | Err(CommitError::Stale) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}
