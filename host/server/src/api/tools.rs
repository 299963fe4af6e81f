//! Tools: listing and execution.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use app::{
    Error,
    catalog::{self, ResolvedTool, Snapshot, Tool, ToolFilter, VersionSelector},
    clock::iso,
    connections::{CustomCredential, CustomParameter},
    ids::{AccountId, AuthConfigId},
    tools::{
        self, Execute, Execution, Input, Proxy, ProxyBody as Content, ResponseBody, prompt::Prompt,
    },
};
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, map::Entry, value::RawValue};
use utoipa::ToSchema;

use crate::{
    Server,
    api::{object, toolkits::snapshot},
    http::{
        auth::ProjectKey,
        body::{UnparsedJson, parse},
        context::request_id,
        error::ApiResult,
        page::Page,
        path::Path,
        path::Prefix,
        reply::Json,
        scaffold::RawQuery,
        scaffold::ok,
    },
    shapes,
};

const GATEWAY: &str = "x-llm-gateway-headers";
/// Maximum number of tools that one request may name.
const TOOLS: usize = 1_000;
/// Maximum number of parts, of each kind, of a credential that the caller supplies.
const PARAMETERS: usize = 20;

#[derive(Serialize)]
struct List<'a> {
    items: Vec<View<'a>>,
    next_cursor: Option<String>,
    total_pages: u64,
    current_page: u64,
    total_items: u64,
}

#[derive(Serialize)]
struct View<'a> {
    slug: &'a str,
    name: &'a str,
    description: &'a str,
    human_description: &'a str,
    toolkit: ToolkitView<'a>,
    input_parameters: Box<RawValue>,
    output_parameters: Value,
    no_auth: bool,
    version: &'a str,
    available_versions: Vec<&'a str>,
    scopes: &'a [String],
    scope_requirements: Option<Needed<'a>>,
    tags: Vec<&'a str>,
    is_deprecated: bool,
    deprecated: Deprecated<'a>,
}

/// The scopes of a tool, all of which it needs.
#[derive(Serialize)]
struct Needed<'a> {
    all_of: &'a [String],
}

#[derive(Serialize)]
struct ToolkitView<'a> {
    slug: &'a str,
    name: &'a str,
    logo: &'a str,
}

#[derive(Serialize)]
struct Deprecated<'a> {
    #[serde(rename = "displayName")]
    display_name: &'a str,
    version: &'a str,
    available_versions: Vec<&'a str>,
    is_deprecated: bool,
    toolkit: Logo<'a>,
}

#[derive(Serialize)]
struct Logo<'a> {
    logo: &'a str,
}

/// Lists tools.
#[utoipa::path( get, path = "/tools", params( ("query" = Option<String>, Query, description = "Branding to look for in names and descriptions"), ("search" = Option<String>, Query, deprecated, description = "The older spelling of `query`"), ("tool_slugs" = Option<Vec<String>>, Query, explode = false, description = "These tools; no other filter counts then"), ("toolkit_slug" = Option<Vec<String>>, Query, explode = false, description = "Of these toolkits"), ("auth_config_ids" = Option<Vec<String>>, Query, explode = false, description = "Of the toolkits of these auth configs"), ("tags" = Option<Vec<String>>, Query, explode = false, description = "With any of these labels"), ("scopes" = Option<Vec<String>>, Query, explode = false, description = "That need one of these scopes"), ("important" = Option<bool>, Query, description = "With the label `important` only"), ("include_deprecated" = Option<bool>, Query, description = "Deprecated ones too; `true` without it"), shapes::ToolkitVersions, shapes::Paging, ), responses( (status = 200, description = "A page of tools", body = shapes::Listed<shapes::Tool>), (status = 404, description = "There is no such auth config in the project"), ), )]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    query: RawQuery,
) -> ApiResult<Response> {
    let search = query
        .text("query")?
        .or(query.text("search")?)
        .unwrap_or_default()
        .to_owned();
    let mut filter = ToolFilter {
        slugs: query.long_list("tool_slugs")?,
        toolkits: query.long_list("toolkit_slug")?,
        tags: query.list("tags")?,
        scopes: query.list("scopes")?,
        important: query.boolean("important")?,
        search,
        deprecated: query.boolean("include_deprecated")?.unwrap_or(true),
        versions: version_selector(&query, prefix.tool_version())?,
    };
    let configs = query.list("auth_config_ids")?;
    if !configs.is_empty() {
        filter.toolkits = toolkits_of(&server, &key, &configs, filter.toolkits).await?;
    }
    let (index, page) = snapshot(&server, query.page()?)?;
    let (found, total) = page.cut(index.tools(&filter));
    ok(&list_view(&index, &found, &page, total)?)
}

