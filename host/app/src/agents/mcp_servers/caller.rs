//! Calls of tools at the address of an MCP server.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use manifest::did_you_mean;
use store::{Record, Window};

use super::{
    Selection,
    cache::{self, CachedServer},
    toolkit_of_config,
};
use crate::{
    App, Error, Result,
    accounts::{self, Account, NewLink, SharingChange, Values},
    agents::{
        Config, ConnectionLink, Credential, Filter, ManageConnections, SessionCaller, errors,
        mcp_oauth::Resource, meta::MetaTool,
    },
    catalog::ResolvedTool,
    core::{
        ids::{AccountId, AuthConfigId},
        request_id::RequestId,
        shown_slug, truncate,
    },
    projects::{self, SharedProject},
    runs::{self, Execution, Input, ToolCall},
};

/// The caller of tools at the address of an MCP server. Dropping the future of a call cancels the
/// call.
#[derive(Debug, Clone)]
pub struct McpCaller {
    /// The project of the server.
    pub project: SharedProject,
    server: Arc<CachedServer>,
    selection: Selection,
    request_id: RequestId,
    /// The key or access token of the request, if it has one.
    credential: Option<Credential>,
}

impl McpCaller {
    /// Reads the server at an address. The address needs no key, so that the project follows from
    /// the server. Fails if the server or its project does not exist.
    pub async fn open(
        app: &App,
        server: &str,
        selection: Selection,
        request_id: RequestId,
    ) -> Result<Self> {
        let missing = || errors::mcp_server_not_found(shown_slug(server));
        let cached = cache::lookup(app, server).await?.ok_or_else(missing)?;
        let project = projects::lookup_cached(app, &cached.project)
            .await
            .map_err(|cause| cause.replace_if(&errors::PROJECT_NOT_FOUND, missing))?;
        Ok(Self {
            project,
            server: cached,
            selection,
            request_id,
            credential: None,
        })
    }

    /// Returns the caller with the credential of its request.
    #[must_use]
    pub fn with_credential(self, credential: Option<Credential>) -> Self {
        Self { credential, ..self }
    }

    /// Returns the caller with the server as it is now, for a tool that starts after a wait. Fails if the
    /// server was deleted, the credential of the request revoked, or one is required by now.
    pub async fn current(&self, app: &App) -> Result<Self> {
        let (id, selection) = (&self.server.record.id, self.selection.clone());
        let current = Self::open(app, id, selection, self.request_id.clone()).await?;
        match &self.credential {
            Some(credential) => credential.check(app).await?,
            None if current.project.stored.config.require_mcp_key => {
                return Err(errors::credential_revoked());
            }
            None => {}
        }
        Ok(current.with_credential(self.credential.clone()))
    }

    /// Returns the address, as access tokens name it.
    #[must_use]
    pub fn resource(&self) -> Resource {
        Resource::server(self.server.record.id.clone(), self.selection.clone())
    }

    /// Returns the error for callers who may not know of the server.
    #[must_use]
    pub fn not_found(&self) -> Error {
        errors::mcp_server_not_found(&self.server.record.id)
    }

