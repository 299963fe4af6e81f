//! Comparison of servers: rounds that alternate, of which the best counts.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::{
    Bench, ROUND_DURATION,
    load::{Target, at_once},
    round::Round,
};

impl Bench {
    /// Measures both sides alternately and returns the best round of each.
    pub(crate) async fn beside(
        &self,
        bare: &Target,
        ours: &Target,
        connections: usize,
    ) -> Result<(Round, Round)> {
        let bare = vec![bare.clone(); connections];
        self.alternate(&bare, &vec![ours.clone(); connections])
            .await
    }

    /// Measures the clients of two servers alternately and returns the best round of each.
    pub(crate) async fn alternate(
        &self,
        theirs: &[Target],
        ours: &[Target],
    ) -> Result<(Round, Round)> {
        let sides = [theirs, ours];
        let [theirs, ours] = self.best_rounds(&sides, ROUND_DURATION).await?;
        Ok((theirs, ours))
    }

    /// Measures the clients of several servers in rotation and returns the best round of each.
    pub(crate) async fn best_rounds<const N: usize>(
        &self,
        sides: &[impl AsRef<[Target]>; N],
        duration: Duration,
    ) -> Result<[Round; N]> {
        let mut best: [Option<Round>; N] = std::array::from_fn(|_| None);
        for _ in 0..self.options.rounds {
            for (best, clients) in best.iter_mut().zip(sides) {
                *best = better(best.take(), at_once(clients.as_ref(), duration).await?);
            }
        }
        let rounds: Vec<_> = best.into_iter().flatten().collect();
        rounds.try_into().ok().context("no round")
    }
}

/// Returns the faster one of two rounds, with the lower processor time of both.
pub(crate) fn better(best: Option<Round>, round: Round) -> Option<Round> {
    let cpu = best
        .as_ref()
        .map_or(round.cpu, |best| best.cpu.min(round.cpu));
    let best = best
        .filter(|best| best.per_second > round.per_second)
        .unwrap_or(round);
    Some(Round { cpu, ..best })
}