/// Returns the toolkits of the given auth configs, restricted to those asked for. If none
/// remain, the list holds an empty name, which matches no toolkit.
async fn toolkits_of(
    server: &Server,
    key: &ProjectKey,
    configs: &[String],
    asked: Vec<String>,
) -> ApiResult<Vec<String>> {
    let mut toolkits = Vec::new();
    for id in configs {
        let config =
            app::auth_configs::get(&server.app, &key.project, &AuthConfigId::parse(id)?).await?;
        toolkits.push(config.body.toolkit);
    }
    toolkits
        .retain(|slug| asked.is_empty() || asked.iter().any(|one| one.eq_ignore_ascii_case(slug)));
    if toolkits.is_empty() {
        toolkits.push(String::new());
    }
    Ok(toolkits)
}

fn list_view<'a>(
    index: &'a Snapshot,
    found: &'a [ResolvedTool],
    page: &Page,
    total: u64,
) -> ApiResult<List<'a>> {
    Ok(List {
        items: found
            .iter()
            .map(|found| view(index, found))
            .collect::<ApiResult<_>>()?,
        next_cursor: page.next_cursor(total),
        total_pages: total.div_ceil(page.limit).max(1),
        current_page: page.number,
        total_items: total,
    })
}

/// Lists the slugs of all tools.
#[utoipa::path( get, path = "/tools/enum", responses((status = 200, description = "The slugs of all tools", body = Vec<String>)), )]
pub(crate) async fn slugs(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Response> {
    let index = server.app.catalog.snapshot();
    let current = index.toolkits().map(|toolkit| toolkit.current());
    let slugs: Vec<&str> = current
        .flat_map(|release| release.tools.iter().map(|tool| &*tool.slug))
        .collect();
    ok(&slugs)
}

/// Reads one version of a tool.
#[utoipa::path( get, path = "/tools/{tool_slug}", params( ("version" = Option<String>, Query, description = "A version or `latest`; wins over `toolkit_versions`"), shapes::ToolkitVersions, ), responses( (status = 200, description = "The tool", body = shapes::Tool), (status = 410, description = "The tool is deprecated in every version"), ), )]
pub(crate) async fn read(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    Path(slug): Path<String>,
    query: RawQuery,
) -> ApiResult<Response> {
    let index = server.app.catalog.snapshot();
    let versions = version_selector(&query, prefix.tool_version())?;
    let toolkit = index
        .toolkit_of(&slug)
        .map(|toolkit| toolkit.slug.to_string())
        .unwrap_or_default();
    let version = query
        .text("version")?
        .unwrap_or_else(|| versions.for_toolkit(&toolkit));
    let found = index.tool(&slug, version)?;
    ok(&view(&index, &found)?)
}

fn version_selector(query: &RawQuery, default: &str) -> ApiResult<VersionSelector> {
    let default = query
        .text("toolkit_versions")?
        .unwrap_or(default)
        .to_owned();
    let by_toolkit = query
        .map("toolkit_versions")
        .into_iter()
        .map(|(slug, version)| (slug.to_ascii_lowercase(), version));
    Ok(VersionSelector {
        default,
        by_toolkit: by_toolkit.collect::<HashMap<_, _>>(),
    })
}

fn view<'a>(index: &'a Snapshot, found: &'a ResolvedTool) -> ApiResult<View<'a>> {
    let ResolvedTool { release, tool } = found;
    let toolkit = index.toolkit(&release.slug);
    let versions = || {
        toolkit
            .map(|toolkit| toolkit.versions())
            .unwrap_or_default()
    };
    let (version, is_deprecated) = (release.version.as_str(), release.deprecated_at.is_some());
    Ok(View {
        slug: &tool.slug,
        name: &tool.name,
        description: &tool.description,
        human_description: &tool.description,
        toolkit: ToolkitView {
            slug: &release.slug,
            name: &release.name,
            logo: &release.logo,
        },
        input_parameters: tool.input.text()?,
        output_parameters: tool.response_schema()?,
        no_auth: tool.no_auth,
        version,
        available_versions: versions(),
        scopes: &tool.scopes,
        scope_requirements: needed(tool),
        tags: tool.labels().collect(),
        is_deprecated,
        deprecated: Deprecated {
            display_name: &tool.name,
            version,
            available_versions: versions(),
            is_deprecated,
            toolkit: Logo {
                logo: &release.logo,
            },
        },
    })
}

fn needed(tool: &Tool) -> Option<Needed<'_>> {
    (!tool.scopes.is_empty()).then_some(Needed {
        all_of: &tool.scopes,
    })
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RequireScopes)]
pub(crate) struct ScopesOf {
    tools: Vec<String>,
    #[serde(default)]
    version: Option<String>,
}

