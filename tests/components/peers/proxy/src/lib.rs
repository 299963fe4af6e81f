//! The echo tool as a handler of requests, for `wasmtime serve`.

use serde_json::value::RawValue;
use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{
        Fields, IncomingBody, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
    },
    io::streams::StreamError,
};

/// Largest write of a stream that may block.
const MAX_WRITE_BYTES: usize = 4096;
const MAX_READ_BYTES: u64 = 64 << 10;

struct Echo;

impl Guest for Echo {
    fn handle(request: IncomingRequest, response_out: ResponseOutparam) {
        let body = request.consume().expect("the body was not taken before");
        let (status, answer) = match serde_json::from_slice::<Box<RawValue>>(&read(&body)) {
            Ok(arguments) => (200, arguments.get().as_bytes().to_vec()),
            Err(error) => (400, error.to_string().into_bytes()),
        };
        let headers = [
            ("content-type".to_owned(), b"application/json".to_vec()),
            (
                "content-length".to_owned(),
                answer.len().to_string().into_bytes(),
            ),
        ];
        let headers = Fields::from_list(&headers).expect("the headers are valid");
        let response = OutgoingResponse::new(headers);
        response
            .set_status_code(status)
            .expect("the status is valid");
        let body = response.body().expect("the body was not taken before");
        ResponseOutparam::set(response_out, Ok(response));
        let stream = body.write().expect("the stream was not taken before");
        for chunk in answer.chunks(MAX_WRITE_BYTES) {
            stream
                .blocking_write_and_flush(chunk)
                .expect("the client reads");
        }
        drop(stream);
        OutgoingBody::finish(body, None).expect("the length is the announced one");
    }
}

/// Reads a body to its end.
fn read(body: &IncomingBody) -> Vec<u8> {
    let stream = body.stream().expect("the stream was not taken before");
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(MAX_READ_BYTES) {
            Ok(chunk) => bytes.extend(chunk),
            Err(StreamError::Closed) => return bytes,
            Err(StreamError::LastOperationFailed(error)) => panic!("{}", error.to_debug_string()),
        }
    }
}

wasip2::http::proxy::export!(Echo);
