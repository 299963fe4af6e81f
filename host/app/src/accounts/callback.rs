//! Callbacks: a provider redirects the browser back, and the code is exchanged for tokens.

use std::time::Duration;

use manifest::{AuthScheme, OAuth2};
use oauth::{ExchangeParams, Refusal, Tokens, truncate};
use store::{Batch, CommitError, Record, Time};
use url::Url;

use super::{
    Failure,
    account::{AUTH_CONFIG_GONE, COLLECTION, record},
    attempt::{ConnectionAttempt, PendingSecrets, Step, link_gone, secret},
    attempt_end::{activate, auth_config_gone, fail_attempt},
    redirect::with_query,
    refresh::POLL_INTERVAL,
    tokens::TokenOwner,
};
use crate::{App, Error, Result, accounts::errors, core::clock::time_after, projects::Project};

/// Time within which a project must confirm its user.
const USER_VERIFICATION_TTL: Duration = Duration::from_secs(600);

const SESSION_PREFIX: &str = "session_";

/// Time within which a browser gets the result of its callback again.
const REPETITION_TTL: Duration = Duration::from_secs(600);

/// Handles the callback of a provider, and returns the address to which the browser is redirected.
/// `browser` is the value of the cookie that the page has set.
/// Fails with [`errors::ATTEMPT_UNKNOWN`] if the `state` belongs to no attempt that this browser
/// may complete now. In that case nothing was sent and nothing has changed. A repeated callback of
/// the browser that opened the page has the result of the first.
pub async fn callback(
    app: &App,
    query: &[(String, String)],
    browser: Option<&str>,
) -> Result<String> {
    let state = single_parameter(query, "state").ok_or_else(errors::attempt_unknown)?;
    let name = app.attempt_record_id(Step::Authorize, state);
    let attempt = app
        .store
        .lookup::<ConnectionAttempt>(&name)
        .await?
        .ok_or_else(errors::attempt_unknown)?;
    let now = app.clock.now();
    let actual = browser.map(|cookie| app.browser_hash(cookie));
    let expected = attempt.body.browser.as_ref();
    let same_browser = expected.is_none() || actual.as_ref() == expected;
    if attempt.body.until <= now || !same_browser {
        return Err(errors::attempt_unknown());
    }
    if attempt.body.step != Step::Authorize {
        return result_of_first(app, &name).await;
    }
    let project = app.attempt_project(&attempt).await?;
    let id = attempt.body.account.clone();
    let account = record(app, &project, &id).await.map_err(link_gone)?;
    if account.body.attempt_number != attempt.body.attempt_number {
        // The first callback may have completed since the attempt was read.
        return result_of_first(app, &name).await;
    }
    let owner = TokenOwner::for_account(app, &account).map_err(|_| errors::attempt_unknown())?;
    let secrets = app.open_secrets(&attempt).await?;
    // The state is spent from here on: a second callback finds no record that it could use.
    let is_repeatable = attempt.body.browser.is_some();
    let batch = match is_repeatable {
        true => Batch::at(now).update(&spent(app, &project, &attempt, now).await?),
        false => Batch::at(now).purge(&attempt),
    };
    match app.store.commit(batch).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return result_of_first(app, &name).await,
        Err(cause) => return Err(cause.into()),
    }
    let landed = complete(app, &project, &owner, attempt.body, secrets, query, now).await;
    if is_repeatable {
        keep_result(app, &project, &name, landed.as_ref().ok().cloned(), now).await;
    }
    landed
}

/// Returns the record of a spent state, which holds no secret of the attempt.
async fn spent(
    app: &App,
    project: &Project,
    attempt: &Record<ConnectionAttempt>,
    now: Time,
) -> Result<Record<ConnectionAttempt>> {
    let secrets = PendingSecrets::default();
    let mut spent = attempt.clone();
    spent.body.step = Step::Returned;
    spent.body.until = time_after(now, REPETITION_TTL);
    spent.body.secrets = app.seal_secrets(project, &attempt.id, &secrets).await?;
    Ok(spent)
}

/// Keeps the result of a callback for repetitions. Without a result, repetitions are refused. A
/// failure is only logged.
async fn keep_result(app: &App, project: &Project, name: &str, landed: Option<String>, now: Time) {
    let secrets = PendingSecrets {
        landed,
        ..PendingSecrets::default()
    };
    let kept = async {
        let sealed = app.seal_secrets(project, name, &secrets).await?;
        let owner = project.id.as_str();
        let edited = app
            .store
            .edit(owner, name, now, |attempt: &mut ConnectionAttempt| {
                attempt.secrets = sealed.clone();
                if secrets.landed.is_none() {
                    attempt.until = now;
                }
                Ok::<_, Error>(())
            });
        Ok::<_, Error>(edited.await?)
    };
    if let Err(cause) = kept.await {
        tracing::warn!(%cause, "the result of a callback was not kept for its repetitions");
    }
}

