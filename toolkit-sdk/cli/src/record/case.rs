//! Cases made of recorded calls.

use anyhow::{Context, Result};
use manifest::cases::{
    Case, Exchange, ExpectedError, ExpectedRequest, GivenFile, GivenInbound, GivenResponse,
    body_value,
};
use sandbox::cassette::{
    Body, Cassette, Content, Import, InputFile, Interaction, Part, RecordedAction, Request,
    Response,
};
use serde_json::{Map, Value, json};

use super::signing;
use crate::{outcome, run::FinishedCall};

/// Response headers that toolkits read. Others would only make a case long.
const KEPT_HEADERS: [&str; 5] = ["etag", "last-modified", "link", "location", "retry-after"];
const JSON_MEDIA_TYPE: &str = "application/json";

/// Returns the slug of the tool or trigger that was called.
pub(super) fn slug(cassette: &Cassette) -> &str {
    match &cassette.call {
        RecordedAction::Execute { tool, .. } => tool,
        RecordedAction::Poll { trigger, .. } | RecordedAction::Receive { trigger, .. } => trigger,
    }
}

/// Returns the case whose input and result are those of a recorded call.
pub(super) fn from_call(cassette: &Cassette, done: &FinishedCall) -> Result<Case> {
    let outcome = &done.outcome;
    let (arguments, cursor, request) = match &cassette.call {
        RecordedAction::Execute { arguments, .. } => (parsed(arguments)?, None, None),
        RecordedAction::Poll { config, cursor, .. } => (parsed(config)?, Some(cursor), None),
        RecordedAction::Receive { .. } => {
            let (config, webhook) = signing::sign_again(cassette, done)?;
            let request = GivenInbound {
                method: webhook.method,
                path: webhook.path,
                headers: webhook.headers.into_iter().collect(),
                body: signed_body(&webhook.body)?,
            };
            (config, None, Some(request))
        }
    };
    let now = cassette.imports.iter().find_map(|import| match import {
        Import::Now(now) => Some(*now),
        _ => None,
    });
    let exchanges = cassette.imports.iter().filter_map(|import| match import {
        Import::Http(interaction) => Some(exchange(interaction)),
        _ => None,
    });
    let (data, error) = match &outcome.output {
        Ok(answer) => (Some(outcome::answer_in_case(answer, &outcome.files)), None),
        Err(failure) => {
            let error = ExpectedError {
                kind: failure.kind.clone(),
                message: failure.message.clone(),
            };
            (None, Some(error))
        }
    };
    Ok(Case {
        arguments,
        cursor: cursor
            .filter(|cursor| !cursor.is_empty())
            .map(parsed)
            .transpose()?,
        request,
        subscription: None,
        now,
        fields: cassette.fields.iter().cloned().collect(),
        files: cassette.files.iter().map(file).collect::<Result<_>>()?,
        exchanges: exchanges.collect::<Result<_>>()?,
        data,
        error,
    })
}

fn parsed(content: &Content) -> Result<Value> {
    serde_json::from_slice(&content.bytes()).context("the input of the call is not JSON")
}

fn body(content: &Content) -> Result<Option<Value>> {
    (!content.is_empty()).then(|| text(content)).transpose()
}

/// Returns a body in the form of case files.
fn text(content: &Content) -> Result<Value> {
    let bytes = content.bytes();
    plain_text(&bytes)?;
    Ok(body_value(&bytes))
}

/// Returns the body of a webhook, whose bytes are signed: as JSON only if a case writes it with the
/// same bytes.
fn signed_body(body: &[u8]) -> Result<Option<Value>> {
    let text = plain_text(body)?;
    let json = body_value(body);
    let written = json.to_string();
    let value = if written == text { json } else { text.into() };
    Ok((!text.is_empty()).then_some(value))
}

fn plain_text(body: &[u8]) -> Result<&str> {
    std::str::from_utf8(body)
        .context("a case holds text, and a body of this call is none; use --output alone")
}

fn file(file: &InputFile) -> Result<GivenFile> {
    let text = String::from_utf8(file.content.bytes().to_vec());
    Ok(GivenFile {
        id: file.id.clone(),
        name: file.name.clone(),
        mimetype: file.media_type.clone(),
        text: text
            .with_context(|| format!("a case holds text, and the file `{}` is none", file.name))?,
    })
}

fn exchange(interaction: &Interaction) -> Result<Exchange> {
    let Request {
        method, url, body, ..
    } = &interaction.request;
    let response = match (&interaction.response, &interaction.error) {
        (Some(response), _) => given(response)?,
        (None, error) => GivenResponse {
            error: error.as_ref().map(|error| error.kind.clone()),
            ..GivenResponse::default()
        },
    };
    Ok(Exchange {
        request: ExpectedRequest {
            method: method.clone(),
            url: url.clone(),
            body: body.as_ref().map(sent).transpose()?,
            ..ExpectedRequest::default()
        },
        response,
    })
}

fn sent(body: &Body) -> Result<Value> {
    match body {
        Body::Content(content) => text(content),
        Body::File { id, .. } => Ok(json!({ "blob": id })),
        Body::Multipart(parts) => {
            let parts = parts.iter().map(part).collect::<Result<Map<_, _>>>()?;
            Ok(Value::Object(parts))
        }
    }
}

fn part(part: &Part) -> Result<(String, Value)> {
    let content = sent(&part.body)?;
    let value = match &part.filename {
        Some(filename) => json!({ "filename": filename, "content": content }),
        None => content,
    };
    Ok((part.name.clone(), value))
}

fn given(response: &Response) -> Result<GivenResponse> {
    let body = match body(&response.body)? {
        // The response is a string for the toolkit, even if its characters could be JSON.
        Some(_) if !is_json(response) => {
            let bytes = response.body.bytes();
            Some(plain_text(&bytes)?.into())
        }
        body => body,
    };
    // The media type of other bodies would be that of plain text.
    let is_json = body.as_ref().is_some_and(|body| !body.is_string());
    Ok(GivenResponse {
        status: response.status,
        headers: response
            .headers
            .iter()
            .filter(|(name, value)| match name.as_str() {
                "content-type" => !(is_json && value.starts_with(JSON_MEDIA_TYPE)),
                name => KEPT_HEADERS.contains(&name) || name.starts_with("x-"),
            })
            .cloned()
            .collect(),
        body,
        error: None,
    })
}

/// Returns true if the body of a response is JSON according to its headers, or if they say nothing.
fn is_json(response: &Response) -> bool {
    let mut headers = response.headers.iter();
    let media_type = headers.find(|(name, _)| name == "content-type");
    media_type.is_none_or(|(_, value)| value.contains("json"))
}
