//! `toolkit run`: runs one call in the production sandbox and reports everything it did.

mod arguments;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use ipnet::IpNet;
use manifest::{AuthScheme, Manifest, Trigger, TriggerKind, cases::Case, did_you_mean};
use net::{Origin, Rewrite};
use sandbox::{Action, Clock, File, Inbound, Outcome, Output, cassette::Cassette};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    account::{self, Account},
    build::{self, BuildTarget},
    host::{self, CallInput, Entry, Host},
    outcome, progress, schema,
    toolchain::Mode,
};

/// Run one tool, or one poll or webhook of a trigger.
///
/// It runs in the production sandbox.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    call: CallOptions,
    /// Case file whose input to take: arguments or configuration, cursor, webhook request, files and
    /// time. Requests go to the provider.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["arguments", "arg", "config", "cursor", "request"]
    )]
    case: Option<PathBuf>,
}

/// A call, and what becomes of its result.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// A component, or the folder of a toolkit, which is built first.
    pub(crate) target: PathBuf,
    /// Slug of the tool; the part after the toolkit's name is enough.
    #[arg(required_unless_present = "trigger", conflicts_with = "trigger")]
    tool: Option<String>,
    /// All arguments as a JSON object, or @FILE.
    #[arg(conflicts_with = "arg", value_name = "JSON")]
    arguments: Option<String>,
    /// One argument. Repeat a name to make a list; NAME=@FILE takes a file.
    #[arg(long, value_name = "NAME=VALUE")]
    arg: Vec<String>,
    /// Slug of a trigger.
    #[arg(long)]
    trigger: Option<String>,
    /// Configuration of the trigger as JSON, or @FILE.
    #[arg(
        long,
        requires = "trigger",
        conflicts_with = "tool",
        value_name = "JSON"
    )]
    config: Option<String>,
    /// Cursor that the last poll returned, as JSON or @FILE. Omit it for the first poll.
    #[arg(
        long,
        requires = "trigger",
        conflicts_with = "tool",
        value_name = "JSON"
    )]
    cursor: Option<String>,
    /// Webhook request: JSON with method, path, headers and body, or @FILE.
    #[arg(
        long,
        requires = "trigger",
        conflicts_with = "tool",
        value_name = "JSON"
    )]
    request: Option<String>,
    /// JSON file with the fields of the account; otherwise each comes from the environment as
    /// TOOLKIT_<FIELD>.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// The project's identifier for the user on whose behalf the call runs.
    #[arg(long, default_value = "")]
    user: String,
    /// Send one origin to another, for example https://api.example.com=http://127.0.0.1:4010.
    #[arg(long, env = "TOOLKIT_REWRITE", value_name = "FROM=TO", value_parser = rewrite, value_delimiter = ',')]
    rewrite: Vec<Rewrite>,
    /// Private network that may be reached, for example 10.0.0.0/8.
    #[arg(long, value_name = "CIDR")]
    allow: Vec<IpNet>,
    /// Folder for files that the tool makes.
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Toolchain to compile with, if TARGET is a folder.
    #[arg(long, value_enum, env = "TOOLKIT_TOOLCHAIN")]
    toolchain: Option<Mode>,
    /// Print one JSON object with everything.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Returns exit code 1 if the call fails.
pub(crate) async fn run(options: &Run) -> Result<ExitCode> {
    let case = options.case.as_deref().map(read_case).transpose()?;
    let done = call(&options.call, case, None).await?;
    print_call(&options.call, &done)
}

/// A finished call.
pub(crate) struct FinishedCall {
    /// Slug of the toolkit.
    pub(crate) toolkit: String,
    /// Call as it was given, with the secrets that the toolkit does not get.
    pub(crate) action: Action,
    /// Names of the secret properties of a trigger's configuration.
    pub(crate) write_only: BTreeSet<String>,
    pub(crate) outcome: Outcome,
    /// Schema of its data.
    output: Option<Value>,
    /// Cassette, if a recording was requested and did not exceed its maximum size.
    pub(crate) cassette: Option<Box<Cassette>>,
}

