//! The list of recurring jobs.

use crate::{
    accounts,
    lifecycle::{remove_project, retention},
    projects::idempotency,
    runs::log,
    work::Job,
};

/// All recurring jobs.
pub(crate) const JOBS: &[Job] = &[
    Job {
        name: "log_retention",
        interval: log::RETENTION_INTERVAL,
        run: |app, lease| Box::pin(log::erase_old(app, lease)),
    },
    Job {
        name: "file_retention",
        interval: retention::FILE_RETENTION_INTERVAL,
        run: |app, lease| Box::pin(retention::erase_files(app, lease)),
    },
    Job {
        name: "pending_accounts",
        interval: accounts::SWEEP_INTERVAL,
        run: |app, lease| Box::pin(accounts::sweep(app, lease)),
    },
    Job {
        name: "idle_accounts",
        interval: accounts::IDLE_REFRESH_INTERVAL,
        run: |app, lease| Box::pin(accounts::refresh_idle(app, lease)),
    },
    Job {
        name: "project_removals",
        interval: remove_project::INTERVAL,
        run: |app, lease| Box::pin(remove_project::finish_removals(app, lease)),
    },
    Job {
        name: "idempotency",
        interval: idempotency::SWEEP_INTERVAL,
        run: |app, lease| Box::pin(idempotency::delete_expired(app, lease)),
    },
];