/// Returns the result of the first callback with a state, once there is one. Fails if that callback
/// kept no result, or if the state has not been spent.
async fn result_of_first(app: &App, name: &str) -> Result<String> {
    let timeout = app.accounts.settings.wait_timeout;
    let waiting = tokio::time::timeout(timeout, async {
        loop {
            let stored = app.store.lookup::<ConnectionAttempt>(name).await?;
            let now = app.clock.now();
            let attempt = stored
                .filter(|attempt| attempt.body.step == Step::Returned && attempt.body.until > now)
                .ok_or_else(errors::attempt_unknown)?;
            if let Some(landed) = app.open_secrets(&attempt).await?.landed {
                return Ok::<_, Error>(landed);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    });
    waiting
        .await
        .unwrap_or_else(|_| Err(errors::attempt_unknown()))
}

/// Completes an attempt whose state is spent, and returns the address to which the browser is
/// redirected.
async fn complete(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    attempt: ConnectionAttempt,
    secrets: PendingSecrets,
    query: &[(String, String)],
    now: Time,
) -> Result<String> {
    let id = &owner.account;
    let callback_url = attempt.callback_url.clone();
    let redirect = |outcome| app.return_url(callback_url.as_deref(), id, outcome);
    let exchanged = exchange_callback(app, owner, &secrets, query).await;
    let mut values = secrets.values;
    let attempt_number = attempt.attempt_number;
    let tokens = match exchanged {
        Ok(tokens) => tokens,
        Err(no_tokens) => {
            let is_reported = matches!(no_tokens, NoTokens::Reported(_));
            let (NoTokens::Reported(failure) | NoTokens::Failed(failure)) = no_tokens;
            let keeps_link = is_reported && attempt.browser.is_some();
            fail_attempt(app, project, id, attempt_number, &failure, keeps_link).await?;
            return Ok(redirect(Err(failure.error)));
        }
    };
    let lifetime = tokens.lifetime;
    values.extend(tokens.values);
    let landed = if let Some(verifier) = &project.stored.config.verifier_url {
        let secrets = PendingSecrets {
            values,
            lifetime: lifetime.map(|lifetime| lifetime.as_secs()),
            ..PendingSecrets::default()
        };
        request_verification(app, project, owner, verifier, attempt, secrets, now).await
    } else {
        let activated = activate(app, project, owner, attempt_number, &values, lifetime).await;
        activated.map(|()| redirect(Ok(())))
    };
    match landed {
        Err(cause) if cause.is(&errors::ATTEMPT_UNKNOWN) => Ok(redirect(Err("superseded".into()))),
        Err(cause) if cause.is(&errors::AUTH_CONFIG_NOT_FOUND) => {
            Ok(redirect(Err(AUTH_CONFIG_GONE.into())))
        }
        landed => landed,
    }
}

/// Keeps the tokens until the project has confirmed its user, and redirects the browser to the
/// project. Revokes the tokens and fails if a newer attempt has replaced this one.
async fn request_verification(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    verifier_url: &str,
    attempt: ConnectionAttempt,
    secrets: PendingSecrets,
    now: Time,
) -> Result<String> {
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
        let account = record(app, project, id).await.map_err(link_gone)?;
        if account.body.attempt_number != verification.attempt_number {
            return Err(errors::attempt_unknown());
        }
        let batch = Batch::at(now).check(&account);
        Ok((batch.insert(project.id.as_str(), &name, &verification), ()))
    });
    match stored.await.map_err(Error::from) {
        Ok(()) => with_query(verifier_url, &[("session_uri", &session)]),
        Err(cause) => {
            if cause.is(&errors::ATTEMPT_UNKNOWN) {
                let tokens = &app.accounts;
                tokens.revoke_best_effort(owner, &secrets.values).await;
            }
            Err(cause)
        }
    }
}

/// Reason why a callback yields no tokens.
enum NoTokens {
    /// The provider reports an error instead of a code, for example because the user declined.
    Reported(Failure),
    /// The callback is invalid, or its code yields no tokens.
    Failed(Failure),
}

