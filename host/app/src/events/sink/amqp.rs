//! Publishing to a RabbitMQ server, or another one that speaks AMQP 0-9-1 and confirms messages.
//!
//! The server acknowledges a message when every queue that it is routed to has stored it, and returns
//! one that no queue wants. It closes a channel on an error, with everything that is under way there.
//! A channel therefore has one message at a time, and is used again after its acknowledgment.

use std::time::Duration;

use bytes::Bytes;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    protocol::{AMQPErrorKind, AMQPSoftError},
    uri::AMQPUri,
};
use parking_lot::Mutex;
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{sleep, timeout},
};
use url::Url;

use super::{ACKNOWLEDGMENT_TIMEOUT, Failure};
use crate::{Result, events::errors};

/// Exchange to which messages are published.
const EXCHANGE_NAME: &str = "toolhost";
/// Time that the server may take to accept a connection or a channel. One that begins may be silent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which a message that waits for the connection tries to open it.
const CONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// Delivery mode of a message that survives a restart of the server.
const PERSISTENT_DELIVERY_MODE: u8 = 2;

/// The connection to a server.
pub(super) struct Amqp {
    uri: AMQPUri,
    connection: AsyncMutex<Option<Connection>>,
    /// Channels of the connection on which no message is under way.
    idle: Mutex<Vec<Channel>>,
}

impl Amqp {
    /// Reads the address. The connection is opened for the first message. Fails if it is no address
    /// of AMQP.
    pub(super) fn new(url: &Url) -> Result<Self> {
        let uri = url.as_str().parse();
        let uri =
            uri.map_err(|_| errors::internal("the address of the sink is not one of AMQP"))?;
        Ok(Self {
            uri,
            connection: AsyncMutex::default(),
            idle: Mutex::default(),
        })
    }

    /// Publishes a message, and waits until it is stored.
    pub(super) async fn publish(
        &self,
        key: String,
        id: &str,
        body: Bytes,
    ) -> std::result::Result<(), Failure> {
        let channel = self.channel().await?;
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(PERSISTENT_DELIVERY_MODE)
            .with_message_id(id.into());
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let published = async {
            let routing_key = key.as_str().into();
            let published = channel.basic_publish(
                EXCHANGE_NAME.into(),
                routing_key,
                options,
                &body,
                properties,
            );
            published.await?.await
        };
        let confirmed = timeout(ACKNOWLEDGMENT_TIMEOUT, published).await;
        let confirmed = confirmed
            .map_err(|_| Failure::Other("it does not acknowledge the message".to_owned()))?;
        match confirmed.map_err(failure)? {
            Confirmation::Ack(None) => {
                self.idle.lock().push(channel);
                Ok(())
            }
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                self.idle.lock().push(channel);
                let unrouted = format!("no queue is bound to {EXCHANGE_NAME} with {key}");
                Err(Failure::Other(unrouted))
            }
            Confirmation::Nack(None) | Confirmation::NotRequested => {
                Err(Failure::Other("it has refused the message".to_owned()))
            }
        }
    }

    /// Opens the connection, again and again if necessary, so that a message that waits for a dead
    /// server goes out as soon as the server lives.
    async fn connect(&self) -> Connection {
        let mut is_first = true;
        loop {
            let properties = ConnectionProperties::default();
            let properties = properties.with_connection_name("toolhost".into());
            let connecting = Connection::connect_uri(self.uri.clone(), properties);
            let reason = match timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(Ok(connection)) => return connection,
                Ok(Err(cause)) => cause.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            if std::mem::take(&mut is_first) {
                tracing::warn!(reason, "the sink cannot be reached");
            }
            sleep(CONNECT_INTERVAL).await;
        }
    }

    /// Returns a channel on which no message is under way. Connects if necessary.
    async fn channel(&self) -> std::result::Result<Channel, Failure> {
        let mut known = self.connection.lock().await;
        let is_connected = |connection: &Connection| connection.status().connected();
        let connection = match known.take().filter(is_connected) {
            Some(connection) => connection,
            None => {
                self.idle.lock().clear();
                self.connect().await
            }
        };
        let connection = known.insert(connection);
        let idle = || self.idle.lock().pop();
        while let Some(channel) = idle() {
            if channel.status().connected() {
                return Ok(channel);
            }
        }
        let opening = async {
            let channel = connection.create_channel().await?;
            channel
                .confirm_select(ConfirmSelectOptions::default())
                .await?;
            Ok::<_, lapin::Error>(channel)
        };
        let opened = timeout(CONNECT_TIMEOUT, opening).await;
        if !matches!(opened, Ok(Ok(_))) {
            // The next message gets another connection.
            *known = None;
        }
        opened
            .map_err(|_| Failure::Other("it opens no channel".to_owned()))?
            .map_err(failure)
    }
}

fn failure(cause: lapin::Error) -> Failure {
    let ErrorKind::ProtocolError(refusal) = cause.kind() else {
        return Failure::Other(cause.to_string());
    };
    let is_precondition = *refusal.kind() == AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED);
    if is_precondition && refusal.get_message().as_str().contains("message size") {
        Failure::TooLarge("max_message_size")
    } else {
        Failure::Other(cause.to_string())
    }
}
