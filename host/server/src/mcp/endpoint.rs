//! One request to an MCP endpoint: the methods that a client may call.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use app::{
    App, Error,
    agents::{
        self, SessionCaller, SessionExecute, mcp_servers::McpCaller, meta::MetaTool, recipes,
    },
    catalog::ResolvedTool,
    core::truncate,
};
use axum::{body::Body, http::Request, response::Response};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http_body_util::Full;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ConstString, ErrorCode,
        GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, Implementation,
        JsonObject, ListPromptsRequestMethod, ListPromptsResult, ListResourcesRequestMethod,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ProtocolVersion, ReadResourceRequestMethod, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, ServerNotification,
        SubscriptionFilter, Tool, ToolListChangedNotification,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::{
    changes::ToolListChanges,
    connecting::{self, CONNECTION_WAIT, Consent, is_connection_missing},
    cursor, prompts, resources,
    results::{Outcome, Source, executed, refused},
    tools,
};
use crate::{Server, api::tool_router::execution::execute_meta_tool, http::errors};

/// Tools on a page of `tools/list`.
pub(crate) const TOOLS_PER_PAGE: usize = 250;
/// Interval of notifications about the progress of a call.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// End of the id of a connection whose client opens addresses for its user.
pub(super) const OPENS_URLS_SUFFIX: &str = "+url";
/// Code of the error of a request that its client cancelled.
const CANCELLED: ErrorCode = ErrorCode(-32800);

/// Caller of tools, by the kind of endpoint.
#[derive(Clone)]
pub(super) enum Caller {
    Server(Arc<McpCaller>),
    Session(SessionCaller),
}

/// Endpoint for one request.
#[derive(Clone)]
pub(super) struct Endpoint {
    server: Arc<Server>,
    caller: Caller,
    /// Id of the client's connection.
    connection: Option<String>,
}

/// A tool of an endpoint.
enum Offered {
    Meta(MetaTool),
    Tool(ResolvedTool),
}

impl Endpoint {
    pub(super) fn new(server: Arc<Server>, caller: Caller, connection: Option<String>) -> Self {
        Self {
            server,
            caller,
            connection,
        }
    }

    /// Answers a request whose host and key are checked.
    pub(super) async fn answer(self, request: Request<Full<Bytes>>) -> Response {
        // The body was read within its limit.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(usize::MAX)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(self.clone()), sessions, config);
        service.handle(request).await.map(Body::new)
    }

    pub(super) fn app(&self) -> &App {
        &self.server.app
    }

    pub(super) fn is_serving(&self) -> bool {
        self.server.is_serving()
    }

    /// Returns the tools: meta tools first, then those of the catalog by slug.
    fn offered(&self) -> Vec<Offered> {
        match &self.caller {
            Caller::Server(caller) => {
                let tools = caller.tools(self.app()).into_iter();
                let helpers = caller.helper_tools().map(Offered::Meta);
                helpers.chain(tools.map(Offered::Tool)).collect()
            }
            Caller::Session(caller) => {
                let config = caller.config();
                let preloaded = agents::preloaded(&self.app().catalog.snapshot(), config);
                let meta = MetaTool::in_force(config).map(Offered::Meta);
                meta.chain(preloaded.into_iter().map(Offered::Tool))
                    .collect()
            }
        }
    }

    fn name_of(&self, offered: &Offered) -> String {
        match offered {
            Offered::Meta(tool) => tools::meta_name(*tool, &self.server.branding),
            Offered::Tool(found) => found.tool.slug.to_string(),
        }
    }

    fn describe(&self, offered: &Offered) -> Result<Tool, Error> {
        match offered {
            Offered::Meta(tool) => Ok(tools::meta_tool(*tool, &self.server.branding)),
            Offered::Tool(found) => tools::tool(found),
        }
    }

    /// Returns the page of tools after a cursor, which is the name of the last tool before it.
    fn page(&self, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
        let offered = self.offered();
        let begin = match cursor {
            None => 0,
            Some(cursor) => {
                let last = cursor::decode(cursor)?;
                let position = self.position_after(&offered, &last);
                position.ok_or_else(cursor::invalid)?
            }
        };
        let rest = &offered[begin..];
        let page = &rest[..rest.len().min(TOOLS_PER_PAGE)];
        let described = page.iter().map(|offered| self.describe(offered));
        let described = described.collect::<Result<_, _>>().map_err(internal)?;
        let last = page.last().filter(|_| page.len() < rest.len());
        Ok(ListToolsResult {
            next_cursor: last.map(|last| cursor::encode(&self.name_of(last))),
            ..ListToolsResult::with_all_items(described)
        })
    }

