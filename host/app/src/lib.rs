//! Decides. One room per concept; a room owns its collections, and nobody else writes them.
//!
//! Public functions take the [`App`] first, then the project, then a request. Nothing here knows how requests arrive. Good
//! rooms to read first: [`tools`], then [`catalog`], then [`connections`].

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
pub mod legacy;
pub mod projects;
pub mod quotas;
pub mod tools;
pub mod vault;

use std::sync::Arc;

use sandbox::Sandbox;
use store::{Collection, Store};

pub use clock::Clock;
pub use error::{Error, Result, Row};
pub use store::{Listed, Mark, Record, Scalar, Time, Window};

/// Stands where a record has its project, in records of the whole installation.
pub(crate) const INSTALLATION: &str = "installation";

/// Every collection, for whoever opens the store.
pub static COLLECTIONS: &[&Collection] = &[
    &vault::COLLECTION,
    &projects::ORGANISATIONS,
    &projects::PROJECTS,
    &projects::API_KEYS,
    &projects::REMOVALS,
    &projects::members::COLLECTION,
    &catalog::COLLECTION,
    &catalog::USAGE,
    &auth_configs::COLLECTION,
    &connections::COLLECTION,
    &connections::CREDENTIALS,
    &connections::FLOWS,
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

/// What every room works with.
pub struct App {
    pub(crate) store: Store,
    /// Secrets at rest.
    pub vault: Arc<vault::Vault>,
    pub(crate) sandbox: Sandbox,
    /// Time.
    pub clock: Clock,
    /// What can be called.
    pub catalog: catalog::Catalog,
    pub(crate) trusted: catalog::TrustedKeys,
    /// How often toolkits run.
    pub(crate) usage: Arc<catalog::Usage>,
    /// Makes arguments of sentences.
    pub(crate) model: Option<tools::text::Model>,
    /// Keys in memory.
    pub keys: projects::Keys,
    pub(crate) log: tools::log::Log,
    /// Tokens of accounts.
    pub(crate) accounts: Arc<connections::Keeper>,
    /// Files of projects.
    pub files: files::Files,
    /// Bytes that projects have written in a day.
    pub(crate) quotas: Arc<quotas::Quotas>,
    /// Ids of logs and requests.
    pub sequence: ids::Sequence,
}

/// What an app is made of.
pub struct Parts {
    /// Opened with [`COLLECTIONS`].
    pub store: Store,
    /// Opened on the same store.
    pub vault: Arc<vault::Vault>,
    /// Runs tools.
    pub sandbox: Sandbox,
    /// Where the schemas of tools go.
    pub texts: catalog::Texts,
    /// Time.
    pub clock: Clock,
    /// The execution log.
    pub log: tools::log::Settings,
    /// Files.
    pub files: files::Settings,
    /// Connecting accounts.
    pub connections: connections::Settings,
    /// Who may sign components.
    pub trusted: catalog::TrustedKeys,
    /// The language model; none when the operator has set none.
    pub model: Option<tools::text::Settings>,
    /// Bytes that each project may write in a day.
    pub quotas: quotas::Settings,
}

impl App {
    /// Reads the catalogue and starts nothing: the writer of the execution log is handed out, to be run until it ends.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn open(parts: Parts) -> Result<(Self, tools::log::Writer)> {
        let Parts { store, vault, sandbox, texts, clock, log, files, connections, trusted, model, quotas } = parts;
        let catalog = catalog::load(&store, texts).await?;
        let usage = Arc::new(catalog::Usage::default());
        let quotas = Arc::new(quotas::Quotas::open(quotas, &store).await?);
        let (log, writer) =
            tools::log::open(log, store.clone(), vault.clone(), clock.clone(), usage.clone(), quotas.clone());
        let keys = projects::Keys::new(&vault);
        let accounts = connections::Keeper::new(store.clone(), vault.clone(), clock.clone(), connections);
        let files = files::Files::new(files::Links::new(&vault), files);
        let app = Self {
            store,
            vault,
            sandbox,
            clock,
            catalog,
            trusted,
            usage,
            model: model.map(tools::text::Model::new),
            keys,
            log,
            accounts: Arc::new(accounts),
            files,
            quotas,
            sequence: ids::Sequence::new(),
        };
        Ok((app, writer))
    }

    /// Keeps what is in memory in step with what other servers on the same store do. Does not end.
    pub async fn follow(&self) {
        loop {
            let change = self.store.changed().await;
            let done = async {
                projects::refresh(self).await?;
                catalog::refresh(self, change).await
            };
            if let Err(cause) = done.await {
                tracing::warn!(%cause, "cannot see what other servers have changed");
            }
        }
    }

    /// Does the work that recurs, whenever this server has the lease of a job that is due, and writes down
    /// when keys were used and how much projects have written. Does not end.
    pub async fn work(&self) {
        tokio::join!(jobs::work(self), projects::note_uses(self), quotas::work(self));
    }

    /// Where clients reach this server.
    pub(crate) fn address(&self) -> &str {
        self.files.links.address()
    }

    /// Why nothing can be changed now, if so.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match self.store.health() {
            store::Health::Ready => None,
            store::Health::Full => Some("the disk is full".into()),
            store::Health::Away(why) => Some(format!("the database does not answer: {why}")),
            store::Health::Failed(why) => Some(format!("the store has failed: {why}")),
            store::Health::Closed => Some("the store is closed".into()),
        }
    }
}

/// Characters of the shortest secret of which answers show some.
pub(crate) const SHOWN_FROM: usize = 8;

/// As much of a text from outside as a message needs.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the declarations is one of the tables: whoever makes one looks at what it does to them.
    #[test]
    fn the_tables_are_the_committed_ones() {
        let rendered = store::schema(COLLECTIONS);
        assert_eq!(rendered, include_str!("../../store/schema.sql"), "write to host/store/schema.sql:\n{rendered}");
    }
}
