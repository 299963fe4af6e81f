//! `toolkit publish`: publishes a component to a running server.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{Days, NaiveDate};
use clap::Args;
use manifest::{Manifest, Version};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::{
    build::{self, BuildTarget},
    check::{self, Subject},
    component, outcome, progress, sign,
};

const UNAUTHORIZED_STATUS: u16 = 401;
/// Slug of the error for a version that has other bytes.
const VERSION_TAKEN: &str = "Toolkit_VersionTaken";
/// Suggested fix that says no more than the problems do.
const GENERAL_FIX: &str = "correct the problems that the error lists";
/// Maximum number of versions to try: those of one day.
const MAX_ATTEMPTS: usize = 100;
/// Timeout of publishing. The server compiles the component before it responds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(180);

/// Publish a component or a toolkit to a running server.
///
/// A toolkit is built first. Every case is run first, as `toolkit check` does. Nothing is published
/// if one of them fails. If neither --version nor the source names a version, it is the first free
/// one of today.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    target: BuildTarget,
    #[command(flatten)]
    server: Server,
    /// Dated version to build, instead of the one in the source.
    #[arg(long, value_name = "YYYYMMDD_NN")]
    version: Option<Version>,
    /// Folder of the cases [default: `cases` in the toolkit's folder].
    #[arg(long, value_name = "DIR")]
    cases: Option<PathBuf>,
    /// Publish without a check.
    #[arg(long, conflicts_with = "cases")]
    no_check: bool,
    /// Publish even if this breaks users of an earlier version of the same day; `toolkit diff`
    /// shows the breaking changes.
    #[arg(long)]
    breaking: bool,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

/// A running server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Address of the server.
    #[arg(long, env = "TOOLHOST_URL", default_value = "http://127.0.0.1:8080", value_parser = server_url)]
    url: Url,
    /// Key of the organization.
    #[arg(long, env = "TOOLHOST_ORG_API_KEY", hide_env_values = true)]
    org_key: Option<String>,
}

/// Response of the server to one published component.
#[derive(Debug, Serialize)]
pub(crate) struct Published {
    slug: String,
    version: Version,
    pub(crate) status: u16,
    pub(crate) answer: Value,
}

/// Runs the command. Returns exit code 1 if a check fails or the server refuses a component.
pub(crate) async fn run(options: &Publish) -> Result<ExitCode> {
    options.server.key()?;
    let subjects = check::subjects(
        &options.target,
        options.version.as_ref(),
        options.cases.as_deref(),
    )?;
    if options.no_check {
        eprintln!("warning: published without a check (--no-check); no case was run");
    } else if !are_clean(&subjects).await? {
        return Ok(ExitCode::FAILURE);
    }
    let mut all = Vec::new();
    for subject in subjects {
        let published = publish(options, &subject).await?;
        if !options.json {
            print(&published);
        }
        all.push(published);
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(outcome::exit_code(all.iter().all(|one| one.status < 300)))
}

/// Checks every component whose cases are known, and shows the problems.
async fn are_clean(subjects: &[Subject]) -> Result<bool> {
    let mut clean = true;
    for subject in subjects {
        if subject.cases.is_none() {
            let file = subject.file.display();
            eprintln!("{file}: no case was run; name their folder with --cases");
            continue;
        }
        let report = check::check(subject, false).await?;
        if !report.is_clean() {
            eprint!("{report}");
            clean = false;
        }
    }
    if !clean {
        eprintln!(
            "nothing was published; mend the problems, or publish in spite of them with --no-check"
        );
    }
    Ok(clean)
}

async fn publish(options: &Publish, subject: &Subject) -> Result<Published> {
    let file = &subject.file;
    let (bytes, mut manifest) = component::read(file)?;
    let _spinner = progress::spinner(&format!("publishing {}", manifest.slug));
    let server = &options.server;
    let signature = sign::read_beside(file, &bytes)?;
    // The signature belongs to the bytes, which contain the version.
    if !subject.is_dated || signature.is_some() {
        let component = (bytes, manifest);
        return server.publish(component, signature, options.breaking).await;
    }
    let code = code_of(&bytes, &manifest)?;
    let built = manifest.version.clone();
    let published = server
        .publish_next(code, &mut manifest, options.breaking)
        .await?;
    if published.status < 300 && published.version != built {
        let bytes = manifest::embed(code.to_vec(), &manifest);
        build::write_component(file, &manifest.slug, &bytes)?;
    }
    Ok(published)
}

/// Returns the bytes of a component without its manifest. The section with the manifest is the last
/// one, and its bytes are determined by the manifest.
pub(crate) fn code_of<'b>(bytes: &'b [u8], manifest: &Manifest) -> Result<&'b [u8]> {
    bytes
        .strip_suffix(&manifest::embed(Vec::new(), manifest)[..])
        .context("the component does not end with its manifest")
}

