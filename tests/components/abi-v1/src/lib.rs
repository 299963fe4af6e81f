//! Uses every import of `toolhost:toolkit@1.0.0`. Compiled once, kept as `abi-v1.wasm`, run for good: what it saw then it must
//! see on every server to come. Not rebuilt when the SDK changes.

use std::time::Duration;

use toolkit_sdk::File;
use toolkit_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Fetch {
    url: String,
    #[serde(default = "get")]
    method: String,
    headers: Option<Value>,
    body: Option<Value>,
    /// Without the account's credential.
    #[serde(default)]
    anonymous: bool,
    /// Put the answer into a file and read that.
    #[serde(default)]
    into_file: bool,
    timeout_ms: Option<u64>,
}

fn get() -> String {
    "GET".into()
}

#[derive(Serialize, JsonSchema)]
struct Fetched {
    status: u16,
    headers: Value,
    body: String,
}

impl Fetch {
    fn request(&self) -> Request {
        let start = match self.method.as_str() {
            "POST" => http::post,
            "PUT" => http::put,
            "PATCH" => http::patch,
            "DELETE" => http::delete,
            "HEAD" => http::head,
            _ => http::get,
        };
        let mut request = start(self.url.clone());
        for (name, value) in self.headers.iter().filter_map(Value::as_object).flatten() {
            request = request.header(name, value.as_str().unwrap_or_default());
        }
        if let Some(body) = &self.body {
            request = request.json(body);
        }
        if self.anonymous {
            request = request.anonymous();
        }
        if self.into_file {
            request = request.into_file();
        }
        match self.timeout_ms {
            Some(time) => request.timeout(Duration::from_millis(time)),
            None => request,
        }
    }
}

fn fetched(response: Response, from_file: bool) -> Result<Fetched> {
    let status = response.status();
    let headers = response.headers().iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let body = if from_file { response.file()?.read_text(1 << 20)? } else { response.text() };
    Ok(Fetched { status, headers, body })
}

/// Sends one request and answers all that came back.
#[tool]
fn fetch(input: Fetch) -> Result<Fetched> {
    fetched(input.request().send_any()?, input.into_file)
}

/// Sends one request that must only read.
#[tool(read_only)]
fn fetch_read_only(input: Fetch) -> Result<Fetched> {
    fetched(input.request().send_any()?, input.into_file)
}

