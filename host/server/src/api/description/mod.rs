//! Builds the API description from the handlers and from what all operations have in common.
//!
//! The signature of a handler describes its parameters, its body and its successful response, see
//! [`crate::http::signature`]. `#[utoipa::path]` on it adds its summary and its own errors.
//! Everything that follows from its row in the route table and from its kind of key is added here,
//! so that no handler repeats it.

mod texts;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Components, ContentBuilder, Deprecated, HttpMethod, Info, InfoBuilder, LicenseBuilder,
        OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Required, Response, ResponseBuilder,
        SecurityRequirement, ServerBuilder,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Schema, Type},
        security::{ApiKey, ApiKeyValue, SecurityScheme},
        tag::TagBuilder,
    },
};

use crate::{
    api::table::{API_PREFIXES, Row},
    http::{auth, branding::Branding, error::Refusal},
};

/// Name of the component for the envelope of every error.
const REFUSAL_SCHEMA: &str = "Refusal";

/// Name of the security scheme of a project's key.
const PROJECT_KEY_SCHEME: &str = "project";
/// Name of the security scheme of an organization's key.
const ORGANIZATION_KEY_SCHEME: &str = "organization";
/// Name of the security scheme of a user's key.
const USER_KEY_SCHEME: &str = "user";

/// Description of the whole API.
const API_DESCRIPTION: &str = "Connects the accounts of a project's users at providers and runs tools with them.\n\n\
    Every operation has two addresses, below `/api/v3.1` and below `/api/v3`; new clients use `/api/v3.1`. \
    The prefixes differ in three points:\n\n\
    - A request that names no version of a tool uses the latest version below `/api/v3.1`, and the base version, \
    which is the oldest one, below `/api/v3`. An execution there names the version that ran and the latest one \
    in `x-toolhost-tool-version` and `x-toolhost-latest-tool-version`.\n\
    - Schemas of tools below `/api/v3` have the form that older clients read: `nullable` and `enum` instead of \
    lists of types and of constants.\n\
    - `connected_accounts` of a session has a list of accounts by toolkit below `/api/v3.1`, and one account \
    below `/api/v3`.\n\n\
    Unknown members of bodies and unknown parameters are ignored, and the response header \
    `x-toolhost-warning` names each with the nearest known name.\n\n\
    Any POST request may have an `Idempotency-Key` header: a request that is repeated with the same key \
    within a day is performed once.";

/// Groups of operations, in the order of the page: the first segment of their paths, and a
/// description.
const OPERATION_GROUPS: [(&str, &str); 21] = [
    ("toolkits", "Toolkits, their versions and scopes"),
    ("tools", "Tools: search, schemas, execution, proxy requests"),
    (
        "auth_configs",
        "Ways in which a project connects accounts of a toolkit",
    ),
    (
        "connected_accounts",
        "Accounts of users at providers, and links to connect them",
    ),
    (
        "tool_router",
        "Sessions, in which an assistant finds and runs tools of a user",
    ),
    ("session_configs", "Configurations of sessions"),
    ("mcp", "Servers of the Model Context Protocol"),
    ("triggers_types", "Events that toolkits can report"),
    (
        "trigger_instances",
        "Triggers of users, and the stream of their events",
    ),
    (
        "webhook_subscriptions",
        "Delivery of events to the application",
    ),
    (
        "webhook_endpoints",
        "Addresses for the webhooks of providers",
    ),
    ("webhook_ingress", "Webhooks of providers"),
    (
        "files",
        "Files for arguments of tools, and files that tools made",
    ),
    ("logs", "Log of executions"),
    ("auth", "The project and the member of a key"),
    ("project", "Usage of the project"),
    (
        "org",
        "Organization: projects, keys, members, OAuth apps, usage",
    ),
    (
        "api_key_revocation",
        "Revocation of keys that were found in public",
    ),
    ("migration", "Translation of ids of older clients"),
    ("labs", "Sessions of older clients"),
    ("internal", "Logs in the format of older clients"),
];

/// Status and description of an error.
type ErrorResponse = (&'static str, &'static str);

