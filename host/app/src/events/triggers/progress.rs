//! Progress of trigger instances: the configuration of an instance, what its polls remember, and
//! the time of the next one.
//!
//! The record exists as long as its instance and has its id. Everything in it that comes from the
//! project or from the provider is sealed, except for the schedule.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use bytes::Bytes;
use manifest::TriggerKind;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use store::{Collection, Document, Erasure, Field, Record, Time};

use super::{
    MAX_ERROR_CHARS, actions::Action, config::Config, recent::RecentEvents, schedule::Schedule,
    seen::SeenEvents,
};
use crate::{
    App, Result,
    core::{
        ids::{ProjectId, TriggerInstanceId},
        vault::{DataKey, SealContext, Sealed},
    },
    events::errors,
    work::{Claimable, WorkState},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "trigger_progress",
    erasure: Erasure::Project,
    fields: &[Field::due("due")],
};

/// Maximum size of the cursor and the state that a poll leaves, in bytes.
pub const MAX_MEMORY_BYTES: usize = 256 << 10;

/// Configuration and progress of an instance, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    config: Sealed<Config>,
    /// Tool that runs for every event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<Sealed<Action>>,
    /// Copy of the recipe that the action runs, as it was when the action was set; null if there was no recipe
    /// to copy. Absent for a tool, and until it is added to an action of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) recipe: Option<Sealed<Value>>,
    #[serde(flatten)]
    pub(super) work: WorkState,
    #[serde(flatten)]
    pub(super) schedule: Schedule,
    /// Data that the last poll left for the next one. `None` before the first poll.
    #[serde(default)]
    memory: Option<Sealed<Memory>>,
    #[serde(default)]
    pub(super) seen: SeenEvents,
    #[serde(default)]
    pub(super) recent: RecentEvents,
    /// Number of polls that followed one another without an interval.
    #[serde(default)]
    pub(super) rounds: u32,
    #[serde(default)]
    last_poll_at: Option<Time>,
    /// Error of the last poll or of the last webhook, if it failed.
    #[serde(default)]
    pub(super) last_error: Option<Sealed<String>>,
    /// Time of the first of the failures in a row.
    #[serde(default)]
    pub(super) failing_since: Option<Time>,
    /// Number of failures in a row.
    #[serde(default)]
    pub(super) failures: u32,
}

impl Document for Progress {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for Progress {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// Data that a poll leaves for the next one: bytes in base64.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    cursor: String,
    /// State of the guest, by key.
    state: BTreeMap<String, String>,
}

impl Memory {
    pub(super) fn new(cursor: &[u8], state: BTreeMap<String, Vec<u8>>) -> Self {
        let state = state.into_iter();
        Self {
            cursor: BASE64.encode(cursor),
            state: state
                .map(|(key, value)| (key, BASE64.encode(value)))
                .collect(),
        }
    }

    pub(super) fn cursor(&self) -> Bytes {
        decoded(&self.cursor).into()
    }

    pub(super) fn state(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state.iter();
        state
            .map(|(key, value)| (key.clone(), decoded(value)))
            .collect()
    }

    /// Returns the size in bytes.
    pub(super) fn size(&self) -> usize {
        let state = self.state.iter();
        let state: usize = state.map(|(key, value)| key.len() + value.len()).sum();
        self.cursor.len() + state
    }
}

fn decoded(text: &str) -> Vec<u8> {
    BASE64.decode(text).unwrap_or_default()
}

/// The last and the next poll of an instance.
#[derive(Debug, Default)]
pub struct PollStatus {
    /// Time of the last poll.
    pub last_poll_at: Option<Time>,
    /// Time of the next poll.
    pub next_poll_at: Option<Time>,
    /// Error of the last poll or of the last webhook, if it failed.
    pub last_error: Option<String>,
}

/// The key and the location of the sealed parts of one progress record.
pub(super) struct Seal<'a> {
    key: std::sync::Arc<DataKey>,
    project: &'a str,
    id: &'a str,
}

impl<'a> Seal<'a> {
    pub(super) async fn new(app: &App, project: &'a ProjectId, id: &'a str) -> Result<Self> {
        let project = project.as_str();
        let key = app.vault.key(project, app.clock.now()).await?;
        Ok(Self { key, project, id })
    }

