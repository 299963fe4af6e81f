//! Connection attempts: a user opens a page of this server, authorizes at the provider, and returns
//! to this server.
//!
//! An attempt uses up to three secrets, and each secret names one [`ConnectionAttempt`] record: the link token
//! of the page, the `state` of the authorization request (RFC 6749, section 10.12), and the session
//! with which the project confirms its user. A secret is random, is stored only as a keyed hash,
//! belongs to one account and one attempt, and expires. A `state` is erased before its code is
//! exchanged, so that only one of several callbacks can use the code. The end of an attempt
//! invalidates all its secrets, because each of them names the number of the attempt and the
//! account then has another number.
//!
//! An attempt that started on the page is bound to the browser that opened the page. Another
//! browser cannot complete it.
use std::time::Duration;

use manifest::{AuthMode, AuthScheme, Field as FormText, OAuth2};
use oauth::{AuthorizeParams, ExchangeParams, Flow, Refusal, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Time};
use url::Url;

use super::{
    Account, AccountView, COLLECTION as ACCOUNTS, Event, Failure, REDIRECT_URL_VALUE, Sharing,
    SharingChange, Status, TIMED_OUT_REASON, ValidatedRequest, Values, enabled_config, get, insert,
    oauth_clients::{self, RegistrationRequest, client_metadata_url},
    open_credential, parse_alias, record,
    refresh::{ClientContext, Credential, TokenOwner, obtains_from_fields},
    scheme, verify_values,
};
use crate::{
    App, Error, Result,
    accounts::auth_configs,
    catalog::{LATEST, Release},
    core::{
        clock::time_after,
        ids::{self, AccountId, AuthConfigId, OrganizationId, ProjectId},
        vault::{SealContext, Sealed, keyed_hash},
    },
    projects::{self, Project},
    work::Lease,
};

/// Collection that this file owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "flows",
    fields: &[Field::new("until", Kind::Time)],
};

/// Interval of the job that expires attempts and deletes old records.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Time within which a project must confirm its user.
const USER_VERIFICATION_TTL: Duration = Duration::from_secs(600);
/// Time for which an expired record is kept, so that its link can still report that it has expired.
const USED_LINK_TTL: Duration = Duration::from_secs(86_400);
/// Records that one run of the job reads from each collection.
const BATCH_SIZE: u64 = 200;
/// Length of a secret in characters. Each character has almost six bits.
const SECRET_CHARS: usize = 43;
/// Maximum length of a redirect address in bytes.
const MAX_URL_BYTES: usize = 2_048;
/// Maximum length of a text from a provider in characters.
const MAX_ERROR_CHARS: usize = 300;
/// Path to which providers redirect browsers.
const CALLBACK_PATH: &str = "/api/v3/toolkits/auth/callback";
/// Path of the result page, for projects that set no callback URL.
const DONE_PATH: &str = "/link/done";
/// Prefix of link tokens.
const LINK_TOKEN_PREFIX: &str = "lt_";
const SESSION_PREFIX: &str = "session_";
/// Names of account values that come from the provider, not from the user.
const PROVIDER_VALUES: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "token_type",
    "scope",
    "expires_in",
    "oauth_token",
    "oauth_token_secret",
    AUTH_URI_VALUE,
];
/// Name under which OAuth 1 clients expect the authorization address.
const AUTH_URI_VALUE: &str = "authUri";

/// One step of a connection attempt, stored under the keyed hash of its secret.
#[derive(Debug, Serialize, Deserialize)]
struct ConnectionAttempt {
    #[serde(rename = "stage")]
    step: Step,
    account: AccountId,
    /// Number of the account's attempt. If the account has another number, this record is void.
    #[serde(rename = "attempt")]
    attempt_number: u32,
    /// Organization of the project, for requests that carry no key.

    #[serde(rename = "organisation")]
    organization: OrganizationId,
    #[serde(default)]
    callback_url: Option<String>,
    /// Keyed hash of the browser's cookie, if the attempt started on the page.
    #[serde(default)]
    browser: Option<String>,
    until: Time,
    #[serde(rename = "held")]
    secrets: Sealed<PendingSecrets>,
}

impl Document for ConnectionAttempt {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Step of a connection attempt, which is also the kind of its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    /// The page is open to the user; the secret is the link token.
    #[serde(rename = "link")]
    Link,
    /// The user is at the provider; the secret is the `state`.
    #[serde(rename = "away")]
    Authorize,
    /// The project must confirm its user; the secret is the session.
    #[serde(rename = "vouching")]
    Verify,
}

impl Step {
    /// Returns the text that is hashed with a secret. Record ids depend on it, so it never changes.
    fn hash_prefix(self) -> &'static str {
        match self {
            Self::Link => "Link",
            Self::Authorize => "Away",
            Self::Verify => "Vouching",
        }
    }
}

/// Secrets of a connection attempt.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PendingSecrets {
    /// Values of the account.
    values: Values,
    /// PKCE code verifier, which proves that the code exchange comes from the sender of the
    /// authorization request (RFC 7636).
    verifier: String,
    /// Redirect URI, as it was sent in the authorization request.
    redirect_uri: String,
    /// Lifetime of the token in seconds, once there is a token.
    lifetime: Option<u64>,
}

/// Request to connect an account on the page.
#[derive(Debug)]
pub struct NewLink {
    /// Auth config of the account.
    pub auth_config: AuthConfigId,
    /// The project's own identifier for the user.
    pub user_id: String,
    /// Address to which the browser is redirected at the end.
    pub callback_url: Option<String>,
    /// Values of fields that are known already.
    pub values: Values,
    /// Name that the user gives to the account.
    pub alias: Option<String>,
    /// Users who may also use the account; none by default.
    pub sharing: SharingChange,
}

/// A created link.
#[derive(Debug)]
pub struct LinkCreated {
    /// Link token.
    pub token: String,
    /// Address of the page.
    pub url: String,
    /// Time at which the link expires.
    pub expires_at: Time,
    /// Id of the pending account.
    pub account: AccountId,
    /// Users who may use the account.
    pub sharing: Sharing,
}

