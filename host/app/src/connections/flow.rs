//! How a user connects an account: a page of this server, the application, and back.
//!
//! Three secrets lead through it, each the name of a [`Flow`]: the token of the page (a link), the `state` that goes to the
//! application and back (RFC 6749, section 10.12), and the session with which the project vouches for its user. A secret is
//! random, is stored as its keyed hash alone, belongs to one account and one attempt to connect it, and ends. A `state` is
//! erased before its code is sent on, so that of any number of callbacks one spends the code. Whatever ends an attempt ends all
//! its secrets, because they name the number of the attempt that the account then has no more.
//!
//! A flow that began on the page belongs to the browser that the page was opened in; another browser cannot end it.

use std::time::Duration;

use manifest::{AuthMode, AuthScheme, Field as FormText, OAuth2};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Time};
use url::Url;

use super::{
    Account, COLLECTION as ACCOUNTS, Event, Failure, REDIRECT_URL, Sharing, SharingChange, Shown, Status, TIMED_OUT,
    Values, Wanted, alias,
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
    ids::{self, AccountId, AuthConfigId, OrganisationId, ProjectId},
    jobs::Lease,
    projects::{self, Project},
    vault::{Place, Sealed, keyed_hash},
};

/// The collection this file owns.
pub(crate) static COLLECTION: Collection = Collection { name: "flows", fields: &[Field::new("until", Kind::Time)] };

/// How often the job looks for what nobody came back to.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// How long a project may take to vouch for its user.
const VOUCHING: Duration = Duration::from_secs(600);
/// So long a link that has ended says that it has.
const REMEMBERED: Duration = Duration::from_secs(86_400);
/// Records that one run of the job takes.
const AT_ONCE: u64 = 200;
/// Characters of a secret; each has almost six bits.
const SECRET: usize = 43;
/// Bytes of an address to come back to.
const URL: usize = 2_048;
/// Characters of what an application says.
const SAID: usize = 300;
/// The path that applications send people back to.
const CALLBACK: &str = "/api/v3/toolkits/auth/callback";
/// The result, for users of projects that name no address of their own.
const DONE: &str = "/link/done";
/// Begin the secrets that leave the server.
const LINK: &str = "lt_";
const SESSION: &str = "session_";
/// Names under which an account keeps what came from the application, not from its user.
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
/// What clients of OAuth 1 call the address where a user agrees.
const AUTH_URI: &str = "authUri";

/// One step of connecting an account, under the keyed hash of its secret.
#[derive(Debug, Serialize, Deserialize)]
struct Flow {
    stage: Stage,
    account: AccountId,
    /// Of the account: any other makes this void.
    attempt: u32,
    /// For whoever comes without a key.
    organisation: OrganisationId,
    #[serde(default)]
    callback_url: Option<String>,
    /// Keyed hash of what the browser holds, where the flow began on the page.
    #[serde(default)]
    browser: Option<String>,
    until: Time,
    held: Sealed<Held>,
}

impl Document for Flow {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Which secret it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Opens the page.
    Link,
    /// Is at the application.
    Away,
    /// Waits for the project's word.
    Vouching,
}

/// What nobody else may see.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Held {
    /// Of the account.
    values: Values,
    /// Proves that whoever brings the code has sent the user away (RFC 7636).
    verifier: String,
    /// As it was sent.
    redirect_uri: String,
    /// Seconds that the token lives, when there is one.
    lifetime: Option<u64>,
}

/// An account to be connected on the page.
#[derive(Debug)]
pub struct NewLink {
    /// How to connect it.
    pub auth_config: AuthConfigId,
    /// The project's own name for the person.
    pub user_id: String,
    /// Where the browser goes in the end.
    pub callback_url: Option<String>,
    /// Fields that are known already.
    pub values: Values,
    /// A name of the user's own.
    pub alias: Option<String>,
    /// Who else may use it; nobody, unless it says so.
    pub sharing: SharingChange,
}

/// The way to the page.
#[derive(Debug)]
pub struct Linked {
    /// The secret.
    pub token: String,
    /// The address of the page.
    pub url: String,
    /// Then it ends.
    pub expires_at: Time,
    /// The account.
    pub account: AccountId,
    /// Who may use it.
    pub sharing: Sharing,
}

