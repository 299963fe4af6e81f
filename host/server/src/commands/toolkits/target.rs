//! Target of an operator's command: a running server over its API, or the data of a stopped one.
//!
//! The store belongs to one process, so its lock tells which of the two applies.

use api::toolkits::publication::{PublishedView, SIGNATURE_HEADER};
use app::catalog::{self, Release, Terms};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use net::{Body, Method};
use serde_json::{Value, json};
use settings::Config;

use crate::{
    commands::running::{self, Running, ServerArgs},
    open::{self, Opened, Stop},
};

/// Target of a command.
pub(super) enum Target {
    Running(Box<Running>),
    Stopped(Box<Opened>),
}

impl Target {
    /// Returns the server that was named, else the one of the data directory if it runs, else its
    /// data.
    pub(super) async fn find(config: &Config, named: &ServerArgs) -> Result<Self, Stop> {
        if !named.names_another(config) {
            open::check_exists(
                config,
                "create it with `toolhost serve`, or set --url to the URL of a server",
            )?;
            match open::open(config).await {
                Ok(opened) => return Ok(Self::Stopped(Box::new(opened))),
                Err(stop) if !stop.locked => return Err(stop),
                Err(_) => {}
            }
        }
        Ok(Self::Running(Box::new(named.reach(config)?)))
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
                let breaking = terms.breaking;
                let path = format!("toolkits/{slug}/versions/{version}?breaking={breaking}");
                let signature = terms
                    .signature
                    .map(|text| (SIGNATURE_HEADER, STANDARD.encode(text)));
                let (status, view) = server
                    .send(Method::PUT, &path, Body::Bytes(component), signature)
                    .await?;
                Ok((status == 201, server.parse(&view)?))
            }
        }
    }

    /// Returns the records of all versions.
    pub(super) async fn list(&self) -> Result<Vec<Value>, Stop> {
        match self {
            Self::Stopped(opened) => {
                let snapshot = opened.app.catalog.snapshot();
                Ok(snapshot.releases().map(|release| record(release)).collect())
            }
            Self::Running(server) => server.all("org/toolkits", "items").await,
        }
    }

    /// Deprecates a version.
    pub(super) async fn deprecate(&self, slug: &str, version: &str) -> Result<(), Stop> {
        match self {
            Self::Stopped(opened) => catalog::set_deprecated(&opened.app, slug, version, true)
                .await
                .map(drop)
                .map_err(refusal),
            Self::Running(server) => {
                let path = format!("toolkits/{slug}/versions/{version}");
                server.delete(&path).await
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
