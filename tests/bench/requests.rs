//! A tool that sends one request to a provider, compared with a page that forwards the same request
//! with a constant key. Provider, page and server have a process each.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use axum::{
    Json, Router,
    extract::State,
    http::{
        StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE},
    },
    response::IntoResponse,
    routing::post,
};
use harness::{Host, host::Setup, tls};
use serde::Deserialize;
use serde_json::json;

use crate::{
    Bench, ROUND_DURATION,
    bare::{BARE_SERVER_ARGUMENT, Bare, item_number, this_program},
    call,
    connection::file_limit,
    load::{Target, at_rate},
    peers::ensure_text,
    report::{Line, Verdict},
    setup, tool_call,
};

/// Hidden argument that makes this program the page. The origin of the provider follows.
pub(crate) const PAGE_ARGUMENT: &str = "forwarding-page";
const PAGE_KEY: &str = "Bearer k-0123456789";
const TOOL_ORIGIN: &str = "https://hacker-news.firebaseio.com";
/// Sizes of the response of the provider. A run of all parts has the first two.
const RESPONSE_KIB: [usize; 3] = [1, 20, 200];
/// Times until the provider responds. A run of all parts has the first.
const DELAYS_MS: [usize; 3] = [0, 50, 500];
/// Connections of callers. A run of all parts has the first two.
const CONNECTION_COUNTS: [usize; 4] = [8, 64, 512, 4_096];
/// Requests per second of the open loop, as a part of those of the tool in the closed loop.
const OPEN_LOOP_SHARE: f64 = 0.5;

impl Bench {
    /// Measures the tool and the page over sizes, delays and numbers of connections.
    pub(crate) async fn requests(&mut self) -> Result<()> {
        let is_whole = !self.options.parts.is_empty();
        let (sizes, delays, counts) = if is_whole { (3, 3, 4) } else { (2, 1, 2) };
        let provider = Bare::start()?;
        for kib in RESPONSE_KIB.into_iter().take(sizes) {
            let sides = Sides::start(&provider, None).await?;
            for milliseconds in DELAYS_MS.into_iter().take(delays) {
                for connections in CONNECTION_COUNTS.into_iter().take(counts) {
                    self.compare_requests(&sides, kib, milliseconds, connections)
                        .await?;
                }
            }
        }
        if is_whole {
            self.requests_over_tls().await?;
        }
        Ok(())
    }

    /// Measures small responses of a provider with TLS, to which connections are kept alive.
    async fn requests_over_tls(&mut self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let extensions = "-addext basicConstraints=CA:FALSE -addext subjectAltName=IP:127.0.0.1";
        tls::make_certificate(folder.path(), "server", extensions);
        let mut provider = this_program(BARE_SERVER_ARGUMENT)?;
        provider.arg(folder.path());
        let provider = Bare::run(provider)?;
        let authority = folder.path().join("server.crt");
        let sides = Sides::start(&provider, Some(&authority)).await?;
        for connections in CONNECTION_COUNTS.into_iter().take(2) {
            self.compare_requests(&sides, RESPONSE_KIB[0], DELAYS_MS[0], connections)
                .await?;
        }
        Ok(())
    }

    /// Measures both in a closed loop, and then at the same constant rate.
    async fn compare_requests(
        &mut self,
        sides: &Sides,
        kib: usize,
        milliseconds: usize,
        connections: usize,
    ) -> Result<()> {
        let case = format!("{kib} KiB after {milliseconds} ms{}", sides.note);
        // The page has a connection of the caller and one to the provider for each request.
        if 2 * connections as u64 + 256 > file_limit() {
            let what = format!("{case}, {connections} connections: too many open files");
            self.tell(Line::text("request", what));
            return Ok(());
        }
        let targets = sides.targets(kib, milliseconds)?;
        for target in &targets {
            ensure_text(target).await?;
            target.times(connections, 2 * connections).await?;
        }
        let clients = targets.map(|target| vec![target; connections]);
        let duration = ROUND_DURATION + 3 * Duration::from_millis(milliseconds as u64);
        let [page, tool] = self.best_rounds(&clients, duration).await?;
        let ratio = tool.per_second / page.per_second;
        let ratio = Verdict::at_least("of the page", ratio, None::<f64>);
        let rate = OPEN_LOOP_SHARE * tool.per_second;
        let line = Line::new("request", format!("page, {case}"), connections, &page);
        self.tell(line);
        let line = Line::new("request", format!("tool, {case}"), connections, &tool);
        self.tell(line.with(ratio));
        for (who, clients) in ["page", "tool"].into_iter().zip(&clients) {
            let round = at_rate(clients, rate, duration).await?;
            let what = format!("{who}, {case}, open loop");
            self.tell(Line::new("request", what, connections, &round));
        }
        Ok(())
    }
}

