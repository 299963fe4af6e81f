//! Load generator: raw keep-alive HTTP/1.1 over a few sockets of one thread.
//!
//! It shares the machine with the measured server and therefore does little work per request: one
//! prepared request, one search for the end of the response, one stored number.

use std::{
    borrow::Cow,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;

use crate::{
    connection::Connection,
    round::{Responses, Round},
    schedule::Schedule,
};

/// Digits of the number at the end of a request.
const NUMBER_DIGITS: usize = 16;
/// Statuses of a response that counts.
const SUCCESS_STATUSES: [&str; 2] = ["200", "201"];
/// Pause of a connection after a failed request. A client that reads `Retry-After` waits for longer.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Address and request of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    request: Vec<u8>,
    /// True if each request ends with a number of its own, of [`NUMBER_DIGITS`] digits.
    is_numbered: bool,
    /// Size of a successful response, in bytes, at least. Without it, each request has to succeed.
    least_bytes: Option<usize>,
    /// Process whose processor time is measured.
    pid: u32,
}

impl Target {
    /// Builds a POST of JSON.
    pub(crate) fn post(
        url: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        pid: u32,
    ) -> Result<Self> {
        let address = url
            .trim_start_matches("http://")
            .parse()
            .with_context(|| format!("read the address {url}"))?;
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        Ok(Self {
            address,
            request: request.into_bytes(),
            is_numbered: false,
            least_bytes: None,
            pid,
        })
    }

    /// Builds a request that was built before.
    pub(crate) fn raw(address: &str, request: Vec<u8>) -> Result<Self> {
        Ok(Self {
            address: address.parse()?,
            request,
            is_numbered: false,
            least_bytes: None,
            pid: std::process::id(),
        })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn request(&self) -> &[u8] {
        &self.request
    }

    /// Returns the same, with a number of its own as the body of each request.
    pub(crate) fn numbered(url: &str, path: &str, pid: u32) -> Result<Self> {
        let body = "0".repeat(NUMBER_DIGITS);
        Ok(Self {
            is_numbered: true,
            ..Self::post(url, path, &[], &body, pid)?
        })
    }

    /// Returns the same, for a server that may refuse requests for lack of capacity, or fail at them.
    /// A smaller response than `least_bytes` is a failure.
    pub(crate) fn fallible(self, least_bytes: usize) -> Self {
        Self {
            least_bytes: Some(least_bytes),
            ..self
        }
    }

    /// Sends one request and returns head and body of the response.
    pub(crate) async fn response(&self) -> Result<String> {
        let mut connection = Connection::open(self.address).await?;
        connection.send(&self.next_request()).await?;
        Ok(String::from_utf8_lossy(connection.response()).into_owned())
    }

    /// Sends requests on `connections` connections for the given time.
    pub(crate) async fn round(&self, connections: usize, time: Duration) -> Result<Round> {
        round_robin(std::slice::from_ref(self), connections, time).await
    }

    /// Sends `requests` requests in total.
    pub(crate) async fn times(&self, connections: usize, requests: usize) -> Result<()> {
        let each = requests.div_ceil(connections);
        try_join_all((0..connections).map(|_| async {
            let mut connection = Connection::open(self.address).await?;
            for _ in 0..each {
                self.exchange(&mut connection).await?;
            }
            anyhow::Ok(())
        }))
        .await
        .map(drop)
    }

    /// Sends requests for ever, also after errors of the server.
    pub(crate) async fn send_until_killed(&self, connections: usize) -> Result<()> {
        try_join_all((0..connections).map(|_| async {
            loop {
                let mut connection = Connection::open(self.address).await?;
                while connection.send(&self.next_request()).await.is_ok() {}
            }
        }))
        .await
        .map(|_: Vec<()>| ())
    }

    /// Sends a request. Returns false if it failed, which it has to permit.
    async fn exchange(&self, connection: &mut Connection) -> Result<bool> {
        connection.send(&self.next_request()).await?;
        let response = connection.response();
        let has_succeeded = connection.has_status(&SUCCESS_STATUSES)
            && response.len() >= self.least_bytes.unwrap_or_default();
        ensure!(
            has_succeeded || self.least_bytes.is_some(),
            "the server answered {}",
            String::from_utf8_lossy(&response[..response.len().min(600)])
        );
        Ok(has_succeeded)
    }

    fn next_request(&self) -> Cow<'_, [u8]> {
        static REQUEST_COUNT: AtomicU64 = AtomicU64::new(0);
        if !self.is_numbered {
            return Cow::Borrowed(&self.request);
        }
        let number = REQUEST_COUNT.fetch_add(1, Ordering::Relaxed);
        let (head, _) = self.request.split_at(self.request.len() - NUMBER_DIGITS);
        let number = format!("{number:0NUMBER_DIGITS$}");
        Cow::Owned([head, number.as_bytes()].concat())
    }
}

/// Sends requests to targets of one server in rotation, on `connections` connections for this time.
pub(crate) async fn round_robin(
    targets: &[Target],
    connections: usize,
    time: Duration,
) -> Result<Round> {
    on_connections(&vec![targets; connections], time, None).await
}

/// Sends the requests of clients of one server, each on its own connection, for the given time.
pub(crate) async fn at_once(clients: &[Target], time: Duration) -> Result<Round> {
    let connections: Vec<_> = clients.chunks(1).collect();
    on_connections(&connections, time, None).await
}

/// Sends the same at a constant rate of all clients together, independent of the responses. A
/// request that waits for a connection counts from the time at which it was due.
pub(crate) async fn at_rate(clients: &[Target], per_second: f64, time: Duration) -> Result<Round> {
    let connections: Vec<_> = clients.chunks(1).collect();
    let interval = Duration::try_from_secs_f64(1.0 / per_second)?;
    on_connections(&connections, time, Some(interval)).await
}

/// Sends requests to one server on a connection for each list of targets, in rotation.
async fn on_connections(
    connections: &[&[Target]],
    time: Duration,
    interval: Option<Duration>,
) -> Result<Round> {
    let first = connections.first().and_then(|targets| targets.first());
    let first = first.context("no targets")?;
    let sockets = try_join_all(connections.iter().map(|_| Connection::open(first.address))).await?;
    let cpu = processor_time(first.pid)?;
    let schedule = Schedule::start(time, interval);
    let calls = sockets.into_iter().zip(connections);
    let calls = calls.map(|(socket, targets)| repeat(socket, targets, &schedule));
    let all = try_join_all(calls).await?;
    let took = schedule.elapsed();
    let cpu = processor_time(first.pid)?.saturating_sub(cpu);
    Round::of(all, took, cpu)
}

/// Sends requests to the targets in rotation, shared by all connections, until the round ends.
async fn repeat(
    mut connection: Connection,
    targets: &[Target],
    schedule: &Schedule,
) -> Result<Responses> {
    let mut responses = Responses::default();
    while let Some((number, begun)) = schedule.next().await {
        let target = &targets[number % targets.len()];
        if target.exchange(&mut connection).await? {
            let latency = u32::try_from(begun.elapsed().as_nanos());
            responses.latencies.push(latency.unwrap_or(u32::MAX));
        } else {
            responses.failed += 1;
            tokio::time::sleep(FAILED_PAUSE).await;
        }
    }
    Ok(responses)
}

/// Returns the processor time of a process over all its threads, including ended ones.
pub(crate) fn processor_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses and may contain spaces.
    let (_, fields) = stat.rsplit_once(')').context("read /proc/…/stat")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
