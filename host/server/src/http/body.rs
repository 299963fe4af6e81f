//! Bodies of requests, read within limits of size, time and speed.
//!
//! JSON is parsed strictly (see [`app::core::json`]). A request whose body is still arriving holds no
//! concurrency permit.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use app::{Error, catalog::MAX_COMPONENT_BYTES, core::json};
use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout, timeout_at};
use utoipa::ToSchema;

use crate::{
    Server,
    config::{Limits, PACE_WINDOW},
    http::{
        ApiError, ApiResult, HttpError, Json,
        branding::Branding,
        context::{CURRENT_REQUEST, operation},
        errors, flattened,
        limiter::Arrival,
        members, permits,
        unknown::{Notes, Noting},
    },
};

/// Limits on reading the rest of a body that is refused for its size, in bytes and time.
const MAX_DRAINED_BYTES: usize = 128 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest JSON body that any operation accepts regardless of the settings, in bytes.
pub(crate) const MAX_JSON_BYTES: usize = 6 << 20;

impl<T: DeserializeOwned + ToSchema + Send + 'static> FromRequest<Arc<Server>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let UnparsedJson { bytes, .. } = UnparsedJson::<T>::from_request(request, server).await?;
        let size = bytes.len();
        let branding = server.branding.clone();
        let parsed = parse(server, size, move || object(&bytes, &branding));
        let (body, warnings) = parsed.await??;
        CURRENT_REQUEST.with(|context| context.names.warn(warnings));
        Ok(Self(body))
    }
}

/// JSON body that may be absent; it counts as `{}` then.
pub(crate) struct OptionalJson<T>(pub T);

impl<T: DeserializeOwned + ToSchema + Send + 'static> FromRequest<Arc<Server>> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        let Json(body) = Json::from_request(request, server).await?;
        Ok(Self(body))
    }
}

/// JSON body that its handler parses as a `T`.
pub(crate) struct UnparsedJson<T> {
    /// The bytes as they arrived.
    pub bytes: Bytes,
    parsed_as: PhantomData<fn() -> T>,
}

impl<T> FromRequest<Arc<Server>> for UnparsedJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        is_json(request.headers())?;
        let limit = operation().max_body.bytes(&server.config.limits);
        let bytes = read(server, request, limit).await?;
        Ok(Self {
            bytes,
            parsed_as: PhantomData,
        })
    }
}

/// Does work that grows with the size of a body of the request being answered, in the turns of its
/// project.
///
/// # Errors
/// As [`LargeWork::run`](app::core::large_work::LargeWork::run).
async fn parse<T: Send + 'static>(
    server: &Server,
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let owner = CURRENT_REQUEST.with(|context| context.owner.get().cloned());
    let owner = owner.unwrap_or_default();
    server.app.large_work.run(&owner, size, work).await
}

/// Parses a JSON object strictly. An empty body is read as an empty object. Returns also the warnings
/// about unknown members.
fn object<T: DeserializeOwned + ToSchema + 'static>(
    bytes: &[u8],
    branding: &Branding,
) -> ApiResult<(T, Vec<String>)> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    let value = json::parse(bytes).map_err(|cause| errors::invalid(format!("body: {cause}")))?;
    // serde would deserialize a struct from an array of its members in order.
    if !value.is_object() {
        return Err(errors::invalid("body: must be a JSON object").into());
    }
    let value = branding.restore(value);
    let mut warnings = flattened::warnings::<T>(&value);
    let read = members::read(value, &mut warnings);
    read.map(|body| (body, warnings)).map_err(|first| {
        let again = json::parse(bytes).map(|value| branding.restore(value));
        let mut problems = members::problems::<T>(again.unwrap_or_default(), first);
        for line in &mut problems {
            *line = branding.rename(line).into_owned();
        }
        errors::invalid(problems).into()
    })
}

/// Parses a JSON object whose parts are borrowed from its bytes. Returns also the warnings about
/// unknown members.
///
/// # Errors
/// If the bytes are not an object that fits the type.
pub(crate) fn borrowed_object<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> ApiResult<(T, Vec<String>)> {
    borrowed(bytes).map_err(|problem| errors::invalid(problem).into())
}

/// Parses as [`borrowed_object`] does, for operations with errors of their own.
///
/// # Errors
/// The problem with the bytes.
pub(crate) fn borrowed<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
) -> Result<(T, Vec<String>), String> {
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    // serde would deserialize a struct from an array of its members in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("body: must be a JSON object".to_owned());
    }
    let mut notes = Notes::default();
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let body = T::deserialize(Noting::new(&mut json, &mut notes));
    body.and_then(|body| json.end().map(|()| (body, notes.warnings)))
        .map_err(|cause| format!("body: {cause}"))
}

/// Component of at most [`MAX_COMPONENT_BYTES`] bytes. Its content is not checked here.
pub(crate) struct ComponentBytes(pub Bytes);

