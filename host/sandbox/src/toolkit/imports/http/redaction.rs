//! Conversion of a response for the guest: text is decoded, and the secrets that the request carried are
//! removed.

use std::sync::Arc;

use bytes::Bytes;
use net::{
    HeaderMap,
    header::{CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue},
    text,
};
use percent_encoding::percent_decode_str;

use super::{
    HttpResult,
    body::{NO_MEMORY, ReceivedBody},
    credential, error,
    exchange::Received,
    outgoing::Outgoing,
};
use crate::{
    Credential, MAX_SECRET_BYTES, MAX_SECRETS,
    contract::v1::http::{Error, Response},
    files::Files,
    redact::Redactor,
    schedule::scheduler::AbortOnDrop,
};

/// Maximum size of a response to search for secrets on the caller's thread, in bytes.
const MAX_INLINE_SEARCH_BYTES: usize = 64 << 10;
/// Maximum total size of the secrets whose redactor is built on the caller's thread, in bytes.
const MAX_INLINE_SECRET_BYTES: usize = 2 << 10;
/// Content encodings that change no byte. Some providers wrongly name a charset, `none`, or nothing.
const PLAIN_ENCODINGS: [&str; 4] = ["identity", "none", "utf-8", ""];
/// Error for the guest when a response is withheld.
const ENCODING_WITHHELD: &str =
    "the response is withheld: its content encoding cannot be searched for secrets";
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
        let built = if known.len() > MAX_CALL_SECRETS || bytes > MAX_CALL_SECRET_BYTES {
            Err("its secrets are too many or too long to be removed from responses")
        } else if bytes <= MAX_INLINE_SECRET_BYTES {
            Ok(Redactor::new(known.iter()))
        } else {
            let all = known.clone();
            let prepared = tokio::task::spawn_blocking(move || Redactor::new(&all)).await;
            prepared.map_err(|_| "the removal of its secrets could not be prepared")
        };
        let redactor = built.and_then(|redactor| {
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
    /// in a file. Text in memory is in UTF-8. A signature is valid for one request, so it is redacted only
    /// from the response to that request.
    pub(super) async fn to_guest_response(
        &self,
        received: Received,
        into_blob: bool,
        files: &Files,
    ) -> HttpResult {
        let Received {
            mut answer,
            signatures,
            memory,
        } = received;
        let redactor = match self.trace.redactor() {
            call if signatures.is_empty() => call,
            call => Arc::new(Redactor::new(&signatures).with_others(call)),
        };
        let is_encoded = is_encoded(&answer.headers);
        if redactor.has_secrets() && !answer.body.is_empty() && is_encoded {
            return Err(error("protocol", ENCODING_WITHHELD));
        }
        let decodes =
            !is_encoded && (!into_blob || answer.body.len() <= self.max_decoded_file_bytes);
        let is_long = answer.body.len() >= MAX_INLINE_SEARCH_BYTES;
        let body = ReceivedBody {
            media_type: decodes.then(|| text::media_type(&answer.headers).to_owned()),
            bytes: std::mem::take(&mut answer.body),
            memory: memory.clone(),
            redactor: redactor.clone(),
            cpu_permits: is_long.then(|| self.cpu_permits.clone()),
        };
        let (body, media_type) = self.to_guest_body(body).await?;
        if let Some(media_type) = media_type.and_then(|text| HeaderValue::try_from(text).ok()) {
            answer.headers.insert(CONTENT_TYPE, media_type);
        }
        let mut response = Response {
            status: answer.status.as_u16(),
            headers: to_guest_headers(&answer.headers, &redactor),
            body: Vec::new(),
            blob: None,
        };
        if into_blob {
            let media_type = match text::media_type(&answer.headers) {
                "" => "application/octet-stream".to_owned(),
                media_type => redactor.redact_text(media_type),
            };
            let name = redactor.redact_text(&file_name(&answer));
            let id = files
                .keep(&name, &media_type, body, &memory.0)
                .map_err(|full| error("limit", full.message))?;
            response.blob = Some(id);
        } else {
            response.body = body.into();
            self.delivered.take_over(&memory.0);
        }
        Ok(response)
    }

    /// Decodes and redacts a body. This is done on the guest threads for a large body, within the permits of
    /// its tenant, so that it does not block other calls. It ends with the request. Returns also the new media
    /// type of text that was in another charset.
    async fn to_guest_body(&self, body: ReceivedBody) -> Result<(Bytes, Option<String>), Error> {
        let result = if body.cpu_permits.is_none() {
            body.convert().await
        } else {
            let mut task = AbortOnDrop(self.threads.spawn(body.convert()));
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

/// Returns the headers of a response without secrets and cookies.
fn to_guest_headers(headers: &HeaderMap, redactor: &Redactor) -> Vec<(String, String)> {
    let mut shown = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let name = name.as_str();
        let is_cookie = matches!(name, "set-cookie" | "set-cookie2");
        if !is_cookie && !redactor.name_may_contain_secret(name) {
            let text = redactor.redact_text(&text::decode_header(value));
            shown.push((name.to_owned(), text));
        }
    }
    shown
}

/// Returns the name that a provider gives to a file, or else the end of its URL.
fn file_name(answer: &net::Response) -> String {
    let disposition = answer.headers.get(CONTENT_DISPOSITION);
    let given =
        disposition.and_then(|value| manifest::disposition::file_name(&text::decode_header(value)));
    given.unwrap_or_else(|| {
        let segments = answer.url.path_segments();
        let last = segments.and_then(|mut segments| segments.next_back());
        let name = percent_decode_str(last.unwrap_or_default()).decode_utf8_lossy();
        manifest::disposition::base_name(&name).unwrap_or_default()
    })
}

/// Returns true if a body has an encoding that was not undone when it was received.
fn is_encoded(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    encodings.any(|encoding| {
        let mut plain = PLAIN_ENCODINGS.iter();
        !plain.any(|plain| encoding.as_bytes().eq_ignore_ascii_case(plain.as_bytes()))
    })
}
