//! The logic of the server, in one module per concept. A module owns its collections, and no other
//! module writes them.
//!
//! Public functions take the [`App`] first, then the project, then a request. They fail if the store
//! does; their documentation names the other reasons. This crate does not know the transport of
//! requests. Good modules to read first are [`runs`], [`catalog`] and [`accounts`].
pub mod accounts;
pub mod agents;
pub mod catalog;
pub mod core;
pub mod events;
pub mod files;
pub mod lifecycle;
pub mod projects;
pub mod runs;
mod work;

use std::sync::{Arc, Weak};

use gate::{KeyedLimit, Pacer};
use sandbox::Sandbox;
use store::{Collection, Store};

pub use self::core::{
    clock::Clock,
    error::{Class, Error, ErrorInfo, Result, SHORT_WAIT},
};
pub use lifecycle::errors;
pub use store::{Cursor, Listed, Record, Scalar, Time, Window};

/// Every collection. The store is opened with this list, and a deleted project is erased in this
/// order: records of a collection depend on records of those before it, and cannot be created
/// without them.
pub static COLLECTIONS: &[&Collection] = &[
    &core::vault::COLLECTION,
    &projects::ORGANIZATIONS_COLLECTION,
    &projects::PROJECTS_COLLECTION,
    &projects::API_KEYS,
    &lifecycle::remove_project::COLLECTION,
    &projects::members::COLLECTION,
    &catalog::COLLECTION,
    &catalog::PUBLICATIONS_COLLECTION,
    &catalog::USAGE_COLLECTION,
    &accounts::auth_configs::COLLECTION,
    &accounts::COLLECTION,
    &accounts::CREDENTIALS,
    &accounts::CONNECTION_ATTEMPTS,
    &accounts::oauth_apps::COLLECTION,
    &accounts::CLIENTS,
    &events::triggers::COLLECTION,
    &events::triggers::progress::COLLECTION,
    &events::triggers::subscribing::COLLECTION,
    &events::triggers::actions::COLLECTION,
    &lifecycle::legacy_ids::COLLECTION,
    &files::COLLECTION,
    &files::TOTALS_COLLECTION,
    &runs::log::PAGES_COLLECTION,
    &runs::log::DETAILS_COLLECTION,
    &runs::log::CASSETTES_COLLECTION,
    &events::subscriptions::COLLECTION,
    &events::endpoints::COLLECTION,
    &events::event::COLLECTION,
    &events::sink::COLLECTION,
    &events::delivery::COLLECTION,
    &events::ordering::COLLECTION,
    &agents::mcp_servers::COLLECTION,
    &agents::mcp_servers::INSTANCES,
    &agents::mcp_oauth::COLLECTION,
    &agents::sessions::COLLECTION,
    &agents::sessions::CONFIG_VERSIONS_COLLECTION,
    &agents::approval::COLLECTION,
    &agents::recipes::COLLECTION,
    &agents::recipes::VERSIONS_COLLECTION,
    &agents::recipes::RUNS_COLLECTION,
    &agents::recipes::PLANS_COLLECTION,
    &agents::recipes::CALLS_COLLECTION,
    &agents::session_files::COLLECTION,
    &agents::session_files::turns::COLLECTION,
    &projects::idempotency::COLLECTION,
    &projects::quotas::COLLECTION,
    &work::JOBS_COLLECTION,
    &work::FENCES_COLLECTION,
];

