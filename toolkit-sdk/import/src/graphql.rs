//! GraphQL schemas, in the schema language or as the response to an introspection query.
//!
//! Each field of the query and the mutation type becomes a tool with the arguments of the field.
//! The importer chooses the selected fields, since an agent should get the relevant ones and
//! providers limit the cost of one query: see [`select`]. A schema states neither its URL nor how
//! accounts are connected, so the overlay does. Without an overlay, an account is a bearer token.

mod input;
mod introspection;
mod language;
mod model;
mod select;

use manifest::plan::{Next, Pages};
use manifest::{AuthMode, AuthScheme, Field, Hints, Placement};

use crate::{Answer, Api, Body, Error, Media, Operation, Result, Unsupported, parse, text};
use model::{Kind, Schema};

/// Largest number of fields of the query and the mutation type together. The largest known schemas
/// have 1,500.
const MAX_OPERATIONS: usize = 5_000;
/// Words in the names of destructive mutations.
const DESTRUCTIVE_VERBS: [&str; 8] = [
    "clear", "delete", "destroy", "erase", "purge", "remove", "revoke", "wipe",
];

/// Reads a schema.
///
/// # Errors
/// The input is neither form of a schema, or is too large.
pub fn graphql(bytes: &[u8]) -> Result<Api> {
    let source = parse::utf8(bytes)?;
    let schema = match source.trim_start().starts_with('{') {
        true => introspection::read(&parse::document(bytes)?)?,
        false => language::read(source)?,
    };
    let mut api = Api {
        auth: vec![bearer()],
        schemas: input::shared(&schema),
        ..Api::default()
    };
    for (root, name) in [("query", &schema.query), ("mutation", &schema.mutation)] {
        let fields = name
            .as_ref()
            .and_then(|name| schema.fields(name))
            .unwrap_or_default();
        for field in fields {
            operation(&schema, root, field, &mut api);
        }
    }
    if api.operations.len() > MAX_OPERATIONS {
        return Err(Error::new(format!(
            "the schema has more than {MAX_OPERATIONS} queries and mutations"
        )));
    }
    let subscriptions = schema
        .subscription
        .as_ref()
        .and_then(|name| schema.fields(name))
        .unwrap_or_default()
        .len();
    if subscriptions > 0 {
        api.unsupported.push(Unsupported::whole(format!(
            "{subscriptions} subscriptions; triggers are not imported"
        )));
    }
    Ok(api)
}

fn operation(schema: &Schema, root: &str, field: &model::Field, api: &mut Api) {
    let taken = root == "mutation"
        && schema
            .query
            .as_ref()
            .is_some_and(|query| schema.field(query, &field.name).is_some());
    let id = if taken {
        format!("{} {root}", field.name)
    } else {
        field.name.clone()
    };
    let read_only = root == "query";
    let selected = select::select(schema, &field.ty);
    let body = input::arguments(schema, &field.arguments);
    for name in &body.unsupported {
        let what = format!("the argument `{name}` takes a file");
        let needed = field
            .arguments
            .iter()
            .any(|it| it.name == *name && it.is_required());
        api.unsupported.push(if needed {
            Unsupported::unusable(&id, what)
        } else {
            Unsupported::part(&id, what)
        });
    }
    let document = format!(
        "{root} {}{} {{ {}{}{} }}",
        field.name, body.variables, field.name, body.passed, selected.text
    );
    let description = match &field.deprecated {
        Some(why) if !why.is_empty() => format!("{}\n\nDeprecated: {why}", field.description),
        _ => field.description.clone(),
    };
    api.operations.push(Operation {
        method: "POST".to_owned(),
        description: text::block(&description, 4000),
        tags: vec![root.to_owned()],
        hints: Hints {
            read_only,
            destructive: !read_only && is_destructive(&field.name),
            idempotent: read_only,
            open_world: true,
        },
        deprecated: field.deprecated.is_some(),
        pages: pages(schema, field),
        answer: Answer {
            file: false,
            pick: format!("/{}", field.name),
            schema: Some(selected.schema),
        },
        body: Some(Body {
            media: Media::Graphql { document },
            schema: body.schema,
            required: true,
            defaults: [].into(),
        }),
        id,
        ..Operation::default()
    });
}

fn is_destructive(name: &str) -> bool {
    use heck::ToSnakeCase;
    name.to_snake_case()
        .split('_')
        .any(|word| DESTRUCTIVE_VERBS.contains(&word))
}

/// Returns the pagination of a list that follows the Relay convention: `after` takes the cursor at
/// the end of the previous page.
fn pages(schema: &Schema, field: &model::Field) -> Option<Pages> {
    let list = schema.connection(field.ty.name())?;
    field
        .arguments
        .iter()
        .find(|argument| argument.name == "after")?;
    Some(Pages {
        next: Next::Cursor {
            place: "/pageInfo/endCursor".to_owned(),
            parameter: "after".to_owned(),
        },
        items: format!("/{list}"),
        argument: String::new(),
    })
}

pub(crate) fn bearer() -> AuthScheme {
    AuthScheme {
        mode: AuthMode::BearerToken,
        name: "Bearer token".to_owned(),
        fields: vec![Field::new("token", "Token", true)],
        request: vec![Placement::header("authorization", "Bearer {token}")],
        ..AuthScheme::default()
    }
}

impl Schema {
    /// Returns the list of a connection: `nodes`, otherwise `edges`. `None` if the type is not a
    /// connection.
    fn connection(&self, name: &str) -> Option<&'static str> {
        let info = self.field(name, "pageInfo")?;
        self.field(info.ty.name(), "endCursor")?;
        ["nodes", "edges"].into_iter().find(|list| {
            self.field(name, list)
                .is_some_and(|field| field.ty.is_list())
        })
    }

    fn is_leaf(&self, name: &str) -> bool {
        matches!(
            self.types.get(name).map(|it| &it.kind),
            None | Some(Kind::Scalar | Kind::Enum(_))
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
