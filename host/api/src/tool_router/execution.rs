//! Executions in a session: tools of toolkits and meta tools.

use std::collections::BTreeMap;

use app::{
    App, Error,
    agents::{
        self, Approvable, Approval, SessionCaller, SessionExecute,
        meta::{self, MetaTool},
        recipes,
    },
    core::{
        ids::{LogId, SessionId},
        shown_slug,
    },
};
use bytes::Bytes;
use http::{
    ApiResult, CURRENT_REQUEST, IN_TABLE, Path, ProjectKey, RawJson, SerializedJson, Server,
    UnparsedJson,
    approval::{DECLINED_MESSAGE, InputResponse},
    body::{Unfit, admit_unknown, borrowed},
    errors,
};
use manifest::did_you_mean;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    approval::{InputRequest, InputResponses, approval, questions},
    inline_tools::LOCAL_PREFIX,
    open,
    requests::ClientTools,
};

/// The body of an execution in a session.
// It borrows from the received bytes, so that arguments are not copied.
#[derive(Deserialize, ToSchema)]
#[schema(as = ExecuteInSession)]
pub(crate) struct ExecuteBody<'a> {
    /// Slug of a tool that the session permits, or of a meta tool.
    tool_slug: String,
    #[serde(borrow, default, deserialize_with = "object_text")]
    #[schema(value_type = Option<Object>)]
    arguments: Option<&'a RawValue>,
    /// Id or alias of the account to use.
    account: Option<String>,
    /// Answers to the `input_requests` of the result before.
    #[schema(value_type = Option<BTreeMap<String, InputResponse>>)]
    input_responses: Option<InputResponses>,
    /// `request_state` of the result before.
    request_state: Option<String>,
    /// Tools of the client, which it runs itself.
    experimental: Option<ClientTools>,
    /// No effect: results become files of the workbench as the session says.
    #[expect(dead_code, reason = "accepted without effect")]
    enable_auto_workbench_offload: Option<bool>,
}

/// The body of the execution of a meta tool.
#[derive(Deserialize, ToSchema)]
#[schema(as = ExecuteMetaInSession)]
pub(crate) struct ExecuteMetaBody<'a> {
    slug: String,
    #[serde(borrow, default, deserialize_with = "object_text")]
    #[schema(value_type = Option<Object>)]
    arguments: Option<&'a RawValue>,
    /// Tools of the client, which it runs itself.
    experimental: Option<ClientTools>,
    /// Answers to the `input_requests` of the result before.
    #[schema(value_type = Option<BTreeMap<String, InputResponse>>)]
    input_responses: Option<InputResponses>,
    /// `request_state` of the result before.
    request_state: Option<String>,
}

/// Outcome of an execution.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionResultType)]
pub(super) enum ResultType {
    Completed,
    Failed,
    InputRequired,
}

view! {
    /// The result of an execution in a session.
    #[schema(as = SessionExecuteResult)]
    pub(crate) struct ResultView {
        #[schema(value_type = Object)] data: RawJson,
        /// Null if the execution succeeded.
        error!: Option<String>,
        #[schema(value_type = String)] log_id: LogId,
        result_type: ResultType,
        /// Questions for the user; only with `input_required`. Nothing ran, and nothing was logged.
        input_requests?: Option<BTreeMap<&'static str, InputRequest>>,
        /// State that the repeated call sends with the answers; only with `input_required`.
        request_state?: Option<String>,
    }
}

impl ResultView {
    /// Returns the result of a call that did not run.
    fn not_run(app: &App, result_type: ResultType) -> Self {
        Self {
            data: RawJson(Bytes::from_static(b"{}")),
            error: None,
            log_id: app.sequence.log(app.clock.now()),
            result_type,
            input_requests: None,
            request_state: None,
        }
    }

