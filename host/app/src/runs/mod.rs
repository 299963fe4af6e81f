//! Execution of tools, proxy requests and checks of credentials. [`execute`] is the only way to run
//! a tool. Each of them is a run of the sandbox, see `run`.
mod arguments;
mod counts;
pub mod errors;
mod execute;
mod host_call;
mod installing;
pub mod log;
mod present;
pub mod prompt;
mod proxy;
mod record;
mod run;
mod script;
mod trigger;
mod verify;

pub(crate) use arguments::check_arguments;
pub use arguments::{Input, arguments_for_prompt};
pub(crate) use counts::ExecutionCounts;
pub use counts::ToolkitCounts;
pub use execute::{Execution, ToolCall, execute};
pub(crate) use host_call::{HostCall, record_host_call};
pub(crate) use installing::Installations;
pub use present::MAX_INLINE_RESULT_BYTES;
pub use proxy::{
    MAX_BODY_BYTES as MAX_PROXY_BODY_BYTES, Proxy, ProxyBody, ProxyResponse, ResponseBody, proxy,
};
pub(crate) use run::compile;
pub use script::{MAX_SCRIPT_WAIT, ScriptSettings};
pub(crate) use script::{Script, Scripts, run_script};
pub(crate) use trigger::{TriggerCall, call_trigger, wrong_output};
pub(crate) use verify::verify_credential;