/// Content of the page.
#[derive(Debug)]
pub enum LinkPage {
    /// The form.
    Form(Form),
    /// The link has expired.
    Expired(Brand),
    /// The link has been used, or a newer link has replaced it.
    Used(Brand),
}

/// Names that the page shows.
#[derive(Debug, Clone)]
pub struct Brand {
    /// Display name of the project.
    pub project: String,
    /// Display name of the toolkit.
    pub toolkit: String,
    /// Address to which the page links back.
    pub return_url: Option<String>,
}

/// Form of the page.
#[derive(Debug)]
pub struct Form {
    /// Names that the page shows.
    pub brand: Brand,
    /// Fields, in order.
    pub fields: Vec<FormField>,
    /// Problem that concerns the form as a whole.
    pub problem: Option<String>,
    /// True if the form sends the user on to the provider.
    pub redirects: bool,
}

/// Field of the form.
#[derive(Debug)]
pub struct FormField {
    /// Field as the toolkit describes it.
    pub field: FormText,
    /// Current value; empty for a secret.
    pub value: String,
    /// Problem with the submitted value.
    pub problem: Option<String>,
}

/// Outcome of a submitted form.
#[derive(Debug)]
pub enum Submitted {
    /// The page is shown again.
    ShowPage(LinkPage),
    /// The browser is redirected to this address.
    Redirect(String),
}

/// Address to which a browser is redirected after the callback.
#[derive(Debug)]
pub struct RedirectTo(pub String);

/// Creates a pending account and the address at which its user authorizes the connection.
pub(super) async fn create(
    app: &App,
    project: &Project,
    validated: ValidatedRequest,
    callback_url: Option<String>,
) -> Result<AccountView> {
    validated.check_user_verified(project)?;
    let callback_url = callback_url
        .map(|url| check_redirect_url("connection.callback_url", url))
        .transpose()?;
    let id = AccountId::random();
    let now = app.clock.now();
    let until = time_after(now, app.accounts.settings.pending_ttl);
    let mut account = validated.new_account(Status::Initiated, Some(until), now)?;
    account.attempt_number = 1;
    let input = AuthorizationInput {
        project,
        id: &id,
        attempt_number: account.attempt_number,
        config: &validated.config,
        release: &validated.release,
        values: validated.values.clone(),
        callback_url,
        browser: None,
    };
    let AuthorizationStarted {
        name,
        attempt,
        shown,
        ..
    } = input.start_authorization(app).await?;
    let mut values = validated.values.clone();
    values.extend(shown);
    let credential = Credential::new(app.accounts.seal(&project.id, &id, &values).await?);
    let add_records = |batch: Batch| batch.insert(project.id.as_str(), &name, &attempt);
    insert(
        app,
        project,
        &validated,
        &id,
        &account,
        &credential,
        add_records,
    )
    .await?;
    get(app, project, &id).await
}

/// Creates a pending account and the address of the page on which its user connects it.
///
/// # Errors
/// Fails if the auth config is unknown or disabled, the toolkit needs no account, the project does
/// not allow its users to connect through the operator's OAuth apps, an address is invalid, or the
/// store refuses.
pub async fn link(app: &App, project: &Project, request: NewLink) -> Result<LinkCreated> {
    let callback_url = request
        .callback_url
        .map(|url| check_redirect_url("callback_url", url))
        .transpose()?;
    let mut validated = ValidatedRequest::new(
        app,
        project,
        &request.auth_config,
        Some(request.user_id),
        request.values,
    )
    .await?;
    validated.check_user_verified(project)?;
    validated.alias = parse_alias(request.alias)?;
    validated.sharing = Sharing::default().with(&request.sharing)?;
    let refused =
        |why: &str| Error::AccountRefused(format!("auth config {}: {why}", validated.config.id));
    let scheme = validated
        .scheme()
        .ok_or_else(|| refused("the toolkit needs no account"))?;
    if validated.config.body.managed && !project.stored.config.hosted_links {
        return Err(refused(
            "the project does not allow connections through the operator's OAuth app on the hosted page",
        ));
    }
    let values = scheme::normalize_names(scheme, validated.values.clone());
    let complete = scheme::complete(scheme, values.clone()).is_ok();
    let id = AccountId::random();
    let now = app.clock.now();
    let until = time_after(now, app.accounts.settings.pending_ttl);
    let status = if complete {
        Status::Initiated
    } else {
        Status::Initializing
    };
    let mut account = validated.new_account(status, Some(until), now)?;
    account.attempt_number = 1;
    let token = secret(LINK_TOKEN_PREFIX);
    let name = app.attempt_record_id(Step::Link, &token);
    let attempt = ConnectionAttempt {
        step: Step::Link,
        account: id.clone(),
        attempt_number: account.attempt_number,
        organization: project.organization.clone(),
        callback_url,
        browser: None,
        until,
        secrets: app
            .seal_secrets(project, &name, &PendingSecrets::default())
            .await?,
    };
    let credential = Credential::new(app.accounts.seal(&project.id, &id, &values).await?);
    let add_records = |batch: Batch| batch.insert(project.id.as_str(), &name, &attempt);
    insert(
        app,
        project,
        &validated,
        &id,
        &account,
        &credential,
        add_records,
    )
    .await?;
    let url = format!("{}/link/{token}", app.base_url());
    Ok(LinkCreated {
        token,
        url,
        expires_at: until,
        account: id,
        sharing: validated.sharing,
    })
}

/// A new connection attempt for an account.
#[derive(Debug)]
pub struct Reconnection {
    /// Status of the account.
    pub status: Status,
    /// Authorization address; absent if the scheme has no redirect.
    pub redirect_url: Option<String>,
}

