//! The secrets of requests: the keys in their headers, and guesses of strangers.

use std::sync::Arc;

use app::projects::{self, Holder};
use axum::http::{HeaderMap, HeaderName};

use super::{ORGANIZATION_KEY_HEADER, PROJECT_KEY_HEADER, USER_KEY_HEADER};
use crate::{ApiError, ApiResult, CURRENT_REQUEST, Server, errors, limiter::SecretKind, permits};

/// Headers of keys of all kinds.
const KEY_HEADER_NAMES: [&str; 3] = [PROJECT_KEY_HEADER, ORGANIZATION_KEY_HEADER, USER_KEY_HEADER];
/// The same headers, parsed once, with the owner of their keys.
static KEY_HEADERS: [(HeaderName, &str); 3] = [
    (HeaderName::from_static(PROJECT_KEY_HEADER), "a project"),
    (
        HeaderName::from_static(ORGANIZATION_KEY_HEADER),
        "an organization",
    ),
    (HeaderName::from_static(USER_KEY_HEADER), "a user"),
];

/// Returns true if a request has a key of any kind.
pub fn has_key(headers: &HeaderMap) -> bool {
    let mut names = KEY_HEADERS.iter();
    names.any(|(name, _)| headers.contains_key(name))
}

/// Returns the single key of a request, if it is of a kind that the operation accepts.
pub(super) fn given<'a>(
    headers: &'a HeaderMap,
    wanted: &[&str],
    name: &'static str,
) -> ApiResult<&'a str> {
    let mut found = None;
    for (sent, value) in headers {
        let of_key = KEY_HEADERS.iter().find(|(header, _)| header == sent);
        if let Some((header, kind)) = of_key
            && found.replace((header.as_str(), *kind, value)).is_some()
        {
            return Err(errors::key_ambiguous().into());
        }
    }
    match found {
        None => Err(errors::key_missing(&wanted.join(" or ")).into()),
        Some((header, kind, _)) if !wanted.contains(&header) => {
            Err(errors::key_of_other_kind(name, kind).into())
        }
        Some((_, _, value)) => Ok(value.to_str().unwrap_or_default()),
    }
}

/// Authenticates the sender of a request with any kind of key.
pub async fn anyone(server: &Server, headers: &HeaderMap) -> ApiResult<Arc<Holder>> {
    holder(server, given(headers, &KEY_HEADER_NAMES, "a")?).await
}

/// Revokes a leaked key. Wrong keys count as failed authentications of the address; past their
/// limit, it gets an error.
pub async fn revoke(server: &Server, secret: &str) -> ApiResult<()> {
    match holder(server, secret).await {
        Ok(_) => Ok(projects::revoke(&server.app, secret).await?),
        Err(ApiError::App(error)) if error.is(&errors::KEY_INVALID) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Returns the holder of a key, from the cache if possible.
pub async fn holder(server: &Server, secret: &str) -> ApiResult<Arc<Holder>> {
    match server.app.keys.cached(secret) {
        Some(holder) => Ok(holder),
        None => {
            let authenticated = projects::authenticate(&server.app, secret);
            Box::pin(verify_secret(server, SecretKind::Key, authenticated)).await
        }
    }
}

/// Checks a secret that strangers may guess. An address with too many wrong secrets has to wait for
/// a turn, so that its guesses cost little and a valid secret still works.
pub async fn verify_secret<T>(
    server: &Server,
    kind: SecretKind,
    judging: impl Future<Output = app::Result<T>>,
) -> ApiResult<T> {
    let peer = CURRENT_REQUEST.with(|context| context.peer);
    let now = server.app.clock.now();
    let suspects = server.limiter.suspects(kind);
    let suspected = suspects.suspected(peer, now);
    let outcome = match suspected {
        None => judging.await,
        Some(_) => {
            permits::leave();
            let _permit = suspects.acquire().await?;
            permits::acquire(&server.limiter).await?;
            judging.await
        }
    };
    let is_wrong = outcome
        .as_ref()
        .is_err_and(|error| error.is(&errors::KEY_INVALID) || error.is(&errors::ATTEMPT_UNKNOWN));
    if !is_wrong {
        return Ok(outcome?);
    }
    suspects.has_failed(peer, now);
    match suspected {
        Some(retry_after) => Err(errors::too_many_failures(retry_after).into()),
        None => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use app::Error;
    use axum::http::HeaderValue;

    use super::*;

    fn ask(pairs: &[(&'static str, &'static str)]) -> Result<String, Error> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        given(&headers, &[PROJECT_KEY_HEADER], "a project")
            .map(str::to_owned)
            .map_err(|failure| match failure {
                ApiError::App(error) => error,
                ApiError::Http(other) => panic!("{other:?}"),
            })
    }

    #[test]
    fn exactly_one_matching_key_is_accepted() {
        assert_eq!(ask(&[(PROJECT_KEY_HEADER, "ak_x")]).unwrap(), "ak_x");
        for (pairs, expected) in [
            (&[][..], &errors::KEY_MISSING),
            (
                &[(PROJECT_KEY_HEADER, "a"), (ORGANIZATION_KEY_HEADER, "b")],
                &errors::KEY_AMBIGUOUS,
            ),
            (
                &[(PROJECT_KEY_HEADER, "a"), (PROJECT_KEY_HEADER, "a")],
                &errors::KEY_AMBIGUOUS,
            ),
            (
                &[(ORGANIZATION_KEY_HEADER, "b")],
                &errors::KEY_OF_OTHER_KIND,
            ),
            (&[(USER_KEY_HEADER, "u")], &errors::KEY_OF_OTHER_KIND),
        ] {
            let error = ask(pairs).unwrap_err();
            assert!(error.is(expected), "{error}");
        }
    }
}
