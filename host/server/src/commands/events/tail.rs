//! `toolhost events tail`: follows the stream of a project's events.
//!
//! Each connection continues after the last id of the one before, so no event is missed while the
//! server restarts or the network fails. The server sends some events again then; those that were
//! printed are skipped.

use std::{collections::HashSet, time::Duration};

use anyhow::Context;
use net::StreamedResponse;
use serde_json::Value;
use tokio::time::sleep;
use url::form_urlencoded::Serializer;

use super::{one_line, server_sent::Parser};
use crate::{
    commands::running::{Running, text},
    open::Stop,
    terminal::Terminal,
};

const STREAM_PATH: &str = "trigger_instances/stream";
/// Time without a byte after which a connection counts as broken. The server sends a comment every
/// 15 s.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before another attempt to connect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Half of the number of printed events that are remembered.
const REMEMBERED_EVENTS: usize = 10_000;
/// Characters of an event's data in a line.
const MAX_DATA_CHARS: usize = 160;

/// Selection of events; all events of the project without one.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only events of this toolkit; can be repeated, like every other option
    #[arg(long, value_name = "SLUG")]
    toolkit: Vec<String>,
    /// Only events of this trigger type
    #[arg(long, value_name = "SLUG")]
    trigger: Vec<String>,
    /// Only events of this trigger instance
    #[arg(long, value_name = "ID")]
    instance: Vec<String>,
    /// Only events of this connected account
    #[arg(long, value_name = "ID")]
    account: Vec<String>,
    /// Only events of connected accounts of this auth config
    #[arg(long, value_name = "ID")]
    auth_config: Vec<String>,
    /// Only events of connected accounts of this user
    #[arg(long, value_name = "ID")]
    user: Vec<String>,
}

impl Filter {
    fn path(&self) -> String {
        let mut query = Serializer::new(String::new());
        for (name, values) in [
            ("toolkit_slugs", &self.toolkit),
            ("trigger_slugs", &self.trigger),
            ("trigger_ids", &self.instance),
            ("connected_account_ids", &self.account),
            ("auth_config_ids", &self.auth_config),
            ("user_ids", &self.user),
        ] {
            query.extend_pairs(values.iter().map(|value| (name, value)));
        }
        format!("{STREAM_PATH}?{}", query.finish())
    }
}

/// Prints events until the output is closed.
pub(super) async fn run(
    server: &Running,
    filter: &Filter,
    json: bool,
    terminal: Terminal,
) -> Result<(), Stop> {
    let path = filter.path();
    let mut tail = Tail {
        json,
        terminal,
        last_id: None,
        printed: Recent::default(),
    };
    let mut is_interrupted = false;
    let mut was_connected = false;
    loop {
        let last_id = tail.last_id.clone().map(|id| ("last-event-id", id));
        let is_first = last_id.is_none();
        match server.open(&path, last_id, IDLE_TIMEOUT).await {
            Ok(stream) => {
                if is_interrupted {
                    tracing::info!("connected again");
                }
                if !was_connected {
                    terminal.status("connected, waiting for events");
                }
                is_interrupted = false;
                was_connected = true;
                if tail.follow(stream).await? == Ended::OutputClosed {
                    return Ok(());
                }
            }
            Err(unopened) if unopened.transient && !is_first => {
                if !is_interrupted {
                    let cause = &unopened.stop.line;
                    tracing::warn!("interrupted, and tried again every second: {cause}");
                }
                is_interrupted = true;
                sleep(RECONNECT_DELAY).await;
            }
            Err(unopened) => return Err(unopened.stop),
        }
    }
}

/// Reason why a stream is not followed any more.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Interrupted,
    OutputClosed,
}

struct Tail {
    json: bool,
    terminal: Terminal,
    /// Id after which the next connection continues.
    last_id: Option<String>,
    printed: Recent,
}

impl Tail {
    /// Prints the events of one connection until it ends.
    async fn follow(&mut self, mut stream: StreamedResponse) -> Result<Ended, Stop> {
        let mut parser = Parser::default();
        // An error is an interruption; the next connection shows if it lasts.
        while let Ok(Some(piece)) = stream.next_piece().await {
            for event in parser.push(&piece)? {
                if let Some(data) = event.data
                    && event.id.as_ref().is_none_or(|id| self.printed.insert(id))
                    && !self.print(&data)?
                {
                    return Ok(Ended::OutputClosed);
                }
                self.last_id = event.id.or(self.last_id.take());
            }
        }
        Ok(Ended::Interrupted)
    }

    /// Prints an event. Returns false if the output is closed.
    fn print(&self, data: &str) -> anyhow::Result<bool> {
        if self.json {
            return Ok(self.terminal.try_line(data));
        }
        let event: Value =
            serde_json::from_str(data).context("an event of the stream is not JSON")?;
        Ok(self.terminal.try_line(&self.line(&event)))
    }

    fn line(&self, event: &Value) -> String {
        let metadata = &event["metadata"];
        let name = match text(metadata, "trigger_slug") {
            "" => text(event, "type"),
            slug => slug,
        };
        let columns = [
            text(event, "timestamp"),
            name,
            text(metadata, "user_id"),
            text(metadata, "trigger_id"),
        ];
        let line = columns
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| one_line(text, usize::MAX))
            .collect::<Vec<_>>()
            .join("  ");
        let data = one_line(&event["data"].to_string(), MAX_DATA_CHARS);
        format!("{line}  {}", self.terminal.dim(&data))
    }
}

/// Ids of the last events.
#[derive(Debug, Default)]
struct Recent {
    newer: HashSet<String>,
    older: HashSet<String>,
}

impl Recent {
    /// Adds an id. Returns false if it is one of the last already.
    fn insert(&mut self, id: &str) -> bool {
        if self.newer.len() >= REMEMBERED_EVENTS {
            self.older = std::mem::take(&mut self.newer);
        }
        !self.older.contains(id) && self.newer.insert(id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_ids_are_recognized_and_bounded() {
        let mut recent = Recent::default();
        for number in 0..3 * REMEMBERED_EVENTS {
            assert!(recent.insert(&number.to_string()));
        }
        assert!(!recent.insert(&(2 * REMEMBERED_EVENTS).to_string()));
        assert!(recent.newer.len() + recent.older.len() <= 2 * REMEMBERED_EVENTS);
    }
}
