//! Requests generated from the description, valid and invalid: the server never fails, and every
//! response is described.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use harness::{
    Finished, Guest, Host, fetched, guest,
    host::{Setup, size},
};
use tempfile::TempDir;

use crate::{
    description::{CLIENT_OPERATIONS, Clients, Key, Takes},
    given,
};

/// A kind of key, its header, and a key of that kind.
type SentKey<'a> = (Key, &'static str, &'a str);

/// Settings of the program. A refusal for an unconfigured feature is not a server error.
const PROGRAM_SETTINGS: &str = r#"
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501"]
"#;
const ENABLED_CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      unsupported_method,allow_header_conformance";

#[tokio::test]
async fn generated_requests_get_only_described_responses() {
    let host = Setup::new().start().await;
    let manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    host.publish(Guest::echo().component(), &manifest).await;
    let clients = Clients::of(&host, host.as_project()).await;
    let project = (Key::Project, "x-api-key", clients.project.key());
    let user = (Key::User, "x-user-api-key", clients.user.key());
    let organization = (
        Key::Organization,
        "x-org-api-key",
        clients.organization.key(),
    );
    // Operations of the organization delete the project and the member, so they come last.
    for keys in [&[project, user][..], &[organization]] {
        let tried = try_out(&host, keys);
        assert_eq!(tried.code, Some(0), "{}\n{}", tried.stdout, tried.stderr);
    }
}

/// Runs the program on every operation that takes one of these keys.
fn try_out(host: &Host, keys: &[SentKey<'_>]) -> Finished {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.toml");
    let mut settings = PROGRAM_SETTINGS.to_owned();
    let mut command = Command::new(fetched("parts/schemathesis-4.32.5/bin/st"));
    command
        .current_dir(folder.path())
        .arg("--config-file")
        .arg(&file)
        .arg("run")
        .arg(description());
    command.args([
        "--url",
        &format!("{}/api/v3.1", host.url),
        "--checks",
        ENABLED_CHECKS,
    ]);
    command.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        size("5", "10"),
        "--seed",
        "1",
        "--no-shrink",
    ]);
    command.args([
        "--suppress-health-check",
        "all",
        "--warnings",
        "off",
        "--no-color",
        "--request-timeout",
        "60",
    ]);
    // The program cannot generate components, and waits for the end of a stream. Invalid components
    // are tested in `refused`, streams in `event_stream`.
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.takes() != Takes::Component && !operation.is_stream())
    {
        let key = keys.iter().find(|(kind, ..)| *kind == operation.key());
        let Some((_, header, secret)) = key else {
            continue;
        };
        let id = operation.id();
        command.args(["--include-operation-id", id]);
        settings += &format!(
            "[[operations]]\ninclude-operation-id = {id:?}\nheaders = {{ {header} = {secret:?} }}\n"
        );
    }
    std::fs::write(file, settings).unwrap();
    Finished::run(command)
}

fn description() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json")
}
