//! The execution log.

use std::sync::Arc;

use app::{
    Error,
    clock::iso,
    ids::LogId,
    tools::log::{
        self, Condition, Detail, ExecutionRecord, Field, Filter, ListPart, Operator, Status,
    },
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{auth::ProjectKey, error::ApiResult, page::Page, path::Path, reply::Json, scaffold::ok},
    shapes,
};

/// Maximum characters of a value in a condition.
pub(super) const VALUE: usize = 256;
/// Maximum number of conditions of one list.
pub(super) const CONDITIONS: usize = 20;

/// Fields that can be searched.
const FIELDS: [(&str, Field); 10] = [
    ("tool_slug", Field::Tool),
    ("toolkit_slug", Field::Toolkit),
    ("connected_account_id", Field::Account),
    ("auth_config_id", Field::AuthConfig),
    ("status", Field::Status),
    ("user_id", Field::User),
    ("request_id", Field::Request),
    ("log_id", Field::Id),
    ("session_id", Field::Absent),
    ("sandbox_id", Field::Absent),
];

#[derive(Deserialize, ToSchema)]
#[schema(as = SearchRuns)]
pub(crate) struct Search {
    #[serde(default)]
    limit: Option<f64>,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    filters: Option<Vec<Filtered>>,
    #[serde(default)]
    time_range: Option<TimeRange>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RunFilter)]
struct Filtered {
    field: String,
    operator: String,
    value: String,
}

#[derive(Deserialize, ToSchema)]
struct TimeRange {
    from: f64,
    to: f64,
}

/// Lists execution records, newest first.
#[utoipa::path(
    post,
    path = "/logs/tool_execution",
    request_body = Option<Search>,
    responses((status = 200, description = "A page of records", body = shapes::Runs)),
)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Search>,
) -> ApiResult<Response> {
    let cursor = body.cursor.filter(|cursor| !cursor.is_empty());
    let page = Page::new(body.limit, cursor.as_deref())?;
    let filters = body.filters.unwrap_or_default();
    if filters.len() > CONDITIONS {
        return Err(Error::invalid(format!("filters: at most {CONDITIONS}")).into());
    }
    let filter = Filter {
        conditions: filters
            .into_iter()
            .map(condition)
            .collect::<ApiResult<_>>()?,
        from: body.time_range.as_ref().map(|range| range.from as i64),
        to: body.time_range.as_ref().map(|range| range.to as i64),
    };
    let after = page
        .state
        .as_deref()
        .map(LogId::parse)
        .transpose()
        .map_err(|_| Error::CursorInvalid)?;
    let skip = if after.is_some() { 0 } else { page.offset() };
    let part = ListPart {
        after,
        skip,
        limit: page.limit,
    };
    let (runs, more) = log::list(&server.app, &key.project, &filter, &part).await?;
    let logs: Vec<_> = runs.iter().map(|run| Value::Object(view(run))).collect();
    let last = runs.last().filter(|_| more).map(|run| run.id.to_string());
    let next = last.map(|last| {
        Page {
            state: Some(last),
            ..page
        }
        .next()
    });
    ok(&json!({"logs": logs, "next_cursor": next}))
}

/// Reads an execution record with its arguments and its result.
#[utoipa::path(
    get,
    path = "/logs/tool_execution/{id}",
    responses((status = 200, description = "The record", body = shapes::RunDetail)),
)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let (run, said) = log::get(&server.app, &key.project, &LogId::parse(&id)?).await?;
    let mut shown = view(&run);
    if let Ok(release) = server.app.catalog.release(&run.toolkit, &run.version) {
        // A published version never changes, so this is the component that ran.
        shown["metadata"]["component"] = format!("sha256:{}", release.digest).into();
    }
    let times = json!({"start_time": run.started_at.0, "end_time": run.ended_at.0});
    shown.insert("timings".into(), times);
    shown.insert("context".into(), json!({"request_id": run.request}));
    shown.insert("source".into(), json!({}));
    shown.insert("data".into(), said.map_or_else(|| json!({}), data));
    ok(&shown)
}

/// Reads the cassette of an execution, with which it can be replayed elsewhere.
#[utoipa::path(
    get,
    path = "/logs/tool_execution/{id}/cassette",
    responses((status = 200, description = "The cassette", body = shapes::Cassette)),
)]
pub(crate) async fn cassette(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    ok(&log::cassette(&server.app, &key.project, &LogId::parse(&id)?).await?)
}

fn condition(given: Filtered) -> ApiResult<Condition> {
    let field = match FIELDS.iter().find(|(name, _)| *name == given.field) {
        Some((_, field)) => *field,
        None => {
            return Err(Error::invalid(format!(
                "filters: `{}` is not a field of the log",
                given.field
            ))
            .into());
        }
    };
    let operator = operator("filters: `operator`", &given.operator)?;
    if given.value.chars().count() > VALUE {
        return Err(
            Error::invalid(format!("filters: `value` has at most {VALUE} characters")).into(),
        );
    }
    Ok(Condition {
        field,
        operator,
        value: given.value,
        ignore_case: false,
    })
}

/// Parses the operator of a condition.
pub(super) fn operator(place: &str, given: &str) -> ApiResult<Operator> {
    Ok(match given {
        "==" => Operator::Is,
        "!=" => Operator::IsNot,
        "contains" => Operator::Contains,
        "not_contains" => Operator::ContainsNot,
        _ => {
            return Err(Error::invalid(format!(
                "{place} must be ==, !=, contains or not_contains"
            ))
            .into());
        }
    })
}

fn view(run: &ExecutionRecord) -> Map<String, Value> {
    let failed = run.status == Status::Failed;
    let view = json!({
        "id": run.id,
        "timestamp": iso(run.started_at),
        "type": "tool_execution",
        "status": run.status.as_str(),
        "level": if failed { "error" } else { "info" },
        "message": match &run.failure {
            Some(kind) => format!("{} failed: {kind}", run.tool),
            None => format!("{} succeeded", run.tool),
        },
        "metadata": {
            "tool_slug": run.tool,
            "toolkit_slug": run.toolkit,
            "version": run.version,
            "user_id": run.user,
            "connected_account_id": run.account,
            "auth_config_id": run.auth_config,
            "request_id": run.request,
            "error_kind": run.failure,
            "credential_source": run.source,
        },
        "metrics": {
            "cpu_us": run.cpu_us,
            "wall_us": run.wall_us,
            "peak_memory_bytes": run.memory,
            "host_calls": run.host_calls,
            "requests": run.requests,
            "language_model": run.tokens.as_ref().map(|tokens| json!({
                "model": tokens.model,
                "prompt_tokens": tokens.prompt,
                "completion_tokens": tokens.completion,
            })),
        },
        "parent": null,
    });
    match view {
        Value::Object(view) => view,
        _ => Map::new(),
    }
}

fn data(said: Detail) -> Value {
    json!({
        "arguments": said.arguments,
        "response": {"data": said.data, "error": said.error, "successful": said.error.is_none()},
        "log": said.log,
        "requests": said.requests,
    })
}
