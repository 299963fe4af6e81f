//! The list of background work.

use crate::{
    App, accounts,
    agents::{approval, mcp_oauth, recipes, sessions},
    events::{
        self,
        triggers::{actions, polling, receiving, subscribing},
    },
    lifecycle::{remove_project, retention},
    projects::idempotency,
    runs::log,
    work::{Job, run_jobs},
};

const RECURRING_JOBS: &[Job] = &[
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
        name: "event_retention",
        interval: events::RETENTION_INTERVAL,
        run: |app, claim| Box::pin(events::erase_old(app, claim)),
    },
    Job {
        name: "idempotency",
        interval: idempotency::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(idempotency::delete_expired(app, claim)),
    },
    Job {
        name: "approval_answers",
        interval: approval::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(approval::erase_expired(app, claim)),
    },
    Job {
        name: "mcp_consents",
        interval: mcp_oauth::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(mcp_oauth::delete_expired(app, claim)),
    },
    Job {
        name: "unused_sessions",
        interval: sessions::SWEEP_INTERVAL,
        run: |app, claim| Box::pin(sessions::erase_unused(app, claim)),
    },
    Job {
        name: "hidden_records",
        interval: retention::HIDDEN_RETENTION_INTERVAL,
        run: |app, claim| Box::pin(retention::erase_hidden(app, claim)),
    },
    Job {
        name: "action_recipes",
        interval: actions::COPIES_INTERVAL,
        run: |app, claim| Box::pin(actions::add_missing(app, claim)),
    },
    Job {
        name: "recipe_retention",
        interval: recipes::RETENTION_INTERVAL,
        run: |_, claim| Box::pin(recipes::erase_old(claim)),
    },
];

/// Does all background work for as long as the future is polled.
pub(crate) async fn run(app: &App) {
    let claims = app.claims();
    let idle_refresh = accounts::idle_refresh(app);
    let removals = remove_project::queue();
    let deliveries = events::sending::queue(app);
    let polls = polling::queue();
    let subscriptions = subscribing::queue();
    let actions = actions::running::queue();
    let recipes = recipes::queue();
    let sink = async {
        if app.sink.is_some() {
            events::sink::queue().run(&claims, app).await;
        }
    };
    tokio::join!(
        receiving::compile_all(app),
        run_jobs(&claims, app, RECURRING_JOBS),
        idle_refresh.run(&claims, app),
        removals.run(&claims, app),
        deliveries.run(&claims, app),
        polls.run(&claims, app),
        subscriptions.run(&claims, app),
        actions.run(&claims, app),
        recipes.run(&claims, app),
        sink,
    );
}
