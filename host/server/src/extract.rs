//! Extractors for requests, which fail with the errors of this API.
//!
//! Queries arrive in several spellings: lists are comma-joined, repeated or written as `name[]`;
//! maps are written as `name[key]`. Bodies are parsed strictly (see [`app::json`]) and within
//! limits of size and time. NUL is refused everywhere, because not every store can hold it.

use std::{sync::Arc, time::Duration};

use app::{Error, catalog::MAX_COMPONENT_BYTES, json};
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, header, request::Parts},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    Server,
    config::{Limits, PACE_WINDOW},
    places,
    respond::{EXCHANGE, Failure, Page, Reply, Wire},
    routes::PREFIXES,
};

/// Limits on reading the rest of a body that is refused for its size, in bytes and time.
const SWALLOWED: usize = 128 << 20;
const SWALLOWING: Duration = Duration::from_secs(10);
/// The largest JSON body that any operation accepts regardless of the settings, in bytes.
pub(crate) const LARGEST_JSON: usize = 6 << 20;
const PAGE: u64 = 20;
pub(crate) const LARGEST_PAGE: u64 = 1_000;
/// Maximum characters that a list adds to its cursors: a time, and the last key of the page.
const MARK: usize = 128;
/// Maximum number of parts of a list, and of characters of a text.
pub(crate) const LIST: usize = 100;
pub(crate) const TEXT: usize = 256;
/// Maximum length of lists of tool slugs. It is higher because clients send all slugs they know.
pub(crate) const LONG_LIST: usize = 1_000;

/// JSON body of at most `limits.body_kib`.
pub(crate) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Arc<Server>) -> Reply<Self> {
        is_json(request.headers())?;
        let limits = &server.config.limits;
        let bytes = read(server, request, limits.body_kib * 1024).await?;
        let parsed = server.admission.parse(bytes.len(), || object(&bytes));
        parsed.await.map(Self)
    }
}

/// JSON body that may contain the body of a proxy request, up to 4 MiB as base64.
pub(crate) struct ProxyJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Server>> for ProxyJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Arc<Server>) -> Reply<Self> {
        is_json(request.headers())?;
        let bytes = read(server, request, LARGEST_JSON).await?;
        let parsed = server.admission.parse(bytes.len(), || object(&bytes));
        parsed.await.map(Self)
    }
}

/// Parses a JSON object strictly. An empty body is read as an empty object.
fn object<T: DeserializeOwned>(bytes: &[u8]) -> Reply<T> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    let value = json::parse(bytes).map_err(|cause| Error::invalid(format!("body: {cause}")))?;
    // serde would deserialize a struct from an array of its members in order.
    if !value.is_object() {
        return Err(Error::invalid("body: must be a JSON object").into());
    }
    serde_json::from_value(value).map_err(|cause| Error::invalid(format!("body: {cause}")).into())
}

/// Unparsed JSON body of at most `limits.execute_body_kib`.
pub(crate) struct ExecuteBytes(pub Bytes);

impl FromRequest<Arc<Server>> for ExecuteBytes {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Arc<Server>) -> Reply<Self> {
        is_json(request.headers())?;
        let limits = &server.config.limits;
        read(server, request, limits.execute_body_kib * 1024)
            .await
            .map(Self)
    }
}

/// Component of at most [`MAX_COMPONENT_BYTES`] bytes. Its content is not checked here.
pub(crate) struct ComponentBytes(pub Bytes);

impl FromRequest<Arc<Server>> for ComponentBytes {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Arc<Server>) -> Reply<Self> {
        read(server, request, MAX_COMPONENT_BYTES).await.map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> Reply<()> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = given
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let json = essence.eq_ignore_ascii_case("application/json")
        || essence
            .get(essence.len().saturating_sub(5)..)
            .is_some_and(|end| end.eq_ignore_ascii_case("+json"));
    if json {
        Ok(())
    } else {
        Err(Wire::WrongType.into())
    }
}