impl Server {
    pub(crate) fn new(url: Url, org_key: String) -> Self {
        Self {
            url,
            org_key: Some(org_key),
        }
    }

    /// Sends the bytes of a component with its manifest and the signature of the bytes.
    pub(crate) async fn publish(
        &self,
        (bytes, manifest): (Vec<u8>, Manifest),
        signature: Option<String>,
        breaking: bool,
    ) -> Result<Published> {
        let slug = manifest.slug;
        let version = manifest.version;
        let mut request = self.request(Method::PUT, &slug, version.as_str())?;
        if breaking {
            request = request.query(&[("breaking", "true")]);
        }
        if let Some(signature) = signature {
            request = request.header("x-toolkit-signature", STANDARD.encode(signature));
        }
        request = request
            .header("content-type", "application/wasm")
            .body(bytes);
        let (status, answer) = self.answer(request).await?;
        Ok(Published {
            slug,
            version,
            status,
            answer,
        })
    }

    /// Publishes a component under the version of its manifest, or under the next free one.
    pub(crate) async fn publish_next(
        &self,
        code: &[u8],
        manifest: &mut Manifest,
        breaking: bool,
    ) -> Result<Published> {
        for _ in 0..MAX_ATTEMPTS {
            let bytes = manifest::embed(code.to_vec(), manifest);
            let component = (bytes, manifest.clone());
            let published = self.publish(component, None, breaking).await?;
            if published.answer["error"]["slug"] != VERSION_TAKEN {
                return Ok(published);
            }
            manifest.version = next_version(&manifest.version)?;
        }
        bail!(
            "{} was not published: each version that was tried is already published; try again",
            manifest.slug
        )
    }

    /// Deprecates a version, or ends its deprecation, and returns the status and the answer.
    pub(crate) async fn deprecate(
        &self,
        slug: &str,
        version: &str,
        undo: bool,
    ) -> Result<(u16, Value)> {
        let mut request = self.request(Method::DELETE, slug, version)?;
        if undo {
            request = request.query(&[("undo", "true")]);
        }
        self.answer(request).await
    }

    /// Returns the manifest of a published version.
    pub(crate) async fn manifest(&self, slug: &str, version: &str) -> Result<Manifest> {
        let (status, answer) = self
            .answer(self.request(Method::GET, slug, version)?)
            .await?;
        if status != 200 {
            bail!(
                "cannot read {slug}@{version}: {}",
                org_refusal(status, &answer)
            );
        }
        serde_json::from_value(answer["manifest"].clone())
            .with_context(|| format!("the manifest of {slug}@{version} does not fit this command"))
    }

    fn request(&self, method: Method, slug: &str, version: &str) -> Result<RequestBuilder> {
        Ok(client()?
            .request(method, address(&self.url, slug, version)?)
            .header("x-org-api-key", self.key()?))
    }

    /// Returns the key of the organization. Commands that build first call it before they do.
    pub(crate) fn key(&self) -> Result<&str> {
        let key = self.org_key.as_deref().filter(|key| !key.is_empty());
        key.context("no organization key is given; set TOOLHOST_ORG_API_KEY, or give --org-key")
    }

    /// Returns the status and the JSON body of a response. Other text becomes a string.
    async fn answer(&self, request: RequestBuilder) -> Result<(u16, Value)> {
        let response = request.send().await.with_context(|| {
            format!(
                "cannot reach {}; is the server running? `toolhost serve` starts one, --url names another",
                self.url
            )
        })?;
        let status = response.status().as_u16();
        let text = response
            .text()
            .await
            .context("the server's response is incomplete")?;
        Ok((
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        ))
    }
}

/// Returns the next version: the next number of the same day, or the first of the next day.
pub(crate) fn next_version(version: &Version) -> Result<Version> {
    let none = || anyhow!("no version follows {version}");
    let (day, number) = version.as_str().split_once('_').ok_or_else(none)?;
    let next = match number.parse::<u8>()? {
        99.. => {
            let day = NaiveDate::parse_from_str(day, "%Y%m%d").map_err(|_| none())?;
            day.checked_add_days(Days::new(1))
                .ok_or_else(none)?
                .format("%Y%m%d_00")
                .to_string()
        }
        number => format!("{day}_{:02}", number + 1),
    };
    Ok(next.parse()?)
}

