//! The rule by which a capacity is shared.

use std::fmt;

/// Number of keys that may hold all they can while the base of one more stays free.
const FULL_KEYS: u64 = 8;

/// Limits by which keys share a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Units of all keys together.
    pub total: u64,
    /// Units that stay free when a key takes more than its base.
    pub reserve: u64,
    /// Units that a key takes whenever they are free.
    pub base: u64,
    /// Maximum units of one key.
    pub cap: u64,
}

/// Reason why a key gets no more units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// The key is at its own maximum, or no other one holds anything.
    Own,
    /// The other keys leave too little.
    Others,
}

/// Capacity that runs out, for the text of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Requests that are answered, and executions.
    Calls,
    /// Scripts and shell commands.
    Scripts,
    /// Prompts for a model.
    Prompts,
    /// Memory of calls, files and bodies.
    Memory,
    /// Files that are transferred.
    Transfers,
    /// Bodies that are arriving.
    Bodies,
    /// Streams that stay open.
    Streams,
    /// Pages of lists that are built.
    Pages,
}

impl fmt::Display for Capacity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Calls => "concurrent calls",
            Self::Scripts => "concurrent scripts and commands",
            Self::Prompts => "concurrent prompts",
            Self::Memory => "memory",
            Self::Transfers => "concurrent transfers of files",
            Self::Bodies => "arriving bodies",
            Self::Streams => "open streams",
            Self::Pages => "pages of lists",
        })
    }
}

impl Shares {
    /// Returns the shares of a capacity: the base is a part of it, and the reserve is eight bases, but
    /// at most half of the capacity. A capacity of zero counts as one.
    #[must_use]
    pub const fn new(total: u64, base_divisor: u64, cap: u64) -> Self {
        let total = at_least_one(total);
        let base = at_least_one(total / base_divisor);
        Self {
            total,
            reserve: min(base.saturating_mul(FULL_KEYS), total / 2),
            base,
            cap: at_least_one(min(cap, total)),
        }
    }

    /// Returns the shares of a capacity of which any key may take everything.
    #[must_use]
    pub const fn whole(total: u64) -> Self {
        Self {
            total,
            reserve: 0,
            base: total,
            cap: total,
        }
    }

    /// Returns the reason why a key that holds `held` of the `used` units gets no `more` units.
    #[must_use]
    pub const fn refusal(&self, held: u64, used: u64, more: u64) -> Option<Busy> {
        let wanted = held.saturating_add(more);
        if wanted > self.cap {
            return Some(Busy::Own);
        }
        let kept = if wanted > self.base { self.reserve } else { 0 };
        if used.saturating_add(more).saturating_add(kept) <= self.total {
            None
        } else if used == held {
            Some(Busy::Own)
        } else {
            Some(Busy::Others)
        }
    }
}

const fn min(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}

const fn at_least_one(units: u64) -> u64 {
    if units == 0 { 1 } else { units }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_total() {
        let shares = |total, divisor, cap| {
            let shares = Shares::new(total, divisor, cap);
            (shares.base, shares.reserve, shares.cap)
        };
        assert_eq!(shares(512, 32, 384), (16, 128, 384));
        assert_eq!(shares(16, 16, 8), (1, 8, 8));
        assert_eq!(shares(4, 32, 384), (1, 2, 4));
        assert_eq!(shares(1, 32, 0), (1, 0, 1));
    }

    #[test]
    fn refusal_names_who_is_in_the_way() {
        let shares = Shares::new(16, 16, 8);
        assert_eq!(shares.refusal(0, 15, 1), None);
        assert_eq!(shares.refusal(0, 16, 1), Some(Busy::Others));
        assert_eq!(shares.refusal(1, 7, 1), None);
        assert_eq!(shares.refusal(1, 8, 1), Some(Busy::Others));
        assert_eq!(shares.refusal(8, 8, 1), Some(Busy::Own));
        assert_eq!(shares.refusal(0, 0, u64::MAX), Some(Busy::Own));
        // A key alone is in its own way.
        let shares = Shares::new(16, 16, 12);
        assert_eq!(shares.refusal(7, 7, 1), None);
        assert_eq!(shares.refusal(8, 8, 1), Some(Busy::Own));
        assert_eq!(shares.refusal(8, 9, 1), Some(Busy::Others));
    }
}
