//! Requests of scripts: executions of tools, searches, proxy requests and uploads.
//!
//! Problem: a script is untrusted, and wants to run tools.
//!
//! Guarantee: a script reaches nothing but its session. The call that runs the script answers its
//! requests, one after the other, with the functions by which the session itself does the same. A
//! request therefore ends with the call, and has the scope of the session and its accounts.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use workbench::Session;

use super::super::{
    SessionCaller, SessionExecute, errors, execute,
    meta::{self, MetaTool, ToolSearch, UseCase},
    proxy, session_files,
};
use crate::{
    App, Class, Error, Result,
    core::{clock::iso, json},
    files::{self, NewFile},
    runs::{Proxy, ProxyBody, ResponseBody},
};

/// Slugs of the toolkit and the tool that files of scripts name as their origin.
const ORIGIN_TOOLKIT: &str = "workbench";
const ORIGIN_TOOL: &str = "UPLOAD_FILE";

/// Answer to a request: JSON, or a message for the script.
type Answer = std::result::Result<Bytes, String>;

/// The side of the script: a session that passes each request on.
pub(super) struct RequestSender(mpsc::Sender<Request>);

/// The side of the call that runs the script.
pub(super) struct RequestReceiver(mpsc::Receiver<Request>);

struct Request {
    what: Requested,
    answer: oneshot::Sender<Answer>,
}

enum Requested {
    /// A call of a function of the host.
    Call { function: String, arguments: Bytes },
    /// The content of a file of the session.
    Read { path: String },
}

/// Creates both sides.
pub(super) fn channel() -> (Arc<RequestSender>, RequestReceiver) {
    // A script waits for each answer.
    let (sender, receiver) = mpsc::channel(1);
    (Arc::new(RequestSender(sender)), RequestReceiver(receiver))
}

impl RequestSender {
    async fn send(&self, what: Requested) -> Answer {
        let ended = || "the call that runs the script has ended".to_owned();
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Request { what, answer }).await;
        sent.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

#[async_trait]
impl Session for RequestSender {
    async fn call(&self, function: &str, arguments: Bytes) -> Answer {
        let function = function.to_owned();
        self.send(Requested::Call {
            function,
            arguments,
        })
        .await
    }

    async fn read(&self, path: &str) -> Answer {
        let path = path.to_owned();
        self.send(Requested::Read { path }).await
    }
}

impl RequestReceiver {
    /// Answers the requests of the script until it has ended.
    pub(super) async fn answer_all(mut self, app: &App, caller: &SessionCaller) {
        while let Some(request) = self.0.recv().await {
            let answered = match request.what {
                Requested::Call {
                    function,
                    arguments,
                } => answer(app, caller, &function, arguments).await,
                Requested::Read { path } => session_files::read(app, caller, &path)
                    .await
                    .map_err(|cause| message(&cause)),
            };
            // The receiver is gone if the script has been ended.
            let _ = request.answer.send(answered);
        }
    }
}

async fn answer(app: &App, caller: &SessionCaller, function: &str, arguments: Bytes) -> Answer {
    let answered = match function {
        "run_tool" => return Box::pin(run_tool(app, caller, arguments)).await,
        "search_tools" => Box::pin(search_tools(app, caller, arguments)).await,
        "proxy" => Box::pin(request_provider(app, caller, arguments)).await,
        "upload_file" => Box::pin(upload_file(app, caller, arguments)).await,
        _ => return Err(format!("the workbench has no function {function}")),
    };
    answered.map_err(|cause| message(&cause))
}

/// Returns an error as a message for the script, with the suggested fix.
pub(super) fn message(cause: &Error) -> String {
    if cause.info().class == Class::Internal {
        tracing::error!(%cause, "a request of a script failed");
        return "internal error".to_owned();
    }
    let problems = cause.problems().iter().skip(1);
    let problems: String = problems.map(|line| format!("\n{line}")).collect();
    format!("{cause}{problems}\n{}", cause.info().hint)
}

async fn parse<T: DeserializeOwned + Send + 'static>(
    app: &App,
    caller: &SessionCaller,
    function: &str,
    arguments: Bytes,
) -> Result<T> {
    let size = arguments.len();
    let parse = move || serde_json::from_value(json::parse(&arguments)?);
    let turns = &app.large_work;
    let parsed: serde_json::Result<T> = turns.run(&caller.project.tenant, size, parse).await?;
    parsed.map_err(|cause| errors::arguments_invalid(function, cause.to_string()))
}

#[derive(Deserialize)]
struct ToolCall {
    slug: String,
    arguments: Map<String, Value>,
    account: Option<String>,
}

