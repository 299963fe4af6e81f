//! The calls of one request, which run in parallel.
//!
//! Problem: a task for each call costs more than a short call itself, and one task for all calls uses
//! one processor.
//!
//! There are as many workers as threads of the runtime. One of them is the task of the request. Each
//! worker starts one call after another, and continues those that wait. The permission, the account
//! and the approval of a tool are decided once, by its first call, and for each call anew after a change of
//! the session. The workers have one deadline.

use std::{
    borrow::Cow,
    panic::AssertUnwindSafe,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::try_join, poll, stream::FuturesUnordered};
use serde::Serialize;
use serde_json::json;
use tokio::{
    runtime::Handle,
    sync::OnceCell,
    task::{JoinSet, yield_now},
    time::{Instant, timeout_at},
};

use super::{CallArguments, inline_or_file};
use crate::{
    App, Error,
    agents::{
        SessionCaller, errors,
        execute::{self, Prepared},
        meta::MetaTool,
    },
    core::{ids::LogId, json::RawJson, shown_slug},
    runs::Execution,
};

/// Maximum number of calls that run at a time, so that other calls of the project find capacity.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Time after which calls that wait for nothing leave their thread to other requests.
const YIELD_INTERVAL: Duration = Duration::from_micros(250);
const RECIPE_TOOLKIT: &str = "recipes";

pub(super) struct Batch {
    /// The tools of the calls, each once for each account.
    tools: Vec<BatchTool>,
    calls: Vec<Call>,
    /// Number of calls that workers have taken. It may exceed the number of calls.
    taken: AtomicUsize,
    /// Time that the calls have together.
    timeout: Duration,
    deadline: Instant,
}

/// A tool with an account, and the decision on their calls or the reason why they may not run.
struct BatchTool {
    slug: String,
    /// Id or alias of the account that the calls name.
    account: Option<String>,
    prepared: OnceCell<Result<Prepared, String>>,
}

struct Call {
    tool: usize,
    arguments: Bytes,
    /// The response, or the reason why it is missing.
    outcome: OnceLock<Result<Response, String>>,
}

/// The result of a tool that ran.
#[derive(Serialize)]
pub(super) struct Response {
    pub data: RawJson,
    error: Option<String>,
    successful: bool,
    log_id: LogId,
}

#[derive(Serialize)]
pub(super) struct CallResult<'a> {
    tool_slug: &'a str,
    index: usize,
    pub response: Option<&'a Response>,
    pub error: Option<&'a str>,
}

impl Batch {
    /// Creates a batch of calls whose arguments are parts of those of the request. Starts its timeout.
    pub(super) fn new(given: Vec<CallArguments<'_>>, arguments: &Bytes, timeout: Duration) -> Self {
        let mut tools: Vec<BatchTool> = Vec::new();
        let mut calls = Vec::with_capacity(given.len());
        for call in given {
            let known = tools
                .iter()
                .position(|tool| tool.slug == call.tool_slug && tool.account == call.account);
            let tool = known.unwrap_or(tools.len());
            if known.is_none() {
                tools.push(BatchTool {
                    slug: call.tool_slug,
                    account: call.account,
                    prepared: OnceCell::new(),
                });
            }
            calls.push(Call {
                tool,
                arguments: arguments.slice_ref(call.arguments.get().as_bytes()),
                outcome: OnceLock::new(),
            });
        }
        Self {
            tools,
            calls,
            taken: AtomicUsize::new(0),
            timeout,
            deadline: Instant::now() + timeout,
        }
    }

    /// Runs the calls until all have ended or the deadline has passed. Dropping the future cancels the
    /// calls. A batch has at least one call.
    pub(super) async fn run(
        self: &Arc<Self>,
        app: &App,
        caller: &SessionCaller,
    ) -> Result<(), Error> {
        let threads = Handle::current().metrics().num_workers();
        let workers = threads.min(self.calls.len()).min(MAX_CONCURRENT_CALLS);
        let mut others = JoinSet::new();
        for worker in 1..workers {
            let batch = self.clone();
            let capacity = worker_capacity(worker, workers);
            let work = batch.work_measured(app.shared()?, caller.clone(), capacity);
            others.spawn(work);
        }
        if workers > 1 {
            // Tokio lets no other thread take the task that a thread spawned last. This one is empty.
            others.spawn(async {});
        }
        let own = async {
            let work = AssertUnwindSafe(self.work(app, caller, worker_capacity(0, workers)));
            let ended = work.catch_unwind().await;
            ended.map_err(|_| errors::internal("a call panicked"))
        };
        let joined = async {
            while let Some(ended) = others.join_next().await {
                ended.map_err(errors::internal)?;
            }
            Ok::<_, Error>(())
        };
        try_join(own, joined).await?;
        Ok(())
    }

    /// Does the work of a worker with its own task, and counts its time for the project.
    async fn work_measured(self: Arc<Self>, app: Arc<App>, caller: SessionCaller, capacity: usize) {
        let owner = app.shares.owner(&caller.project.tenant);
        let work = self.work(&app, &caller, capacity);
        app.shares.measure(&owner, work).await;
    }

