//! One request to an MCP endpoint: who calls, and the tools that the caller may call.

use std::sync::Arc;

use app::{
    App, Error,
    agents::{
        self, Config, SessionCaller, SessionExecute,
        mcp_servers::McpCaller,
        meta::{self, MetaTool},
        recipes,
    },
    catalog::ResolvedTool,
    core::{json, shown_slug, truncate},
    files,
    projects::SharedProject,
};
use axum::{
    body::Body,
    http::{HeaderMap, Request, request::Parts},
    response::Response,
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Server, errors, limiter::CallerPermit, permits};
use http_body_util::Full;
use manifest::did_you_mean;
use rmcp::{
    ErrorData,
    model::{ErrorCode, RequestId},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use tokio::time::Instant;

use super::{
    FIRST_VERSION_WITH_OUTPUT_SCHEMAS, PROTOCOL_VERSION,
    approving::CallApproval,
    calls::{self, Connection, RunningCall, cancellation},
    connecting::{self, CONNECTION_WAIT, Consent, UrlRequest, is_connection_missing},
    messages::arguments_of_call,
    results::{Outcome, Source, executed, refused, toolkit_of, untrusted},
    state::State,
    tools,
};

/// End of the id of a connection whose client opens addresses for its user.
pub(super) const OPENS_URLS_SUFFIX: &str = "+url";
/// Code of the error of a request that its client cancelled.
const REQUEST_CANCELLED: ErrorCode = ErrorCode(-32800);

/// Caller of tools, by the kind of endpoint.
#[derive(Clone)]
pub(super) enum Caller {
    Server(Arc<McpCaller>),
    Session(SessionCaller),
}

impl Caller {
    pub(super) fn project(&self) -> &SharedProject {
        match self {
            Self::Server(caller) => &caller.project,
            Self::Session(caller) => &caller.project,
        }
    }
}

/// A tool of an endpoint.
pub(super) enum Offered {
    Meta(MetaTool),
    Tool(ResolvedTool),
}

/// Endpoint for one request.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) server: Arc<Server>,
    pub(super) state: Arc<State>,
    pub(super) caller: Caller,
    /// The client's connection.
    connection: Option<Connection>,
    /// Permit of the stream of announcements that the request opens.
    pub(super) stream: Option<Arc<CallerPermit>>,
    /// True if the response may be a stream.
    pub(super) may_stream: bool,
    /// True if lists of tools have the schemas of results.
    pub(super) reads_output_schemas: bool,
    /// Arguments of the call in the message, as they are written.
    call_arguments: Option<Bytes>,
}

impl Endpoint {
    pub(super) fn new(
        server: Arc<Server>,
        state: Arc<State>,
        caller: Caller,
        connection: Option<Connection>,
    ) -> Self {
        Self {
            server,
            state,
            caller,
            connection,
            stream: None,
            may_stream: true,
            reads_output_schemas: false,
            call_arguments: None,
        }
    }

    /// Answers as the version of the protocol wants that the headers name.
    pub(super) fn of_version(mut self, headers: &HeaderMap) -> Self {
        let version = headers.get(&PROTOCOL_VERSION);
        self.reads_output_schemas =
            version.is_some_and(|version| *version >= *FIRST_VERSION_WITH_OUTPUT_SCHEMAS);
        self
    }

    /// Cancels a call of the client's connection by the id of its request, as JSON text.
    pub(super) async fn cancel(&self, call: &str) {
        if let Some(connection) = &self.connection {
            calls::cancel(self.app(), &self.state.calls, connection, call.to_owned()).await;
        }
    }

    /// Takes a permit for a stream of announcements.
    ///
    /// # Errors
    /// If the caller may have no further stream now.
    pub(super) fn open_stream(&mut self) -> Result<(), Error> {
        let permit = permits::open_stream(&self.server.limiter)?;
        self.stream = Some(Arc::new(permit));
        Ok(())
    }

    /// Keeps the arguments of a call, because numbers lose digits in the values of `rmcp`. Returns the message
    /// that it can read, with zeros for the numbers that are too large.
    pub(super) fn keep_arguments(&mut self, message: Bytes) -> Bytes {
        self.call_arguments = arguments_of_call(&message);
        match self.call_arguments {
            Some(_) => json::without_large_numbers(message),
            None => message,
        }
    }