/// Reads a body of at most `limit` bytes. A body that did not arrive with its head is counted among
/// the arriving bodies, whose number is limited. Its request releases its concurrency permits in
/// the meantime.
pub(crate) async fn read(server: &Server, request: Request, limit: usize) -> Reply<Bytes> {
    let limits = &server.config.limits;
    let mut upload = Upload::begin(request, limit)?;
    let mut arrival = None;
    let whole = match upload.take_arrived() {
        Ok(true) => Ok(()),
        Ok(false) => {
            places::leave();
            let (address, owner) =
                EXCHANGE.with(|exchange| (exchange.peer, exchange.owner.get().cloned()));
            let arrival = arrival.insert(server.admission.arrivals.enter(address, owner)?);
            arrival.grow(upload.bytes.len())?;
            upload
                .arrive(limits, limits.body(), |bytes| arrival.grow(bytes))
                .await
        }
        Err(refused) => Err(refused.into()),
    };
    match whole {
        Ok(()) => {}
        Err(Failure::Wire(large @ Wire::TooLarge(_))) => {
            drop(arrival);
            return Err(upload.refuse(server, large).await);
        }
        Err(failure) => return Err(failure),
    }
    if arrival.is_some() {
        places::enter(&server.admission).await?;
    }
    Ok(upload.into_bytes())
}

/// Reads a file of at most `limit` bytes. The caller holds a permit for file transfers; its request
/// releases its concurrency permits while the file arrives.
pub(crate) async fn read_file(server: &Server, request: Request, limit: usize) -> Reply<Bytes> {
    let mut upload = Upload::begin(request, limit)?;
    let whole = match upload.take_arrived() {
        Ok(true) => return Ok(upload.into_bytes()),
        Ok(false) => {
            places::leave();
            upload
                .arrive(
                    &server.config.limits,
                    server.config.files.transfer(),
                    |_| Ok(()),
                )
                .await
        }
        Err(refused) => Err(refused.into()),
    };
    match whole {
        Ok(()) => {
            places::enter(&server.admission).await?;
            Ok(upload.into_bytes())
        }
        Err(Failure::Wire(large @ Wire::TooLarge(_))) => Err(upload.refuse(server, large).await),
        Err(failure) => Err(failure),
    }
}

/// Body that is arriving, and its bytes so far.
struct Upload {
    body: Body,
    limit: usize,
    /// Length that the client announced, in bytes.
    declared: Option<u64>,
    bytes: Vec<u8>,
}