impl From<Failure> for NoTokens {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Exchanges the callback's code for tokens, or returns the reason of the failure.
async fn exchange_callback(
    app: &App,
    owner: &TokenOwner,
    secrets: &PendingSecrets,
    query: &[(String, String)],
) -> std::result::Result<Tokens, NoTokens> {
    let declared_scheme = owner
        .scheme()
        .map_err(|cause| Failure::new("toolkit_gone", cause.to_string()))?;
    let client = app.accounts.client_of(owner).await;
    let context = client
        .map_err(|cause| Failure::new("auth_config_unusable", cause.to_string()))?
        .ok_or_else(auth_config_gone)?;
    let declared_flow = context.flow(declared_scheme, &secrets.values);
    let resolved = app.accounts.metadata.resolve(&declared_flow).await;
    let scheme = &resolved.map_err(|refusal| refused("issuer_unknown", &refusal))?;
    // Checked before the rest of the callback, including an error, is read (RFC 9207, section 2.4).
    check_issuer(scheme, query).map_err(|why| Failure::new("issuer_mismatch", why))?;
    let params = ExchangeParams {
        code: authorization_code(scheme, query)?,
        redirect_uri: &secrets.redirect_uri,
        verifier: Some(secrets.verifier.as_str()),
        callback: query,
    };
    let exchanged = context.flow(scheme, &secrets.values).exchange(params).await;
    if exchanged.as_ref().is_err_and(Refusal::is_invalid_client) {
        let deleted = app.accounts.delete_rejected_client(owner, &secrets.values);
        if let Err(cause) = deleted.await {
            tracing::warn!(account = %owner.account, %cause, "a client that the provider does not know was not deleted");
        }
    }
    Ok(exchanged.map_err(|refusal| refused("token_exchange_failed", &refusal))?)
}

fn refused(error: &str, refusal: &Refusal) -> Failure {
    Failure::new(error, truncate(&refusal.to_string()))
}

/// Returns the code of a callback, or the failure that the callback reports. The OAuth 1
/// specification defines no error response; these are the forms that providers use.
fn authorization_code<'a>(
    scheme: &AuthScheme,
    query: &'a [(String, String)],
) -> std::result::Result<&'a str, NoTokens> {
    if let Some((_, error)) = query
        .iter()
        .find(|(name, _)| matches!(name.as_str(), "error" | "oauth_problem"))
    {
        let description = single_parameter(query, "error_description").map(truncate);
        let failure = Failure::new(truncate(error), description.unwrap_or_default());
        return Err(NoTokens::Reported(failure));
    }
    if scheme.oauth1.is_some() && query.iter().any(|(name, _)| name == "denied") {
        return Err(NoTokens::Reported(Failure::new("access_denied", "")));
    }
    let named = match &scheme.oauth1 {
        Some(_) => "oauth_verifier",
        None => scheme.oauth2.as_ref().map_or("code", OAuth2::code_param),
    };
    let code = single_parameter(query, named).filter(|code| !code.is_empty());
    let problem = "the callback contains no authorization code";
    code.ok_or_else(|| Failure::new("invalid_response", problem).into())
}

/// Checks that the issuer named in the callback is the provider's own (RFC 9207). Another issuer
/// means that two attempts were mixed up. If the issuer's identifier is not known, it must have the
/// origin of the authorization or token endpoint.
fn check_issuer(
    scheme: &AuthScheme,
    query: &[(String, String)],
) -> std::result::Result<(), String> {
    let named: Vec<_> = query.iter().filter(|(name, _)| name == "iss").collect();
    let oauth2 = scheme.oauth2.as_ref();
    match named[..] {
        [] if oauth2.is_some_and(|oauth2| oauth2.names_issuer) => {
            Err("the callback does not name its issuer".into())
        }
        [] => Ok(()),
        [(_, issuer)] if is_issuer_of(oauth2, issuer) => Ok(()),
        [_] => Err("the callback names another issuer".into()),
        _ => Err("the callback names several issuers".into()),
    }
}

/// Returns true for the issuer that a scheme names, or else for one with the origin of an endpoint.
fn is_issuer_of(oauth2: Option<&OAuth2>, issuer: &str) -> bool {
    match oauth2.and_then(|oauth2| oauth2.issuer.as_ref()) {
        Some(known) => known == issuer,
        None => {
            let mut endpoints = oauth2
                .map(|oauth2| [&oauth2.authorize_url, &oauth2.token_url])
                .into_iter()
                .flatten();
            let issuer_origin = origin(issuer).filter(url::Origin::is_tuple);
            issuer_origin.is_some() && endpoints.any(|endpoint| origin(endpoint) == issuer_origin)
        }
    }
}

fn origin(address: &str) -> Option<url::Origin> {
    Url::parse(address).ok().map(|url| url.origin())
}

/// Returns the value of a parameter that occurs exactly once. A repeated parameter counts as
/// absent, because other parsers may read a different occurrence.
fn single_parameter<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut matches = query.iter().filter(|(parameter, _)| parameter == name);
    match (matches.next(), matches.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