    fn context(&self, field: &'static str) -> SealContext<'_> {
        SealContext::new::<Progress>(self.project, self.id, field)
    }

    fn config(&self, config: &Config) -> Result<Sealed<Config>> {
        self.key.seal(self.context("config"), config)
    }

    pub(super) fn action(&self, action: &Action) -> Result<Sealed<Action>> {
        self.key.seal(self.context("action"), action)
    }

    pub(super) fn recipe(&self, recipe: &Value) -> Result<Sealed<Value>> {
        self.key.seal(self.context("recipe"), recipe)
    }

    pub(super) fn memory(&self, memory: &Memory) -> Result<Sealed<Memory>> {
        self.key.seal(self.context("memory"), memory)
    }

    pub(super) fn error(&self, error: &str) -> Result<Sealed<String>> {
        let error = error.chars().take(MAX_ERROR_CHARS).collect();
        self.key.seal(self.context("last_error"), &error)
    }

    pub(super) fn open_config(&self, progress: &Progress) -> Result<Config> {
        self.key.open(self.context("config"), &progress.config)
    }

    pub(super) fn open_action(&self, progress: &Progress) -> Result<Option<Action>> {
        self.open("action", progress.action.as_ref())
    }

    pub(super) fn open_recipe(&self, progress: &Progress) -> Result<Option<Value>> {
        self.open("recipe", progress.recipe.as_ref())
    }

    pub(super) fn open_memory(&self, progress: &Progress) -> Result<Option<Memory>> {
        self.open("memory", progress.memory.as_ref())
    }

    /// Returns the last and the next poll. Fails if the error cannot be decrypted.
    pub(super) fn open_status(&self, progress: &Progress) -> Result<PollStatus> {
        Ok(PollStatus {
            last_poll_at: progress.last_poll_at,
            next_poll_at: progress.work.due,
            last_error: self.open("last_error", progress.last_error.as_ref())?,
        })
    }

    fn open<T: DeserializeOwned>(
        &self,
        field: &'static str,
        sealed: Option<&Sealed<T>>,
    ) -> Result<Option<T>> {
        let opened = sealed.map(|sealed| self.key.open(self.context(field), sealed));
        opened.transpose()
    }
}

impl Progress {
    /// Creates the progress of a new instance.
    pub(super) async fn new(
        app: &App,
        project: &ProjectId,
        id: &TriggerInstanceId,
        config: &Config,
        action: Option<&Action>,
    ) -> Result<Self> {
        let seal = Seal::new(app, project, id.as_str()).await?;
        Ok(Self {
            config: seal.config(config)?,
            action: action.map(|action| seal.action(action)).transpose()?,
            recipe: None,
            work: WorkState::default(),
            schedule: Schedule::default(),
            memory: None,
            seen: SeenEvents::default(),
            recent: RecentEvents::default(),
            rounds: 0,
            last_poll_at: None,
            last_error: None,
            failing_since: None,
            failures: 0,
        })
    }

    /// Returns the progress of an instance. Fails if the instance was deleted after it was read.
    pub(super) async fn get(app: &App, project: &ProjectId, id: &str) -> Result<Record<Self>> {
        let found = app.store.get(project.as_str(), id).await?;
        found.ok_or_else(|| errors::instance_deleted(id))
    }

    /// Returns the size in the store of what lists show.
    pub(super) fn shown_bytes(&self) -> usize {
        self.config.size() + self.action.as_ref().map_or(0, Sealed::size)
    }

    /// Makes the instance due, if it is polled. The result of a poll in progress is discarded.
    pub(super) fn start(&mut self, kind: TriggerKind, now: Time) {
        self.work = match kind {
            TriggerKind::Poll => WorkState::due_at(now),
            TriggerKind::Webhook => WorkState::default(),
        };
        (self.failing_since, self.failures, self.rounds) = (None, 0, 0);
    }

    /// Ends the polling. The result of a poll in progress is discarded.
    pub(super) fn stop(&mut self) {
        self.work = WorkState::default();
    }

    /// Notes a successful poll.
    pub(super) fn succeed(&mut self, memory: Sealed<Memory>, seen: SeenEvents, now: Time) {
        (self.memory, self.seen) = (Some(memory), seen);
        self.last_poll_at = Some(now);
        self.last_error = None;
        (self.failing_since, self.failures) = (None, 0);
    }

    pub(super) fn fail(&mut self, error: Sealed<String>, now: Time) {
        self.last_poll_at = Some(now);
        self.last_error = Some(error);
        self.failing_since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        self.rounds = 0;
    }
}
