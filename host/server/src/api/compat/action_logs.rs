//! The execution log for older clients: the records of [`super::logs`] under other names.

use std::sync::Arc;

use app::{
    Error,
    ids::LogId,
    tools::log::{
        self, Condition, Detail, ExecutionRecord, Field, Filter, ListPart, Operator, SentRequest,
        Status,
    },
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::{Builder, Uuid};

use crate::{
    Server,
    api::logs::{CONDITIONS, VALUE, operator},
    http::{auth::ProjectKey, error::ApiResult, path::Path, reply::Json, scaffold::ok},
    shapes,
};

/// Fields that can be searched: their id and their display name.
const FIELDS: [(&str, &str, Field); 6] = [
    ("actionKey", "Tool", Field::Tool),
    ("appKey", "Toolkit", Field::Toolkit),
    ("connectedAccountId", "Connected account", Field::Account),
    ("entityId", "User", Field::User),
    ("status", "Status", Field::Status),
    ("id", "Log", Field::Id),
];
/// Maximum number of executions that a cursor may skip.
const FURTHEST: f64 = 1_000_000.0;

#[derive(Deserialize, ToSchema)]
#[schema(as = SearchActionLogs)]
pub(crate) struct Search {
    /// Number of executions to skip.
    #[serde(default)]
    cursor: Option<f64>,
    #[serde(default)]
    limit: Option<f64>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(default)]
    from: Option<f64>,
    #[serde(default)]
    to: Option<f64>,
    #[serde(default)]
    search_params: Option<Vec<Searched>>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = ActionLogCondition)]
struct Searched {
    #[serde(default)]
    field: Option<String>,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    value: Option<String>,
}

/// Lists the fields that can be searched.
#[utoipa::path(
    get,
    path = "/internal/action_execution/fields",
    responses((status = 200, description = "The fields", body = shapes::ActionLogFields)),
)]
pub(crate) async fn fields(_key: ProjectKey) -> ApiResult<Response> {
    let field = |(id, name, _): &(&str, &str, Field)| json!({"id": id, "displayName": name, "type": "string"});
    ok(&json!({"fields": {"action_execution": FIELDS.iter().map(field).collect::<Vec<_>>()}}))
}

/// Lists executions, newest first.
#[utoipa::path(
    post,
    path = "/internal/action_execution/logs",
    request_body = Option<Search>,
    responses((status = 200, description = "A page of runs", body = shapes::ActionLogs)),
)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Search>,
) -> ApiResult<Response> {
    let ignore_case = body.case_sensitive == Some(false);
    let searched = body.search_params.unwrap_or_default();
    if searched.len() > CONDITIONS {
        return Err(Error::invalid(format!("search_params: at most {CONDITIONS}")).into());
    }
    let filter = Filter {
        conditions: searched
            .into_iter()
            .map(|one| condition(one, ignore_case))
            .collect::<ApiResult<_>>()?,
        from: body.from.map(|from| from as i64),
        to: body.to.map(|to| to as i64),
    };
    let skip = body.cursor.unwrap_or(0.0);
    if !(0.0..=FURTHEST).contains(&skip) {
        return Err(Error::CursorInvalid.into());
    }
    let part = ListPart {
        after: None,
        skip: skip as u64,
        limit: crate::http::page::Page::new(body.limit, None)?.limit,
    };
    let (runs, more) = log::list(&server.app, &key.project, &filter, &part).await?;
    let next = more.then_some(part.skip + part.limit);
    let data: Vec<_> = runs.iter().map(|run| item(&server, run)).collect();
    ok(&json!({"data": data, "nextCursor": next}))
}

/// Reads an execution with its arguments and its result.
#[utoipa::path(
    get,
    path = "/internal/action_execution/log/{id}",
    responses((status = 200, description = "The run", body = shapes::ActionLog)),
)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let (run, said) = log::get(&server.app, &key.project, &LogId::parse(&id)?).await?;
    ok(&view(&server, &run, said))
}

