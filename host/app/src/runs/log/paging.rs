//! Pages of the executions that wait to be written.

use store::Time;

use super::{
    page::{Detail, MAX_PAGE_RUNS, MAX_PAGE_SPAN_MS, Page},
    pending::Pending,
};
use crate::core::ids::{AccountId, AuthConfigId, SessionId};

/// Maximum size of the details of a page before compression, in bytes, unless a single execution has
/// more. Fewer pages cost the store less, and a read of one execution opens a whole page.
const MAX_PAGE_DETAIL_BYTES: usize = 64 << 10;

impl<'a> Page<&'a str> {
    /// Creates a page of executions, which are in the order of their ids.
    pub(super) fn new(entries: &[&'a Pending]) -> Self {
        let list = |value: fn(&'a Pending) -> Option<&'a str>| {
            let mut values = Vec::new();
            for one in entries.iter().filter_map(|entry| value(entry)) {
                // Most lists have few values, so this compares and allocates less than sorting all.
                if let Err(position) = values.binary_search(&one) {
                    values.insert(position, one);
                }
            }
            values
        };
        Self {
            runs: entries.iter().map(|entry| entry.record()).collect(),
            tools: list(|run| Some(&run.subject.tool)),
            toolkits: list(|run| Some(run.toolkit())),
            statuses: list(|run| Some(run.status().into_str())),
            users: list(|run| Some(&run.subject.user)),
            accounts: list(|run| run.subject.account.as_ref().map(AccountId::as_str)),
            auth_configs: list(|run| run.subject.auth_config.as_ref().map(AuthConfigId::as_str)),
            sessions: list(|run| run.subject.session.as_ref().map(SessionId::as_str)),
            slow: list(|run| run.is_slow().then(|| run.id.as_str())),
        }
    }
}

/// Divides entries, in order of their projects, into pages of one project each.
pub(super) fn split_into_pages(entries: &[Box<Pending>]) -> Vec<Vec<&Pending>> {
    let projects = entries.chunk_by(|one, other| one.project() == other.project());
    projects.flat_map(pages_of_project).collect()
}

/// Divides the entries of one project, in order of arrival, into pages.
fn pages_of_project(entries: &[Box<Pending>]) -> Vec<Vec<&Pending>> {
    let mut pages: Vec<Vec<&Pending>> = Vec::new();
    let (mut detail_bytes, mut first) = (0, Time(0));
    for entry in entries {
        let size = entry.detail.as_ref().map_or(0, Detail::size);
        let fits = pages.last().is_some_and(|page| {
            page.len() < MAX_PAGE_RUNS
                && detail_bytes + size <= MAX_PAGE_DETAIL_BYTES
                && (entry.ended_at.0 - first.0).abs() < MAX_PAGE_SPAN_MS
        });
        if !fits {
            pages.push(Vec::with_capacity(MAX_PAGE_RUNS.min(entries.len())));
            (detail_bytes, first) = (0, entry.ended_at);
        }
        detail_bytes += size;
        if let Some(page) = pages.last_mut() {
            page.push(entry);
        }
    }
    for page in &mut pages {
        page.sort_by(|one, other| one.id.cmp(&other.id));
    }
    pages
}