    /// Runs calls, of which up to `capacity` may wait at a time, until all are taken or the deadline has
    /// passed.
    async fn work(&self, app: &App, caller: &SessionCaller, capacity: usize) {
        let mut running = FuturesUnordered::new();
        let mut yielded_at = Instant::now();
        while Instant::now() < self.deadline {
            if running.len() < capacity
                && let Some(call) = self.take()
            {
                running.push(self.run_call(app, caller, call));
                // Starts the call, and continues those that can.
                while let Poll::Ready(Some(())) = poll!(running.next()) {}
            } else {
                let ended = timeout_at(self.deadline, running.next());
                let Ok(Some(())) = ended.await else { break };
            }
            if yielded_at.elapsed() >= YIELD_INTERVAL {
                yield_now().await;
                yielded_at = Instant::now();
            }
        }
    }

    /// Returns the next call that no worker has taken.
    fn take(&self) -> Option<&Call> {
        self.calls.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    async fn run_call(&self, app: &App, caller: &SessionCaller, call: &Call) {
        let tool = &self.tools[call.tool];
        let outcome = execute_one(app, caller, tool, call.arguments.clone()).await;
        let _ = call.outcome.set(outcome);
    }

    /// Returns the results of the calls in their order, once the calls have run.
    pub(super) fn results(&self) -> impl Iterator<Item = CallResult<'_>> {
        let taken = self.taken.load(Ordering::Relaxed);
        let calls = self.calls.iter().enumerate();
        calls.map(move |(index, call)| {
            let outcome = call
                .outcome
                .get_or_init(|| Err(missing_outcome(index < taken, self.timeout.as_secs())));
            let (response, error) = match outcome {
                Ok(response) => (Some(response), response.error.as_deref()),
                Err(reason) => (None, Some(reason.as_str())),
            };
            CallResult {
                tool_slug: shown_slug(&self.tools[call.tool].slug),
                index,
                response,
                error,
            }
        })
    }
}

/// Returns the number of calls that a worker may run at a time. The first workers take the remainder.
fn worker_capacity(worker: usize, workers: usize) -> usize {
    let rest = MAX_CONCURRENT_CALLS % workers;
    MAX_CONCURRENT_CALLS / workers + usize::from(worker < rest)
}

/// Returns the reason why a call lacks an outcome after the deadline.
fn missing_outcome(was_started: bool, seconds: u64) -> String {
    if was_started {
        format!(
            "the call was cancelled, because the calls have {seconds} s together; it may have had effects"
        )
    } else {
        format!("the call was not started, because the calls before it took {seconds} s")
    }
}

/// Executes a tool or a recipe. Fails if nothing ran.
async fn execute_one(
    app: &App,
    caller: &SessionCaller,
    tool: &BatchTool,
    arguments: Bytes,
) -> Result<Response, String> {
    let slug = &*tool.slug;
    let current = caller.current(app).await;
    let executed = match current.map_err(|cause| cause.full_text())? {
        Cow::Borrowed(caller) => {
            let initialized = tool.prepared.get_or_init(|| async {
                let prepared = Box::pin(prepare(app, caller, tool)).await;
                prepared.map_err(|cause| cause.full_text())
            });
            let prepared = initialized.await.as_ref().map_err(Clone::clone)?;
            execute::execute_prepared(app, caller, slug, prepared, arguments).await
        }
        // What the session permitted at the start of the batch does not hold anymore.
        Cow::Owned(caller) => Box::pin(execute_changed(app, &caller, tool, arguments)).await,
    };
    let execution = executed.map_err(|cause| cause.full_text())?;
    let release = execution.release.as_ref();
    let toolkit = release.map_or(RECIPE_TOOLKIT, |release| &*release.slug);
    let stored = inline_or_file(app, caller, (toolkit, slug), execution.data).await;
    // The tool ran, so the caller gets the id of its record in either case.
    let (data, error) = match stored {
        Ok(data) => (data, execution.error),
        Err(cause) => {
            let kind = sandbox::kind::FILE_NOT_KEPT;
            let message = format!("the tool ran, but its result could not be stored: {cause}");
            let data = json!({ "kind": kind, "message": message });
            (data.to_string().into(), Some(format!("{kind}: {message}")))
        }
    };
    Ok(Response {
        data: RawJson(data),
        successful: error.is_none(),
        error,
        log_id: execution.log_id,
    })
}

/// Executes a tool or a recipe of a session that has changed since the start of the batch.
async fn execute_changed(
    app: &App,
    caller: &SessionCaller,
    tool: &BatchTool,
    arguments: Bytes,
) -> Result<Execution, Error> {
    MetaTool::MultiExecuteTool.check_switched_on(caller.config())?;
    let prepared = prepare(app, caller, tool).await?;
    execute::execute_prepared(app, caller, &tool.slug, &prepared, arguments).await
}

/// Decides on the calls of a tool or of a recipe. Fails if they may not run.
async fn prepare(app: &App, caller: &SessionCaller, tool: &BatchTool) -> Result<Prepared, Error> {
    execute::prepare(app, caller, &tool.slug, tool.account.as_deref()).await
}
