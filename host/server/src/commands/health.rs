//! `toolhost health`: asks the server if it is ready, for containers and service managers that have no
//! HTTP client.

use std::time::Duration;

use anyhow::{Context, anyhow};
use net::{Body, ErrorKind, HeaderMap, Limits, Method, Request};
use serde_json::Value;
use settings::Config;

use crate::{commands::running::text, control, open::Stop, terminal::Terminal};

/// Timeout of the request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of the response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Answer of an address to the request whether a server is ready there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A server that serves requests.
    Ready,
    /// A server that does not serve requests, and the reason.
    NotReady(String),
    /// A program other than a server of this kind, or one that does not respond in time.
    OtherProgram,
    /// No program accepts connections.
    Nothing,
}

/// Asks the server at the address that the command line names, or else the one that runs on the data
/// directory, or else the one at the address of the settings.
pub(crate) async fn run(
    config: &Config,
    named: Option<&str>,
    terminal: Terminal,
) -> Result<(), Stop> {
    let running = match named {
        Some(_) => None,
        None => control::addresses(&config.data).await,
    };
    let listen = &running.map_or_else(
        || config.listen.clone(),
        |running| running.listen.to_string(),
    );
    let problem = match ask(config, listen).await? {
        Answer::Ready => {
            terminal.good(&format!("the server on {listen} is ready"));
            return Ok(());
        }
        Answer::NotReady(reason) => anyhow!("the server on {listen} is not ready: {reason}"),
        Answer::OtherProgram => anyhow!(
            "the program on {listen} does not respond as a server of this kind: set `listen` to the address of the server"
        ),
        Answer::Nothing => anyhow!(
            "no server accepts connections on {listen}: start it, or set `listen` to its address"
        ),
    };
    Err(problem.into())
}

/// Asks an address on which a server of this machine may listen.
pub(super) async fn ask(config: &Config, listen: &str) -> anyhow::Result<Answer> {
    let address = own_address(listen);
    let url = format!("http://{address}/health/ready");
    let url = url
        .parse()
        .with_context(|| format!("`listen` is `{address}`, which is not an address"))?;
    // The address is the server's own, usually on loopback.
    let settings = net::Settings {
        rewrite: Vec::new(),
        ..config.unrestricted_net()?
    };
    let client = net::Client::new(settings).map_err(|cause| anyhow!(cause.message))?;
    let sent = client.send(Request {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Body::Empty,
        limits: Limits::within(ANSWER_TIMEOUT, MAX_RESPONSE_BYTES),
    });
    Ok(match sent.await {
        Ok(response) => read(&response.body),
        Err(cause) if matches!(cause.kind, ErrorKind::Connect | ErrorKind::Dns) => Answer::Nothing,
        Err(_) => Answer::OtherProgram,
    })
}

fn read(body: &[u8]) -> Answer {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match text(&body, "status") {
        "ready" => Answer::Ready,
        "not ready" => Answer::NotReady(text(&body, "reason").to_owned()),
        _ => Answer::OtherProgram,
    }
}

/// Returns the address under which this machine reaches a server that listens on an address.
fn own_address(listen: &str) -> String {
    match listen.parse::<std::net::SocketAddr>() {
        Ok(mut address) if address.ip().is_unspecified() => {
            let loopback = match address.is_ipv4() {
                true => std::net::Ipv4Addr::LOCALHOST.into(),
                false => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
            address.to_string()
        }
        _ => listen.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspecified_addresses_are_reached_on_loopback() {
        for (listen, address) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("localhost:8080", "localhost:8080"),
        ] {
            assert_eq!(own_address(listen), address);
        }
    }

    #[test]
    fn only_a_server_of_this_kind_is_ready() {
        assert_eq!(read(br#"{"status":"ready"}"#), Answer::Ready);
        let stopping = read(br#"{"status":"not ready","reason":"it stops"}"#);
        assert_eq!(stopping, Answer::NotReady("it stops".into()));
        for other in [&b"<html>"[..], b"", br#"{"status":"UP"}"#] {
            assert_eq!(read(other), Answer::OtherProgram);
        }
    }
}
