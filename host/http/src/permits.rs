//! Concurrency permit that the request being answered holds: one of the server, which it exchanges for
//! one of its project once its key is authenticated.
//!
//! A request that waits for its client holds no permit: it releases its permit, waits, and acquires
//! it again. A stream releases it for good, and has a permit of its own.

use app::Error;

use crate::{
    context::CURRENT_REQUEST,
    errors,
    limiter::{Caller, CallerPermit, RequestLimiter},
};

/// Acquires the permit of the request being answered.
///
/// # Errors
/// Returns an error if no permit becomes free in time.
pub async fn acquire(limiter: &RequestLimiter) -> Result<(), Error> {
    let caller = CURRENT_REQUEST.with(|context| context.permits.caller.get().cloned());
    match caller {
        Some(caller) => {
            let permit = limiter.acquire_for_project(&caller).await?;
            CURRENT_REQUEST.with(|context| *context.permits.project.lock() = Some(permit));
        }
        None => {
            let permit = limiter.acquire().await?;
            CURRENT_REQUEST.with(|context| *context.permits.server.lock() = Some(permit));
        }
    }
    Ok(())
}

/// Exchanges the permit of the request for one of a project, unless it has one already.
///
/// # Errors
/// As [`acquire`].
pub async fn acquire_for_project(limiter: &RequestLimiter, caller: Caller) -> Result<(), Error> {
    let is_held = CURRENT_REQUEST.with(|context| context.permits.exchange(limiter, caller));
    if is_held {
        return Ok(());
    }
    Box::pin(acquire(limiter)).await
}

/// Acquires the permit to build a page of a list, which the request holds until it is answered.
///
/// # Errors
/// Returns an error if no permit becomes free in time.
pub(crate) async fn acquire_page() -> Result<(), Error> {
    let known = CURRENT_REQUEST.with(|context| {
        let owner = context.owner.get().cloned();
        context.server.get().cloned().zip(owner)
    });
    // Without a key, the request is refused elsewhere.
    if let Some((server, owner)) = known {
        let permit = server.limiter.acquire_page(&owner).await?;
        CURRENT_REQUEST.with(|context| *context.permits.page.lock() = Some(permit));
    }
    Ok(())
}

/// Exchanges the permit of the request for one of a stream that it opens. An open stream without work
/// keeps no other requests out.
///
/// # Errors
/// Returns an error if the caller may have no further stream now.
pub fn open_stream(limiter: &RequestLimiter) -> Result<CallerPermit, Error> {
    CURRENT_REQUEST.with(|context| {
        let caller = context.permits.caller.get();
        let caller = caller.ok_or_else(|| errors::internal("a stream without a project"))?;
        let permit = limiter.streams.try_acquire(caller)?;
        context.permits.release();
        Ok(permit)
    })
}

/// Releases the permit of a request that waits for its client.
pub fn leave() {
    CURRENT_REQUEST.with(|context| context.permits.release());
}
