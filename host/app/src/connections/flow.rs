//! Connection attempts: a user opens a page of this server, authorizes at the provider, and returns
//! to this server.
//!
//! An attempt uses up to three secrets, and each secret names one [`Flow`] record: the link token
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
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Time};
use url::Url;

use super::{
    Account, COLLECTION as ACCOUNTS, Event, Failure, REDIRECT_URL, Sharing, SharingChange, Shown,
    Status, TIMED_OUT, Values, Wanted, alias,
    clients::{self, Registration, described_at},
    enabled_config, get, insert, opened,
    protocol::{Away, Code, Flow as Protocol, Refusal, Tokens},
    record,
    refresh::{Credential, Standing, Whose, after, obtains},
    scheme, signing, trial,
};
use crate::{
    App, Error, Result, auth_configs,
    catalog::{LATEST, Release},
    ids::{self, AccountId, AuthConfigId, OrganizationId, ProjectId},
    jobs::Lease,
    projects::{self, Project},
    vault::{Place, Sealed, keyed_hash},
};

/// Collection that this file owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "flows",
    fields: &[Field::new("until", Kind::Time)],
};

/// Interval of the job that expires attempts and deletes old records.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Time within which a project must confirm its user.
const VOUCHING: Duration = Duration::from_secs(600);
/// Time for which an expired record is kept, so that its link can still report that it has expired.
const REMEMBERED: Duration = Duration::from_secs(86_400);
/// Records that one run of the job reads from each collection.
const AT_ONCE: u64 = 200;
/// Length of a secret in characters. Each character has almost six bits.
const SECRET: usize = 43;
/// Maximum length of a redirect address in bytes.
const URL: usize = 2_048;
/// Maximum length of a text from a provider in characters.
const SAID: usize = 300;
/// Path to which providers redirect browsers.
const CALLBACK: &str = "/api/v3/toolkits/auth/callback";
/// Path of the result page, for projects that set no callback URL.
const DONE: &str = "/link/done";
/// Prefix of link tokens.
const LINK: &str = "lt_";
const SESSION: &str = "session_";
/// Names of account values that come from the provider, not from the user.
const TOKENS: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "token_type",
    "scope",
    "expires_in",
    "oauth_token",
    "oauth_token_secret",
    AUTH_URI,
];
/// Name under which OAuth 1 clients expect the authorization address.
const AUTH_URI: &str = "authUri";

/// One step of a connection attempt, stored under the keyed hash of its secret.
#[derive(Debug, Serialize, Deserialize)]
struct Flow {
    stage: Stage,
    account: AccountId,
    /// Number of the account's attempt. If the account has another number, this record is void.
    attempt: u32,
    /// Organization of the project, for requests that carry no key.
    organization: OrganizationId,
    #[serde(default)]
    callback_url: Option<String>,
    /// Keyed hash of the browser's cookie, if the attempt started on the page.
    #[serde(default)]
    browser: Option<String>,
    until: Time,
    held: Sealed<Held>,
}

impl Document for Flow {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Step of a connection attempt, which is also the kind of its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// The page is open to the user; the secret is the link token.
    Link,
    /// The user is at the provider; the secret is the `state`.
    Away,
    /// The project must confirm its user; the secret is the session.
    Vouching,
}

/// Secrets of a connection attempt.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Held {
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
pub struct Linked {
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
    pub back: Option<String>,
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
    pub leaves: bool,
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
    Again(LinkPage),
    /// The browser is redirected to this address.
    Away(String),
}

/// Address to which a browser is redirected after the callback.
#[derive(Debug)]
pub struct Landed(pub String);

/// Creates a pending account and the address at which its user authorizes the connection.
pub(super) async fn create(
    app: &App,
    project: &Project,
    wanted: Wanted,
    callback_url: Option<String>,
) -> Result<Shown> {
    wanted.vouched(project)?;
    let callback_url = callback_url
        .map(|url| checked("connection.callback_url", url))
        .transpose()?;
    let (id, now) = (AccountId::random(), app.clock.now());
    let until = after(now, app.accounts.settings.pending);
    let mut account = wanted.account(Status::Initiated, Some(until), now)?;
    account.attempt = 1;
    let begin = Begin {
        project,
        id: &id,
        attempt: account.attempt,
        config: &wanted.config,
        release: &wanted.release,
        values: wanted.values.clone(),
        callback_url,
        browser: None,
    };
    let Sent {
        name, flow, shown, ..
    } = begin.sent(app).await?;
    let mut values = wanted.values.clone();
    values.extend(shown);
    let credential = Credential::of(app.accounts.seal(&project.id, &id, &values).await?);
    let more = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
    insert(app, project, &wanted, &id, &account, &credential, more).await?;
    get(app, project, &id).await
}