/// Starts another connection attempt for an account. An account of a scheme without redirect stays
/// as it is.
///
/// # Errors
/// Fails if the account does not exist, fields are missing, its auth config is deleted or disabled,
/// or the store refuses.
pub async fn reconnect(
    app: &App,
    project: &Project,
    id: &AccountId,
    callback_url: Option<String>,
) -> Result<Reconnection> {
    let callback_url = callback_url
        .map(|url| check_redirect_url("redirect_url", url))
        .transpose()?;
    let begun = app.store.change(&ACCOUNTS, id.as_str(), || async {
        let mut account = record(app, project, id).await?;
        if !account.body.scheme.redirects() {
            let unchanged = Reconnection {
                status: account.body.status,
                redirect_url: None,
            };
            return Ok((Batch::at(app.clock.now()), unchanged));
        }
        let config = auth_configs::find(app, project, &account.body.auth_config).await?;
        let config = config.filter(|config| config.body.status == auth_configs::Status::Enabled);
        let config = config.ok_or_else(|| {
            Error::AccountRefused(format!(
                "the auth config of account {id} is deleted or disabled"
            ))
        })?;
        let release = app.catalog.release(&account.body.toolkit, LATEST)?;
        let (old, credential) = open_credential(app, project, &account).await?;
        let mut values = user_values(account.body.scheme, &old);
        if let Some(scheme) = release.scheme(account.body.scheme) {
            values = scheme::complete(scheme, values).map_err(Error::AccountFields)?;
        }
        let now = app.clock.now();
        let status = account.body.status;
        let unasked =
            || Error::Unavailable("the account is being changed by another request".into());
        let status = status
            .after(Event::ReconnectRequested)
            .ok_or_else(unasked)?;
        account.body.attempt_number += 1;
        let input = AuthorizationInput {
            project,
            id,
            attempt_number: account.body.attempt_number,
            config: &config,
            release: &release,
            values: values.clone(),
            callback_url: callback_url.clone(),
            browser: None,
        };
        let AuthorizationStarted {
            name,
            attempt,
            url,
            shown,
        } = input.start_authorization(app).await?;
        let mut batch = Batch::at(now)
            .check(&config)
            .insert(project.id.as_str(), &name, &attempt);
        if status == Status::Initiated {
            account.body.set_status(status, None, now);
            account.body.waits_until = Some(time_after(now, app.accounts.settings.pending_ttl));
            values.extend(shown);
            let body = Credential::new(app.accounts.seal(&project.id, id, &values).await?);
            batch = batch.update(&Record { body, ..credential });
        }
        let started = Reconnection {
            status,
            redirect_url: Some(url),
        };
        Ok((batch.update(&account), started))
    });
    Ok(begun.await?)
}

/// Returns the content of the page of a link. Changes nothing.
///
/// # Errors
/// Fails with [`Error::AttemptUnknown`] if the link does not exist, or if the store does not
/// answer.
pub async fn open_link(app: &App, token: &str) -> Result<LinkPage> {
    Ok(match load_link(app, token).await? {
        LinkState::Closed(page) => page,
        LinkState::Open(session) => LinkPage::Form(session.form(&[], &Values::new())),
    })
}

