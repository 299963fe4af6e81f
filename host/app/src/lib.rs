//! The logic of the server, in one module per concept. A module owns its collections, and no other
//! module writes them.
//!
//! Public functions take the [`App`] first, then the project, then a request. This crate does not
//! know the transport of requests. Good modules to read first are [`tools`], [`catalog`] and
//! [`connections`].
pub mod archive;
pub mod auth_configs;
pub mod catalog;
pub mod clock;
pub mod connections;
mod error;
pub mod files;
pub mod idempotency;
pub mod ids;
mod jobs;
pub mod json;
pub mod large_work;
pub mod legacy;
pub mod projects;
pub mod quotas;
pub mod tools;
pub mod vault;

use std::sync::Arc;

use sandbox::Sandbox;
use store::{Collection, Store};

pub use clock::Clock;
pub use error::{Error, ErrorInfo, Result};
pub use store::{Cursor, Listed, Record, Scalar, Time, Window};

/// The value of the project field in records that belong to the whole installation.
pub(crate) const INSTALLATION: &str = "installation";

/// Every collection. The store is opened with this list.
pub static COLLECTIONS: &[&Collection] = &[
    &vault::COLLECTION,
    &projects::ORGANIZATIONS_COLLECTION,
    &projects::PROJECTS,
    &projects::API_KEYS,
    &projects::REMOVALS,
    &projects::members::COLLECTION,
    &catalog::COLLECTION,
    &catalog::PUBLICATIONS_COLLECTION,
    &catalog::USAGE,
    &auth_configs::COLLECTION,
    &connections::COLLECTION,
    &connections::CREDENTIALS,
    &connections::CONNECTION_ATTEMPTS,
    &connections::apps::COLLECTION,
    &connections::CLIENTS,
    &legacy::COLLECTION,
    &files::COLLECTION,
    &files::TOTALS,
    &tools::log::PAGES,
    &tools::log::DETAILS,
    &tools::log::CASSETTES,
    &idempotency::COLLECTION,
    &quotas::COLLECTION,
    &jobs::LEASES,
    &jobs::FENCES,
];

/// The state that all modules share.
pub struct App {
    pub(crate) store: Store,
    /// The vault of secrets.
    pub vault: Arc<vault::Vault>,
    pub(crate) sandbox: Sandbox,
    /// The threads for work on large bodies.
    pub large_work: large_work::LargeWork,
    /// The clock.
    pub clock: Clock,
    /// The toolkits and tools.
    pub catalog: catalog::Catalog,
    pub(crate) trusted: catalog::TrustedKeys,
    /// The number of executions per toolkit.
    pub(crate) usage: Arc<catalog::Usage>,
    /// The language model that turns prompts into arguments.
    pub(crate) model: Option<tools::prompt::Model>,
    /// The cache of API keys.
    pub keys: projects::KeyCache,
    pub(crate) log: tools::log::Log,
    /// The tokens of connected accounts.
    pub(crate) accounts: Arc<connections::TokenManager>,
    /// The files of projects.
    pub files: files::Files,
    /// The bytes that projects have written in a day.
    pub(crate) quotas: Arc<quotas::Quotas>,
    /// The generator of log ids and request ids.
    pub sequence: ids::Sequence,
}

/// The parts that an [`App`] is built from.
pub struct Parts {
    /// The store, opened with [`COLLECTIONS`].
    pub store: Store,
    /// The vault, opened on the same store.
    pub vault: Arc<vault::Vault>,
    /// The sandbox that runs tools.
    pub sandbox: Sandbox,
    /// The threads for work on large bodies.
    pub large_work: large_work::LargeWork,
    /// The file that holds the schemas of tools.
    pub schema_file: catalog::SchemaFile,
    /// The clock.
    pub clock: Clock,
    /// The settings of the execution log.
    pub log: tools::log::Settings,
    /// The settings of files.
    pub files: files::Settings,
    /// The settings of connecting accounts.
    pub connections: connections::Settings,
    /// The keys whose signatures of components are trusted.
    pub trusted: catalog::TrustedKeys,
    /// The settings of the language model, or `None` if the operator configured none.
    pub model: Option<tools::prompt::Settings>,
    /// The bytes that each project may write in a day.
    pub quotas: quotas::Settings,
}

