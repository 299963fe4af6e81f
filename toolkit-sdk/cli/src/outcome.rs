//! Outcomes of calls as JSON, for `--json` and for comparisons, and as exit codes.

use std::process::ExitCode;

use sandbox::{Failure, File, Outcome, Output};
use serde_json::{Value, json};

/// Returns 0 for a success, otherwise 1.
pub(crate) fn exit_code(succeeded: bool) -> ExitCode {
    ExitCode::from(u8::from(!succeeded))
}

/// Returns the answer of a call in the format of case files.
pub(crate) fn answer(answer: &Output) -> Value {
    match answer {
        Output::Data(data) => parsed(data),
        Output::Polled {
            events,
            cursor,
            more,
        } => {
            json!({ "events": self::events(events), "cursor": parsed(cursor), "more": more })
        }
        Output::Received {
            events,
            status,
            body,
            ..
        } => {
            json!({ "events": self::events(events), "status": status, "body": String::from_utf8_lossy(body) })
        }
    }
}

/// Returns the answer of a call as a case expects it, with the names that the scripted host gives to
/// files.
pub(crate) fn answer_in_case(answer: &Output, files: &[File]) -> Value {
    let mut value = self::answer(answer);
    name_files(&mut value, files);
    value
}

/// Renames files that the call created to the names of the scripted host: `file_1`, `file_2`.
fn name_files(value: &mut Value, files: &[File]) {
    match value {
        Value::String(text) => {
            if let Some(index) = files.iter().position(|file| file.id == *text) {
                *text = format!("file_{}", index + 1);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_files(item, files)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| name_files(member, files)),
        _ => {}
    }
}

/// Returns everything about a call.
pub(crate) fn record(outcome: &Outcome) -> Value {
    let (data, error) = match &outcome.output {
        Ok(found) => (answer(found), Value::Null),
        Err(failed) => (Value::Null, failure(failed)),
    };
    let requests = outcome.requests.iter().map(|request| {
        json!({
            "method": request.method,
            "url": request.url,
            "status": request.status,
            "error": request.error,
            "elapsed_ms": request.elapsed.as_secs_f64() * 1e3,
            "sent_bytes": request.sent,
            "received_bytes": request.received,
        })
    });
    let log = outcome.log.iter().map(
        |line| json!({ "level": line.level.as_str(), "at_ms": line.at.as_secs_f64() * 1e3, "message": line.message }),
    );
    let files = outcome.files.iter().map(
        |file| json!({ "id": file.id, "name": file.name, "media_type": file.media_type, "size": file.bytes.len() }),
    );
    json!({
        "successful": outcome.output.is_ok(),
        "data": data,
        "error": error,
        "requests": requests.collect::<Vec<_>>(),
        "log": log.collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "usage": {
            "cpu_ms": outcome.usage.cpu.as_secs_f64() * 1e3,
            "wall_ms": outcome.usage.wall.as_secs_f64() * 1e3,
            "peak_memory_bytes": outcome.usage.peak_memory,
            "host_calls": outcome.usage.host_calls,
        },
    })
}

fn failure(failure: &Failure) -> Value {
    json!({
        "kind": failure.kind,
        "message": failure.message,
        "retry_after_ms": failure.retry_after.map(|wait| wait.as_millis() as u64),
        "upstream_status": failure.upstream_status,
        "details": failure.details.as_deref().map(parsed),
    })
}

fn events(events: &[sandbox::Event]) -> Vec<Value> {
    events
        .iter()
        .map(|event| json!({ "id": event.id, "payload": parsed(&event.payload) }))
        .collect()
}

/// Parses JSON. Other text becomes a string, and empty bytes become null.
fn parsed(bytes: &[u8]) -> Value {
    match bytes {
        b"" => Value::Null,
        _ => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
        }
    }
}
