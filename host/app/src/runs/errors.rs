//! Errors of executions, proxy requests, prompts and the execution log.

use std::fmt::Display;

pub use crate::accounts::errors::*;
use crate::core::error::Problems;

crate::error_table! { pub table:
    /// Arguments from a prompt need a language model, which is not configured.
    PROMPT_UNAVAILABLE = prompt_unavailable(): NotSupported, 1821, "ActionExecute_TextUnavailable",
        "`text` is a prompt from which a language model makes the arguments, and this server has no model",
        "send the arguments of the tool in `arguments`, also one that is named `text`, or ask the operator to set `llm.base_url` and `llm.model`";
    /// The model's output did not match the tool's schema in two attempts.
    PROMPT_NOT_UNDERSTOOD = prompt_not_understood(tool: impl Display, output: impl Display, problems: impl Into<Problems>): Unprocessable, 1822, "ActionExecute_TextNotUnderstood",
        "the language model found no arguments that match the schema of {tool}; its last output was: {output}; problems",
        "add the values that the error reports as missing to `text`, or send `arguments`", with_problems(problems);
    /// The request to the language model failed.
    MODEL_FAILED = model_failed(reason: impl Display): UpstreamFailed, 1823, "ActionExecute_ModelFailed",
        "the request to the language model failed: {reason}",
        "retry, or send `arguments`; the operator configures the model with `llm.*`";

    /// The URL does not belong to the provider of the credential.
    ORIGIN_MISMATCH = origin_mismatch(toolkit: impl Display): Invalid, 1831, "OriginMismatch",
        "is not a URL of the provider of toolkit {toolkit}",
        "send a path below the provider's base URL, or an absolute https URL of the same domain or of a host in the toolkit's `egress`", at("endpoint");
    /// The network policy does not allow the request.
    PROXY_DENIED = proxy_denied(reason: impl Display): Forbidden, 1832, "ActionProxy_Denied",
        "the network policy denies the request: {reason}",
        "send the request to a public address of the provider; redirects must stay within the provider's domain and the hosts of the toolkit's `egress`";
    /// The provider did not send a valid response.
    UPSTREAM_FAILED = upstream_failed(reason: impl Display): UpstreamFailed, 1833, "ActionProxy_UpstreamFailed",
        "the provider sent no valid response: {reason}",
        "retry, or check whether the provider is available";
    /// The provider did not respond in time.
    UPSTREAM_TIMEOUT = upstream_timeout(reason: impl Display): UpstreamTimeout, 1834, "ActionProxy_UpstreamTimeout",
        "the provider did not respond in time: {reason}",
        "retry; if it fails again, request less data at once";

    /// The log record does not exist in the project.
    LOG_NOT_FOUND = log_not_found(id: impl Display): NotFound, 801, "Log_NotFound",
        "log {id} not found",
        "list the logs of the project";
    /// The project has written too much into the execution log in a day. Nothing ran.
    LOG_FULL = log_full(): StorageFull, 803, "Log_QuotaExceeded",
        "the executions of the project have written twice as much into the log as `limits.records_mib` permits in a day",
        "retry in some hours, or ask the operator to raise `limits.records_mib`";
    /// The execution lacks a cassette.
    NO_CASSETTE = no_cassette(id: impl Display): NotFound, 802, "Log_NoCassette",
        "log {id} has no cassette",
        "the setting `logs.cassettes` selects the executions that are recorded, up to 256 KiB, for projects that store data";
}