/// What the page shows.
#[derive(Debug)]
pub enum LinkPage {
    /// What is asked for.
    Form(Form),
    /// The link has ended.
    Expired(Brand),
    /// The account was connected, or not, with this link, or another link was made since.
    Used(Brand),
}

/// Whose page it is.
#[derive(Debug, Clone)]
pub struct Brand {
    /// Name of the project for people.
    pub project: String,
    /// Name of the toolkit for people.
    pub toolkit: String,
    /// Where the page leads back to.
    pub back: Option<String>,
}

/// The form of the page.
#[derive(Debug)]
pub struct Form {
    /// Whose it is.
    pub brand: Brand,
    /// The fields, in order.
    pub fields: Vec<FormField>,
    /// What is wrong with all of it together.
    pub problem: Option<String>,
    /// Whether the user goes on to the application.
    pub leaves: bool,
}

/// A field of the form.
#[derive(Debug)]
pub struct FormField {
    /// As the toolkit describes it.
    pub field: FormText,
    /// What stands in it; never of a secret.
    pub value: String,
    /// What is wrong with what was sent.
    pub problem: Option<String>,
}

/// What came of a form that was sent.
#[derive(Debug)]
pub enum Submitted {
    /// It is asked again.
    Again(LinkPage),
    /// The browser goes on.
    Away(String),
}

/// Where a browser goes when it comes back from the application.
#[derive(Debug)]
pub struct Landed(pub String);

/// Makes a pending account and the address at which its user agrees.
pub(super) async fn create(
    app: &App,
    project: &Project,
    wanted: Wanted,
    callback_url: Option<String>,
) -> Result<Shown> {
    wanted.vouched(project)?;
    let callback_url = callback_url.map(|url| checked("connection.callback_url", url)).transpose()?;
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
    let Sent { name, flow, shown, .. } = begin.sent(app).await?;
    let mut values = wanted.values.clone();
    values.extend(shown);
    let credential = Credential::of(app.accounts.seal(&project.id, &id, &values).await?);
    let more = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
    insert(app, project, &wanted, &id, &account, &credential, more).await?;
    get(app, project, &id).await
}

/// Makes a pending account and the address of the page on which its user connects it.
///
/// # Errors
/// When the config is unknown or disabled, the toolkit needs no account, the project keeps users from the operator's clients,
/// an address is none, or the store refuses.
pub async fn link(app: &App, project: &Project, request: NewLink) -> Result<Linked> {
    let callback_url = request.callback_url.map(|url| checked("callback_url", url)).transpose()?;
    let mut wanted = Wanted::of(app, project, &request.auth_config, Some(request.user_id), request.values).await?;
    wanted.vouched(project)?;
    wanted.alias = alias(request.alias)?;
    wanted.sharing = Sharing::default().with(&request.sharing)?;
    let refused = |why: &str| Error::AccountRefused(format!("auth config {}: {why}", wanted.config.id));
    let scheme = wanted.scheme().ok_or_else(|| refused("the toolkit needs no account"))?;
    if wanted.config.body.managed && !project.stored.config.hosted_links {
        return Err(refused("the project lets nobody connect with the server's own credentials on its page"));
    }
    let values = scheme::named(scheme, wanted.values.clone());
    let complete = scheme::complete(scheme, values.clone()).is_ok();
    let (id, now) = (AccountId::random(), app.clock.now());
    let until = after(now, app.accounts.settings.pending);
    let status = if complete { Status::Initiated } else { Status::Initializing };
    let mut account = wanted.account(status, Some(until), now)?;
    account.attempt = 1;
    let token = secret(LINK);
    let name = app.flow_name(Stage::Link, &token);
    let flow = Flow {
        stage: Stage::Link,
        account: id.clone(),
        attempt: account.attempt,
        organisation: project.organisation.clone(),
        callback_url,
        browser: None,
        until,
        held: app.seal_held(project, &name, &Held::default()).await?,
    };
    let credential = Credential::of(app.accounts.seal(&project.id, &id, &values).await?);
    let more = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
    insert(app, project, &wanted, &id, &account, &credential, more).await?;
    let url = format!("{}/link/{token}", app.address());
    Ok(Linked { token, url, expires_at: until, account: id, sharing: wanted.sharing })
}