/// Handles a submitted form: stores a key, or redirects the browser to the provider. `browser` is
/// the value of the cookie that the page has set.
///
/// # Errors
/// Fails with [`Error::AttemptUnknown`] if the link does not exist, or if the store or the provider
/// does not answer.
pub async fn submit(app: &App, token: &str, submitted: Values, browser: &str) -> Result<Submitted> {
    let session = match load_link(app, token).await? {
        LinkState::Closed(page) => return Ok(Submitted::ShowPage(page)),
        LinkState::Open(session) => session,
    };
    let project = &session.project;
    let id = &session.attempt.body.account;
    let scheme = &session.scheme()?.clone();
    let declared = |name: &str| scheme.fields.iter().any(|field| field.name == name);
    let mut values = session.values.clone();
    values.extend(
        submitted
            .iter()
            .filter(|(name, _)| declared(name))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    // A secret field that is left empty keeps its stored value.
    for field in scheme.fields.iter().filter(|field| field.secret) {
        if let Some(old) = session.values.get(&field.name)
            && submitted
                .get(&field.name)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        {
            values.insert(field.name.clone(), old.clone());
        }
    }
    let complete = match scheme::complete(scheme, values) {
        Ok(complete) => complete,
        Err(problems) => {
            return Ok(Submitted::ShowPage(LinkPage::Form(
                session.form(&problems, &submitted),
            )));
        }
    };
    let account = &session.account;
    if account.body.scheme.redirects() {
        let input = AuthorizationInput {
            project,
            id,
            attempt_number: account.body.attempt_number,
            config: &session.config,
            release: &session.release,
            values: complete.clone(),
            callback_url: session.attempt.body.callback_url.clone(),
            browser: Some(app.browser_hash(browser)),
        };
        let AuthorizationStarted {
            name, attempt, url, ..
        } = input.start_authorization(app).await?;
        let with_attempt = |batch: Batch| batch.insert(project.id.as_str(), &name, &attempt);
        let send = |account: &mut Account, now| {
            account.status = account
                .status
                .after(Event::Redirected)
                .ok_or(Error::AttemptUnknown)?;
            account.changed_at = now;
            Ok(())
        };
        let credential = || async {
            Ok(Credential::new(
                app.accounts.seal(&project.id, id, &complete).await?,
            ))
        };
        return session
            .change(app, with_attempt, send, credential)
            .await
            .map(|()| Submitted::Redirect(url));
    }
    let (values, lifetime) = match session.obtain_and_verify(app, scheme, complete).await {
        Ok(verified) => verified,
        Err(Error::CredentialRejected(why) | Error::Unavailable(why)) => {
            let mut form = session.form(&[], &submitted);
            form.problem = Some(why);
            return Ok(Submitted::ShowPage(LinkPage::Form(form)));
        }
        Err(cause) => return Err(cause),
    };
    let fill = |account: &mut Account, now| {
        let status = account
            .status
            .after(Event::Filled)
            .ok_or(Error::AttemptUnknown)?;
        account.set_status(status, None, now);
        account.attempt_number += 1;
        Ok(())
    };
    let credential = || {
        app.accounts
            .build_credential(&project.id, id, Some(scheme), &values, lifetime)
    };
    session.change(app, |batch| batch, fill, credential).await?;
    Ok(Submitted::Redirect(app.return_url(
        session.attempt.body.callback_url.as_deref(),
        id,
        Ok(()),
    )))
}

/// Handles the callback of a provider. `browser` is the value of the cookie that the page has set.
///
/// # Errors
/// Fails with [`Error::AttemptUnknown`] if the `state` belongs to no attempt that this browser may
/// complete now. In that case nothing was sent and nothing has changed.
pub async fn callback(
    app: &App,
    query: &[(String, String)],
    browser: Option<&str>,
) -> Result<RedirectTo> {
    let state = single_parameter(query, "state").ok_or(Error::AttemptUnknown)?;
    let name = app.attempt_record_id(Step::Authorize, state);
    let attempt = app
        .store
        .lookup::<ConnectionAttempt>(&name)
        .await?
        .ok_or(Error::AttemptUnknown)?;
    let now = app.clock.now();
    let same_browser =
        attempt.body.browser.as_ref().is_none_or(|expected| {
            browser.is_some_and(|cookie| app.browser_hash(cookie) == *expected)
        });
    if attempt.body.step != Step::Authorize || attempt.body.until <= now || !same_browser {
        return Err(Error::AttemptUnknown);
    }
    let project = app.attempt_project(&attempt).await?;
    let id = attempt.body.account.clone();
    let account = record(app, &project, &id).await.map_err(link_gone)?;
    if account.body.attempt_number != attempt.body.attempt_number {
        return Err(Error::AttemptUnknown);
    }
    let owner =
        TokenOwner::for_account(app, &project, &account).map_err(|_| Error::AttemptUnknown)?;
    // The state is spent from here on: a second callback finds no record.
    match app.store.commit(Batch::at(now).purge(&attempt)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(Error::AttemptUnknown),
        Err(cause) => return Err(cause.into()),
    }
    let secrets = app.open_secrets(&project, &attempt).await?;
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
        let session = secret(SESSION_PREFIX);
        let name = app.attempt_record_id(Step::Verify, &session);
        let lifetime = lifetime.map(|lifetime| lifetime.as_secs());
        let secrets = PendingSecrets {
            values: values.clone(),
            lifetime,
            ..PendingSecrets::default()
        };
        let secrets = app.seal_secrets(&project, &name, &secrets).await?;
        let ConnectionAttempt {
            account,
            attempt_number,
            organization,
            callback_url,
            ..
        } = attempt.body;
        let until = time_after(now, USER_VERIFICATION_TTL);
        let verification = ConnectionAttempt {
            step: Step::Verify,
            account,
            attempt_number,
            organization,
            callback_url,
            browser: None,
            until,
            secrets,
        };
        // The tokens are kept only for an account that still waits for them.
        let stored = app.store.change(&ACCOUNTS, id.as_str(), || async {
            let found = record(app, &project, &id).await.map_err(link_gone)?;
            if found.body.attempt_number != verification.attempt_number {
                return Err(Error::AttemptUnknown);
            }
            Ok((
                Batch::at(now)
                    .check(&found)
                    .insert(project.id.as_str(), &name, &verification),
                (),
            ))
        });
        return match stored.await.map_err(Error::from) {
            Ok(()) => with_query(verifier, &[("session_uri", &session)]).map(RedirectTo),
            Err(Error::AttemptUnknown) => {
                app.accounts.revoke_best_effort(&owner, &values).await;
                Ok(RedirectTo(app.return_url(
                    verification.callback_url.as_deref(),
                    &id,
                    Err("superseded".to_owned()),
                )))
            }
            Err(cause) => Err(cause),
        };
    }
    match activate(app, &project, &owner, attempt_number, &values, lifetime).await {
        Ok(()) => Ok(redirect(Ok(()))),
        Err(Error::AttemptUnknown) => Ok(redirect(Err("superseded".to_owned()))),
        Err(cause) => Err(cause),
    }
}

/// An account whose connection attempt is complete.
#[derive(Debug)]
pub struct Completion {
    /// Id of the account.
    pub account: AccountId,
    /// Slug of its toolkit.
    pub toolkit: String,
}

