//! Requests to providers.
//!
//! ```no_run
//! use toolkit_sdk::prelude::*;
//!
//! const API: Client = Client::new("https://api.example.com/v1");
//!
//! # #[derive(Deserialize)] struct Item;
//! # fn get(id: &str) -> Result<Item> {
//! let item: Item = API.get("/items/{id}").path("id", id).query("fields", "name").send()?.json()?;
//! # Ok(item)
//! # }
//! ```
//!
//! The platform attaches the credential of the account and refuses requests that the manifest does
//! not allow. A toolkit never sees or sets a credential. `send` returns an error for every
//! unsuccessful status, with the provider's own message.

mod client;
pub(crate) mod encode;
mod failure;
mod graphql;
mod multipart;
mod page;
mod request;
mod response;
mod retry;

pub use client::Client;
pub(crate) use encode::decoded;
pub(crate) use failure::message;
pub(crate) use graphql::part as graphql_part;
pub use multipart::Multipart;
pub(crate) use page::cursor_text;
pub use page::{Items, Paging};
pub use request::{Request, send_all};
pub use response::Response;

/// Starts a GET request. [`Request::path`] fills `{name}` in the URL.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// Starts a HEAD request.
pub fn head(url: impl Into<String>) -> Request {
    Request::new("HEAD", url)
}

/// Starts a POST request.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

/// Starts a PUT request.
pub fn put(url: impl Into<String>) -> Request {
    Request::new("PUT", url)
}

/// Starts a PATCH request.
pub fn patch(url: impl Into<String>) -> Request {
    Request::new("PATCH", url)
}

/// Starts a DELETE request.
pub fn delete(url: impl Into<String>) -> Request {
    Request::new("DELETE", url)
}
