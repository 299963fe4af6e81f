//! Target of an operator's command: a running server over its API, or the data of a stopped one.
//!
//! The store belongs to one process, so its lock tells which of the two applies.

use anyhow::{Context, anyhow};
use app::catalog::{self, Release, Terms};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use net::{Body, Method};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use crate::{
    api::toolkits::publication::{PublishedView, SIGNATURE},
    commands::running::{self, Running, ServerArgs},
    config::Config,
    open::{self, Opened, Stop},
};

/// Number of versions in one page of a list request.
const PAGE_SIZE: usize = 500;

/// Target of a command.
pub(super) enum Target {
    Running(Running),
    Stopped(Box<Opened>),
}

impl Target {
    /// Returns the server that was named, else the one of the data directory if it runs, else its
    /// data.
    pub(super) async fn find(config: &Config, named: &ServerArgs) -> Result<Self, Stop> {
        if named.url.is_none() {
            let data = config.data.display();
            if !config.data.exists() {
                return Err(anyhow!(
                    "the data directory {data} does not exist: create it with `toolhost serve`, or set --url to the URL of a server"
                )
                .into());
            }
            match open::open(config).await {
                Ok(opened) => return Ok(Self::Stopped(Box::new(opened))),
                Err(stop) if !stop.locked => return Err(stop),
                Err(_) => {}
            }
        }
        Ok(Self::Running(named.reach(config)?))
    }

    /// Publishes a component under the slug and version in its manifest. Returns true if it is new,
    /// and its record.
    pub(super) async fn publish(
        &self,
        component: Bytes,
        terms: Terms<'_>,
    ) -> Result<(bool, Value), Stop> {
        let (slug, version) = catalog::identity(&component).map_err(refusal)?;
        match self {
            Self::Stopped(opened) => {
                let done = catalog::publish(&opened.app, &slug, &version, component, terms).await;
                let done = done.map_err(refusal)?;
                Ok((done.new, record(&done.release)))
            }
            Self::Running(server) => {
                let path = format!(
                    "toolkits/{slug}/versions/{version}?breaking={}",
                    terms.breaking
                );
                let signature = terms
                    .signature
                    .map(|text| (SIGNATURE, STANDARD.encode(text)));
                let (status, view) = server
                    .send(Method::PUT, &path, Body::Bytes(component), signature)
                    .await?;
                Ok((status == 201, parse(&view)?))
            }
        }
    }

    /// Returns the records of all versions.
    pub(super) async fn list(&self) -> Result<Vec<Value>, Stop> {
        match self {
            Self::Stopped(opened) => Ok(opened
                .app
                .catalog
                .snapshot()
                .releases()
                .map(|release| record(release))
                .collect()),
            Self::Running(server) => {
                let mut all = Vec::new();
                let mut cursor = String::new();
                loop {
                    let path = format!("org/toolkits?limit={PAGE_SIZE}{cursor}");
                    let (_, page) = server.send(Method::GET, &path, Body::Empty, None).await?;
                    let mut page = parse(&page)?;
                    if let Some(items) = page["items"].as_array_mut() {
                        all.append(items);
                    }
                    let Some(next) = page["next_cursor"].as_str() else {
                        return Ok(all);
                    };
                    let next: String = byte_serialize(next.as_bytes()).collect();
                    cursor = format!("&cursor={next}");
                }
            }
        }
    }

    /// Deprecates a version.
    pub(super) async fn deprecate(&self, slug: &str, version: &str) -> Result<(), Stop> {
        match self {
            Self::Stopped(opened) => catalog::deprecate(&opened.app, slug, version)
                .await
                .map(drop)
                .map_err(refusal),
            Self::Running(server) => {
                let path = format!("toolkits/{slug}/versions/{version}");
                server
                    .send(Method::DELETE, &path, Body::Empty, None)
                    .await
                    .map(drop)
            }
        }
    }

    /// Closes the opened store.
    pub(super) async fn close(self) {
        if let Self::Stopped(opened) = self {
            let Opened { app, store, .. } = *opened;
            drop(app);
            store.close().await;
        }
    }
}

/// Returns the record of a version as a running server returns it.
fn record(release: &Release) -> Value {
    json!(PublishedView::from(release))
}

fn refusal(cause: app::Error) -> Stop {
    running::refusal(
        &cause.to_string(),
        cause.problems().iter().map(String::as_str),
        cause.info().hint,
    )
}

fn parse(response: &[u8]) -> Result<Value, Stop> {
    serde_json::from_slice(response)
        .context("the response of the server is not JSON")
        .map_err(Stop::from)
}
