//! Envelope of the items of a page.

use std::borrow::Cow;

use app::Cursor;
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, Ref, RefOr, Schema},
};

use super::Page;

/// Position of a page in its list.
#[derive(Serialize, ToSchema)]
pub struct Position {
    /// Cursor of the next page; null on the last one.
    #[schema(required)]
    pub(super) next_cursor: Option<String>,
    /// At least one, even if the list is empty.
    pub(super) total_pages: u64,
    /// Number of this page, from one.
    pub(super) current_page: u64,
    total_items: u64,
}

impl Position {
    /// Returns the position of a page whose items are counted from the start of the list.
    pub fn counted(page: &Page, total: u64) -> Self {
        Self {
            next_cursor: page.next_cursor(total),
            total_pages: total.div_ceil(page.limit).max(1),
            current_page: page.number,
            total_items: total,
        }
    }

    /// Returns the position of a page of records. Its cursor continues after the last record.
    pub fn after(page: &Page, total: u64, next: Option<Cursor>) -> Self {
        let last = page.number + u64::from(next.is_some());
        Self {
            next_cursor: next.map(|next| page.next_after(next)),
            total_pages: total.div_ceil(page.limit).max(last),
            current_page: page.number,
            total_items: total,
        }
    }
}

/// A page of a list.
#[derive(Serialize)]
pub struct Listed<T> {
    pub items: Vec<T>,
    #[serde(flatten)]
    pub position: Position,
}

impl<T: ToSchema> PartialSchema for Listed<T> {
    fn schema() -> RefOr<Schema> {
        let mut schema = Position::schema();
        if let RefOr::T(Schema::Object(list)) = &mut schema {
            let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
            list.description = Some("A page of a list.".to_owned());
            list.properties.insert("items".to_owned(), items.into());
            list.required.insert(0, "items".to_owned());
        }
        schema
    }
}

impl<T: ToSchema> ToSchema for Listed<T> {
    fn name() -> Cow<'static, str> {
        format!("Listed_{}", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
        schemas.push((T::name().into_owned(), T::schema()));
    }
}

impl<T> Listed<T> {
    /// Returns a page whose items are counted from the start of the list.
    pub fn counted(items: Vec<T>, page: &Page, total: u64) -> Self {
        let position = Position::counted(page, total);
        Self { items, position }
    }

    /// Returns a page of views of the records found. Its cursor continues after the last record.
    pub fn after<R: Into<T>>(found: app::Listed<R>, page: &Page) -> Self {
        Self {
            items: found.items.into_iter().map(R::into).collect(),
            position: Position::after(page, found.total, found.next),
        }
    }
}
