//! Execution of tools, proxy requests and checks of credentials. [`execute`] is the only way to run
//! a tool.
pub mod errors;
mod execute;
pub mod log;
mod present;
pub mod prompt;
mod proxy;
mod run;
mod verify;

pub use execute::{Execute, Execution, Input, arguments_for_prompt, execute};
pub use present::MAX_INLINE_RESULT_BYTES;
pub use proxy::{
    MAX_BODY_BYTES as MAX_PROXY_BODY_BYTES, Proxy, ProxyBody, ProxyResponse, ResponseBody, proxy,
};
pub(crate) use verify::verify_credential;
