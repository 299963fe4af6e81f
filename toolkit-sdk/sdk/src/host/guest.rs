//! The imports of the WIT contract, and the export that `toolkit!` gives to the component.

use crate::rt::Provide;
use crate::{context, rt};

/// Bindings that are generated from the WIT contract.
pub mod bindings {
    wit_bindgen::generate!({
        path: "../wit/v1",
        world: "toolkit",
        pub_export_macro: true,
        default_bindings_module: "toolkit_sdk::rt::bindings",
        runtime_path: "toolkit_sdk::rt::wit_bindgen_rt",
    });
}

pub(crate) mod calls {
    use super::bindings::toolhost::toolkit::{blob, clock, http, log, random, state};
    use crate::host::{Body, Content, Failure, Info, Part, Request, Response};
    use crate::log::Level;

    pub(crate) fn send(request: Request) -> Result<Response, Failure> {
        response(http::send(&lower(request)))
    }

    pub(crate) fn send_all(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
        let requests: Vec<http::Request> = requests.into_iter().map(lower).collect();
        http::send_all(&requests)
            .into_iter()
            .map(response)
            .collect()
    }

    fn lower(request: Request) -> http::Request {
        let Request {
            method,
            url,
            headers,
            body,
            credential,
            timeout_ms,
            into_blob,
        } = request;
        let body = match body {
            Body::Empty => http::Body::Empty,
            Body::Content(content) => http::Body::Content(lower_content(content)),
            Body::Multipart(parts) => {
                http::Body::Multipart(parts.into_iter().map(lower_part).collect())
            }
        };
        http::Request {
            method,
            url,
            headers,
            body,
            credential,
            timeout_ms,
            into_blob,
        }
    }

    fn lower_content(content: Content) -> http::Content {
        match content {
            Content::Bytes(bytes) => http::Content::Bytes(bytes),
            Content::Blob(id) => http::Content::Blob(id),
        }
    }

    fn lower_part(part: Part) -> http::Part {
        http::Part {
            name: part.name,
            filename: part.filename,
            media_type: part.media_type,
            content: lower_content(part.content),
        }
    }

    fn response(result: Result<http::Response, http::Error>) -> Result<Response, Failure> {
        match result {
            Ok(http::Response {
                status,
                headers,
                body,
                blob,
            }) => Ok(Response {
                status,
                headers,
                body,
                blob,
            }),
            Err(http::Error { kind, message }) => Err(Failure { kind, message }),
        }
    }

    pub(crate) fn log(level: Level, message: &str) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::write(level, message);
    }

    pub(crate) fn now() -> u64 {
        clock::now()
    }

    pub(crate) fn elapsed() -> u64 {
        clock::elapsed()
    }

    pub(crate) fn sleep(ms: u32) {
        clock::sleep(ms);
    }

    pub(crate) fn random(length: u32) -> Vec<u8> {
        random::bytes(length)
    }

    pub(crate) fn state_get(key: &str) -> Option<Vec<u8>> {
        state::get(key)
    }

    pub(crate) fn state_set(key: &str, value: &[u8]) -> bool {
        state::set(key, value)
    }

    pub(crate) fn state_remove(key: &str) {
        state::remove(key);
    }

    pub(crate) fn blob_stat(id: &str) -> Result<Info, Failure> {
        let info = blob::stat(id).map_err(failure)?;
        Ok(Info {
            id: info.id,
            name: info.name,
            media_type: info.media_type,
            size: info.size,
        })
    }

    pub(crate) fn blob_read(id: &str, offset: u64, length: u32) -> Result<Vec<u8>, Failure> {
        blob::read(id, offset, length).map_err(failure)
    }

    pub(crate) fn blob_create(name: &str, media_type: &str) -> Result<String, Failure> {
        blob::create(name, media_type).map_err(failure)
    }

    pub(crate) fn blob_append(id: &str, bytes: &[u8]) -> Result<u64, Failure> {
        blob::append(id, bytes).map_err(failure)
    }

    #[cfg(feature = "webhook")]
    pub(crate) fn verify_webhook(
        secret: &str,
        algorithm: crate::webhook::Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, Failure> {
        use super::bindings::toolhost::toolkit::webhook;
        use crate::webhook::Algorithm;
        let algorithm = match algorithm {
            Algorithm::HmacSha1 => webhook::Algorithm::HmacSha1,
            Algorithm::HmacSha256 => webhook::Algorithm::HmacSha256,
            Algorithm::HmacSha512 => webhook::Algorithm::HmacSha512,
            Algorithm::StandardWebhooks => webhook::Algorithm::StandardWebhooks,
            Algorithm::Token => webhook::Algorithm::Token,
        };
        webhook::verify(secret, algorithm, message, signature).map_err(|error| Failure {
            kind: error.kind,
            message: error.message,
        })
    }

    fn failure(error: blob::Error) -> Failure {
        Failure {
            kind: error.kind,
            message: error.message,
        }
    }
}

mod wire {
    pub(super) use super::bindings::exports::toolhost::toolkit::entry::Guest;
    pub(super) use super::bindings::toolhost::toolkit::types::{
        Context, Event, Inbound, Polled, Received, ToolError,
    };
}

impl<T: Provide> wire::Guest for T {
    fn execute(
        tool: String,
        arguments: Vec<u8>,
        context: wire::Context,
    ) -> Result<Vec<u8>, wire::ToolError> {
        begin(context);
        rt::execute(T::TOOLKIT, &tool, arguments).map_err(error)
    }

    fn poll(
        trigger: String,
        config: Vec<u8>,
        cursor: Vec<u8>,
        context: wire::Context,
    ) -> Result<wire::Polled, wire::ToolError> {
        begin(context);
        let polled = rt::poll_trigger(T::TOOLKIT, &trigger, &config, &cursor).map_err(error)?;
        Ok(wire::Polled {
            events: events(polled.events),
            cursor: polled.cursor,
            more: polled.more,
        })
    }

    fn receive(
        trigger: String,
        config: Vec<u8>,
        request: wire::Inbound,
        context: wire::Context,
    ) -> Result<wire::Received, wire::ToolError> {
        begin(context);
        let wire::Inbound {
            method,
            path,
            headers,
            body,
        } = request;
        let request = crate::Inbound {
            method,
            path,
            headers,
            body,
        };
        let received =
            rt::receive_trigger(T::TOOLKIT, &trigger, &config, request).map_err(error)?;
        Ok(wire::Received {
            events: events(received.events),
            status: received.status,
            media_type: received.media_type,
            body: received.body,
        })
    }
}

fn begin(given: wire::Context) {
    std::panic::set_hook(Box::new(|panic| {
        calls::log(crate::log::Level::Error, &panic.to_string())
    }));
    let wire::Context {
        run_id,
        user_id,
        fields,
        remaining_ms,
    } = given;
    context::set(context::Context {
        run_id,
        user_id,
        fields,
        deadline_ms: remaining_ms,
    });
}

fn events(events: Vec<(String, Vec<u8>)>) -> Vec<wire::Event> {
    events
        .into_iter()
        .map(|(id, payload)| wire::Event { id, payload })
        .collect()
}

fn error(error: crate::ToolError) -> wire::ToolError {
    wire::ToolError {
        kind: error.kind().to_owned(),
        message: error.text().to_owned(),
        retry_after_ms: error
            .wait()
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        upstream_status: error.status(),
        details: error
            .detail()
            .map(|details| details.to_string().into_bytes()),
    }
}
