//! The echo tool on other servers of WebAssembly, compared with ours: as a component of `wasmtime
//! serve`, and as a plugin of hyper-mcp. `make bench-peers` installs both.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use harness::{Host, Process, free_port, wait_until};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use wit_component::ComponentEncoder;

use crate::{
    Bench, ROUND_DURATION,
    agents::mcp_server,
    echo,
    load::{Target, at_once},
    report::{Line, Verdict},
    serving_echo, setup_without_key, small,
};

/// Folder in which `make bench-peers` installs the servers.
pub(crate) const PEERS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/peers");
/// Clients at the same time.
const CLIENT_COUNTS: [usize; 2] = [8, 64];
/// Least calls per second of this server, as a multiple of those of the other.
const SERVE_GOAL: f64 = 1.2;
const HYPER_MCP_GOAL: f64 = 5.0;
const MCP_VERSION: &str = "2025-06-18";
const MCP_HEADERS: [(&str, &str); 2] = [
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", MCP_VERSION),
];

impl Bench {
    /// Measures the tool on each installed server, compared with the same call here.
    pub(crate) async fn peers(&mut self) -> Result<()> {
        let host = serving_echo(setup_without_key()).await?;
        if let Some(program) = self.installed("wasmtime") {
            self.wasmtime_serve(program, &host).await?;
        }
        if let Some(program) = self.installed("hyper-mcp") {
            self.hyper_mcp(program, &host).await?;
        }
        Ok(())
    }

    /// Returns the command of a server. Without it, a line of the table says how to install it.
    fn installed(&mut self, name: &str) -> Option<Command> {
        let program = self.options.peers.join("bin").join(name);
        if program.is_file() {
            return Some(Command::new(program));
        }
        let what = format!("{name} is not installed: run `make bench-peers`");
        self.tell(Line::text("n", what));
        None
    }

    /// Returns the absolute path of a compiled guest of `tests/components/peers`.
    fn peer_guest(&self, name: &str) -> Result<PathBuf> {
        let path = format!("guests/wasm32-unknown-unknown/release/{name}.wasm");
        let path = self.options.peers.join(path);
        std::fs::canonicalize(&path)
            .with_context(|| format!("find {}: run `make bench-peers`", path.display()))
    }

    async fn wasmtime_serve(&mut self, mut program: Command, host: &Host) -> Result<()> {
        let module = std::fs::read(self.peer_guest("proxy")?)?;
        let component = self.options.peers.join("proxy.wasm");
        std::fs::write(
            &component,
            ComponentEncoder::default().module(&module)?.encode()?,
        )
        .with_context(|| format!("write {}", component.display()))?;
        let address = format!("127.0.0.1:{}", free_port());
        program.args(["serve", "--addr", &address]).arg(component);
        let peer = Peer::start(program, address).await?;
        let theirs = Target::post(&peer.address, "/", &[], &small().to_string(), peer.pid())?;
        ensure_text(&theirs).await?;
        let ours = echo(host, &small())?;
        ensure_text(&ours).await?;
        for count in CLIENT_COUNTS {
            let theirs = vec![theirs.clone(); count];
            let ours = vec![ours.clone(); count];
            let names = ["wasmtime serve", "tools/execute"];
            self.compare(names, &theirs, &ours, SERVE_GOAL).await?;
        }
        Ok(())
    }

    async fn hyper_mcp(&mut self, mut program: Command, host: &Host) -> Result<()> {
        let plugin = format!("file://{}", self.peer_guest("plugin")?.display());
        let config = self.options.peers.join("hyper-mcp.json");
        let settings = json!({ "plugins": { "echo": { "url": plugin } } });
        std::fs::write(&config, settings.to_string())
            .with_context(|| format!("write {}", config.display()))?;
        let address = format!("127.0.0.1:{}", free_port());
        program.args(["--transport", "streamable-http", "--bind-address", &address]);
        program.arg("--config-file").arg(config);
        // By default it logs the text of each call.
        program.env("RUST_LOG", "error");
        let peer = Peer::start(program, address).await?;
        let path = mcp_server(&host.as_project(), "echo").await?;
        for count in CLIENT_COUNTS {
            let mut theirs = Vec::new();
            let mut ours = Vec::new();
            for _ in 0..count {
                theirs.push(session(&peer.address, "/mcp", "echo-say", peer.pid()).await?);
                ours.push(session(&host.url, &path, "ECHO_SAY", host.pid()).await?);
            }
            let names = ["hyper-mcp, tools/call", "tools/call"];
            self.compare(names, &theirs, &ours, HYPER_MCP_GOAL).await?;
        }
        Ok(())
    }

    /// Measures the clients of another server and those of ours, after a round that does not count.
    async fn compare(
        &mut self,
        names: [&str; 2],
        theirs: &[Target],
        ours: &[Target],
        goal: f64,
    ) -> Result<()> {
        at_once(theirs, ROUND_DURATION).await?;
        at_once(ours, ROUND_DURATION).await?;
        let (peer, host) = self.alternate(theirs, ours).await?;
        let ratio = Verdict::at_least("of it", host.per_second / peer.per_second, goal);
        self.tell(Line::new("n", names[0], theirs.len(), &peer));
        self.tell(Line::new("n", names[1], ours.len(), &host).with(ratio));
        Ok(())
    }
}

/// A running server of another project. Dropping it ends the process.
struct Peer {
    process: Process,
    address: String,
}

impl Peer {
    /// Starts a server and waits until it listens on the address.
    async fn start(mut program: Command, address: String) -> Result<Self> {
        program.stdin(Stdio::null()).stdout(Stdio::null());
        let process = program
            .spawn()
            .with_context(|| format!("start {}", program.get_program().display()))?;
        let process = Process(process);
        let peer = Self { process, address };
        wait_until("the other server listens", async || {
            TcpStream::connect(&peer.address).await.is_ok()
        })
        .await;
        Ok(peer)
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// Opens an MCP session and returns the call of a tool in it.
async fn session(url: &str, path: &str, tool: &str, pid: u32) -> Result<Target> {
    let post = |headers: &[(&str, &str)], message: &Value| {
        Target::post(url, path, headers, &message.to_string(), pid)
    };
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": MCP_VERSION, "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        },
    });
    let opened = post(&MCP_HEADERS, &initialize)?.response().await?;
    let mut lines = opened.lines();
    let id = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.with_context(|| format!("no MCP session in {opened}"))?;
    let headers = [&MCP_HEADERS[..], &[("mcp-session-id", id)]].concat();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(&headers, &initialized)?.response().await?;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": small() },
    });
    let call = post(&headers, &call)?;
    ensure_text(&call).await?;
    Ok(call)
}

/// Fails if the response to a call does not contain the text of [`small`].
pub(crate) async fn ensure_text(call: &Target) -> Result<()> {
    let response = call.response().await?;
    let text = small()["text"].as_str().unwrap_or_default().to_owned();
    ensure!(response.contains(&text), "the text is missing: {response}");
    Ok(())
}