/// Completes an attempt with the project's confirmation that the user who authorized it is the user
/// it knows. The account becomes active.
///
/// # Errors
/// Fails with [`Error::SessionNotFound`] if the session does not exist or has ended, and with
/// [`Error::AccountRefused`] if the session belongs to another user. In the latter case the account
/// fails.
pub async fn complete(
    app: &App,
    project: &Project,
    session: &str,
    user: &str,
) -> Result<Completion> {
    let name = app.attempt_record_id(Step::Verify, session);
    let found = app
        .store
        .get::<ConnectionAttempt>(project.id.as_str(), &name)
        .await?;
    let now = app.clock.now();
    let attempt =
        found.filter(|attempt| attempt.body.step == Step::Verify && attempt.body.until > now);
    let attempt = attempt.ok_or(Error::SessionNotFound)?;
    match app.store.commit(Batch::at(now).purge(&attempt)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(Error::SessionNotFound),
        Err(cause) => return Err(cause.into()),
    }
    let secrets = app.open_secrets(project, &attempt).await?;
    let id = attempt.body.account;
    let attempt_number = attempt.body.attempt_number;
    let account = record(app, project, &id)
        .await
        .map_err(|_| Error::SessionNotFound)?;
    let owner = TokenOwner::for_account(app, project, &account)?;
    if account.body.user_id != user.trim() {
        let description =
            "the user who authorized the connection is not the user of the account".to_owned();
        fail_attempt(
            app,
            project,
            &id,
            attempt_number,
            &Failure {
                error: "user_mismatch".into(),
                description,
            },
        )
        .await?;
        app.accounts
            .revoke_best_effort(&owner, &secrets.values)
            .await;
        return Err(Error::AccountRefused(format!(
            "account {id} belongs to another user: its connection attempt has failed"
        )));
    }
    let lifetime = secrets.lifetime.map(Duration::from_secs);
    match activate(
        app,
        project,
        &owner,
        attempt_number,
        &secrets.values,
        lifetime,
    )
    .await
    {
        Ok(()) => Ok(Completion {
            account: id,
            toolkit: account.body.toolkit,
        }),
        Err(Error::AttemptUnknown) => Err(Error::SessionNotFound),
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
    let failure = |error: &str, description: String| Failure {
        error: error.to_owned(),
        description,
    };
    let scheme = owner
        .scheme()
        .map_err(|cause| failure("toolkit_gone", cause.to_string()))?;
    let config = auth_configs::find(app, project, &owner.auth_config).await;
    let config = config.ok().flatten();
    let config =
        config.ok_or_else(|| failure("auth_config_gone", "the auth config is deleted".into()))?;
    let context = app.accounts.client_context(&project.id, &config).await;
    let ClientContext { net, client, .. } =
        context.map_err(|cause| failure("auth_config_unusable", cause.to_string()))?;
    let oauth_flow = Flow {
        net: &net,
        now_ms: app.clock.now().0,
        scheme,
        client: &client,
        values: &secrets.values,
    };
    let scheme = app.accounts.metadata.resolve(&oauth_flow).await;
    let scheme =
        &scheme.map_err(|refusal| failure("issuer_unknown", truncate(&refusal.to_string())))?;
    // Checked before the rest of the callback, including an error, is read (RFC 9207, section 2.4).
    check_issuer(scheme, query).map_err(|why| failure("issuer_mismatch", why))?;
    // The OAuth 1 specification defines no error response. These are the forms that providers use.
    if let Some(error) = query
        .iter()
        .find(|(name, _)| ["error", "oauth_problem"].contains(&name.as_str()))
    {
        let description = single_parameter(query, "error_description")
            .map(truncate)
            .unwrap_or_default();
        return Err(Failure {
            error: truncate(&error.1),
            description,
        });
    }
    let named = match &scheme.oauth1 {
        Some(_) => "oauth_verifier",
        None => scheme.oauth2.as_ref().map_or("code", OAuth2::code_param),
    };
    if scheme.oauth1.is_some() && query.iter().any(|(name, _)| name == "denied") {
        return Err(failure("access_denied", String::new()));
    }
    let code = single_parameter(query, named).filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| {
        failure(
            "invalid_response",
            "the callback contains no authorization code".into(),
        )
    })?;
    let verifier = Some(secrets.verifier.as_str());
    let code = ExchangeParams {
        code,
        redirect_uri: &secrets.redirect_uri,
        verifier,
        callback: query,
    };
    let exchanged = Flow {
        scheme,
        ..oauth_flow
    }
    .exchange(code)
    .await;
    if exchanged.as_ref().is_err_and(Refusal::is_invalid_client)
        && let Err(cause) = app
            .accounts
            .delete_rejected_client(&project.id, &owner.auth_config, &secrets.values)
            .await
    {
        tracing::warn!(account = %owner.account, %cause, "a client that the provider does not know was not deleted");
    }
    exchanged.map_err(|refusal| failure("token_exchange_failed", truncate(&refusal.to_string())))
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
    let known_issuer = oauth2.and_then(|oauth2| oauth2.issuer.as_ref());
    match named[..] {
        [] if oauth2.is_some_and(|oauth2| oauth2.names_issuer) => {
            Err("the callback does not name its issuer".into())
        }
        [] => Ok(()),
        [(_, issuer)] if known_issuer.is_some_and(|known| known == issuer) => Ok(()),
        [(_, issuer)] if known_issuer.is_none() => {
            let mut endpoints = oauth2
                .iter()
                .flat_map(|oauth2| [origin(&oauth2.authorize_url), origin(&oauth2.token_url)])
                .flatten();
            let issuer = origin(issuer).filter(url::Origin::is_tuple);
            match issuer {
                Some(issuer) if endpoints.any(|endpoint| endpoint == issuer) => Ok(()),
                _ => Err("the callback names another issuer".into()),
            }
        }
        [_] => Err("the callback names another issuer".into()),
        _ => Err("the callback names several issuers".into()),
    }
}

/// Activates an account with its tokens. Revokes the tokens if the attempt has ended meanwhile.
async fn activate(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    attempt_number: u32,
    values: &Values,
    lifetime: Option<Duration>,
) -> Result<()> {
    let activated = app
        .store
        .change(&ACCOUNTS, owner.account.as_str(), || async {
            let found = record(app, project, &owner.account)
                .await
                .ok()
                .filter(|account| account.body.attempt_number == attempt_number);
            let status = found
                .as_ref()
                .and_then(|account| account.body.status.after(Event::Authorized));
            let (Some(mut account), Some(status)) = (found, status) else {
                app.accounts.revoke_best_effort(owner, values).await;
                return Err(Error::AttemptUnknown);
            };
            let now = app.clock.now();
            account.body.set_status(status, None, now);
            account.body.attempt_number += 1;
            let (_, credential) = open_credential(app, project, &account).await?;
            let body = app
                .accounts
                .build_credential(
                    &project.id,
                    &owner.account,
                    Some(owner.scheme()?),
                    values,
                    lifetime,
                )
                .await?;
            Ok((
                Batch::at(now)
                    .update(&account)
                    .update(&Record { body, ..credential }),
                (),
            ))
        });
    Ok(activated.await?)
}

/// Ends a failed attempt.
async fn fail_attempt(
    app: &App,
    project: &Project,
    id: &AccountId,
    attempt_number: u32,
    failure: &Failure,
) -> Result<()> {
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<()> {
        if account.attempt_number == attempt_number
            && let Some(status) = account.status.after(Event::AttemptFailed)
        {
            account.attempt_number += 1;
            if status == Status::Failed {
                account.set_status(status, Some(&failure.error), now);
                account.failure = Some(failure.clone());
            }
        }
        Ok(())
    };
    app.store
        .edit(project.id.as_str(), id.as_str(), now, change)
        .await
        .map_err(Error::from)
        .map(|_| ())
}

