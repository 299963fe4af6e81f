//! Batches of messages, which version 2025-03-26 of the protocol has.

use axum::{
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{ApiResult, errors, reply::json_bytes};
use http_body_util::BodyExt;
use rmcp::model::ProtocolVersion;
use serde_json::value::RawValue;

use super::{
    PROTOCOL_VERSION,
    accepted::Accepted,
    answer_message,
    calls::ConnectionMessage,
    direct::DirectRequest,
    endpoint::Endpoint,
    messages::{MAX_BATCH_MESSAGES, Refusal, id_of},
};

/// Answers the messages of a body in sequence, with the list of their responses.
pub(super) async fn answer(
    endpoint: Endpoint,
    head: Parts,
    body: &Bytes,
    messages: Vec<&RawValue>,
) -> ApiResult<Response> {
    if let Some(problem) = problem(&head.headers, messages.len()) {
        return Ok(Refusal::invalid(None, problem).into_response());
    }
    let mut list = vec![b'['];
    for message in messages {
        let response = answer_one(&endpoint, head.clone(), body, message).await?;
        let answer = response.into_body().collect().await;
        let answer = answer.map_err(errors::internal)?.to_bytes();
        if list.len() > 1 && !answer.is_empty() {
            list.push(b',');
        }
        list.extend_from_slice(&answer);
    }
    if list.len() == 1 {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    list.push(b']');
    Ok(json_bytes(StatusCode::OK, list))
}

async fn answer_one(
    endpoint: &Endpoint,
    head: Parts,
    body: &Bytes,
    message: &RawValue,
) -> ApiResult<Response> {
    let bytes = body.slice_ref(message.get().as_bytes());
    if let Some(ConnectionMessage::Open { .. }) = ConnectionMessage::read(&bytes) {
        let problem = "initialize must not be part of a batch";
        return Ok(Refusal::invalid(id_of(&bytes), problem).into_response());
    }
    if let Some(request) = DirectRequest::read(&head.headers, &bytes) {
        return endpoint.answer_directly(request).await;
    }
    answer_message(endpoint.clone(), head, Accepted::JSON_ALONE, bytes).await
}

/// Returns the reason for which a batch is refused. The version without a header is 2025-03-26.
fn problem(headers: &HeaderMap, messages: usize) -> Option<String> {
    let version = headers.get(&PROTOCOL_VERSION);
    if version.is_some_and(|version| *version != *ProtocolVersion::V_2025_03_26.as_str()) {
        let problem = "this version of the protocol has no batches: send each message by itself";
        return Some(problem.to_owned());
    }
    match messages {
        0 => Some("the batch is empty".to_owned()),
        1..=MAX_BATCH_MESSAGES => None,
        _ => Some(format!(
            "the batch has more than {MAX_BATCH_MESSAGES} messages"
        )),
    }
}