    /// Returns the position after a tool, or the place where it would be if it is gone.
    fn position_after(&self, offered: &[Offered], last: &str) -> Option<usize> {
        let found = offered.iter().position(|tool| self.name_of(tool) == last);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match found {
            Some(position) => Some(position + 1),
            None if last.is_empty() || !last.bytes().all(is_name) => None,
            None => {
                let follows = |tool: &Offered| match tool {
                    Offered::Meta(_) => false,
                    Offered::Tool(found) => *found.tool.slug > *last,
                };
                Some(offered.iter().position(follows).unwrap_or(offered.len()))
            }
        }
    }

    /// Returns a digest of the list, which changes with it.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for offered in self.offered() {
            self.name_of(&offered).hash(&mut hasher);
            if let Offered::Tool(found) = offered {
                found.release.version.to_string().hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Calls a tool. If the user has agreed to connect an account, the call waits for it.
    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        consent: Consent,
    ) -> Result<Outcome, Error> {
        let arguments = Bytes::from(serde_json::to_vec(&arguments).unwrap_or_default());
        if consent != Consent::Accepted {
            return self.call_once(name, arguments).await;
        }
        let deadline = Instant::now() + CONNECTION_WAIT;
        let accounts = app::accounts::commit_signal(self.app());
        loop {
            let called = self.call_once(name, arguments.clone()).await;
            let is_missing = called.as_ref().is_err_and(is_connection_missing);
            if !is_missing || Instant::now() >= deadline {
                return called;
            }
            // An account that another server connects gives no signal here.
            let _ = timeout(connecting::POLL_INTERVAL, accounts.committed()).await;
        }
    }

    /// Calls a tool once. The future is on the heap: it holds those of every kind of tool, and the
    /// futures of this module that await it would take more than the stack of a thread.
    fn call_once<'a>(
        &'a self,
        name: &'a str,
        arguments: Bytes,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        match &self.caller {
            Caller::Server(caller) => self.call_of_server(caller, name, arguments).boxed(),
            Caller::Session(caller) => self.call_in_session(caller, name, arguments).boxed(),
        }
    }

    async fn call_of_server(
        &self,
        caller: &McpCaller,
        name: &str,
        arguments: Bytes,
    ) -> Result<Outcome, Error> {
        let mut helpers = caller.helper_tools();
        if let Some(tool) = helpers.find(|tool| self.has_name(*tool, name)) {
            let session = caller.helper(self.app()).await?;
            return self.call_meta_tool(&session, tool, arguments).await;
        }
        let found = caller.tool(self.app(), name)?;
        let source = Source::of(&found);
        let execution = caller.execute(self.app(), found, arguments);
        Ok(Outcome::Untrusted(executed(execution.await?), source))
    }

    async fn call_in_session(
        &self,
        caller: &SessionCaller,
        name: &str,
        arguments: Bytes,
    ) -> Result<Outcome, Error> {
        let is_recipe = || recipes::is_recipe(self.app(), name);
        let (slug, source) = match self.offered_in_session(caller, name) {
            Ok(Offered::Meta(tool)) => return self.call_meta_tool(caller, tool, arguments).await,
            Ok(Offered::Tool(found)) => (found.tool.slug.to_string(), Source::of(&found)),
            // Recipes are called without being listed.
            Err(_) if is_recipe() => (name.to_owned(), Source::default()),
            Err(cause) => return Err(cause),
        };
        let request = SessionExecute {
            tool: slug,
            arguments,
            account: None,
        };
        let execution = agents::execute(self.app(), caller, request);
        Ok(Outcome::Untrusted(executed(execution.await?), source))
    }

    /// Returns the caller of a session, which alone has prompts.
    fn prompting<R: ConstString>(&self) -> Result<&SessionCaller, ErrorData> {
        match &self.caller {
            Caller::Session(caller) => Ok(caller),
            Caller::Server(_) => Err(ErrorData::method_not_found::<R>()),
        }
    }

    /// Calls a meta tool, also with a future on the heap.
    fn call_meta_tool<'a>(
        &'a self,
        caller: &'a SessionCaller,
        tool: MetaTool,
        arguments: Bytes,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        let execution = execute_meta_tool(&self.server, caller, tool, arguments);
        let outcome = async move {
            let executed = executed(execution.await?);
            Ok(if tool.returns_tool_data() {
                Outcome::Untrusted(executed, Source::default())
            } else {
                Outcome::Own(executed)
            })
        };
        outcome.boxed()
    }

    fn has_name(&self, tool: MetaTool, name: &str) -> bool {
        tools::meta_name(tool, &self.server.branding) == name
    }

    /// Finds a tool that a session lists.
    fn offered_in_session(&self, caller: &SessionCaller, name: &str) -> Result<Offered, Error> {
        let config = caller.config();
        let mut meta = MetaTool::in_force(config);
        if let Some(tool) = meta.find(|tool| self.has_name(*tool, name)) {
            return Ok(Offered::Meta(tool));
        }
        let found = agents::preloaded_tool(&self.app().catalog.snapshot(), config, name);
        let missing = || errors::mcp_tool_not_found(truncate(name));
        found.map(Offered::Tool).ok_or_else(missing)
    }

    /// Answers a call whose user has no account.
    async fn answer_not_connected(
        &self,
        name: &str,
        cause: &Error,
        consent: Consent,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let link = match &self.caller {
            Caller::Server(caller) => caller.link(self.app(), name).await,
            Caller::Session(caller) => agents::link_for_tool(self.app(), caller, name).await,
        };
        match link {
            Ok(Some(link)) => connecting::ask(link, consent, self.opens_urls(), context),
            Ok(None) | Err(_) => Ok(CallToolResult::from(refused(cause)).into()),
        }
    }

    /// Returns true if the client declared so when it opened its connection.
    fn opens_urls(&self) -> bool {
        let connection = self.connection.as_deref();
        connection.is_some_and(|id| id.ends_with(OPENS_URLS_SUFFIX))
    }
}