/// Expires accounts whose user did not return in time, and deletes old records.
pub(crate) async fn sweep(app: &App, lease: &Lease) -> Result<()> {
    let now = app.clock.now();
    let waiting = Query::all_projects()
        .below("waits_until", now.0.saturating_add(1))
        .page(0, BATCH_SIZE);
    for mut account in app.store.find::<Account>(&waiting).await?.records {
        match account.body.status.after(Event::TimedOut) {
            Some(status) => account.body.set_status(status, Some(TIMED_OUT_REASON), now),
            None => account.body.waits_until = None,
        }
        commit(app, lease.fence(Batch::at(now).update(&account))).await?;
    }
    let delete_before = now
        .0
        .saturating_sub(i64::try_from(USED_LINK_TTL.as_millis()).unwrap_or(i64::MAX));
    for attempt in app
        .store
        .find::<ConnectionAttempt>(
            &Query::all_projects()
                .below("until", delete_before)
                .page(0, BATCH_SIZE),
        )
        .await?
        .records
    {
        commit(app, lease.fence(Batch::at(now).purge(&attempt))).await?;
    }
    Ok(())
}

async fn commit(app: &App, batch: Batch) -> Result<()> {
    match app.store.commit(batch).await {
        // Another writer has changed the record meanwhile; the next run reads it again.
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// Input of an authorization request.
struct AuthorizationInput<'a> {
    project: &'a Project,
    id: &'a AccountId,
    attempt_number: u32,
    config: &'a Record<auth_configs::AuthConfig>,
    release: &'a Release,
    values: Values,
    callback_url: Option<String>,
    browser: Option<String>,
}

impl AuthorizationInput<'_> {
    /// Creates the state and the authorization address.
    async fn start_authorization(self, app: &App) -> Result<AuthorizationStarted> {
        let mode = self.config.body.scheme;
        let scheme = self
            .release
            .scheme(mode)
            .ok_or_else(|| Error::SchemeNotOffered {
                toolkit: self.release.slug.to_string(),
                scheme: mode.as_str().to_owned(),
            })?;
        let ClientContext {
            net,
            client,
            mut scopes,
            user_scopes,
            redirect_uri,
        } = app
            .accounts
            .client_context(&self.project.id, self.config)
            .await?;
        for tool in self
            .config
            .body
            .tools_for_connection
            .iter()
            .filter_map(|slug| self.release.tool(slug))
        {
            scopes.extend(tool.scopes.iter().cloned());
        }
        let redirect_uri = redirect_uri.unwrap_or_else(|| callback_url(app));
        let state = secret("");
        let verifier = secret("");
        let now = app.clock.now();
        let mut values = self.values.clone();
        let oauth_flow = Flow {
            net: &net,
            now_ms: now.0,
            scheme,
            client: &client,
            values: &self.values,
        };
        let scheme = app
            .accounts
            .metadata
            .resolve(&oauth_flow)
            .await
            .map_err(Error::from)?;
        match mode {
            AuthMode::DcrOauth if client.id.is_empty() => {
                let registration = RegistrationRequest {
                    project: self.project.id.clone(),
                    auth_config: AuthConfigId::parse(&self.config.id)?,
                    scheme: scheme.clone().into_owned(),
                    net: net.clone(),
                    values: self.values.clone(),
                    redirect_uri: redirect_uri.clone(),
                    name: self.project.shown_name().to_owned(),
                };
                values.extend(app.accounts.dynamic_client(registration).await?);
            }
            AuthMode::CimdOauth if client.id.is_empty() => {
                values.insert(
                    "client_id".to_owned(),
                    client_metadata_url(app, &self.config.id)?.into(),
                );
            }
            _ => {}
        }
        let oauth_flow = Flow {
            net: &net,
            now_ms: now.0,
            scheme: &scheme,
            client: &client,
            values: &values,
        };
        let params = AuthorizeParams {
            redirect_uri: &redirect_uri,
            state: &state,
            verifier: Some(&verifier),
            scopes: &scopes,
            user_scopes: &user_scopes,
        };
        let (url, temporary): (Url, Values) = match &scheme.oauth1 {
            Some(_) => oauth_flow
                .authorize_oauth1(&redirect_uri, &state)
                .await
                .map_err(Error::from)?,
            None => (
                oauth_flow.authorize(params).map_err(Error::from)?,
                Values::new(),
            ),
        };
        let name = app.attempt_record_id(Step::Authorize, &state);
        values.extend(temporary.clone());
        let mut shown = temporary;
        if !shown.is_empty() {
            shown.insert(AUTH_URI_VALUE.to_owned(), url.as_str().into());
        }
        shown.insert(REDIRECT_URL_VALUE.to_owned(), url.as_str().into());
        let secrets = PendingSecrets {
            values,
            verifier,
            redirect_uri,
            lifetime: None,
        };
        let attempt = ConnectionAttempt {
            step: Step::Authorize,
            account: self.id.clone(),
            attempt_number: self.attempt_number,
            organization: self.project.organization.clone(),
            callback_url: self.callback_url,
            browser: self.browser,
            until: time_after(now, app.accounts.settings.authorization_ttl),
            secrets: app.seal_secrets(self.project, &name, &secrets).await?,
        };
        Ok(AuthorizationStarted {
            name,
            attempt,
            url: url.into(),
            shown,
        })
    }
}

/// A started authorization.
struct AuthorizationStarted {
    /// Name of the record of the state.
    name: String,
    attempt: ConnectionAttempt,
    /// Address at which the user authorizes the connection.
    url: String,
    /// Values that the account shows while it waits for its user.
    shown: Values,
}

/// Result of opening a link.
enum LinkState {
    Open(Box<LinkSession>),
    Closed(LinkPage),
}

/// A valid link with the records that belong to it.
struct LinkSession {
    attempt: Record<ConnectionAttempt>,
    project: Project,
    account: Record<Account>,
    config: Record<auth_configs::AuthConfig>,
    release: std::sync::Arc<Release>,
    values: Values,
    brand: Brand,
}

