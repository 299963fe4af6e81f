//! Admission, threads, deadlines and memory of calls.
//!
//! `admission` decides when a call starts, `scheduler` on which thread it runs, and `ticker` how
//! soon it notices that its time is over. `host_work` keeps work of the host off the guest's
//! stack, `meter` counts what a call uses, `limiter` bounds its memory, and `quarantine` stops
//! components that make the host panic.

pub(crate) mod admission;
pub(crate) mod host_work;
pub(crate) mod limiter;
pub(crate) mod meter;
pub(crate) mod quarantine;
pub(crate) mod scheduler;
pub(crate) mod ticker;
