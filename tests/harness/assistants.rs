//! Programs that share no code with the server or the harness: assistants that use MCP endpoints with the
//! official libraries for Python and JavaScript, and applications that use the API with client libraries.

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
};

/// Library of an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Python,
    JavaScript,
}

impl Library {
    /// All libraries.
    pub const ALL: [Self; 2] = [Self::Python, Self::JavaScript];
}

/// A running assistant or application.
pub struct Assistant(Child);

impl Assistant {
    /// Starts an assistant with the options that its script describes.
    pub fn start(library: Library, options: &Value) -> Self {
        Self::start_script(library, "mcp-2.3.0", "assistant", options)
    }

    /// Starts a script with the options that it describes. `package` is the folder of its library for
    /// Python.
    pub fn start_script(library: Library, package: &str, script: &str, options: &Value) -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let parts = tests.join("../target/parts");
        let mut command = match library {
            Library::Python => {
                let mut command = Command::new(parts.join(package).join("bin/python"));
                command.arg(tests.join(format!("python/{script}.py")));
                command
            }
            Library::JavaScript => {
                let mut command = Command::new("node");
                let script = tests.join(format!("node/{script}.mjs"));
                command.arg(script).arg(parts.join("node"));
                command
            }
        };
        // Standard output is for the report.
        command
            .env("COMPOSIO_DISABLE_TELEMETRY", "true")
            .env("COMPOSIO_LOG_LEVEL", "error");
        let started = command
            .arg(options.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        Self(started.unwrap_or_else(|cause| {
            panic!("{library:?} does not start; `tests/setup` fetches it: {cause}")
        }))
    }

    /// Tells the assistant to cancel its last call.
    pub async fn cancel(&mut self) {
        let input = self.0.stdin.as_mut().expect("the input is piped");
        input.write_all(b"\n").await.expect("the assistant runs");
    }

    /// Returns the next line that the assistant prints before its report, without its end.
    pub async fn line(&mut self) -> String {
        let output = self.0.stdout.as_mut().expect("the output is piped");
        let mut line = Vec::new();
        let reading = async {
            loop {
                match output.read_u8().await.expect("the assistant runs") {
                    b'\n' => break,
                    byte => line.push(byte),
                }
            }
        };
        let read = tokio::time::timeout(crate::CONDITION_TIMEOUT, reading);
        read.await.expect("the assistant prints a line in time");
        String::from_utf8(line).expect("the assistant prints text")
    }

    /// Returns the report of the assistant when it has ended.
    pub async fn report(self) -> Value {
        self.report_within(crate::CONDITION_TIMEOUT).await
    }

    /// Returns the report of an assistant that has much to do, when it has ended.
    pub async fn report_within(self, deadline: Duration) -> Value {
        let ended = tokio::time::timeout(deadline, self.0.wait_with_output());
        let output = ended.await.expect("the assistant ends in time");
        let output = output.expect("the assistant can be waited for");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the assistant failed: {errors}");
        let report = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&report).unwrap_or_else(|_| panic!("not a report: {report}"))
    }
}