    /// Returns the arguments of the call in the message, as they are written.
    pub(super) fn call_arguments(&self) -> Bytes {
        let kept = self.call_arguments.clone();
        kept.unwrap_or_else(|| Bytes::from_static(b"{}"))
    }

    /// Answers a request whose host and key are checked. The future is on the heap, so that requests
    /// that are answered without `rmcp` do not carry it.
    pub(super) fn answer_by_rmcp(self, head: Parts, body: Bytes) -> BoxFuture<'static, Response> {
        let request = Request::from_parts(head, Full::new(body));
        // The body was read within its limit.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(usize::MAX)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(self.clone()), sessions, config);
        let answered = async move { service.handle(request).await.map(Body::new) };
        answered.boxed()
    }

    pub(super) fn app(&self) -> &App {
        &self.server.app
    }

    /// Calls a tool until its client cancels the call with a notification. Returns `None` in that
    /// case.
    pub(super) async fn call_until_cancelled(
        &self,
        running: Option<RunningCall>,
        name: &str,
        arguments: Bytes,
        consent: Consent,
        approval: CallApproval,
    ) -> Option<Result<Outcome, Error>> {
        // The call is polled first: if it ends immediately, no waiter for a cancellation is
        // registered.
        tokio::select! {
            biased;
            called = self.call(name, arguments, consent, &approval) => Some(called),
            () = cancellation(running.as_ref()) => None,
        }
    }

    /// Calls a tool. If the user has agreed to connect an account, the call waits for it.
    async fn call(
        &self,
        name: &str,
        arguments: Bytes,
        consent: Consent,
        approval: &CallApproval,
    ) -> Result<Outcome, Error> {
        if consent != Consent::Accepted {
            return self.call_once(name, arguments, approval).await;
        }
        let deadline = Instant::now() + CONNECTION_WAIT;
        let accounts = app::accounts::commit_signal(self.app());
        let mut current = self.clone();
        loop {
            let called = current.call_once(name, arguments.clone(), approval).await;
            let is_missing = called.as_ref().is_err_and(is_connection_missing);
            if !is_missing || Instant::now() >= deadline {
                return called;
            }
            // An account that another server connects gives no signal here.
            accounts.committed_within(connecting::POLL_INTERVAL).await;
            match &mut current.caller {
                Caller::Session(caller) => *caller = caller.current(self.app()).await?.into_owned(),
                Caller::Server(caller) => *caller = Arc::new(caller.current(self.app()).await?),
            }
        }
    }

    /// Calls a tool once. The future is on the heap: it holds those of every kind of tool, and the
    /// futures of this module that await it would take more than the stack of a thread.
    fn call_once<'a>(
        &'a self,
        name: &'a str,
        arguments: Bytes,
        approval: &'a CallApproval,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        match &self.caller {
            Caller::Server(caller) => self.call_of_server(caller, name, arguments).boxed(),
            Caller::Session(caller) => {
                let called = self.call_in_session(caller, name, arguments, approval);
                called.boxed()
            }
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
        let execution = caller.execute(self.app(), found, arguments).await?;
        Ok(untrusted(execution, source))
    }

    async fn call_in_session(
        &self,
        caller: &SessionCaller,
        name: &str,
        arguments: Bytes,
        approval: &CallApproval,
    ) -> Result<Outcome, Error> {
        let (slug, source) = match self.offered_in_session(caller, name) {
            Ok(Offered::Meta(tool)) => return self.call_meta_tool(caller, tool, arguments).await,
            Ok(Offered::Tool(found)) => (found.tool.slug.to_string(), Source::of(&found)),
            // Recipes are called without being listed.
            Err(_) if recipes::is_recipe(self.app(), name) => {
                (name.to_owned(), Source::new(Vec::new()))
            }
            Err(cause) => return Err(cause),
        };
        let request = SessionExecute {
            tool: slug,
            arguments,
            account: None,
        };
        approval.execute(self.app(), caller, request, source).await
    }

    /// Calls a meta tool, also with a future on the heap.
    fn call_meta_tool<'a>(
        &'a self,
        caller: &'a SessionCaller,
        tool: MetaTool,
        arguments: Bytes,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        let outcome = async move {
            let server = &self.server;
            let mut execution = meta::execute(&server.app, caller, tool, arguments).await?;
            execution.data = server.branding.rename_result(tool, execution.data);
            Ok(if tool.returns_tool_data() {
                untrusted(execution, Source::new(Vec::new()))
            } else {
                Outcome::Own(executed(execution))
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
        let catalog = self.app().catalog.snapshot();
        let found = agents::preloaded_tool(&catalog, config, name);
        found.map(Offered::Tool).ok_or_else(|| {
            if agents::is_permitted(&catalog, config, name) {
                return errors::mcp_tool_not_listed(truncate(name));
            }
            if let Some(error) = meta::other_word_error(self.app(), name) {
                return error;
            }
            self.not_in_session(config, name)
        })
    }

    /// Returns the error for the name of a tool that a session does not have.
    fn not_in_session(&self, config: &Config, name: &str) -> Error {
        let meta_names =
            MetaTool::in_force(config).map(|tool| tools::meta_name(tool, &self.server.branding));
        let preloaded_names = agents::preloaded(&self.app().catalog.snapshot(), config)
            .into_iter()
            .map(|found| found.tool.slug.to_string());
        let similar = did_you_mean(name, meta_names.chain(preloaded_names));
        let name = shown_slug(name);
        let others = [MetaTool::SearchTools, MetaTool::MultiExecuteTool];
        if others.iter().all(|tool| tool.is_enabled(config)) {
            errors::mcp_tool_not_in_session(name, &similar)
        } else {
            errors::mcp_tool_not_found(name, &similar)
        }
    }

    /// Registers a call until its end, if the client has a connection.
    pub(super) fn begin(&self, id: &RequestId) -> Option<RunningCall> {
        self.state.calls.begin(self.connection.as_ref(), || {
            id.clone().into_json_value().to_string()
        })
    }

    /// Returns the outcome that answers a call that has ended.
    pub(super) async fn respond(
        &self,
        name: &str,
        called: Result<Outcome, Error>,
        consent: Consent,
        way: UrlRequest,
    ) -> Result<Outcome, ErrorData> {
        match called {
            Ok(outcome) if outcome.is_large() => Ok(Box::pin(self.cut(name, outcome)).await),
            Ok(outcome) => Ok(outcome),
            Err(cause) if is_connection_missing(&cause) => {
                Box::pin(self.answer_not_connected(name, &cause, consent, way)).await
            }
            Err(cause) => Ok(refused(&cause)),
        }
    }

    /// Stores data too large for a result as a file.
    async fn cut(&self, tool: &str, outcome: Outcome) -> Outcome {
        let (data, source) = match outcome {
            Outcome::Own(Ok(data)) => (data, None),
            Outcome::Untrusted(Ok(data), source) => (data, Some(source)),
            fitting => return fitting,
        };
        let made_by = (toolkit_of(source.as_ref()), tool);
        let project = self.caller.project();
        let stored = files::result_as_file(self.app(), project, made_by, data.clone()).await;
        Outcome::cut(&data, source, stored.map(|[result, _]| result))
    }

    /// Answers a call whose user lacks an account.
    async fn answer_not_connected(
        &self,
        name: &str,
        cause: &Error,
        consent: Consent,
        way: UrlRequest,
    ) -> Result<Outcome, ErrorData> {
        let link = match &self.caller {
            Caller::Server(caller) => caller.link(self.app(), name).await,
            Caller::Session(caller) => agents::link_for_tool(self.app(), caller, name).await,
        };
        match link {
            Ok(Some(link)) => connecting::ask(link, consent, way),
            Ok(None) | Err(_) => Ok(refused(cause)),
        }
    }

    /// Returns true if the client declared so when it opened its connection.
    pub(super) fn opens_urls(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.id.ends_with(OPENS_URLS_SUFFIX))
    }
}

pub(super) fn internal(cause: Error) -> ErrorData {
    tracing::error!(%cause, "tools or prompts cannot be listed");
    ErrorData::internal_error("internal error", None)
}

/// Returns the error of a call that its client cancelled.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::new(REQUEST_CANCELLED, "the call was cancelled", None)
}