/// Creates a pending account and the address of the page on which its user connects it.
///
/// # Errors
/// Fails if the auth config is unknown or disabled, the toolkit needs no account, the project does
/// not allow its users to connect through the operator's OAuth apps, an address is invalid, or the
/// store refuses.
pub async fn link(app: &App, project: &Project, request: NewLink) -> Result<Linked> {
    let callback_url = request
        .callback_url
        .map(|url| checked("callback_url", url))
        .transpose()?;
    let mut wanted = Wanted::of(
        app,
        project,
        &request.auth_config,
        Some(request.user_id),
        request.values,
    )
    .await?;
    wanted.vouched(project)?;
    wanted.alias = alias(request.alias)?;
    wanted.sharing = Sharing::default().with(&request.sharing)?;
    let refused =
        |why: &str| Error::AccountRefused(format!("auth config {}: {why}", wanted.config.id));
    let scheme = wanted
        .scheme()
        .ok_or_else(|| refused("the toolkit needs no account"))?;
    if wanted.config.body.managed && !project.stored.config.hosted_links {
        return Err(refused(
            "the project lets nobody connect with the server's own credentials on its page",
        ));
    }
    let values = scheme::named(scheme, wanted.values.clone());
    let complete = scheme::complete(scheme, values.clone()).is_ok();
    let (id, now) = (AccountId::random(), app.clock.now());
    let until = after(now, app.accounts.settings.pending);
    let status = if complete {
        Status::Initiated
    } else {
        Status::Initializing
    };
    let mut account = wanted.account(status, Some(until), now)?;
    account.attempt = 1;
    let token = secret(LINK);
    let name = app.flow_name(Stage::Link, &token);
    let flow = Flow {
        stage: Stage::Link,
        account: id.clone(),
        attempt: account.attempt,
        organization: project.organization.clone(),
        callback_url,
        browser: None,
        until,
        held: app.seal_held(project, &name, &Held::default()).await?,
    };
    let credential = Credential::of(app.accounts.seal(&project.id, &id, &values).await?);
    let more = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
    insert(app, project, &wanted, &id, &account, &credential, more).await?;
    let url = format!("{}/link/{token}", app.base_url());
    Ok(Linked {
        token,
        url,
        expires_at: until,
        account: id,
        sharing: wanted.sharing,
    })
}

/// Starts another connection attempt for an account. Returns the account's status and the
/// authorization address. An account of a scheme without redirect stays as it is.
///
/// # Errors
/// Fails if the account does not exist, fields are missing, its auth config is deleted or disabled,
/// or the store refuses.
pub async fn again(
    app: &App,
    project: &Project,
    id: &AccountId,
    callback_url: Option<String>,
) -> Result<(Status, Option<String>)> {
    let callback_url = callback_url
        .map(|url| checked("redirect_url", url))
        .transpose()?;
    let begun = app.store.change(&ACCOUNTS, id.as_str(), || async {
        let mut account = record(app, project, id).await?;
        if !account.body.scheme.redirects() {
            return Ok((Batch::at(app.clock.now()), (account.body.status, None)));
        }
        let config = auth_configs::find(app, project, &account.body.auth_config).await?;
        let config = config.filter(|config| config.body.status == auth_configs::Status::Enabled);
        let config = config.ok_or_else(|| {
            Error::AccountRefused(format!(
                "the auth config of account {id} is deleted or disabled"
            ))
        })?;
        let release = app.catalog.release(&account.body.toolkit, LATEST)?;
        let (old, credential) = opened(app, project, &account).await?;
        let mut values = own(account.body.scheme, &old);
        if let Some(scheme) = release.scheme(account.body.scheme) {
            values = scheme::complete(scheme, values).map_err(Error::AccountFields)?;
        }
        let now = app.clock.now();
        let status = account.body.status;
        let unasked = || Error::Unavailable("the account is being changed".into());
        let status = status.after(Event::Asked).ok_or_else(unasked)?;
        account.body.attempt += 1;
        let begin = Begin {
            project,
            id,
            attempt: account.body.attempt,
            config: &config,
            release: &release,
            values: values.clone(),
            callback_url: callback_url.clone(),
            browser: None,
        };
        let Sent {
            name,
            flow,
            url,
            shown,
        } = begin.sent(app).await?;
        let mut batch = Batch::at(now)
            .check(&config)
            .insert(project.id.as_str(), &name, &flow);
        if status == Status::Initiated {
            account.body.pass_to(status, None, now);
            account.body.waits_until = Some(after(now, app.accounts.settings.pending));
            values.extend(shown);
            let body = Credential::of(app.accounts.seal(&project.id, id, &values).await?);
            batch = batch.update(&Record { body, ..credential });
        }
        Ok((batch.update(&account), (status, Some(url))))
    });
    Ok(begun.await?)
}

