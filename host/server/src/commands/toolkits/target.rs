//! Where an operator's command works: on a running server over its API, or on the data of a stopped one.
//!
//! The store belongs to one process, so its lock tells which of the two it is.

use std::time::Duration;

use anyhow::{Context, anyhow};
use app::catalog;
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use net::{Body, HeaderMap, Limits, Method, Request};
use serde_json::Value;
use url::form_urlencoded::byte_serialize;
use zeroize::Zeroizing;

use super::Named;
use crate::{
    api::toolkits::{SIGNATURE, published_view},
    auth,
    config::Config,
    open::{self, Opened, Stop},
};

/// The server compiles before it answers.
const PATIENCE: Duration = Duration::from_secs(180);
const PAGE: usize = 500;

/// The place.
pub(super) enum Target {
    Running(Running),
    Stopped(Box<Opened>),
}

pub(super) struct Running {
    client: net::Client,
    url: String,
    key: Zeroizing<String>,
}

impl Target {
    /// The server that was named; else the one of the data directory, when it runs; else its data.
    pub(super) async fn find(config: &Config, named: &Named) -> Result<Self, Stop> {
        if named.url.is_none() {
            let data = config.data.display();
            if !config.data.exists() {
                return Err(anyhow!(
                    "there is no installation at {data}: `toolhost serve` makes one, --url names a server elsewhere"
                )
                .into());
            }
            match open::open(config).await {
                Ok(opened) => return Ok(Self::Stopped(Box::new(opened))),
                Err(stop) if !stop.locked => return Err(stop),
                Err(_) => {}
            }
        }
        Running::new(config, named).map(Self::Running).map_err(Stop::from)
    }

    /// Publishes a component as what it says it is. Answers whether it is new, and its record.
    pub(super) async fn publish(&self, component: Bytes, signature: Option<&str>) -> Result<(bool, Value), Stop> {
        let (slug, version) = catalog::identity(&component).map_err(refusal)?;
        match self {
            Self::Stopped(opened) => {
                let done = catalog::publish(&opened.app, &slug, &version, component, signature).await;
                let done = done.map_err(refusal)?;
                Ok((done.new, published_view(&done.release)))
            }
            Self::Running(server) => {
                let path = format!("toolkits/{slug}/versions/{version}");
                let (status, view) = server.ask(Method::PUT, &path, Body::Bytes(component), signature).await?;
                Ok((status == 201, view))
            }
        }
    }

    /// The records of all versions.
    pub(super) async fn list(&self) -> Result<Vec<Value>, Stop> {
        match self {
            Self::Stopped(opened) => {
                Ok(opened.app.catalog.index().releases().map(|release| published_view(release)).collect())
            }
            Self::Running(server) => {
                let (mut all, mut cursor) = (Vec::new(), String::new());
                loop {
                    let path = format!("org/toolkits?limit={PAGE}{cursor}");
                    let (_, mut page) = server.ask(Method::GET, &path, Body::Empty, None).await?;
                    if let Some(items) = page["items"].as_array_mut() {
                        all.append(items);
                    }
                    let Some(next) = page["next_cursor"].as_str() else { return Ok(all) };
                    let next: String = byte_serialize(next.as_bytes()).collect();
                    cursor = format!("&cursor={next}");
                }
            }
        }
    }

    /// Deprecates a version.
    pub(super) async fn deprecate(&self, slug: &str, version: &str) -> Result<(), Stop> {
        match self {
            Self::Stopped(opened) => catalog::deprecate(&opened.app, slug, version).await.map(drop).map_err(refusal),
            Self::Running(server) => {
                let path = format!("toolkits/{slug}/versions/{version}");
                server.ask(Method::DELETE, &path, Body::Empty, None).await.map(drop)
            }
        }
    }

    /// Closes what was opened.
    pub(super) async fn close(self) {
        if let Self::Stopped(opened) = self {
            let Opened { app, store, .. } = *opened;
            drop(app);
            store.close().await;
        }
    }
}

impl Running {
    fn new(config: &Config, named: &Named) -> anyhow::Result<Self> {
        let file = config.env_file();
        let kept = std::fs::read_to_string(&file).map(Zeroizing::new).unwrap_or_default();
        let kept = |name: &str| {
            let mut pairs = kept.lines().filter_map(|line| line.split_once('='));
            pairs.find(|(own, value)| *own == name && !value.is_empty()).map(|(_, value)| value.to_owned())
        };
        let missing = |flag: &str| format!("the server runs and {} does not say where; give {flag}", file.display());
        let url = named.url.as_ref().map(ToString::to_string).or_else(|| kept("TOOLHOST_URL"));
        let key = named.org_key.clone().or_else(|| kept("TOOLHOST_ORG_API_KEY").map(Zeroizing::new));
        let url = url.with_context(|| missing("--url"))?.trim_end_matches('/').to_owned();
        let key = key.filter(|key| !key.is_empty()).with_context(|| missing("--org-key"))?;
        // The operator names the server, which is on this machine or in this house most of the time.
        let anywhere = ["0.0.0.0/0", "::/0"].map(str::parse).into_iter().collect::<Result<_, _>>()?;
        let settings = net::Settings { allow: anywhere, ..config.net()? };
        let client = net::Client::new(settings).map_err(|cause| anyhow!(cause.message))?;
        Ok(Self { client, url, key })
    }

    async fn ask(&self, method: Method, path: &str, body: Body, signature: Option<&str>) -> Result<(u16, Value), Stop> {
        let url = format!("{}/api/v3.1/{path}", self.url);
        let mut headers = HeaderMap::new();
        let value = |text: &str| text.parse().with_context(|| format!("{url}: a key or signature cannot be sent"));
        headers.insert(auth::ORGANISATION, value(&self.key)?);
        if let Some(signature) = signature {
            headers.insert(SIGNATURE, value(&STANDARD.encode(signature))?);
        }
        let limits = Limits { first_byte: PATIENCE, total: PATIENCE, ..Limits::default() };
        let url = url.parse().with_context(|| format!("{url} is not an address"))?;
        let sent = self.client.send(Request { method, url, headers, body, limits }).await;
        let answer = sent.map_err(|cause| anyhow!("cannot ask the server at {}: {}", self.url, cause.message))?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let status = answer.status.as_u16();
        if answer.status.is_success() {
            return Ok((status, body));
        }
        let error = &body["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        let listed = error["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let message = match text("message") {
            "" => format!("the server at {} answered {status}", self.url),
            message => message.to_owned(),
        };
        Err(lines(&message, listed, text("suggested_fix")))
    }
}

fn refusal(cause: app::Error) -> Stop {
    lines(&cause.to_string(), cause.problems().iter().map(String::as_str), cause.row().fix)
}

fn lines<'a>(message: &'a str, problems: impl Iterator<Item = &'a str>, fix: &'a str) -> Stop {
    let all = std::iter::once(message).chain(problems).chain((!fix.is_empty()).then_some(fix));
    anyhow!(all.collect::<Vec<_>>().join("\n  ")).into()
}