/// Parses the address of a server.
pub(crate) fn server_url(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| {
            "write the scheme, the host and the port, for example http://127.0.0.1:8080".to_owned()
        })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the author names the server, which is usually on loopback"
)]
pub(crate) fn client() -> Result<Client> {
    Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .build()
        .context("cannot set up TLS")
}

/// Returns the URL of a version. Slug and version must be safe in a path.
fn address(server: &Url, slug: &str, version: &str) -> Result<Url> {
    if !is_plain(slug) || !is_plain(version) {
        bail!(
            "`{slug}@{version}` is not a toolkit's slug and a version, for example example@20261121_00"
        );
    }
    let base = server.as_str().trim_end_matches('/');
    let address = format!("{base}/api/v3/toolkits/{slug}/versions/{version}");
    address
        .parse()
        .with_context(|| format!("{address} is not an address"))
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn print(published: &Published) {
    let Published {
        slug,
        version,
        status,
        answer,
    } = published;
    match StatusCode::from_u16(*status) {
        Ok(StatusCode::CREATED) => println!("published {slug} {version}"),
        Ok(StatusCode::OK) => {
            println!("{slug} {version} was published before, with the same bytes")
        }
        _ => eprintln!(
            "{slug} {version} was not published: {}",
            org_refusal(*status, answer)
        ),
    }
}

/// Formats a refusal: the server's reason, every problem that it lists, and its suggestion.
pub(crate) fn refusal(status: u16, answer: &Value) -> String {
    let error = &answer["error"];
    let text = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
    let mut lines = vec![match text("message") {
        Some(message) => format!("{message} ({status})"),
        None => format!("the server responded {status}"),
    }];
    let problems = error["errors"].as_array().into_iter().flatten();
    lines.extend(problems.map(|problem| {
        problem
            .as_str()
            .map_or_else(|| problem.to_string(), str::to_owned)
    }));
    let fix = text("suggested_fix").filter(|fix| *fix != GENERAL_FIX);
    lines.extend(fix.map(str::to_owned));
    lines.join("\n  ")
}

/// Formats a refusal of a request that this command sent with the key of the organization.
pub(crate) fn org_refusal(status: u16, answer: &Value) -> String {
    let text = refusal(status, answer);
    if status == UNAUTHORIZED_STATUS {
        format!(
            "{text}\n  this command sends the organization's key: set TOOLHOST_ORG_API_KEY, or give --org-key"
        )
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn version_url_is_below_any_server() {
        let address = |server: &str| {
            address(&server.parse().unwrap(), "hello", "20261121_00")
                .unwrap()
                .to_string()
        };
        let path = "/api/v3/toolkits/hello/versions/20261121_00";
        for (server, base) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://a.example/host/", "https://a.example/host"),
        ] {
            assert_eq!(address(server), format!("{base}{path}"));
        }
    }

    #[test]
    fn last_version_of_day_precedes_next_day() {
        for (version, next) in [
            ("20261121_00", "20261121_01"),
            ("20261121_09", "20261121_10"),
            ("20261121_99", "20261122_00"),
            ("20261231_99", "20270101_00"),
        ] {
            let version: Version = version.parse().unwrap();
            assert_eq!(next_version(&version).unwrap().as_str(), next);
            assert!(next_version(&version).unwrap() > version);
        }
        assert!(
            next_version(&"20260231_99".parse().unwrap()).is_err(),
            "no such day"
        );
    }

    #[test]
    fn server_address_needs_http_scheme() {
        assert!(server_url("https://a.example/host").is_ok());
        for wrong in ["", "127.0.0.1:8080", "localhost:8080", "ftp://a.example"] {
            let problem = server_url(wrong).unwrap_err();
            assert!(
                problem.contains("http://127.0.0.1:8080"),
                "{wrong}: {problem}"
            );
        }
    }

    #[test]
    fn every_problem_that_the_server_lists_is_shown() {
        let answer = json!({ "error": {
            "message": "the component is refused", "errors": ["slug is empty", "no tools"], "suggested_fix": "run `toolkit check`",
        }});
        let text = refusal(400, &answer);
        for part in [
            "the component is refused (400)",
            "slug is empty",
            "no tools",
            "run `toolkit check`",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let general = json!({ "error": { "message": "a is wrong", "suggested_fix": GENERAL_FIX } });
        assert_eq!(refusal(400, &general), "a is wrong (400)");
        assert_eq!(
            refusal(502, &Value::String("bad gateway".to_owned())),
            "the server responded 502"
        );
        let key = org_refusal(401, &json!({ "error": { "message": "Invalid API key" } }));
        assert!(key.contains("TOOLHOST_ORG_API_KEY"), "{key}");
    }
}
