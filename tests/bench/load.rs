//! Load generator: raw keep-alive HTTP/1.1 over a few sockets of one thread.
//!
//! It shares the machine with the measured server and therefore does little work per request: one
//! prepared request, one search for the end of the response, one stored number.

use std::{
    cell::Cell,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Digits of the number at the end of a request.
const NUMBER_DIGITS: usize = 16;
/// End of a body in chunks, after the line break in front of it.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Address and request of a measurement.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    request: Vec<u8>,
    /// True if each request ends with a number of its own, of [`NUMBER_DIGITS`] digits.
    is_numbered: bool,
    /// Process whose processor time is measured.
    pid: u32,
}

/// Result of one round.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) per_second: f64,
    pub(crate) p50: Duration,
    pub(crate) p95: Duration,
    pub(crate) p99: Duration,
    /// Processor time of the server per request.
    pub(crate) cpu: Duration,
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
            pid,
        })
    }

    /// Builds a request that was built before.
    pub(crate) fn raw(address: &str, request: Vec<u8>) -> Result<Self> {
        Ok(Self {
            address: address.parse()?,
            request,
            is_numbered: false,
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

    /// Sends one request and returns head and body of the response.
    pub(crate) async fn response(&self) -> Result<String> {
        let mut connection = Connection::open(self.address).await?;
        connection.send(self).await?;
        Ok(String::from_utf8(connection.answer)?)
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
                connection.exchange(self).await?;
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
                while connection.send(self).await.is_ok() {}
            }
        }))
        .await
        .map(|_: Vec<()>| ())
    }
}

/// Sends requests to targets of one server in rotation, on `connections` connections for this time.
pub(crate) async fn round_robin(
    targets: &[Target],
    connections: usize,
    time: Duration,
) -> Result<Round> {
    on_connections(&vec![targets; connections], time).await
}

/// Sends the requests of clients of one server, each on its own connection, for the given time.
pub(crate) async fn at_once(clients: &[Target], time: Duration) -> Result<Round> {
    let connections: Vec<_> = clients.chunks(1).collect();
    on_connections(&connections, time).await
}

/// Sends requests to one server on a connection for each list of targets, in rotation.
async fn on_connections(connections: &[&[Target]], time: Duration) -> Result<Round> {
    let first = connections.first().and_then(|targets| targets.first());
    let first = first.context("no targets")?;
    let sockets = try_join_all(connections.iter().map(|_| Connection::open(first.address))).await?;
    let begun = Instant::now();
    let cpu = processor_time(first.pid)?;
    let end = begun + time;
    let turn = Cell::new(0);
    let calls = sockets.into_iter().zip(connections);
    let calls = calls.map(|(socket, targets)| socket.repeat(targets, &turn, end));
    let all = try_join_all(calls).await?;
    let took = begun.elapsed();
    let cpu = processor_time(first.pid)?.saturating_sub(cpu);
    let mut latencies: Vec<u32> = all.into_iter().flatten().collect();
    latencies.sort_unstable();
    ensure!(!latencies.is_empty(), "nothing was answered in {time:?}");
    let at = |share: f64| {
        let place = ((latencies.len() - 1) as f64 * share) as usize;
        Duration::from_nanos(u64::from(latencies[place]))
    };
    let requests = latencies.len();
    let per_second = requests as f64 / took.as_secs_f64();
    Ok(Round {
        per_second,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        cpu: cpu / requests as u32,
    })
}

struct Connection {
    socket: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)
            .await
            .with_context(|| format!("connect to {address}"))?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            answer: Vec::with_capacity(128 << 10),
        })
    }

    /// Sends requests to the targets in rotation, shared by all connections, until the end time.
    /// Returns the latencies in nanoseconds.
    async fn repeat(
        mut self,
        targets: &[Target],
        turn: &Cell<usize>,
        end: Instant,
    ) -> Result<Vec<u32>> {
        let mut latencies = Vec::new();
        loop {
            let begun = Instant::now();
            if begun >= end {
                return Ok(latencies);
            }
            let number = turn.replace(turn.get() + 1);
            self.exchange(&targets[number % targets.len()]).await?;
            latencies.push(u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX));
        }
    }

    /// Sends a request, which has to succeed.
    async fn exchange(&mut self, target: &Target) -> Result<()> {
        self.send(target).await?;
        let ok =
            self.answer.starts_with(b"HTTP/1.1 200") || self.answer.starts_with(b"HTTP/1.1 201");
        ensure!(
            ok,
            "the server answered {}",
            String::from_utf8_lossy(&self.answer[..self.answer.len().min(600)])
        );
        Ok(())
    }

    /// Sends a request and reads the response.
    async fn send(&mut self, target: &Target) -> Result<()> {
        static REQUEST_COUNT: AtomicU64 = AtomicU64::new(0);
        if target.is_numbered {
            let number = REQUEST_COUNT.fetch_add(1, Ordering::Relaxed);
            let (head, _) = target
                .request
                .split_at(target.request.len() - NUMBER_DIGITS);
            let number = format!("{number:0NUMBER_DIGITS$}");
            let request = [head, number.as_bytes()].concat();
            self.socket.write_all(&request).await?;
        } else {
            self.socket.write_all(&target.request).await?;
        }
        self.answer.clear();
        let mut length = None;
        while length.is_none_or(|length| self.answer.len() < length) {
            ensure!(
                self.socket.read_buf(&mut self.answer).await? > 0,
                "the server closed the connection"
            );
            if length.is_none() {
                length = whole_length(&self.answer)?;
            }
        }
        Ok(())
    }
}

/// Returns the length of head and body, or `None` while the head, or a body in chunks, is
/// incomplete.
fn whole_length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&answer[..end])?;
    if head.contains("\r\ntransfer-encoding: chunked") {
        return Ok(answer.ends_with(LAST_CHUNK).then_some(answer.len()));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length
        .with_context(|| format!("no length in {head}"))?
        .trim()
        .parse()?;
    Ok(Some(end + 4 + length))
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
