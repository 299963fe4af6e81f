//! Events: deliveries to a fast endpoint, polls of triggers, and webhooks of providers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chrono::DateTime;
use futures::{StreamExt, stream};
use harness::{
    Client, Guest, Host, Inbox,
    guest::{self, EVENTS_PER_BATCH},
    host::Setup,
    inbox::{INBOX_ORIGIN, Reply},
    postgres::Postgres,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::{
    Bench,
    compare::better,
    load::{Target, processor_time},
    report::{Line, Verdict},
    setup, setup_without_key,
};

/// Trigger instances that report one batch of events each.
const REPORTING_INSTANCES: u64 = 40;
const TEST_EVENTS: usize = 300;
/// Trigger instances that are due at the same time.
const DUE_INSTANCES: u64 = 5_000;
/// Interval between two polls of these instances, in seconds. It is longer than all polls take.
const INTERVAL_S: u64 = 20;
/// Trigger instances that are due every second, and further ones that are not due.
const ACTIVE_INSTANCES: u64 = 200;
const IDLE_INSTANCES: u64 = 19_800;
const DAY_S: u64 = 86_400;
const ROUNDS_DURATION: Duration = Duration::from_secs(15);
const WEBHOOK_ROUND_DURATION: Duration = Duration::from_secs(3);
/// Time limit for what a measurement waits for.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(120);

/// An endpoint that accepts every message and notes when it arrives.
struct Arrivals {
    inbox: Inbox,
    times: UnboundedReceiver<Instant>,
}

impl Arrivals {
    fn start() -> Self {
        let (sender, times) = mpsc::unbounded_channel();
        let inbox = Inbox::with(move |_| {
            sender.send(Instant::now()).ok();
            Reply::Status(200)
        });
        Self { inbox, times }
    }

    async fn next(&mut self) -> Result<Instant> {
        let next = tokio::time::timeout(MEASURE_TIMEOUT, self.times.recv()).await;
        next.context("no message arrived in time")?
            .context("the endpoint has ended")
    }

    /// Starts a server with a subscription of this endpoint. Returns the path of the subscription.
    async fn subscribed(&self, setup: Setup) -> (Host, String) {
        let host = setup
            .with(
                "net.rewrite",
                format!("{INBOX_ORIGIN}={}", self.inbox.origin),
            )
            .start()
            .await;
        let body =
            json!({ "webhook_url": INBOX_ORIGIN, "enabled_events": ["service.trigger.message"] });
        let path = "/webhook_subscriptions";
        let made = host.as_project().post(path, &body).await.expect(201);
        let id = made["id"].as_str().unwrap_or_default().to_owned();
        (host, format!("{path}/{id}"))
    }
}

/// A published toolkit with one trigger, and an account of it.
struct Triggers {
    project: Client,
    account: String,
    upsert: String,
}

impl Triggers {
    async fn new(host: &Host, guest: Guest<'_>, kind: &str) -> Self {
        let mut manifest = guest::manifest_with_key(
            "fired",
            json!({ "in": "header", "name": "authorization", "value": "{api_key}" }),
        );
        manifest["triggers"] = json!([{
            "slug": "FIRED_EVENT", "name": "Event", "description": "Fires.", "kind": kind,
            "config": { "type": "object" }, "payload": { "type": "object" },
        }]);
        host.publish(guest.component(), &manifest).await;
        let project = host.as_project();
        let key = json!({ "api_key": "k-0123456789" });
        Self {
            account: project.connect("fired", "API_KEY", "default", key).await,
            upsert: "/trigger_instances/FIRED_EVENT/upsert".to_owned(),
            project,
        }
    }

    /// Creates instances that report a number of batches. `group` makes their configurations
    /// different from those of other instances.
    async fn create(&self, instances: u64, batches: u64, interval_s: Option<u64>, group: &str) {
        let creating = (0..instances).map(|number| async move {
            let body = json!({
                "connected_account_id": self.account,
                "trigger_config": { "batches": batches, "name": format!("{group}{}", letters(number)) },
                "poll_interval_seconds": interval_s,
            });
            self.project.post(&self.upsert, &body).await.expect(201);
        });
        stream::iter(creating)
            .buffer_unordered(16)
            .collect::<()>()
            .await;
    }
}

/// Returns a number as letters, because the guest reads the digits of its configuration.
fn letters(number: u64) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect()
}

