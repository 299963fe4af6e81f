//! Temporary: untyped queries and views, until every resource has types.

use std::sync::Arc;

use app::{Cursor, Error};
use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
    response::Response,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Server,
    http::{
        error::{ApiError, ApiResult},
        page::{MAX_LIMIT, Page, Position},
        query::{MAX_LIST_ENTRIES, MAX_LONG_LIST_ENTRIES, MAX_TEXT_CHARS},
        reply,
        signature::Input,
    },
};

impl Input for RawQuery {}

/// Query parameters.
#[derive(Debug, Default)]
pub(crate) struct RawQuery(Vec<(String, String)>);

impl FromRequestParts<Arc<Server>> for RawQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl RawQuery {
    fn read(text: &str) -> ApiResult<Self> {
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect();
        match pairs
            .iter()
            .find(|(name, value)| name.contains('\0') || value.contains('\0'))
        {
            Some((name, _)) => Err(Error::invalid(format!(
                "{}: holds a NUL character",
                name.escape_debug()
            ))
            .into()),
            None => Ok(Self(pairs)),
        }
    }

    /// Returns every parameter unchanged.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Returns the last value of a parameter unless it is empty.
    pub(crate) fn text(&self, name: &str) -> ApiResult<Option<&str>> {
        let value = self
            .0
            .iter()
            .rev()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.trim());
        match value.filter(|value| !value.is_empty()) {
            Some(value) if value.chars().count() > MAX_TEXT_CHARS => {
                Err(Error::invalid(format!("{name}: at most {MAX_TEXT_CHARS} characters")).into())
            }
            value => Ok(value),
        }
    }

    /// Returns a list parameter: comma-joined, repeated, or as `name[]`.
    pub(crate) fn list(&self, name: &str) -> ApiResult<Vec<String>> {
        self.parts(name, MAX_LIST_ENTRIES)
    }

    /// Returns a list parameter that may be long.
    pub(crate) fn long_list(&self, name: &str) -> ApiResult<Vec<String>> {
        self.parts(name, MAX_LONG_LIST_ENTRIES)
    }

    fn parts(&self, name: &str, most: usize) -> ApiResult<Vec<String>> {
        let bracketed = format!("{name}[]");
        let values = self
            .0
            .iter()
            .filter(|(own, _)| own == name || *own == bracketed);
        let parts: Vec<_> = values
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        if parts.len() > most {
            return Err(Error::invalid(format!("{name}: at most {most} entries")).into());
        }
        if parts
            .iter()
            .any(|part| part.chars().count() > MAX_TEXT_CHARS)
        {
            return Err(Error::invalid(format!(
                "{name}: at most {MAX_TEXT_CHARS} characters in an entry"
            ))
            .into());
        }
        Ok(parts)
    }

    /// Returns the `name[key]=value` pairs of a parameter.
    pub(crate) fn map(&self, name: &str) -> Vec<(String, String)> {
        let key = |own: &str| {
            own.strip_prefix(name)?
                .strip_prefix('[')?
                .strip_suffix(']')
                .map(str::to_owned)
        };
        self.0
            .iter()
            .filter_map(|(own, value)| Some((key(own)?, value.trim().to_owned())))
            .collect()
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&self, name: &str) -> ApiResult<Option<bool>> {
        match self.text(name)?.map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(Error::invalid(format!("{name}: must be true or false")).into()),
        }
    }

    /// Reads one of the given words, in any case, and returns its index.
    pub(crate) fn choice(&self, name: &str, words: &[&str]) -> ApiResult<Option<usize>> {
        choice(name, self.text(name)?, words)
    }

    /// Reads `limit` and `cursor`. The limit in the cursor takes precedence.
    pub(crate) fn page(&self) -> ApiResult<Page> {
        self.page_of(MAX_LIMIT)
    }

    /// Does the same for a list with a lower maximum page size.
    pub(crate) fn page_of(&self, most: u64) -> ApiResult<Page> {
        let limit = match self.text("limit")? {
            None => None,
            Some(text) => Some(
                text.parse::<f64>()
                    .map_err(|_| Error::invalid("limit: must be a number"))?,
            ),
        };
        let page = Page::new(limit, self.text("cursor")?)?;
        Ok(Page {
            limit: page.limit.min(most),
            ..page
        })
    }
}

/// Matches a text with one of the given words, in any case, and returns its index.
pub(crate) fn choice(name: &str, given: Option<&str>, words: &[&str]) -> ApiResult<Option<usize>> {
    let Some(text) = given else { return Ok(None) };
    match words
        .iter()
        .position(|word| word.eq_ignore_ascii_case(text))
    {
        Some(place) => Ok(Some(place)),
        None => Err(Error::invalid(format!("{name}: must be one of {}", words.join(", "))).into()),
    }
}

pub(crate) fn ok<T: Serialize + ?Sized>(body: &T) -> ApiResult<Response> {
    Ok(reply::json(StatusCode::OK, body))
}

pub(crate) fn created<T: Serialize + ?Sized>(body: &T) -> ApiResult<Response> {
    Ok(reply::json(StatusCode::CREATED, body))
}

pub(crate) fn record_list(
    name: &str,
    items: Vec<Value>,
    page: Page,
    total: u64,
    next: Option<Cursor>,
) -> Value {
    let mut list = json!(Position::after(&page, total, next));
    list[name] = items.into();
    list
}

pub(crate) fn cursor_list(name: &str, items: Vec<Value>, page: Page, total: u64) -> Value {
    let mut list = json!(Position::counted(&page, total));
    list[name] = items.into();
    list
}

pub(crate) struct AnyJson<T>(pub T);

impl<T> Input for AnyJson<T> {}

impl<T: serde::de::DeserializeOwned> axum::extract::FromRequest<Arc<Server>> for AnyJson<T> {
    type Rejection = ApiError;

    async fn from_request(
        request: axum::extract::Request,
        server: &Arc<Server>,
    ) -> ApiResult<Self> {
        let body = crate::http::body::UnparsedJson::<T>::from_request(request, server).await?;
        let bytes = if body.bytes.is_empty() {
            &b"{}"[..]
        } else {
            &body.bytes[..]
        };
        Ok(Self(serde_json::from_slice(bytes).map_err(|cause| {
            Error::invalid(format!("body: {cause}"))
        })?))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn dump() {
        use crate::{
            api::{description, table},
            http::branding::Branding,
        };
        std::fs::write(
            "/tmp/new_openapi.json",
            description::text(&table::rows(), &Branding::new("service")),
        )
        .unwrap();
    }
}
