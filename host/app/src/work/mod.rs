//! Background work: recurring jobs that one server at a time runs under a lease.

mod recurring;

pub(crate) use recurring::{FENCES, Job, LEASES, Lease, run_jobs};
