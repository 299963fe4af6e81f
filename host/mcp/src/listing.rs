//! The tools of an endpoint, and the pages of their list.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use app::{
    Error,
    agents::{self, meta::MetaTool},
};
use rmcp::{ErrorData, model::ListToolsResult};
use serde::Serialize;

use super::{
    cursor,
    descriptions::Description,
    endpoint::{Caller, Endpoint, Offered, internal},
    tools,
};

/// Maximum size of a page of `tools/list`, in bytes. Many clients read the first one alone.
pub const MAX_PAGE_BYTES: usize = 2 << 20;

/// A page of the list, as clients before version 2026-07-28 get it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    tools: Vec<Description>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Page {
    /// Returns the page as the result that `rmcp` sends.
    pub(super) fn into_result(self) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(Description::parse);
        let tools = tools.collect::<Result<_, _>>().map_err(internal)?;
        Ok(ListToolsResult {
            next_cursor: self.next_cursor,
            ..ListToolsResult::with_all_items(tools)
        })
    }
}

impl Endpoint {
    /// Returns the tools: meta tools first, then those of the catalog by slug.
    fn offered(&self) -> Vec<Offered> {
        match &self.caller {
            Caller::Server(caller) => {
                let tools = caller.tools(self.app()).into_iter();
                let helpers = caller.helper_tools().map(Offered::Meta);
                helpers.chain(tools.map(Offered::Tool)).collect()
            }
            Caller::Session(caller) => {
                let config = caller.config();
                let preloaded = agents::preloaded(&self.app().catalog.snapshot(), config);
                let meta = MetaTool::in_force(config).map(Offered::Meta);
                meta.chain(preloaded.into_iter().map(Offered::Tool))
                    .collect()
            }
        }
    }

    /// Returns the name of a tool.
    fn name_of(&self, offered: &Offered) -> Arc<str> {
        match offered {
            Offered::Meta(tool) => tools::meta_name(*tool, &self.server.branding).into(),
            Offered::Tool(found) => found.tool.slug.clone(),
        }
    }

    fn describe(&self, offered: &Offered) -> Result<Description, Error> {
        let with_output = self.reads_output_schemas;
        match offered {
            Offered::Meta(tool) => {
                let mut described = tools::meta_tool(*tool, &self.server.branding);
                if !with_output {
                    described.output_schema = None;
                }
                Description::new(&described)
            }
            Offered::Tool(found) => self.state.descriptions.describe(found, with_output),
        }
    }

    /// Returns the page of tools after a cursor, which is the name of the last tool before it.
    pub(super) fn page(&self, cursor: Option<&str>) -> Result<Page, ErrorData> {
        let offered = self.offered();
        let begin = match cursor {
            None => 0,
            Some(cursor) => {
                let last = cursor::decode(cursor)?;
                let position = self.position_after(&offered, &last);
                position.ok_or_else(cursor::invalid)?
            }
        };
        let rest = &offered[begin..];
        let mut described = Vec::with_capacity(rest.len());
        let mut size = 0;
        for offered in rest {
            let description = self.describe(offered).map_err(internal)?;
            size += description.size();
            if size > MAX_PAGE_BYTES && !described.is_empty() {
                break;
            }
            described.push(description);
        }
        let page = &rest[..described.len()];
        let last = page.last().filter(|_| page.len() < rest.len());
        Ok(Page {
            tools: described,
            next_cursor: last.map(|last| cursor::encode(&self.name_of(last))),
        })
    }

    /// Returns the position after a tool, or the position where it would be if it is gone.
    fn position_after(&self, offered: &[Offered], last: &str) -> Option<usize> {
        let found = offered.iter().position(|tool| *self.name_of(tool) == *last);
        if let Some(position) = found {
            return Some(position + 1);
        }
        let is_name = !last.is_empty()
            && last
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| {
            let next = offered.iter().position(|tool| match tool {
                Offered::Meta(_) => false,
                Offered::Tool(found) => *found.tool.slug > *last,
            });
            next.unwrap_or(offered.len())
        })
    }

    /// Returns a digest of the list, which changes with it.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for offered in self.offered() {
            self.name_of(&offered).hash(&mut hasher);
            if let Offered::Tool(found) = offered {
                found.release.version.to_string().hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
