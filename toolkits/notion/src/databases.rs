//! Databases. Each has data sources, which are tables whose rows are pages.

use serde_json::{Map, Value};
use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, id, list};
use crate::pages::Described;
use crate::text;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfDatabase {
    /// Id or URL of the database.
    #[schemars(length(min = 1))]
    database: String,
}

/// A database.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Database {
    id: String,
    title: String,
    /// URL of the web page.
    url: String,
    data_sources: Vec<Source>,
}

/// A data source of a database.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Source {
    /// Id of the data source, for `data_source` of other tools.
    id: String,
    #[serde(default)]
    name: String,
}

/// A database in Notion's format.
#[derive(Deserialize)]
struct Written {
    id: String,
    #[serde(default)]
    title: Value,
    #[serde(default)]
    url: String,
    #[serde(default)]
    data_sources: Vec<Source>,
}

impl From<Written> for Database {
    fn from(written: Written) -> Self {
        let Written {
            id,
            title,
            url,
            data_sources,
        } = written;
        Self {
            id,
            title: text::plain(&title),
            url,
            data_sources,
        }
    }
}

/// Gets a database and its data sources, which can be queried and filled.
#[tool(
    read_only,
    idempotent,
    example = r#"{"database": "d9824bdc-8445-4327-be8b-5b47500af6ce"}"#
)]
pub(crate) fn get_database(input: OfDatabase) -> Result<Database> {
    let request = API
        .get("/databases/{database}")
        .path("database", id(&input.database));
    Ok(request.send()?.json::<Written>()?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfSource {
    /// Id of the data source, from `NOTION_GET_DATABASE` or `NOTION_SEARCH`.
    #[schemars(length(min = 1))]
    data_source: String,
}

/// A data source.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Table {
    id: String,
    title: String,
    properties: Vec<Column>,
}

/// A property of all entries.
#[derive(Serialize, JsonSchema)]
struct Column {
    name: String,
    /// `title`, `rich_text`, `number`, `select`, `multi_select`, `status`, `date`, `people`,
    /// `relation`, `checkbox` and so on.
    #[serde(rename = "type")]
    kind: String,
    /// Names of the options of a select, multi-select or status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

/// Gets the properties of a data source, with their types and options. Use it before filling or
/// querying one.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"data_source": "bc1211ca-e3f1-4939-ae34-5260b16f627c"}"#
)]
pub(crate) fn get_data_source(input: OfSource) -> Result<Table> {
    let source: Value = API
        .get("/data_sources/{source}")
        .path("source", id(&input.data_source))
        .send()?
        .json()?;
    Ok(Table {
        id: source["id"].as_str().unwrap_or_default().to_owned(),
        title: text::plain(&source["title"]),
        properties: source["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, property)| column(name, property))
            .collect(),
    })
}

fn column(name: &str, property: &Value) -> Column {
    let kind = property["type"].as_str().unwrap_or_default().to_owned();
    let options = property[&kind]["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["name"].as_str().map(str::to_owned))
        .collect();
    Column {
        name: name.to_owned(),
        kind,
        options,
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Query {
    #[serde(flatten)]
    of: OfSource,
    /// Filter in Notion's format: `{"property": "Status", "status": {"equals": "Done"}}`,
    /// `{"and": [{"property": "Due", "date": {"before": "2026-01-31"}}, {"property": "Done",
    /// "checkbox": {"equals": false}}]}`. Defaults to all entries.
    filter: Option<Map<String, Value>>,
    /// Name of the property to sort by.
    sort_by: Option<String>,
    /// Sorts the largest first.
    #[serde(default)]
    descending: bool,
    #[serde(flatten)]
    part: Part,
}

/// Lists entries of a data source, all or those that match a filter, with their properties as plain
/// values.
#[tool(
    read_only,
    idempotent,
    important,
    egress("POST api.notion.com/v1/data_sources/"),
    example = r#"{"data_source": "bc1211ca-e3f1-4939-ae34-5260b16f627c", "filter": {"property": "Status", "status": {"equals": "Doing"}}}"#
)]
pub(crate) fn query_data_source(input: Query) -> Result<Page<Described>> {
    let mut body = json!({});
    if let Some(filter) = input.filter {
        body["filter"] = Value::Object(filter);
    }
    if let Some(property) = input.sort_by {
        let direction = if input.descending {
            "descending"
        } else {
            "ascending"
        };
        body["sorts"] = json!([{ "property": property, "direction": direction }]);
    }
    input.part.fill(&mut body);
    let request = API
        .post("/data_sources/{source}/query")
        .path("source", id(&input.of.data_source));
    list(request.json(&body), Described::from_json)
}

/// Type of a property.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    RichText,
    Number,
    Select,
    MultiSelect,
    Status,
    Date,
    People,
    Files,
    Checkbox,
    Url,
    Email,
    PhoneNumber,
    CreatedTime,
    LastEditedTime,
}

/// A property of all entries of a new data source.
#[derive(Deserialize, JsonSchema)]
struct NewColumn {
    #[schemars(length(min = 1))]
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// Names of the options of a select or multi-select.
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewDatabase {
    /// Id or URL of the page that will contain the database.
    #[schemars(length(min = 1))]
    parent_page: String,
    #[schemars(length(min = 1))]
    title: String,
    /// Name of the property that holds the title of an entry.
    #[serde(default = "name")]
    #[schemars(length(min = 1))]
    title_property: String,
    /// Further properties.
    #[serde(default)]
    properties: Vec<NewColumn>,
}

fn name() -> String {
    "Name".to_owned()
}

/// Creates a database on a page, with one data source with these properties.
#[tool(
    example = r#"{"parent_page": "59833787-2cf9-4fdf-8782-e53db20768a5", "title": "Tasks", "properties": [{"name": "Stage", "type": "select", "options": ["To do", "Done"]}, {"name": "Due", "type": "date"}]}"#
)]
pub(crate) fn create_database(input: NewDatabase) -> Result<Database> {
    let mut properties = Map::from_iter([(input.title_property, json!({ "title": {} }))]);
    for column in input.properties {
        let word = json!(column.kind);
        let kind = word.as_str().unwrap_or_default();
        let settings = match column.kind {
            Kind::Select | Kind::MultiSelect => {
                let options: Value = column
                    .options
                    .iter()
                    .map(|option| json!({ "name": option }))
                    .collect();
                json!({ "options": options })
            }
            _ if !column.options.is_empty() => {
                return Err(ToolError::invalid_input(format!(
                    "`{}` is of type {kind}, which takes no `options`",
                    column.name
                )));
            }
            _ => json!({}),
        };
        properties.insert(column.name, json!({ kind: settings }));
    }
    let body = json!({
        "parent": { "type": "page_id", "page_id": id(&input.parent_page) },
        "title": text::rich(&input.title),
        "initial_data_source": { "properties": properties },
    });
    Ok(API
        .post("/databases")
        .json(&body)
        .send()?
        .json::<Written>()?
        .into())
}