async fn run_tool(app: &App, caller: &SessionCaller, arguments: Bytes) -> Answer {
    let execution = async {
        if !caller.config().workbench.tool_execution {
            let switch = "`workbench.enable_tool_execution` is false";
            return Err(errors::script_request_refused("run_tool", switch));
        }
        let call: ToolCall = parse(app, caller, "run_tool", arguments).await?;
        if MetaTool::from_slug(&call.slug).is_some() {
            let reason = "it runs tools of toolkits, and no meta tools";
            return Err(errors::script_request_refused("run_tool", reason));
        }
        let request = SessionExecute {
            tool: call.slug,
            arguments: Value::Object(call.arguments).to_string().into(),
            account: call.account,
        };
        execute(app, caller, request).await
    };
    let execution = execution.await.map_err(|cause| message(&cause))?;
    match execution.error {
        None => Ok(execution.data),
        Some(error) => {
            let details = String::from_utf8_lossy(&execution.data);
            Err(format!("{error}\n{details}"))
        }
    }
}

#[derive(Deserialize)]
struct SearchCall {
    use_cases: Vec<String>,
}

async fn search_tools(app: &App, caller: &SessionCaller, arguments: Bytes) -> Result<Bytes> {
    if caller.config().search_disabled {
        return Err(errors::script_request_refused(
            "search_tools",
            "`search.enable` is false",
        ));
    }
    let call: SearchCall = parse(app, caller, "search_tools", arguments).await?;
    let queries = call.use_cases.into_iter().map(|use_case| UseCase {
        use_case,
        known_fields: None,
    });
    let search = ToolSearch {
        queries: queries.collect(),
        session: None,
    };
    to_json(&meta::search(app, caller, search).await?)
}

#[derive(Deserialize)]
struct ProxyCall {
    toolkit: String,
    method: String,
    endpoint: String,
    body: Option<Value>,
    query: Option<BTreeMap<String, Value>>,
    headers: Option<BTreeMap<String, Value>>,
}

/// The response of a provider, as a script gets it.
#[derive(Serialize)]
struct ProxyAnswer {
    status: u16,
    headers: BTreeMap<String, String>,
    data: Value,
    /// Link to a body that is not text, or too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

async fn request_provider(app: &App, caller: &SessionCaller, arguments: Bytes) -> Result<Bytes> {
    if !caller.config().workbench.proxy_execution {
        let switch = "`workbench.enable_proxy_execution` is false";
        return Err(errors::script_request_refused("proxy", switch));
    }
    let call: ProxyCall = parse(app, caller, "proxy", arguments).await?;
    let request = Proxy {
        user_id: None,
        account: None,
        custom: None,
        endpoint: call.endpoint,
        method: call.method.to_ascii_uppercase(),
        headers: texts(call.headers),
        query: texts(call.query),
        body: match call.body {
            None => None,
            Some(Value::String(text)) => Some(ProxyBody::Bytes(text.into(), None)),
            Some(value) => Some(ProxyBody::Json(value.to_string().into())),
        },
        session: None,
        request_id: caller.request_id.clone(),
    };
    let response = proxy(app, caller, &call.toolkit, None, request).await?;
    let mut url = None;
    let data = match response.body {
        ResponseBody::Empty => Value::Null,
        ResponseBody::Json(data) => data,
        ResponseBody::Text(text) => text.into(),
        ResponseBody::File(link) => {
            url = Some(link.url);
            Value::Null
        }
    };
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in response.headers {
        let values = headers.entry(name).or_default();
        if !values.is_empty() {
            values.push_str(", ");
        }
        values.push_str(&value);
    }
    to_json(&ProxyAnswer {
        status: response.status,
        headers,
        data,
        url,
    })
}

/// Returns names with their values as text; null is left out.
fn texts(values: Option<BTreeMap<String, Value>>) -> Vec<(String, String)> {
    let values = values.unwrap_or_default().into_iter();
    let values = values.filter(|(_, value)| !value.is_null());
    let values = values.map(|(name, value)| match value {
        Value::String(text) => (name, text),
        other => (name, other.to_string()),
    });
    values.collect()
}

#[derive(Deserialize)]
struct UploadCall {
    name: String,
    media_type: Option<String>,
    /// The bytes as base64.
    content: String,
}

/// A file of the project. Its members are those that arguments of tools need, and the link.
#[derive(Serialize)]
struct Uploaded {
    s3key: String,
    name: String,
    mimetype: String,
    url: String,
    expires_at: String,
}

async fn upload_file(app: &App, caller: &SessionCaller, arguments: Bytes) -> Result<Bytes> {
    let call: UploadCall = parse(app, caller, "upload_file", arguments).await?;
    let bytes = BASE64.decode(call.content);
    let bytes =
        bytes.map_err(|cause| errors::arguments_invalid("upload_file", cause.to_string()))?;
    let made = NewFile {
        toolkit: ORIGIN_TOOLKIT,
        tool: ORIGIN_TOOL,
        name: &call.name,
        media_type: call.media_type.as_deref().unwrap_or_default(),
        bytes: bytes.into(),
    };
    let stored = files::store_new(app, &caller.project, made).await?;
    to_json(&Uploaded {
        s3key: stored.id.to_string(),
        name: call.name,
        mimetype: stored.link.media_type,
        url: stored.link.url,
        expires_at: iso(stored.link.expires_at),
    })
}

fn to_json<T: Serialize>(answer: &T) -> Result<Bytes> {
    let bytes = serde_json::to_vec(answer).map_err(errors::internal)?;
    Ok(bytes.into())
}
