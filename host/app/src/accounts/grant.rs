//! Selects the credential of a call and grants it to the sandbox.
//!
//! A named account must belong to the project and the toolkit, and must belong to the user or be
//! shared with the user. If the call names no account, the newest active private account of the
//! user and toolkit is used whose auth config still exists. The credential is decrypted for one
//! call and dropped with it. A token that expires soon is refreshed before the call. A token that
//! the provider rejects is refreshed once, and the call continues with the new token.
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use manifest::{AuthMode, Placement};
use sandbox::{Credential, Grant, GrantError, Secret};
use serde_json::Value;
use store::{Query, Record};

use super::{
    Account, AccountType, Status, TokenManager, Values, open_credential, record,
    refresh::{RefreshReason, TokenOwner, access_token},
    scheme,
};
use crate::{
    App, Error, Result,
    accounts::auth_configs::{self, AuthConfig},
    catalog::{LATEST, Release, ResolvedTool},
    core::ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// Headers that frame or route the message. A custom credential cannot set them.
const FORBIDDEN_HEADERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// Number of accounts read at once after the auth config of the newest one was found deleted.
const ACCOUNT_PAGE_SIZE: u64 = 100;
/// Minimum length in bytes of a custom parameter that is treated as a secret. A parameter may be
/// `v=2`, and a shorter limit would remove every 2 from the response.
const MIN_SECRET_BYTES: usize = 6;

/// Credential that comes with the request instead of from a stored account.
#[derive(Debug)]
pub enum CustomCredential {
    /// Parts to add to each outgoing request unchanged.
    Parameters {
        /// Headers and query parameters.
        parameters: Vec<CustomParameter>,
        /// Members to add to each JSON object or form body.
        body: Values,
        /// Base URL, passed to the toolkit as its field `base_url`.
        base_url: Option<String>,
    },
    /// Values of all fields of a scheme.
    Connection {
        /// Name of the scheme.
        scheme: String,
        /// Slug of the toolkit.
        toolkit: String,
        /// Values of the fields.
        values: Values,
    },
}

/// Part to add to an outgoing request.
#[derive(Debug, Clone)]
pub enum CustomParameter {
    /// Header name and value.
    Header(String, String),
    /// Query parameter name and value.
    Query(String, String),
}

/// Origin of the credential of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A connected account.
    ConnectedAccount,
    /// All fields of a scheme came with the request.
    InstantAccount,
    /// Headers, query parameters or body members came with the request.
    CustomAuth,
    /// No credential was needed.
    NoAuth,
}

/// Account or credential that a caller selects.
#[derive(Debug)]
pub(crate) struct CredentialChoice {
    pub user_id: Option<String>,
    pub account: Option<AccountId>,
    pub custom: Option<CustomCredential>,
}

/// Access to one credential during one call.
pub(crate) struct Granted {
    pub grant: Option<Arc<dyn Grant>>,
    /// Fields that the toolkit may read.
    pub fields: Vec<(String, String)>,
    pub account: Option<AccountId>,
    pub auth_config: Option<AuthConfigId>,
    pub source: Source,
}

/// Selects the credential for a tool.
pub(crate) async fn grant(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    user: &str,
    choice: CredentialChoice,
) -> Result<Granted> {
    match (choice.custom, choice.account) {
        (Some(custom), _) => custom_grant(found, custom),
        (None, Some(id)) => {
            grant_named(
                app,
                project,
                found,
                &id,
                choice.user_id.is_some().then_some(user),
            )
            .await
        }
        (None, None) if found.tool.no_auth => Ok(Granted::none()),
        (None, None) => grant_newest(app, project, found, user).await,
    }
}

async fn grant_named(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    id: &AccountId,
    user: Option<&str>,
) -> Result<Granted> {
    if user.is_none() && project.stored.config.two_factor {
        return Err(Error::AccountUserMissing(id.to_string()));
    }
    let record = record(app, project, id)
        .await
        .map_err(|cause| match cause {
            Error::AccountNotFound(_) => Error::NamedAccountNotFound(id.to_string()),
            other => other,
        })?;
    check_user_allowed(&record, user)?;
    if *record.body.toolkit != *found.release.slug {
        // The account exists but belongs to another toolkit.
        return Err(Error::NoAccount {
            user: record.body.user_id,
            toolkit: found.release.slug.to_string(),
        });
    }
    grant_account(app, project, found, record).await
}