impl App {
    /// Reads the catalog and builds the app. Starts no task: the caller must run the returned
    /// writer of the execution log until it ends.
    ///
    /// # Errors
    /// Returns an error if the catalog or the daily quotas cannot be read.
    pub async fn open(parts: Parts) -> Result<(Self, tools::log::Writer)> {
        let Parts {
            store,
            vault,
            sandbox,
            large_work,
            schema_file,
            clock,
            log,
            files,
            connections,
            trusted,
            model,
            quotas,
        } = parts;
        let catalog = catalog::load(&store, schema_file).await?;
        let usage = Arc::new(catalog::Usage::default());
        let quotas = Arc::new(quotas::Quotas::open(quotas, &store).await?);
        let (log, writer) = tools::log::open(
            log,
            store.clone(),
            vault.clone(),
            clock.clone(),
            usage.clone(),
            quotas.clone(),
        );
        let keys = projects::KeyCache::new(&vault);
        let accounts = connections::TokenManager::new(
            store.clone(),
            vault.clone(),
            clock.clone(),
            connections,
        );
        let files = files::Files::new(files::Links::new(&vault), files);
        let app = Self {
            store,
            vault,
            sandbox,
            large_work,
            clock,
            catalog,
            trusted,
            usage,
            model: model.map(tools::prompt::Model::new),
            keys,
            log,
            accounts: Arc::new(accounts),
            files,
            quotas,
            sequence: ids::Sequence::new(),
        };
        Ok((app, writer))
    }

    /// Keeps the data in memory consistent with changes made by other servers on the same store.
    /// Never returns.
    pub async fn watch_changes(&self) {
        loop {
            let change = self.store.changed().await;
            let done = async {
                projects::refresh(self).await?;
                catalog::refresh(self, change).await
            };
            if let Err(cause) = done.await {
                tracing::warn!(%cause, "changes of other servers could not be read");
            }
        }
    }

    /// Runs the recurring jobs that are due and whose lease this server gets, and writes key uses
    /// and daily quotas to the store. Never returns.
    pub async fn run_jobs(&self) {
        tokio::join!(
            jobs::run_jobs(self),
            projects::write_key_uses(self),
            quotas::run_loop(self)
        );
    }

    /// Returns the base URL at which clients reach this server.
    pub(crate) fn base_url(&self) -> &str {
        self.files.links.base_url()
    }

    /// Returns the reason why the store accepts no changes, or `None` if it does.
    #[must_use]
    pub fn store_problem(&self) -> Option<String> {
        match self.store.health() {
            store::Health::Ready => None,
            store::Health::Full => Some("the disk is full".into()),
            store::Health::Unreachable(why) => {
                Some(format!("the database does not respond: {why}"))
            }
            store::Health::Failed(why) => Some(format!("the store has failed: {why}")),
            store::Health::Closed => Some("the store is closed".into()),
        }
    }
}

/// Length in characters of the shortest secret of which responses show a part.
pub(crate) const MIN_SHOWN_SECRET_CHARS: usize = 8;

/// Truncates a text from outside to the length that a message needs.
pub(crate) fn truncate(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the rendered tables with the committed schema, so that every change of a
    /// collection's declaration is reviewed as a change of the tables.
    #[test]
    fn the_tables_are_the_committed_ones() {
        let rendered = store::schema(COLLECTIONS);
        assert_eq!(
            rendered,
            include_str!("../../store/schema.sql"),
            "write to host/store/schema.sql:\n{rendered}"
        );
    }
}
