//! Announcements of other processes.
//!
//! An announcement is a hint without content and may be lost with a connection. Therefore the
//! listener also reports a possible change every second, and an announced one after a connection
//! was made anew.

use crate::Change;
use sqlx::postgres::{PgListener, PgPool};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

const CHANNEL: &str = "toolhost";
pub(super) const NOTIFY_SQL: &str = "notify toolhost";
/// Time after which a possible change is reported without an announcement.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A connection that is used only to listen. It is opened when it is first needed.
#[derive(Default)]
pub(super) struct Listener(Mutex<Option<PgListener>>);

impl Listener {
    pub(super) async fn changed(&self, pool: &PgPool) -> Change {
        let deadline = Instant::now() + POLL_INTERVAL;
        let mut connection = self.0.lock().await;
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
            Ok(Ok(Some(_))) => {
                while listener.next_buffered().is_some() {}
                Change::Announced
            }
            // An announcement may have been lost with the connection.
            Ok(Ok(None) | Err(_)) => {
                *connection = None;
                sleep_until(deadline).await;
                Change::Announced
            }
        }
    }

    /// Returns the connection to the pool. The pool waits for it when it closes.
    pub(super) async fn close(&self) {
        *self.0.lock().await = None;
    }
}

async fn listen(pool: &PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
