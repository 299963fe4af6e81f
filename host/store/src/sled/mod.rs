//! The embedded backend.

use crate::{Backend, Batch, Collection, CommitError, Error, Health, OpenError, Page, Query, Report, Row};
use async_trait::async_trait;
use std::path::Path;

/// The embedded store.
pub(crate) struct Sled;

impl Sled {
    /// Opens a store.
    pub(crate) fn open(_at: &Path, _collections: &'static [&'static Collection]) -> Result<Sled, OpenError> {
        Ok(Sled)
    }
}

#[async_trait]
impl Backend for Sled {
    async fn get(&self, _at: &'static Collection, _id: &str) -> Result<Option<Row>, Error> {
        Err(Error::Unavailable("being built".into()))
    }
    async fn find(&self, _at: &'static Collection, _query: &Query) -> Result<Page, Error> {
        Err(Error::Unavailable("being built".into()))
    }
    async fn commit(&self, _batch: Batch) -> Result<(), CommitError> {
        Err(CommitError::Unavailable("being built".into()))
    }
    fn health(&self) -> Health {
        Health::Closed
    }
    async fn verify(&self) -> Result<Report, Error> {
        Err(Error::Unavailable("being built".into()))
    }
    async fn close(&self) {}
}
