//! Turns of this process's writers at one record, so that they do not make each other's batches
//! stale.
//!
//! The first attempt of a writer takes no turn. It costs one atomic read if no writer waits. Only
//! writers whose batch was stale wait in line, and later writers behind them. The last one to leave
//! removes the line, so nothing is kept for a record that is not being changed. A turn guarantees
//! nothing: the revision of the record decides, also against other processes.

use crate::{Collection, CommitError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::Instant;

/// Maximum first pause between attempts of the writer whose turn it is, in milliseconds. Only other
/// processes, or writers of other records in the batch, can make its batch stale.
const FIRST_PAUSE_MS: u64 = 4;
/// Maximum length of any later pause, in milliseconds.
const LONGEST_PAUSE_MS: u64 = 100;

/// Collection and id of a record.
type Target = (&'static str, String);

/// The lines of writers, one per record.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: Mutex<HashMap<Target, Arc<AsyncMutex<()>>>>,
    /// Number of lines, readable without the lock.
    count: AtomicUsize,
}

impl Turns {
    /// Starts to change a record, for at most `patience`.
    pub(crate) fn attempts<'a>(
        &'a self,
        at: &'static Collection,
        id: &'a str,
        patience: Duration,
    ) -> Attempts<'a> {
        let until = Instant::now() + patience;
        Attempts {
            turns: self,
            at: at.name,
            id,
            place: self.join_existing(at.name, id),
            until,
            count: 0,
        }
    }

    /// Joins the line for a record, if one exists.
    fn join_existing(&self, at: &'static str, id: &str) -> Option<Place<'_>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let target = (at, id.to_owned());
        let line = self.lines().get(&target)?.clone();
        Some(Place {
            turns: self,
            target,
            line,
            turn: None,
        })
    }

    /// Joins the line for a record, or starts one.
    fn join(&self, at: &'static str, id: &str) -> Place<'_> {
        let target = (at, id.to_owned());
        let mut lines = self.lines();
        let line = lines.entry(target.clone()).or_default().clone();
        self.count.store(lines.len(), Ordering::Relaxed);
        drop(lines);
        Place {
            turns: self,
            target,
            line,
            turn: None,
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Target, Arc<AsyncMutex<()>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The attempts of one writer to change a record.
pub(crate) struct Attempts<'a> {
    turns: &'a Turns,
    at: &'static str,
    id: &'a str,
    /// Place in the line. None before a batch was stale, if no line existed at the start.
    place: Option<Place<'a>>,
    until: Instant,
    count: u32,
}

impl Attempts<'_> {
    /// Waits for the writer's turn.
    pub(crate) async fn turn(&mut self) -> Result<(), CommitError> {
        let Some(place) = &mut self.place else {
            return Ok(());
        };
        if place.reached(self.until).await {
            Ok(())
        } else {
            Err(CommitError::Stale)
        }
    }

    /// Pauses before the next attempt after a batch was refused because another writer committed
    /// first. Returns any other refusal as the error, and also this one after the deadline.
    pub(crate) async fn again(&mut self, refusal: CommitError) -> Result<(), CommitError> {
        let was_slower = matches!(
            refusal,
            CommitError::Stale | CommitError::Taken { field: "id", .. }
        );
        if !was_slower || Instant::now() >= self.until {
            return Err(refusal);
        }
        match self.place {
            None => self.place = Some(self.turns.join(self.at, self.id)),
            Some(_) => {
                tokio::time::sleep(pause(self.count)).await;
                self.count = self.count.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// A place in the line for a record. It is given up on drop.
struct Place<'a> {
    turns: &'a Turns,
    target: Target,
    line: Arc<AsyncMutex<()>>,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Place<'_> {
    /// Waits until it is this writer's turn. Returns false if the deadline passes first.
    async fn reached(&mut self, until: Instant) -> bool {
        if self.turn.is_none() {
            self.turn = tokio::time::timeout_at(until, self.line.clone().lock_owned())
                .await
                .ok();
        }
        self.turn.is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.turn = None;
        let mut lines = self.turns.lines();
        // The two references are this one and the map's. All others were made under the lock.
        if Arc::strong_count(&self.line) == 2 {
            lines.remove(&self.target);
            self.turns.count.store(lines.len(), Ordering::Relaxed);
        }
    }
}

/// Returns a random part of a pause that grows with the attempts, so that processes do not collide
/// again.
fn pause(attempts: u32) -> Duration {
    let longest = FIRST_PAUSE_MS
        .saturating_mul(1 << attempts.min(16))
        .min(LONGEST_PAUSE_MS);
    let mut random = [0; 2];
    // Without random bytes, the whole pause is used.
    let part = getrandom::fill(&mut random).map_or(u16::MAX, |()| u16::from_le_bytes(random));
    Duration::from_millis(longest).mul_f64(f64::from(part) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_is_gone_with_its_last_writer() {
        let turns = Turns::default();
        let until = Instant::now() + Duration::from_secs(60);
        assert!(turns.join_existing("things", "a").is_none());
        let mut first = turns.join("things", "a");
        assert!(first.reached(until).await);
        let mut second = turns.join_existing("things", "a").unwrap();
        assert!(
            turns.join_existing("things", "b").is_none(),
            "other records have lines of their own"
        );
        assert!(
            !second.reached(Instant::now()).await,
            "the first has its turn"
        );
        drop(first);
        assert!(second.reached(until).await);
        drop(second);
        assert_eq!(
            (turns.lines().len(), turns.count.load(Ordering::Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        assert!((0..100).all(|_| pause(0) <= Duration::from_millis(FIRST_PAUSE_MS)));
        assert!((0..100).all(|_| pause(u32::MAX) <= Duration::from_millis(LONGEST_PAUSE_MS)));
    }
}