/// Returns the scopes that the given tools need.
#[utoipa::path( post, path = "/tools/scopes/required", request_body = ScopesOf, responses((status = 200, description = "The scopes, of all and of each", body = shapes::RequiredScopes)), )]
pub(crate) async fn scopes(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    Json(body): Json<ScopesOf>,
) -> ApiResult<Response> {
    if !(1..=TOOLS).contains(&body.tools.len()) {
        return Err(Error::invalid(format!("tools: 1 to {TOOLS} slugs")).into());
    }
    let version = body.version.as_deref().unwrap_or(prefix.tool_version());
    let found = catalog::find_tools(&server.app.catalog.snapshot(), &body.tools, version)?;
    let all: BTreeSet<_> = found.iter().flat_map(|found| &found.tool.scopes).collect();
    let each: Vec<_> = found
        .iter()
        .map(|found| json!({"tool": found.tool.slug, "scope_requirements": needed(&found.tool)}))
        .collect();
    ok(&json!({"scopes_required": all, "per_tool_requirements": each}))
}

/// The body of an execution.
// It borrows from the received bytes, so that arguments are not copied.
#[derive(Deserialize, ToSchema)]
#[schema(as = Execute)]
pub(crate) struct ExecuteBody<'a> {
    #[serde(default)]
    connected_account_id: Option<String>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    entity_id: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    custom_auth_params: Option<AuthParams>,
    #[serde(default)]
    custom_connection_data: Option<ConnectionData>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthParameters)]
struct AuthParams {
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    parameters: Option<Vec<Parameter>>,
    #[serde(default)]
    body: Option<Value>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthParameter)]
struct Parameter {
    name: String,
    r#in: In,
    value: Value,
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AuthPlace)]
enum In {
    Query,
    Header,
}

#[derive(Deserialize, ToSchema)]
struct ConnectionData {
    #[serde(rename = "authScheme")]
    auth_scheme: String,
    #[serde(rename = "toolkitSlug")]
    toolkit_slug: String,
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    val: Option<Value>,
}

#[derive(Serialize)]
struct ExecuteView<'a> {
    data: &'a RawValue,
    error: Option<&'a str>,
    successful: bool,
    session_info: Option<()>,
    log_id: &'a str,
}

/// Executes a tool.
#[utoipa::path( post, path = "/tools/execute/{tool_slug}", params(("x-llm-gateway-headers" = Option<String>, Header, description = "A JSON object of texts: headers for a language model")), request_body = ExecuteBody, responses( (status = 200, description = "The tool ran; `successful` tells whether it did its work", body = shapes::Execution), (status = 403, description = "The auth config does not allow the tool, or the account is not shared with the user"), (status = 410, description = "The tool is deprecated in every version"), (status = 422, description = "The account cannot be used in its state, or a model made no arguments that fit"), (status = 501, description = "The server has no language model"), (status = 502, description = "The language model failed"), ), )]
pub(crate) async fn execute(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    Path(slug): Path<String>,
    headers: HeaderMap,
    UnparsedJson { bytes, .. }: UnparsedJson<ExecuteBody<'static>>,
) -> ApiResult<Response> {
    let gateway = gateway(&headers)?;
    let size = bytes.len();
    let parsed = parse(&server, size, move || {
        request(slug, prefix, &bytes, gateway)
    });
    let done = tools::execute(&server.app, &key.project, parsed.await??).await?;
    let size = done.data.len();
    parse(&server, size, move || execution(&done)).await?
}

