//! The log of triggers: one entry for each event of a trigger, with its deliveries.

mod types;

use app::{
    Time,
    core::ids::LogId,
    events::trigger_log::{self, Filter, Outcome, SearchField},
};
use http::{ApiResult, IN_TABLE, Json, OptionalJson, Page, Path, ProjectKey, errors};
use uuid::Uuid;

use self::types::{ConditionBody, DetailView, ListView, Search, View, WantedStatus};
use crate::logs::{check_conditions, named_field, searched_text};

/// Fields that can be searched.
const SEARCHABLE_FIELDS: [(&str, SearchField); 5] = [
    ("triggerName", SearchField::Trigger),
    ("triggerId", SearchField::Instance),
    ("connectionId", SearchField::Account),
    ("entityId", SearchField::User),
    ("id", SearchField::Id),
];

/// Lists events of triggers, newest first.
#[utoipa::path(post, path = IN_TABLE, operation_id = "list_trigger_logs")]
pub(crate) async fn list(
    key: ProjectKey,
    OptionalJson(body): OptionalJson<Search>,
) -> ApiResult<Json<ListView>> {
    let page = Page::admit(body.limit, body.cursor.as_deref()).await?;
    let after = page.window(false)?.after;
    let with_payload = body.include_payload.unwrap_or(true);
    let now = key.app().clock.now();
    let filter = filter(body, now)?;
    let limit = page.limit;
    let found = trigger_log::list(key.app(), &key.project, &filter, after, limit, with_payload);
    let found = found.await?;
    let word = &key.server.config.operator_word;
    let views = found
        .entries
        .into_iter()
        .map(|entry| View::new(entry, word));
    Ok(Json(ListView {
        data: views.collect(),
        next_cursor: found.next.map(|last| page.next_after(last)),
    }))
}

/// Reads an event of a trigger with its payload and its deliveries.
#[utoipa::path(get, path = IN_TABLE, operation_id = "read_trigger_log")]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<LogId>) -> ApiResult<Json<DetailView>> {
    let entry = trigger_log::get(key.app(), &key.project, &id).await?;
    Ok(Json(DetailView {
        log: View::new(entry, &key.server.config.operator_word),
    }))
}

fn filter(body: Search, now: Time) -> ApiResult<Filter> {
    let conditions = body.search_params.unwrap_or_default();
    check_conditions("search_params", conditions.len())?;
    let mut contained = conditions
        .into_iter()
        .map(condition)
        .collect::<ApiResult<Vec<_>>>()?;
    if let Some(text) = body.search.filter(|text| !text.is_empty()) {
        contained.push((SearchField::Any, searched_text("search", text)?));
    }
    let auth_config = body.integration_id.as_deref().map(Uuid::parse_str);
    let since = body.from.map(|from| Time(from as i64));
    Ok(Filter {
        since: since.or(body.time.map(|period| period.since(now))),
        until: body.to.map(|to| Time(to as i64)),
        outcome: match body.status {
            Some(WantedStatus::Success) => Some(Outcome::Success),
            Some(WantedStatus::Error) => Some(Outcome::Error),
            Some(WantedStatus::All) | None => None,
        },
        user: body.user_id.or(body.entity_id),
        auth_config: auth_config
            .transpose()
            .map_err(|_| errors::invalid("integrationId: not a UUID"))?,
        contained,
    })
}

fn condition(given: ConditionBody) -> ApiResult<(SearchField, String)> {
    let name = given.field.unwrap_or_default();
    let field = named_field("search_params", &SEARCHABLE_FIELDS, &name)?;
    if given
        .operation
        .is_some_and(|operation| operation != "contains")
    {
        return Err(errors::invalid("search_params: `operation` must be contains").into());
    }
    let value = searched_text("search_params: `value`", given.value.unwrap_or_default())?;
    Ok((field, value))
}
