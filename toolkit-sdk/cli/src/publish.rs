//! `toolkit publish`: a component to a running server.

use std::{fs, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use manifest::{Manifest, Version};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::{build::What, progress, sign};

/// The server compiles before it answers.
const PATIENCE: Duration = Duration::from_secs(180);

/// Publish a component, or a toolkit that is built first, to a running server.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    what: What,
    /// Address of the server.
    #[arg(long, env = "TOOLHOST_URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
    /// Key of the organization.
    #[arg(long, env = "TOOLHOST_ORG_API_KEY", hide_env_values = true)]
    org_key: Option<String>,
    /// Dated version to build, instead of the one in the source.
    #[arg(long, value_name = "YYYYMMDD_NN")]
    version: Option<Version>,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// What the server said about one component.
#[derive(Debug, Serialize)]
pub(crate) struct Published {
    slug: String,
    version: Version,
    pub(crate) status: u16,
    pub(crate) answer: Value,
}

/// Runs the command. A refusal makes the exit code 1.
pub(crate) async fn run(options: &Publish) -> Result<ExitCode> {
    let key = options.org_key.as_deref().filter(|key| !key.is_empty());
    let key = key.context("there is no organization key; set TOOLHOST_ORG_API_KEY, or give --org-key")?;
    let client = client()?;
    let mut all = Vec::new();
    for file in options.what.components(options.version.as_ref())? {
        let published = publish(&client, &options.url, key, &file).await?;
        if !options.json {
            print(&published);
        }
        all.push(published);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(if all.iter().all(|one| one.status < 300) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::disallowed_methods, reason = "the server is where the author says, on loopback most of the time")]
pub(crate) fn client() -> Result<Client> {
    Client::builder().timeout(PATIENCE).build().context("cannot set up TLS")
}

async fn publish(client: &Client, server: &Url, key: &str, file: &Path) -> Result<Published> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let manifest = manifest::extract(&bytes).with_context(|| format!("cannot read {}", file.display()))?;
    let _spinner = progress::spinner(&format!("publishing {} {}", manifest.slug, manifest.version));
    let signature = sign::read_beside(file, &bytes)?;
    send(client, server, key, (bytes, manifest), signature).await
}

/// Sends the bytes of a component, with its manifest and the signature of the bytes.
pub(crate) async fn send(
    client: &Client,
    server: &Url,
    key: &str,
    (bytes, manifest): (Vec<u8>, Manifest),
    signature: Option<String>,
) -> Result<Published> {
    let (slug, version) = (manifest.slug, manifest.version);
    let address = address(server, &slug, &version)?;
    let mut request = client.put(address).header("x-org-api-key", key);
    if let Some(signature) = signature {
        request = request.header("x-toolkit-signature", STANDARD.encode(signature));
    }
    let sent = request.header("content-type", "application/wasm").body(bytes).send().await;
    let response = sent.with_context(|| {
        format!("cannot reach {server}; is the server running? `toolhost serve` starts one, --url names another")
    })?;
    let status = response.status();
    let text = response.text().await.context("the server's answer was cut off")?;
    let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(Published { slug, version, status: status.as_u16(), answer })
}

fn address(server: &Url, slug: &str, version: &Version) -> Result<Url> {
    let base = server.as_str().trim_end_matches('/');
    let address = format!("{base}/api/v3/toolkits/{slug}/versions/{version}");
    address.parse().with_context(|| format!("{address} is not an address"))
}

fn print(published: &Published) {
    let Published { slug, version, status, answer } = published;
    match StatusCode::from_u16(*status) {
        Ok(StatusCode::CREATED) => println!("published {slug} {version}"),
        Ok(StatusCode::OK) => println!("{slug} {version} was published before, with the same bytes"),
        _ => eprintln!("{slug} {version} was not published: {}", refusal(*status, answer)),
    }
}

/// The server's reason, every problem it lists, and what it suggests.
pub(crate) fn refusal(status: u16, answer: &Value) -> String {
    let error = &answer["error"];
    let text = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
    let mut lines = vec![match text("message") {
        Some(message) => format!("{message} ({status})"),
        None => format!("the server answered {status}"),
    }];
    let problems = error["errors"].as_array().into_iter().flatten();
    lines.extend(problems.map(|problem| problem.as_str().map_or_else(|| problem.to_string(), str::to_owned)));
    lines.extend(text("suggested_fix").map(str::to_owned));
    lines.join("\n  ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_has_its_own_address_below_any_server() {
        let address = |server: &str| {
            address(&server.parse().unwrap(), "hello", &"20261121_00".parse().unwrap()).unwrap().to_string()
        };
        assert_eq!(
            address("http://127.0.0.1:8080"),
            "http://127.0.0.1:8080/api/v3/toolkits/hello/versions/20261121_00"
        );
        assert_eq!(
            address("https://a.example/host/"),
            "https://a.example/host/api/v3/toolkits/hello/versions/20261121_00"
        );
    }

    #[test]
    fn every_problem_that_the_server_lists_is_shown() {
        let answer = json!({ "error": {
            "message": "the component is refused", "errors": ["slug is empty", "no tools"], "suggested_fix": "run `toolkit check`",
        }});
        let text = refusal(400, &answer);
        for part in ["the component is refused (400)", "slug is empty", "no tools", "run `toolkit check`"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(refusal(502, &Value::String("bad gateway".to_owned())), "the server answered 502");
    }
}