fn condition(given: Searched, ignore_case: bool) -> ApiResult<Condition> {
    let name = given.field.unwrap_or_default();
    let Some((_, _, field)) = FIELDS.iter().find(|(id, ..)| *id == name) else {
        return Err(
            Error::invalid(format!("search_params: `{name}` is not a field of the log")).into(),
        );
    };
    let operator = match given.operation.as_deref() {
        None => Operator::Contains,
        Some(given) => operator("search_params: `operation`", given)?,
    };
    let value = given.value.unwrap_or_default();
    if value.chars().count() > VALUE {
        return Err(Error::invalid(format!(
            "search_params: `value` has at most {VALUE} characters"
        ))
        .into());
    }
    Ok(Condition {
        field: *field,
        operator,
        value,
        ignore_case,
    })
}

/// Returns the name and the logo of the toolkit that ran.
fn toolkit(server: &Server, run: &ExecutionRecord) -> (String, String) {
    let release = server.app.catalog.release(&run.toolkit, &run.version);
    release.map_or_else(
        |_| (run.toolkit.clone(), String::new()),
        |release| (release.name.clone(), release.logo.clone()),
    )
}

fn item(server: &Server, run: &ExecutionRecord) -> Value {
    let (name, icon) = toolkit(server, run);
    json!({
        "id": run.id,
        "actionKey": run.tool,
        "appKey": run.toolkit,
        "app": {"icon": icon, "name": name},
        "connectedAccountId": run.account.as_ref().map_or("", |account| account.as_str()),
        "entityId": run.user,
        "status": run.status.as_str(),
        "executionTime": run.wall_us / 1_000,
        "minimalResponse": run.failure.as_deref().unwrap_or_default(),
        "createdAt": run.started_at.0,
        "credentialSource": run.source,
    })
}

fn view(server: &Server, run: &ExecutionRecord, said: Option<Detail>) -> Value {
    let (name, icon) = toolkit(server, run);
    let (start, end) = (run.started_at.0, run.ended_at.0);
    let failed = run.status == Status::Failed;
    let requests = said.as_ref().map_or(&[][..], |said| &said.requests);
    let step = json!({
        "type": "tool_execution",
        "startTime": start,
        "endTime": end,
        "totalDuration": end - start,
        "status": if failed { "failure" } else { "success" },
        "message": run.failure.as_deref().unwrap_or("the tool answered"),
        "logs": requests.iter().map(|sent| network(run, sent)).collect::<Vec<_>>(),
    });
    let error = said.as_ref().and_then(|said| said.error.as_ref());
    let error = error.map_or_else(|| json!({}), |message| json!({"message": message}));
    let (received, response) = said.as_ref().map_or_else(
        || (json!({}), json!({})),
        |said| (json!(said.arguments), json!(said.data)),
    );
    json!({
        "actionLogId": run.id,
        "actionId": run.tool,
        "status": if failed { "error" } else { "success" },
        "app": {"name": name, "uniqueId": run.toolkit, "icon": icon},
        "version": run.version,
        "connection": {"id": run.account.as_ref().map_or("", |account| account.as_str()), "entity": run.user},
        "session": {},
        "executionMetadata": {"requestId": run.request, "cpuUs": run.cpu_us, "peakMemoryBytes": run.memory},
        "steps": [step],
        "payloadReceived": received,
        "startTime": start,
        "endTime": end,
        "totalDuration": format!("{} ms", end - start),
        "response": response,
        "error": error,
        "credentialSource": run.source,
    })
}

fn network(run: &ExecutionRecord, sent: &SentRequest) -> Value {
    json!({
        "type": "network",
        "level": if sent.error.is_some() { "error" } else { "info" },
        "message": sent.error.as_deref().unwrap_or("the application answered"),
        "requestId": uuid(run),
        "time": run.started_at.0,
        "request": {"method": sent.method, "url": sent.url},
        "response": {"status": sent.status.unwrap_or(0), "time": format!("{} ms", sent.elapsed_ms)},
    })
}

/// Converts the sixteen characters of an execution's id to the UUID that older clients need.
fn uuid(run: &ExecutionRecord) -> Option<Uuid> {
    let bytes = run.id.as_str().as_bytes().try_into().ok()?;
    Some(Builder::from_random_bytes(bytes).into_uuid())
}
