//! Notifications about the progress of a call.
//!
//! The progress is the time that the call has taken. From the first recipe that the call executes, it is
//! the number of steps that have ended, with a part of the current step.

use std::{future::pending, time::Duration};

use app::agents::recipes::{Position, Progress, ProgressReader};
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::RequestContext,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Interval of notifications about a call whose step does not change.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The notifications about a call, for a client that gave a token for them.
pub(super) struct ProgressReports<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    recipes: Option<ProgressReader>,
    ticks: Interval,
    meter: Meter,
}

impl<'a> ProgressReports<'a> {
    /// Starts with a call that executes recipes with a progress, if it can execute any. Only a
    /// stream can carry notifications.
    pub(super) fn new(
        context: &'a RequestContext<RoleServer>,
        recipes: Option<&Progress>,
        may_stream: bool,
    ) -> Self {
        let begin = Instant::now();
        let mut ticks = interval_at(begin + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let token = context.meta.get_progress_token();
        let token = token.filter(|_| may_stream);
        // Only the steps of recipes whose progress is read are followed.
        let recipes = recipes.filter(|_| token.is_some()).map(Progress::reader);
        Self {
            peer: &context.peer,
            token,
            recipes,
            ticks,
            meter: Meter::new(begin),
        }
    }

    /// Waits until a notification is due.
    pub(super) async fn due(&mut self) {
        let Self { recipes, ticks, .. } = self;
        let step = async {
            match recipes {
                Some(recipes) => recipes.changed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = ticks.tick() => {}
            () = step => {}
        }
    }

    /// Sends a notification.
    pub(super) async fn send(&mut self) {
        let Some(token) = self.token.clone() else {
            return;
        };
        let position = self.recipes.as_mut().and_then(ProgressReader::position);
        let progress = self.meter.next(position.as_ref(), Instant::now());
        let message = match &position {
            None => format!("running for {progress:.0} s"),
            Some(Position { done, total, step }) => {
                let step = step.as_ref().map(|step| format!(", running `{step}`"));
                let step = step.unwrap_or_default();
                format!("{done} of {total} steps done{step}")
            }
        };
        let mut progress = ProgressNotificationParam::new(token, progress).with_message(message);
        progress.total = position.map(|position| self.meter.total(&position));
        // A client that does not read it is noticed by the disconnection.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// The numbers of the notifications about a call. Each is greater than the one before it, as the protocol
/// demands.
struct Meter {
    /// Time at which the call, or its current step, started.
    begin: Instant,
    /// Last number.
    last: f64,
    /// Last number before the first recipe.
    base: Option<f64>,
    /// Number of steps that have ended.
    done: u32,
}

impl Meter {
    fn new(begin: Instant) -> Self {
        Self {
            begin,
            last: 0.0,
            base: None,
            done: 0,
        }
    }

    fn next(&mut self, position: Option<&Position>, now: Instant) -> f64 {
        if let Some(position) = position {
            let base = *self.base.get_or_insert(self.last);
            if position.done > self.done {
                self.begin = now;
                self.done = position.done;
            }
            // The part of the current step grows with its time, and stays below one.
            let seconds = (now - self.begin).as_secs_f64();
            self.last = base + f64::from(self.done) + seconds / (seconds + 1.0);
        } else {
            self.last = (now - self.begin).as_secs_f64().floor();
        }
        self.last
    }

    fn total(&self, position: &Position) -> f64 {
        self.base.unwrap_or_default() + f64::from(position.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_with_time_and_steps() {
        let begin = Instant::now();
        let mut meter = Meter::new(begin);
        let position = |done| {
            Some(Position {
                done,
                total: 3,
                step: None,
            })
        };
        let mut last = -1.0;
        for (position, millis) in [
            (None, 0),
            (None, 1_001),
            (None, 2_002),
            (position(0), 2_003),
            (position(0), 120_000),
            (position(1), 120_001),
            (position(1), 120_002),
            (position(2), 120_002),
        ] {
            let now = begin + Duration::from_millis(millis);
            let number = meter.next(position.as_ref(), now);
            assert!(number > last, "{number} after {last}");
            last = number;
        }
        assert_eq!(last, 4.0);
        assert_eq!(
            position(2).map(|position| meter.total(&position)),
            Some(5.0)
        );
    }
}
