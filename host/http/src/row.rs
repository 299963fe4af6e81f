//! A row of a table of operations: all that is not the code of the handler.

use std::sync::Arc;

use app::projects::permissions::{Access, Area};
use axum::{handler::Handler, response::Response};
use futures::future::BoxFuture;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::{
    Server,
    operation::{Deadline, MaxBody, Operation, Permission},
    runner::{RouteHandler, handler},
    signature::{Description, Signature},
};

/// One operation: its path, its handler, its description and its rules.
pub struct Row {
    /// Path below the prefixes.
    pub path: &'static str,
    /// Rules of the operation.
    pub operation: Operation,
    /// Description as the handler and its signature give it.
    pub description: Description,
    /// The handler. The description has its method.
    pub handler: RouteHandler,
}

/// Makes a row of a path and a handler.
#[macro_export]
macro_rules! row {
    ($path:literal, $($handler:ident)::+) => {
        $crate::row::Row::new($path, utoipa_axum::routes!($($handler)::+), $($handler)::+)
    };
}

pub use row;

impl Row {
    pub fn new<Arguments, Extracted: 'static, H>(
        path: &'static str,
        (schemas, described, _): UtoipaMethodRouter<Arc<Server>>,
        function: H,
    ) -> Self
    where
        H: Signature<Arguments>
            + Handler<Extracted, Arc<Server>, Future = BoxFuture<'static, Response>>,
    {
        let mut description = Description::new(schemas, described);
        function.describe(&mut description);
        Self {
            path,
            operation: Operation::default(),
            description,
            handler: handler(function),
        }
    }

    /// Returns true if providers, or browsers that they redirect, write the query.
    pub(crate) fn is_called_by_providers(&self) -> bool {
        self.operation.ignores_idempotency_key
    }

    /// Allows every key of the project.
    pub fn any_key(mut self) -> Self {
        self.operation.permission = Permission::AnyKey;
        self
    }

    /// Needs access to one of the areas.
    pub fn needs(mut self, access: Access, areas: &'static [Area]) -> Self {
        self.operation.permission = Permission::OneOf(areas, access);
        self
    }

    /// Has time limits of its own instead of the general deadline.
    pub fn own_deadline(mut self) -> Self {
        self.operation.deadline = Deadline::OfItsOwn;
        self
    }

    /// Takes larger bodies than other operations.
    pub fn max_body(mut self, max_body: MaxBody) -> Self {
        self.operation.max_body = max_body;
        self
    }

    /// Refuses unknown members of the body, at any depth.
    pub fn strict(mut self) -> Self {
        self.operation.refuses_unknown_members = true;
        self
    }

    /// Returns data of tools, which a project may choose not to store.
    pub fn tool_data(mut self) -> Self {
        self.operation.returns_tool_data = true;
        self
    }

    /// Is called by providers.
    pub fn by_provider(mut self) -> Self {
        self.operation.ignores_idempotency_key = true;
        self
    }

    /// Is deprecated: another operation replaces it.
    pub fn replaced_by(mut self, successor: &'static str) -> Self {
        self.operation.successor = Some(successor);
        self
    }
}