/// The state that all modules share.
pub struct App {
    /// This app, for background tasks of a request.
    own: Weak<App>,
    pub(crate) store: Store,
    /// The vault of secrets.
    pub vault: Arc<core::vault::Vault>,
    pub(crate) sandbox: Sandbox,
    /// The interpreter of scripts, and their limits.
    pub(crate) scripts: runs::Scripts,
    /// The threads for work on large bodies.
    pub large_work: core::large_work::LargeWork,
    /// The shares of projects in the processors.
    pub shares: Arc<core::shares::ProcessorShares>,
    /// The clock.
    pub clock: Clock,
    /// The toolkits and tools.
    pub catalog: catalog::Catalog,
    pub(crate) trusted: catalog::TrustedKeys,
    /// The number of executions per toolkit.
    pub(crate) usage: Arc<catalog::Usage>,
    /// The language model that turns prompts into arguments.
    pub(crate) model: Option<runs::prompt::Model>,
    /// The cache of API keys.
    pub keys: projects::KeyCache,
    pub(crate) log: runs::log::Log,
    /// The counts of executions, for metrics.
    pub(crate) executions: runs::ExecutionCounts,
    /// The function that verifies a credential with a request to its provider.
    pub(crate) verify_credential: accounts::VerifyCredential,
    /// The tokens of connected accounts.
    pub(crate) accounts: Arc<accounts::TokenManager>,
    /// The settings of outgoing webhooks.
    pub(crate) webhooks: events::WebhookSettings,
    /// The pace of messages to each endpoint, and of the actions of each project.
    pub(crate) pacer: Pacer,
    /// The components that this server is compiling.
    pub(crate) installations: runs::Installations,
    /// The webhooks that trigger instances receive at the same time.
    pub(crate) receptions: events::triggers::Receptions,
    /// The parts that store events.
    pub(crate) outbox: Arc<events::outbox::Outbox>,
    /// The queue of the operator that gets every event, if there is one.
    pub(crate) sink: Option<events::sink::Sink>,
    /// The settings of trigger instances.
    pub(crate) triggers: events::triggers::Settings,
    /// The functions with recipes for the actions of trigger instances.
    pub(crate) recipe_actions: events::triggers::actions::RecipeActions,
    /// The MCP servers that were read lately.
    pub(crate) mcp_servers: agents::mcp_servers::ServerCache,
    /// The settings of tool router sessions.
    pub(crate) sessions: agents::Settings,
    /// Limit of the calls that wait until users have connected accounts, by project.
    pub(crate) connection_waits: KeyedLimit<core::ids::ProjectId>,
    /// The files of projects.
    pub files: files::Files,
    /// The shell of agents.
    pub(crate) shell: workbench::Shell,
    /// The queues of the scripts and shell commands of this server, by session.
    pub(crate) session_turns: KeyedLimit<String>,
    /// The bytes that projects have written in a day.
    pub(crate) quotas: Arc<projects::quotas::Quotas>,
    /// The generator of log ids and request ids.
    pub sequence: core::ids::Sequence,
    /// The traces of requests and executions.
    pub tracer: core::trace::Tracer,
}

/// The parts that an [`App`] is built from.
pub struct Parts {
    /// The store, opened with [`COLLECTIONS`].
    pub store: Store,
    /// The vault, opened on the same store.
    pub vault: Arc<core::vault::Vault>,
    /// The sandbox that runs tools.
    pub sandbox: Sandbox,
    /// The settings of scripts of agents.
    pub scripts: runs::ScriptSettings,
    /// The threads for work on large bodies.
    pub large_work: core::large_work::LargeWork,
    /// The file that holds the schemas of tools.
    pub schema_file: catalog::SchemaFile,
    /// The clock.
    pub clock: Clock,
    /// The settings of the execution log.
    pub log: runs::log::Settings,
    /// The settings of files.
    pub files: files::Settings,
    /// The settings of connecting accounts.
    pub connections: accounts::Settings,
    /// The settings of outgoing webhooks.
    pub webhooks: events::WebhookSettings,
    /// The address of the sink, with the credential, or `None` if there is no sink.
    pub sink: Option<url::Url>,
    /// The settings of trigger instances.
    pub triggers: events::triggers::Settings,
    /// The settings of tool router sessions.
    pub sessions: agents::Settings,
    /// The keys whose signatures of components are trusted.
    pub trusted: catalog::TrustedKeys,
    /// The settings of the language model, or `None` if it is not configured.
    pub model: Option<runs::prompt::Settings>,
    /// The bytes that each project may write in a day.
    pub quotas: projects::quotas::Settings,
    /// The shell of agents.
    pub shell: workbench::Shell,
    /// The traces of requests and executions.
    pub tracer: core::trace::Tracer,
}

