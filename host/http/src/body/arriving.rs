//! Bodies as they arrive: within a size and a time, at a minimum speed, and counted meanwhile.

use std::{sync::Arc, time::Duration};

use app::{Error, files::reserve_memory};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use futures::FutureExt;
use gate::Capacity;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use sandbox::Reservation;
use settings::{Limits, PACE_WINDOW};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    ApiError, ApiResult, HttpError, Server, context::CURRENT_REQUEST, errors, limiter::Arrival,
    permits,
};

/// Limits on reading the rest of a body refused for its size, in bytes and time.
const MAX_DRAINED_BYTES: usize = 128 << 20;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a body of at most `limit` bytes. A body that did not arrive with its head is counted among
/// the arriving bodies, whose number is limited. Its request releases its concurrency permits in
/// the meantime.
pub async fn read(server: &Server, request: Request, limit: usize) -> ApiResult<Bytes> {
    let (head, body) = request.into_parts();
    read_after(server, &head.headers, body, limit).await
}

/// Reads the body that comes after these headers, as [`read`] does.
pub async fn read_after(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> ApiResult<Bytes> {
    let upload = Upload::begin(headers, body, limit)?;
    let within = server.config.limits.wait();
    receive(server, upload, within, |bytes| {
        let arrival = arrival(server)?;
        arrival.grow(bytes)?;
        Ok(move |more| arrival.grow(more))
    })
    .await
}

/// Reads a file of a project of at most `limit` bytes. The caller holds a permit for file transfers; its
/// request releases its concurrency permits while the file arrives. Also returns the reservation for
/// the memory of the file.
pub async fn read_file(
    server: &Server,
    tenant: &Arc<str>,
    request: Request,
    limit: usize,
) -> ApiResult<(Bytes, Reservation)> {
    let (head, body) = request.into_parts();
    let upload = Upload::begin(&head.headers, body, limit)?;
    let within = server.config.files.transfer();
    let memory = reserve_memory(&server.app, tenant, 0)?;
    let grow = |bytes: usize| {
        let grown = memory.try_grow(bytes as u64);
        grown.map_err(|busy| errors::busy(Capacity::Memory, busy))
    };
    let bytes = receive(server, upload, within, |bytes: usize| {
        grow(bytes).map(|()| grow)
    })
    .await?;
    // A file that came with its head is not counted yet.
    if memory.is_empty() {
        grow(bytes.len())?;
    }
    Ok((bytes, memory))
}

/// Reads a body. An incomplete one is waited for without concurrency permits; `count` makes the
/// function that counts its bytes in the meantime, from those that are here already.
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
            permits::acquire(&server.limiter).await?;
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
fn arrival(server: &Server) -> Result<Arrival, Error> {
    let (address, owner) = CURRENT_REQUEST.with(|context| {
        let owner = context
            .owner
            .get()
            .filter(|_| !context.permits.is_of_stranger());
        (context.peer, owner.cloned())
    });
    server.limiter.arrivals.acquire(address, owner)
}

/// Arriving body, and its bytes so far.
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
        Ok(Self {
            declared: body.size_hint().exact(),
            body,
            limit,
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

    /// Reads and discards the rest of the body within limits. A client still sending when the
    /// connection closes would never see the error.
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
