//! Search for the tools of a session that fit use cases.

use std::collections::BTreeMap;

use app::{
    agents::meta::{
        ConnectionStatus, FoundTool, MetaTool, SearchResult, SearchWorkflow, TimeInfo, ToolSearch,
        UseCase, UseCaseResult, search as search_tools,
    },
    core::ids::SessionId,
};
use http::{ApiResult, Branding, IN_TABLE, Json, Path, ProjectKey, SerializedJson};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;

use super::{open, requests::ClientTools};

/// A search for tools.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionSearchRequest)]
pub(crate) struct SearchBody {
    /// 1 to 7 use cases.
    queries: Vec<QueryBody>,
    /// Tools of the client. They are not searched.
    experimental: Option<ClientTools>,
    /// No effect: the search depends on no model.
    #[expect(dead_code, reason = "accepted without effect")]
    model: Option<String>,
    /// No effect: this server has one way to search.
    #[expect(dead_code, reason = "accepted without effect")]
    search_strategy: Option<String>,
}

/// A use case.
#[derive(Deserialize, ToSchema)]
#[schema(as = SessionSearchQuery)]
struct QueryBody {
    /// The use case in one sentence, of at most 1,024 characters.
    use_case: String,
    /// Values that are known already, of at most 500 characters.
    known_fields: Option<String>,
}

impl From<SearchBody> for ToolSearch {
    fn from(body: SearchBody) -> Self {
        let queries = body.queries.into_iter().map(|query| UseCase {
            use_case: query.use_case,
            known_fields: query.known_fields,
        });
        Self {
            queries: queries.collect(),
            session: None,
        }
    }
}

/// Finds tools of a session for use cases.
///
/// A use case that cannot be searched for fails on its own, and the others have their results.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The session has no search"),
))]
pub(crate) async fn search(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    Json(mut body): Json<SearchBody>,
) -> ApiResult<SerializedJson<SearchView>> {
    ClientTools::checked(body.experimental.take())?;
    let caller = open(&key, &id).await?;
    let found = search_tools(key.app(), &caller, body.into()).await?;
    let schemas = found.tool_schemas.values();
    let sizes = schemas.filter_map(|tool| tool.input_schema.as_ref());
    let size = sizes.map(|schema| schema.get().len()).sum();
    let branding = key.server.branding.clone();
    let turns = &key.app().large_work;
    let reply = turns.run(&key.project.tenant, size, move || {
        SerializedJson::new(&SearchView::new(&branding, found), size)
    });
    Ok(reply.await?)
}

view! {
    /// The tools for the use cases.
    #[schema(as = SessionSearchResult)]
    pub(crate) struct SearchView from (branding: &Branding, found: SearchResult) {
        /// True if no search failed.
        success: bool = found.error.is_none(),
        /// Summary of the searches that failed.
        error!: Option<String> = found.error,
        /// The results, in the order of the use cases.
        results: Vec<UseCaseView> = views(found.results, |one| UseCaseView::new(branding, one)),
        toolkit_connection_statuses: Vec<ConnectionView> = views(
            found.toolkit_connection_statuses,
            |one| ConnectionView::new(branding, one),
        ),
        /// The tools that were found, by slug.
        tool_schemas: BTreeMap<String, ToolSchemaView> = {
            let tools = found.tool_schemas.into_iter();
            let views = tools.map(|(slug, tool)| (slug, ToolSchemaView::new(branding, tool)));
            views.collect()
        },
        time_info: TimeView = found.time_info.into(),
        session: WorkflowView = found.session.into(),
        next_steps_guidance: Vec<String> = renamed(branding, &found.next_steps_guidance),
    }
}

view! {
    #[schema(as = SessionSearchUseCase)]
    struct UseCaseView from (branding: &Branding, result: UseCaseResult) {
        /// Position of the use case, from 0.
        index: usize = result.index,
        use_case: String = result.use_case,
        /// Reasons for which the tools were found.
        execution_guidance: String = result.reasoning,
        /// `easy`, `medium` or `hard`.
        difficulty: &'static str = result.task_difficulty,
        recommended_plan_steps: Vec<String> = renamed(branding, &result.recommended_plan_steps),
        known_pitfalls: Vec<String> = result.known_pitfalls,
        primary_tool_slugs: Vec<String> = result.primary_tool_slugs,
        related_tool_slugs: Vec<String> = result.related_tool_slugs,
        toolkits: Vec<String> = result.toolkits,
        /// Null if the search succeeded.
        error!: Option<String> = result.error,
    }
}

view! {
    #[schema(as = SessionSearchConnection)]
    struct ConnectionView from (branding: &Branding, status: ConnectionStatus) {
        toolkit: String = status.toolkit,
        description: String = status.description,
        has_active_connection: bool = status.has_active_connection,
        /// The account in use; empty without one.
        #[schema(value_type = Object)] connection_details: Value = status.connection_details,
        /// `PRIVATE` or `SHARED`.
        account_type?: Option<&'static str> = status.account_type,
        status_message: String = branding.rename_slugs(&status.status_message).into_owned(),
    }
}

view! {
    #[schema(as = SessionSearchTool)]
    struct ToolSchemaView from (branding: &Branding, tool: FoundTool) where {
        let reference = tool.input_schema.is_none().then(|| SchemaReference {
            tool: branding.rename(MetaTool::GetToolSchemas.slug()).into_owned(),
            args: SchemaArguments { tool_slugs: vec![tool.tool_slug.clone()] },
        });
    } {
        toolkit: String = tool.toolkit,
        tool_slug: String = tool.tool_slug,
        description: String = tool.description,
        /// True if `input_schema` is present.
        #[serde(rename = "hasFullSchema")] has_full_schema: bool = tool.input_schema.is_some(),
        #[schema(value_type = Option<Object>)]
        input_schema?: Option<Box<RawValue>> = tool.input_schema,
        /// The call that returns the schema of a tool without one here.
        #[serde(rename = "schemaRef", skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        schema_reference: Option<SchemaReference> = reference,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionSearchSchemaReference)]
struct SchemaReference {
    /// `SERVICE_GET_TOOL_SCHEMAS`.
    tool: String,
    args: SchemaArguments,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionSearchSchemaArguments)]
struct SchemaArguments {
    tool_slugs: Vec<String>,
}

view! {
    #[schema(as = SessionSearchTime)]
    struct TimeView from time: TimeInfo {
        message: String = time.message,
        #[schema(format = DateTime)] current_time_utc: String = time.current_time_utc,
        current_time_utc_epoch_seconds: i64 = time.current_time_utc_epoch_seconds,
    }
}

view! {
    #[schema(as = SessionSearchWorkflow)]
    struct WorkflowView from session: SearchWorkflow {
        /// Id that calls of meta tools of the same task send as `session_id`.
        id: String = session.workflow.id,
        /// True if the id is new.
        generate_id: bool = session.generate_id,
        instructions: String = session.workflow.instructions,
    }
}

fn views<T, V>(items: Vec<T>, view: impl Fn(T) -> V) -> Vec<V> {
    items.into_iter().map(view).collect()
}

/// Returns texts that name meta tools with the word of this installation.
fn renamed(branding: &Branding, texts: &[String]) -> Vec<String> {
    let texts = texts.iter().map(|text| branding.rename_slugs(text));
    texts.map(std::borrow::Cow::into_owned).collect()
}