/// Errors of every operation.
const COMMON_ERRORS: [ErrorResponse; 3] = [
    (
        "429",
        "Too many requests in a period of time or at the same time",
    ),
    ("500", "Internal error"),
    ("503", "The server is temporarily unavailable"),
];
/// Error of operations that need a key.
const UNAUTHORIZED_ERROR: ErrorResponse = (
    "401",
    "The key is missing, invalid or of another kind, or there are several keys",
);
/// Error of operations that need a permission.
const FORBIDDEN_ERROR: ErrorResponse = (
    "403",
    "The key does not have the permission, or does not allow the client's address",
);
/// Error of operations that have parameters or a body.
const INVALID_ERROR: ErrorResponse = (
    "400",
    "The request is invalid; `errors` has one line for each problem",
);
/// Error of operations whose path has parameters.
const NOT_FOUND_ERROR: ErrorResponse = (
    "404",
    "The object does not exist in the project or in the catalog",
);
/// Errors of operations that have a body.
const BODY_ERRORS: [ErrorResponse; 3] = [
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body has the wrong media type, or is compressed"),
];

/// Returns the description as it is served and committed.
pub(crate) fn text(rows: &[Row], branding: &Branding) -> String {
    let mut described = serde_json::to_value(describe(rows)).unwrap_or_default();
    texts::complete(&mut described);
    let described = branding.render(described);
    format!("{described:#}\n")
}

fn describe(rows: &[Row]) -> OpenApi {
    let mut components = Components::new();
    let mut paths = Paths::new();
    for row in rows {
        let schemas = row.description.schemas.iter().cloned();
        components.schemas.extend(schemas);
        let method = row.description.method.clone();
        paths.add_path_operation(row.path, vec![method], complete(row));
    }
    add_refusal(&mut components);
    add_security_schemes(&mut components);
    // Tools that read the description use the first server, so the newer prefix is the first one.
    let mut servers = API_PREFIXES.map(|prefix| ServerBuilder::new().url(prefix).build());
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
        .components(Some(components))
        .security(Some(security))
        .tags(Some(tags))
        .build()
}

/// Adds the response of every error, and the schemas that it refers to.
fn add_refusal(components: &mut Components) {
    let name = Refusal::name();
    let mut schemas = Vec::new();
    Refusal::schemas(&mut schemas);
    components.schemas.extend(schemas);
    components
        .schemas
        .insert(name.to_string(), Refusal::schema());
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(name)))
        .build();
    let response = ResponseBuilder::new()
        .description("The request failed")
        .content("application/json", content);
    let response = response.build().into();
    components
        .responses
        .insert(REFUSAL_SCHEMA.to_owned(), response);
}

fn add_security_schemes(components: &mut Components) {
    let schemes = [
        (PROJECT_KEY_SCHEME, auth::PROJECT_KEY_HEADER),
        (ORGANIZATION_KEY_SCHEME, auth::ORGANIZATION_KEY_HEADER),
        (USER_KEY_SCHEME, auth::USER_KEY_HEADER),
    ];
    for (name, header) in schemes {
        let value = ApiKeyValue::with_description(header, &format!("Key of the {name}"));
        components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
    }
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
    let errors = errors(row, &operation);
    let responses = &mut operation.responses.responses;
    for (status, response) in responses.iter_mut() {
        // A response with a body of its own has no envelope.
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
    operation
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

/// Returns the errors that follow from the key, the parameters and the body of an operation.
fn errors(row: &Row, operation: &Operation) -> Vec<ErrorResponse> {
    let mut errors = COMMON_ERRORS.to_vec();
    if operation.security.as_deref() != Some(&[SecurityRequirement::default()]) {
        errors.push(UNAUTHORIZED_ERROR);
    }
    if operation.security.is_none() {
        errors.push(FORBIDDEN_ERROR);
    }
    if operation.parameters.is_some() || operation.request_body.is_some() {
        errors.push(INVALID_ERROR);
    }
    // A PUT request creates an object that does not exist.
    let has_path_parameters = path_parameters(row.path).next().is_some();
    if has_path_parameters && row.description.method != HttpMethod::Put {
        errors.push(NOT_FOUND_ERROR);
    }
    if operation.request_body.is_some() {
        errors.extend(BODY_ERRORS);
    }
    errors
}

/// Refers to the response of every error, with a description of its own.
fn error_response(description: &str) -> RefOr<Response> {
    let mut response = Ref::from_response_name(REFUSAL_SCHEMA);
    response.description = description.to_owned();
    RefOr::Ref(response)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::api::table::rows;

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