/// Rejects a user who may not use the account. If no user is named, the project itself uses the
/// account.
fn check_user_allowed(record: &Record<Account>, user: Option<&str>) -> Result<()> {
    let Account {
        user_id, sharing, ..
    } = &record.body;
    let Some(user) = user.filter(|user| !sharing.admits(user_id, user)) else {
        return Ok(());
    };
    let account = record.id.clone();
    let user = crate::core::truncate(user);
    Err(match sharing.account_type {
        AccountType::Private => Error::AccountUserMismatch { account, user },
        AccountType::Shared => Error::AccountNotShared { account, user },
    })
}

async fn grant_newest(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    user: &str,
) -> Result<Granted> {
    let toolkit = &*found.release.slug;
    let mut query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("toolkit", toolkit)
        .is("status", Status::Active.as_str())
        .is_not("account_type", AccountType::Shared.as_str())
        .descending()
        .page(0, 1);
    let mut gone = HashSet::new();
    loop {
        let page = app.store.list::<Account>(&query).await?;
        for record in page.items {
            if gone.contains(&record.body.auth_config) {
                continue;
            }
            if auth_configs::find(app, project, &record.body.auth_config)
                .await?
                .is_some()
            {
                return grant_account(app, project, found, record).await;
            }
            gone.insert(record.body.auth_config);
        }
        let missing = || Error::NoAccount {
            user: crate::core::truncate(user),
            toolkit: toolkit.to_owned(),
        };
        query = query
            .after(page.next.ok_or_else(missing)?)
            .page(0, ACCOUNT_PAGE_SIZE);
    }
}

async fn grant_account(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    record: Record<Account>,
) -> Result<Granted> {
    let (values, proxy) = load_active(app, project, &found.tool.slug, &record).await?;
    let mut granted =
        refreshing_grant(app, project, &found.release, &record, &values)?.via_proxy(proxy);
    granted.account = Some(AccountId::parse(&record.id)?);
    granted.auth_config = Some(record.body.auth_config);
    granted.source = Source::ConnectedAccount;
    Ok(granted)
}

/// Returns the values and the proxy of an account that is active and that this tool may use.
async fn load_active(
    app: &App,
    project: &Project,
    tool: &str,
    record: &Record<Account>,
) -> Result<(Values, Option<Arc<net::Proxy>>)> {
    let not_active = |state: &str| Error::AccountNotActive {
        account: record.id.clone(),
        state: state.to_owned(),
    };
    if record.body.status != Status::Active {
        return Err(not_active(record.body.status.as_str()));
    }
    let config = auth_configs::find(app, project, &record.body.auth_config).await?;
    let config = config.ok_or_else(|| not_active("without its auth config, which was deleted"))?;
    if !config.body.allows(tool) {
        return Err(Error::ToolNotAllowed {
            config: config.id,
            tool: tool.to_owned(),
        });
    }
    let proxy = auth_configs::net_proxy(app, project, &config).await?;
    let values = match record.body.scheme {
        mode if mode.has_flow() => {
            app.accounts
                .fresh_values(
                    &TokenOwner::for_account(app, project, record)?,
                    RefreshReason::ExpiresSoon,
                )
                .await?
        }
        _ => open_credential(app, project, record).await?.0,
    };
    Ok((with_client(app, project, &config, values).await?, proxy))
}

/// Adds the client's keys to the values if the scheme needs them to sign: an OAuth 1 request is
/// signed by client and account.
pub(super) async fn with_client(
    app: &App,
    project: &Project,
    config: &Record<AuthConfig>,
    values: Values,
) -> Result<Values> {
    match config.body.scheme {
        AuthMode::Oauth1 => Ok(app
            .accounts
            .client_context(&project.id, config)
            .await?
            .client
            .merge_into(values)),
        _ => Ok(values),
    }
}

/// Grants a credential that is refreshed if the provider rejects it, if the scheme supports that.
fn refreshing_grant(
    app: &App,
    project: &Project,
    release: &Release,
    record: &Record<Account>,
    values: &Values,
) -> Result<Granted> {
    let mut granted = static_grant(release, record.body.scheme, values)?;
    if record.body.scheme.has_flow()
        && let (Some(scheme), Some(token)) =
            (release.scheme(record.body.scheme), access_token(values))
    {
        let credential = Arc::new(scheme::credential(scheme, values));
        granted.grant = Some(Arc::new(RefreshingGrant {
            manager: app.accounts.clone(),
            owner: TokenOwner::for_account(app, project, record)?,
            current: Mutex::new((credential, token.clone())),
        }));
    }
    Ok(granted)
}