fn internal(cause: Error) -> ErrorData {
    tracing::error!(%cause, "tools or prompts cannot be listed");
    ErrorData::internal_error("internal error", None)
}

fn tools_changed() -> ServerNotification {
    ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default())
}

impl ServerHandler for Endpoint {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed();
        let capabilities = match self.caller {
            Caller::Server(_) => capabilities.build(),
            Caller::Session(_) => capabilities.enable_resources().enable_prompts().build(),
        };
        let mut info = ServerConfig::new(capabilities);
        let mut implementation = Implementation::new("toolhost", env!("CARGO_PKG_VERSION"));
        if let Caller::Server(caller) = &self.caller {
            implementation.title = Some(caller.name().to_owned());
        }
        info.server_info = implementation;
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
        let supported = versions.filter(|version| **version >= ProtocolVersion::V_2025_03_26);
        supported.cloned().collect()
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = ToolListChanges::watch(self.clone());
        let is_subscribed = context.accepted().tools_list_changed == Some(true);
        loop {
            let has_changed = tokio::select! {
                has_changed = changes.next() => has_changed,
                () = context.cancelled() => false,
            };
            if !has_changed {
                return Ok(());
            }
            if is_subscribed && context.sink().send(tools_changed()).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.page(cursor.as_deref())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let Caller::Session(caller) = &self.caller else {
            return Err(ErrorData::method_not_found::<ListResourcesRequestMethod>());
        };
        let cursor = request.and_then(|request| request.cursor);
        resources::list(self.app(), caller, cursor.as_deref()).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Caller::Session(caller) = &self.caller else {
            return Err(ErrorData::method_not_found::<ReadResourceRequestMethod>());
        };
        let read = resources::read(self.app(), caller, &request.uri).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let caller = self.prompting::<ListPromptsRequestMethod>()?;
        let listed = prompts::list(&self.server, caller).await;
        Ok(ListPromptsResult::with_all_items(listed.map_err(internal)?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.prompting::<GetPromptRequestMethod>()?;
        let arguments = request.arguments.unwrap_or_default();
        let found = prompts::get(&self.server, caller, &request.name, arguments).await;
        let found = found.map_err(|cause| match cause.info().class {
            app::Class::NotFound => ErrorData::invalid_params(cause.to_string(), None),
            _ => internal(cause),
        });
        Ok(found?.into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let id = context.id.clone().into_json_value().to_string();
        let running = self.server.mcp_calls.begin(self.connection.as_deref(), id);
        let consent = Consent::new(request.input_responses.as_ref());
        let name = &*request.name;
        let call = self.call(name, request.arguments.unwrap_or_default(), consent);
        let mut call = std::pin::pin!(call);
        let token = context.meta.get_progress_token();
        let begin = Instant::now();
        let report = async || {
            if let Some(token) = token.clone() {
                let seconds = begin.elapsed().as_secs_f64();
                let progress = ProgressNotificationParam::new(token, seconds)
                    .with_message(format!("running for {seconds:.0} s"));
                // A client that does not read it is noticed by the disconnection.
                let _ = context.peer.notify_progress(progress).await;
            }
        };
        report().await;
        let mut ticks = interval_at(begin + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                called = &mut call => return match called {
                    Ok(outcome) => Ok(CallToolResult::from(outcome).into()),
                    Err(cause) if is_connection_missing(&cause) => {
                        Box::pin(self.answer_not_connected(name, &cause, consent, &context)).await
                    }
                    Err(cause) => Ok(CallToolResult::from(refused(&cause)).into()),
                },
                // The client disconnected, or the server stops.
                () = context.ct.cancelled() => break,
                () = running.cancelled.notified() => break,
                _ = ticks.tick() => report().await,
            }
        }
        Err(ErrorData::new(CANCELLED, "the call was cancelled", None))
    }
}
