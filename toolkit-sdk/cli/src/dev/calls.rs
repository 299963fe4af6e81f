//! Calls as they come in, read from the server's execution log.

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

const LOG: &str = "/logs/tool_execution";
/// How often the log is asked.
const EVERY: Duration = Duration::from_millis(250);
/// Records of one answer, and answers read in one round at most.
const PAGE: usize = 100;
const PAGES: usize = 10;
/// Calls remembered as shown.
const REMEMBERED: usize = 4 * PAGE * PAGES;

/// The calls of a project.
pub(crate) struct Calls<'d> {
    api: &'d Api,
    console: &'d Console,
    shown: HashSet<String>,
    order: VecDeque<String>,
}

impl<'d> Calls<'d> {
    pub(crate) fn of(api: &'d Api, console: &'d Console) -> Self {
        Self { api, console, shown: HashSet::new(), order: VecDeque::new() }
    }

    /// Shows each call that ends from now on. A server that cannot be asked for a moment is asked again.
    pub(crate) async fn follow(&mut self) -> Result<()> {
        // What ran before is not shown.
        if let Ok(before) = self.unseen(1).await {
            before.into_iter().for_each(|id| self.remember(id));
        }
        loop {
            sleep(EVERY).await;
            let Ok(unseen) = self.unseen(PAGES).await else { continue };
            for id in unseen {
                if let Ok(Some(call)) = self.api.ask(Method::GET, &format!("{LOG}/{id}"), None).await {
                    self.console.say(&Event::Call(&call));
                    self.remember(id);
                }
            }
        }
    }

    /// Calls that were not shown, oldest first.
    async fn unseen(&self, pages: usize) -> Result<Vec<String>> {
        let mut unseen = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..pages {
            let asked = json!({ "limit": PAGE, "cursor": cursor });
            let page = self.api.ask(Method::POST, LOG, Some(&asked)).await?.context("the server keeps no log")?;
            let ids: Vec<_> =
                page["logs"].as_array().into_iter().flatten().filter_map(|log| log["id"].as_str()).collect();
            let fresh = ids.iter().filter(|id| !self.shown.contains(**id)).map(|id| (*id).to_owned());
            unseen.extend(fresh);
            cursor = page["next_cursor"].clone();
            if cursor.is_null() || ids.iter().any(|id| self.shown.contains(*id)) {
                break;
            }
        }
        unseen.reverse();
        Ok(unseen)
    }

    fn remember(&mut self, id: String) {
        self.order.push_back(id.clone());
        self.shown.insert(id);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.shown.remove(&oldest);
        }
    }
}
