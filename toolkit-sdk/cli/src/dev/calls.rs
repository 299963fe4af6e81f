//! Tool calls as they arrive, read from the server's execution log.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use anyhow::{Context, Result};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    Api,
    console::{Console, Event},
};

const LOG_PATH: &str = "/logs/tool_execution";
/// Interval at which the log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of records in a page, and of pages in one round.
const PAGE_SIZE: usize = 100;
const MAX_PAGES_PER_POLL: usize = 10;
/// Maximum number of ids remembered as already shown.
const MAX_SHOWN_IDS: usize = 4 * PAGE_SIZE * MAX_PAGES_PER_POLL;

/// Calls of a project.
pub(crate) struct Calls<'d> {
    api: &'d Api,
    console: &'d Console,
    shown: HashSet<String>,
    order: VecDeque<String>,
}

impl<'d> Calls<'d> {
    pub(crate) fn new(api: &'d Api, console: &'d Console) -> Self {
        Self {
            api,
            console,
            shown: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Shows each call that ends from now on. A failed request to the server is repeated in the
    /// next round.
    pub(crate) async fn run_loop(&mut self) -> Result<()> {
        // Earlier calls are not shown.
        if let Ok(before) = self.new_call_ids(1).await {
            before.into_iter().for_each(|id| self.remember(id));
        }
        loop {
            sleep(POLL_INTERVAL).await;
            let Ok(new_call_ids) = self.new_call_ids(MAX_PAGES_PER_POLL).await else {
                continue;
            };
            for id in new_call_ids {
                if let Ok(Some(call)) = self
                    .api
                    .ask(Method::GET, &format!("{LOG_PATH}/{id}"), None)
                    .await
                {
                    self.console.print(&Event::Call(&call));
                    self.remember(id);
                }
            }
        }
    }

    /// Returns the ids of calls that were not shown yet, oldest first.
    async fn new_call_ids(&self, pages: usize) -> Result<Vec<String>> {
        let mut new_call_ids = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..pages {
            let asked = json!({ "limit": PAGE_SIZE, "cursor": cursor });
            let page = self
                .api
                .ask(Method::POST, LOG_PATH, Some(&asked))
                .await?
                .context("the server has no execution log")?;
            let ids: Vec<_> = page["logs"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|log| log["id"].as_str())
                .collect();
            let fresh = ids
                .iter()
                .filter(|id| !self.shown.contains(**id))
                .map(|id| (*id).to_owned());
            new_call_ids.extend(fresh);
            cursor = page["next_cursor"].clone();
            if cursor.is_null() || ids.iter().any(|id| self.shown.contains(*id)) {
                break;
            }
        }
        new_call_ids.reverse();
        Ok(new_call_ids)
    }

    fn remember(&mut self, id: String) {
        self.order.push_back(id.clone());
        self.shown.insert(id);
        if self.order.len() > MAX_SHOWN_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.shown.remove(&oldest);
        }
    }
}
