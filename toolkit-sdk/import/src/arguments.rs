//! Builds the arguments of a tool, and the part of the request that each of them goes into.
//!
//! Parameters and the properties of the body become arguments of one flat object, since agents
//! handle that best. If a name appears twice, a suffix for its location is added. A body that is
//! not an object with properties stays one argument.

use std::collections::{BTreeMap, BTreeSet};

use manifest::plan::{self, FieldEncoding, FormField, ParameterIn};
use serde_json::{Map, Value, json};

use crate::{
    Body, Field, Media, Operation, is_file, names,
    schema::{self, Direction, Merged, Shared},
};

/// Largest size in bytes of one tool's input schema: as much as an agent can be expected to read.
const MAX_INPUT_SCHEMA_BYTES: usize = 24 << 10;
/// Largest size in bytes of one argument's schema. With many arguments the limit is lower.
const MAX_ARGUMENT_SCHEMA_BYTES: usize = 12 << 10;
const MIN_ARGUMENT_SCHEMA_BYTES: usize = 200;
/// Name that no argument can have. It marks hidden values, which are sent but are not arguments.
const HIDDEN_ARGUMENT: &str = "\u{0}";

/// The arguments of one operation.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Input schema.
    pub(crate) schema: Value,
    pub(crate) parameters: Vec<plan::Parameter>,
    pub(crate) body: Option<plan::Body>,
    /// Name of the argument for reading all pages, if the operation has pages.
    pub(crate) pages: Option<String>,
    /// True if a schema was shortened.
    pub(crate) cut: bool,
    /// Arguments that the alternatives of the body require, of which one must be given.
    pub(crate) choices: Vec<Vec<String>>,
}

/// Builds the arguments of an operation.
pub(crate) fn build(operation: &Operation, shared: &Shared) -> Arguments {
    let mut builder = Builder {
        shared,
        names: &operation.names,
        taken: BTreeSet::new(),
        entries: Vec::new(),
        open: false,
        choices: Vec::new(),
    };
    // The places have a fixed order, so that a name never depends on the order of the description.
    let parameters = [
        (ParameterIn::Path, "path"),
        (ParameterIn::Query, "query"),
        (ParameterIn::Header, "header"),
    ]
    .into_iter()
    .flat_map(|(place, suffix)| {
        operation
            .parameters
            .iter()
            .filter(move |parameter| parameter.place == place)
            .map(move |it| (it, suffix))
    })
    .map(|(parameter, suffix)| builder.parameter(parameter, suffix))
    .collect();
    let body = operation.body.as_ref().map(|body| builder.body(body));
    let pages = operation.pages.is_some().then(|| builder.pages());
    let open = builder.open;
    let choices = std::mem::take(&mut builder.choices);
    let (schema, cut) = builder.finish(open);
    Arguments {
        schema,
        parameters,
        body,
        pages,
        cut,
        choices,
    }
}

/// One argument before its schema is inlined.
struct Entry {
    name: String,
    schema: Value,
    required: bool,
    default: Option<Value>,
}

struct Builder<'a> {
    shared: &'a Shared,
    /// Names that the overlay gives to arguments.
    names: &'a BTreeMap<String, String>,
    taken: BTreeSet<String>,
    entries: Vec<Entry>,
    /// True if arguments that are not listed are taken for the body.
    open: bool,
    /// Arguments that the alternatives of the body require.
    choices: Vec<Vec<String>>,
}

