//! Callers that try to freeze the server or to exhaust its memory.
//!
//! Every test sends one attack and asserts a bound that does not depend on the speed of the
//! machine: the status, resident memory, the number of stored records, or a neighbor that gets a
//! response while the attack runs.

mod edge;
mod quotas;
mod records;
mod runs;
mod values;
