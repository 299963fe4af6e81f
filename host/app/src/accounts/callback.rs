//! Callbacks: a provider redirects the browser back, and the code is exchanged for tokens.

use std::time::Duration;

use manifest::{AuthScheme, OAuth2};
use oauth::{ExchangeParams, Refusal, Tokens};
use store::{Batch, CommitError, Time};
use url::Url;

use super::{
    Failure, RedirectTo,
    account::{COLLECTION, record},
    attempt::{ConnectionAttempt, PendingSecrets, Step, link_gone, secret},
    attempt_end::{AUTH_CONFIG_GONE, activate, auth_config_gone, fail_attempt},
    auth_configs,
    redirect::with_query,
    tokens::TokenOwner,
};
use crate::{App, Error, Result, accounts::errors, core::clock::time_after, projects::Project};

/// Time within which a project must confirm its user.
const USER_VERIFICATION_TTL: Duration = Duration::from_secs(600);

/// Maximum length of a text from a provider in characters.
const MAX_ERROR_CHARS: usize = 300;

const SESSION_PREFIX: &str = "session_";

/// Handles the callback of a provider. `browser` is the value of the cookie that the page has set.
/// Fails with [`errors::ATTEMPT_UNKNOWN`] if the `state` belongs to no attempt that this browser
/// may complete now. In that case nothing was sent and nothing has changed.
pub async fn callback(
    app: &App,
    query: &[(String, String)],
    browser: Option<&str>,
) -> Result<RedirectTo> {
    let state = single_parameter(query, "state").ok_or_else(errors::attempt_unknown)?;
    let name = app.attempt_record_id(Step::Authorize, state);
    let attempt = app.store.lookup::<ConnectionAttempt>(&name).await?;
    let attempt = attempt.ok_or_else(errors::attempt_unknown)?;
    let now = app.clock.now();
    let given = browser.map(|cookie| app.browser_hash(cookie));
    let expected = attempt.body.browser.as_ref();
    let same_browser = expected.is_none() || given.as_ref() == expected;
    if attempt.body.step != Step::Authorize || attempt.body.until <= now || !same_browser {
        return Err(errors::attempt_unknown());
    }
    let project = app.attempt_project(&attempt).await?;
    let id = attempt.body.account.clone();
    let account = record(app, &project, &id).await.map_err(link_gone)?;
    if account.body.attempt_number != attempt.body.attempt_number {
        return Err(errors::attempt_unknown());
    }
    let owner = TokenOwner::for_account(app, &project.id, &account)
        .map_err(|_| errors::attempt_unknown())?;
    // The state is spent from here on: a second callback finds no record.
    match app.store.commit(Batch::at(now).purge(&attempt)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(errors::attempt_unknown()),
        Err(cause) => return Err(cause.into()),
    }
    let secrets = app.open_secrets(&attempt).await?;
    let redirect =
        |outcome| RedirectTo(app.return_url(attempt.body.callback_url.as_deref(), &id, outcome));
    let exchanged = exchange_callback(app, &project, &owner, &secrets, query).await;
    let mut values = secrets.values;
    let attempt_number = attempt.body.attempt_number;
    let tokens = match exchanged {
        Ok(tokens) => tokens,
        Err(failure) => {
            fail_attempt(app, &project, &id, attempt_number, &failure).await?;
            return Ok(redirect(Err(failure.error)));
        }
    };
    let lifetime = tokens.lifetime;
    values.extend(tokens.values);
    if let Some(verifier) = &project.stored.config.verifier_url {
        let secrets = PendingSecrets {
            values,
            lifetime: lifetime.map(|lifetime| lifetime.as_secs()),
            ..PendingSecrets::default()
        };
        let attempt = attempt.body;
        return request_verification(app, &project, &owner, verifier, attempt, secrets, now).await;
    }
    match activate(app, &project, &owner, attempt_number, &values, lifetime).await {
        Ok(()) => Ok(redirect(Ok(()))),
        Err(cause) if cause.is(&errors::ATTEMPT_UNKNOWN) => Ok(redirect(Err("superseded".into()))),
        Err(cause) if cause.is(&errors::AUTH_CONFIG_NOT_FOUND) => {
            Ok(redirect(Err(AUTH_CONFIG_GONE.into())))
        }
        Err(cause) => Err(cause),
    }
}

/// Keeps the tokens until the project has confirmed its user, and redirects the browser to the
/// project. The tokens are revoked if a newer attempt has replaced this one.
async fn request_verification(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    verifier_url: &str,
    attempt: ConnectionAttempt,
    secrets: PendingSecrets,
    now: Time,
) -> Result<RedirectTo> {
    let id = &owner.account;
    let session = secret(SESSION_PREFIX);
    let name = app.attempt_record_id(Step::Verify, &session);
    let verification = ConnectionAttempt {
        step: Step::Verify,
        browser: None,
        until: time_after(now, USER_VERIFICATION_TTL),
        secrets: app.seal_secrets(project, &name, &secrets).await?,
        ..attempt
    };
    let stored = app.store.change(&COLLECTION, id.as_str(), || async {
        let found = record(app, project, id).await.map_err(link_gone)?;
        if found.body.attempt_number != verification.attempt_number {
            return Err(errors::attempt_unknown());
        }
        let batch = Batch::at(now).check(&found);
        Ok((batch.insert(project.id.as_str(), &name, &verification), ()))
    });
    match stored.await.map_err(Error::from) {
        Ok(()) => with_query(verifier_url, &[("session_uri", &session)]).map(RedirectTo),
        Err(cause) if cause.is(&errors::ATTEMPT_UNKNOWN) => {
            let tokens = &app.accounts;
            tokens.revoke_best_effort(owner, &secrets.values).await;
            let callback_url = verification.callback_url.as_deref();
            let outcome = Err("superseded".to_owned());
            Ok(RedirectTo(app.return_url(callback_url, id, outcome)))
        }
        Err(cause) => Err(cause),
    }
}

