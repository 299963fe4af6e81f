//! The execution log for older clients: the records of [`super::super::logs`] under other names.

mod detail;
mod types;

use app::{
    App,
    core::ids::LogId,
    runs::log::{self, Condition, ExecutionRecord, Field, Filter, ListPart, Operator},
};
use http::{ApiResult, IN_TABLE, Json, OptionalJson, Page, Path, ProjectKey, errors};

use self::{
    detail::View,
    types::{
        AppView, ConditionBody, FieldsView, ItemView, ListView, Search, SearchableField,
        SearchableFields,
    },
};
use crate::{
    logs::{branded, check_conditions, named_field, operator, searched_text, stored_value},
    toolkits::logo_url,
};

/// Fields that can be searched, with their display name.
const SEARCHABLE_FIELDS: [(&str, (&str, Field)); 6] = [
    ("actionKey", ("Tool", Field::Tool)),
    ("appKey", ("Toolkit", Field::Toolkit)),
    ("connectedAccountId", ("Connected account", Field::Account)),
    ("entityId", ("User", Field::User)),
    ("status", ("Status", Field::Status)),
    ("id", ("Log", Field::Id)),
];
/// Maximum number of executions that a cursor may skip.
const MAX_SKIPPED: f64 = 1_000_000.0;

/// Lists the fields that can be searched.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn fields(_key: ProjectKey) -> ApiResult<Json<FieldsView>> {
    let fields = SEARCHABLE_FIELDS.map(|(id, (name, _))| SearchableField::new(id, name));
    Ok(Json(FieldsView {
        fields: SearchableFields {
            action_execution: fields.into(),
        },
    }))
}

/// Lists executions, newest first.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    OptionalJson(body): OptionalJson<Search>,
) -> ApiResult<Json<ListView>> {
    let skip = body.cursor.unwrap_or(0.0);
    if !(0.0..=MAX_SKIPPED).contains(&skip) {
        return Err(errors::cursor_invalid().into());
    }
    let part = ListPart {
        after: None,
        skip: skip as u64,
        limit: Page::admit(body.limit, None).await?.limit,
    };
    let filter = filter(&key, body)?;
    let (records, more) = log::list(key.app(), &key.project, &filter, &part).await?;
    let items = records.into_iter().map(|record| {
        let toolkit = toolkit(key.app(), &record);
        ItemView::new(toolkit, branded(&key, record))
    });
    Ok(Json(ListView {
        data: items.collect(),
        next_cursor: more.then_some(part.skip + part.limit),
    }))
}

/// Reads an execution with its arguments and its result.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<LogId>) -> ApiResult<Json<View>> {
    let (record, detail) = log::get(key.app(), &key.project, &id).await?;
    let toolkit = toolkit(key.app(), &record);
    let record = branded(&key, record);
    Ok(Json(View::new(record, detail, toolkit)))
}

fn filter(key: &ProjectKey, body: Search) -> ApiResult<Filter> {
    let ignore_case = body.case_sensitive == Some(false);
    let conditions = body.search_params.unwrap_or_default();
    check_conditions("search_params", conditions.len())?;
    Ok(Filter {
        conditions: conditions
            .into_iter()
            .map(|given| condition(key, given, ignore_case))
            .collect::<ApiResult<_>>()?,
        from: body.from.map(|from| from as i64),
        to: body.to.map(|to| to as i64),
    })
}

fn condition(key: &ProjectKey, given: ConditionBody, ignore_case: bool) -> ApiResult<Condition> {
    let name = given.field.unwrap_or_default();
    let (_, field) = named_field("search_params", &SEARCHABLE_FIELDS, &name)?;
    let operator = match given.operation.as_deref() {
        None => Operator::Contains,
        Some(given) => operator("search_params: `operation`", given)?,
    };
    let value = searched_text("search_params: `value`", given.value.unwrap_or_default())?;
    Ok(Condition {
        field,
        operator,
        value: stored_value(key, field, value),
        ignore_case,
    })
}

/// Returns the name and the logo of the toolkit that ran.
fn toolkit(app: &App, record: &ExecutionRecord) -> AppView {
    let release = app.catalog.release(&record.toolkit, &record.version);
    match release {
        Ok(release) => AppView {
            icon: logo_url(&release),
            name: release.name.clone(),
        },
        Err(_) => AppView {
            icon: String::new(),
            name: record.toolkit.clone(),
        },
    }
}