/// Runs the call of the options, with the input of a case if one is given, and records up to
/// `max_record_bytes` bytes of it.
pub(crate) async fn call(
    options: &CallOptions,
    case: Option<Case>,
    max_record_bytes: Option<usize>,
) -> Result<FinishedCall> {
    let component = component(&options.target, options.toolchain)?;
    let clock = case.as_ref().and_then(|case| case.now);
    let host = {
        let _spinner = progress::spinner("compiling");
        Host::open(
            component,
            host::network(options.rewrite.clone(), options.allow.clone()),
            clock.map_or(Clock::System, |now| Clock::Set(Arc::new(now.into()))),
        )
        .await?
    };
    let manifest = &host.installed.manifest;
    let mut input = CallInput {
        run_id: "log_local".to_owned(),
        user_id: options.user.clone(),
        ..CallInput::default()
    };
    let (entry, needs_account, output) = entry(options, case, manifest, &mut input.files)?;
    input.account = find_account(options, &manifest.auth, needs_account)?;
    let _spinner = progress::spinner("running");
    let action = entry.action.clone();
    let write_only = entry.policy.write_only.clone();
    let (outcome, cassette) = match max_record_bytes {
        Some(max) => host.record(entry, input, max).await?,
        None => (host.call(entry, input).await?, None),
    };
    Ok(FinishedCall {
        toolkit: manifest.slug.clone(),
        action,
        write_only,
        outcome,
        output,
        cassette,
    })
}

/// Prints a call, writes its files, and returns the exit code.
pub(crate) fn print_call(
    options: &CallOptions,
    FinishedCall {
        outcome, output, ..
    }: &FinishedCall,
) -> Result<ExitCode> {
    if let Some(folder) = &options.files {
        keep_files(folder, &outcome.files)?;
    }
    if options.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&outcome::record(outcome))?
        );
    } else {
        report(outcome, output.as_ref());
    }
    Ok(outcome::exit_code(outcome.output.is_ok()))
}

/// Returns the bytes of a component. A toolkit's folder is built first.
pub(crate) fn component(target: &Path, toolchain: Option<Mode>) -> Result<Bytes> {
    let file = if target.is_file() {
        target.to_owned()
    } else {
        let built = build::build(&BuildTarget::at(target.to_owned(), toolchain), None, None)?;
        match <[_; 1]>::try_from(built) {
            Ok([one]) => one.file,
            Err(_) => bail!(
                "{} holds more than one toolkit; name the folder of one",
                target.display()
            ),
        }
    };
    Ok(fs::read(&file)
        .with_context(|| format!("cannot read {}", file.display()))?
        .into())
}

/// Returns the entry to call, true if it may use an account, and the schema of its data.
fn entry(
    options: &CallOptions,
    case: Option<Case>,
    manifest: &Manifest,
    files: &mut Vec<File>,
) -> Result<(Entry, bool, Option<Value>)> {
    if let Some(case) = &case {
        files.extend(case.files.iter().map(host::given_file));
    }
    if let Some(name) = &options.trigger {
        if let Some(case) = case.as_ref().filter(|case| case.subscription.is_some()) {
            return Ok((subscription(case, manifest, name)?, true, None));
        }
        let input = TriggerInput::new(options, case)?;
        let received = input.request.is_some();
        // A toolkit that receives a webhook rarely sends a request.
        return Ok((trigger(input, manifest, name)?, !received, None));
    }
    let name = options.tool.as_deref().context("name a tool")?;
    let slugs = manifest.tools.iter().map(|tool| tool.slug.as_str());
    let tool = manifest
        .tool(name)
        .or_else(|| manifest.tool(&full_slug(manifest, name)))
        .ok_or_else(|| unknown_slug("tool", name, slugs))?;
    let arguments = match (case, &options.arguments) {
        (Some(case), _) => case.arguments,
        (None, Some(text)) => arguments::json(text, "the arguments")?,
        (None, None) => arguments::read(&tool.input, &options.arg, files)?,
    };
    let what = "the arguments do not match the tool's input schema";
    check_schema(&tool.input, &arguments, what)?;
    let entry = Entry::tool(manifest, tool, arguments.to_string().into());
    Ok((
        entry,
        !tool.no_auth,
        (!tool.loose_output).then(|| tool.output.clone()),
    ))
}