/// Has an account connected once more. Answers its status, and where its user goes; an account without redirect stays as it is.
///
/// # Errors
/// When there is none, fields are missing, its config is deleted or disabled, or the store refuses.
pub async fn again(
    app: &App,
    project: &Project,
    id: &AccountId,
    callback_url: Option<String>,
) -> Result<(Status, Option<String>)> {
    let callback_url = callback_url.map(|url| checked("redirect_url", url)).transpose()?;
    let begun = app.store.change(&ACCOUNTS, id.as_str(), || async {
        let mut account = record(app, project, id).await?;
        if !account.body.scheme.redirects() {
            return Ok((Batch::at(app.clock.now()), (account.body.status, None)));
        }
        let config = auth_configs::find(app, project, &account.body.auth_config).await?;
        let config = config.filter(|config| config.body.status == auth_configs::Status::Enabled);
        let config = config
            .ok_or_else(|| Error::AccountRefused(format!("the auth config of account {id} is deleted or disabled")))?;
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
        let Sent { name, flow, url, shown } = begin.sent(app).await?;
        let mut batch = Batch::at(now).check(&config).insert(project.id.as_str(), &name, &flow);
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

/// What a link shows. Changes nothing.
///
/// # Errors
/// [`Error::FlowUnknown`] when there is no such link, or the store does not answer.
pub async fn open_link(app: &App, token: &str) -> Result<LinkPage> {
    Ok(match opened_link(app, token).await? {
        Opened::Over(page) => page,
        Opened::Here(here) => LinkPage::Form(here.form(&[], &Values::new())),
    })
}

/// Takes what a user filled in: keeps a key, or sends the browser on to the application. `browser` is what the page left there.
///
/// # Errors
/// [`Error::FlowUnknown`] when there is no such link, or something does not answer.
pub async fn submit(app: &App, token: &str, given: Values, browser: &str) -> Result<Submitted> {
    let here = match opened_link(app, token).await? {
        Opened::Over(page) => return Ok(Submitted::Again(page)),
        Opened::Here(here) => here,
    };
    let (project, id) = (&here.project, &here.flow.body.account);
    let scheme = &here.scheme()?.clone();
    let declared = |name: &str| scheme.fields.iter().any(|field| field.name == name);
    let mut values = here.values.clone();
    values.extend(given.iter().filter(|(name, _)| declared(name)).map(|(name, value)| (name.clone(), value.clone())));
    // A secret that is left empty is the one that was there.
    for field in scheme.fields.iter().filter(|field| field.secret) {
        if let Some(old) = here.values.get(&field.name)
            && given.get(&field.name).and_then(Value::as_str).is_none_or(str::is_empty)
        {
            values.insert(field.name.clone(), old.clone());
        }
    }
    let complete = match scheme::complete(scheme, values) {
        Ok(complete) => complete,
        Err(problems) => return Ok(Submitted::Again(LinkPage::Form(here.form(&problems, &given)))),
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
        let Sent { name, flow, url, .. } = begin.sent(app).await?;
        let with_flow = |batch: Batch| batch.insert(project.id.as_str(), &name, &flow);
        let send = |account: &mut Account, now| {
            account.status = account.status.after(Event::Sent).ok_or(Error::FlowUnknown)?;
            account.changed_at = now;
            Ok(())
        };
        let credential = || async { Ok(Credential::of(app.accounts.seal(&project.id, id, &complete).await?)) };
        return here.change(app, with_flow, send, credential).await.map(|()| Submitted::Away(url));
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
        let status = account.status.after(Event::Filled).ok_or(Error::FlowUnknown)?;
        account.pass_to(status, None, now);
        account.attempt += 1;
        Ok(())
    };
    let credential = || app.accounts.connected(&project.id, id, Some(scheme), &values, lifetime);
    here.change(app, |batch| batch, fill, credential).await?;
    Ok(Submitted::Away(app.way_back(here.flow.body.callback_url.as_deref(), id, Ok(()))))
}

/// Takes what an application sent a browser back with. `browser` is what the page left there.
///
/// # Errors
/// [`Error::FlowUnknown`] when the `state` is none of a flow that this browser may end now: nothing was sent then, and nothing
/// has changed.
pub async fn callback(app: &App, query: &[(String, String)], browser: Option<&str>) -> Result<Landed> {
    let state = only(query, "state").ok_or(Error::FlowUnknown)?;
    let name = app.flow_name(Stage::Away, state);
    let flow = app.store.lookup::<Flow>(&name).await?.ok_or(Error::FlowUnknown)?;
    let now = app.clock.now();
    let here =
        flow.body.browser.as_ref().is_none_or(|own| browser.is_some_and(|given| app.browser_hash(given) == *own));
    if flow.body.stage != Stage::Away || flow.body.until <= now || !here {
        return Err(Error::FlowUnknown);
    }
    let project = app.project_of(&flow).await?;
    let id = flow.body.account.clone();
    let account = record(app, &project, &id).await.map_err(unknown)?;
    if account.body.attempt != flow.body.attempt {
        return Err(Error::FlowUnknown);
    }
    let whose = Whose::of(app, &project, &account).map_err(|_| Error::FlowUnknown)?;
    // From here on the state is spent: whoever comes second finds nothing.
    match app.store.commit(Batch::at(now).purge(&flow)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(Error::FlowUnknown),
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
        let held = Held { values: values.clone(), lifetime, ..Held::default() };
        let held = app.seal_held(&project, &name, &held).await?;
        let Flow { account, attempt, organisation, callback_url, .. } = flow.body;
        let until = after(now, VOUCHING);
        let vouching =
            Flow { stage: Stage::Vouching, account, attempt, organisation, callback_url, browser: None, until, held };
        // What came is kept for an account that still waits for it, and for nothing else.
        let kept = app.store.change(&ACCOUNTS, id.as_str(), || async {
            let found = record(app, &project, &id).await.map_err(unknown)?;
            if found.body.attempt != vouching.attempt {
                return Err(Error::FlowUnknown);
            }
            Ok((Batch::at(now).check(&found).insert(project.id.as_str(), &name, &vouching), ()))
        });
        return match kept.await.map_err(Error::from) {
            Ok(()) => with_query(verifier, &[("session_uri", &session)]).map(Landed),
            Err(Error::FlowUnknown) => {
                app.accounts.give_back(&whose, &values).await;
                Ok(Landed(app.way_back(vouching.callback_url.as_deref(), &id, Err("superseded".to_owned()))))
            }
            Err(cause) => Err(cause),
        };
    }
    match agree(app, &project, &whose, attempt, &values, lifetime).await {
        Ok(()) => Ok(back(Ok(()))),
        Err(Error::FlowUnknown) => Ok(back(Err("superseded".to_owned()))),
        Err(cause) => Err(cause),
    }
}

/// The project's word that the user who agreed is the one it knows: the account becomes active. Answers account and toolkit.
///
/// # Errors
/// [`Error::SessionNotFound`] when there is no such session, or not any more; [`Error::AccountRefused`] when it is another user,
/// which fails the account.
pub async fn complete(app: &App, project: &Project, session: &str, user: &str) -> Result<(AccountId, String)> {
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
    let account = record(app, project, &id).await.map_err(|_| Error::SessionNotFound)?;
    let whose = Whose::of(app, project, &account)?;
    if account.body.user_id != user.trim() {
        let description = "the user who agreed is not the one the project knows".to_owned();
        refuse(app, project, &id, attempt, &Failure { error: "user_mismatch".into(), description }).await?;
        app.accounts.give_back(&whose, &held.values).await;
        return Err(Error::AccountRefused(format!("account {id} is being connected for another user; it has failed")));
    }
    let lifetime = held.lifetime.map(Duration::from_secs);
    match agree(app, project, &whose, attempt, &held.values, lifetime).await {
        Ok(()) => Ok((id, account.body.toolkit)),
        Err(Error::FlowUnknown) => Err(Error::SessionNotFound),
        Err(cause) => Err(cause),
    }
}

/// The tokens for what a browser came back with, or why there are none.
async fn brought(
    app: &App,
    project: &Project,
    whose: &Whose,
    held: &Held,
    query: &[(String, String)],
) -> std::result::Result<Tokens, Failure> {
    let failure = |error: &str, description: String| Failure { error: error.to_owned(), description };
    let scheme = whose.scheme().map_err(|cause| failure("toolkit_gone", cause.to_string()))?;
    let config = auth_configs::find(app, project, &whose.auth_config).await;
    let config = config.ok().flatten();
    let config = config.ok_or_else(|| failure("auth_config_gone", "the auth config is deleted".into()))?;
    let standing = app.accounts.standing(&project.id, &config).await;
    let Standing { net, client, .. } = standing.map_err(|cause| failure("auth_config_unusable", cause.to_string()))?;
    let protocol = Protocol { net: &net, now: app.clock.now(), scheme, client: &client, values: &held.values };
    let scheme = app.accounts.issuers.described(&protocol).await;
    let scheme = &scheme.map_err(|refusal| failure("issuer_unknown", said(&refusal.to_string())))?;
    // Before anything else of the answer is read, also of one that says no (RFC 9207, section 2.4).
    issued(scheme, query).map_err(|why| failure("issuer_mismatch", why))?;
    // Nobody has said how OAuth 1 says no; these are the ways that applications found.
    if let Some(error) = query.iter().find(|(name, _)| ["error", "oauth_problem"].contains(&name.as_str())) {
        let description = only(query, "error_description").map(said).unwrap_or_default();
        return Err(Failure { error: said(&error.1), description });
    }
    let named = match &scheme.oauth1 {
        Some(_) => "oauth_verifier",
        None => scheme.oauth2.as_ref().map_or("code", OAuth2::code_param),
    };
    if scheme.oauth1.is_some() && query.iter().any(|(name, _)| name == "denied") {
        return Err(failure("access_denied", String::new()));
    }
    let code = only(query, named).filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| failure("invalid_response", "the application sent no code".into()))?;
    let verifier = Some(held.verifier.as_str());
    let code = Code { code, redirect_uri: &held.redirect_uri, verifier, callback: query };
    let exchanged = Protocol { scheme, ..protocol }.exchange(code).await;
    if exchanged.as_ref().is_err_and(Refusal::is_of_client)
        && let Err(cause) = app.accounts.forget_client(&project.id, &whose.auth_config, &held.values).await
    {
        tracing::warn!(account = %whose.account, %cause, "a client that its application does not know could not be forgotten");
    }
    exchanged.map_err(|refusal| failure("token_exchange_failed", said(&refusal.to_string())))
}

/// The issuer that an application names must be its own (RFC 9207): another one has mixed up two flows. Where nobody says what it
/// calls itself, it is one of the origins of its addresses.
fn issued(scheme: &AuthScheme, query: &[(String, String)]) -> std::result::Result<(), String> {
    let named: Vec<_> = query.iter().filter(|(name, _)| name == "iss").collect();
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
    let flow = scheme.oauth2.as_ref();
    let known = flow.and_then(|flow| flow.issuer.as_ref());
    match named[..] {
        [] if flow.is_some_and(|flow| flow.names_issuer) => Err("the answer does not say whose it is".into()),
        [] => Ok(()),
        [(_, issuer)] if known.is_some_and(|known| known == issuer) => Ok(()),
        [(_, issuer)] if known.is_none() => {
            let mut own = flow.iter().flat_map(|flow| [origin(&flow.authorize_url), origin(&flow.token_url)]).flatten();
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

/// Connects an account with tokens, unless its attempt is over: then they are given back.
async fn agree(
    app: &App,
    project: &Project,
    whose: &Whose,
    attempt: u32,
    values: &Values,
    lifetime: Option<Duration>,
) -> Result<()> {
    let agreed = app.store.change(&ACCOUNTS, whose.account.as_str(), || async {
        let found = record(app, project, &whose.account).await.ok().filter(|account| account.body.attempt == attempt);
        let status = found.as_ref().and_then(|account| account.body.status.after(Event::Agreed));
        let (Some(mut account), Some(status)) = (found, status) else {
            app.accounts.give_back(whose, values).await;
            return Err(Error::FlowUnknown);
        };
        let now = app.clock.now();
        account.body.pass_to(status, None, now);
        account.body.attempt += 1;
        let (_, credential) = opened(app, project, &account).await?;
        let body = app.accounts.connected(&project.id, &whose.account, Some(whose.scheme()?), values, lifetime).await?;
        Ok((Batch::at(now).update(&account).update(&Record { body, ..credential }), ()))
    });
    Ok(agreed.await?)
}

/// Ends an attempt that came to nothing.
async fn refuse(app: &App, project: &Project, id: &AccountId, attempt: u32, failure: &Failure) -> Result<()> {
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
    app.store.edit(project.id.as_str(), id.as_str(), now, change).await.map_err(Error::from).map(|_| ())
}

/// Lets go of what nobody came back to: accounts expire, flows are forgotten.
pub(crate) async fn sweep(app: &App, lease: &Lease) -> Result<()> {
    let now = app.clock.now();
    let waiting = Query::everywhere().below("waits_until", now.0.saturating_add(1)).page(0, AT_ONCE);
    for mut account in app.store.find::<Account>(&waiting).await?.records {
        match account.body.status.after(Event::TimedOut) {
            Some(status) => account.body.pass_to(status, Some(TIMED_OUT), now),
            None => account.body.waits_until = None,
        }
        commit(app, lease.fence(Batch::at(now).update(&account))).await?;
    }
    let gone = now.0.saturating_sub(i64::try_from(REMEMBERED.as_millis()).unwrap_or(i64::MAX));
    for flow in app.store.find::<Flow>(&Query::everywhere().below("until", gone).page(0, AT_ONCE)).await?.records {
        commit(app, lease.fence(Batch::at(now).purge(&flow))).await?;
    }
    Ok(())
}

async fn commit(app: &App, batch: Batch) -> Result<()> {
    match app.store.commit(batch).await {
        // Somebody has changed it meanwhile; the next run looks again.
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// What sending a user away needs.
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
    /// Makes the state and the address at which the user agrees.
    async fn sent(self, app: &App) -> Result<Sent> {
        let mode = self.config.body.scheme;
        let scheme = self.release.scheme(mode).ok_or_else(|| Error::SchemeNotOffered {
            toolkit: self.release.slug.to_string(),
            scheme: mode.as_str().to_owned(),
        })?;
        let Standing { net, client, mut scopes, user_scopes, redirect_uri } =
            app.accounts.standing(&self.project.id, self.config).await?;
        for tool in self.config.body.tools_for_connection.iter().filter_map(|slug| self.release.tool(slug)) {
            scopes.extend(tool.scopes.iter().cloned());
        }
        let redirect_uri = redirect_uri.unwrap_or_else(|| come_back(app));
        let (state, verifier, now) = (secret(""), secret(""), app.clock.now());
        let mut values = self.values.clone();
        let protocol = Protocol { net: &net, now, scheme, client: &client, values: &self.values };
        let scheme = app.accounts.issuers.described(&protocol).await.map_err(unbegun)?;
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
                values.insert("client_id".to_owned(), described_at(app, &self.config.id)?.into());
            }
            _ => {}
        }
        let protocol = Protocol { net: &net, now, scheme: &scheme, client: &client, values: &values };
        let away = Away {
            redirect_uri: &redirect_uri,
            state: &state,
            verifier: Some(&verifier),
            scopes: &scopes,
            user_scopes: &user_scopes,
        };
        let (url, temporary): (Url, Values) = match &scheme.oauth1 {
            Some(_) => protocol.authorize_oauth1(&redirect_uri, &state).await.map_err(unbegun)?,
            None => (protocol.authorize(away).map_err(unbegun)?, Values::new()),
        };
        let name = app.flow_name(Stage::Away, &state);
        values.extend(temporary.clone());
        let mut shown = temporary;
        if !shown.is_empty() {
            shown.insert(AUTH_URI.to_owned(), url.as_str().into());
        }
        shown.insert(REDIRECT_URL.to_owned(), url.as_str().into());
        let held = Held { values, verifier, redirect_uri, lifetime: None };
        let flow = Flow {
            stage: Stage::Away,
            account: self.id.clone(),
            attempt: self.attempt,
            organisation: self.project.organisation.clone(),
            callback_url: self.callback_url,
            browser: self.browser,
            until: after(now, app.accounts.settings.away),
            held: app.seal_held(self.project, &name, &held).await?,
        };
        Ok(Sent { name, flow, url: url.into(), shown })
    }
}

/// A user who can be sent away.
struct Sent {
    /// Of the state.
    name: String,
    flow: Flow,
    /// Where the user agrees.
    url: String,
    /// What the account shows of it while it waits.
    shown: Values,
}

/// A link that was opened.
enum Opened {
    Here(Box<Here>),
    Over(LinkPage),
}

/// A link that is good, with all that belongs to it.
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
    let flow = app.store.lookup::<Flow>(&app.flow_name(Stage::Link, token)).await?;
    let flow = flow.filter(|flow| flow.body.stage == Stage::Link).ok_or(Error::FlowUnknown)?;
    let project = app.project_of(&flow).await?;
    let account = record(app, &project, &flow.body.account).await.map_err(unknown)?;
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
    Ok(Opened::Here(Box::new(Here { flow, project, account, config, release, values, brand })))
}

impl Here {
    fn scheme(&self) -> Result<&AuthScheme> {
        self.release.scheme(self.account.body.scheme).ok_or(Error::FlowUnknown)
    }

    /// Changes the account and gives it another credential, if the link still belongs to its attempt and its auth config still
    /// lets connections start.
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
                return Err(Error::FlowUnknown);
            }
            let (_, old) = opened(app, project, &account).await?;
            change(&mut account.body, now)?;
            let body = credential().await?;
            let batch = Batch::at(now).check(&config).update(&account).update(&Record { body, ..old });
            Ok((more(batch), ()))
        });
        Ok(changed.await?)
    }

    /// The values with which an account can be kept, and how long their token lives: the application has taken them, where there is
    /// a way to ask it.
    async fn tried(&self, app: &App, scheme: &AuthScheme, mut values: Values) -> Result<(Values, Option<Duration>)> {
        let mut lifetime = None;
        if obtains(scheme.mode) {
            (values, lifetime) = app.accounts.obtain(&self.project.id, &self.config, scheme, values).await?;
        }
        if scheme.verify.is_some() {
            let asked = signing(app, &self.project, &self.config, values.clone()).await?;
            let proxy = auth_configs::way(app, &self.project, &self.config).await?;
            trial(app, &self.project, &self.release, scheme.mode, &asked, proxy).await?;
        }
        Ok((values, lifetime))
    }

    /// The form, with what was sent before and what was wrong with it: a line for each field, which begins with its name.
    fn form(&self, problems: &[String], given: &Values) -> Form {
        let text = |values: &Values, name: &str| values.get(name).and_then(scheme::text);
        let fields = self.scheme().map_or(&[][..], |scheme| &scheme.fields).iter();
        // A secret that is known already is not asked for again, and never shown.
        let fields = fields.filter(|field| !field.hidden);
        let asked = fields.filter(|field| !field.secret || text(&self.values, &field.name).is_none());
        let fields = asked.map(|field| {
            let own = text(given, &field.name).or_else(|| text(&self.values, &field.name));
            let line = problems.iter().find_map(|line| line.strip_prefix(&field.name)?.strip_prefix(": "));
            FormField {
                field: field.clone(),
                value: own.or_else(|| field.default.clone()).filter(|_| !field.secret).unwrap_or_default(),
                problem: line.map(str::to_owned),
            }
        });
        let leaves = self.account.body.scheme.redirects();
        Form { brand: self.brand.clone(), fields: fields.collect(), problem: None, leaves }
    }
}

