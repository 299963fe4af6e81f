//! Reads parameters.

use manifest::plan::{ParameterIn, Style};
use serde_json::{Map, Value, json};

use super::Reader;
use crate::{Operation, Parameter, Unsupported, parse, text};

/// Headers that the platform writes, or that the specification describes elsewhere.
const PLATFORM_HEADERS: [&str; 22] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-http-method-override",
];
const MAX_PARAMETERS: usize = 500;

/// Returns the name and the location of a parameter, which identify it.
fn key(parameter: &Value) -> (String, String) {
    (
        parse::text(&parameter["name"]),
        parse::text(&parameter["in"]),
    )
}

impl<'a> Reader<'a> {
    /// Reads the parameters of a path and of an operation. Those of the operation take precedence.
    pub(super) fn parameters(
        &mut self,
        made: &mut Operation,
        item: &'a Map<String, Value>,
        own: &'a Map<String, Value>,
    ) {
        let mut all: Vec<&'a Value> = Vec::new();
        for list in [item, own]
            .into_iter()
            .filter_map(|holder| holder.get("parameters")?.as_array())
        {
            for parameter in list.iter().take(MAX_PARAMETERS) {
                let reference = &parameter["$ref"];
                let parameter = self.document.follow(parameter);
                if !parameter.is_object() {
                    let named = reference.as_str().unwrap_or("a parameter");
                    self.part(
                        &made.id,
                        format!(
                            "the parameter `{}` is not in this document",
                            text::line(named, 200)
                        ),
                    );
                    continue;
                }
                all.retain(|known| key(known) != key(parameter));
                all.push(parameter);
            }
        }
        for parameter in all {
            self.parameter(made, parameter);
        }
        self.complete_path(made);
    }

    fn parameter(&mut self, made: &mut Operation, parameter: &'a Value) {
        let name = parse::text(&parameter["name"]).trim().to_owned();
        let required = parameter["required"].as_bool() == Some(true);
        let place = match parameter["in"].as_str() {
            Some("path") => ParameterIn::Path,
            Some("query") => ParameterIn::Query,
            Some("header") => ParameterIn::Header,
            Some("cookie") if self.security.fills_cookie(&name) => return,
            other => {
                let what = format!("the {} parameter `{name}`", other.unwrap_or("unplaced"));
                let unusable = required && other == Some("cookie");
                let entry = Unsupported::new(&made.id, what, unusable);
                return self.api.unsupported.push(entry);
            }
        };
        if name.is_empty() || self.is_given(place, &name) {
            return;
        }
        if place == ParameterIn::Header && manifest::is_platform_header(&name) {
            let what = format!("the header `{name}`, which only the platform may set");
            let entry = Unsupported::new(&made.id, what, required);
            return self.api.unsupported.push(entry);
        }
        let (style, explode) = style(parameter, place);
        let mut schema = self.parameter_schema(parameter);
        if let (Some(said), Some(schema)) = (
            parameter["description"]
                .as_str()
                .filter(|it| !it.trim().is_empty()),
            schema.as_object_mut(),
        ) {
            schema.insert("description".to_owned(), text::block(said, 2000).into());
        }
        let wide = ["x-multi-segment", "allowReserved"]
            .iter()
            .any(|word| parameter[*word].as_bool() == Some(true));
        made.parameters.push(Parameter {
            name,
            place,
            style,
            explode,
            segments: place == ParameterIn::Path && wide,
            required: required || place == ParameterIn::Path,
            schema,
            default: None,
            hidden: false,
        });
    }

    /// Returns true if the platform sets the value: a credential or a header that frames the
    /// message.
    fn is_given(&self, place: ParameterIn, name: &str) -> bool {
        match place {
            ParameterIn::Header => {
                PLATFORM_HEADERS.contains(&name.to_ascii_lowercase().as_str())
                    || self.security.fills_header(name)
            }
            ParameterIn::Query => self.security.fills_query(name),
            ParameterIn::Path => false,
        }
    }

    fn parameter_schema(&mut self, parameter: &'a Value) -> Value {
        let content = parameter["content"]
            .as_object()
            .and_then(|content| content.values().next());
        match parameter.get("schema").or_else(|| content?.get("schema")) {
            Some(schema) => self.schemas.read(schema),
            None => json!({ "type": "string" }),
        }
    }

    /// Matches the variables of the path with its parameters.
    fn complete_path(&mut self, made: &mut Operation) {
        // A fragment never leaves the client. Some descriptions use it to distinguish operations on
        // one path.
        if let Some((path, _)) = made.path.split_once('#') {
            made.path = path.to_owned();
        }
        let mut path = String::new();
        let mut rest = made.path.as_str();
        let mut holes = Vec::new();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((hole, after)) = after.split_once('}') else {
                break;
            };
            let name = hole.trim_matches(['+', '*', '#', '.', ';', '/']);
            holes.push((name.to_owned(), name.len() != hole.len()));
            path.push_str(&format!("{before}{{{name}}}"));
            rest = after;
        }
        path.push_str(rest);
        made.path = path;
        let id = made.id.clone();
        made.parameters.retain(|parameter| {
            let there = parameter.place != ParameterIn::Path
                || holes.iter().any(|(hole, _)| *hole == parameter.name);
            if !there {
                let what = format!(
                    "the path parameter `{}`, which the path does not contain",
                    parameter.name
                );
                self.api.unsupported.push(Unsupported::part(&id, what));
            }
            there
        });
        for (hole, wide) in holes {
            let known = made
                .parameters
                .iter_mut()
                .find(|parameter| parameter.place == ParameterIn::Path && parameter.name == hole);
            match known {
                Some(known) => known.segments |= wide,
                None => made.parameters.push(path_parameter(hole, wide)),
            }
        }
    }
}

/// Returns a parameter for a variable of the path that the description does not declare.
fn path_parameter(name: String, segments: bool) -> Parameter {
    Parameter {
        name,
        place: ParameterIn::Path,
        style: Style::Simple,
        explode: false,
        segments,
        required: true,
        schema: json!({ "type": "string" }),
        default: None,
        hidden: false,
    }
}

fn style(parameter: &Value, place: ParameterIn) -> (Style, bool) {
    if parameter.get("content").is_some_and(Value::is_object) && parameter.get("schema").is_none() {
        return (Style::Json, false);
    }
    let usual = if place == ParameterIn::Query {
        Style::Form
    } else {
        Style::Simple
    };
    let style = match parameter["style"].as_str() {
        Some("simple") => Style::Simple,
        Some("label") => Style::Label,
        Some("matrix") => Style::Matrix,
        Some("form") => Style::Form,
        Some("spaceDelimited") => Style::SpaceDelimited,
        Some("pipeDelimited") => Style::PipeDelimited,
        Some("deepObject") => Style::DeepObject,
        _ => usual,
    };
    (
        style,
        parameter["explode"]
            .as_bool()
            .unwrap_or(style == Style::Form),
    )
}