async fn load_link(app: &App, token: &str) -> Result<LinkState> {
    let attempt = app
        .store
        .lookup::<ConnectionAttempt>(&app.attempt_record_id(Step::Link, token))
        .await?;
    let attempt = attempt
        .filter(|attempt| attempt.body.step == Step::Link)
        .ok_or(Error::AttemptUnknown)?;
    let project = app.attempt_project(&attempt).await?;
    let account = record(app, &project, &attempt.body.account)
        .await
        .map_err(link_gone)?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let brand = Brand {
        project: project.shown_name().to_owned(),
        toolkit: release.name.clone(),
        return_url: attempt.body.callback_url.clone(),
    };
    if account.body.attempt_number != attempt.body.attempt_number {
        return Ok(LinkState::Closed(LinkPage::Used(brand)));
    }
    let config = auth_configs::find(app, &project, &account.body.auth_config).await?;
    let config = config.filter(|config| config.body.status == auth_configs::Status::Enabled);
    let (true, Some(config)) = (attempt.body.until > app.clock.now(), config) else {
        return Ok(LinkState::Closed(LinkPage::Expired(brand)));
    };
    let (values, _) = open_credential(app, &project, &account).await?;
    Ok(LinkState::Open(Box::new(LinkSession {
        attempt,
        project,
        account,
        config,
        release,
        values,
        brand,
    })))
}

impl LinkSession {
    fn scheme(&self) -> Result<&AuthScheme> {
        self.release
            .scheme(self.account.body.scheme)
            .ok_or(Error::AttemptUnknown)
    }

    /// Changes the account and replaces its credential, if the link still belongs to the account's
    /// attempt and the auth config still allows new connections.
    async fn change<F: Future<Output = Result<Credential>>>(
        &self,
        app: &App,
        add_records: impl Fn(Batch) -> Batch,
        change: impl Fn(&mut Account, Time) -> Result<()>,
        credential: impl Fn() -> F,
    ) -> Result<()> {
        let project = &self.project;
        let id = &self.attempt.body.account;
        let changed = app.store.change(&ACCOUNTS, id.as_str(), || async {
            let now = app.clock.now();
            let config = enabled_config(app, project, &self.account.body.auth_config).await?;
            let mut account = record(app, project, id).await.map_err(link_gone)?;
            if account.body.attempt_number != self.attempt.body.attempt_number {
                return Err(Error::AttemptUnknown);
            }
            let (_, old) = open_credential(app, project, &account).await?;
            change(&mut account.body, now)?;
            let body = credential().await?;
            let batch = Batch::at(now)
                .check(&config)
                .update(&account)
                .update(&Record { body, ..old });
            Ok((add_records(batch), ()))
        });
        Ok(changed.await?)
    }

    /// Returns the values to store for the account and the lifetime of their token. The provider
    /// has accepted the values, if the toolkit has a request to check them.
    async fn obtain_and_verify(
        &self,
        app: &App,
        scheme: &AuthScheme,
        mut values: Values,
    ) -> Result<(Values, Option<Duration>)> {
        let mut lifetime = None;
        if obtains_from_fields(scheme.mode) {
            (values, lifetime) = app
                .accounts
                .obtain(&self.project.id, &self.config, scheme, values)
                .await?;
        }
        if scheme.verify.is_some() {
            let (config, release) = (&self.config, &self.release);
            let values = values.clone();
            verify_values(app, &self.project, config, release, scheme.mode, values).await?;
        }
        Ok((values, lifetime))
    }

    /// Builds the form with the submitted values and their problems. Each problem is one line that
    /// begins with the name of its field.
    fn form(&self, problems: &[String], submitted: &Values) -> Form {
        let text = |values: &Values, name: &str| values.get(name).and_then(scheme::text);
        let fields = self
            .scheme()
            .map_or(&[][..], |scheme| &scheme.fields)
            .iter();
        // A secret that is already known is neither shown nor asked for again.
        let fields = fields.filter(|field| !field.hidden);
        let open_fields =
            fields.filter(|field| !field.secret || text(&self.values, &field.name).is_none());
        let fields = open_fields.map(|field| {
            let value = text(submitted, &field.name).or_else(|| text(&self.values, &field.name));
            let line = problems
                .iter()
                .find_map(|line| line.strip_prefix(&field.name)?.strip_prefix(": "));
            FormField {
                field: field.clone(),
                value: value
                    .or_else(|| field.default.clone())
                    .filter(|_| !field.secret)
                    .unwrap_or_default(),
                problem: line.map(str::to_owned),
            }
        });
        let redirects = self.account.body.scheme.redirects();
        Form {
            brand: self.brand.clone(),
            fields: fields.collect(),
            problem: None,
            redirects,
        }
    }
}

impl App {
    /// Returns the name under which the record of a secret is stored.
    fn attempt_record_id(&self, step: Step, secret: &str) -> String {
        let key = self.vault.derive("flows");
        hex::encode(keyed_hash(
            &key,
            format!("{} {secret}", step.hash_prefix()).as_bytes(),
        ))
    }

    fn browser_hash(&self, browser: &str) -> String {
        hex::encode(keyed_hash(
            &self.vault.derive("browsers"),
            browser.as_bytes(),
        ))
    }

    /// Returns the CSRF token of a link's form, so that no other page can submit the form.
    #[must_use]
    pub fn form_token(&self, token: &str, browser: &str) -> String {
        hex::encode(keyed_hash(
            &self.vault.derive("forms"),
            format!("{} {token} {browser}", token.len()).as_bytes(),
        ))
    }

    async fn attempt_project(&self, attempt: &Record<ConnectionAttempt>) -> Result<Project> {
        let id = ProjectId::parse(&attempt.project)?;
        projects::get(self, &attempt.body.organization, &id)
            .await
            .map_err(|cause| match cause {
                Error::ProjectNotFound(_) => Error::AttemptUnknown,
                other => other,
            })
    }

    async fn seal_secrets(
        &self,
        project: &Project,
        name: &str,
        secrets: &PendingSecrets,
    ) -> Result<Sealed<PendingSecrets>> {
        self.vault
            .key(project.id.as_str(), self.clock.now())
            .await?
            .seal(seal_context(project, name), secrets)
    }