impl Upload {
    fn begin(request: Request, limit: usize) -> Reply<Self> {
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Wire::Encoded.into());
        }
        let declared = request.headers().get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse().ok());
        Ok(Self {
            body: request.into_body(),
            limit,
            declared,
            bytes: Vec::new(),
        })
    }

    /// Takes the bytes that came with the head, without waiting. Returns true if the body is
    /// complete.
    fn take_arrived(&mut self) -> Result<bool, Wire> {
        if self
            .declared
            .is_some_and(|length| length > self.limit as u64)
        {
            return Err(Wire::TooLarge(self.limit));
        }
        while !self.body.is_end_stream() {
            match self.body.frame().now_or_never() {
                None => return Ok(false),
                Some(None) => break,
                Some(Some(frame)) => self.add(frame)?,
            };
        }
        Ok(true)
    }

    /// Waits for the rest of the body, within a time and at a minimum speed. `grow` counts the
    /// bytes that have arrived and may refuse them.
    async fn arrive(
        &mut self,
        limits: &Limits,
        within: Duration,
        mut grow: impl FnMut(usize) -> Result<(), Error>,
    ) -> Reply<()> {
        let end = Instant::now() + within;
        let mut window_end = Instant::now() + PACE_WINDOW;
        let mut in_window = 0;
        loop {
            let until = if limits.min_rate_kib == 0 {
                end
            } else {
                end.min(window_end)
            };
            let frame = match timeout_at(until, self.body.frame()).await {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => frame,
                Err(_) if until == end => return Err(Wire::SlowBody(within).into()),
                Err(_) => return Err(Wire::TricklingBody(limits.min_rate_kib).into()),
            };
            let added = self.add(frame)?;
            grow(added)?;
            in_window += added;
            if in_window >= limits.pace() {
                in_window = 0;
                window_end = Instant::now() + PACE_WINDOW;
            }
        }
    }

    /// Copies a part of the body. Separate allocations for parts of one byte would take much
    /// memory.
    fn add(&mut self, frame: Result<Frame<Bytes>, axum::Error>) -> Result<usize, Wire> {
        let Ok(data) = frame.map_err(|_| Wire::BrokenBody)?.into_data() else {
            return Ok(0);
        };
        if self.bytes.len() + data.len() > self.limit {
            return Err(Wire::TooLarge(self.limit));
        }
        let needed = self.bytes.len() + data.len();
        if needed > self.bytes.capacity() {
            // The capacity never exceeds the announced length, so a complete body keeps no spare
            // capacity.
            let announced = self
                .declared
                .and_then(|length| usize::try_from(length).ok())
                .unwrap_or(self.limit);
            let room = (self.bytes.capacity() * 2).min(announced).max(needed);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(&data);
        Ok(data.len())
    }

    fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }

    /// Reads and discards the rest of the body within limits. A client that is still sending when
    /// the connection closes would never see the error.
    async fn refuse(mut self, server: &Server, refusal: Wire) -> Failure {
        places::leave();
        self.bytes = Vec::new();
        let (address, owner) =
            EXCHANGE.with(|exchange| (exchange.peer, exchange.owner.get().cloned()));
        let Ok(_arrival) = server.admission.arrivals.enter(address, owner) else {
            return refusal.into();
        };
        let mut swallowed = 0;
        let reading = async {
            while swallowed < SWALLOWED
                && let Some(Ok(frame)) = self.body.frame().await
            {
                swallowed += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        // A client that has not finished by then is not waited for.
        let _ = timeout(SWALLOWING, reading).await;
        refusal.into()
    }
}

/// Path parameters.
pub(crate) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Server>> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Reply<Self> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, server).await;
        path.map(|path| Self(path.0))
            .map_err(|_| Error::invalid("path: not readable as UTF-8 text").into())
    }
}

/// Path prefix of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// `/api/v3`
    Three,
    /// `/api/v3.1`
    ThreeOne,
}

impl Prefix {
    /// Returns the default tool version of the prefix.
    pub(crate) fn tool_version(self) -> &'static str {
        match self {
            Self::Three => app::catalog::BASE,
            Self::ThreeOne => app::catalog::LATEST,
        }
    }
}

impl FromRequestParts<Arc<Server>> for Prefix {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Reply<Self> {
        let newer = parts
            .uri
            .path()
            .strip_prefix(PREFIXES[1])
            .is_some_and(|rest| rest.starts_with('/'));
        Ok(if newer { Self::ThreeOne } else { Self::Three })
    }
}

