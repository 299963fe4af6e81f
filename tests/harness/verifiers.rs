//! Verification of webhooks by the libraries of Standard Webhooks for Python and JavaScript, which share
//! no code with the server or the harness.

use std::{io::Write as _, path::Path, process::Command};

use serde_json::json;
use tempfile::NamedTempFile;

use crate::{Finished, inbox::Message};

/// Verifies all messages with both libraries.
///
/// # Panics
/// If a signature is not valid, or a library is missing.
pub fn verify(messages: &[Message], secret: &str) {
    let recorded: Vec<_> = messages
        .iter()
        .map(|message| {
            let body = String::from_utf8_lossy(&message.body);
            json!({ "headers": message.headers, "body": body })
        })
        .collect();
    let recorded = json!({ "secret": secret, "messages": recorded });
    let mut file = NamedTempFile::new().expect("a temporary file can be made");
    write!(file, "{recorded}").expect("a temporary file can be written");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (program, script, library) in [
        (
            "python3",
            "python/webhooks.py",
            "descriptions/standardwebhooks-1.1.0",
        ),
        ("node", "node/webhooks.mjs", "parts/node"),
    ] {
        let library = tests.join("../target").join(library);
        assert!(
            library.is_dir(),
            "{} is missing: `tests/setup` fetches it",
            library.display()
        );
        let mut command = Command::new(program);
        command
            .arg(tests.join(script))
            .arg(library)
            .arg(file.path());
        let valid = Finished::run(command).succeeded();
        assert_eq!(valid.trim(), messages.len().to_string(), "{program}");
    }
}