fn static_grant(release: &Release, mode: AuthMode, values: &Values) -> Result<Granted> {
    let Some(scheme) = release.scheme(mode) else {
        if mode == AuthMode::NoAuth {
            return Ok(Granted::none());
        }
        let toolkit = release.slug.to_string();
        return Err(Error::SchemeNotOffered {
            toolkit,
            scheme: mode.as_str().to_owned(),
        });
    };
    let fields = scheme::open_fields(scheme, values);
    Ok(Granted::new(
        scheme::credential(scheme, values),
        fields,
        Source::InstantAccount,
    ))
}

fn custom_grant(found: &ResolvedTool, custom: CustomCredential) -> Result<Granted> {
    match custom {
        CustomCredential::Connection {
            scheme,
            toolkit,
            values,
        } => {
            if !toolkit.eq_ignore_ascii_case(&found.release.slug) {
                let text = format!(
                    "custom_connection_data.toolkitSlug: the tool belongs to {}",
                    found.release.slug
                );
                return Err(Error::invalid(text));
            }
            let (mode, values) = validate_values(&found.release, &scheme, values)?;
            static_grant(&found.release, mode, &values)
        }
        CustomCredential::Parameters {
            parameters,
            body,
            base_url,
        } => {
            let texts = parameters
                .iter()
                .flat_map(secret_parts)
                .chain(body.values().flat_map(texts_in));
            let secrets: Vec<_> = texts
                .filter(|value| value.len() >= MIN_SECRET_BYTES)
                .map(Secret::from)
                .collect();
            scheme::check_secret_sizes(&secrets)
                .map_err(|why| Error::invalid(format!("custom_auth_params: {why}")))?;
            let placements = parameters.iter().map(placement).collect::<Result<_>>()?;
            let fields = base_url
                .map(|url| ("base_url".to_owned(), url))
                .into_iter()
                .collect();
            Ok(Granted::new(
                Credential {
                    placements,
                    body,
                    secrets,
                    ..Credential::default()
                },
                fields,
                Source::CustomAuth,
            ))
        }
    }
}

/// Validates the field values that came with a request.
fn validate_values(release: &Release, scheme: &str, values: Values) -> Result<(AuthMode, Values)> {
    let mode = auth_configs::offered_scheme(release, scheme)?;
    let values = match release.scheme(mode) {
        Some(scheme) => scheme::complete(scheme, values).map_err(Error::AccountFields)?,
        None => values,
    };
    Ok((mode, values))
}

/// Context of a proxy request: the provider's address and the credential.
pub(crate) struct ProxyContext {
    pub release: Arc<Release>,
    pub user: String,
    /// Base URL of the provider's API for this account, if known.
    pub base_url: Option<String>,
    pub granted: Granted,
}

/// Selects the credential for a proxy request. `tool` is the name that the auth config must allow.
pub(crate) async fn proxy_context(
    app: &App,
    project: &Project,
    tool: &str,
    choice: CredentialChoice,
) -> Result<ProxyContext> {
    let CredentialChoice {
        user_id,
        account,
        custom,
    } = choice;
    let user = user_id
        .map(|user| super::parse_user_id(Some(user)))
        .transpose()?;
    if let Some(CustomCredential::Connection {
        scheme,
        toolkit,
        values,
    }) = custom
    {
        let release = app.catalog.release(&toolkit, LATEST)?;
        let (mode, values) = validate_values(&release, &scheme, values)?;
        let granted = static_grant(&release, mode, &values)?;
        let user = user.map_or_else(|| super::parse_user_id(None), Ok)?;
        return Ok(ProxyContext {
            user,
            base_url: base_url(&release, mode, &values),
            release,
            granted,
        });
    }
    let id = account.ok_or(Error::AuthContextMissing)?;
    let record = record(app, project, &id)
        .await
        .map_err(|cause| match cause {
            Error::AccountNotFound(_) => Error::NamedAccountNotFound(id.to_string()),
            other => other,
        })?;
    check_user_allowed(&record, user.as_deref())?;
    let release = app.catalog.release(&record.body.toolkit, LATEST)?;
    let (values, proxy) = load_active(app, project, tool, &record).await?;
    let mode = record.body.scheme;
    let mut granted = refreshing_grant(app, project, &release, &record, &values)?.via_proxy(proxy);
    (granted.account, granted.source) = (Some(id), Source::ConnectedAccount);
    granted.auth_config = Some(record.body.auth_config);
    Ok(ProxyContext {
        user: user.unwrap_or(record.body.user_id),
        base_url: base_url(&release, mode, &values),
        release,
        granted,
    })
}