impl FromRequest<Arc<Server>> for ComponentBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, server: &Arc<Server>) -> ApiResult<Self> {
        read(server, request, MAX_COMPONENT_BYTES).await.map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> ApiResult<()> {
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
        Err(HttpError::WrongType.into())
    }
}

/// Reads a body of at most `limit` bytes. A body that did not arrive with its head is counted among
/// the arriving bodies, whose number is limited. Its request releases its concurrency permits in
/// the meantime.
pub(crate) async fn read(server: &Server, request: Request, limit: usize) -> ApiResult<Bytes> {
    let (head, body) = request.into_parts();
    read_after(server, &head.headers, body, limit).await
}

/// Reads the body that comes after these headers, as [`read`] does.
pub(crate) async fn read_after(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> ApiResult<Bytes> {
    let upload = Upload::begin(headers, body, limit)?;
    let within = server.config.limits.body();
    receive(server, upload, within, |bytes| {
        let mut arrival = arrival(server)?;
        arrival.grow(bytes)?;
        Ok(move |more| arrival.grow(more))
    })
    .await
}

/// Reads a file of at most `limit` bytes. The caller holds a permit for file transfers; its request
/// releases its concurrency permits while the file arrives.
pub(crate) async fn read_file(server: &Server, request: Request, limit: usize) -> ApiResult<Bytes> {
    let (head, body) = request.into_parts();
    let upload = Upload::begin(&head.headers, body, limit)?;
    let within = server.config.files.transfer();
    receive(server, upload, within, |_| Ok(|_| Ok(()))).await
}

/// Reads a body. One that is not complete is waited for without concurrency permits; `count` makes
/// the function that counts its bytes in the meantime, from those that are here already.
async fn receive<'a, Grow: FnMut(usize) -> Result<(), Error> + 'a>(
    server: &'a Server,
    mut upload: Upload,
    within: Duration,
    count: impl FnOnce(usize) -> Result<Grow, Error>,
) -> ApiResult<Bytes> {
    let mut counted = None;
    let whole = match upload.take_arrived() {
        Ok(true) => return Ok(upload.into_bytes()),
        Ok(false) => {
            permits::leave();
            let grow = counted.insert(count(upload.bytes.len())?);
            Box::pin(upload.arrive(&server.config.limits, within, grow)).await
        }
        Err(refused) => Err(refused.into()),
    };
    match whole {
        Ok(()) => {
            permits::enter(&server.limiter).await?;
            Ok(upload.into_bytes())
        }
        Err(ApiError::Http(large @ HttpError::TooLarge(_))) => {
            drop(counted);
            Err(Box::pin(upload.refuse(server, large)).await)
        }
        Err(failure) => Err(failure),
    }
}

/// Counts one more arriving body for the sender of the request being answered.
fn arrival(server: &Server) -> Result<Arrival<'_>, Error> {
    let (address, owner) =
        CURRENT_REQUEST.with(|context| (context.peer, context.owner.get().cloned()));
    server.limiter.arrivals.enter(address, owner)
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
    fn begin(headers: &HeaderMap, body: Body, limit: usize) -> ApiResult<Self> {
        let encoding = headers.get(header::CONTENT_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(HttpError::Encoded.into());
        }
        let declared = headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse().ok());
        Ok(Self {
            body,
            limit,
            declared,
            bytes: Vec::new(),
        })
    }

    /// Takes the bytes that came with the head, without waiting. Returns true if the body is
    /// complete.
    fn take_arrived(&mut self) -> Result<bool, HttpError> {
        if self
            .declared
            .is_some_and(|length| length > self.limit as u64)
        {
            return Err(HttpError::TooLarge(self.limit));
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
    ) -> ApiResult<()> {
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
                Err(_) if until == end => return Err(HttpError::SlowBody(within).into()),
                Err(_) => return Err(HttpError::TricklingBody(limits.min_rate_kib).into()),
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
    fn add(&mut self, frame: Result<Frame<Bytes>, axum::Error>) -> Result<usize, HttpError> {
        let Ok(data) = frame.map_err(|_| HttpError::BrokenBody)?.into_data() else {
            return Ok(0);
        };
        if self.bytes.len() + data.len() > self.limit {
            return Err(HttpError::TooLarge(self.limit));
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
    async fn refuse(mut self, server: &Server, refusal: HttpError) -> ApiError {
        permits::leave();
        self.bytes = Vec::new();
        let Ok(_arrival) = arrival(server) else {
            return refusal.into();
        };
        let mut drained = 0;
        let reading = async {
            while drained < MAX_DRAINED_BYTES
                && let Some(Ok(frame)) = self.body.frame().await
            {
                drained += frame.data_ref().map_or(0, Bytes::len);
            }
        };
        // A client that has not finished by then is not waited for.
        let _ = timeout(DRAIN_TIMEOUT, reading).await;
        refusal.into()
    }
}
