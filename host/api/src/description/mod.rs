//! Builds the API description from the handlers and from what all operations have in common.
//!
//! The signature of a handler describes its parameters, its body and its successful response, see
//! [`http::signature`]. `#[utoipa::path]` on it adds its summary and its own errors.
//! Everything that follows from its row in the route table and from its kind of key is added here,
//! so that no handler repeats it.

mod errors;
mod overview;
mod texts;

use http::{auth, branding::Branding, path::API_PREFIXES, refusal::Refusal, row::Row};
use utoipa::{
    ToSchema,
    openapi::{
        Components, ComponentsBuilder, ContentBuilder, Deprecated, Info, InfoBuilder,
        LicenseBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Required, Response,
        ResponseBuilder, SecurityRequirement, ServerBuilder,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Schema, Type},
        security::{ApiKey, ApiKeyValue, SecurityScheme},
        tag::TagBuilder,
    },
};

use self::{
    errors::errors,
    overview::{API_DESCRIPTION, OPERATION_GROUPS},
};

/// Name of the component for the envelope of every error.
const REFUSAL_SCHEMA: &str = "Refusal";

/// Name of the security scheme of a project's key.
const PROJECT_KEY_SCHEME: &str = "project";
/// Name of the security scheme of an organization's key.
const ORGANIZATION_KEY_SCHEME: &str = "organization";
/// Name of the security scheme of a user's key.
const USER_KEY_SCHEME: &str = "user";

/// Returns the description as it is served and committed.
pub fn text(rows: &[Row], branding: &Branding, base: &str) -> String {
    let mut described = serde_json::to_value(describe(rows, base)).unwrap_or_default();
    texts::complete(&mut described);
    let described = branding.render(described);
    format!("{described:#}\n")
}

fn describe(rows: &[Row], base: &str) -> OpenApi {
    let mut paths = Paths::new();
    for row in rows {
        let method = row.description.method.clone();
        paths.add_path_operation(row.path, vec![method], complete(row));
    }
    // Tools that read the description use the first server, so the newer prefix is the first one.
    let mut servers = API_PREFIXES.map(|prefix| {
        let url = format!("{base}{prefix}");
        ServerBuilder::new().url(url).build()
    });
    servers.reverse();
    let tags = OPERATION_GROUPS.map(|(name, description)| {
        let tag = TagBuilder::new().name(name);
        tag.description(Some(description)).build()
    });
    let security = [PROJECT_KEY_SCHEME, USER_KEY_SCHEME]
        .map(|scheme| SecurityRequirement::new(scheme, [""; 0]));
    OpenApiBuilder::new()
        .info(info())
        .servers(Some(servers))
        .paths(paths)
        .components(Some(components(rows)))
        .security(Some(security))
        .tags(Some(tags))
        .build()
}

/// Returns the schemas that operations refer to, the response of every error, and the kinds of keys.
fn components(rows: &[Row]) -> Components {
    let own = rows.iter().flat_map(|row| row.description.schemas.clone());
    let mut schemas: Vec<_> = own.collect();
    Refusal::schemas(&mut schemas);
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(Refusal::name())))
        .build();
    let refusal = ResponseBuilder::new()
        .description("The request failed")
        .content("application/json", content);
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .schema_from::<Refusal<'_>>()
        .response(REFUSAL_SCHEMA, refusal.build());
    let keys = [
        (PROJECT_KEY_SCHEME, auth::PROJECT_KEY_HEADER),
        (ORGANIZATION_KEY_SCHEME, auth::ORGANIZATION_KEY_HEADER),
        (USER_KEY_SCHEME, auth::USER_KEY_HEADER),
    ];
    keys.into_iter()
        .fold(components, |components, (name, header)| {
            let value = ApiKeyValue::with_description(header, &format!("Key of the {name}"));
            components.security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)))
        })
        .build()
}

fn info() -> Info {
    let license = LicenseBuilder::new()
        .name("Apache-2.0")
        .identifier(Some("Apache-2.0"))
        .build();
    InfoBuilder::new()
        .title("toolhost")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(API_DESCRIPTION))
        .license(Some(license))
        .build()
}

