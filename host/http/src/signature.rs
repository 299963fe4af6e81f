//! Describes an operation from the signature of its handler: the kind of key, the parameters and
//! the body from its arguments, the successful response from its return type.
//!
//! The same types read the request and write the response, so the description cannot differ from
//! them. `#[utoipa::path]` on the handler adds what a type cannot say: the method, the summary (its
//! doc comment) and the errors of its own.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method},
    response::Response,
};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        ContentBuilder, HttpMethod, Paths, Ref, RefOr, Required, ResponseBuilder, Schema,
        SecurityRequirement,
        path::{Operation, ParameterIn},
        request_body::RequestBodyBuilder,
    },
};

use crate::{
    ApiResult, ComponentBytes, Created, CreatedOrExisting, Json, JsonWithText, NoKey, OptionalJson,
    OrganizationKey, Page, Pairs, Path, Prefix, ProjectKey, Query, SerializedJson, Server,
    ShortPage, UnparsedJson, UserKey, page::Paging,
};

/// Value of `path` in `#[utoipa::path]`: the path of an operation is in its row of the table.
pub const IN_TABLE: &str = "";

/// Description of one operation, and the schemas that it refers to.
pub struct Description {
    pub method: HttpMethod,
    pub operation: Operation,
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

impl Description {
    /// Returns the description that `#[utoipa::path]` made of a handler.
    pub(crate) fn new(schemas: Vec<(String, RefOr<Schema>)>, mut paths: Paths) -> Self {
        let item = paths.paths.pop_first().map(|(_, item)| item);
        let item = item.unwrap_or_default();
        let operations = [
            (HttpMethod::Get, item.get),
            (HttpMethod::Post, item.post),
            (HttpMethod::Put, item.put),
            (HttpMethod::Patch, item.patch),
            (HttpMethod::Delete, item.delete),
        ];
        let described = operations
            .into_iter()
            .find_map(|(method, operation)| Some((method, operation?)));
        let (method, operation) =
            described.unwrap_or_else(|| (HttpMethod::Get, Operation::default()));
        Self {
            method,
            operation,
            schemas,
        }
    }

    fn refer_to<T: ToSchema>(&mut self) -> RefOr<Schema> {
        T::schemas(&mut self.schemas);
        self.schemas.push((T::name().into_owned(), T::schema()));
        RefOr::Ref(Ref::from_schema_name(T::name()))
    }

    fn add_parameters<T: IntoParams>(&mut self) {
        let parameters = self.operation.parameters.get_or_insert_default();
        for mut parameter in T::into_params(|| Some(ParameterIn::Query)) {
            // The entries of a list are joined with commas.
            if let Some(RefOr::T(Schema::Array(_))) = parameter.schema {
                parameter.explode = Some(false);
            }
            parameters.push(RefOr::T(parameter));
        }
    }

    fn set_body<T: ToSchema>(&mut self, required: Option<Required>) {
        let schema = self.refer_to::<T>();
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(required);
        self.operation.request_body = Some(RefOr::T(body.build()));
    }

    fn set_response<T: ToSchema>(&mut self, status: &str) {
        let description = match T::schema() {
            RefOr::T(Schema::Object(object)) => object.description,
            RefOr::T(Schema::Array(array)) => array.description,
            RefOr::T(Schema::AllOf(all)) => all.description,
            _ => None,
        };
        let schema = self.refer_to::<T>();
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description(description.unwrap_or_else(|| "Success".to_owned()))
            .content("application/json", content);
        self.operation
            .responses
            .responses
            .insert(status.to_owned(), response.build().into());
    }

    fn need_key(&mut self, kind: &str) {
        let requirement = SecurityRequirement::new(kind, [""; 0]);
        self.operation.security = Some(vec![requirement]);
    }
}

/// Argument of a handler.
pub trait Input {
    /// Adds what the argument reads from the request.
    fn describe(_: &mut Description) {}
}

/// Return value of a handler.
pub(crate) trait Output {
    /// Adds the successful response.
    fn describe(_: &mut Description) {}
}

/// Handler whose arguments and return value describe its operation. `Arguments` is a tuple of them.
pub trait Signature<Arguments> {
    /// Adds everything that the signature says.
    fn describe(&self, description: &mut Description);
}

macro_rules! signatures {
    ($(($($argument:ident)*))*) => {$(
        impl<Handler, Answer, Returned, $($argument,)*> Signature<($($argument,)*)> for Handler
        where
            Handler: Fn($($argument),*) -> Answer,
            Answer: Future<Output = Returned>,
            Returned: Output,
            $($argument: Input,)*
        {
            fn describe(&self, description: &mut Description) {
                $($argument::describe(description);)*
                Returned::describe(description);
            }
        }
    )*};
}

impl Input for ComponentBytes {
    fn describe(description: &mut Description) {
        let content = ContentBuilder::new().build();
        let body = RequestBodyBuilder::new()
            .content("application/wasm", content)
            .required(Some(Required::True));
        description.operation.request_body = Some(RefOr::T(body.build()));
    }
}

signatures! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
}

impl Input for State<Arc<Server>> {}
impl Input for HeaderMap {}
impl Input for Method {}
impl Input for Request {}
impl Input for Prefix {}
impl<T> Input for Path<T> {}

impl Input for ProjectKey {}

impl Input for OrganizationKey {
    fn describe(description: &mut Description) {
        description.need_key("organization");
    }
}

impl Input for UserKey {
    fn describe(description: &mut Description) {
        description.need_key("user");
    }
}

impl Input for NoKey {
    fn describe(description: &mut Description) {
        description.operation.security = Some(vec![SecurityRequirement::default()]);
    }
}

impl<T: IntoParams> Input for Query<T> {
    fn describe(description: &mut Description) {
        description.add_parameters::<T>();
    }
}

impl Input for Pairs {}

impl Input for Page {
    fn describe(description: &mut Description) {
        description.add_parameters::<Paging>();
    }
}

impl Input for ShortPage {
    fn describe(description: &mut Description) {
        description.add_parameters::<Paging>();
    }
}

impl<T: ToSchema> Input for Json<T> {
    fn describe(description: &mut Description) {
        description.set_body::<T>(Some(Required::True));
    }
}

impl<T: ToSchema> Input for JsonWithText<T> {
    fn describe(description: &mut Description) {
        description.set_body::<T>(Some(Required::True));
    }
}

impl<T: ToSchema> Input for OptionalJson<T> {
    fn describe(description: &mut Description) {
        description.set_body::<T>(None);
    }
}

impl<T: ToSchema> Input for UnparsedJson<T> {
    fn describe(description: &mut Description) {
        description.set_body::<T>(Some(Required::True));
    }
}

impl<T: Output> Output for ApiResult<T> {
    fn describe(description: &mut Description) {
        T::describe(description);
    }
}

impl Output for Response {}

impl<T: ToSchema> Output for Json<T> {
    fn describe(description: &mut Description) {
        description.set_response::<T>("200");
    }
}

impl<T: ToSchema> Output for SerializedJson<T> {
    fn describe(description: &mut Description) {
        description.set_response::<T>("200");
    }
}

impl<T: ToSchema> Output for Created<T> {
    fn describe(description: &mut Description) {
        description.set_response::<T>("201");
    }
}

impl<T: ToSchema> Output for CreatedOrExisting<T> {
    fn describe(description: &mut Description) {
        <Created<T> as Output>::describe(description);
        <Json<T> as Output>::describe(description);
    }
}