/// Input of a call of a trigger.
struct TriggerInput {
    config: Value,
    cursor: Option<Value>,
    request: Option<Value>,
}

impl TriggerInput {
    /// Takes the input from the case, or from the options.
    fn new(options: &CallOptions, case: Option<Case>) -> Result<Self> {
        if let Some(case) = case {
            return Ok(Self {
                config: case.arguments,
                cursor: case.cursor,
                request: case.request.map(serde_json::to_value).transpose()?,
            });
        }
        Ok(Self {
            config: option_json(options.config.as_ref(), "the configuration")?
                .unwrap_or_else(|| json!({})),
            cursor: option_json(options.cursor.as_ref(), "the cursor")?,
            request: option_json(options.request.as_ref(), "the request")?,
        })
    }
}

fn option_json(text: Option<&String>, what: &str) -> Result<Option<Value>> {
    text.map(|text| arguments::json(text, what)).transpose()
}

fn find_trigger<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a Trigger> {
    let slugs = manifest
        .triggers
        .iter()
        .map(|trigger| trigger.slug.as_str());
    manifest
        .trigger(name)
        .or_else(|| manifest.trigger(&full_slug(manifest, name)))
        .ok_or_else(|| unknown_slug("trigger", name, slugs))
}

/// Returns the call of a case that subscribes at the provider, or unsubscribes. Its request holds the
/// placeholder of the secret.
fn subscription(case: &Case, manifest: &Manifest, name: &str) -> Result<Entry> {
    let trigger = find_trigger(manifest, name)?;
    let call = case
        .subscription
        .as_ref()
        .map(|subscription| subscription.call(&case.arguments));
    Ok(Entry::subscription(
        manifest,
        trigger,
        json!(call).to_string().into(),
    ))
}

fn trigger(input: TriggerInput, manifest: &Manifest, name: &str) -> Result<Entry> {
    let trigger = find_trigger(manifest, name)?;
    let TriggerInput {
        config,
        cursor,
        request,
    } = input;
    let what = "the configuration does not match the trigger's schema";
    check_schema(&trigger.config, &config, what)?;
    let config = config.to_string().into();
    match (trigger.kind, request) {
        (TriggerKind::Poll, None) => {
            let cursor = cursor
                .map(|cursor| cursor.to_string().into())
                .unwrap_or_default();
            Ok(Entry::poll(manifest, trigger, config, cursor))
        }
        (TriggerKind::Webhook, Some(request)) => {
            let request: Webhook = serde_json::from_value(request)
                .context("the request needs `method`, `path`, `headers` and `body`")?;
            Ok(Entry::receive(manifest, trigger, config, request.into()))
        }
        (TriggerKind::Poll, Some(_)) => bail!(
            "{} is a polling trigger; use --cursor instead of --request",
            trigger.slug
        ),
        (TriggerKind::Webhook, None) => bail!(
            "{} is a webhook trigger; give the webhook request with --request",
            trigger.slug
        ),
    }
}

fn read_case(file: &Path) -> Result<Case> {
    Case::read(file).map_err(|problem| anyhow!("{}: {problem}", file.display()))
}

/// Returns the full slug for the part after the toolkit's slug.
fn full_slug(manifest: &Manifest, name: &str) -> String {
    format!("{}_{name}", manifest.slug)
}

fn unknown_slug<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> anyhow::Error {
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return anyhow!("the {kind} `{name}` is unknown; the toolkit has no {kind}");
    }
    // The name of the toolkit may be left out.
    let short = known
        .iter()
        .filter_map(|slug| Some(slug.split_once('_')?.1));
    let question = did_you_mean(name, known.iter().copied().chain(short));
    anyhow!(
        "the {kind} `{name}` is unknown{question}\nknown are:\n  {}",
        known.join("\n  ")
    )
}