impl App {
    /// The name under which the flow of a secret is kept.
    fn flow_name(&self, stage: Stage, secret: &str) -> String {
        let key = self.vault.derive("flows");
        hex::encode(keyed_hash(&key, format!("{stage:?} {secret}").as_bytes()))
    }

    fn browser_hash(&self, browser: &str) -> String {
        hex::encode(keyed_hash(&self.vault.derive("browsers"), browser.as_bytes()))
    }

    /// What a form of a link carries, so that no other page can send it.
    #[must_use]
    pub fn form_token(&self, token: &str, browser: &str) -> String {
        hex::encode(keyed_hash(&self.vault.derive("forms"), format!("{} {token} {browser}", token.len()).as_bytes()))
    }

    async fn project_of(&self, flow: &Record<Flow>) -> Result<Project> {
        let id = ProjectId::parse(&flow.project)?;
        projects::get(self, &flow.body.organisation, &id).await.map_err(|cause| match cause {
            Error::ProjectNotFound(_) => Error::FlowUnknown,
            other => other,
        })
    }

    async fn seal_held(&self, project: &Project, name: &str, held: &Held) -> Result<Sealed<Held>> {
        self.vault.key(project.id.as_str(), self.clock.now()).await?.seal(place(project, name), held)
    }

    async fn open_held(&self, project: &Project, flow: &Record<Flow>) -> Result<Held> {
        let key = self.vault.key(project.id.as_str(), self.clock.now()).await?;
        key.open(place(project, &flow.id), &flow.body.held)
    }

