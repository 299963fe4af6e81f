//! The methods that an MCP client may call.

use app::agents::{self, SessionCaller};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
        GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, ServerNotification,
        SubscriptionFilter, ToolListChangedNotification,
    },
    service::{RequestContext, SubscriptionContext},
};

use super::{
    approving::CallApproval,
    changes::ToolListChanges,
    connecting::{Consent, UrlRequest},
    endpoint::{Caller, Endpoint, cancelled, internal},
    progress::ProgressReports,
    prompts, resources,
    results::Answer,
};

/// Methods of all endpoints.
const KNOWN_METHODS: &str =
    "initialize, ping, server/discover, subscriptions/listen, tools/list, tools/call";
/// Further methods of the endpoint of a session.
const SESSION_METHODS: &str = "prompts/list, prompts/get, resources/list, resources/read";

impl Endpoint {
    /// Returns the caller of a session, which alone has prompts and resources.
    fn session(&self) -> Result<&SessionCaller, ErrorData> {
        match &self.caller {
            Caller::Session(caller) => Ok(caller),
            Caller::Server(_) => Err(self.unknown_method()),
        }
    }

    /// Returns the error for a method that the endpoint does not have. It does not repeat the name, which has
    /// any length.
    fn unknown_method(&self) -> ErrorData {
        let known = match self.caller {
            Caller::Server(_) => KNOWN_METHODS.to_owned(),
            Caller::Session(_) => format!("{KNOWN_METHODS}, {SESSION_METHODS}"),
        };
        let problem = format!("unknown method: this server knows {known}");
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, problem, None)
    }
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
        match &self.caller {
            Caller::Server(caller) => implementation.title = Some(caller.name().to_owned()),
            Caller::Session(caller) => {
                let prompt = agents::assistive_prompt(caller.config());
                info.instructions = Some(self.server.branding.rename_slugs(&prompt).into_owned());
            }
        }
        info.server_info = implementation;
        info
    }

    /// Returns `None` if the client accepts no stream, or asks in a batch. It is told that there are no
    /// subscriptions.
    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let accepted = SubscriptionFilter::builder().tools_list_changed().build();
        self.stream.is_some().then_some(accepted)
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
        self.page(cursor.as_deref())?.into_result()
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.session()?;
        let cursor = request.and_then(|request| request.cursor);
        resources::list(self.app(), caller, cursor.as_deref()).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.session()?;
        let read = resources::read(self.app(), caller, &request.uri).await?;
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let caller = self.session()?;
        let listed = prompts::list(&self.server, caller).await;
        Ok(ListPromptsResult::with_all_items(listed.map_err(internal)?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = self.session()?;
        let arguments = request.arguments.unwrap_or_default();
        let found = prompts::get(&self.server, caller, &request.name, arguments).await;
        let found = found.map_err(|cause| match cause.info().class {
            app::Class::NotFound => ErrorData::invalid_params(cause.to_string(), None),
            _ => internal(cause),
        });
        Ok(found?.into())
    }

    async fn on_custom_request(
        &self,
        _: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(self.unknown_method())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let consent = Consent::new(request.input_responses.as_ref());
        let approval = CallApproval::new(&request, &context);
        let name = request.name.into_owned();
        let arguments = self.call_arguments();
        let running = self.begin(&context.id);
        let endpoint = self.clone();
        let tool = name.clone();
        let mut call = Box::pin(async move {
            // `rmcp` runs a call in a task other than that of the connection.
            let shares = &endpoint.app().shares;
            let owner = shares.owner(&endpoint.caller.project().tenant);
            let call = endpoint.call_until_cancelled(running, &tool, arguments, consent, approval);
            shares.measure(&owner, call).await
        });
        let recipes = match &self.caller {
            Caller::Server(_) => None,
            Caller::Session(caller) => Some(&caller.progress),
        };
        let mut reports = ProgressReports::new(&context, recipes, self.may_stream);
        reports.send().await;
        loop {
            tokio::select! {
                called = &mut call => {
                    let Some(called) = called else {
                        break;
                    };
                    let way = UrlRequest::new(&context, self.opens_urls());
                    let outcome = self.respond(&name, called, consent, way).await?;
                    return Ok(Answer::from(outcome).into());
                }
                // The client disconnected, or the server stops.
                () = context.ct.cancelled() => break,
                () = reports.due() => reports.send().await,
            }
        }
        Err(cancelled())
    }
}