fn check_schema(schema: &Value, value: &Value, what: &str) -> Result<()> {
    let validator = schema::compile(schema)
        .map_err(|cause| anyhow!("a schema of the toolkit is invalid: {cause}"))?;
    let problems = schema::problems(&validator, value);
    if problems.is_empty() {
        Ok(())
    } else {
        bail!("{what}:\n  {}", problems.join("\n  "))
    }
}

/// A webhook request in the notation of the command line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Webhook {
    #[serde(default = "post")]
    method: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    headers: serde_json::Map<String, Value>,
    #[serde(default)]
    body: Value,
}

fn post() -> String {
    "POST".to_owned()
}

/// Returns a string as it is, and any other value as JSON.
fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl From<Webhook> for Inbound {
    fn from(webhook: Webhook) -> Self {
        let headers = webhook
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), plain_text(&value)));
        let body = if webhook.body.is_null() {
            String::new()
        } else {
            plain_text(&webhook.body)
        };
        Self {
            method: webhook.method,
            path: webhook.path,
            headers: headers.collect(),
            body: body.into(),
        }
    }
}

/// Returns an account of the first scheme whose required fields are all given.
fn find_account(options: &CallOptions, schemes: &[AuthScheme], needed: bool) -> Result<Account> {
    let file = options
        .credentials
        .as_deref()
        .map(read_credentials)
        .transpose()?;
    let mut lacking = Vec::new();
    for scheme in account::schemes(schemes) {
        match account::complete(scheme, |name| credential(file.as_ref(), name)) {
            Ok(values) => return Ok(Account::new(scheme, &values)),
            Err(problems) => lacking.push(format!(
                "{}\n    {}",
                scheme.mode.as_str(),
                problems.join("\n    ")
            )),
        }
    }
    if lacking.is_empty() || !needed {
        return Ok(Account::default());
    }
    bail!(
        "this needs an account, and fields are missing or wrong\n  {}\nset each in the environment as TOOLKIT_<FIELD>, or in a \
         JSON file named with --credentials",
        lacking.join("\n  ")
    )
}

pub(crate) fn read_credentials(file: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))
}

/// Returns a field of the account, from the credentials file if there is one, otherwise from the
/// environment.
pub(crate) fn credential(file: Option<&Value>, field: &str) -> Option<String> {
    match file {
        Some(file) => file.get(field).and_then(Value::as_str).map(str::to_owned),
        None => from_environment(field),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the names depend on the toolkit, so they cannot be declared as options"
)]
fn from_environment(field: &str) -> Option<String> {
    env::var(format!("TOOLKIT_{}", field.to_ascii_uppercase())).ok()
}

pub(crate) fn rewrite(text: &str) -> Result<Rewrite, String> {
    let (from, to) = text
        .split_once('=')
        .ok_or("write FROM=TO, for example https://api.example.com=http://127.0.0.1:4010")?;
    Ok(Rewrite {
        from: origin(from)?,
        to: origin(to)?,
    })
}

fn origin(text: &str) -> Result<Origin, String> {
    text.parse::<Origin>().map_err(|cause| cause.to_string())
}

