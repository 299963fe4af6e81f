//! The page of a link: its form, and the values that the user submits.

use std::{sync::Arc, time::Duration};

use manifest::{AuthScheme, Field};
use serde_json::Value;
use store::{Batch, Record};

use super::{
    Account, Event, Values,
    account::{COLLECTION, record},
    attempt::{ConnectionAttempt, Step, link_gone},
    auth_configs::{self, AuthConfig},
    authorize::{AuthorizationInput, AuthorizationStarted},
    create::enabled_config,
    credential::{Credential, REDIRECT_URL_VALUE, open_credential},
    scheme,
    tokens::obtains_from_fields,
    verification::verify_values,
};
use crate::{
    App, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    projects::Project,
};

/// Content of the page.
#[derive(Debug)]
pub enum LinkPage {
    /// The form.
    Form(Form),
    /// The link has expired.
    Expired(Brand),
    /// The link has been used, or a newer link has replaced it.
    Used(Brand),
    /// The operator has removed the OAuth app that the auth config connects with.
    NoOauthApp(Brand),
}

/// Names that the page shows.
#[derive(Debug, Clone)]
pub struct Brand {
    /// Display name of the project.
    pub project: String,
    /// Display name of the toolkit.
    pub toolkit: String,
    /// Addresses of the logos of the project and of the toolkit, as far as they have one.
    pub logos: Vec<String>,
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
    /// Scopes that the provider is asked for.
    pub scopes: Vec<String>,
    /// Problem that concerns the form as a whole.
    pub problem: Option<String>,
    /// True if the form sends the user on to the provider.
    pub redirects: bool,
}