fn execution(done: &Execution) -> ApiResult<Response> {
    let data = serde_json::from_slice(&done.data).map_err(|cause| {
        Error::Internal(format!(
            "a tool's data is not JSON after it was checked: {cause}"
        ))
    })?;
    let view = ExecuteView {
        data,
        error: done.error.as_deref(),
        successful: done.error.is_none(),
        session_info: None,
        log_id: done.log_id.as_str(),
    };
    Ok(crate::http::reply::json(StatusCode::OK, &view))
}

fn request(tool: String, prefix: Prefix, bytes: &Bytes, headers: Gateway) -> ApiResult<Execute> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes }; // serde would deserialize a struct from an array of its members in order.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid("body: must be a JSON object").into());
    }
    let body: ExecuteBody<'_> =
        serde_json::from_slice(text).map_err(|cause| Error::invalid(format!("body: {cause}")))?;
    let arguments = body
        .arguments
        .map(RawValue::get)
        .filter(|arguments| *arguments != "null");
    let input = match (body.text, arguments) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("text: cannot stand beside `arguments`").into());
        }
        (Some(text), None) => Input::Prompt(Prompt {
            text,
            headers,
            ..Prompt::default()
        }),
        (None, Some(arguments)) => Input::Arguments(bytes.slice_ref(arguments.as_bytes())),
        (None, None) => Input::Arguments(Bytes::from_static(b"{}")),
    };
    let present = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let user_id = present(body.user_id).or(present(body.entity_id));
    no_nul("user_id", user_id.as_deref())?;
    let account = present(body.connected_account_id)
        .map(|id| AccountId::parse(id.trim()))
        .transpose()?;
    Ok(Execute {
        tool,
        version: present(body.version).unwrap_or_else(|| prefix.tool_version().to_owned()),
        user_id,
        account,
        custom: custom(body.custom_auth_params, body.custom_connection_data)?,
        input,
        request_id: request_id(),
    })
}

/// A proxy request: a request to a provider with the credential of an account.
#[derive(Deserialize, ToSchema)]
#[schema(as = Proxy)]
pub(crate) struct ProxyBody {
    /// A path below the account's base URL, or an absolute https URL of the same domain.
    endpoint: String,
    /// GET, POST, PUT, DELETE, PATCH or HEAD.
    method: String,
    #[serde(default)]
    connected_account_id: Option<String>,
    /// The user on whose behalf the request is sent; the account's own user without it.
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    body: Option<Value>,
    #[serde(default)]
    binary_body: Option<BinaryBody>,
    #[serde(default)]
    parameters: Option<Vec<ProxyParameter>>,
    #[serde(default)]
    custom_connection_data: Option<ConnectionData>,
}

/// Bytes to send: loaded from a URL, or given here as base64, at most 4 MiB.
#[derive(Deserialize, ToSchema)]
struct BinaryBody {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    base64: Option<String>,
    #[serde(default, alias = "contentType")]
    content_type: Option<String>,
}

#[derive(Deserialize, ToSchema)]
struct ProxyParameter {
    name: String,
    value: String,
    r#type: In,
}

/// Sends a request with the credential of an account.
///
/// Every response of the provider counts as a success, whatever its status.
#[utoipa::path( post, path = "/tools/execute/proxy", request_body = ProxyBody, responses( (status = 200, description = "What the application answered, whatever its status", body = shapes::Proxied), (status = 403, description = "The auth config lists other tools, the account is not shared with the user, or the way leads where it must not"), (status = 404, description = "There is no such account in the project, or no such toolkit"), (status = 422, description = "The account cannot be used in its state"), (status = 502, description = "The application gave no answer"), (status = 504, description = "The application gave no answer in time"), ), )]
pub(crate) async fn proxy(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<ProxyBody>,
) -> ApiResult<Response> {
    let response = tools::proxy(&server.app, &key.project, proxy_request(body)?).await?;
    let mut headers = Map::new();
    for (name, value) in response.headers {
        match headers.entry(name) {
            Entry::Vacant(place) => drop(place.insert(value.into())),
            Entry::Occupied(mut place) => {
                let before = place.get().as_str().unwrap_or_default();
                let joined = format!("{before}, {value}");
                place.insert(joined.into());
            }
        }
    }
    let mut view =
        json!({"status": response.status, "headers": headers, "log_id": response.log_id});
    match response.body {
        ResponseBody::Empty => view["data"] = Value::Null,
        ResponseBody::Json(data) => view["data"] = data,
        ResponseBody::Text(text) => view["data"] = text.into(),
        ResponseBody::File(link) => {
            view["data"] = json!({});
            view["binary_data"] = json!({ "url": link.url, "content_type": link.media_type, "size": link.size, "expires_at": iso(link.expires_at), });
        }
    }
    ok(&view)
}

