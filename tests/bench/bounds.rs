//! Latency of one project's calls while another project sends requests that cost as much as its limits
//! permit, and the memory that the server takes.
//!
//! The senders and the provider have the lowest priority of the system, as if they ran on other
//! machines: the table shows how long the server makes a neighbor wait.

use std::{
    io::{Read, Write},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use harness::{Client, Guest, Host, Process, guest, host::Setup};
use serde_json::{Value, json};

use super::{
    Bench,
    bare::{Bare, this_program},
    load::Target,
    publish_echo,
    report::{Line, Verdict},
    round::Round,
    small,
};

/// Hidden argument that makes this program send one request repeatedly.
pub(crate) const SENDER_ARGUMENT: &str = "sender";

const ROUND_DURATION: Duration = Duration::from_secs(4);
/// Time in which the senders get to work before a round.
const WARM_UP: Duration = Duration::from_millis(500);
const WRONG_NUMBER_COUNT: usize = 2_000_000;
const SECRET_COUNT: usize = 300_000;
const LARGE_RESPONSE_MB: usize = 60;
/// Default memory of a node, and what the server may take in addition to it.
const MAX_MEMORY_MIB: f64 = 1024.0 + 512.0;

/// Starts a process in which a number of callers send a request of a project.
pub(crate) fn start_senders(
    host: &Host,
    project: &Client,
    callers: usize,
    path: &str,
    body: &Value,
) -> Result<Process> {
    let headers = [("x-api-key", project.key())];
    let target = Target::post(&host.url, path, &headers, &body.to_string(), host.pid())?;
    let program = this_program(SENDER_ARGUMENT)?;
    let mut child = Command::new("nice")
        .args(["-n", "19"])
        .arg(program.get_program())
        .args([SENDER_ARGUMENT, &target.address(), &callers.to_string()])
        .stdin(Stdio::piped())
        .spawn()
        .context("start the senders")?;
    let mut input = child.stdin.take().context("write the request")?;
    input.write_all(target.request())?;
    Ok(Process(child))
}

/// Sends the request of standard input to an address on a number of connections: as often as a last
/// argument says, or until the process is killed.
pub(crate) fn send(arguments: &[String]) -> Result<()> {
    let [address, callers, requests @ ..] = arguments else {
        anyhow::bail!("an address and a number of callers are needed");
    };
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let target = Target::raw(address, request)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let callers = callers.parse()?;
            match requests.first() {
                Some(requests) => target.times(callers, requests.parse()?).await,
                None => target.send_until_killed(callers).await,
            }
        })
}

impl Bench {
    pub(crate) async fn bounds(&mut self) -> Result<()> {
        let provider = Bare::start_with_low_priority()?;
        let rewrite = format!("https://api.example.com={}", provider.url);
        let host = Setup::new().with("net.rewrite", rewrite).start().await;
        publish_echo(&host).await?;
        let mut numbers = guest::manifest("numbers");
        numbers["tools"][0]["no_auth"] = json!(true);
        numbers["tools"][0]["input"] = json!({ "type": "object", "properties": { "types": { "items": { "type": "string" } } } });
        host.publish(Guest::echo().component(), &numbers).await;
        let key = json!({ "in": "header", "name": "authorization", "value": "Bearer {api_key}" });
        let large = guest::manifest_with_key("large", key);
        host.publish(Guest::fetch().component(), &large).await;

        let attacker = host.as_project();
        let account = json!({ "api_key": "k-0123456789" });
        let account = attacker
            .connect("large", "API_KEY", "default", account)
            .await;
        let neighbor = host.new_project().await;
        let headers = [("x-api-key", neighbor.key())];
        let call = super::call(&small());
        let path = "/api/v3/tools/execute/ECHO_SAY";
        let neighbor = Target::post(&host.url, path, &headers, &call, host.pid())?;
        neighbor.times(1, 2_000).await?;
        let alone = self.median_round(&neighbor).await?;
        self.tell(Line::new("j", "a neighbor's calls, alone", 1, &alone));

        let numbers = json!({ "arguments": { "types": vec![1; WRONG_NUMBER_COUNT] } });
        let secrets: Vec<_> = (0..SECRET_COUNT)
            .map(|number| format!("secret-{number}"))
            .collect();
        let secrets = json!({
            "arguments": small(), "version": "latest", "custom_auth_params": { "body": { "a": secrets } },
        });
        let endpoint = format!("/large/{LARGE_RESPONSE_MB}");
        let proxied =
            json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
        let small = serde_json::from_str(&call)?;
        for (what, callers, path, body) in [
            ("beside 30 callers with small calls", 30, path, small),
            (
                "beside 3 with 2,000,000 wrong values",
                3,
                "/api/v3/tools/execute/NUMBERS_RUN",
                numbers,
            ),
            ("beside 3 with 300,000 secrets", 3, path, secrets),
            (
                "beside 30 with responses of 60 MB",
                30,
                "/api/v3/tools/execute/proxy",
                proxied,
            ),
        ] {
            let senders = start_senders(&host, &attacker, callers, path, &body)?;
            tokio::time::sleep(WARM_UP).await;
            let beside = self.median_round(&neighbor).await?;
            drop(senders);
            let times = Verdict::at_most("p95", beside.p95.div_duration_f64(alone.p95), 5.0);
            self.tell(Line::new("j", what, 1, &beside).with(times));
        }
        let peak = host.footprint().peak_kib as f64 / 1024.0;
        let memory = Verdict::at_most("MiB", peak, MAX_MEMORY_MIB);
        self.tell(Line::verdict("j", "most resident memory", memory));
        Ok(())
    }

    /// Returns the round of one connection whose 95th percentile is in the middle.
    async fn median_round(&self, target: &Target) -> Result<Round> {
        let mut rounds = Vec::new();
        for _ in 0..self.options.rounds.min(3) {
            rounds.push(target.round(1, ROUND_DURATION).await?);
        }
        rounds.sort_by_key(|round| round.p95);
        let middle = rounds.len() / 2;
        rounds.into_iter().nth(middle).context("no round")
    }
}
