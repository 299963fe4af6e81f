//! Publishing to a NATS server with JetStream, which acknowledges what it has stored, and drops a
//! message whose id it knows.

use std::time::Duration;

use async_nats::{
    Client, ConnectOptions, HeaderMap, Request, ServerAddr, client::RequestErrorKind,
    connection::State, header::NATS_MESSAGE_ID,
};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use tokio::time::sleep;
use url::Url;

use super::{ACKNOWLEDGMENT_TIMEOUT, Failure};
use crate::{Result, events::errors};

/// Interval at which a message that waits looks for the connection.
const CONNECTION_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The connection to a NATS server.
pub(super) struct Nats(Client);

impl Nats {
    /// Connects in the background, again and again if necessary. Fails only if the address cannot
    /// be used.
    pub(super) async fn open(mut url: Url) -> Result<Self> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = decoded(url.username());
        let password = url.password().map(decoded);
        // The client may log the address.
        let stripped = url.set_username("").and_then(|()| url.set_password(None));
        stripped.map_err(|()| errors::internal("the address of the sink has no host"))?;
        let address = ServerAddr::from_url(url)
            .map_err(|cause| errors::internal(format_args!("the address of the sink: {cause}")))?;
        let options = ConnectOptions::new()
            .name("toolhost")
            .retry_on_initial_connect()
            .event_callback(|event| async move {
                tracing::warn!(%event, "the connection to the sink has changed");
            });
        let options = match password {
            Some(password) => options.user_and_password(user, password),
            None if user.is_empty() => options,
            None => options.token(user),
        };
        let connected = options.connect(address).await;
        let client =
            connected.map_err(|cause| errors::unavailable(format_args!("the sink: {cause}")))?;
        Ok(Self(client))
    }

    /// Publishes a message once the server is connected, and waits until it is stored there.
    pub(super) async fn publish(
        &self,
        subject: String,
        id: &str,
        body: Bytes,
    ) -> std::result::Result<(), Failure> {
        // The client would keep the message of an attempt that has ended, and publish it later.
        while self.0.connection_state() != State::Connected {
            sleep(CONNECTION_CHECK_INTERVAL).await;
        }
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, id);
        let request = Request::new()
            .headers(headers)
            .payload(body)
            .timeout(Some(ACKNOWLEDGMENT_TIMEOUT));
        let response = self.0.send_request(subject.clone(), request).await;
        let response = response.map_err(|cause| match cause.kind() {
            RequestErrorKind::MaxPayloadExceeded => Failure::TooLarge("max_payload"),
            RequestErrorKind::NoResponders => {
                Failure::Other(format!("no stream has the subject {subject}"))
            }
            _ => Failure::Other(cause.to_string()),
        })?;
        let response = serde_json::from_slice(&response.payload);
        match response.map_err(|cause| Failure::Other(cause.to_string()))? {
            Acknowledgment { error: None } => Ok(()),
            Acknowledgment { error: Some(error) } => Err(Failure::Other(error.description)),
        }
    }
}

/// Response of JetStream to a message: the stream that has stored it, or an error.
#[derive(Deserialize)]
struct Acknowledgment {
    error: Option<StreamError>,
}

#[derive(Deserialize)]
struct StreamError {
    description: String,
}