/// Returns the times of the last polls of all instances, in epoch milliseconds. Instances without a
/// poll are `None`.
async fn last_polls(project: &Client) -> Result<Vec<Option<i64>>> {
    let mut times = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/trigger_instances/active?limit=1000{cursor}");
        let page = project.get(&path).await.expect(200);
        for item in page["items"].as_array().into_iter().flatten() {
            let time = item["last_poll_at"].as_str();
            let time = time.map(DateTime::parse_from_rfc3339).transpose()?;
            times.push(time.map(|time| time.timestamp_millis()));
        }
        match &page["next_cursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => return Ok(times),
        }
    }
}

/// Waits until all instances were polled after a time, and returns the times of these polls.
async fn polled_after(project: &Client, time: i64) -> Result<Vec<i64>> {
    let end = Instant::now() + MEASURE_TIMEOUT;
    loop {
        let polls = last_polls(project).await?.into_iter();
        let polls: Option<Vec<_>> = polls.map(|poll| poll.filter(|poll| *poll > time)).collect();
        if let Some(polls) = polls {
            return Ok(polls);
        }
        ensure!(
            Instant::now() < end,
            "not all instances were polled in time"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

impl Bench {
    pub(crate) async fn events(&mut self) -> Result<()> {
        let postgres = setup().on(Postgres::shared().database(None));
        self.deliveries("embedded store", setup(), 2_000.0).await?;
        self.deliveries("PostgreSQL", postgres, 1_000.0).await?;
        self.latency_of_events().await?;
        self.due_polls().await?;
        self.scheduling().await?;
        self.webhooks_of_providers().await
    }

    /// Measures deliveries of the events of triggers, which are polled and stored at the same time.
    async fn deliveries(&mut self, store: &str, setup: Setup, goal: f64) -> Result<()> {
        let mut arrivals = Arrivals::start();
        let setup = setup.with("triggers.poll_interval_s", "1");
        let (host, _) = arrivals.subscribed(setup).await;
        let triggers = Triggers::new(&host, Guest::batch_poll(), "poll").await;
        triggers.create(REPORTING_INSTANCES, 1, None, "").await;
        let first = arrivals.next().await?;
        let mut last = first;
        let total = REPORTING_INSTANCES * EVENTS_PER_BATCH;
        for _ in 1..total {
            last = arrivals.next().await?;
        }
        let rate = total as f64 / last.duration_since(first).as_secs_f64();
        let what = format!("deliveries, {store}");
        self.tell(Line::verdict(
            "h",
            what,
            Verdict::at_least("per s", rate, goal),
        ));
        Ok(())
    }

    /// Measures the time from the request that causes an event to the arrival of its message, on an
    /// idle server.
    async fn latency_of_events(&mut self) -> Result<()> {
        let mut arrivals = Arrivals::start();
        let (host, subscription) = arrivals.subscribed(setup()).await;
        let test = format!("{subscription}/test");
        let mut latencies = Vec::new();
        for _ in 0..TEST_EVENTS {
            let begun = Instant::now();
            host.as_project().post(&test, &json!({})).await.expect(201);
            latencies.push(arrivals.next().await?.duration_since(begun));
        }
        latencies.sort_unstable();
        for (name, place, goal) in [("p50", 50, 30.0), ("p99", 99, 150.0)] {
            let latency = latencies[(TEST_EVENTS - 1) * place / 100].as_secs_f64() * 1e3;
            let what = format!("event to its arrival, {name}");
            self.tell(Line::verdict(
                "h",
                what,
                Verdict::at_most("ms", latency, goal),
            ));
        }
        Ok(())
    }

    /// Measures polls of instances that are all due when a server starts.
    async fn due_polls(&mut self) -> Result<()> {
        let host = setup()
            .with("triggers.poll_interval_s", INTERVAL_S.to_string())
            .with(
                "limits.accounts_per_project",
                (10 * DUE_INSTANCES).to_string(),
            )
            .start()
            .await;
        let triggers = Triggers::new(&host, Guest::batch_poll(), "poll").await;
        triggers.create(DUE_INSTANCES, 0, None, "").await;
        let before = polled_after(&triggers.project, 0).await?;
        let before = before.into_iter().max().unwrap_or(0);
        let (setup, _) = host.terminate().await;
        // An interval is lengthened by up to a fifth.
        tokio::time::sleep(Duration::from_secs(INTERVAL_S * 6 / 5 + 1)).await;
        let host = setup.start().await;
        let mut polls = polled_after(&host.as_project(), before).await?;
        polls.sort_unstable();
        // A few instances may have been polled before the server stopped.
        let at = |percent: usize| polls[(polls.len() - 1) * percent / 100];
        let seconds = (at(99) - at(1)) as f64 / 1e3;
        let rate = polls.len() as f64 * 0.98 / seconds;
        let what = format!("polls of {DUE_INSTANCES} due instances");
        self.tell(Line::verdict(
            "h",
            what,
            Verdict::at_least("per s", rate, 1_000.0),
        ));
        Ok(())
    }

    /// Measures the processor time of a server whose instances are all due, and of one on which
    /// many more are not due.
    async fn scheduling(&mut self) -> Result<()> {
        let mut times = Vec::new();
        for idle in [0, IDLE_INSTANCES] {
            let host = setup().with("triggers.poll_interval_s", "1").start().await;
            let triggers = Triggers::new(&host, Guest::batch_poll(), "poll").await;
            triggers.create(idle, 0, Some(DAY_S), "idle").await;
            triggers.create(ACTIVE_INSTANCES, 0, None, "active").await;
            polled_after(&triggers.project, 0).await?;
            let before = processor_time(host.pid())?;
            tokio::time::sleep(ROUNDS_DURATION).await;
            times.push(processor_time(host.pid())? - before);
        }
        let ratio = times[1].as_secs_f64() / times[0].as_secs_f64();
        let all = ACTIVE_INSTANCES + IDLE_INSTANCES;
        let what = format!("{all} instances, {ACTIVE_INSTANCES} of them due");
        let ratio = Verdict::at_most("of the time of those due alone", ratio, 1.2);
        self.tell(Line::verdict("h", what, ratio));
        Ok(())
    }

    /// Measures webhooks of a provider that are stored before they are acknowledged.
    async fn webhooks_of_providers(&mut self) -> Result<()> {
        let host = setup_without_key().start().await;
        let triggers = Triggers::new(&host, Guest::receive_ids(), "webhook").await;
        triggers.create(1, 0, None, "").await;
        let endpoint = json!({ "toolkit_slug": "fired", "client_id": "app" });
        let made = triggers.project.post("/webhook_endpoints", &endpoint).await;
        let made = made.expect(201);
        let url = made["webhook_url"].as_str().unwrap_or_default();
        let (_, path) = url.split_once("/api/").context("the URL of an endpoint")?;
        let target = Target::numbered(&host.url, &format!("/api/{path}"), host.pid())?;
        target.times(8, 1_000).await?;
        let mut best = None;
        for _ in 0..self.options.rounds {
            best = better(best, target.round(64, WEBHOOK_ROUND_DURATION).await?);
        }
        let best = best.context("no round")?;
        let rate = Verdict::at_least("per s", best.per_second, 3_000.0);
        let line = Line::new("h", "webhook of a provider, stored", 64, &best);
        self.tell(line.with(rate));
        Ok(())
    }
}