impl Builder<'_> {
    fn add(
        &mut self,
        name: &str,
        suffix: &str,
        schema: &Value,
        required: bool,
        default: Option<&Value>,
    ) -> String {
        let renamed_to = self.names.get(name).map_or(name, String::as_str);
        let argument = names::distinct(names::argument(renamed_to), suffix, &self.taken);
        self.taken.insert(argument.clone());
        self.entries.push(Entry {
            name: argument.clone(),
            schema: schema.clone(),
            required: required && default.is_none(),
            default: default.cloned(),
        });
        argument
    }

    fn parameter(&mut self, parameter: &crate::Parameter, suffix: &str) -> plan::Parameter {
        let crate::Parameter {
            name,
            place,
            style,
            explode,
            segments,
            required,
            schema,
            default,
            hidden,
        } = parameter;
        let argument = match hidden {
            true => HIDDEN_ARGUMENT.to_owned(),
            false => self.add(name, suffix, schema, *required, default.as_ref()),
        };
        plan::Parameter {
            argument: (argument != *name).then_some(argument),
            name: name.clone(),
            place: *place,
            style: *style,
            explode: *explode,
            segments: *segments,
            default: default.clone(),
        }
    }

    fn body(&mut self, body: &Body) -> plan::Body {
        match &body.media {
            Media::File { media_type } => plan::Body::File {
                argument: self.add("body", "file", &body.schema, body.required, None),
                media_type: media_type.clone(),
            },
            Media::Text { media_type } => plan::Body::Text {
                argument: self.add("body", "text", &body.schema, body.required, None),
                media_type: media_type.clone(),
            },
            Media::Json { media_type } => self.json(body, media_type.clone()),
            Media::Related { file } => {
                let renamed = self.renamed(body);
                let file = self.add("file", "upload", file, true, None);
                plan::Body::Related {
                    file,
                    defaults: body.defaults.clone(),
                    renamed,
                }
            }
            Media::Form { fields } => plan::Body::Form {
                fields: self.form(body, fields),
            },
            Media::Multipart { fields } => plan::Body::Multipart {
                fields: self.form(body, fields),
            },
            Media::Graphql { document } => plan::Body::Graphql {
                document: document.clone(),
                renamed: self.renamed(body),
            },
            Media::Mcp { tool } => plan::Body::Mcp {
                tool: tool.clone(),
                renamed: self.renamed(body),
            },
        }
    }

    fn json(&mut self, body: &Body, media_type: Option<String>) -> plan::Body {
        let whole = schema::flat(&body.schema, self.shared);
        if !has_spread_members(&whole) {
            let argument = self.add("body", "json", &body.schema, body.required, None);
            return plan::Body::Json {
                argument: Some(argument),
                media_type,
                required: false,
                defaults: BTreeMap::new(),
                renamed: BTreeMap::new(),
            };
        }
        plan::Body::Json {
            argument: None,
            media_type,
            required: body.required,
            defaults: body.defaults.clone(),
            renamed: self.renamed(body),
        }
    }

    /// Adds the members of the body. Returns those whose arguments have another name.
    fn renamed(&mut self, body: &Body) -> BTreeMap<String, String> {
        let members = self.members(body).into_iter();
        members
            .filter(|(member, argument)| member != argument)
            .map(|(member, argument)| (argument, member))
            .collect()
    }

    /// Adds the properties of the body. Returns the name of each property and of its argument.
    fn members(&mut self, body: &Body) -> Vec<(String, String)> {
        let Merged {
            schema: whole,
            choices,
        } = schema::merged(&body.schema, self.shared);
        let required = whole
            .get("required")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        self.open |= whole
            .get("additionalProperties")
            .is_some_and(|more| more.is_object() || *more == Value::Bool(true));
        let members = whole
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut added = Vec::new();
        for (name, schema) in members {
            if !schema::is_read_only(&schema, self.shared) {
                let is_required =
                    body.required && required.iter().any(|it| it.as_str() == Some(name.as_str()));
                let argument = self.add(
                    &name,
                    "body",
                    &schema,
                    is_required,
                    body.defaults.get(&name),
                );
                added.push((name, argument));
            }
        }
        self.choices = choices
            .iter()
            .map(|choice| {
                choice
                    .iter()
                    .filter_map(|member| {
                        let (_, argument) = added.iter().find(|(name, _)| name == member)?;
                        Some(argument.clone())
                    })
                    .collect()
            })
            .collect();
        added
    }

    fn form(&mut self, body: &Body, fields: &[Field]) -> Vec<FormField> {
        let whole = Value::Object(schema::merged(&body.schema, self.shared).schema);
        let added = self.members(body);
        let mut fields: Vec<_> = added
            .into_iter()
            .map(|(name, argument)| {
                let schema = schema::flat(&whole["properties"][&name], self.shared);
                let stated = fields
                    .iter()
                    .find(|field| field.name == name)
                    .map(|field| field.carries);
                let carries = if is_file(&schema) || is_file(&schema["items"]) {
                    FieldEncoding::File
                } else {
                    stated.unwrap_or_else(|| default_encoding(&schema, &body.media))
                };
                FormField {
                    argument: (argument != name).then_some(argument),
                    carries,
                    default: body.defaults.get(&name).cloned(),
                    name,
                }
            })
            .collect();
        // Members that the overlay hides have no argument but are still sent.
        let hidden: Vec<_> = body
            .defaults
            .iter()
            .filter(|(name, _)| fields.iter().all(|field| field.name != **name))
            .collect();
        fields.extend(hidden.into_iter().map(|(name, value)| FormField {
            argument: Some(HIDDEN_ARGUMENT.to_owned()),
            name: name.clone(),
            carries: FieldEncoding::Plain,
            default: Some(value.clone()),
        }));
        fields
    }

    fn pages(&mut self) -> String {
        let schema = json!({
            "type": "integer", "minimum": 1, "maximum": 1000,
            "description": "Reads further pages until there are this many items. Without it, one page.",
        });
        self.add("max_items", "all", &schema, false, None)
    }

    /// Builds the input schema: required arguments first, each argument with its share of the
    /// bytes.
    fn finish(mut self, open: bool) -> (Value, bool) {
        self.entries.sort_by_key(|entry| !entry.required);
        let count = self.entries.len().max(1);
        let mut budget = MAX_ARGUMENT_SCHEMA_BYTES;
        loop {
            let (schema, cut) = self.schema(budget, open);
            if schema.to_string().len() <= MAX_INPUT_SCHEMA_BYTES
                || budget <= MIN_ARGUMENT_SCHEMA_BYTES
            {
                return (schema, cut);
            }
            budget = (budget / 2)
                .min((MAX_INPUT_SCHEMA_BYTES / count * 4).max(MIN_ARGUMENT_SCHEMA_BYTES))
                .max(MIN_ARGUMENT_SCHEMA_BYTES);
        }
    }

    fn schema(&self, budget: usize, open: bool) -> (Value, bool) {
        let mut cut = false;
        let mut properties = Map::new();
        for entry in &self.entries {
            let closed = schema::inline(&entry.schema, self.shared, Direction::In, budget);
            cut |= closed.cut;
            let mut schema = closed.schema;
            if let (Some(default), Some(schema)) = (&entry.default, schema.as_object_mut()) {
                schema.insert("default".to_owned(), default.clone());
            }
            properties.insert(entry.name.clone(), schema);
        }
        let mut whole = json!({ "type": "object", "properties": properties });
        let required: Vec<&str> = self
            .entries
            .iter()
            .filter(|it| it.required)
            .map(|it| it.name.as_str())
            .collect();
        if !required.is_empty() {
            whole["required"] = json!(required);
        }
        if !open {
            whole["additionalProperties"] = false.into();
        }
        (whole, cut)
    }
}

