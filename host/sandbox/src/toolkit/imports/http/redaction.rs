//! Removal of the secrets that a request carried from the response to it.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use net::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};

use super::{HttpResult, credential, error, exchange::Received, outgoing::Outgoing};
use crate::{
    Credential, MAX_SECRET_BYTES, MAX_SECRETS,
    schedule::{limiter::Reservation, scheduler::AbortOnDrop},
    toolkit::{
        abi::v1::http::{Error, Response},
        imports::blob::Files,
        redact::{self, Redactor},
    },
};

/// Maximum size of a response that is searched for secrets on the caller's thread, in bytes.
const MAX_INLINE_SEARCH_BYTES: usize = 64 << 10;
/// Maximum total size of the secrets whose redactor is built on the caller's thread, in bytes.
const MAX_INLINE_SECRET_BYTES: usize = 2 << 10;
/// Content encodings that change no byte. Some providers wrongly name a charset, or none.
const PLAIN_ENCODINGS: [&str; 3] = ["identity", "none", "utf-8"];
/// Error for the guest when a response is withheld.
const RESPONSE_WITHHELD: &str =
    "the response is withheld: searching it for secrets takes too many steps";
const ENCODING_WITHHELD: &str =
    "the response is withheld: its content encoding cannot be searched for secrets";
const NO_MEMORY: &str =
    "this server has no memory left to remove secrets from the response; try again later";
/// Maximum number of secrets of one call, including those of a refreshed credential and their
/// encoded forms.
const MAX_CALL_SECRETS: usize = 4 * MAX_SECRETS;
/// Maximum total size of these secrets, in bytes. In a URL a secret is up to three times as long.
const MAX_CALL_SECRET_BYTES: usize = 4 * MAX_SECRET_BYTES;

impl Outgoing {
    /// Adds the values of this credential to the redactor, which removes them from everything from
    /// now on.
    pub(super) async fn add_secrets(&self, credential: &Credential) -> Result<(), Error> {
        // The lock is held until the redactor includes the secrets, so a concurrent request with
        // the same credential waits, too.
        let mut known = self.secrets.lock().await;
        let before = known.len();
        for secret in credential::secrets(credential) {
            if !known.contains(&secret) {
                known.push(secret);
            }
        }
        if known.len() == before {
            return Ok(());
        }
        let bytes: usize = known.iter().map(|secret| secret.expose().len()).sum();
        let redactor = if known.len() > MAX_CALL_SECRETS || bytes > MAX_CALL_SECRET_BYTES {
            Err("its secrets are too many or too long to be removed from responses")
        } else if bytes <= MAX_INLINE_SECRET_BYTES {
            Ok(Redactor::new(known.iter()))
        } else {
            let all = known.clone();
            let prepared = tokio::task::spawn_blocking(move || Redactor::new(&all)).await;
            prepared.map_err(|_| "the removal of its secrets could not be prepared")
        };
        let redactor = redactor.and_then(|redactor| {
            self.redactor_memory.release();
            let fits = self.redactor_memory.try_grow(redactor.memory());
            fits.map(|()| redactor)
                .map_err(|_| "this server has no memory left to remove its secrets from responses")
        });
        match redactor {
            Ok(redactor) => {
                self.trace.redact_with(redactor);
                Ok(())
            }
            Err(why) => {
                // The request is not sent and the secrets are forgotten, so the next request tries
                // again.
                known.truncate(before);
                Err(error(
                    "credential",
                    format!("the account's credential cannot be used: {why}"),
                ))
            }
        }
    }

    /// Converts a response for the guest: without secrets and cookies, with its body in memory or
    /// in a file. A signature is valid for one request, so it is redacted only from the response to
    /// that request.
    pub(super) async fn to_guest_response(
        &self,
        received: Received,
        into_blob: bool,
        files: &Files,
    ) -> HttpResult {
        let Received {
            answer,
            signatures,
            memory,
        } = received;
        let redactor = match self.trace.redactor() {
            call if signatures.is_empty() => call,
            call => Arc::new(Redactor::new(&signatures).with_others(call)),
        };
        if redactor.has_secrets() && !answer.body.is_empty() && is_encoded(&answer.headers) {
            return Err(error("protocol", ENCODING_WITHHELD));
        }
        let body = self.redact_body(&redactor, answer.body, &memory).await?;
        let headers = answer.headers.iter().filter_map(|(name, value)| {
            let hidden = matches!(name.as_str(), "set-cookie" | "set-cookie2")
                || redactor.name_may_contain_secret(name.as_str());
            let value = || redactor.redact_text(&String::from_utf8_lossy(value.as_bytes()));
            (!hidden).then(|| (name.as_str().to_owned(), value()))
        });
        let mut response = Response {
            status: answer.status.as_u16(),
            headers: headers.collect(),
            body: Vec::new(),
            blob: None,
        };
        if into_blob {
            let media_type = answer
                .headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            let media_type = media_type.map_or_else(
                || "application/octet-stream".to_owned(),
                |text| redactor.redact_text(text),
            );
            let name = answer
                .url
                .path_segments()
                .and_then(|mut segments| segments.next_back())
                .unwrap_or_default();
            let name = redactor.redact_text(name);
            let id = files
                .keep(&name, &media_type, body, &memory)
                .map_err(|full| error("limit", full.message))?;
            response.blob = Some(id);
        } else {
            response.body = body.into();
            self.delivered.take_over(&memory);
        }
        Ok(response)
    }

    /// Redacts a body. A large body is searched on the guest threads, in turns with the guests, so
    /// that it does not block other calls. The search ends with the request.
    async fn redact_body(
        &self,
        redactor: &Arc<Redactor>,
        body: Bytes,
        memory: &Arc<Reservation>,
    ) -> Result<Bytes, Error> {
        let result = if body.len() < MAX_INLINE_SEARCH_BYTES {
            redactor
                .find(&body)
                .map_err(|_| RESPONSE_WITHHELD)
                .and_then(|ranges| without_secrets(body, &ranges, memory))
        } else {
            let redactor = redactor.clone();
            let memory = memory.clone();
            let cpu_permits = self.cpu_permits.clone();
            let search = async move {
                let ranges = redactor
                    .find_in_turns(&body, &cpu_permits)
                    .await
                    .map_err(|_| RESPONSE_WITHHELD)?;
                without_secrets(body, &ranges, &memory)
            };
            let mut task = AbortOnDrop(self.threads.spawn(search));
            (&mut task.0)
                .await
                .unwrap_or(Err("the response could not be searched for secrets"))
        };
        result.map_err(|why| {
            error(
                if why == NO_MEMORY {
                    "limit"
                } else {
                    "protocol"
                },
                why,
            )
        })
    }
}

/// Returns a body without the given places, in memory reserved from `memory`.
fn without_secrets(
    body: Bytes,
    ranges: &[Range<usize>],
    memory: &Reservation,
) -> Result<Bytes, &'static str> {
    if ranges.is_empty() {
        return Ok(body);
    }
    let fits = memory.try_grow((body.len() + ranges.len() * redact::REDACTED_TEXT.len()) as u64);
    fits.map(|()| redact::replace_ranges(&body, ranges).into_owned().into())
        .map_err(|_| NO_MEMORY)
}

/// Returns true if a body has an encoding that was not undone when it was received.
fn is_encoded(headers: &HeaderMap) -> bool {
    let is_plain = |encoding: &[u8]| {
        let mut plain = PLAIN_ENCODINGS.iter();
        plain.any(|plain| encoding.eq_ignore_ascii_case(plain.as_bytes()))
    };
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    encodings.any(|encoding| !is_plain(encoding.as_bytes()))
}