/// Returns the base URL of the scheme, or of the first exact host that the toolkit declares.
fn base_url(release: &Release, mode: AuthMode, values: &Values) -> Option<String> {
    let named = release
        .scheme(mode)
        .and_then(|scheme| scheme::base_url(scheme, values));
    named.or_else(|| {
        let rule = release
            .egress
            .iter()
            .find(|rule| !rule.host.starts_with('*'))?;
        let port = rule.port.map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("https://{}{port}", rule.host))
    })
}

/// Collects all texts inside a value, at any depth.
fn texts_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        Value::Object(members) => members.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns the value, and the part after the scheme name in a value such as `Bearer abc`.
fn secret_parts(parameter: &CustomParameter) -> impl Iterator<Item = &str> {
    let (CustomParameter::Header(_, value) | CustomParameter::Query(_, value)) = parameter;
    std::iter::once(value.as_str()).chain(value.split_once(' ').map(|(_, rest)| rest))
}

fn placement(parameter: &CustomParameter) -> Result<Placement> {
    match parameter {
        CustomParameter::Query(name, value) => Ok(Placement::Query {
            name: name.clone(),
            value: value.clone(),
        }),
        CustomParameter::Header(name, value) => {
            let name = name.to_ascii_lowercase();
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            let printable = value
                .bytes()
                .all(|b| b == b'\t' || (0x20..0x7f).contains(&b));
            if name.is_empty()
                || !name.bytes().all(token)
                || FORBIDDEN_HEADERS.contains(&name.as_str())
                || !printable
            {
                return Err(Error::invalid(format!(
                    "custom_auth_params: header `{}` cannot be set",
                    crate::core::truncate(&name)
                )));
            }
            Ok(Placement::Header {
                name,
                value: value.clone(),
            })
        }
    }
}

impl Granted {
    fn none() -> Self {
        Self {
            grant: None,
            fields: Vec::new(),
            account: None,
            auth_config: None,
            source: Source::NoAuth,
        }
    }

    fn new(credential: Credential, fields: Vec<(String, String)>, source: Source) -> Self {
        let grant: Arc<dyn Grant> = Arc::new(StaticGrant(Arc::new(credential)));
        Self {
            grant: Some(grant),
            fields,
            account: None,
            auth_config: None,
            source,
        }
    }

    /// Routes the requests through a proxy, if one is set.
    fn via_proxy(self, proxy: Option<Arc<net::Proxy>>) -> Self {
        let Some(proxy) = proxy else { return self };
        let grant = self
            .grant
            .unwrap_or_else(|| Arc::new(StaticGrant(Arc::default())));
        Self {
            grant: Some(Arc::new(ProxiedGrant { grant, proxy })),
            ..self
        }
    }
}

/// A credential whose requests are routed through a proxy.
struct ProxiedGrant {
    grant: Arc<dyn Grant>,
    proxy: Arc<net::Proxy>,
}

#[async_trait]
impl Grant for ProxiedGrant {
    async fn credential(&self) -> std::result::Result<Arc<Credential>, GrantError> {
        self.grant.credential().await
    }

    async fn refresh(
        &self,
        rejected: &Credential,
    ) -> std::result::Result<Option<Arc<Credential>>, GrantError> {
        self.grant.refresh(rejected).await
    }

    fn proxy(&self) -> Option<Arc<net::Proxy>> {
        Some(self.proxy.clone())
    }
}

/// A credential that cannot be refreshed.
struct StaticGrant(Arc<Credential>);

#[async_trait]
impl Grant for StaticGrant {
    async fn credential(&self) -> std::result::Result<Arc<Credential>, GrantError> {
        Ok(self.0.clone())
    }