/// Query parameters.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl FromRequestParts<Arc<Server>> for Query {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> Reply<Self> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl Query {
    fn read(text: &str) -> Reply<Self> {
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
    pub(crate) fn text(&self, name: &str) -> Reply<Option<&str>> {
        let value = self
            .0
            .iter()
            .rev()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.trim());
        match value.filter(|value| !value.is_empty()) {
            Some(value) if value.chars().count() > TEXT => {
                Err(Error::invalid(format!("{name}: at most {TEXT} characters")).into())
            }
            value => Ok(value),
        }
    }

    /// Returns a list parameter: comma-joined, repeated, or as `name[]`.
    pub(crate) fn list(&self, name: &str) -> Reply<Vec<String>> {
        self.parts(name, LIST)
    }

    /// Returns a list parameter that may be long.
    pub(crate) fn long_list(&self, name: &str) -> Reply<Vec<String>> {
        self.parts(name, LONG_LIST)
    }

    fn parts(&self, name: &str, most: usize) -> Reply<Vec<String>> {
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
        if parts.iter().any(|part| part.chars().count() > TEXT) {
            return Err(
                Error::invalid(format!("{name}: at most {TEXT} characters in an entry")).into(),
            );
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
    pub(crate) fn boolean(&self, name: &str) -> Reply<Option<bool>> {
        match self.text(name)?.map(str::to_ascii_lowercase).as_deref() {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(_) => Err(Error::invalid(format!("{name}: must be true or false")).into()),
        }
    }

    /// Reads one of the given words, in any case, and returns its index.
    pub(crate) fn choice(&self, name: &str, words: &[&str]) -> Reply<Option<usize>> {
        choice(name, self.text(name)?, words)
    }

    /// Reads `limit` and `cursor`. The limit in the cursor takes precedence.
    pub(crate) fn page(&self) -> Reply<Page> {
        self.page_of(LARGEST_PAGE)
    }

    /// Does the same for a list with a lower maximum page size.
    pub(crate) fn page_of(&self, most: u64) -> Reply<Page> {
        let limit = match self.text("limit")? {
            None => None,
            Some(text) => Some(
                text.parse::<f64>()
                    .map_err(|_| Error::invalid("limit: must be a number"))?,
            ),
        };
        let page = page(limit, self.text("cursor")?)?;
        Ok(Page {
            limit: page.limit.min(most),
            ..page
        })
    }
}

/// Matches a text with one of the given words, in any case, and returns its index.
pub(crate) fn choice(name: &str, given: Option<&str>, words: &[&str]) -> Reply<Option<usize>> {
    let Some(text) = given else { return Ok(None) };
    match words
        .iter()
        .position(|word| word.eq_ignore_ascii_case(text))
    {
        Some(place) => Ok(Some(place)),
        None => Err(Error::invalid(format!("{name}: must be one of {}", words.join(", "))).into()),
    }
}

/// Returns the page selected by a limit and a cursor.
///
/// # Errors
/// If the cursor was not made by this server.
pub(crate) fn page(limit: Option<f64>, cursor: Option<&str>) -> Reply<Page> {
    if let Some(cursor) = cursor {
        return read_cursor(cursor).ok_or_else(|| Error::CursorInvalid.into());
    }
    let limit = limit.map_or(PAGE, |limit| limit.clamp(1.0, LARGEST_PAGE as f64) as u64);
    Ok(Page {
        number: 1,
        limit: limit.max(1),
        mark: None,
    })
}

/// Encodes the cursor of a page: its number and limit, and the additional state of the list.
pub(crate) fn cursor(page: &Page) -> String {
    let mark = page
        .mark
        .as_ref()
        .map_or_else(String::new, |mark| format!("-{mark}"));
    BASE64.encode(format!("{}-{}{mark}", page.number, page.limit))
}

fn read_cursor(text: &str) -> Option<Page> {
    let decoded = String::from_utf8(BASE64.decode(text).ok()?).ok()?;
    let mut parts = decoded.splitn(3, '-');
    let number_of = |text: &str| {
        let plain =
            !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (number, limit) = (number_of(parts.next()?)?, number_of(parts.next()?)?);
    let mark = parts.next().map(str::to_owned);
    let known = |mark: &String| {
        (1..=MARK).contains(&mark.len())
            && mark
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    let page = Page {
        number,
        limit,
        mark,
    };
    (page.number >= 1
        && (1..=LARGEST_PAGE).contains(&page.limit)
        && page.mark.as_ref().is_none_or(known))
    .then_some(page)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(text: &str) -> Query {
        Query::read(text).unwrap()
    }

    #[test]
    fn a_list_arrives_comma_joined_repeated_or_bracketed() {
        for text in [
            "ids=a,b,c",
            "ids=a&ids=b,c",
            "ids[]=a&ids[]=b&ids[]=c",
            "ids=%20a%20,,b,&ids%5B%5D=c",
        ] {
            assert_eq!(query(text).list("ids").unwrap(), ["a", "b", "c"], "{text}");
        }
        assert!(query("other=a").list("ids").unwrap().is_empty());
        assert!(
            query(&format!("ids={}", "a,".repeat(101)))
                .list("ids")
                .is_err()
        );
        assert!(
            query(&format!("ids={}", "a".repeat(257)))
                .list("ids")
                .is_err()
        );
    }

    #[test]
    fn a_map_arrives_in_brackets() {
        let versions = query("toolkit_versions%5Bgh%5D=20251027_00&toolkit_versions[x]=latest")
            .map("toolkit_versions");
        assert_eq!(
            versions,
            [
                ("gh".into(), "20251027_00".into()),
                ("x".into(), "latest".into())
            ]
        );
    }

    #[test]
    fn cursor_round_trips_and_other_text_is_refused() {
        let page = Page {
            number: 7,
            limit: 50,
            mark: None,
        };
        assert_eq!(read_cursor(&cursor(&page)).as_ref(), Some(&page));
        let marked = Page {
            mark: Some("log_0a-Z".into()),
            ..page.clone()
        };
        assert_eq!(read_cursor(&cursor(&marked)), Some(marked));
        let not = [
            "",
            "x",
            "0-20",
            "1-0",
            "1-1001",
            "-1-20",
            "+1-20",
            "9999999999999-20",
            "1-20 ",
            "a-b",
            "1-20-",
            "1-20-/",
        ];
        for text in not {
            assert_eq!(read_cursor(&BASE64.encode(text)), None, "{text}");
        }
        assert_eq!(read_cursor("1-20"), None, "not base64");
        assert_eq!(
            query("limit=5&cursor=Ny01MA==").page().unwrap(),
            page,
            "the cursor's limit wins"
        );
        assert!(query("cursor=%%%").page().is_err());
    }

    proptest! {
        #[test]
        fn every_page_reads_back_from_its_cursor(
            number in 1_u64..=999_999_999_999,
            limit in 1..=LARGEST_PAGE,
            mark in proptest::option::of("[A-Za-z0-9_-]{1,20}"),
        ) {
            let page = Page { number, limit, mark };
            prop_assert_eq!(read_cursor(&cursor(&page)), Some(page));
        }

        #[test]
        fn every_accepted_cursor_is_a_valid_page(text in "[0-9]{0,3}-[0-9]{0,4}(-.{0,4})?|.{0,12}") {
            if let Some(page) = read_cursor(&BASE64.encode(text)) {
                prop_assert!(page.number >= 1 && (1..=LARGEST_PAGE).contains(&page.limit));
                prop_assert_eq!(read_cursor(&cursor(&page)), Some(page));
            }
        }
    }

    #[test]
    fn limit_out_of_range_is_clamped() {
        let limit = |text: &str| query(text).page().map(|page| page.limit);
        assert_eq!(limit("").unwrap(), 20);
        assert_eq!(limit("limit=9999").unwrap(), 1000);
        assert_eq!(limit("limit=0").unwrap(), 1);
        assert_eq!(limit("limit=-5").unwrap(), 1);
        assert!(limit("limit=many").is_err());
    }

    #[test]
    fn nul_and_half_truths_are_refused() {
        assert!(Query::read("a=%00").is_err());
        assert!(query("b=yes").boolean("b").is_err());
        assert_eq!(query("b=True").boolean("b").unwrap(), Some(true));
        assert_eq!(query("b=").boolean("b").unwrap(), None);
        assert!(query("c=other").choice("c", &["asc", "desc"]).is_err());
        assert_eq!(
            query("c=DESC").choice("c", &["asc", "desc"]).unwrap(),
            Some(1)
        );
    }
}
