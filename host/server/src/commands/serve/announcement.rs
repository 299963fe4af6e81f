//! First work of a server: publishes toolkits, prints the greeting, and lets clients in.

use std::{net::SocketAddr, sync::Arc};

use http::Server;
use serde_json::json;

use super::{Args, publication::Publication};
use crate::{
    commands::{
        demo,
        first_run::{self, Keys},
    },
    metrics,
    open::Stop,
    terminal::Terminal,
};

/// Facts known at startup, and the components to publish.
pub(super) struct Start {
    pub(super) url: String,
    pub(super) keys: Keys,
    pub(super) new: bool,
    pub(super) address: SocketAddr,
    pub(super) metrics_address: Option<SocketAddr>,
    pub(super) publication: Publication,
}

/// Publishes the toolkits, prints the greeting, and lets clients in.
pub(super) async fn announce(
    server: &Arc<Server>,
    args: &Args,
    start: Start,
    terminal: Terminal,
) -> Result<(), Stop> {
    let progress = (!args.json_ready).then_some(terminal);
    let problems = start.publication.run(server, progress).await;
    warn_of_oauth_apps(server);
    server.set_serving(true);
    let metrics_url = start
        .metrics_address
        .map(|address| format!("http://{address}{}", metrics::METRICS_PATH));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %start.address,
        metrics = start.metrics_address.map(tracing::field::display),
        "the server has started"
    );
    let ready = json!({
        "ready": true,
        "url": start.url,
        "metrics_url": metrics_url,
        "pid": std::process::id(),
        "project_id": start.keys.project,
        "api_key": start.keys.project_key.as_str(),
        "org_api_key": start.keys.organization_key.as_str(),
    });
    if let Some(path) = &args.ready_file {
        first_run::write_private(path, &ready.to_string())?;
    }
    if args.json_ready {
        terminal.line(&ready.to_string());
        return Ok(());
    }
    first_run::print_summary(server, &start.url, start.address, start.new, terminal);
    if let Some(url) = &metrics_url {
        terminal.pair("metrics", url);
    }
    for problem in &problems {
        terminal.bad(problem);
    }
    if let Some(file) = &args.demo {
        demo::run(&server.config, start.address, &start.keys, file, terminal).await;
    }
    if start.new {
        first_run::print_examples(server, terminal);
    }
    Ok(())
}

/// Warns of OAuth apps in the settings whose toolkit is not published.
fn warn_of_oauth_apps(server: &Server) {
    let catalog = server.app.catalog.snapshot();
    for app in server.config.oauth_apps() {
        if catalog.toolkit(&app.toolkit).is_none() {
            tracing::warn!(
                "`oauth_apps.{0}` has no effect: toolkit {0} is not published{1}",
                app.toolkit,
                catalog.similar_toolkit(&app.toolkit)
            );
        }
    }
}