    async fn refresh(
        &self,
        _rejected: &Credential,
    ) -> std::result::Result<Option<Arc<Credential>>, GrantError> {
        Ok(None)
    }
}

/// A token of an account that is refreshed if the provider rejects it.
struct RefreshingGrant {
    manager: Arc<TokenManager>,
    owner: TokenOwner,
    /// Current credential and its token.
    current: Mutex<(Arc<Credential>, String)>,
}

#[async_trait]
impl Grant for RefreshingGrant {
    async fn credential(&self) -> std::result::Result<Arc<Credential>, GrantError> {
        Ok(self
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .clone())
    }

    async fn refresh(
        &self,
        rejected: &Credential,
    ) -> std::result::Result<Option<Arc<Credential>>, GrantError> {
        let (current, token) = self
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        // Another request of the same call has already refreshed the token.
        if current.secrets != rejected.secrets {
            return Ok(Some(current));
        }
        let values = self
            .manager
            .fresh_values(&self.owner, RefreshReason::Rejected(token.clone()))
            .await;
        let values = values.map_err(|cause| GrantError(cause.to_string()))?;
        let scheme = self
            .owner
            .scheme()
            .map_err(|cause| GrantError(cause.to_string()))?;
        let Some(fresh) = access_token(&values).filter(|fresh| **fresh != token) else {
            return Ok(None);
        };
        let credential = Arc::new(scheme::credential(scheme, &values));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) =
            (credential.clone(), fresh.clone());
        Ok(Some(credential))
    }
}

/// A credential to verify with the request that its toolkit declares for this purpose.
pub(crate) struct CredentialCheck<'a> {
    pub project: &'a Project,
    pub release: &'a Release,
    pub mode: AuthMode,
    pub values: &'a Values,
    /// The proxy of the auth config, if it has one.
    pub proxy: Option<Arc<net::Proxy>>,
}

/// The function that sends the request of a [`CredentialCheck`]. It belongs to the module that runs
/// requests, which is above this one, and is set where the [`App`] is put together.
///
/// It fails with [`Error::CredentialRejected`] if the provider rejects the credential, and also if
/// the toolkit declares no such request or the provider does not respond.
pub(crate) type VerifyCredential =
    for<'a> fn(&'a App, CredentialCheck<'a>) -> BoxFuture<'a, Result<()>>;

/// Verifies values under an auth config: with its client and through its proxy.
pub(super) async fn verify_values(
    app: &App,
    project: &Project,
    config: &Record<AuthConfig>,
    release: &Release,
    mode: AuthMode,
    values: Values,
) -> Result<()> {
    let values = with_client(app, project, config, values).await?;
    let check = CredentialCheck {
        project,
        release,
        mode,
        values: &values,
        proxy: auth_configs::net_proxy(app, project, config).await?,
    };
    (app.verify_credential)(app, check).await
}

impl CredentialCheck<'_> {
    /// Returns the base URL of the provider's API, if it is known.
    pub(crate) fn base_url(&self) -> Option<String> {
        base_url(self.release, self.mode, self.values)
    }

    /// Returns the credential for the request, routed through the proxy.
    pub(crate) fn grant(&self) -> Result<Option<Arc<dyn Grant>>> {
        let granted = static_grant(self.release, self.mode, self.values)?;
        Ok(granted.via_proxy(self.proxy.clone()).grant)
    }

    /// Returns the text of a field.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).and_then(scheme::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_secrets_are_found_at_any_depth() {
        let value = serde_json::json!({ "a": "one", "b": [{ "c": "two" }, 3, null, "three"] });
        assert_eq!(texts_in(&value), ["one", "two", "three"]);
    }

    #[test]
    fn custom_headers_cannot_frame_or_route_requests() {
        let header = |name: &str, value: &str| {
            placement(&CustomParameter::Header(name.into(), value.into()))
        };
        assert_eq!(
            header("X-Key", "v").unwrap(),
            Placement::Header {
                name: "x-key".into(),
                value: "v".into()
            }
        );
        for (name, value) in [
            ("Host", "a"),
            ("content-length", "0"),
            ("", "a"),
            ("a b", "a"),
            ("x", "a\r\nhost: b"),
        ] {
            assert!(header(name, value).is_err(), "{name}");
        }
    }
}