    /// Where a browser goes in the end: to the project's address, with its own query, or to a page of this server.
    fn way_back(&self, callback_url: Option<&str>, id: &AccountId, outcome: std::result::Result<(), String>) -> String {
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
        url.unwrap_or_else(|| format!("{}{DONE}?status={status}", self.address()))
    }
}

fn place<'a>(project: &'a Project, name: &'a str) -> Place<'a> {
    Place { collection: COLLECTION.name, project: project.id.as_str(), id: name, field: "held" }
}

fn secret(prefix: &str) -> String {
    format!("{prefix}{}", ids::random_text(SECRET))
}

fn unknown(cause: Error) -> Error {
    match cause {
        Error::AccountNotFound(_) => Error::FlowUnknown,
        other => other,
    }
}

/// Where applications send people back to, unless an auth config names another address.
pub(super) fn come_back(app: &App) -> String {
    format!("{}{CALLBACK}", app.address())
}

/// Why nobody can be sent away.
pub(super) fn unbegun(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unavailable { .. } => Error::Unavailable(refusal.to_string()),
        refusal => Error::AccountRefused(refusal.to_string()),
    }
}

/// The values that are the user's, without what came from the application.
pub(super) fn own(mode: AuthMode, values: &Values) -> Values {
    // Where the server makes the client itself, it is no field.
    let made = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
    let of_flow = |name: &str| TOKENS.contains(&name) || name == REDIRECT_URL || made && clients::KEPT.contains(&name);
    values.iter().filter(|(name, _)| !of_flow(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A parameter that is there once. One that is there twice is none: nobody knows which of them others would take.
fn only<'a>(query: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = query.iter().filter(|(own, _)| own == name);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        _ => None,
    }
}

/// As much of an application's words as a person needs, on one line.
fn said(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    manifest::cleaned(&line).chars().take(SAID).collect()
}

/// An address that a browser may be sent to.
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
        Err(Error::invalid(format!("{name}: must be an http address of at most {URL} bytes")))
    }
}