    async fn open_secrets(
        &self,
        project: &Project,
        attempt: &Record<ConnectionAttempt>,
    ) -> Result<PendingSecrets> {
        let key = self
            .vault
            .key(project.id.as_str(), self.clock.now())
            .await?;
        key.open(seal_context(project, &attempt.id), &attempt.body.secrets)
    }

    /// Returns the final address for a browser: the project's callback URL with its own query, or a
    /// page of this server.
    fn return_url(
        &self,
        callback_url: Option<&str>,
        id: &AccountId,
        outcome: std::result::Result<(), String>,
    ) -> String {
        let status = if outcome.is_ok() { "success" } else { "failed" };
        let mut query = vec![("status", status)];
        let error = outcome.err().unwrap_or_default();
        let url = callback_url.and_then(|url| {
            query.push(("connected_account_id", id.as_str()));
            if !error.is_empty() {
                query.push(("error", &error));
            }
            with_query(url, &query).ok()
        });
        url.unwrap_or_else(|| format!("{}{DONE_PATH}?status={status}", self.base_url()))
    }
}

fn seal_context<'a>(project: &'a Project, name: &'a str) -> SealContext<'a> {
    SealContext {
        collection: COLLECTION.name,
        project: project.id.as_str(),
        id: name,
        field: "held",
    }
}

fn secret(prefix: &str) -> String {
    format!("{prefix}{}", ids::random_text(SECRET_CHARS))
}

fn link_gone(cause: Error) -> Error {
    match cause {
        Error::AccountNotFound(_) => Error::AttemptUnknown,
        other => other,
    }
}

/// Returns the address to which providers redirect browsers, unless an auth config sets another
/// one.
pub(super) fn callback_url(app: &App) -> String {
    format!("{}{CALLBACK_PATH}", app.base_url())
}

impl From<Refusal> for Error {
    /// Converts the refusal of an authorization request or a client registration.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unavailable { .. } => Self::Unavailable(refusal.to_string()),
            refusal => Self::AccountRefused(refusal.to_string()),
        }
    }
}

/// Returns the values that come from the user, without those that come from the provider.
pub(super) fn user_values(mode: AuthMode, values: &Values) -> Values {
    // If the server creates the client itself, the client's id and secret are no fields.
    let is_server_created = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
    let is_from_provider = |name: &str| {
        PROVIDER_VALUES.contains(&name)
            || name == REDIRECT_URL_VALUE
            || is_server_created && oauth_clients::ACCOUNT_VALUES.contains(&name)
    };
    values
        .iter()
        .filter(|(name, _)| !is_from_provider(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
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

/// Checks that a browser may be redirected to an address.
fn check_redirect_url(name: &str, url: String) -> Result<String> {
    let fits = url.len() <= MAX_URL_BYTES;
    let good = Url::parse(&url).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    });
    if fits && good {
        Ok(url)
    } else {
        Err(Error::invalid(format!(
            "{name}: must be an http or https URL of at most {MAX_URL_BYTES} bytes without user name and password"
        )))
    }
}

/// Appends parameters to the query of an address.
fn with_query(url: &str, parameters: &[(&str, &str)]) -> Result<String> {
    let mut url =
        Url::parse(url).map_err(|_| Error::Internal("a validated URL cannot be parsed".into()))?;
    url.query_pairs_mut().extend_pairs(parameters);
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    #[test]
    fn callback_of_another_issuer_is_refused() {
        let scheme: AuthScheme = serde_json::from_value(json!({
            "mode": "OAUTH2", "name": "n",
            "oauth2": { "authorize_url": "https://login.example.com/agree", "token_url": "https://api.example.com/token" },
        }))
        .unwrap();
        for (query, good) in [
            ("code=c", true),
            ("iss=https://login.example.com", true),
            ("iss=https://login.example.com/tenant", true),
            ("iss=https://api.example.com/", true),
            ("iss=https://login.example.com.evil.net", false),
            ("iss=http://login.example.com", false),
            ("iss=", false),
            ("iss=data:,x", false),
            ("iss=https://login.example.com&iss=https://evil.net", false),
        ] {
            assert_eq!(
                check_issuer(&scheme, &pairs(query)).is_ok(),
                good,
                "{query}"
            );
        }
    }

    #[test]
    fn known_issuer_must_match_exactly() {
        let scheme: AuthScheme = serde_json::from_value(json!({
            "mode": "OAUTH2", "name": "n",
            "oauth2": { "issuer": "https://login.example.com/a", "names_issuer": true },
        }))
        .unwrap();
        for (query, good) in [
            ("iss=https://login.example.com/a", true),
            ("iss=https://login.example.com", false),
            ("iss=https://login.example.com/a/", false),
            ("code=c", false),
            (
                "iss=https://login.example.com/a&iss=https://login.example.com/a",
                false,
            ),
        ] {
            assert_eq!(
                check_issuer(&scheme, &pairs(query)).is_ok(),
                good,
                "{query}"
            );
        }
    }

    #[test]
    fn a_parameter_that_comes_twice_is_none() {
        assert_eq!(
            single_parameter(&pairs("state=a&code=b"), "state"),
            Some("a")
        );
        assert_eq!(single_parameter(&pairs("state=a&state=a"), "state"), None);
        assert_eq!(single_parameter(&pairs("code=a"), "state"), None);
    }

    #[test]
    fn callback_url_keeps_its_query_and_is_http() {
        let url = with_query(
            "https://app.example/back?a=1&b=%20#top",
            &[("status", "failed"), ("error", "a b&c")],
        );
        assert_eq!(
            url.unwrap(),
            "https://app.example/back?a=1&b=%20&status=failed&error=a+b%26c#top"
        );
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "https://u:p@app.example/",
            "/relative",
            "//app.example",
        ] {
            assert!(
                check_redirect_url("callback_url", url.to_owned()).is_err(),
                "{url}"
            );
        }
        check_redirect_url("callback_url", "http://localhost:3000/done".to_owned()).unwrap();
    }
}
