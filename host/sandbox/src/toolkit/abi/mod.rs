//! Modules for the versions of the contract, one for each folder of the WIT package.

pub(crate) mod v1;