/// Returns the content of the page of a link. Changes nothing.
///
/// # Errors
/// Fails with [`Error::AttemptUnknown`] if the link does not exist, or if the store does not
/// answer.
pub async fn open_link(app: &App, token: &str) -> Result<LinkPage> {
    Ok(match opened_link(app, token).await? {
        Opened::Over(page) => page,
        Opened::Here(here) => LinkPage::Form(here.form(&[], &Values::new())),
    })
}

/// Handles a submitted form: stores a key, or redirects the browser to the provider. `browser` is
/// the value of the cookie that the page has set.
///
/// # Errors
/// Fails with [`Error::AttemptUnknown`] if the link does not exist, or if the store or the provider
/// does not answer.
pub async fn submit(app: &App, token: &str, given: Values, browser: &str) -> Result<Submitted> {
    let here = match opened_link(app, token).await? {
        Opened::Over(page) => return Ok(Submitted::Again(page)),
        Opened::Here(here) => here,
    };
    let (project, id) = (&here.project, &here.flow.body.account);
    let scheme = &here.scheme()?.clone();
    let declared = |name: &str| scheme.fields.iter().any(|field| field.name == name);
    let mut values = here.values.clone();
    values.extend(
        given
            .iter()
            .filter(|(name, _)| declared(name))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    // A secret field that is left empty keeps its stored value.
    for field in scheme.fields.iter().filter(|field| field.secret) {
        if let Some(old) = here.values.get(&field.name)
            && given
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
            return Ok(Submitted::Again(LinkPage::Form(
                here.form(&problems, &given),
            )));
        }
    };
    let account = &here.account;
    if account.body.scheme.redirects() {
        let begin = Begin {
            project,
            id,
            attempt: account.body.attempt,
            config: &here.config,
            release: &here.release,
            values: complete.clone(),
            callback_url: here.flow.body.callback_url.clone(),
            browser: Some(app.browser_hash(browser)),
        };
        let Sent {
            name, flow, url, ..
        } = begin.sent(app).await?;
        let with_flow = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
        let send = |account: &mut Account, now| {
            account.status = account
                .status
                .after(Event::Sent)
                .ok_or(Error::AttemptUnknown)?;
            account.changed_at = now;
            Ok(())
        };
        let credential = || async {
            Ok(Credential::of(
                app.accounts.seal(&project.id, id, &complete).await?,
            ))
        };
        return here
            .change(app, with_flow, send, credential)
            .await
            .map(|()| Submitted::Away(url));
    }
    let (values, lifetime) = match here.tried(app, scheme, complete).await {
        Ok(tried) => tried,
        Err(Error::CredentialRejected(why) | Error::Unavailable(why)) => {
            let mut form = here.form(&[], &given);
            form.problem = Some(why);
            return Ok(Submitted::Again(LinkPage::Form(form)));
        }
        Err(cause) => return Err(cause),
    };
    let fill = |account: &mut Account, now| {
        let status = account
            .status
            .after(Event::Filled)
            .ok_or(Error::AttemptUnknown)?;
        account.pass_to(status, None, now);
        account.attempt += 1;
        Ok(())
    };
    let credential = || {
        app.accounts
            .connected(&project.id, id, Some(scheme), &values, lifetime)
    };
    here.change(app, |batch| batch, fill, credential).await?;
    Ok(Submitted::Away(app.way_back(
        here.flow.body.callback_url.as_deref(),
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
) -> Result<Landed> {
    let state = only(query, "state").ok_or(Error::AttemptUnknown)?;
    let name = app.flow_name(Stage::Away, state);
    let flow = app
        .store
        .lookup::<Flow>(&name)
        .await?
        .ok_or(Error::AttemptUnknown)?;
    let now = app.clock.now();
    let here = flow
        .body
        .browser
        .as_ref()
        .is_none_or(|own| browser.is_some_and(|given| app.browser_hash(given) == *own));
    if flow.body.stage != Stage::Away || flow.body.until <= now || !here {
        return Err(Error::AttemptUnknown);
    }
    let project = app.project_of(&flow).await?;
    let id = flow.body.account.clone();
    let account = record(app, &project, &id).await.map_err(unknown)?;
    if account.body.attempt != flow.body.attempt {
        return Err(Error::AttemptUnknown);
    }
    let whose = Whose::of(app, &project, &account).map_err(|_| Error::AttemptUnknown)?;
    // The state is spent from here on: a second callback finds no record.
    match app.store.commit(Batch::at(now).purge(&flow)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(Error::AttemptUnknown),
        Err(cause) => return Err(cause.into()),
    }
    let held = app.open_held(&project, &flow).await?;
    let back = |outcome| Landed(app.way_back(flow.body.callback_url.as_deref(), &id, outcome));
    let brought = brought(app, &project, &whose, &held, query).await;
    let (mut values, attempt) = (held.values, flow.body.attempt);
    let tokens = match brought {
        Ok(tokens) => tokens,
        Err(failure) => {
            refuse(app, &project, &id, attempt, &failure).await?;
            return Ok(back(Err(failure.error)));
        }
    };
    let lifetime = tokens.lifetime;
    values.extend(tokens.values);
    if let Some(verifier) = &project.stored.config.verifier_url {
        let session = secret(SESSION);
        let name = app.flow_name(Stage::Vouching, &session);
        let lifetime = lifetime.map(|lifetime| lifetime.as_secs());
        let held = Held {
            values: values.clone(),
            lifetime,
            ..Held::default()
        };
        let held = app.seal_held(&project, &name, &held).await?;
        let Flow {
            account,
            attempt,
            organization,
            callback_url,
            ..
        } = flow.body;
        let until = after(now, VOUCHING);
        let vouching = Flow {
            stage: Stage::Vouching,
            account,
            attempt,
            organization,
            callback_url,
            browser: None,
            until,
            held,
        };
        // The tokens are kept only for an account that still waits for them.
        let kept = app.store.change(&ACCOUNTS, id.as_str(), || async {
            let found = record(app, &project, &id).await.map_err(unknown)?;
            if found.body.attempt != vouching.attempt {
                return Err(Error::AttemptUnknown);
            }
            Ok((
                Batch::at(now)
                    .check(&found)
                    .insert(project.id.as_str(), &name, &vouching),
                (),
            ))
        });
        return match kept.await.map_err(Error::from) {
            Ok(()) => with_query(verifier, &[("session_uri", &session)]).map(Landed),
            Err(Error::AttemptUnknown) => {
                app.accounts.give_back(&whose, &values).await;
                Ok(Landed(app.way_back(
                    vouching.callback_url.as_deref(),
                    &id,
                    Err("superseded".to_owned()),
                )))
            }
            Err(cause) => Err(cause),
        };
    }
    match agree(app, &project, &whose, attempt, &values, lifetime).await {
        Ok(()) => Ok(back(Ok(()))),
        Err(Error::AttemptUnknown) => Ok(back(Err("superseded".to_owned()))),
        Err(cause) => Err(cause),
    }
}

/// Completes an attempt with the project's confirmation that the user who authorized it is the user
/// it knows. The account becomes active. Returns the account's id and its toolkit.
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
) -> Result<(AccountId, String)> {
    let name = app.flow_name(Stage::Vouching, session);
    let found = app.store.get::<Flow>(project.id.as_str(), &name).await?;
    let now = app.clock.now();
    let flow = found.filter(|flow| flow.body.stage == Stage::Vouching && flow.body.until > now);
    let flow = flow.ok_or(Error::SessionNotFound)?;
    match app.store.commit(Batch::at(now).purge(&flow)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(Error::SessionNotFound),
        Err(cause) => return Err(cause.into()),
    }
    let held = app.open_held(project, &flow).await?;
    let (id, attempt) = (flow.body.account, flow.body.attempt);
    let account = record(app, project, &id)
        .await
        .map_err(|_| Error::SessionNotFound)?;
    let whose = Whose::of(app, project, &account)?;
    if account.body.user_id != user.trim() {
        let description = "the user who agreed is not the one the project knows".to_owned();
        refuse(
            app,
            project,
            &id,
            attempt,
            &Failure {
                error: "user_mismatch".into(),
                description,
            },
        )
        .await?;
        app.accounts.give_back(&whose, &held.values).await;
        return Err(Error::AccountRefused(format!(
            "account {id} is being connected for another user; it has failed"
        )));
    }
    let lifetime = held.lifetime.map(Duration::from_secs);
    match agree(app, project, &whose, attempt, &held.values, lifetime).await {
        Ok(()) => Ok((id, account.body.toolkit)),
        Err(Error::AttemptUnknown) => Err(Error::SessionNotFound),
        Err(cause) => Err(cause),
    }
}

/// Exchanges the callback's code for tokens, or returns the reason of the failure.
async fn brought(
    app: &App,
    project: &Project,
    whose: &Whose,
    held: &Held,
    query: &[(String, String)],
) -> std::result::Result<Tokens, Failure> {
    let failure = |error: &str, description: String| Failure {
        error: error.to_owned(),
        description,
    };
    let scheme = whose
        .scheme()
        .map_err(|cause| failure("toolkit_gone", cause.to_string()))?;
    let config = auth_configs::find(app, project, &whose.auth_config).await;
    let config = config.ok().flatten();
    let config =
        config.ok_or_else(|| failure("auth_config_gone", "the auth config is deleted".into()))?;
    let standing = app.accounts.standing(&project.id, &config).await;
    let Standing { net, client, .. } =
        standing.map_err(|cause| failure("auth_config_unusable", cause.to_string()))?;
    let protocol = Protocol {
        net: &net,
        now: app.clock.now(),
        scheme,
        client: &client,
        values: &held.values,
    };
    let scheme = app.accounts.issuers.described(&protocol).await;
    let scheme =
        &scheme.map_err(|refusal| failure("issuer_unknown", said(&refusal.to_string())))?;
    // Checked before the rest of the callback, including an error, is read (RFC 9207, section 2.4).
    issued(scheme, query).map_err(|why| failure("issuer_mismatch", why))?;
    // The OAuth 1 specification defines no error response. These are the forms that providers use.
    if let Some(error) = query
        .iter()
        .find(|(name, _)| ["error", "oauth_problem"].contains(&name.as_str()))
    {
        let description = only(query, "error_description")
            .map(said)
            .unwrap_or_default();
        return Err(Failure {
            error: said(&error.1),
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
    let code = only(query, named).filter(|code| !code.is_empty());
    let code =
        code.ok_or_else(|| failure("invalid_response", "the application sent no code".into()))?;
    let verifier = Some(held.verifier.as_str());
    let code = Code {
        code,
        redirect_uri: &held.redirect_uri,
        verifier,
        callback: query,
    };
    let exchanged = Protocol { scheme, ..protocol }.exchange(code).await;
    if exchanged.as_ref().is_err_and(Refusal::is_of_client)
        && let Err(cause) = app
            .accounts
            .forget_client(&project.id, &whose.auth_config, &held.values)
            .await
    {
        tracing::warn!(account = %whose.account, %cause, "a client that its application does not know could not be forgotten");
    }
    exchanged.map_err(|refusal| failure("token_exchange_failed", said(&refusal.to_string())))
}

/// Checks that the issuer named in the callback is the provider's own (RFC 9207). Another issuer
/// means that two attempts were mixed up. If the issuer's identifier is not known, it must have the
/// origin of the authorization or token endpoint.
fn issued(scheme: &AuthScheme, query: &[(String, String)]) -> std::result::Result<(), String> {
    let named: Vec<_> = query.iter().filter(|(name, _)| name == "iss").collect();
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    let flow = scheme.oauth2.as_ref();
    let known = flow.and_then(|flow| flow.issuer.as_ref());
    match named[..] {
        [] if flow.is_some_and(|flow| flow.names_issuer) => {
            Err("the answer does not say whose it is".into())
        }
        [] => Ok(()),
        [(_, issuer)] if known.is_some_and(|known| known == issuer) => Ok(()),
        [(_, issuer)] if known.is_none() => {
            let mut own = flow
                .iter()
                .flat_map(|flow| [origin(&flow.authorize_url), origin(&flow.token_url)])
                .flatten();
            let issuer = origin(issuer).filter(url::Origin::is_tuple);
            match issuer {
                Some(issuer) if own.any(|own| own == issuer) => Ok(()),
                _ => Err("the answer is of another issuer".into()),
            }
        }
        [_] => Err("the answer is of another issuer".into()),
        _ => Err("the answer names several issuers".into()),
    }
}

/// Activates an account with its tokens. Revokes the tokens if the attempt has ended meanwhile.
async fn agree(
    app: &App,
    project: &Project,
    whose: &Whose,
    attempt: u32,
    values: &Values,
    lifetime: Option<Duration>,
) -> Result<()> {
    let agreed = app
        .store
        .change(&ACCOUNTS, whose.account.as_str(), || async {
            let found = record(app, project, &whose.account)
                .await
                .ok()
                .filter(|account| account.body.attempt == attempt);
            let status = found
                .as_ref()
                .and_then(|account| account.body.status.after(Event::Agreed));
            let (Some(mut account), Some(status)) = (found, status) else {
                app.accounts.give_back(whose, values).await;
                return Err(Error::AttemptUnknown);
            };
            let now = app.clock.now();
            account.body.pass_to(status, None, now);
            account.body.attempt += 1;
            let (_, credential) = opened(app, project, &account).await?;
            let body = app
                .accounts
                .connected(
                    &project.id,
                    &whose.account,
                    Some(whose.scheme()?),
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
    Ok(agreed.await?)
}

/// Ends a failed attempt.
async fn refuse(
    app: &App,
    project: &Project,
    id: &AccountId,
    attempt: u32,
    failure: &Failure,
) -> Result<()> {
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<()> {
        if account.attempt == attempt
            && let Some(status) = account.status.after(Event::Refused)
        {
            account.attempt += 1;
            if status == Status::Failed {
                account.pass_to(status, Some(&failure.error), now);
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
    let waiting = Query::everywhere()
        .below("waits_until", now.0.saturating_add(1))
        .page(0, AT_ONCE);
    for mut account in app.store.find::<Account>(&waiting).await?.records {
        match account.body.status.after(Event::TimedOut) {
            Some(status) => account.body.pass_to(status, Some(TIMED_OUT), now),
            None => account.body.waits_until = None,
        }
        commit(app, lease.fence(Batch::at(now).update(&account))).await?;
    }
    let gone = now
        .0
        .saturating_sub(i64::try_from(REMEMBERED.as_millis()).unwrap_or(i64::MAX));
    for flow in app
        .store
        .find::<Flow>(&Query::everywhere().below("until", gone).page(0, AT_ONCE))
        .await?
        .records
    {
        commit(app, lease.fence(Batch::at(now).purge(&flow))).await?;
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
struct Begin<'a> {
    project: &'a Project,
    id: &'a AccountId,
    attempt: u32,
    config: &'a Record<auth_configs::AuthConfig>,
    release: &'a Release,
    values: Values,
    callback_url: Option<String>,
    browser: Option<String>,
}

impl Begin<'_> {
    /// Creates the state and the authorization address.
    async fn sent(self, app: &App) -> Result<Sent> {
        let mode = self.config.body.scheme;
        let scheme = self
            .release
            .scheme(mode)
            .ok_or_else(|| Error::SchemeNotOffered {
                toolkit: self.release.slug.to_string(),
                scheme: mode.as_str().to_owned(),
            })?;
        let Standing {
            net,
            client,
            mut scopes,
            user_scopes,
            redirect_uri,
        } = app.accounts.standing(&self.project.id, self.config).await?;
        for tool in self
            .config
            .body
            .tools_for_connection
            .iter()
            .filter_map(|slug| self.release.tool(slug))
        {
            scopes.extend(tool.scopes.iter().cloned());
        }
        let redirect_uri = redirect_uri.unwrap_or_else(|| come_back(app));
        let (state, verifier, now) = (secret(""), secret(""), app.clock.now());
        let mut values = self.values.clone();
        let protocol = Protocol {
            net: &net,
            now,
            scheme,
            client: &client,
            values: &self.values,
        };
        let scheme = app
            .accounts
            .issuers
            .described(&protocol)
            .await
            .map_err(unbegun)?;
        match mode {
            AuthMode::DcrOauth if client.id.is_empty() => {
                let registration = Registration {
                    project: self.project.id.clone(),
                    auth_config: AuthConfigId::parse(&self.config.id)?,
                    scheme: scheme.clone().into_owned(),
                    net: net.clone(),
                    values: self.values.clone(),
                    redirect_uri: redirect_uri.clone(),
                    name: self.project.shown_name().to_owned(),
                };
                values.extend(app.accounts.client(registration).await?);
            }
            AuthMode::CimdOauth if client.id.is_empty() => {
                values.insert(
                    "client_id".to_owned(),
                    described_at(app, &self.config.id)?.into(),
                );
            }
            _ => {}
        }
        let protocol = Protocol {
            net: &net,
            now,
            scheme: &scheme,
            client: &client,
            values: &values,
        };
        let away = Away {
            redirect_uri: &redirect_uri,
            state: &state,
            verifier: Some(&verifier),
            scopes: &scopes,
            user_scopes: &user_scopes,
        };
        let (url, temporary): (Url, Values) = match &scheme.oauth1 {
            Some(_) => protocol
                .authorize_oauth1(&redirect_uri, &state)
                .await
                .map_err(unbegun)?,
            None => (protocol.authorize(away).map_err(unbegun)?, Values::new()),
        };
        let name = app.flow_name(Stage::Away, &state);
        values.extend(temporary.clone());
        let mut shown = temporary;
        if !shown.is_empty() {
            shown.insert(AUTH_URI.to_owned(), url.as_str().into());
        }
        shown.insert(REDIRECT_URL.to_owned(), url.as_str().into());
        let held = Held {
            values,
            verifier,
            redirect_uri,
            lifetime: None,
        };
        let flow = Flow {
            stage: Stage::Away,
            account: self.id.clone(),
            attempt: self.attempt,
            organization: self.project.organization.clone(),
            callback_url: self.callback_url,
            browser: self.browser,
            until: after(now, app.accounts.settings.away),
            held: app.seal_held(self.project, &name, &held).await?,
        };
        Ok(Sent {
            name,
            flow,
            url: url.into(),
            shown,
        })
    }
}

/// A started authorization.
struct Sent {
    /// Name of the record of the state.
    name: String,
    flow: Flow,
    /// Address at which the user authorizes the connection.
    url: String,
    /// Values that the account shows while it waits for its user.
    shown: Values,
}

/// Result of opening a link.
enum Opened {
    Here(Box<Here>),
    Over(LinkPage),
}

/// A valid link with the records that belong to it.
struct Here {
    flow: Record<Flow>,
    project: Project,
    account: Record<Account>,
    config: Record<auth_configs::AuthConfig>,
    release: std::sync::Arc<Release>,
    values: Values,
    brand: Brand,
}

async fn opened_link(app: &App, token: &str) -> Result<Opened> {
    let flow = app
        .store
        .lookup::<Flow>(&app.flow_name(Stage::Link, token))
        .await?;
    let flow = flow
        .filter(|flow| flow.body.stage == Stage::Link)
        .ok_or(Error::AttemptUnknown)?;
    let project = app.project_of(&flow).await?;
    let account = record(app, &project, &flow.body.account)
        .await
        .map_err(unknown)?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let brand = Brand {
        project: project.shown_name().to_owned(),
        toolkit: release.name.clone(),
        back: flow.body.callback_url.clone(),
    };
    if account.body.attempt != flow.body.attempt {
        return Ok(Opened::Over(LinkPage::Used(brand)));
    }
    let config = auth_configs::find(app, &project, &account.body.auth_config).await?;
    let config = config.filter(|config| config.body.status == auth_configs::Status::Enabled);
    let (true, Some(config)) = (flow.body.until > app.clock.now(), config) else {
        return Ok(Opened::Over(LinkPage::Expired(brand)));
    };
    let (values, _) = opened(app, &project, &account).await?;
    Ok(Opened::Here(Box::new(Here {
        flow,
        project,
        account,
        config,
        release,
        values,
        brand,
    })))
}

impl Here {
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
        more: impl Fn(Batch) -> Batch,
        change: impl Fn(&mut Account, Time) -> Result<()>,
        credential: impl Fn() -> F,
    ) -> Result<()> {
        let (project, id) = (&self.project, &self.flow.body.account);
        let changed = app.store.change(&ACCOUNTS, id.as_str(), || async {
            let now = app.clock.now();
            let config = enabled_config(app, project, &self.account.body.auth_config).await?;
            let mut account = record(app, project, id).await.map_err(unknown)?;
            if account.body.attempt != self.flow.body.attempt {
                return Err(Error::AttemptUnknown);
            }
            let (_, old) = opened(app, project, &account).await?;
            change(&mut account.body, now)?;
            let body = credential().await?;
            let batch = Batch::at(now)
                .check(&config)
                .update(&account)
                .update(&Record { body, ..old });
            Ok((more(batch), ()))
        });
        Ok(changed.await?)
    }

    /// Returns the values to store for the account and the lifetime of their token. The provider
    /// has accepted the values, if the toolkit has a request to check them.
    async fn tried(
        &self,
        app: &App,
        scheme: &AuthScheme,
        mut values: Values,
    ) -> Result<(Values, Option<Duration>)> {
        let mut lifetime = None;
        if obtains(scheme.mode) {
            (values, lifetime) = app
                .accounts
                .obtain(&self.project.id, &self.config, scheme, values)
                .await?;
        }
        if scheme.verify.is_some() {
            let asked = signing(app, &self.project, &self.config, values.clone()).await?;
            let proxy = auth_configs::way(app, &self.project, &self.config).await?;
            trial(
                app,
                &self.project,
                &self.release,
                scheme.mode,
                &asked,
                proxy,
            )
            .await?;
        }
        Ok((values, lifetime))
    }

    /// Builds the form with the submitted values and their problems. Each problem is one line that
    /// begins with the name of its field.
    fn form(&self, problems: &[String], given: &Values) -> Form {
        let text = |values: &Values, name: &str| values.get(name).and_then(scheme::text);
        let fields = self
            .scheme()
            .map_or(&[][..], |scheme| &scheme.fields)
            .iter();
        // A secret that is already known is neither shown nor asked for again.
        let fields = fields.filter(|field| !field.hidden);
        let asked =
            fields.filter(|field| !field.secret || text(&self.values, &field.name).is_none());
        let fields = asked.map(|field| {
            let own = text(given, &field.name).or_else(|| text(&self.values, &field.name));
            let line = problems
                .iter()
                .find_map(|line| line.strip_prefix(&field.name)?.strip_prefix(": "));
            FormField {
                field: field.clone(),
                value: own
                    .or_else(|| field.default.clone())
                    .filter(|_| !field.secret)
                    .unwrap_or_default(),
                problem: line.map(str::to_owned),
            }
        });
        let leaves = self.account.body.scheme.redirects();
        Form {
            brand: self.brand.clone(),
            fields: fields.collect(),
            problem: None,
            leaves,
        }
    }
}

impl App {
    /// Returns the name under which the record of a secret is stored.
    fn flow_name(&self, stage: Stage, secret: &str) -> String {
        let key = self.vault.derive("flows");
        hex::encode(keyed_hash(&key, format!("{stage:?} {secret}").as_bytes()))
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

    async fn project_of(&self, flow: &Record<Flow>) -> Result<Project> {
        let id = ProjectId::parse(&flow.project)?;
        projects::get(self, &flow.body.organization, &id)
            .await
            .map_err(|cause| match cause {
                Error::ProjectNotFound(_) => Error::AttemptUnknown,
                other => other,
            })
    }

    async fn seal_held(&self, project: &Project, name: &str, held: &Held) -> Result<Sealed<Held>> {
        self.vault
            .key(project.id.as_str(), self.clock.now())
            .await?
            .seal(place(project, name), held)
    }

    async fn open_held(&self, project: &Project, flow: &Record<Flow>) -> Result<Held> {
        let key = self
            .vault
            .key(project.id.as_str(), self.clock.now())
            .await?;
        key.open(place(project, &flow.id), &flow.body.held)
    }

    /// Returns the final address for a browser: the project's callback URL with its own query, or a
    /// page of this server.
    fn way_back(
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
        url.unwrap_or_else(|| format!("{}{DONE}?status={status}", self.base_url()))
    }
}

fn place<'a>(project: &'a Project, name: &'a str) -> Place<'a> {
    Place {
        collection: COLLECTION.name,
        project: project.id.as_str(),
        id: name,
        field: "held",
    }
}

fn secret(prefix: &str) -> String {
    format!("{prefix}{}", ids::random_text(SECRET))
}

fn unknown(cause: Error) -> Error {
    match cause {
        Error::AccountNotFound(_) => Error::AttemptUnknown,
        other => other,
    }
}

/// Returns the address to which providers redirect browsers, unless an auth config sets another
/// one.
pub(super) fn come_back(app: &App) -> String {
    format!("{}{CALLBACK}", app.base_url())
}

/// Converts the refusal of an authorization request into an error.
pub(super) fn unbegun(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unavailable { .. } => Error::Unavailable(refusal.to_string()),
        refusal => Error::AccountRefused(refusal.to_string()),
    }
}

/// Returns the values that come from the user, without those that come from the provider.
pub(super) fn own(mode: AuthMode, values: &Values) -> Values {
    // If the server creates the client itself, the client's id and secret are no fields.
    let made = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
    let of_flow = |name: &str| {
        TOKENS.contains(&name) || name == REDIRECT_URL || made && clients::KEPT.contains(&name)
    };
    values
        .iter()
        .filter(|(name, _)| !of_flow(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns the value of a parameter that occurs exactly once. A repeated parameter counts as
/// absent, because other parsers may read a different occurrence.
fn only<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = query.iter().filter(|(own, _)| own == name);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

/// Shortens a text from a provider to one line.
fn said(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    manifest::cleaned(&line).chars().take(SAID).collect()
}

/// Checks that a browser may be redirected to an address.
fn checked(name: &str, url: String) -> Result<String> {
    let fits = url.len() <= URL;
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
            "{name}: must be an http address of at most {URL} bytes"
        )))
    }
}

/// Appends parameters to the query of an address.
fn with_query(url: &str, more: &[(&str, &str)]) -> Result<String> {
    let mut url = Url::parse(url)
        .map_err(|_| Error::Internal("an address that was checked is none".into()))?;
    url.query_pairs_mut().extend_pairs(more);
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
            assert_eq!(issued(&scheme, &pairs(query)).is_ok(), good, "{query}");
        }
    }

    #[test]
    fn known_issuer_must_match_exactly() {
        let scheme: AuthScheme = serde_json::from_value(json!({
            "mode": "OAUTH2", "name": "n", "oauth2": { "issuer": "https://login.example.com/a", "names_issuer": true },
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
            assert_eq!(issued(&scheme, &pairs(query)).is_ok(), good, "{query}");
        }
    }

    #[test]
    fn a_parameter_that_comes_twice_is_none() {
        assert_eq!(only(&pairs("state=a&code=b"), "state"), Some("a"));
        assert_eq!(only(&pairs("state=a&state=a"), "state"), None);
        assert_eq!(only(&pairs("code=a"), "state"), None);
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
            assert!(checked("callback_url", url.to_owned()).is_err(), "{url}");
        }
        checked("callback_url", "http://localhost:3000/done".to_owned()).unwrap();
    }
}
