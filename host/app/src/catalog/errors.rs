//! Errors of toolkits, tools, their versions and their publication.

use std::{fmt::Display, time::Duration};

use crate::core::error::Problems;
pub use crate::projects::errors::*;

/// Time after which a toolkit that is being published may be available.
const PUBLICATION_WAIT: Duration = Duration::from_secs(3);

crate::error_table! { pub table:
    /// The toolkit does not exist. The text `similar` is empty if no toolkit has a similar slug.
    TOOLKIT_NOT_FOUND = toolkit_not_found(slug: impl Display, similar: &str): NotFound, 2501, "Toolkit_NotFound",
        "toolkit {slug} not found{similar}",
        "list the toolkits to see the slugs";
    /// The start of the server is still publishing the toolkit.
    STILL_PUBLISHING = still_publishing(slug: impl Display, published: usize, total: usize): Unavailable, 2512, "Toolkit_StillPublishing",
        "{slug} is not available yet: the server is still publishing toolkits ({published} of {total})",
        "retry after a few seconds; `/health/ready` answers 200 once all are published", with_retry_after(PUBLICATION_WAIT);
    /// The version does not exist for this toolkit.
    VERSION_NOT_FOUND = version_not_found(slug: impl Display, version: impl Display): NotFound, 2506, "Toolkit_VersionNotFound",
        "toolkit {slug} does not have {version}",
        "read the toolkit to see its `available_versions`";
    /// The tool does not exist in the requested version. The text `in_version` is empty if no version
    /// was requested, and `similar` if no tool has a similar slug.
    TOOL_NOT_FOUND = tool_not_found(slug: impl Display, in_version: &str, similar: &str): NotFound, 2401, "Tool_ToolNotFound",
        "tool {slug} not found{in_version}{similar}",
        "list the tools to see their slugs; `available_versions` has the versions";
    /// Every version that has the tool is deprecated.
    TOOL_DEPRECATED = tool_deprecated(slug: impl Display): Gone, 2410, "Tool_ToolDeprecated",
        "tool {slug} is deprecated in every version",
        "name an exact version to keep using the tool";
    /// The trigger type does not exist in the requested version. The text `similar` is empty if no
    /// trigger type has a similar slug.
    TRIGGER_TYPE_NOT_FOUND = trigger_type_not_found(slug: impl Display, version: impl Display, similar: &str): NotFound, 2901, "TriggerType_NotFound",
        "trigger type {slug} not found in {version}{similar}",
        "list the trigger types to see their slugs and versions";
    /// The arguments do not match the tool's schema.
    ARGUMENTS_INVALID = arguments_invalid(tool: impl Display, problems: impl Into<Problems>): Invalid, 1820, "ActionExecute_ArgumentsInvalid",
        "the arguments do not match the schema of {tool}",
        "correct the problems that the error lists; the schema is `input_parameters` of the tool, over MCP `inputSchema`", with_problems(problems);
    /// The toolkit does not offer the auth scheme.
    SCHEME_NOT_OFFERED = scheme_not_offered(toolkit: impl Display, scheme: impl Display): Invalid, 302, "Auth_Config_SchemeNotOffered",
        "toolkit {toolkit} does not offer the auth scheme {scheme}",
        "read the toolkit to see its `auth_config_details`";

    /// The component is broken, or imports an interface that this server does not have: it is invalid
    /// on every server.
    COMPONENT_INVALID = component_invalid(problems: impl Into<Problems>): Invalid, 2503, "Toolkit_ComponentInvalid",
        "the component cannot be published",
        "correct the problems that the error lists; `toolkit check` reports the same problems before publication", with_all_problems(problems);
    /// The component is larger than the maximum size, and was not examined.
    COMPONENT_TOO_LARGE = component_too_large(max_mib: usize): TooLarge, 2504, "Toolkit_ComponentTooLarge",
        "the component is larger than {max_mib} MiB",
        "remove dependencies or data from the component";
    /// The component is valid but exceeds a limit of its content or of its compilation: it was
    /// understood, and refused for its cost.
    COMPONENT_LIMIT = component_limit(problems: impl Into<Problems>): Unprocessable, 2505, "Toolkit_ComponentLimit",
        "the component exceeds a limit",
        "make the component smaller or simpler; the limits of compilation are settings of the server", with_all_problems(problems);
    /// The component is not signed, and this server accepts only signed components.
    SIGNATURE_MISSING = signature_missing(): Forbidden, 2508, "Toolkit_SignatureMissing",
        "the component is not signed, and this server accepts only components signed by a key of `publish.trusted_keys`",
        "sign the component with `toolkit sign`, and send the signature with it as `toolkit publish` does";
    /// The signature cannot be read or belongs to other bytes.
    SIGNATURE_INVALID = signature_invalid(reason: impl Display): Forbidden, 2509, "Toolkit_SignatureInvalid",
        "the component's signature is not valid: {reason}",
        "sign exactly these bytes with `toolkit sign`";
    /// The signature is by a key that the operator does not trust.
    SIGNER_UNKNOWN = signer_unknown(key: impl Display): Forbidden, 2510, "Toolkit_SignerUnknown",
        "the component is signed by key {key}, which is not among `publish.trusted_keys`",
        "sign with a trusted key, or ask the operator to add this key to `publish.trusted_keys`";
    /// The version is already published with other content.
    VERSION_TAKEN = version_taken(slug: impl Display, version: impl Display): Conflict, 2502, "Toolkit_VersionTaken",
        "version {version} of toolkit {slug} is already published with other content",
        "publish under a new version; a published version never changes";
    /// The version would break callers of an earlier version of the same day. It is not reported as
    /// a conflict, because clients retry conflicts.
    BREAKING_CHANGE = breaking_change(slug: impl Display, version: impl Display, problems: impl Into<Problems>): Unprocessable, 2511, "Toolkit_BreakingChange",
        "the version is incompatible with {slug} {version} of the same day",
        "publish the version under another day, or allow the incompatible change with `toolkit publish --breaking` or `?breaking=true`", with_all_problems(problems);
    /// The platform failed too often while this version ran. Nothing was started.
    QUARANTINED = quarantined(slug: impl Display, version: impl Display): Unavailable, 2507, "Toolkit_Quarantined",
        "version {version} of toolkit {slug} is quarantined: the host failed three times while this version ran",
        "nothing was started: use or publish another version, or contact the operator; the server's log has the reason, and a restart ends the quarantine";
}
