//! The functions of the host that scripts call.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::Answer;
use crate::{
    App, Result,
    agents::{
        SessionCaller, SessionExecute, errors, execute,
        meta::{ToolSearch, UseCase, search},
        proxy::ProxyCall,
    },
    core::{clock::iso, json},
    files::{self, NewFile},
    runs::ProxyBody,
};

/// Slugs of the toolkit and the tool that files of scripts name as their origin.
const ORIGIN_TOOLKIT: &str = "workbench";
const ORIGIN_TOOL: &str = "UPLOAD_FILE";

async fn parse<T: DeserializeOwned + Send + 'static>(
    app: &App,
    caller: &SessionCaller,
    function: &str,
    arguments: Bytes,
) -> Result<T> {
    let size = arguments.len();
    let parsed: std::result::Result<T, String> = app
        .large_work
        .run(&caller.project.tenant, size, move || {
            let parsed = json::parse(&arguments).and_then(json::read);
            parsed.map_err(|problem| problem.line("arguments"))
        })
        .await?;
    parsed.map_err(|problem| errors::arguments_invalid(function, problem))
}

#[derive(Deserialize)]
struct ToolCall {
    slug: String,
    arguments: Map<String, Value>,
    account: Option<String>,
}

pub(super) async fn run_tool(app: &App, caller: &SessionCaller, arguments: Bytes) -> Answer {
    let executing = async {
        if !caller.config().workbench.tool_execution {
            let switch = "`workbench.enable_tool_execution` is false";
            return Err(errors::script_request_refused("run_tool", switch));
        }
        let call: ToolCall = parse(app, caller, "run_tool", arguments).await?;
        let request = SessionExecute {
            tool: call.slug,
            arguments: Value::Object(call.arguments).to_string().into(),
            account: call.account,
        };
        execute(app, caller, request).await
    };
    let execution = executing.await.map_err(|cause| cause.full_text())?;
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

pub(super) async fn search_tools(
    app: &App,
    caller: &SessionCaller,
    arguments: Bytes,
) -> Result<Bytes> {
    if caller.config().search_disabled {
        let switch = "`search.enable` is false";
        return Err(errors::script_request_refused("search_tools", switch));
    }
    let call: SearchCall = parse(app, caller, "search_tools", arguments).await?;
    let queries = call.use_cases.into_iter().map(|use_case| UseCase {
        use_case,
        known_fields: None,
    });
    let request = ToolSearch {
        queries: queries.collect(),
        session: None,
    };
    to_json(&search(app, caller, request).await?)
}

pub(super) async fn request_provider(
    app: &App,
    caller: &SessionCaller,
    arguments: Bytes,
) -> Result<Bytes> {
    if !caller.config().workbench.proxy_execution {
        let switch = "`workbench.enable_proxy_execution` is false";
        return Err(errors::script_request_refused("proxy", switch));
    }
    let text = arguments.clone();
    let readable = app
        .large_work
        .scan(&caller.project.tenant, text.len(), move || {
            ProxyBody::with_readable_numbers(&text)
        })
        .await?;
    let call: ProxyCall = parse(app, caller, "proxy", readable).await?;
    to_json(&call.send(app, caller, "proxy", &arguments).await?)
}

#[derive(Deserialize)]
struct UploadCall {
    name: String,
    media_type: Option<String>,
    /// The bytes as base64.
    content: String,
}

/// A file of the project. Its fields are those that arguments of tools need, and the link.
#[derive(Serialize)]
struct Uploaded {
    s3key: String,
    name: String,
    mimetype: String,
    url: String,
    expires_at: String,
}

pub(super) async fn upload_file(
    app: &App,
    caller: &SessionCaller,
    arguments: Bytes,
) -> Result<Bytes> {
    let call: UploadCall = parse(app, caller, "upload_file", arguments).await?;
    let bytes = BASE64
        .decode(call.content)
        .map_err(|_| errors::arguments_invalid("upload_file", "content: is not base64"))?;
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
