//! Query parameters as a struct.
//!
//! Clients spell them in several ways: lists are comma-joined, repeated or written as `name[]`;
//! maps are written as `name[key]`; words and booleans come in any case; an empty value counts as
//! absent for an `Option`, unless the field is read by [`present`](crate::members::present) as all booleans
//! are, and is refused for a list or a required value, because a filter without a value would select
//! everything. A parameter with one value is refused if it is sent with two. No library reads
//! all of these, so this module has a deserializer of its own. Unknown parameters are refused or ignored
//! before ([`KnownParameters`]).

mod known;
mod parameter;
mod parameters;
mod slugs;

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::{
    Deserialize,
    de::{self, DeserializeOwned, Deserializer},
};

pub use self::known::plain_name;
pub(crate) use self::{
    known::{KnownParameters, ParameterNames, parameter_names},
    slugs::unknown_slugs,
};
use self::{
    parameter::{Parameter, finite},
    parameters::Parameters,
};
use crate::{ApiError, ApiResult, Server, branding::Branding, errors};

/// Maximum number of entries of a list. Clients send all ids or slugs they know.
pub const MAX_LIST_ENTRIES: usize = 1_000;
/// Maximum characters of a string, and of an entry of a list.
pub const MAX_TEXT_CHARS: usize = 256;

/// Query parameters of an operation.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Server>> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        Self::parse(parts.uri.query().unwrap_or_default(), &server.branding)
    }
}

impl<T: DeserializeOwned> Query<T> {
    /// Reads the parameters of a query.
    ///
    /// # Errors
    /// If a parameter does not fit, or contains NUL or bytes that are not UTF-8.
    pub fn parse(query: &str, branding: &Branding) -> ApiResult<Self> {
        let pairs = pairs(query)?;
        let parameters = Parameters {
            pairs: &pairs,
            branding,
        };
        T::deserialize(parameters)
            .map(Self)
            .map_err(|invalid| errors::invalid(invalid.0).into())
    }
}

/// All query parameters as they were sent, for handlers that refuse repeated ones. Providers write texts
/// in any charset, so bytes that are not UTF-8 become U+FFFD.
pub struct Pairs(pub Vec<(String, String)>);

impl FromRequestParts<Arc<Server>> for Pairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        pairs_without(parts.uri.query().unwrap_or_default(), &['\0']).map(Self)
    }
}

/// Returns all parameters as they were sent.
///
/// # Errors
/// If one contains NUL, which not every store can hold, or bytes that are not UTF-8, which would all
/// become the same character.
pub fn pairs(query: &str) -> ApiResult<Vec<(String, String)>> {
    pairs_without(query, &['\0', char::REPLACEMENT_CHARACTER])
}

fn pairs_without(query: &str, refused: &[char]) -> ApiResult<Vec<(String, String)>> {
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let unfit = pairs
        .iter()
        .find(|(name, value)| name.contains(refused) || value.contains(refused));
    match unfit {
        Some((name, _)) => {
            let name = name.escape_debug();
            let problem = format!("{name}: contains a NUL character, or bytes that are not UTF-8");
            Err(errors::invalid(problem).into())
        }
        None => Ok(pairs),
    }
}

/// Reads an optional number. Clients without a number send `null`.
///
/// # Errors
/// If the parameter is another string.
pub fn number_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.filter(|text| text != "null")
        .map(|text| finite(&text).ok_or_else(|| de::Error::custom("must be a number")))
        .transpose()
}