fn proxy_request(body: ProxyBody) -> ApiResult<Proxy> {
    const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"];
    let method = body.method.to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        return Err(
            Error::invalid(format!("method: must be one of {}", METHODS.join(", "))).into(),
        );
    }
    let parameters = body.parameters.unwrap_or_default();
    if parameters.len() > 100 {
        return Err(Error::invalid("parameters: at most 100").into());
    }
    let (mut headers, mut query) = (Vec::new(), Vec::new());
    for ProxyParameter {
        name,
        value,
        r#type,
    } in parameters
    {
        match r#type {
            In::Header => headers.push((name, value)),
            In::Query => query.push((name, value)),
        }
    }
    let account = body.connected_account_id.filter(|id| !id.trim().is_empty());
    let user_id = body.user_id.filter(|user| !user.trim().is_empty());
    no_nul("user_id", user_id.as_deref())?;
    Ok(Proxy {
        user_id,
        account: account.map(|id| AccountId::parse(id.trim())).transpose()?,
        custom: custom(None, body.custom_connection_data)?,
        endpoint: body.endpoint.trim().to_owned(),
        method,
        headers,
        query,
        body: content(body.body.filter(|body| !body.is_null()), body.binary_body)?,
        request_id: request_id(),
    })
}

fn content(body: Option<Value>, binary: Option<BinaryBody>) -> ApiResult<Option<Content>> {
    Ok(match (body, binary) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            return Err(Error::invalid("binary_body: cannot stand beside `body`").into());
        }
        (Some(Value::String(text)), None) => Some(Content::Bytes(text.into(), None)),
        (Some(value), None) => Some(Content::Json(value.to_string().into())),
        (
            None,
            Some(BinaryBody {
                url: Some(url),
                base64: None,
                content_type,
            }),
        ) => Some(Content::Url(url, content_type)),
        (
            None,
            Some(BinaryBody {
                url: None,
                base64: Some(text),
                content_type,
            }),
        ) => {
            let bytes = BASE64
                .decode(text)
                .map_err(|_| Error::invalid("binary_body.base64: is not base64"))?;
            let media_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Content::Bytes(bytes.into(), Some(media_type)))
        }
        (None, Some(_)) => {
            return Err(Error::invalid("binary_body: must have either `url` or `base64`").into());
        }
    })
}

fn custom(
    params: Option<AuthParams>,
    data: Option<ConnectionData>,
) -> ApiResult<Option<CustomCredential>> {
    if let Some(data) = data {
        let values = object("custom_connection_data.val", data.val)?;
        return Ok(Some(CustomCredential::Connection {
            scheme: data.auth_scheme,
            toolkit: data.toolkit_slug,
            values,
        }));
    }
    let Some(params) = params else {
        return Ok(None);
    };
    let (parameters, body) = (
        params.parameters.unwrap_or_default(),
        object("custom_auth_params.body", params.body)?,
    );
    if parameters.len().max(body.len()) > PARAMETERS {
        return Err(Error::invalid(format!(
            "custom_auth_params: at most {PARAMETERS} of each kind"
        ))
        .into());
    }
    let placed = parameters
        .into_iter()
        .map(placed)
        .collect::<ApiResult<Vec<_>>>()?;
    if placed.is_empty() && body.is_empty() && params.base_url.is_none() {
        return Ok(None);
    }
    Ok(Some(CustomCredential::Parameters {
        parameters: placed,
        body,
        base_url: params.base_url,
    }))
}

fn placed(parameter: Parameter) -> ApiResult<CustomParameter> {
    let value = match parameter.value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => {
            return Err(Error::invalid(
                "custom_auth_params.parameters: `value` must be a text or a number",
            )
            .into());
        }
    };
    no_nul("custom_auth_params.parameters", Some(&value))?;
    Ok(match parameter.r#in {
        In::Header => CustomParameter::Header(parameter.name, value),
        In::Query => CustomParameter::Query(parameter.name, value),
    })
}

fn no_nul(name: &str, text: Option<&str>) -> ApiResult<()> {
    match text {
        Some(text) if text.contains('\0') => {
            Err(Error::invalid(format!("{name}: holds a NUL character")).into())
        }
        _ => Ok(()),
    }
}