/// Completes an operation with its path parameters and with the errors that every operation of its
/// kind has.
fn complete(row: &Row) -> Operation {
    let mut operation = row.description.operation.clone();
    if row.operation.successor.is_some() {
        operation.deprecated = Some(Deprecated::True);
    }
    let area = row.path.split('/').nth(1).unwrap_or_default();
    operation.tags = Some(vec![area.to_owned()]);
    operation.operation_id = operation.operation_id.map(|name| format!("{area}_{name}"));
    let others = operation.parameters.take().unwrap_or_default();
    let parameters: Vec<_> = path_parameters(row.path)
        .map(|name| RefOr::T(path_parameter(name)))
        .chain(others)
        .collect();
    if !parameters.is_empty() {
        operation.parameters = Some(parameters);
    }
    add_errors(row, &mut operation);
    operation
}

/// Adds the errors that every operation of its kind has, and the envelope to those that are declared.
fn add_errors(row: &Row, operation: &mut Operation) {
    let errors = errors(row, operation);
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        // A response with its own body lacks the envelope.
        if let RefOr::T(own) = response
            && status.starts_with(['4', '5'])
            && own.content.is_empty()
        {
            *response = error_response(&own.description);
        }
    }
    for (status, description) in errors {
        responses
            .entry(status.to_owned())
            .or_insert_with(|| error_response(description));
    }
}

/// Returns the names of the parameters of a path.
fn path_parameters(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(Schema::Object(text)))
        .build()
}

/// Refers to the response of every error, with a description of its own.
fn error_response(description: &str) -> RefOr<Response> {
    let mut response = Ref::from_response_name(REFUSAL_SCHEMA);
    response.description = description.to_owned();
    RefOr::Ref(response)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use http::branding::{Branding, DEFAULT_BRAND};
    use serde_json::{Value, json};

    use super::OPERATION_GROUPS;
    use crate::table::rows;

    /// Adds the names of the members of a schema, at any depth.
    fn add_members<'a>(
        described: &'a Value,
        schema: &'a Value,
        seen: &mut BTreeSet<&'a str>,
        names: &mut BTreeSet<&'a str>,
    ) {
        let parts: Vec<_> = match schema {
            Value::Array(items) => items.iter().collect(),
            Value::Object(keywords) => keywords.values().collect(),
            _ => return,
        };
        if let Some(reference) = schema["$ref"].as_str()
            && seen.insert(reference)
        {
            let referred = described.pointer(reference.trim_start_matches('#'));
            add_members(described, referred.unwrap(), seen, names);
        }
        let members = schema["properties"].as_object().into_iter().flatten();
        names.extend(members.map(|(name, _)| name.as_str()));
        for part in parts {
            add_members(described, part, seen, names);
        }
    }

    #[test]
    fn request_members_are_read_with_operator_word() {
        let described = serde_json::to_value(super::describe(&rows(), "")).unwrap();
        let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
        for path in described["paths"].as_object().unwrap().values() {
            for operation in path.as_object().unwrap().values() {
                let body = &operation["requestBody"];
                add_members(&described, body, &mut seen, &mut names);
            }
        }
        names.retain(|name| name.contains(DEFAULT_BRAND));
        assert!(names.contains("restrict_egress_to_service"), "{names:?}");
        let branding = Branding::new("acme");
        for name in names {
            let sent = json!({ "nested": { branding.rename(name): true } });
            let read = json!({ "nested": { name: true } });
            assert_eq!(branding.restore(sent), read);
        }
    }

    #[test]
    fn every_tag_is_a_described_group() {
        for row in rows() {
            for tag in super::complete(&row).tags.unwrap() {
                let is_described = OPERATION_GROUPS.iter().any(|(name, _)| *name == tag);
                assert!(is_described, "add `{tag}` to `OPERATION_GROUPS`");
            }
        }
    }

    #[test]
    fn no_two_schemas_share_a_name() {
        let mut known = BTreeMap::new();
        for row in rows() {
            let path = row.path;
            for (name, schema) in row.description.schemas {
                let text = serde_json::to_string(&schema).unwrap();
                let earlier = known.entry(name.clone()).or_insert_with(|| text.clone());
                assert_eq!(
                    *earlier, text,
                    "`{name}` of {path}: give one of them another name with `#[schema(as = …)]`"
                );
            }
        }
    }
}