/// The server and the page, which send their requests to the same provider.
struct Sides {
    host: Host,
    page: Bare,
    /// Note on the connections to the provider, for the table.
    note: &'static str,
}

impl Sides {
    /// Starts both. They trust the certificate `authority`.
    async fn start(provider: &Bare, authority: Option<&Path>) -> Result<Self> {
        let mut page = this_program(PAGE_ARGUMENT)?;
        page.arg(&provider.url);
        let mut setup = settings(setup(), provider);
        if let Some(authority) = authority {
            page.env("SSL_CERT_FILE", authority);
            setup = setup.with_variable("SSL_CERT_FILE", authority.display().to_string());
        }
        let host = setup.start().await;
        publish_tool(&host).await?;
        let page = Bare::run(page)?;
        let note = if authority.is_some() { ", TLS" } else { "" };
        Ok(Self { host, page, note })
    }

    /// Returns a request to the page and one to the tool.
    fn targets(&self, kib: usize, milliseconds: usize) -> Result<[Target; 2]> {
        let body = call(&json!({ "id": item_number(kib, milliseconds) }));
        let page = Target::post(&self.page.url, "/item", &[], &body, self.page.pid())?;
        let tool = get_item(&self.host, kib, milliseconds)?;
        Ok([page, tool].map(|target| target.fallible(kib << 10)))
    }
}

/// Returns settings with which the tool reaches the provider, and one project may have all
/// connections and all calls that wait for it.
pub(crate) fn settings(setup: Setup, provider: &Bare) -> Setup {
    setup
        .with("net.rewrite", format!("{TOOL_ORIGIN}={}", provider.url))
        .with("sandbox.live", "6144")
        .with("sandbox.memory_mib", "16384")
        .with("limits.in_flight", "8192")
        .with("limits.connections", "131072")
        .with("limits.records_mib", "0")
}

/// Publishes the toolkit of the tool.
pub(crate) async fn publish_tool(host: &Host) -> Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../toolkits/dist/hackernews.wasm"
    );
    let component =
        std::fs::read(path).with_context(|| format!("read {path}: `toolkit build --all` first"))?;
    let org = host.as_org();
    let address = "/toolkits/hackernews/versions/20261121_00";
    org.put(address, component).await.expect(201);
    Ok(())
}

/// Returns a call of the tool whose request has a response of this size after a time.
pub(crate) fn get_item(host: &Host, kib: usize, milliseconds: usize) -> Result<Target> {
    let arguments = json!({ "id": item_number(kib, milliseconds) });
    tool_call(host, &host.project_key, "HACKERNEWS_GET_ITEM", &arguments)
}

/// State of the page.
struct Forwarder {
    client: reqwest::Client,
    provider: String,
}

/// Body of a call; the page ignores other fields.
#[derive(Deserialize)]
struct Call {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    id: u64,
}

/// Returns the page that forwards requests to the provider of the first argument.
#[expect(
    clippy::disallowed_methods,
    reason = "the page is compared with the server, and not a part of it"
)]
pub(crate) fn page(arguments: &[String]) -> Result<Router> {
    let [provider] = arguments else {
        bail!("the origin of a provider is needed");
    };
    let forwarder = Forwarder {
        client: reqwest::Client::builder().no_proxy().build()?,
        provider: provider.clone(),
    };
    let router = Router::new().route("/item", post(forward));
    Ok(router.with_state(Arc::new(forwarder)))
}

async fn forward(
    State(forwarder): State<Arc<Forwarder>>,
    Json(call): Json<Call>,
) -> Result<impl IntoResponse, (StatusCode, String)> {
    let url = format!("{}/v0/item/{}.json", forwarder.provider, call.arguments.id);
    let request = forwarder.client.get(url).header(AUTHORIZATION, PAGE_KEY);
    let exchange = async { request.send().await?.bytes().await };
    match exchange.await {
        Ok(json) => Ok(([(CONTENT_TYPE, "application/json")], json)),
        Err(error) => Err((StatusCode::BAD_GATEWAY, error.to_string())),
    }
}
