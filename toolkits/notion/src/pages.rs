//! Pages: their properties, and their content in Markdown.

use serde_json::{Map, Value};
use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, id, list};
use crate::{properties, text};

/// A page, or a data source, which is a table of pages.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    id: String,
    /// `page` or `data_source`.
    kind: String,
    title: String,
    /// URL of the web page.
    url: String,
    last_edited_time: String,
    /// Parent: the id of a page, a data source or a database, under its kind.
    parent: Value,
}

impl Found {
    pub(crate) fn from_json(value: Value) -> Self {
        let kind = text::string(&value["object"]);
        let title = if kind == "page" {
            properties::title(&value["properties"])
        } else {
            text::plain(&value["title"])
        };
        Self {
            id: text::string(&value["id"]),
            title,
            url: text::string(&value["url"]),
            last_edited_time: text::string(&value["last_edited_time"]),
            parent: parent(&value["parent"]),
            kind,
        }
    }
}

/// Returns a parent such as `{"page_id": "…"}`, without the redundant field `type`.
fn parent(parent: &Value) -> Value {
    let members = parent
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "type");
    Value::Object(
        members
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// Kind of object to search for.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Page,
    DataSource,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Words of the title. Defaults to all objects, last edited first.
    query: Option<String>,
    /// Only pages, or only data sources. Defaults to both.
    kind: Option<Kind>,
    #[serde(flatten)]
    part: Part,
}

/// Searches pages and data sources by title, last edited first. Only objects that are shared with
/// the integration are found.
#[tool(
    read_only,
    idempotent,
    important,
    egress("POST api.notion.com/v1/search"),
    example = r#"{"query": "Roadmap"}"#
)]
pub(crate) fn search(input: Search) -> Result<Page<Found>> {
    let mut body =
        json!({ "sort": { "timestamp": "last_edited_time", "direction": "descending" } });
    if let Some(query) = input.query {
        body["query"] = query.into();
    }
    if let Some(kind) = input.kind {
        let value = if matches!(kind, Kind::Page) {
            "page"
        } else {
            "data_source"
        };
        body["filter"] = json!({ "property": "object", "value": value });
    }
    input.part.fill(&mut body);
    list(API.post("/search").json(&body), Found::from_json)
}

/// A page without its content.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Described {
    #[serde(flatten)]
    page: Found,
    /// Properties by name: texts, numbers, names of options, dates, lists of ids.
    properties: Map<String, Value>,
}

