//! One module for each version of the contract; the folder of the WIT package says which.

pub(crate) mod v1;
