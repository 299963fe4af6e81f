//! Facts about the request being answered, which errors, limits and the log need wherever it is.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use app::core::{
    request_id::RequestId,
    shares::{ProcessorShares, TaskOwner},
    trace::OpenSpan,
};
use parking_lot::Mutex;

use crate::{
    Branding, Server,
    limiter::{Allowance, Permits},
    operation::Operation,
    request_counts::RouteCounts,
    unknown::Warnings,
};

tokio::task_local! {
    /// The request being answered. Set once around the whole request, so that an error envelope can
    /// contain its request id. Tasks to which the request is handed over share it.
    pub static CURRENT_REQUEST: Arc<RequestContext>;
}

/// Returns a message of the current request in which the slugs of meta tools have this installation's
/// word.
pub fn rename_slugs(message: &str) -> Cow<'_, str> {
    let renamed = CURRENT_REQUEST.try_with(|request| {
        let branding = request.branding.as_ref()?;
        Some(branding.rename_slugs(message))
    });
    renamed.ok().flatten().unwrap_or(Cow::Borrowed(message))
}

/// Facts about the request being answered.
pub struct RequestContext {
    /// The client's own request id, or one made by the server.
    pub request_id: RequestId,
    /// Span of the request; `None` if it is not traced.
    pub span: Option<OpenSpan>,
    /// Address of the client.
    pub peer: IpAddr,
    /// Names of this installation; `None` if they are the default ones.
    pub branding: Option<Arc<Branding>>,
    /// The server, once a route is matched.
    pub server: OnceLock<Arc<Server>>,
    /// Counts of the matched route.
    pub route: OnceLock<Arc<RouteCounts>>,
    /// Row of the matched operation.
    pub operation: OnceLock<Operation>,
    /// Remaining rate limit of the caller, once it is known.
    pub allowance: Mutex<Option<Allowance>>,
    /// Project or organization that the request was counted for, once its key is authenticated.
    pub owner: OnceLock<Arc<str>>,
    /// Project of the task that answers the request; `None` in tests.
    pub task: Option<Arc<TaskOwner>>,
    /// Concurrency permits that the request holds.
    pub permits: Permits,
    /// Warnings that its response will have.
    pub warnings: Mutex<Warnings>,
}

impl RequestContext {
    /// Creates the context of a request of which only the client's address is known.
    pub(crate) fn new(
        request_id: RequestId,
        peer: IpAddr,
        branding: Option<Arc<Branding>>,
    ) -> Self {
        Self {
            request_id,
            span: None,
            peer,
            branding,
            server: OnceLock::new(),
            route: OnceLock::new(),
            operation: OnceLock::new(),
            allowance: Mutex::default(),
            owner: OnceLock::new(),
            task: None,
            permits: Permits::default(),
            warnings: Mutex::default(),
        }
    }

    /// Notes the project that the request was counted for, which pays for the time of its task.
    pub(crate) fn set_owner(&self, shares: &ProcessorShares, project: &Arc<str>) {
        if let Some(task) = &self.task {
            shares.set_owner(task, project);
        }
        self.owner.get_or_init(|| project.clone());
    }

    /// Notes the organization that the request was counted for.
    pub(crate) fn set_organization(&self, organization: &str) {
        self.owner.get_or_init(|| organization.into());
    }
}

/// Returns the id of the request being answered.
pub fn request_id() -> RequestId {
    CURRENT_REQUEST
        .try_with(|request| request.request_id.clone())
        .unwrap_or_default()
}

/// Returns the public address of the server.
pub fn base_url() -> String {
    let base_url = CURRENT_REQUEST.try_with(|request| {
        let server = request.server.get();
        server.map(|server| server.app.base_url().to_owned())
    });
    base_url.ok().flatten().unwrap_or_default()
}

/// Returns the row of the operation being performed.
pub fn operation() -> Operation {
    CURRENT_REQUEST
        .try_with(|request| request.operation.get().copied().unwrap_or_default())
        .unwrap_or_default()
}
