//! Announcements and messages of other processes, on one channel of the database.
//!
//! An announcement is a hint without content and may be lost with a connection. Therefore the
//! listener also reports a possible change every second, and an announced one after a connection
//! was made anew. A message has content, and is lost if nobody receives it, as behind a pooler that lends
//! connections for a transaction.

use crate::Change;
use sqlx::postgres::{PgListener, PgNotification, PgPool};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep_until, timeout_at};

const CHANNEL_NAME: &str = "toolhost";
pub(super) const NOTIFY_SQL: &str = "notify toolhost";
/// Start of a statement that sends a message. The message and a parenthesis follow.
pub(super) const SEND_SQL: &str = "select pg_notify('toolhost', ";
/// Maximum number of messages that wait to be received. Further ones are lost.
const MAX_WAITING_MESSAGES: usize = 1_000;
/// Time after which a possible change is reported without an announcement.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A connection used only to listen. It is opened when it is first needed.
pub(super) struct Listener {
    /// False behind a pooler, whose connections receive what another process listens to.
    listens: bool,
    connection: Mutex<Option<PgListener>>,
    arriving: mpsc::Sender<String>,
    messages: Mutex<mpsc::Receiver<String>>,
}

impl Listener {
    pub(super) fn new(listens: bool) -> Self {
        let (arriving, messages) = mpsc::channel(MAX_WAITING_MESSAGES);
        Self {
            listens,
            connection: Mutex::default(),
            arriving,
            messages: Mutex::new(messages),
        }
    }

    pub(super) async fn changed(&self, pool: &PgPool) -> Change {
        let deadline = Instant::now() + POLL_INTERVAL;
        if !self.listens {
            sleep_until(deadline).await;
            return Change::Possible;
        }
        let mut connection = self.connection.lock().await;
        let Some(listener) = &mut *connection else {
            match timeout_at(deadline, listen(pool)).await {
                Ok(Ok(listener)) => {
                    *connection = Some(listener);
                    return Change::Announced;
                }
                _ => {
                    sleep_until(deadline).await;
                    return Change::Possible;
                }
            }
        };
        match timeout_at(deadline, listener.try_recv()).await {
            Err(_) => Change::Possible,
            Ok(Ok(Some(notification))) => {
                let mut announced = self.is_announcement(&notification);
                while let Some(notification) = listener.next_buffered() {
                    announced |= self.is_announcement(&notification);
                }
                if announced {
                    Change::Announced
                } else {
                    Change::Possible
                }
            }
            // An announcement may have been lost with the connection.
            Ok(Ok(None) | Err(_)) => {
                *connection = None;
                sleep_until(deadline).await;
                Change::Announced
            }
        }
    }

    /// Passes a message on. Returns true if the notification is an announcement instead.
    fn is_announcement(&self, notification: &PgNotification) -> bool {
        let message = notification.payload();
        if !message.is_empty() && self.arriving.try_send(message.to_owned()).is_err() {
            tracing::warn!("a message of another server is lost, because too many wait");
        }
        message.is_empty()
    }

    /// Waits for a message. Messages arrive while [`changed`](Self::changed) is waited for.
    pub(super) async fn message(&self) -> String {
        let received = self.messages.lock().await.recv().await;
        // The sender lives as long as the receiver.
        received.unwrap_or_default()
    }

    /// Returns the connection to the pool. The pool waits for it when it closes.
    pub(super) async fn close(&self) {
        *self.connection.lock().await = None;
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL_NAME).await?;
    Ok(listener)
}