/// An address with more parameters after its own.
fn with_query(url: &str, more: &[(&str, &str)]) -> Result<String> {
    let mut url = Url::parse(url).map_err(|_| Error::Internal("an address that was checked is none".into()))?;
    url.query_pairs_mut().extend_pairs(more);
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
    }

    #[test]
    fn an_answer_of_another_issuer_or_of_several_is_refused() {
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
    fn an_issuer_whose_name_is_known_is_that_one_to_the_letter_and_speaks_where_it_always_does() {
        let scheme: AuthScheme = serde_json::from_value(json!({
            "mode": "OAUTH2", "name": "n", "oauth2": { "issuer": "https://login.example.com/a", "names_issuer": true },
        }))
        .unwrap();
        for (query, good) in [
            ("iss=https://login.example.com/a", true),
            ("iss=https://login.example.com", false),
            ("iss=https://login.example.com/a/", false),
            ("code=c", false),
            ("iss=https://login.example.com/a&iss=https://login.example.com/a", false),
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
    fn the_way_back_keeps_its_own_query_and_leads_to_web_addresses_alone() {
        let url = with_query("https://app.example/back?a=1&b=%20#top", &[("status", "failed"), ("error", "a b&c")]);
        assert_eq!(url.unwrap(), "https://app.example/back?a=1&b=%20&status=failed&error=a+b%26c#top");
        for url in ["javascript:alert(1)", "data:text/html,x", "https://u:p@app.example/", "/relative", "//app.example"]
        {
            assert!(checked("callback_url", url.to_owned()).is_err(), "{url}");
        }
        checked("callback_url", "http://localhost:3000/done".to_owned()).unwrap();
    }
}