/// Field of the form.
#[derive(Debug)]
pub struct FormField {
    /// Field as the toolkit describes it.
    pub field: Field,
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

/// Returns the content of the page of a link. Changes nothing. Fails with
/// [`errors::ATTEMPT_UNKNOWN`] if the link does not exist, or if the store does not answer.
pub async fn open_link(app: &App, token: &str) -> Result<LinkPage> {
    Ok(match load_link(app, token).await? {
        LinkState::Closed(page) => page,
        LinkState::Open(session) => LinkPage::Form(session.form(&[], &Values::new())),
    })
}

/// Handles a submitted form: stores a key, or redirects the browser to the provider. `browser` is
/// the value of the cookie that the page has set. Fails with [`errors::ATTEMPT_UNKNOWN`] if the
/// link does not exist, or if the store or the provider does not answer.
pub async fn submit(app: &App, token: &str, submitted: Values, browser: &str) -> Result<Submitted> {
    let session = match load_link(app, token).await? {
        LinkState::Closed(page) => return Ok(Submitted::ShowPage(page)),
        LinkState::Open(session) => session,
    };
    let scheme = &session.scheme()?.clone();
    let values = session.with_submitted(scheme, &submitted);
    let complete = match scheme::complete(scheme, values) {
        Ok(complete) => complete,
        Err(problems) => {
            let form = session.form(&problems, &submitted);
            return Ok(Submitted::ShowPage(LinkPage::Form(form)));
        }
    };
    if session.account.body.scheme.redirects() {
        return session.redirect(app, complete, browser).await;
    }
    let (values, lifetime) = match session.obtain_and_verify(app, scheme, complete).await {
        Ok(verified) => verified,
        Err(cause) if cause.is(&errors::CREDENTIAL_REJECTED) || cause.is(&errors::UNAVAILABLE) => {
            let mut form = session.form(&[], &submitted);
            let problem = match cause.is(&errors::UNAVAILABLE) {
                true => "it does not answer at the moment, try again in a few minutes",
                false => "it did not accept the values, check them or create new ones there",
            };
            form.problem = Some(problem.to_owned());
            return Ok(Submitted::ShowPage(LinkPage::Form(form)));
        }
        Err(cause) => return Err(cause),
    };
    session.connect(app, scheme, &values, lifetime).await
}

impl App {
    /// Returns the CSRF token of a link's form, so that no other page can submit the form.
    #[must_use]
    pub fn form_token(&self, token: &str, browser: &str) -> String {
        let message = format!("{} {token} {browser}", token.len());
        self.vault.hash_text("forms", &message)
    }
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
    config: Record<AuthConfig>,
    release: Arc<Release>,
    values: Values,
    /// Address of the page, under the name that responses show it by.
    page_url: Option<(String, Value)>,
    brand: Brand,
    scopes: Vec<String>,
}

async fn load_link(app: &App, token: &str) -> Result<LinkState> {
    let name = app.attempt_record_id(Step::Link, token);
    let attempt = app
        .store
        .lookup::<ConnectionAttempt>(&name)
        .await?
        .filter(|attempt| attempt.body.step == Step::Link)
        .ok_or_else(errors::attempt_unknown)?;
    let project = app.attempt_project(&attempt).await?;
    let account = record(app, &project, &attempt.body.account)
        .await
        .map_err(link_gone)?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let toolkit_logo =
        (!release.logo.is_empty()).then(|| format!("{}/logos/{}", app.base_url(), release.slug));
    let project_logo = project.stored.config.logo_url.clone();
    let brand = Brand {
        project: project.shown_name().to_owned(),
        toolkit: release.name.clone(),
        logos: project_logo.into_iter().chain(toolkit_logo).collect(),
        return_url: attempt.body.callback_url.clone(),
    };
    if account.body.attempt_number != attempt.body.attempt_number {
        return Ok(LinkState::Closed(LinkPage::Used(brand)));
    }
    let config = auth_configs::find(&app.store, &project.id, &account.body.auth_config)
        .await?
        .filter(|config| config.body.status == auth_configs::Status::Enabled);
    let (true, Some(config)) = (attempt.body.until > app.clock.now(), config) else {
        return Ok(LinkState::Closed(LinkPage::Expired(brand)));
    };
    let (mut values, _) = open_credential(app, &account).await?;
    let page_url = values.shift_remove_entry(REDIRECT_URL_VALUE);
    let scopes = match requested_scopes(app, &config, &release).await {
        Err(cause) if cause.is(&errors::NO_MANAGED_AUTH) => {
            tracing::warn!(
                toolkit = &*release.slug,
                auth_config = &*config.id,
                "a link page connects nothing: the toolkit has no OAuth app; set one with `toolhost oauth-apps set`"
            );
            return Ok(LinkState::Closed(LinkPage::NoOauthApp(brand)));
        }
        scopes => scopes?,
    };
    Ok(LinkState::Open(Box::new(LinkSession {
        attempt,
        project,
        account,
        config,
        release,
        values,
        page_url,
        brand,
        scopes,
    })))
}

/// Returns the scopes that a connection by an auth config asks its user for.
async fn requested_scopes(
    app: &App,
    config: &Record<AuthConfig>,
    release: &Release,
) -> Result<Vec<String>> {
    let Some(scheme) = release.scheme(config.body.scheme) else {
        return Ok(Vec::new());
    };
    let Some(oauth2) = &scheme.oauth2 else {
        return Ok(Vec::new());
    };
    let mut client = app.accounts.client_context(config).await?;
    client.add_tool_scopes(&config.body, scheme, release);
    let (scopes, user_scopes) = (&client.scopes, &client.user_scopes);
    Ok(oauth::requested_scopes(oauth2, scopes, user_scopes))
}

/// Rewrites the problem with a value for people: they know nothing of patterns.
fn for_people(problem: &str) -> String {
    if problem.starts_with("is required") || problem == scheme::EMPTY_PROBLEM {
        "A value is required.".to_owned()
    } else if problem.starts_with("does not match") {
        "The value does not have the expected form.".to_owned()
    } else {
        format!("The value {problem}.")
    }
}

fn text(values: &Values, name: &str) -> Option<String> {
    values.get(name).and_then(scheme::text)
}

impl LinkSession {
    fn scheme(&self) -> Result<&AuthScheme> {
        self.release
            .scheme(self.account.body.scheme)
            .ok_or_else(errors::attempt_unknown)
    }

    /// Replaces the credential of the account. Its status changes as after the start of an authorization,
    /// or without one as after its fields were filled in. Fails if the link does not belong to the account's
    /// attempt any more, or the auth config allows no new connections.
    async fn change(
        &self,
        app: &App,
        credential: &Credential,
        started: Option<&AuthorizationStarted>,
    ) -> Result<()> {
        let project = &self.project;
        let id = &self.attempt.body.account;
        let changed = app.store.change(&COLLECTION, id.as_str(), || async {
            let now = app.clock.now();
            let config = enabled_config(app, project, &self.account.body.auth_config).await?;
            let mut account = record(app, project, id).await.map_err(link_gone)?;
            if account.body.attempt_number != self.attempt.body.attempt_number {
                return Err(errors::attempt_unknown());
            }
            let (_, old) = open_credential(app, &account).await?;
            let body = credential.clone();
            let mut batch = Batch::at(now)
                .check(&config)
                .update(&Record { body, ..old });
            let event = if let Some(started) = started {
                batch = batch.insert(project.id.as_str(), &started.name, &started.attempt);
                Event::Redirected
            } else {
                account.body.attempt_number += 1;
                Event::Filled
            };
            let status = account.body.status.after(event);
            let status = status.ok_or_else(errors::attempt_unknown)?;
            account.body.set_status(status, None, now);
            Ok((batch.update(&account), ()))
        });
        Ok(changed.await?)
    }

