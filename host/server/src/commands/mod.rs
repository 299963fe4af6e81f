//! The operator's commands, one file each.

pub(crate) mod archive;
pub(crate) mod command_line;
pub(crate) mod config;
mod demo;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod first_run;
pub(crate) mod health;
pub(crate) mod help;
pub(crate) mod keys;
pub(crate) mod legacy;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod members;
pub(crate) mod oauth_apps;
pub(crate) mod projects;
mod running;
pub(crate) mod serve;
pub(crate) mod toolkits;
pub(crate) mod verify;
