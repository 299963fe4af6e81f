//! Tool router sessions.

mod approval;
pub(crate) mod config;
pub(crate) mod execution;
mod inline_tools;
pub(crate) mod labs;
pub(crate) mod mounts;
pub(crate) mod proxy;
mod requests;
pub(crate) mod search;
mod toolkits;
mod views;

use app::{
    agents::{
        self, CallerRights, Connect, SessionCaller, SessionToolkitFilter, meta::MetaTool, sessions,
    },
    core::ids::SessionId,
};
use http::{
    ApiResult, Created, IN_TABLE, Json, Listed, OptionalJson, Page, Path, Prefix, ProjectKey,
    Query, request_id,
};

use self::{
    requests::{AttachBody, ClientTools, CreateBody, LinkBody, PatchBody, ToolkitQuery},
    views::{ConfigVersionView, LinkedView, RemovedView, SessionView},
};
use super::{
    toolkits::snapshot,
    tools::{Converter, View as ToolView},
};

pub use self::inline_tools::MAX_INLINE_TOOLS;
pub(crate) use self::toolkits::SessionToolkitView;

/// Maximum number of tools on a page of the tools of a session.
const MAX_TOOLS_ON_PAGE: u64 = 500;

/// Reads the session of a request, with the rights of its key.
async fn open(key: &ProjectKey, id: &SessionId) -> ApiResult<SessionCaller> {
    let rights = CallerRights::of_key(&key.holder, key.consent.clone());
    let caller = SessionCaller::open(key.app(), &key.project, id, request_id(), rights);
    Ok(caller.await?)
}

/// Creates a session of a user.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create(
    key: ProjectKey,
    prefix: Prefix,
    Json(body): Json<CreateBody>,
) -> ApiResult<Created<SessionView>> {
    let (config, inline) = body.into_config()?;
    let session = sessions::create(key.app(), &key.project, config).await?;
    Ok(Created(SessionView::new(&key, prefix, session, inline)))
}

/// Reads a session.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    prefix: Prefix,
    Path(id): Path<SessionId>,
) -> ApiResult<Json<SessionView>> {
    let session = sessions::get(key.app(), &key.project, &id).await?;
    Ok(Json(SessionView::new(&key, prefix, session, None)))
}

/// Changes parts of the configuration of a session, which raises its version.
///
/// An absent part stays as it is, and null restores its default. Lists and maps are replaced whole;
/// of the blocks of settings, what is absent stays. A request that changes nothing makes no
/// version.
#[utoipa::path(patch, path = IN_TABLE, responses(
    (status = 409, description = "The session has another version than `expected_config_version`"),
))]
pub(crate) async fn update(
    key: ProjectKey,
    prefix: Prefix,
    Path(id): Path<SessionId>,
    OptionalJson(body): OptionalJson<PatchBody>,
) -> ApiResult<Json<SessionView>> {
    let expected = body.expected_version();
    let change = body.into_change()?;
    let (app, project) = (key.app(), &key.project);
    let session = sessions::change(app, project, &id, expected, |config| change.apply(config));
    Ok(Json(SessionView::new(&key, prefix, session.await?, None)))
}

/// Deletes a session.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<SessionId>,
) -> ApiResult<Json<RemovedView>> {
    sessions::remove(key.app(), &key.project, &id).await?;
    Ok(Json(RemovedView::new(&id)))
}

/// Reads a session with tools that the client itself runs. They are not stored.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn attach(
    key: ProjectKey,
    prefix: Prefix,
    Path(id): Path<SessionId>,
    OptionalJson(body): OptionalJson<AttachBody>,
) -> ApiResult<Json<SessionView>> {
    let inline = ClientTools::checked(body.experimental)?;
    let session = sessions::get(key.app(), &key.project, &id).await?;
    Ok(Json(SessionView::new(&key, prefix, session, inline)))
}

/// Lists the versions of a session's configuration, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn config_history(
    key: ProjectKey,
    prefix: Prefix,
    Path(id): Path<SessionId>,
    page: Page,
) -> ApiResult<Json<Listed<ConfigVersionView>>> {
    let session = sessions::get(key.app(), &key.project, &id).await?;
    let current = session.body.version;
    let window = page.window(false)?;
    let until = page.as_of()?;
    let found = sessions::history(key.app(), &key.project, &id, until, window).await?;
    let newest = found.items.first().map(|newest| newest.created_at);
    let page = page.with_newest(newest);
    let found = found
        .try_map(|version| Ok::<_, app::Error>(ConfigVersionView::new(prefix, version, current)))?;
    Ok(Json(Listed::after(found, &page)))
}

/// Lists the tools that a session shows directly: its meta tools and the preloaded tools.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn tools(
    key: ProjectKey,
    converter: Converter,
    Path(id): Path<SessionId>,
    page: Page,
) -> ApiResult<Json<Listed<ToolView>>> {
    let session = sessions::get(key.app(), &key.project, &id).await?;
    let config = &session.body.config;
    let (catalog, page) = snapshot(key.app(), page)?;
    let page = page.at_most(MAX_TOOLS_ON_PAGE);
    let meta: Vec<_> = MetaTool::in_force(config).collect();
    let preloaded = agents::preloaded(&catalog, config);
    let total = (meta.len() + preloaded.len()) as u64;
    let branding = &key.server.branding;
    let meta = meta
        .iter()
        .map(|tool| Ok(ToolView::of_meta_tool(*tool, branding, converter)));
    let preloaded = preloaded
        .iter()
        .map(|found| ToolView::new(&catalog, found, converter));
    // Views are made for the tools on the page alone.
    let views = page.part(meta.chain(preloaded));
    let views = views.collect::<Result<_, app::Error>>()?;
    Ok(Json(Listed::counted(views, &page, total)))
}

/// Lists the toolkits of a session with the accounts that it uses for them.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list_toolkits(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    Query(query): Query<ToolkitQuery>,
    page: Page,
) -> ApiResult<Json<Listed<SessionToolkitView>>> {
    let caller = open(&key, &id).await?;
    let (catalog, page) = snapshot(key.app(), page)?;
    let filter = SessionToolkitFilter {
        slugs: query.toolkits,
        connected: query.is_connected.unwrap_or(false),
        search: query.search.unwrap_or_default(),
    };
    let found = agents::toolkits(key.app(), &caller, &catalog, filter).await?;
    let (found, total) = page.cut(found);
    let views = found.into_iter().map(SessionToolkitView::from).collect();
    Ok(Json(Listed::counted(views, &page, total)))
}

/// Creates an account of the session's user, and the URL of a page on which the user connects it.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The session does not permit the toolkit, or no further account of it"),
))]
pub(crate) async fn link(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    Json(body): Json<LinkBody>,
) -> ApiResult<Created<LinkedView>> {
    let caller = open(&key, &id).await?;
    let request = Connect {
        toolkit: body.toolkit,
        callback_url: body.callback_url.filter(|url| !url.is_empty()),
        alias: body.alias,
        sharing: body.experimental.unwrap_or_default().into(),
    };
    let link = agents::link(key.app(), &caller, request).await?;
    Ok(Created(link.into()))
}