    /// Returns the values of the account with those that were submitted for the scheme's fields. An
    /// empty secret field keeps its stored value.
    fn with_submitted(&self, scheme: &AuthScheme, submitted: &Values) -> Values {
        let mut values = self.values.clone();
        for field in &scheme.fields {
            let Some(value) = submitted.get(&field.name) else {
                continue;
            };
            let is_empty = value.as_str().is_none_or(str::is_empty);
            if !(field.secret && is_empty && values.contains_key(&field.name)) {
                values.insert(field.name.clone(), value.clone());
            }
        }
        values
    }

    /// Starts the authorization at the provider, to which it redirects the browser.
    async fn redirect(&self, app: &App, complete: Values, browser: &str) -> Result<Submitted> {
        let project = &self.project;
        let id = &self.attempt.body.account;
        let input = AuthorizationInput {
            project,
            id,
            attempt_number: self.account.body.attempt_number,
            config: &self.config,
            release: &self.release,
            values: &complete,
            callback_url: self.attempt.body.callback_url.clone(),
            browser: Some(app.browser_hash(browser)),
        };
        let started = input.start_authorization(app).await?;
        let mut pending = complete;
        pending.extend(self.page_url.clone());
        let credential = app.accounts.seal(&project.id, id, &pending).await?;
        self.change(app, &credential, Some(&started)).await?;
        Ok(Submitted::Redirect(started.url))
    }

    /// Connects the account with values that need no authorization, and redirects the browser back.
    async fn connect(
        &self,
        app: &App,
        scheme: &AuthScheme,
        values: &Values,
        lifetime: Option<Duration>,
    ) -> Result<Submitted> {
        let id = &self.attempt.body.account;
        let (tokens, project, now) = (&app.accounts, &self.project.id, app.clock.now());
        let credential = tokens
            .build_credential(project, id, Some(scheme), values, lifetime, now)
            .await?;
        self.change(app, &credential, None).await?;
        let callback_url = self.attempt.body.callback_url.as_deref();
        let url = app.return_url(callback_url, id, Ok(()));
        Ok(Submitted::Redirect(url))
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
            (values, lifetime) = app.accounts.obtain(&self.config, scheme, values).await?;
        }
        if scheme.verify.is_some() {
            let (config, release) = (Some(&self.config), &self.release);
            let values = values.clone();
            verify_values(app, &self.project, config, release, scheme.mode, values).await?;
        }
        Ok((values, lifetime))
    }

    /// Builds the form with the submitted values and their problems. Each problem is one line that
    /// starts with the name of its field.
    fn form(&self, problems: &[String], submitted: &Values) -> Form {
        let declared = self.scheme().map_or(&[][..], |scheme| &scheme.fields);
        // A known secret is neither shown nor requested again.
        let open_fields = declared.iter().filter(|field| {
            !field.hidden && (!field.secret || text(&self.values, &field.name).is_none())
        });
        let form_fields = open_fields.map(|field| {
            let value = text(submitted, &field.name)
                .or_else(|| text(&self.values, &field.name))
                .or_else(|| field.default.clone());
            let mut lines = problems.iter();
            let line = lines.find_map(|line| line.strip_prefix(&field.name)?.strip_prefix(": "));
            FormField {
                field: field.clone(),
                value: value.filter(|_| !field.secret).unwrap_or_default(),
                problem: line.map(for_people),
            }
        });
        let shown_fields: Vec<_> = form_fields.collect();
        let problem = problems.iter().find(|line| {
            let (name, _) = line.split_once(": ").unwrap_or_default();
            !shown_fields.iter().any(|shown| shown.field.name == name)
        });
        let redirects = self.account.body.scheme.redirects();
        Form {
            brand: self.brand.clone(),
            fields: shown_fields,
            scopes: self.scopes.clone(),
            problem: problem.cloned(),
            redirects,
        }
    }
}