impl App {
    /// Reads the catalog and builds the app. Starts no task: the caller must run the returned
    /// writer of the execution log until it ends. Fails if the catalog or the daily quotas cannot
    /// be read, or if the system refuses a thread.
    pub async fn open(mut parts: Parts) -> Result<(Arc<Self>, runs::log::Writer)> {
        let sink = match parts.sink.take() {
            Some(url) => Some(events::sink::Sink::open(url).await?),
            None => None,
        };
        let quotas = projects::quotas::Quotas::open(parts.quotas, &parts.store).await?;
        let quotas = Arc::new(quotas);
        let outbox = Arc::new(events::outbox::Outbox {
            store: parts.store.clone(),
            vault: parts.vault.clone(),
            quotas: quotas.clone(),
            has_sink: sink.is_some(),
        });
        let accounts = token_manager(&parts, outbox.clone());
        let catalog = catalog::load(&parts.store, parts.schema_file).await?;
        let usage = Arc::new(catalog::Usage::default());
        let (log, writer) = runs::log::open(
            parts.log,
            parts.store.clone(),
            parts.vault.clone(),
            parts.clock.clone(),
            usage.clone(),
            quotas.clone(),
        );
        let shares = core::shares::ProcessorShares::start().map_err(|cause| {
            core::errors::unavailable(format!(
                "cannot start the threads for busy projects: {cause}"
            ))
        })?;
        let app = Arc::new_cyclic(|own| Self {
            own: own.clone(),
            scripts: runs::Scripts::new(&parts.sandbox, parts.scripts),
            sandbox: parts.sandbox,
            large_work: parts.large_work,
            shares: Arc::new(shares),
            catalog,
            trusted: parts.trusted,
            usage,
            model: parts.model.map(runs::prompt::Model::new),
            keys: projects::KeyCache::new(&parts.vault),
            log,
            executions: runs::ExecutionCounts::default(),
            verify_credential: runs::verify_credential,
            accounts: Arc::new(accounts),
            webhooks: parts.webhooks,
            pacer: Pacer::new(work::MAX_DEFERRAL),
            installations: runs::Installations::default(),
            receptions: events::triggers::Receptions::default(),
            outbox,
            sink,
            triggers: parts.triggers,
            recipe_actions: agents::recipes::RECIPE_ACTIONS,
            mcp_servers: agents::mcp_servers::new_cache(),
            sessions: parts.sessions,
            connection_waits: KeyedLimit::new(agents::meta::MAX_WAITS_PER_PROJECT),
            files: files::Files::new(files::Links::new(&parts.vault), parts.files),
            shell: parts.shell,
            session_turns: KeyedLimit::new(1),
            quotas,
            sequence: core::ids::Sequence::new(),
            tracer: parts.tracer,
            store: parts.store,
            vault: parts.vault,
            clock: parts.clock,
        });
        Ok((app, writer))
    }

    /// Returns the tasks of work on accounts that must not be lost: a provider accepts codes and refresh
    /// tokens once. A stopping server waits for them ([`accounts::finish_tasks`]).
    #[must_use]
    pub fn account_tasks(&self) -> &core::tasks::Tasks {
        &self.accounts.tasks
    }

    /// Returns this app for a background task of a request. Fails if the server is stopping.
    pub(crate) fn shared(&self) -> Result<Arc<Self>> {
        let own = self.own.upgrade();
        own.ok_or_else(|| core::errors::unavailable("the server is stopping"))
    }

    /// Keeps the data in memory consistent with changes made by other servers on the same store.
    /// Never returns.
    pub async fn watch_changes(&self) {
        loop {
            let change = self.store.changed().await;
            // Another server may have connected an account.
            self.store.signal(&accounts::COLLECTION);
            let done = async {
                projects::refresh(self).await?;
                catalog::refresh(self, change).await
            };
            if let Err(cause) = done.await {
                tracing::warn!(%cause, "changes of other servers could not be read");
            }
        }
    }

    /// Sends a short message to all servers of the installation, this one included. It may be lost.
    /// Fails if the database does not answer.
    pub async fn send_message(&self, message: &str) -> Result<()> {
        Ok(self.store.send(message).await?)
    }

    /// Waits for a message of a server. Waits forever if this server is the only one.
    pub async fn message(&self) -> String {
        self.store.message().await
    }

    /// Does due background work, and writes key uses and daily quotas to the store. Never returns.
    pub async fn run_jobs(&self) {
        tokio::join!(
            lifecycle::jobs::run(self),
            projects::keep_key_uses(self),
            projects::quotas::keep_counts(self)
        );
    }

    /// Writes the key uses and daily quotas that are not in the store yet, before the server stops.
    pub async fn write_counts(&self) {
        projects::write_key_uses(self).await;
        self.quotas.save(&self.store, self.clock.now()).await;
    }

    /// Returns the base URL at which clients reach this server.
    #[must_use]
    pub fn base_url(&self) -> &str {
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

fn token_manager(parts: &Parts, outbox: Arc<events::outbox::Outbox>) -> accounts::TokenManager {
    let expiry = events::ExpiryEvents {
        outbox,
        data: parts.webhooks.account_data.clone(),
    };
    accounts::TokenManager::new(
        parts.store.clone(),
        parts.vault.clone(),
        parts.clock.clone(),
        parts.connections.clone(),
        Box::new(expiry),
    )
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