    /// Returns the display name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server.record.body.name
    }

    /// Returns the tools of the server, sorted by slug. Tools that were deprecated are left out.
    #[must_use]
    pub fn tools(&self, app: &App) -> Vec<ResolvedTool> {
        let server = &self.server.record.body;
        server.tools(&app.catalog.snapshot(), server.tools_as_of)
    }

    /// Returns the meta tools that connect accounts, if the address asks for them.
    pub fn helper_tools(&self) -> impl Iterator<Item = MetaTool> {
        let tools = [MetaTool::ManageConnections, MetaTool::WaitForConnections].into_iter();
        tools.filter(|_| self.selection.with_helper_tools)
    }

    /// Returns the caller of these meta tools: an unstored session of the user of the address, with the
    /// toolkits and the auth configs of the server. Fails if the user id is invalid, or if the address
    /// names only accounts that do not exist.
    pub async fn helper(&self, app: &App) -> Result<SessionCaller> {
        let mut auth_configs = BTreeMap::new();
        for id in &self.server.record.body.auth_configs {
            let toolkit = toolkit_of_config(app, &self.project, id).await?;
            auth_configs.extend(toolkit.map(|toolkit| (toolkit, id.clone())));
        }
        let config = Config {
            user_id: accounts::parse_user_id(self.user(app).await?.as_deref())?,
            toolkits: Some(Filter::Enable(self.server.record.body.toolkits.clone())),
            auth_configs,
            manage_connections: ManageConnections {
                wait_for_connections: true,
                ..ManageConnections::default()
            },
            ..Config::default()
        };
        let request_id = self.request_id.clone();
        Ok(SessionCaller::unstored(&self.project, config, request_id))
    }

    /// Finds a tool of the server by its name. Fails if the server lacks the tool.
    pub fn tool(&self, app: &App, name: &str) -> Result<ResolvedTool> {
        let catalog = app.catalog.snapshot();
        let server = &self.server.record.body;
        server.tool(&catalog, name).ok_or_else(|| {
            let tools = server.tools(&catalog, server.tools_as_of);
            let similar = did_you_mean(name, tools.iter().map(|found| &*found.tool.slug));
            errors::mcp_tool_not_found(shown_slug(name), &similar)
        })
    }

    /// Executes a tool of the server for the user of the address. Fails before the tool runs: if
    /// the user lacks an account (`NO_ACCOUNT`), if the address names only accounts that do not exist
    /// (`NAMED_ACCOUNT_NOT_FOUND`), or for a reason of `runs::execute`.
    pub async fn execute(
        &self,
        app: &App,
        found: ResolvedTool,
        arguments: Bytes,
    ) -> Result<Execution> {
        let toolkit = &*found.release.slug;
        let (user_id, account) = self.account(app, toolkit, found.tool.no_auth).await?;
        let call = ToolCall {
            user_id,
            account,
            custom: None,
            session: None,
            input: Input::Arguments(arguments),
            request_id: self.request_id.clone(),
        };
        runs::execute(app, &self.project, &found, call).await
    }

    /// Creates a link with which the user of the address connects an account for a tool. Returns
    /// `None` if the server lacks an auth config of the toolkit. Fails if the server lacks the tool,
    /// if the address names only accounts that do not exist, or for a reason of `accounts::link`.
    pub async fn link(&self, app: &App, name: &str) -> Result<Option<ConnectionLink>> {
        let toolkit = self.tool(app, name)?.release.slug.to_string();
        let Some(auth_config) = self.auth_config(app, &toolkit).await? else {
            return Ok(None);
        };
        let user_id = accounts::parse_user_id(self.user(app).await?.as_deref())?;
        let request = NewLink {
            auth_config,
            user_id: user_id.clone(),
            callback_url: None,
            values: Values::new(),
            alias: None,
            sharing: SharingChange::default(),
        };
        let link = accounts::link(app, &self.project, request).await?;
        Ok(Some(ConnectionLink {
            user_id,
            toolkit,
            url: link.url,
        }))
    }

    /// Returns the user for whom a tool of a toolkit runs, and the account that it uses; no account
    /// if any account of the user will do.
    async fn account(
        &self,
        app: &App,
        toolkit: &str,
        no_auth: bool,
    ) -> Result<(Option<String>, Option<AccountId>)> {
        if let Some(named) = self.named_account(app, Some(toolkit)).await? {
            let account = AccountId::parse(&named.id)?;
            let config = self.auth_config(app, toolkit).await?;
            // The address may name any account, and the auth config limits what tools may do.
            if config.is_some_and(|config| config != named.body.auth_config) {
                return Err(errors::named_account_not_found(account));
            }
            let user = self.selection.user_id.clone();
            return Ok((user.or(Some(named.body.user_id)), Some(account)));
        }
        let user = self.user(app).await?;
        if no_auth {
            return Ok((user, None));
        }
        let Some(config) = self.auth_config(app, toolkit).await? else {
            return Ok((user, None));
        };
        let id = accounts::parse_user_id(user.as_deref())?;
        let usable = accounts::session_accounts(app, &self.project, &id, toolkit, Some(&config));
        match usable.await?.first() {
            Some(account) => Ok((Some(id), Some(AccountId::parse(&account.record.id)?))),
            None => {
                let note =
                    accounts::inactive_account_note(app, &self.project, &id, toolkit).await?;
                Err(errors::no_account(truncate(&id), toolkit, &note))
            }
        }
    }

    /// Returns the user that the address names, or else the owner of the newest of its accounts;
    /// `None` if it names neither. Fails if it names only accounts that do not exist, also for a named
    /// user: other accounts of the user are not what the address was made for.
    async fn user(&self, app: &App) -> Result<Option<String>> {
        let Selection {
            user_id, accounts, ..
        } = &self.selection;
        let Some(account) = accounts.first() else {
            return Ok(user_id.clone());
        };
        let named = self
            .named_account(app, None)
            .await?
            .ok_or_else(|| errors::named_account_not_found(account))?;
        Ok(user_id.clone().or(Some(named.body.user_id)))
    }

    /// Returns the newest account of the address, of a toolkit if it is given.
    async fn named_account(
        &self,
        app: &App,
        toolkit: Option<&str>,
    ) -> Result<Option<Record<Account>>> {
        if self.selection.accounts.is_empty() {
            return Ok(None);
        }
        let named = self.selection.accounts.iter();
        let filter = accounts::Filter {
            ids: named.map(ToString::to_string).collect(),
            toolkits: toolkit.map(str::to_owned).into_iter().collect(),
            ..accounts::Filter::default()
        };
        let page = accounts::list(app, &self.project, &filter, Window::first(1)).await?;
        Ok(page.items.into_iter().next().map(|view| view.record))
    }

    /// Returns the server's auth config of a toolkit, even if the auth config is deleted.
    async fn auth_config(&self, app: &App, toolkit: &str) -> Result<Option<AuthConfigId>> {
        for id in &self.server.record.body.auth_configs {
            let config_toolkit = toolkit_of_config(app, &self.project, id).await?;
            if config_toolkit.as_deref() == Some(toolkit) {
                return Ok(Some(id.clone()));
            }
        }
        Ok(None)
    }
}