/// Headers for a language model.
type Gateway = Vec<(String, String)>;

/// Reads the header that contains headers for a language model: a JSON object.
fn gateway(headers: &HeaderMap) -> ApiResult<Gateway> {
    let Some(given) = headers.get(GATEWAY) else {
        return Ok(Gateway::new());
    };
    let object = serde_json::from_slice::<BTreeMap<String, Value>>(given.as_bytes());
    let headers =
        object.map_err(|_| Error::invalid(format!("{GATEWAY}: must be a JSON object")))?;
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    Ok(headers
        .into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect())
}

#[derive(Deserialize, ToSchema)]
#[schema(as = MakeArguments)]
pub(crate) struct InputBody {
    text: String,
    #[serde(default)]
    custom_description: Option<String>,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    version: Option<String>,
}

/// Generates arguments for a tool from a prompt, and runs nothing.
#[utoipa::path( post, path = "/tools/execute/{tool_slug}/input", params(("x-llm-gateway-headers" = Option<String>, Header, description = "A JSON object of texts: headers for the model")), request_body = InputBody, responses( (status = 200, description = "The arguments", body = shapes::Arguments), (status = 410, description = "The tool is deprecated in every version"), (status = 422, description = "The model made no arguments that fit"), (status = 501, description = "The server has no language model"), (status = 502, description = "The language model failed"), ), )]
pub(crate) async fn input(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    prefix: Prefix,
    Path(slug): Path<String>,
    headers: HeaderMap,
    Json(body): Json<InputBody>,
) -> ApiResult<Response> {
    let present = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let version = present(body.version).unwrap_or_else(|| prefix.tool_version().to_owned());
    let prompt = Prompt {
        text: body.text,
        description: present(body.custom_description),
        system_prompt: present(body.system_prompt),
        headers: gateway(&headers)?,
    };
    let arguments =
        tools::arguments_for_prompt(&server.app, &key.project, &slug, &version, &prompt).await?;
    let arguments: &RawValue = serde_json::from_slice(&arguments).map_err(|cause| {
        Error::Internal(format!(
            "arguments are not JSON after they were checked: {cause}"
        ))
    })?;
    ok(&json!({ "arguments": arguments }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::ApiError;

    fn read(body: &str) -> Result<Execute, Error> {
        request(
            "T".into(),
            Prefix::V3_1,
            &Bytes::from(body.to_owned()),
            Gateway::new(),
        )
        .map_err(|failure| match failure {
            ApiError::App(error) => error,
            ApiError::Http(error) => panic!("{error:?}"),
        })
    }

    #[test]
    fn arguments_pass_as_they_came() {
        for (body, expected) in [
            (
                r#"{"user_id":"u","arguments": {"b":1, "a":[ 2 ]} }"#,
                r#"{"b":1, "a":[ 2 ]}"#,
            ),
            ("", "{}"),
            (r#"{"arguments":null}"#, "{}"),
        ] {
            let Input::Arguments(arguments) = read(body).unwrap().input else {
                panic!("{body}")
            };
            assert_eq!(arguments, expected);
        }
    }

    #[test]
    fn entity_id_is_used_without_user_id() {
        assert_eq!(
            read(r#"{"entity_id":"e"}"#).unwrap().user_id.as_deref(),
            Some("e")
        );
        assert_eq!(
            read(r#"{"entity_id":"e","user_id":"u"}"#)
                .unwrap()
                .user_id
                .as_deref(),
            Some("u")
        );
    }

    #[test]
    fn text_excludes_arguments() {
        assert!(matches!(
            read(r#"{"text":"do it","arguments":null}"#).unwrap().input,
            Input::Prompt(_)
        ));
        assert!(matches!(
            read(r#"{"text":"do it","arguments":{}}"#),
            Err(Error::Invalid(_))
        ));
    }

    #[test]
    fn prefix_sets_default_tool_version() {
        let of = |prefix| {
            request(
                "T".into(),
                prefix,
                &Bytes::from_static(b"{}"),
                Gateway::new(),
            )
            .unwrap()
        };
        assert_eq!(of(Prefix::V3).version, app::catalog::BASE);
        assert_eq!(of(Prefix::V3_1).version, app::catalog::LATEST);
        assert_eq!(
            read(r#"{"version":"20261121_00"}"#).unwrap().version,
            "20261121_00"
        );
    }
}
