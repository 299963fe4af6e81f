//! Capacity that many keys share, such as the projects of a server.
//!
//! Problem: with a limit for each key alone, a few keys take everything, and with a limit so low
//! that they cannot, a single active key gets little.
//!
//! Guarantee: a key takes its first `base` units whenever they are free, further ones only while
//! `reserve` units stay free, and never more than `cap` ([`Shares`]). If the reserve is eight
//! bases, eight keys that hold all they may leave a ninth its base. A single active key gets `cap`.
//!
//! A [`Gate`] issues permits by this rule, and a [`ByteCapacity`] bytes. A gate also has a queue, from which
//! keys are served round-robin: a key with many waiting callers does not delay a key with one. A
//! [`KeyedLimit`] is for keys that share nothing, and the [`Pacer`] for keys whose limits follow from
//! their successes and failures.

mod byte_capacity;
mod keyed_limit;
mod keys;
mod pacer;
mod permits;
mod queue;
mod shares;

pub use byte_capacity::{ByteCapacity, Reservation};
pub use keyed_limit::KeyedLimit;
pub use pacer::{PacedPermit, Pacer};
pub use permits::{Gate, Permit};
pub use queue::Queue;
pub use shares::{Busy, Capacity, Shares};