impl Described {
    pub(crate) fn from_json(value: Value) -> Self {
        Self {
            properties: properties::to_output(&value["properties"]),
            page: Found::from_json(value),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfPage {
    /// Id or URL of the page.
    #[schemars(length(min = 1))]
    page: String,
}

impl OfPage {
    fn fill(&self, request: Request) -> Request {
        request.path("page", id(&self.page))
    }

    fn patch(&self, body: &Value) -> Result<Described> {
        Ok(Described::from_json(
            self.fill(API.patch("/pages/{page}"))
                .json(body)
                .send()?
                .json()?,
        ))
    }

    fn write(&self, body: &Value) -> Result<Content> {
        self.fill(API.patch("/pages/{page}/markdown"))
            .json(body)
            .send()?
            .json()
    }
}

/// Content of a page.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct Content {
    /// Content in Notion's Markdown.
    markdown: String,
    /// True if content is missing: read the parts in `unknown_block_ids` like pages.
    #[serde(default)]
    truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unknown_block_ids: Vec<String>,
}

/// A page with its content.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Whole {
    #[serde(flatten)]
    page: Described,
    #[serde(flatten)]
    content: Content,
}

/// Reads a page: title, properties, and content in Markdown.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"page": "https://www.notion.so/Roadmap-59833787-2cf9-4fdf-8782-e53db20768a5"}"#
)]
pub(crate) fn read_page(input: OfPage) -> Result<Whole> {
    let page = Described::from_json(input.fill(API.get("/pages/{page}")).send()?.json()?);
    let content = input
        .fill(API.get("/pages/{page}/markdown"))
        .send()?
        .json()?;
    Ok(Whole { page, content })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewPage {
    /// Id or URL of the parent page; or give a `data_source`.
    parent_page: Option<String>,
    /// Id of the data source for a new entry, from `NOTION_GET_DATABASE` or `NOTION_SEARCH`.
    data_source: Option<String>,
    #[schemars(length(min = 1))]
    title: String,
    /// Content, in Markdown.
    markdown: Option<String>,
    /// Properties of an entry of a data source, by name, as plain values:
    /// `{"Status": "Doing", "Due": "2026-01-31", "Tags": ["a", "b"]}`. People and relations are
    /// ids. `NOTION_GET_DATA_SOURCE` lists the properties.
    #[serde(default)]
    properties: Map<String, Value>,
    /// Icon, an emoji.
    icon: Option<String>,
}

/// Creates a page below another page, or an entry of a database.
#[tool(
    important,
    example = r#"{"parent_page": "59833787-2cf9-4fdf-8782-e53db20768a5", "title": "Notes", "markdown": "- [ ] Ship it"}"#
)]
pub(crate) fn create_page(input: NewPage) -> Result<Described> {
    let title = text::rich(&input.title);
    let (parent, properties) = match (&input.parent_page, &input.data_source) {
        (Some(page), None) if input.properties.is_empty() => (
            json!({ "page_id": id(page) }),
            Map::from_iter([("title".to_owned(), json!({ "title": title }))]),
        ),
        (Some(_), None) => {
            return Err(ToolError::invalid_input(
                "only entries of a `data_source` have `properties`",
            ));
        }
        (None, Some(source)) => {
            let source = id(source);
            let known: Value = API
                .get("/data_sources/{source}")
                .path("source", source)
                .send()?
                .json()?;
            let mut properties = properties::written(&input.properties, &known["properties"])?;
            let own = known["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .find(|(_, it)| it["type"] == "title");
            let name = own.map_or("title", |(name, _)| name.as_str());
            properties.insert(name.to_owned(), json!({ "title": title }));
            (json!({ "data_source_id": source }), properties)
        }
        _ => {
            return Err(ToolError::invalid_input(
                "give either `parent_page` or `data_source`",
            ));
        }
    };
    let mut body = json!({ "parent": parent, "properties": properties });
    if let Some(markdown) = input.markdown {
        body["markdown"] = markdown.into();
    }
    if let Some(emoji) = input.icon {
        body["icon"] = json!({ "type": "emoji", "emoji": emoji });
    }
    Ok(Described::from_json(
        API.post("/pages").json(&body).send()?.json()?,
    ))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Changes {
    #[serde(flatten)]
    of: OfPage,
    /// Properties by name, as plain values: `{"Status": "Done", "Due": null}`. Other properties
    /// stay unchanged; null clears one.
    #[schemars(extend("minProperties" = 1))]
    properties: Map<String, Value>,
}

/// Changes properties of a page: its title, or the columns of an entry of a database. Its content
/// stays unchanged.
#[tool(
    destructive,
    idempotent,
    important,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "properties": {"Status": "Done"}}"#
)]
pub(crate) fn update_page(input: Changes) -> Result<Described> {
    let known: Value = input.of.fill(API.get("/pages/{page}")).send()?.json()?;
    let properties = properties::written(&input.properties, &known["properties"])?;
    input.of.patch(&json!({ "properties": properties }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Edit {
    #[serde(flatten)]
    of: OfPage,
    /// Text to replace, exactly as returned by `NOTION_READ_PAGE`.
    #[schemars(length(min = 1))]
    old_text: String,
    /// New text, in Markdown.
    new_text: String,
    /// Replaces all occurrences; otherwise `old_text` must occur exactly once.
    #[serde(default)]
    all: bool,
}

/// Replaces a part of a page's content. For small changes; returns the content after the change.
#[tool(
    destructive,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "old_text": "- [ ] Ship it", "new_text": "- [x] Ship it"}"#
)]
pub(crate) fn edit_page(input: Edit) -> Result<Content> {
    let mut update = json!({ "old_str": input.old_text, "new_str": input.new_text });
    if input.all {
        update["replace_all_matches"] = true.into();
    }
    input.of.write(
        &json!({ "type": "update_content", "update_content": { "content_updates": [update] } }),
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Addition {
    #[serde(flatten)]
    of: OfPage,
    /// Content to add, in Markdown.
    #[schemars(length(min = 1))]
    markdown: String,
    /// Adds it at the beginning instead of the end.
    #[serde(default)]
    at_start: bool,
}

/// Adds content to the end of a page, or to its beginning.
#[tool(
    important,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "markdown": "- 2026-01-31: shipped"}"#
)]
pub(crate) fn append_to_page(input: Addition) -> Result<Content> {
    let place = if input.at_start { "start" } else { "end" };
    let insert = json!({ "content": input.markdown, "position": { "type": place } });
    input
        .of
        .write(&json!({ "type": "insert_content", "insert_content": insert }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Replacement {
    #[serde(flatten)]
    of: OfPage,
    /// Whole new content, in Markdown.
    markdown: String,
    /// Also deletes child pages and databases that the new content does not contain.
    #[serde(default)]
    delete_children: bool,
}

/// Replaces the whole content of a page. The old content is lost: read it first.
#[tool(
    destructive,
    idempotent,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "markdown": "1. Launch\n2. Questions"}"#
)]
pub(crate) fn replace_page_content(input: Replacement) -> Result<Content> {
    let replace =
        json!({ "new_str": input.markdown, "allow_deleting_content": input.delete_children });
    input
        .of
        .write(&json!({ "type": "replace_content", "replace_content": replace }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Move {
    #[serde(flatten)]
    of: OfPage,
    /// Id or URL of the new parent page; or give a `data_source`.
    parent_page: Option<String>,
    /// Id of the data source that gets the page as an entry.
    data_source: Option<String>,
}

/// Moves a page below another page, or into a database.
#[tool(
    idempotent,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "parent_page": "b55c9c91-384d-452b-81db-d1ef79372b75"}"#
)]
pub(crate) fn move_page(input: Move) -> Result<Described> {
    let parent = match (&input.parent_page, &input.data_source) {
        (Some(page), None) => json!({ "type": "page_id", "page_id": id(page) }),
        (None, Some(source)) => json!({ "type": "data_source_id", "data_source_id": id(source) }),
        _ => {
            return Err(ToolError::invalid_input(
                "give either `parent_page` or `data_source`",
            ));
        }
    };
    let request = input
        .of
        .fill(API.post("/pages/{page}/move"))
        .json(&json!({ "parent": parent }));
    Ok(Described::from_json(request.send()?.json()?))
}

/// Moves a page to the trash, with everything below it. `NOTION_RESTORE_PAGE` restores it.
#[tool(
    destructive,
    idempotent,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5"}"#
)]
pub(crate) fn trash_page(input: OfPage) -> Result<Described> {
    input.patch(&json!({ "in_trash": true }))
}

/// Restores a page from the trash.
#[tool(
    idempotent,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5"}"#
)]
pub(crate) fn restore_page(input: OfPage) -> Result<Described> {
    input.patch(&json!({ "in_trash": false }))
}
