//! Verification of webhooks by the libraries of Standard Webhooks for Python and JavaScript, which share
//! no code with the server or the harness.

use serde_json::json;

use crate::{Finished, inbox::Message};

/// Verifies all messages with both libraries.
pub fn verify(messages: &[Message], secret: &str) {
    let recorded: Vec<_> = messages
        .iter()
        .map(|message| {
            let body = String::from_utf8_lossy(&message.body);
            json!({ "headers": message.headers, "body": body })
        })
        .collect();
    let recorded = json!({ "secret": secret, "messages": recorded });
    let recorded = recorded.to_string();
    for (program, script, library) in [
        (
            "python3",
            "python/webhooks.py",
            "descriptions/standardwebhooks-1.1.0",
        ),
        ("node", "node/webhooks.mjs", "parts/node"),
    ] {
        let valid = Finished::run_script(program, script, &[library], recorded.as_bytes());
        assert_eq!(valid.trim(), messages.len().to_string(), "{program}");
    }
}