    fn new(app: &App, outcome: Approvable) -> Self {
        match outcome {
            Approvable::Executed(execution) => Self {
                data: RawJson(execution.data),
                result_type: match execution.error {
                    None => ResultType::Completed,
                    Some(_) => ResultType::Failed,
                },
                error: execution.error,
                log_id: execution.log_id,
                input_requests: None,
                request_state: None,
            },
            Approvable::ApprovalRequired { message, state } => Self {
                input_requests: Some(questions(message)),
                request_state: Some(state),
                ..Self::not_run(app, ResultType::InputRequired)
            },
            Approvable::Declined => Self {
                error: Some(DECLINED_MESSAGE.to_owned()),
                ..Self::not_run(app, ResultType::Failed)
            },
        }
    }
}

/// A tool of a session, with its arguments.
struct Call {
    slug: String,
    arguments: Bytes,
    account: Option<String>,
    approval: Option<Approval>,
}

/// Executes a tool that the session permits, or a meta tool.
///
/// If the session requires approval of the call, the result is `input_required` with a question for
/// the user. The tool runs when the call is repeated within ten minutes with the answer.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The session does not permit the tool"),
    (status = 410, description = "The tool is deprecated in every version"),
    (status = 422, description = "The account cannot be used in its current status"),
))]
pub(crate) async fn execute(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    UnparsedJson { bytes, .. }: UnparsedJson<ExecuteBody<'static>>,
) -> ApiResult<SerializedJson<ResultView>> {
    let size = bytes.len();
    let parse = move || {
        let (body, warnings) = borrowed::<ExecuteBody<'_>>(&bytes)?;
        Ok::<_, Unfit>((read_call(&bytes, body), warnings))
    };
    let server = &key.server;
    let turns = &server.app.large_work;
    let parsed = turns.scan(&key.project.tenant, size, parse).await?;
    let (read, warnings) =
        parsed.map_err(|unfit| errors::session_invalid(unfit.problems(server)))?;
    let (mut call, state, answers) = read?;
    admit_unknown(server, warnings)?;
    call.approval = approval(state, answers)?;
    let caller = open(&key, &id).await?;
    if let Some(tool) = meta_tool(server, &call.slug) {
        return execute_meta_call(&key, &caller, tool, call).await;
    }
    refuse_local(&call.slug)?;
    let request = SessionExecute {
        tool: call.slug,
        arguments: call.arguments,
        account: call.account,
    };
    let outcome = agents::execute_with_approval(&server.app, &caller, request, call.approval);
    reply(&key, outcome.await?).await
}

/// Executes a meta tool of the session.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The session does not have the meta tool"),
))]
pub(crate) async fn execute_meta(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    UnparsedJson { bytes, .. }: UnparsedJson<ExecuteMetaBody<'static>>,
) -> ApiResult<SerializedJson<ResultView>> {
    let (body, warnings) = borrowed::<ExecuteMetaBody<'_>>(&bytes)
        .map_err(|unfit| errors::session_invalid(unfit.problems(&key.server)))?;
    admit_unknown(&key.server, warnings)?;
    ClientTools::checked(body.experimental)?;
    let call = Call {
        arguments: arguments(&bytes, body.arguments),
        slug: not_empty("slug", &body.slug)?,
        account: None,
        approval: approval(body.request_state, body.input_responses)?,
    };
    let caller = open(&key, &id).await?;
    let tool = meta_tool(&key.server, &call.slug);
    let tool = tool.ok_or_else(|| no_meta_tool(&key.server, &call.slug))?;
    execute_meta_call(&key, &caller, tool, call).await
}

/// Returns the error for a slug that is not that of a meta tool.
fn no_meta_tool(server: &Server, slug: &str) -> Error {
    let catalog = server.app.catalog.snapshot();
    if catalog.toolkit_of(slug).is_some() || recipes::is_recipe(&server.app, slug) {
        let problem = format!(
            "slug: {} is not a meta tool: run it with the operation `execute` of the session",
            shown_slug(slug)
        );
        return errors::session_invalid(problem);
    }
    if let Some(error) = meta::other_word_error(&server.app, slug) {
        return error;
    }
    let slugs = MetaTool::all().map(|tool| server.branding.rename(tool.slug()));
    errors::tool_not_found(shown_slug(slug), "", &did_you_mean(slug, slugs))
}

