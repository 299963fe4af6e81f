//! The list of background work.

use crate::{
    App, accounts,
    lifecycle::{remove_project, retention},
    projects::idempotency,
    runs::log,
    work::{Job, run_jobs},
};

/// All recurring jobs.
const JOBS: &[Job] = &[
    Job {
        name: "log_retention",
        interval: log::RETENTION_INTERVAL,
        run: |app, claim| Box::pin(log::erase_old(app, claim)),
    },
    Job {
        name: "file_retention",
        interval: retention::FILE_RETENTION_INTERVAL,
        run: |app, claim| Box::pin(retention::erase_files(app, claim)),
    },
    Job {
        name: "pending_accounts",
        interval: accounts::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(accounts::sweep(app, claim)),
    },
    Job {
        name: "idle_accounts",
        interval: accounts::IDLE_REFRESH_INTERVAL,
        run: |app, claim| Box::pin(accounts::refresh_idle(app, claim)),
    },
    Job {
        name: "idempotency",
        interval: idempotency::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(idempotency::delete_expired(app, claim)),
    },
];

/// Does all background work for as long as the future is polled.
pub(crate) async fn run(app: &App) {
    let claims = app.claims();
    let removals = remove_project::queue();
    tokio::join!(run_jobs(&claims, app, JOBS), removals.run(&claims, app),);
}