/// Reads one word of an enum, in any case, from the property of a body that may hold it.
///
/// # Errors
/// If the enum has no such word.
pub fn word<T: DeserializeOwned>(
    member: &str,
    word: Option<String>,
    branding: &Branding,
) -> ApiResult<Option<T>> {
    word.map(|word| T::deserialize(Parameter::new(&word, branding)))
        .transpose()
        .map_err(|invalid| errors::invalid(format!("{member}: {invalid}")).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::branding::DEFAULT_BRAND;

    #[derive(Debug, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "lowercase")]
    enum Direction {
        Asc,
        Desc,
    }

    #[derive(Debug, Deserialize)]
    struct Example {
        #[serde(default)]
        ids: Vec<String>,
        #[serde(default)]
        versions: BTreeMap<String, String>,
        is_service_managed: Option<bool>,
        #[serde(default, deserialize_with = "number_or_null")]
        limit: Option<f64>,
        direction: Option<Direction>,
        #[serde(default)]
        slug: String,
    }

    fn read_as(word: &str, query: &str) -> Result<Example, String> {
        let pairs = pairs(query).map_err(|_| "characters".to_owned())?;
        let parameters = Parameters {
            pairs: &pairs,
            branding: &Branding::new(word),
        };
        Example::deserialize(parameters).map_err(|invalid| invalid.0)
    }

    fn read(query: &str) -> Result<Example, String> {
        read_as(DEFAULT_BRAND, query)
    }

    #[test]
    fn list_arrives_comma_joined_repeated_or_bracketed() {
        for text in [
            "ids=a,b,c",
            "ids=a&ids=b,c",
            "ids[]=a&ids[]=b&ids[]=c",
            "ids=%20a%20,,b,&ids%5B%5D=c",
        ] {
            assert_eq!(read(text).unwrap().ids, ["a", "b", "c"], "{text}");
        }
        assert!(read("other=a").unwrap().ids.is_empty());
    }

    #[test]
    fn filters_without_a_value_are_refused() {
        for query in ["ids=", "ids[]=%20,", "slug="] {
            let problem = read(query).unwrap_err();
            assert!(
                problem.ends_with(": must not be empty: omit it, or send a value"),
                "{query}"
            );
        }
        assert_eq!(read("ids=&ids=a").unwrap().ids, ["a"]);
        assert_eq!(read("slug=x").unwrap().slug, "x");
    }

    #[test]
    fn second_value_and_unread_brackets_are_refused() {
        for (query, problem) in [
            (
                "slug=a&slug=b",
                "slug: is sent with several values; send one",
            ),
            (
                "limit=1&limit[]=5",
                "limit: is sent with several values; send one",
            ),
            (
                "versions[gh]=a&versions%5Bgh%5D=b",
                "versions: is sent with several values for one key; send one",
            ),
            ("ids[0]=a", "ids: takes no key in brackets"),
            ("slug[x]=a", "slug: takes no key in brackets"),
            ("versions[gh=a", "versions: has a key without its bracket"),
        ] {
            assert_eq!(read(query).unwrap_err(), problem, "{query}");
        }
        assert_eq!(read("limit=5&limit=5&limit=").unwrap().limit, Some(5.0));
    }

    #[test]
    fn map_arrives_in_brackets() {
        let read = read("versions%5Bgh%5D=20251027_00&versions[x]=latest&versions=20251028_00");
        let expected = [("", "20251028_00"), ("gh", "20251027_00"), ("x", "latest")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read.unwrap().versions, BTreeMap::from(expected));
    }

    #[test]
    fn words_are_read_in_any_case() {
        let direction = |query| read(query).unwrap().direction;
        assert_eq!(direction("direction=DESC"), Some(Direction::Desc));
        assert_eq!(direction("direction="), None);
        assert_eq!(
            read("direction=up").unwrap_err(),
            "direction: must be one of asc, desc"
        );
    }

    #[test]
    fn booleans_numbers_and_characters_are_checked() {
        let managed = |text: &str| read(text).map(|read| read.is_service_managed);
        assert_eq!(managed("is_service_managed=True").unwrap(), Some(true));
        assert_eq!(managed("is_service_managed=0").unwrap(), Some(false));
        assert_eq!(managed("is_service_managed=").unwrap(), None);
        assert!(managed("is_service_managed=yes").is_err());
        assert_eq!(read("limit=many").unwrap_err(), "limit: must be a number");
        assert!(read("limit=NaN").is_err() && read("limit=inf").is_err());
        assert_eq!(read("limit=null").unwrap().limit, None);
        assert_eq!(read("x=%00").unwrap_err(), "characters");
        assert_eq!(read("slug=%FF").unwrap_err(), "characters");
    }

    #[test]
    fn operator_word_names_the_parameter() {
        let read = |query| read_as("acme", query).unwrap().is_service_managed;
        assert_eq!(read("is_acme_managed=1"), Some(true));
        assert_eq!(read("is_service_managed=1"), None);
    }
}