fn keep_files(folder: &Path, files: &[File]) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for file in files {
        // The toolkit chose the name, so only its last path component is used.
        let name = Path::new(&file.name)
            .file_name()
            .unwrap_or(file.id.as_ref());
        let path = folder.join(name);
        fs::write(&path, &file.bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// Prints the data to standard output and all other facts about the call to standard error.
pub(crate) fn report(outcome: &Outcome, output: Option<&Value>) {
    match &outcome.output {
        Ok(answer) => {
            let data = outcome::answer(answer);
            println!("{data:#}");
            if let (Some(schema), Output::Data(_)) = (output, answer)
                && let Err(problem) = check_schema(
                    schema,
                    &data,
                    "the data does not match the tool's output schema",
                )
            {
                eprintln!("\nwarning: {problem:#}");
            }
        }
        Err(failure) => {
            eprintln!("failed with {}: {}", failure.kind, failure.message);
            if let Some(status) = failure.upstream_status {
                eprintln!("  the provider responded {status}");
            }
            if let Some(wait) = failure.retry_after {
                eprintln!("  try again in {}", progress::time(wait));
            }
            if let Some(details) = &failure.details {
                eprintln!("  {}", String::from_utf8_lossy(details));
            }
        }
    }
    report_work(outcome);
}

fn report_work(outcome: &Outcome) {
    if !outcome.requests.is_empty() {
        eprintln!("\nrequests");
    }
    for request in &outcome.requests {
        let ended = match (request.status, &request.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_else(|| "no answer".to_owned()),
        };
        let sent = progress::size(request.sent);
        let received = progress::size(request.received);
        let time = progress::time(request.elapsed);
        eprintln!(
            "  {} {}  {ended}  {time}  {sent} out, {received} in",
            request.method, request.url
        );
    }
    if !outcome.log.is_empty() {
        eprintln!("\nlog");
    }
    for line in &outcome.log {
        eprintln!(
            "  {:<5} {:>9}  {}",
            line.level.as_str(),
            progress::time(line.at),
            line.message
        );
    }
    for file in &outcome.files {
        eprintln!(
            "\nfile {} ({}, {})",
            file.name,
            file.media_type,
            progress::size(file.bytes.len() as u64)
        );
    }
    let usage = &outcome.usage;
    let cpu = progress::time(usage.cpu);
    let wall = progress::time(usage.wall);
    eprintln!(
        "\ncpu {cpu}   wall {wall}   memory {} at most",
        progress::size(usage.peak_memory)
    );
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: Run,
    }

    #[test]
    fn a_rewrite_is_two_origins() {
        let read = rewrite("https://api.example.com=http://127.0.0.1:4010").unwrap();
        assert_eq!(
            (read.from.to_string(), read.to.to_string()),
            (
                "https://api.example.com".into(),
                "http://127.0.0.1:4010".into()
            )
        );
        assert!(rewrite("https://api.example.com").is_err());
        assert!(rewrite("https://api.example.com/path=http://127.0.0.1").is_err());
    }

    #[test]
    fn a_webhook_is_written_as_short_as_possible() {
        let webhook: Webhook =
            serde_json::from_value(json!({ "headers": { "X-Kind": "push" }, "body": { "a": 1 } }))
                .unwrap();
        let inbound = Inbound::from(webhook);
        assert_eq!(
            (inbound.method.as_str(), &inbound.body[..]),
            ("POST", &br#"{"a":1}"#[..])
        );
        assert_eq!(inbound.headers, [("x-kind".to_owned(), "push".to_owned())]);
    }

    #[test]
    fn toolkit_files_stay_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| File {
            id: "file_1".into(),
            name: name.into(),
            media_type: "text/plain".into(),
            bytes: Bytes::from_static(b"x"),
        };
        let inside = folder.path().join("out");
        keep_files(&inside, &[file("../../escape.txt"), file("..")]).unwrap();
        let mut names: Vec<_> = fs::read_dir(&inside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["escape.txt", "file_1"]);
    }

    #[test]
    fn case_is_the_input_of_a_trigger() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pushed.json");
        let case = json!({
            "arguments": { "secret": "s" }, "cursor": 7, "data": {},
            "request": { "headers": { "X-Kind": "push" }, "body": "{}" },
        });
        fs::write(&file, case.to_string()).unwrap();
        let line = Line::parse_from(["run", "t.wasm", "--trigger", "PUSHED"]);
        let case = read_case(&file).unwrap();
        let input = TriggerInput::new(&line.run.call, Some(case)).unwrap();
        assert_eq!(input.config, json!({ "secret": "s" }));
        assert_eq!(input.cursor, Some(json!(7)));
        let request: Webhook = serde_json::from_value(input.request.unwrap()).unwrap();
        let inbound = Inbound::from(request);
        assert_eq!(inbound.headers, [("x-kind".to_owned(), "push".to_owned())]);
        assert_eq!((&*inbound.method, &inbound.body[..]), ("POST", &b"{}"[..]));
        assert!(read_case(&folder.path().join("missing.json")).is_err());
    }
}