/// Returns true if the members of a body become arguments.
fn has_spread_members(whole: &Value) -> bool {
    let members = whole
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|members| !members.is_empty());
    members && whole.get("anyOf").is_none() && whole.get("oneOf").is_none() && allows_object(whole)
}

fn allows_object(whole: &Value) -> bool {
    match whole.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    }
}

/// Returns the default encoding of a form's value if the description does not state one (`OpenAPI`
/// 3.1, Encoding Object).
fn default_encoding(schema: &Value, media: &Media) -> FieldEncoding {
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let of_objects =
        schema["items"].get("properties").is_some() || schema["items"]["type"] == "object";
    match (kind, media) {
        ("object", Media::Form { .. }) => FieldEncoding::Brackets,
        ("array", Media::Form { .. }) if of_objects => FieldEncoding::Brackets,
        ("object", _) => FieldEncoding::Json,
        ("array", _) if of_objects => FieldEncoding::Json,
        _ => FieldEncoding::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(operation: Value) -> Arguments {
        build(&serde_json::from_value(operation).unwrap(), &Shared::new())
    }

    fn parameter(name: &str, place: &str) -> Value {
        json!({ "name": name, "place": place, "style": "form", "required": place == "path", "schema": { "type": "string" } })
    }

    #[test]
    fn parameters_and_members_stand_side_by_side() {
        let builder = arguments(json!({
            "parameters": [parameter("q", "query"), parameter("id", "path")],
            "body": {
                "media": { "kind": "json" }, "required": true,
                "schema": { "type": "object", "properties": { "title": { "type": "string" }, "id": { "type": "integer" } }, "required": ["title"] },
            },
        }));
        let names: Vec<_> = builder.schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(names, ["id", "title", "q", "id_body"]);
        assert_eq!(builder.schema["required"], json!(["id", "title"]));
        assert_eq!(builder.schema["additionalProperties"], json!(false));
        let Some(plan::Body::Json {
            argument: None,
            required: true,
            renamed,
            ..
        }) = builder.body
        else {
            panic!()
        };
        assert_eq!(
            renamed,
            BTreeMap::from([("id_body".to_owned(), "id".to_owned())])
        );
    }

    #[test]
    fn renamed_members_keep_their_names_at_the_provider() {
        let schema = json!({ "type": "object", "properties": { "from": { "type": "string" } } });
        for media in [
            json!({ "kind": "json" }),
            json!({ "kind": "graphql", "document": "query" }),
            json!({ "kind": "mcp", "tool": "send" }),
        ] {
            let built = arguments(json!({ "body": { "media": media, "schema": schema } }));
            assert!(built.schema["properties"]["from_"].is_object(), "{media}");
            let body = serde_json::to_value(built.body).unwrap();
            assert_eq!(body["renamed"], json!({ "from_": "from" }), "{media}");
        }
    }

    #[test]
    fn a_body_without_members_is_one_argument() {
        for schema in [
            json!({ "type": "array" }),
            json!({ "type": "object" }),
            json!({ "oneOf": [{}], "properties": { "a": {} } }),
        ] {
            let builder = arguments(
                json!({ "body": { "media": { "kind": "json" }, "schema": schema, "required": true } }),
            );
            assert_eq!(builder.schema["required"], json!(["body"]), "{schema}");
            assert!(matches!(
                builder.body,
                Some(plan::Body::Json {
                    argument: Some(_),
                    ..
                })
            ));
        }
    }

    #[test]
    fn a_form_says_how_each_member_goes() {
        let schema = json!({ "type": "object", "properties": {
            "text": { "type": "string" }, "file": crate::file(None), "files": { "type": "array", "items": crate::file(None) },
            "object": { "type": "object" },
        }});
        let body = |kind: &str| json!({ "body": { "media": { "kind": kind }, "schema": schema } });
        let carried = |builder: Arguments| match builder.body {
            Some(plan::Body::Form { fields } | plan::Body::Multipart { fields }) => {
                fields.iter().map(|it| it.carries).collect::<Vec<_>>()
            }
            _ => panic!(),
        };
        let expected = [
            FieldEncoding::Plain,
            FieldEncoding::File,
            FieldEncoding::File,
            FieldEncoding::Json,
        ];
        assert_eq!(carried(arguments(body("multipart"))), expected);
        assert_eq!(carried(arguments(body("form")))[3], FieldEncoding::Brackets);
    }

    #[test]
    fn hidden_parameter_is_sent_without_argument() {
        let mut hidden = parameter("v", "query");
        hidden["hidden"] = true.into();
        hidden["default"] = 2.into();
        let builder = arguments(json!({ "parameters": [hidden] }));
        assert_eq!(
            builder.schema,
            json!({ "type": "object", "properties": {}, "additionalProperties": false })
        );
        assert_eq!(builder.parameters[0].default, Some(json!(2)));
        assert_ne!(builder.parameters[0].argument, None);
    }

    #[test]
    fn very_many_arguments_share_the_room() {
        let members: Map<String, Value> = (0..200)
            .map(|n| {
                (
                    format!("m{n}"),
                    json!({ "type": "string", "description": "word ".repeat(200) }),
                )
            })
            .collect();
        let body = json!({ "media": { "kind": "json" }, "schema": { "type": "object", "properties": members } });
        let builder = arguments(json!({ "body": body }));
        assert!(
            builder.schema.to_string().len() <= 60_000,
            "{}",
            builder.schema.to_string().len()
        );
        assert_eq!(builder.schema["properties"].as_object().unwrap().len(), 200);
    }
}
