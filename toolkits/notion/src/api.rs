//! Code shared by all requests: base URL, API version, ids, pages, and Notion's errors.

use toolkit_sdk::prelude::*;

/// Client with the first API version that supports Markdown.
pub(crate) const API: Client = Client::new("https://api.notion.com/v1")
    .headers(&[("notion-version", "2026-03-11")])
    .errors(refusal);

/// Page of a list to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Maximum number of entries.
    #[serde(default = "twenty_five")]
    #[schemars(range(min = 1, max = 100))]
    pub(crate) limit: u32,
    /// Position of the next page: `next_cursor` of the previous response.
    pub(crate) cursor: Option<String>,
}

fn twenty_five() -> u32 {
    25
}

impl Part {
    /// Adds the page arguments to the body of a query.
    pub(crate) fn fill(&self, body: &mut Value) {
        body["page_size"] = self.limit.clamp(1, 100).into();
        if let Some(cursor) = &self.cursor {
            body["start_cursor"] = cursor.as_str().into();
        }
    }
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    /// `cursor` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One page of a list in Notion's format.
#[derive(Deserialize)]
struct Listed<T> {
    results: Vec<T>,
    next_cursor: Option<String>,
}

/// Fetches one page of a list and converts each item.
pub(crate) fn list<S: serde::de::DeserializeOwned, T>(
    request: Request,
    tell: impl Fn(S) -> T,
) -> Result<Page<T>> {
    let Listed {
        results,
        next_cursor,
    } = request.send()?.json()?;
    Ok(Page {
        items: results.into_iter().map(tell).collect(),
        next_cursor,
    })
}

/// Extracts the id from the text of an agent: an id, or the URL of a page, which ends in its id.
pub(crate) fn id(text: &str) -> &str {
    if !text.starts_with("https://") {
        return text;
    }
    let page = text
        .split(['?', '#'])
        .next()
        .unwrap_or(text)
        .trim_end_matches('/');
    let name = page.rsplit('/').next().unwrap_or(page);
    name.rsplit('-')
        .next()
        .filter(|id| id.len() == 32)
        .unwrap_or(name)
}

/// Maps Notion's errors. The default rules set kind and message; this function adds a suggestion.
fn refusal(response: &Response) -> Option<ToolError> {
    let hint = match response.status() {
        404 => {
            "find its id with NOTION_SEARCH; Notion also responds so for objects that are not shared with the integration"
        }
        403 => "the integration needs the capability for this: its settings, Capabilities",
        _ => return None,
    };
    let error = response.error();
    let message = format!("{}; {hint}", error.text());
    Some(error.message(message))
}
