//! The execution log.

mod detail;
mod types;

use app::{
    agents::meta::MetaTool,
    core::ids::LogId,
    runs::log::{self, Condition, ExecutionRecord, Field, Filter, ListPart, Operator},
};

pub(crate) use self::types::{CredentialSource, Status};
use http::{ApiResult, IN_TABLE, Json, OptionalJson, Page, Path, ProjectKey, errors};

use self::{
    detail::{CassetteView, DetailView},
    types::{ConditionBody, ListView, Search, View},
};

/// Maximum characters of a value in a condition.
pub const MAX_VALUE_CHARS: usize = 256;
/// Maximum number of conditions of one list.
pub const MAX_CONDITIONS: usize = 20;

/// Fields that can be searched.
const SEARCHABLE_FIELDS: [(&str, Field); 10] = [
    ("tool_slug", Field::Tool),
    ("toolkit_slug", Field::Toolkit),
    ("connected_account_id", Field::Account),
    ("auth_config_id", Field::AuthConfig),
    ("status", Field::Status),
    ("user_id", Field::User),
    ("request_id", Field::Request),
    ("log_id", Field::Id),
    ("session_id", Field::Session),
    ("sandbox_id", Field::Absent),
];

/// Lists execution records, newest first.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    OptionalJson(body): OptionalJson<Search>,
) -> ApiResult<Json<ListView>> {
    let page = Page::admit(body.limit, body.cursor.as_deref()).await?;
    let filters = body.filters.unwrap_or_default();
    check_conditions("filters", filters.len())?;
    let filter = Filter {
        conditions: filters
            .into_iter()
            .map(|given| condition(&key, given))
            .collect::<ApiResult<_>>()?,
        from: body.time_range.as_ref().map(|range| range.from as i64),
        to: body.time_range.as_ref().map(|range| range.to as i64),
    };
    let part = part(&page)?;
    let (records, more) = log::list(key.app(), &key.project, &filter, &part).await?;
    let last = records.last().filter(|_| more);
    let state = last.map(|last| Some(last.id.to_string()));
    let next_cursor = state.map(|state| Page { state, ..page }.next());
    let records = records.into_iter().map(|record| branded(&key, record));
    let logs = records.map(View::from).collect();
    Ok(Json(ListView { logs, next_cursor }))
}

/// Returns a record with the word of this installation in the names of a meta tool.
pub(super) fn branded(key: &ProjectKey, record: ExecutionRecord) -> ExecutionRecord {
    let Some(tool) = MetaTool::from_slug(&record.tool) else {
        return record;
    };
    let branding = &key.server.branding;
    ExecutionRecord {
        tool: branding.rename(tool.slug()).into_owned(),
        toolkit: branding.rename(&record.toolkit).into_owned(),
        ..record
    }
}

/// Returns the value of a condition as records hold it: the slug of a meta tool has the default word.
pub(super) fn stored_value(key: &ProjectKey, field: Field, value: String) -> String {
    let branding = &key.server.branding;
    let mut tools = MetaTool::all();
    let named = match field {
        Field::Tool => tools.find(|tool| branding.rename(tool.slug()) == value),
        _ => None,
    };
    named.map_or(value, |tool| tool.slug().to_owned())
}

/// Returns the part of the list on a page. The cursor contains the id of the last record of the
/// page before.
fn part(page: &Page) -> ApiResult<ListPart> {
    let after = page.state.as_deref().map(LogId::parse).transpose();
    let after = after.map_err(|_| errors::cursor_invalid())?;
    Ok(ListPart {
        skip: if after.is_some() { 0 } else { page.offset() },
        after,
        limit: page.limit,
    })
}

/// Reads an execution record with its arguments and its result.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<LogId>) -> ApiResult<Json<DetailView>> {
    let (record, detail) = log::get(key.app(), &key.project, &id).await?;
    // A published version never changes, so its component is the one that ran.
    let release = key.app().catalog.release(&record.toolkit, &record.version);
    let component = release
        .ok()
        .map(|release| format!("sha256:{}", release.digest));
    let record = branded(&key, record);
    Ok(Json(DetailView::new(record, detail, component)))
}

/// Reads the cassette of an execution, with which it can be replayed elsewhere.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn cassette(
    key: ProjectKey,
    Path(id): Path<LogId>,
) -> ApiResult<Json<CassetteView>> {
    let cassette = log::cassette(key.app(), &key.project, &id).await?;
    Ok(Json(CassetteView(cassette)))
}

fn condition(key: &ProjectKey, given: ConditionBody) -> ApiResult<Condition> {
    let field = named_field("filters", &SEARCHABLE_FIELDS, &given.field)?;
    let value = searched_text("filters: `value`", given.value)?;
    Ok(Condition {
        field,
        operator: operator("filters: `operator`", &given.operator)?,
        value: stored_value(key, field, value),
        ignore_case: false,
    })
}

/// Refuses more conditions than a list may have.
pub(super) fn check_conditions(member: &str, count: usize) -> ApiResult<()> {
    if count > MAX_CONDITIONS {
        return Err(errors::invalid(format!("{member}: at most {MAX_CONDITIONS}")).into());
    }
    Ok(())
}

/// Returns the field that a condition names.
pub(super) fn named_field<F: Copy>(member: &str, fields: &[(&str, F)], name: &str) -> ApiResult<F> {
    let (_, field) = fields
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| {
            let known: Vec<_> = fields.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            errors::invalid(format!("{member}: `field` must be one of {known}"))
        })?;
    Ok(*field)
}

/// Refuses a string that is too long to search for.
pub(super) fn searched_text(place: &str, text: String) -> ApiResult<String> {
    if text.chars().count() > MAX_VALUE_CHARS {
        let problem = format!("{place} has at most {MAX_VALUE_CHARS} characters");
        return Err(errors::invalid(problem).into());
    }
    Ok(text)
}

/// Parses the operator of a condition.
pub(super) fn operator(place: &str, given: &str) -> ApiResult<Operator> {
    Ok(match given {
        "==" => Operator::Is,
        "!=" => Operator::IsNot,
        "contains" => Operator::Contains,
        "not_contains" => Operator::ContainsNot,
        _ => {
            return Err(errors::invalid(format!(
                "{place} must be ==, !=, contains or not_contains"
            ))
            .into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_limited_in_conditions_and_characters() {
        assert!(check_conditions("filters", MAX_CONDITIONS).is_ok());
        assert!(check_conditions("filters", MAX_CONDITIONS + 1).is_err());
        assert!(searched_text("filters", "é".repeat(MAX_VALUE_CHARS)).is_ok());
        assert!(searched_text("filters", "é".repeat(MAX_VALUE_CHARS + 1)).is_err());
    }
}
