//! The contract with toolkits as Rust, one module for each folder of the WIT package.

pub(crate) mod v1;
