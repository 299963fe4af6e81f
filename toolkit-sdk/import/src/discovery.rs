//! Documents of Google's API Discovery Service.
//!
//! A document contains its own schemas, its methods in nested resources, and for each method the
//! scopes, any one of which suffices. A method that also accepts or returns bytes becomes a second
//! operation, with `.media` after its name.

mod document;
mod method;
mod pages;
mod schema;
mod scopes;

use manifest::{AuthMode, AuthScheme, Field, OAuth2, Placement};
use serde_json::Value;

use crate::{Api, Error, Result, Server, Unsupported, parse, text};
use document::{Document, Resource};
use method::Reader;

/// Largest number of operations of one document. The largest known document has 1,100.
const MAX_OPERATIONS: usize = 20_000;

/// Reads a document.
///
/// # Errors
/// The document is not JSON, does not describe a REST API, or is too large.
pub fn discovery(bytes: &[u8]) -> Result<Api> {
    let root = parse::document(bytes)?;
    if root.get("kind").and_then(Value::as_str) != Some("discovery#restDescription") {
        return Err(Error::new(
            "this is not a Discovery document: `kind` is not `discovery#restDescription`",
        ));
    }
    let document: Document = serde_json::from_value(root)
        .map_err(|cause| Error::new(format!("the Discovery document is not valid: {cause}")))?;
    if document.root_url.is_empty() {
        return Err(Error::new("the Discovery document names no `rootUrl`"));
    }
    let reader = Reader::new(&document);
    let mut api = Api {
        name: text::line(
            if document.title.is_empty() {
                &document.name
            } else {
                &document.title
            },
            100,
        ),
        description: text::block(&document.description, 1000),
        servers: vec![server(&format!(
            "{}/{}",
            root_url(&document),
            document.service_path.trim_matches('/')
        ))],
        auth: auth(&document),
        schemas: schema::shared(&document),
        ..Api::default()
    };
    operations(&reader, &document, &mut api)?;
    if !document.endpoints.is_empty() {
        let what = format!(
            "{} regional addresses; the global address is used",
            document.endpoints.len()
        );
        api.unsupported.push(Unsupported::whole(what));
    }
    Ok(api)
}

fn operations(reader: &Reader<'_>, document: &Document, api: &mut Api) -> Result<()> {
    let mut open: Vec<(String, &Resource)> = document
        .resources
        .iter()
        .map(|(name, it)| (name.clone(), it))
        .collect();
    let mut found: Vec<(String, _, _)> = document
        .methods
        .iter()
        .map(|(name, it)| (String::new(), name, it))
        .collect();
    while let Some((path, resource)) = open.pop() {
        found.extend(
            resource
                .methods
                .iter()
                .map(|(name, it)| (path.clone(), name, it)),
        );
        open.extend(
            resource
                .resources
                .iter()
                .map(|(name, it)| (format!("{path}.{name}"), it)),
        );
    }
    if found.len() > MAX_OPERATIONS {
        return Err(Error::new(format!(
            "the document has more than {MAX_OPERATIONS} methods"
        )));
    }
    found.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    for (path, name, method) in found {
        let id = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        reader.method(&manifest::cleaned(&id), &path, method, api);
    }
    Ok(())
}

fn root_url(document: &Document) -> &str {
    document.root_url.trim_end_matches('/')
}

fn server(url: &str) -> Server {
    Server {
        url: url.trim_end_matches('/').to_owned(),
        variables: Vec::new(),
    }
}

/// Returns the auth schemes. An API with scopes is connected by OAuth 2.0 or an existing token, an
/// API without scopes by an API key.
fn auth(document: &Document) -> Vec<AuthScheme> {
    if !document.auth.oauth2.scopes.is_empty() {
        let token = vec![Field::new("token", "Access token", true)];
        return vec![
            scheme(
                AuthMode::Oauth2,
                "OAuth",
                Vec::new(),
                Placement::header("authorization", "Bearer {access_token}"),
            ),
            scheme(
                AuthMode::BearerToken,
                "Bearer token",
                token,
                Placement::header("authorization", "Bearer {token}"),
            ),
        ];
    }
    let key = scheme(
        AuthMode::ApiKey,
        "API key",
        vec![Field::new("api_key", "API key", true)],
        Placement::query("key", "{api_key}"),
    );
    if document.parameters.contains_key("key") {
        vec![key]
    } else {
        Vec::new()
    }
}

fn scheme(mode: AuthMode, name: &str, fields: Vec<Field>, placement: Placement) -> AuthScheme {
    AuthScheme {
        mode,
        name: name.to_owned(),
        fields,
        request: vec![placement],
        oauth2: (mode == AuthMode::Oauth2).then(flow),
        ..AuthScheme::default()
    }
}

/// Returns Google's OAuth 2.0 settings. Google returns a refresh token only if offline access is
/// requested, and returns it again only if the user is asked for consent again.
fn flow() -> OAuth2 {
    let params = [("access_type", "offline"), ("prompt", "consent")];
    OAuth2 {
        authorize_params: params
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..OAuth2::new(
            "https://accounts.google.com/o/oauth2/v2/auth",
            "https://oauth2.googleapis.com/token",
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
