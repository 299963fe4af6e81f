//! Builds the API description from the handlers and from what all operations have in common.
//!
//! A handler describes itself with `#[utoipa::path]`: its doc comment, parameters, bodies and
//! specific errors. Everything that follows from its row in the route table and from its security
//! is added here, so that no handler repeats it.

use utoipa::openapi::{
    Components, ContentBuilder, Deprecated, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi,
    OpenApiBuilder, Paths, Ref, RefOr, Required, Response, ResponseBuilder, SecurityRequirement,
    ServerBuilder,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::{ObjectBuilder, Schema, Type},
    security::{ApiKey, ApiKeyValue, SecurityScheme},
};

use crate::{
    api::table::{PREFIXES, Row},
    http::{auth, branding::Branding, error::Refusal},
};

/// Name of the component for the envelope of every error.
const REFUSAL: &str = "Refusal";
/// Names of the kinds of key, as handlers use them under `security`.
const PROJECT: &str = "project";
const ORGANIZATION: &str = "organization";
const USER: &str = "user";

/// Returns the description as it is served and committed.
pub(crate) fn text(rows: &[Row], branding: &Branding) -> String {
    let described = branding.render(serde_json::to_value(describe(rows)).unwrap_or_default());
    format!("{described:#}\n")
}

fn describe(rows: &[Row]) -> OpenApi {
    let mut components = Components::new();
    let mut paths = Paths::new();
    for row in rows {
        components
            .schemas
            .extend(row.description.schemas.iter().cloned());
        let method = row.description.method.clone();
        paths.add_path_operation(row.path, vec![method], completed(row));
    }
    let (name, envelope) = (
        <Refusal as utoipa::ToSchema>::name(),
        <Refusal as utoipa::PartialSchema>::schema(),
    );
    let mut parts = Vec::new();
    <Refusal as utoipa::ToSchema>::schemas(&mut parts);
    components.schemas.extend(parts);
    components.schemas.insert(name.to_string(), envelope);
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(name)))
        .build();
    let refusal = ResponseBuilder::new()
        .description("Why nothing was done")
        .content("application/json", content);
    components
        .responses
        .insert(REFUSAL.into(), refusal.build().into());
    for (name, header) in [
        (PROJECT, auth::PROJECT),
        (ORGANIZATION, auth::ORGANIZATION),
        (USER, auth::USER),
    ] {
        let value = ApiKeyValue::with_description(header, &format!("The key of the {name}"));
        components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
    }
    let license = LicenseBuilder::new()
        .name("Apache-2.0")
        .identifier(Some("Apache-2.0"))
        .build();
    let info = InfoBuilder::new()
        .title("toolhost")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(license))
        .build();
    let servers = PREFIXES.map(|prefix| ServerBuilder::new().url(prefix).build());
    OpenApiBuilder::new()
        .info(info)
        .servers(Some(servers))
        .paths(paths)
        .components(Some(components))
        .security(Some([PROJECT, USER].map(|kind| {
            SecurityRequirement::new::<_, [&str; 0], &str>(kind, [])
        })))
        .build()
}

const ABOUT: &str = "Connects the accounts of a project's users at external applications and runs tools against them. \
    Both prefixes serve the same operations; they differ in the version of a tool when none is named: the base version \
    under the older prefix, the latest one under the newer. Unknown members of bodies and unknown parameters are ignored. \
    Any POST may carry an `Idempotency-Key`: sent again within a day it is not done again.";

/// Completes an operation with its path parameters and with the errors that every operation of its
/// kind has.
fn completed(row: &Row) -> Operation {
    let path = row.path;
    let mut operation = row.description.operation.clone();
    if row.operation.successor.is_some() {
        operation.deprecated = Some(Deprecated::True);
    }
    let area = path.split('/').nth(1).unwrap_or_default();
    operation.tags = Some(vec![area.to_owned()]);
    operation.operation_id = operation.operation_id.map(|name| format!("{area}_{name}"));
    let names: Vec<_> = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .collect();
    let text = RefOr::T(Schema::Object(
        ObjectBuilder::new().schema_type(Type::String).build(),
    ));
    let in_path = names.iter().map(|name| {
        let parameter = ParameterBuilder::new()
            .name(*name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True);
        RefOr::T(parameter.schema(Some(text.clone())).build())
    });
    let others = operation.parameters.take().unwrap_or_default();
    let parameters: Vec<_> = in_path.chain(others).collect();
    let mut refusals = vec![
        ("429", "Too many requests, or too many under way"),
        ("500", "A fault of the server"),
        ("503", "The server cannot do it now"),
    ];
    if operation.security.as_deref() != Some(&[SecurityRequirement::default()]) {
        refusals.push((
            "401",
            "No key, more than one, one of another kind, or one that does not work",
        ));
    }
    if operation.security.is_none() {
        refusals.push((
            "403",
            "The key may not do this, or not from where it was sent",
        ));
    }
    if !parameters.is_empty() || operation.request_body.is_some() {
        refusals.push((
            "400",
            "The request breaks rules; `errors` has a line for each",
        ));
    }
    // A PUT creates what does not exist.
    if !names.is_empty() && row.description.method != HttpMethod::Put {
        refusals.push((
            "404",
            "There is no such thing in the project or in the catalogue",
        ));
    }
    if operation.request_body.is_some() {
        refusals.push(("408", "The body did not arrive in time"));
        refusals.push(("413", "The body is too large"));
        refusals.push(("415", "The body is of another type, or compressed"));
    }
    if !parameters.is_empty() {
        operation.parameters = Some(parameters);
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(own) = response
            && status.starts_with(['4', '5'])
        {
            *response = refused(&own.description);
        }
    }
    for (status, why) in refusals {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(|| refused(why));
    }
    operation
}

/// Describes an error response.
fn refused(why: &str) -> RefOr<Response> {
    let mut refusal = Ref::from_response_name(REFUSAL);
    refusal.description = why.to_owned();
    RefOr::Ref(refusal)
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
