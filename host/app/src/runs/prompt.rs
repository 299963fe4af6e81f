//! Arguments made from a prompt by a language model.
//!
//! The operator configures the model: a chat completions endpoint, which is called through `net`
//! like everything outside. The model receives the prompt and the tool's entry in the catalog, and
//! nothing else: no credential, no account, no earlier call. The tool's schema is the format of its
//! output, which is validated like all arguments. If the output is invalid, the model may correct
//! it once. Time, tokens, sizes and concurrent requests are limited.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gate::{Capacity, Gate, Shares};
use net::{
    Body, HeaderMap, Limits, Method, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::{
    App, Result,
    catalog::{Accepted, Tool},
    projects::Project,
    runs::errors,
};

/// Part of all prompts that a project takes whenever they are free.
const PROMPT_BASE_DIVISOR: u64 = 16;
/// Maximum length of a prompt text, a description and a system prompt, in characters.
pub const MAX_PROMPT_CHARS: usize = 16_384;
/// Maximum size of the endpoint's response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;
/// Maximum length of the model's output in an error, in characters.
const MAX_SHOWN_OUTPUT_CHARS: usize = 2_000;
/// Number of attempts: the first one, and one correction of invalid output.
const MAX_ATTEMPTS: usize = 2;

const DEFAULT_INSTRUCTIONS: &str = "You fill in the arguments of one call of one tool. Answer with one JSON object that fits the schema, and \
                      with nothing else. Take values from the request alone, and leave out what it does not say.";

/// The settings of the language model and its limits.
pub struct Settings {
    /// The HTTP client.
    pub client: net::Client,
    /// The URL of the endpoint's `chat/completions`.
    pub url: Url,
    /// The name of the model at the endpoint.
    pub model: String,
    /// The API key, sent as a bearer token.
    pub key: Option<Zeroizing<String>>,
    /// The names of caller headers that are forwarded, in lower case.
    pub headers: Vec<String>,
    /// The timeout of both attempts together.
    pub timeout: Duration,
    /// Maximum number of tokens of each output.
    pub max_tokens: u32,
    /// Maximum number of prompts that are processed at the same time.
    pub max_concurrent: usize,
    /// Maximum number of prompts of one project that are processed at the same time.
    pub max_concurrent_per_project: usize,
}

pub(crate) struct Model {
    settings: Settings,
    permits: Gate<Arc<str>>,
}

/// Returns the shares of projects in a number of prompts, of which one project has at most
/// `per_project`.
#[must_use]
pub const fn prompt_shares(prompts: usize, per_project: usize) -> Shares {
    Shares::new(prompts as u64, PROMPT_BASE_DIVISOR, per_project as u64)
}

/// A prompt to convert to arguments.
#[derive(Debug, Default)]
pub struct Prompt {
    /// The text of the prompt.
    pub text: String,
    /// A description that replaces that of the tool.
    pub description: Option<String>,
    /// A system prompt that replaces the default instructions.
    pub system_prompt: Option<String>,
    /// Headers for the endpoint. Only those that the operator allows are sent.
    pub headers: Vec<(String, String)>,
}

/// The tokens used by a model, as counted by its endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// The name of the model.
    pub model: String,
    /// The number of input tokens.
    pub prompt: u64,
    /// The number of output tokens.
    pub completion: u64,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Model {
    pub(crate) fn new(settings: Settings) -> Self {
        let shares = prompt_shares(settings.max_concurrent, settings.max_concurrent_per_project);
        Self {
            permits: Gate::new(shares),
            settings,
        }
    }
}

/// Turns a prompt into arguments that match the tool's schema. Fails if no model is configured, a
/// concurrency limit is reached, the model does not respond, or its output is invalid twice.
pub(super) async fn to_arguments(
    app: &App,
    project: &Project,
    tool: &Tool,
    prompt: &Prompt,
) -> Result<(Bytes, Tokens)> {
    let model = app.model.as_ref().ok_or_else(errors::prompt_unavailable)?;
    check(prompt)?;
    let permit = model.permits.try_acquire(&project.tenant);
    let _permit = permit.map_err(|busy| errors::busy(Capacity::Prompts, busy))?;
    let limit = model.settings.timeout;
    match timeout(limit, find_arguments(app, project, model, tool, prompt)).await {
        Ok(done) => done,
        Err(_) => Err(errors::model_failed(format!(
            "it did not respond within {} s",
            limit.as_secs()
        ))),
    }
}

fn check(prompt: &Prompt) -> Result<()> {
    if prompt.text.trim().is_empty() {
        return Err(errors::invalid("text: is empty"));
    }
    let parts = [
        ("text", Some(&prompt.text)),
        ("custom_description", prompt.description.as_ref()),
        ("system_prompt", prompt.system_prompt.as_ref()),
    ];
    match parts
        .iter()
        .find(|(_, text)| text.is_some_and(|text| text.chars().count() > MAX_PROMPT_CHARS))
    {
        Some((name, _)) => Err(errors::invalid(format!(
            "{name}: at most {MAX_PROMPT_CHARS} characters"
        ))),
        None => Ok(()),
    }
}

async fn find_arguments(
    app: &App,
    project: &Project,
    model: &Model,
    tool: &Tool,
    prompt: &Prompt,
) -> Result<(Bytes, Tokens)> {
    let schema = tool.input.text()?;
    let mut messages = first_messages(tool, prompt, &schema);
    let mut tokens = Tokens {
        model: model.settings.model.clone(),
        prompt: 0,
        completion: 0,
    };
    let mut output = String::new();
    let mut problems = Vec::new();
    for _ in 0..MAX_ATTEMPTS {
        if !problems.is_empty() {
            let correction = format!(
                "That does not fit the schema:\n{}\nAnswer again.",
                problems.join("\n")
            );
            messages.push(json!({"role": "assistant", "content": output}));
            messages.push(json!({"role": "user", "content": correction}));
        }
        let Completion { choices, usage } =
            complete(model, tool, prompt, &schema, &messages).await?;
        tokens.prompt += usage.prompt_tokens;
        tokens.completion += usage.completion_tokens;
        let choice = choices
            .into_iter()
            .next()
            .ok_or_else(|| errors::model_failed("its response has no choice"))?;
        output = choice.message.content.unwrap_or_default();
        let arguments = Bytes::copy_from_slice(output.as_bytes());
        let (large, input) = (&app.large_work, &tool.input);
        let accepted = input.accept(large, &project.tenant, &arguments).await?;
        match accepted.and_then(Accepted::without_misspellings) {
            Ok(accepted) => return Ok((accepted.value, tokens)),
            Err(found) => problems = found,
        }
        if choice.finish_reason.as_deref() == Some("length") {
            problems.push("the output was cut off after the maximum of tokens".into());
        }
    }
    tracing::debug!(?tokens, tool = %tool.slug, "a language model found no valid arguments");
    let output: String = output.chars().take(MAX_SHOWN_OUTPUT_CHARS).collect();
    Err(errors::prompt_not_understood(&tool.slug, output, problems))
}

fn first_messages(tool: &Tool, prompt: &Prompt, schema: &RawValue) -> Vec<Value> {
    let instructions = prompt
        .system_prompt
        .as_deref()
        .unwrap_or(DEFAULT_INSTRUCTIONS);
    let description = prompt.description.as_deref().unwrap_or(&tool.description);
    let system = format!(
        "{instructions}\n\nTool: {}\n{description}\n\nSchema:\n{}",
        tool.slug, schema
    );
    vec![
        json!({"role": "system", "content": system}),
        json!({"role": "user", "content": prompt.text}),
    ]
}

async fn complete(
    model: &Model,
    tool: &Tool,
    prompt: &Prompt,
    schema: &RawValue,
    messages: &[Value],
) -> Result<Completion> {
    let settings = &model.settings;
    let response_schema = json!({"name": &*tool.slug, "schema": schema});
    let body = json!({
        "model": settings.model,
        "messages": messages,
        "response_format": {"type": "json_schema", "json_schema": response_schema},
        "max_tokens": settings.max_tokens,
        "temperature": 0,
    });
    let request = net::Request {
        method: Method::POST,
        url: settings.url.clone(),
        headers: headers(settings, prompt)?,
        body: Body::Bytes(body.to_string().into()),
        // The timeout of the whole conversation is shorter than these timeouts and ends first.
        limits: Limits::within(2 * settings.timeout, MAX_RESPONSE_BYTES),
    };
    let sent = settings.client.send(request).await;
    let response = sent.map_err(|cause| {
        // Only the operator may learn the address of the endpoint.
        tracing::warn!(cause = cause.message, "the language model does not respond");
        errors::model_failed("its endpoint does not respond")
    })?;
    if !response.status.is_success() {
        return Err(errors::model_failed(format!(
            "its endpoint responded with status {}",
            response.status.as_u16()
        )));
    }
    serde_json::from_str(&response.text()).map_err(|cause| {
        errors::model_failed(format!(
            "the response of its endpoint is not a chat completion: {cause}"
        ))
    })
}

fn headers(settings: &Settings, prompt: &Prompt) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in &prompt.headers {
        let name = name.to_ascii_lowercase();
        if !settings.headers.contains(&name) {
            continue;
        }
        match (HeaderName::try_from(&name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => drop(headers.insert(name, value)),
            _ => {
                return Err(errors::invalid(format!(
                    "the header `{name}` for the language model is not valid"
                )));
            }
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &settings.key {
        let mut value = HeaderValue::try_from(format!("Bearer {}", key.as_str()))
            .map_err(|_| errors::model_failed("`llm.key` is not valid in a header"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}
