//! The crate that toolkits are written with.
//!
//! A toolkit is a `toolkit!` declaration and functions under `#[tool]` and `#[trigger]`. The rest
//! of this crate is the API that those functions call. The same code runs in two places: as a
//! WebAssembly guest, where each call goes to the platform, and as an ordinary program under `cargo
//! test`, where it goes to the scripted host of [`testing`].
//!
//! ```
//! use toolkit_sdk::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Name of the person to greet.
//!     name: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Greeting {
//!     text: String,
//! }
//!
//! /// Greets someone by name.
//! #[tool(read_only)]
//! fn greet(input: Greet) -> Result<Greeting> {
//!     Ok(Greeting { text: format!("Hello, {}!", input.name) })
//! }
//!
//! toolkit! {
//!     slug: "hello",
//!     name: "Hello",
//!     description: "Greets.",
//!     tools: [greet],
//! }
//! # fn main() {}
//! ```

// Generated code refers to this crate by name, both from outside and from within.
#[cfg(target_arch = "wasm32")]
extern crate self as toolkit_sdk;

#[cfg(any(target_arch = "wasm32", test))]
mod arena;
pub mod clock;
pub mod context;
#[cfg(all(target_arch = "wasm32", getrandom_backend = "custom"))]
mod entropy;
mod error;
mod file;
mod host;
pub mod http;
pub mod log;
pub mod mismatch;
mod plan;
pub mod random;
#[doc(hidden)]
pub mod rt;
mod schema;
pub mod state;
pub mod subscription;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod trigger;
#[cfg(feature = "webhook")]
pub mod webhook;

pub use error::{Result, ToolError};
pub use file::File;
pub use toolkit_sdk_macros::{tool, toolkit, trigger};
pub use trigger::{Inbound, Polled, Received};

/// Items that almost every file of a toolkit uses.
pub mod prelude {
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::{Value, json};

    pub use crate::http::{Client, Multipart, Paging, Request, Response};
    pub use crate::{File, Inbound, Polled, Received, Result, ToolError};
    pub use crate::{cases, clock, context, http, log, random, state};
    pub use crate::{tool, toolkit, trigger};
}

/// Runs every case file below `cases/` and checks the manifest, as unit tests under `cargo test`.
/// Belongs once at the root of the crate, after `toolkit!`.
#[macro_export]
macro_rules! cases {
    () => {
        #[cfg(all(test, not(target_arch = "wasm32")))]
        mod cases {
            #[test]
            fn the_manifest_is_valid() {
                $crate::testing::check_manifest(&super::TOOLKIT);
            }

            #[test]
            fn every_case_holds() {
                let root = ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/cases");
                $crate::testing::run_cases(&super::TOOLKIT, root.as_ref());
            }
        }
    };
}