/// Executes a meta tool of the session. It asks for no approval, so that no state is one of its calls.
async fn execute_meta_call(
    key: &ProjectKey,
    caller: &SessionCaller,
    tool: MetaTool,
    call: Call,
) -> ApiResult<SerializedJson<ResultView>> {
    if call.approval.is_some() {
        return Err(errors::approval_invalid(shown_slug(&call.slug)).into());
    }
    if call.account.is_some() {
        let problem =
            "account: a meta tool uses none; name it in the calls of SERVICE_MULTI_EXECUTE_TOOL";
        return Err(errors::session_invalid(problem).into());
    }
    let mut execution = meta::execute(key.app(), caller, tool, call.arguments).await?;
    execution.data = key.server.branding.rename_result(tool, execution.data);
    reply(key, Approvable::Executed(execution)).await
}

async fn reply(key: &ProjectKey, outcome: Approvable) -> ApiResult<SerializedJson<ResultView>> {
    if let Approvable::Executed(execution) = &outcome {
        let unknown = &execution.unknown_arguments;
        CURRENT_REQUEST.with(|context| context.warnings.lock().add_arguments(unknown));
    }
    let view = ResultView::new(key.app(), outcome);
    let size = view.data.0.len();
    let turns = &key.app().large_work;
    let reply = turns.scan(&key.project.tenant, size, move || {
        SerializedJson::new(&view, size)
    });
    Ok(reply.await?)
}

/// Returns the call that a body describes, and its state and answers if it repeats one.
fn read_call(
    bytes: &Bytes,
    body: ExecuteBody<'_>,
) -> ApiResult<(Call, Option<String>, Option<InputResponses>)> {
    ClientTools::checked(body.experimental)?;
    let call = Call {
        arguments: arguments(bytes, body.arguments),
        slug: not_empty("tool_slug", &body.tool_slug)?,
        account: body.account,
        approval: None,
    };
    Ok((call, body.request_state, body.input_responses))
}

/// Deserializes the text of an object, which may be absent.
fn object_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    let text = Option::<&RawValue>::deserialize(from)?;
    match text.map(RawValue::get) {
        Some(text) if !text.starts_with('{') => Err(D::Error::custom("must be an object")),
        _ => Ok(text),
    }
}

/// Returns the arguments as a part of the received bytes.
fn arguments(bytes: &Bytes, arguments: Option<&RawValue>) -> Bytes {
    arguments.map_or(Bytes::from_static(b"{}"), |text| {
        bytes.slice_ref(text.get().as_bytes())
    })
}

/// Returns the slug of a tool without the blanks around it. Fails if it is empty.
fn not_empty(member: &str, slug: &str) -> ApiResult<String> {
    match slug.trim() {
        "" => Err(errors::session_invalid(format!("{member}: is empty; name a tool")).into()),
        slug => Ok(slug.to_owned()),
    }
}

/// Finds a meta tool by its slug with the word of this installation.
fn meta_tool(server: &Server, slug: &str) -> Option<MetaTool> {
    MetaTool::all().find(|tool| {
        server
            .branding
            .rename(tool.slug())
            .eq_ignore_ascii_case(slug)
    })
}

/// Refuses a tool that only the client can run.
fn refuse_local(slug: &str) -> ApiResult<()> {
    let prefix = slug.get(..LOCAL_PREFIX.len());
    if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(LOCAL_PREFIX)) {
        let shown = shown_slug(slug);
        let problem = format!("tool_slug: {shown} is a tool of the client, which runs it itself");
        return Err(errors::session_invalid(problem).into());
    }
    Ok(())
}