/// Exchanges the callback's code for tokens, or returns the reason of the failure.
async fn exchange_callback(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    secrets: &PendingSecrets,
    query: &[(String, String)],
) -> std::result::Result<Tokens, Failure> {
    let refused =
        |error: &str, refusal: Refusal| Failure::new(error, truncate(&refusal.to_string()));
    let scheme = owner.scheme();
    let scheme = scheme.map_err(|cause| Failure::new("toolkit_gone", cause.to_string()))?;
    let unusable = |cause: Error| Failure::new("auth_config_unusable", cause.to_string());
    let config = auth_configs::find(app, project, &owner.auth_config).await;
    let config = config.map_err(unusable)?;
    let config = config.ok_or_else(auth_config_gone)?;
    let context = app.accounts.client_context(&config).await;
    let context = context.map_err(unusable)?;
    let now = app.clock.now();
    let oauth_flow = context.flow(scheme, &secrets.values, now);
    let scheme = app.accounts.metadata.resolve(&oauth_flow).await;
    let scheme = &scheme.map_err(|refusal| refused("issuer_unknown", refusal))?;
    // Checked before the rest of the callback, including an error, is read (RFC 9207, section 2.4).
    check_issuer(scheme, query).map_err(|why| Failure::new("issuer_mismatch", why))?;
    let code = authorization_code(scheme, query)?;
    let code = ExchangeParams {
        code,
        redirect_uri: &secrets.redirect_uri,
        verifier: Some(secrets.verifier.as_str()),
        callback: query,
    };
    let oauth_flow = context.flow(scheme, &secrets.values, now);
    let exchanged = oauth_flow.exchange(code).await;
    if exchanged.as_ref().is_err_and(Refusal::is_invalid_client) {
        let (tokens, config) = (&app.accounts, &owner.auth_config);
        let deleted = tokens.delete_rejected_client(&project.id, config, &secrets.values);
        if let Err(cause) = deleted.await {
            tracing::warn!(account = %owner.account, %cause, "a client that the provider does not know was not deleted");
        }
    }
    exchanged.map_err(|refusal| refused("token_exchange_failed", refusal))
}

/// Returns the code of a callback, or the failure that the callback reports. The OAuth 1
/// specification defines no error response; these are the forms that providers use.
fn authorization_code<'a>(
    scheme: &AuthScheme,
    query: &'a [(String, String)],
) -> std::result::Result<&'a str, Failure> {
    let is_error = |name: &str| ["error", "oauth_problem"].contains(&name);
    if let Some((_, error)) = query.iter().find(|(name, _)| is_error(name)) {
        let description = single_parameter(query, "error_description").map(truncate);
        let failure = Failure::new(truncate(error), description.unwrap_or_default());
        return Err(failure);
    }
    if scheme.oauth1.is_some() && query.iter().any(|(name, _)| name == "denied") {
        return Err(Failure::new("access_denied", ""));
    }
    let named = match &scheme.oauth1 {
        Some(_) => "oauth_verifier",
        None => scheme.oauth2.as_ref().map_or("code", OAuth2::code_param),
    };
    let code = single_parameter(query, named).filter(|code| !code.is_empty());
    let problem = "the callback contains no authorization code";
    code.ok_or_else(|| Failure::new("invalid_response", problem))
}

/// Checks that the issuer named in the callback is the provider's own (RFC 9207). Another issuer
/// means that two attempts were mixed up. If the issuer's identifier is not known, it must have the
/// origin of the authorization or token endpoint.
fn check_issuer(
    scheme: &AuthScheme,
    query: &[(String, String)],
) -> std::result::Result<(), String> {
    let named: Vec<_> = query.iter().filter(|(name, _)| name == "iss").collect();
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    let oauth2 = scheme.oauth2.as_ref();
    let is_own = |issuer: &String| match oauth2.and_then(|oauth2| oauth2.issuer.as_ref()) {
        Some(known) => known == issuer,
        None => {
            let endpoints = oauth2.map(|oauth2| [&oauth2.authorize_url, &oauth2.token_url]);
            let mut endpoints = endpoints.into_iter().flatten();
            let issuer = origin(issuer).filter(url::Origin::is_tuple);
            issuer.is_some() && endpoints.any(|endpoint| origin(endpoint) == issuer)
        }
    };
    match named[..] {
        [] if oauth2.is_some_and(|oauth2| oauth2.names_issuer) => {
            Err("the callback does not name its issuer".into())
        }
        [] => Ok(()),
        [(_, issuer)] if is_own(issuer) => Ok(()),
        [_] => Err("the callback names another issuer".into()),
        _ => Err("the callback names several issuers".into()),
    }
}

/// Returns the value of a parameter that occurs exactly once. A repeated parameter counts as
/// absent, because other parsers may read a different occurrence.
fn single_parameter<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = query.iter().filter(|(own, _)| own == name);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

/// Shortens a text from a provider to one line.
fn truncate(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    manifest::cleaned(&line)
        .chars()
        .take(MAX_ERROR_CHARS)
        .collect()
}

#[cfg(test)]
mod tests;