#[derive(Deserialize, JsonSchema)]
struct FetchAll {
    urls: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct FetchedAll {
    /// A status, or the kind of an error.
    answers: Vec<String>,
}

/// Sends several requests at once.
#[tool]
fn fetch_all(input: FetchAll) -> Result<FetchedAll> {
    let answers = http::send_all(input.urls.into_iter().map(http::get)).into_iter();
    let told = answers.map(|answer| match answer {
        Ok(response) => response.status().to_string(),
        Err(error) => error.kind().to_owned(),
    });
    Ok(FetchedAll { answers: told.collect() })
}

#[derive(Deserialize, JsonSchema)]
struct Upload {
    url: String,
    text: String,
}

/// Sends a file as a part of a form, and another as a whole body.
#[tool]
fn upload(input: Upload) -> Result<FetchedAll> {
    let file = File::with("note.txt", "text/plain", input.text.as_bytes())?;
    let form = Multipart::new().text("title", "a note").file("note", &file).bytes(
        "raw",
        "raw.bin",
        "application/octet-stream",
        vec![0, 1, 2],
    );
    let parts = http::post(input.url.clone()).multipart(form).send_any()?;
    let whole = http::put(input.url).body_file(&file).send_any()?;
    Ok(FetchedAll { answers: vec![parts.text(), whole.text()] })
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    message: String,
}

#[derive(Serialize, JsonSchema)]
struct Done {
    done: bool,
}

/// Writes a line of each level to the log.
#[tool(no_auth)]
fn write_log(input: Say) -> Result<Done> {
    for level in [log::Level::Debug, log::Level::Info, log::Level::Warn, log::Level::Error] {
        log::write(level, &input.message);
    }
    Ok(Done { done: true })
}

#[derive(Deserialize, JsonSchema)]
struct Wait {
    milliseconds: u64,
}

#[derive(Serialize, JsonSchema)]
struct Times {
    now: u64,
    elapsed_before: u64,
    elapsed_after: u64,
}

/// Tells the time and waits.
#[tool(no_auth)]
fn wait(input: Wait) -> Result<Times> {
    let milliseconds = || u64::try_from(clock::elapsed().as_millis()).unwrap_or(u64::MAX);
    let elapsed_before = milliseconds();
    clock::sleep(Duration::from_millis(input.milliseconds));
    Ok(Times { now: clock::now(), elapsed_before, elapsed_after: milliseconds() })
}

#[derive(Deserialize, JsonSchema)]
struct Length {
    length: u32,
}

#[derive(Serialize, JsonSchema)]
struct Bytes {
    length: usize,
    distinct: usize,
    uuid: String,
}

/// Takes random bytes.
#[tool(no_auth)]
fn take_random(input: Length) -> Result<Bytes> {
    let bytes = random::bytes(input.length);
    let distinct = (0..=u8::MAX).filter(|byte| bytes.contains(byte)).count();
    Ok(Bytes { length: bytes.len(), distinct, uuid: random::uuid() })
}

#[derive(Serialize, JsonSchema)]
struct Remembered {
    before: Option<String>,
    after: Option<String>,
    removed: Option<String>,
}

/// Keeps text, reads it and forgets it.
#[tool(no_auth)]
fn remember(input: Say) -> Result<Remembered> {
    let before = state::get("left")?;
    state::set("text", &input.message)?;
    let after = state::get("text")?;
    state::remove("text");
    let removed = state::get("text")?;
    // Left behind: the next call must not find it.
    state::set("left", &input.message)?;
    Ok(Remembered { before, after, removed })
}

#[derive(Serialize, JsonSchema)]
struct Kept {
    size: u64,
    text: String,
    middle: String,
}

/// Writes a file in two pieces and reads it back.
#[tool(no_auth)]
fn keep(input: Say) -> Result<Kept> {
    let file = File::create("kept.txt", "text/plain")?;
    file.append(input.message.as_bytes())?;
    file.append(b", twice")?;
    let middle = String::from_utf8_lossy(&file.read_at(1, 3)?).into_owned();
    Ok(Kept { size: file.size()?, text: file.read_text(1 << 20)?, middle })
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
struct Told {
    run_id: String,
    user_id: String,
    remaining_ms: u64,
}

/// Tells what the platform says about the call.
#[tool(no_auth)]
fn tell_context(_input: Nothing) -> Result<Told> {
    let remaining_ms = u64::try_from(context::remaining().as_millis()).unwrap_or(u64::MAX);
    Ok(Told { run_id: context::run_id(), user_id: context::user_id(), remaining_ms })
}

#[derive(Deserialize, JsonSchema)]
struct Fail {
    kind: String,
    message: String,
}

/// Fails with all that an error can carry.
#[tool(no_auth)]
fn fail(input: Fail) -> Result<Done> {
    let error = ToolError::new(input.kind, input.message);
    Err(error.retry_after(Duration::from_millis(1500)).upstream_status(418).details(json!({ "teapot": true })))
}

/// Panics.
#[tool(no_auth)]
fn break_down(input: Say) -> Result<Done> {
    panic!("{}", input.message)
}

#[derive(Deserialize, JsonSchema)]
struct Watch {
    up_to: u64,
}

#[derive(Serialize, JsonSchema)]
struct Number {
    number: u64,
}

/// Fires for each number.
#[trigger(poll)]
fn new_number(config: Watch, cursor: Option<u64>) -> Result<Polled<Number, u64>> {
    let Some(last) = cursor else { return Ok(Polled::new(0)) };
    let next = (last + 1).min(config.up_to);
    Ok(Polled::new(next).event(next, Number { number: next }).more(next < config.up_to))
}

/// Fires for each number that arrives.
#[trigger(webhook)]
fn number_arrived(_config: Watch, request: Inbound) -> Result<Received<Number>> {
    let number: u64 = request.json()?;
    Ok(Received::event(number, Number { number }).answer("thank you"))
}

toolkit! {
    slug: "abi",
    name: "Every import",
    description: "Uses every import of the contract, version 1.",
    categories: ["testing"],
    version: "20261121_00",
    auth: [api_key(header: "authorization", value: "Bearer {api_key}", help: "Any text.")],
    egress: ["api.example.com"],
    tools: [
        fetch, fetch_read_only, fetch_all, upload, write_log, wait, take_random, remember, keep, tell_context, fail,
        break_down,
    ],
    triggers: [new_number, number_arrived],
}
