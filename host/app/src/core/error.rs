//! All errors of this crate, and the table that maps each to a code, slug, status and hint.
//!
//! A module returns a variant, the table describes it, and the server renders it. A tool that ran
//! and failed is not an error but a result.

use std::time::Duration;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why an operation was refused or failed. Nothing was changed when one of these is
/// returned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    // authentication and limits
    /// The request has no API key.
    #[error("the request has no API key")]
    KeyMissing,
    /// The key is unknown, revoked, mistyped, or belongs to a deleted project.
    #[error("Invalid API key: {shown}")]
    KeyInvalid {
        /// The first characters of the key, followed by asterisks.
        shown: String,
    },
    /// The request has more than one credential.
    #[error("the request has more than one API key")]
    KeyAmbiguous,
    /// The key is valid but of another kind than the operation needs.
    #[error("the operation needs {wanted} key, and the request has {given} key")]
    KeyOfOtherKind {
        /// The kind needed, with its article, for example `an organization`.
        wanted: &'static str,
        /// The kind given, with its article.
        given: &'static str,
    },
    /// The permissions of the key do not include this access.
    #[error("the key has no {access} permission for {area}")]
    KeyPermission {
        /// The access: `read` or `write`.
        access: &'static str,
        /// The area of the API.
        area: &'static str,
    },
    /// The key may not be used from the caller's address.
    #[error("the key may not be used from the address of the request")]
    KeyAddress,
    /// Too many wrong keys came from one address.
    #[error("too many failed authentications from this address")]
    TooManyFailures {
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// A rate limit is exceeded.
    #[error("{who} has exceeded its rate limit for ten minutes")]
    RateExceeded {
        /// The owner of the limit, with an article.
        who: &'static str,
        /// The time to wait before a retry.
        retry_after: Duration,
    },
    /// The project has too many calls running. Nothing was started.
    #[error("the project has reached its limit of concurrent calls")]
    ProjectBusy,
    /// The address is sending too many request bodies at the same time. Nothing was started.
    #[error("the address sends too many request bodies at the same time")]
    AddressBusy,
    /// The node has too many calls running. Nothing was started.
    #[error("the server has reached its limit of concurrent calls")]
    NodeBusy,
    /// The operation exceeded its deadline.
    #[error("the operation took longer than {} s", .0.as_secs())]
    Deadline(Duration),

    // requests
    /// The request is invalid. Each problem has its own line.
    #[error("the request is invalid: {}", summary(.0))]
    Invalid(Vec<String>),
    /// The text cannot be an id of this kind.
    #[error("`{given}` is not the id of {what}")]
    MalformedId {
        /// The kind of object, with its article, for example `an auth config`.
        what: &'static str,
        /// The text as given.
        given: String,
    },
    /// The cursor was not made by this server.
    #[error("the cursor is not valid")]
    CursorInvalid,

    /// Another request used the same idempotency key.
    #[error("the Idempotency-Key was used for another request")]
    IdempotencyKeyReused,
    /// The first request with the key is still running or was interrupted.
    #[error(
        "the first request with this Idempotency-Key has no response: it is still running, or it was interrupted"
    )]
    IdempotencyPending,
    /// The request was done, but its response was not kept.
    #[error("the request with this Idempotency-Key was done, and its response was not stored")]
    IdempotencyResponseGone,

    // projects
    /// The project does not exist in the organization.
    #[error("project {0} not found")]
    ProjectNotFound(String),
    /// The project name is in use.
    #[error("a project named `{0}` already exists")]
    ProjectNameTaken(String),
    /// The key does not exist in the project.
    #[error("API key {0} not found")]
    KeyNotFound(String),
    /// The member does not exist in the organization.
    #[error("member {0} not found")]
    MemberNotFound(String),
    /// The email address is in use.
    #[error("a member with the email address `{0}` already exists")]
    MemberTaken(String),

    // catalog
    /// The toolkit, or the requested version of it, does not exist.
    #[error("toolkit {0} not found")]
    ToolkitNotFound(String),
    /// The tool does not exist in the requested version.
    #[error("tool {slug} not found{}", in_version(.version))]
    ToolNotFound {
        /// The slug as given.
        slug: String,
        /// The requested version, or an empty text if none was requested.
        version: String,
    },
    /// Every version that has the tool is deprecated.
    #[error("tool {0} is deprecated in every version")]
    ToolDeprecated(String),
    /// The version is already published with other content.
    #[error("version {version} of toolkit {slug} is already published with other content")]
    VersionTaken {
        /// The slug of the toolkit.
        slug: String,
        /// The version.
        version: String,
    },
    /// The version would break callers of an earlier version of the same day. Each problem has its
    /// own line. The status is 422 and not 409, because clients retry 409.
    #[error("the version is incompatible with {slug} {version} of the same day: {}", summary(.lines))]
    BreakingChange {
        /// The slug of the toolkit.
        slug: String,
        /// The earlier version.
        version: String,
        /// The incompatible changes.
        lines: Vec<String>,
    },
    /// The version does not exist for this toolkit.
    #[error("version {version} of toolkit {slug} not found")]
    VersionNotFound {
        /// The slug of the toolkit.
        slug: String,
        /// The version.
        version: String,
    },
    /// The component is broken, or imports an interface that this server does not have. Each
    /// problem has its own line. The status is 400, because the component is invalid on every
    /// server.
    #[error("the component cannot be published: {}", summary(.0))]
    ComponentInvalid(Vec<String>),
    /// The component is larger than the maximum size. The status is 413, and the component was not
    /// examined.
    #[error("the component is larger than 24 MiB")]
    ComponentTooLarge,
    /// The component is valid but exceeds a limit of its content or of its compilation. Each
    /// problem has its own line. The status is 422: the component was understood, and refused for
    /// its cost.
    #[error("the component exceeds a limit: {}", summary(.0))]
    ComponentLimit(Vec<String>),
    /// The component is not signed, and this server accepts only signed components.
    #[error(
        "the component is not signed, and this server accepts only components signed by a key of `publish.trusted_keys`"
    )]
    SignatureMissing,
    /// The signature cannot be read or belongs to other bytes.
    #[error("the component's signature is not valid: {0}")]
    SignatureInvalid(String),
    /// The signature is by a key that the operator does not trust.
    #[error("the component is signed by key {0}, which is not among `publish.trusted_keys`")]
    SignerUnknown(String),

    /// The platform failed too often while this version ran. Nothing was started.
    #[error(
        "version {version} of toolkit {slug} is quarantined: the host failed three times while this version ran"
    )]
    Quarantined {
        /// The slug of the toolkit.
        slug: String,
        /// The version.
        version: String,
    },

    // auth configs
    /// The auth config does not exist in the project.
    #[error("auth config {0} not found")]
    AuthConfigNotFound(String),
    /// The server has no managed credentials for the toolkit.
    #[error("toolkit {0} has no managed credentials on this server")]
    NoManagedAuth(String),
    /// The toolkit does not offer the auth scheme.
    #[error("toolkit {toolkit} does not offer the auth scheme {scheme}")]
    SchemeNotOffered {
        /// The slug of the toolkit.
        toolkit: String,
        /// The name of the auth scheme.
        scheme: String,
    },

    // connected accounts
    /// The connected account does not exist in the project.
    #[error("connected account {0} not found")]
    AccountNotFound(String),
    /// The request was refused for another reason, which the text states.
    #[error("{0}")]
    AccountRefused(String),
    /// Fields of the auth scheme are missing or invalid. Each problem has its own line.
    #[error("required fields of the connection are missing or invalid: {}", summary(.0))]
    AccountFields(Vec<String>),

    /// The secret that a browser sent is unknown, used or expired. The error does not say which.
    #[error(
        "the link of this connection attempt is not valid: it was used, has expired, or was opened in another browser"
    )]
    AttemptUnknown,
    /// No account with this `session_uri` waits to be completed by the project.
    #[error("no connected account with this `session_uri` waits for completion")]
    SessionNotFound,
    /// The provider rejects the credential.
    #[error("the provider rejects the credential: {0}")]
    CredentialRejected(String),
    /// The toolkit declares no request that verifies a credential.
    #[error("toolkit {0} declares no request that verifies a credential")]
    CheckUnsupported(String),
    /// Another call is refreshing the token, and the refresh takes long.
    #[error("the token of connected account {0} is being refreshed")]
    RefreshInProgress(String),
    /// The token has expired, and the provider did not refresh it. The refresh is tried again
    /// later.
    #[error(
        "the token of connected account {account} has expired, and its provider does not respond"
    )]
    RefreshUnavailable {
        /// The id of the account.
        account: String,
        /// The time until the next attempt.
        retry_after: Duration,
    },
    /// The operator has no OAuth app for the toolkit.
    #[error("no OAuth app is configured for toolkit {0}")]
    OauthAppNotFound(String),

    // running tools
    /// The user has no usable connected account.
    #[error("user `{user}` has no active connected account for toolkit {toolkit}")]
    NoAccount {
        /// The id that the project uses for the user.
        user: String,
        /// The slug of the toolkit.
        toolkit: String,
    },
    /// The named account does not exist.
    #[error("connected account {0} not found")]
    NamedAccountNotFound(String),
    /// An account was named without its user.
    #[error("the request names connected account {0} without its user")]
    AccountUserMissing(String),
    /// The account belongs to another user.
    #[error("connected account {account} does not belong to user `{user}`")]
    AccountUserMismatch {
        /// The id of the account.
        account: String,
        /// The user as given.
        user: String,
    },
    /// The account is shared, but not with this user.
    #[error("connected account {account} is not shared with user `{user}`")]
    AccountNotShared {
        /// The id of the account.
        account: String,
        /// The user as given.
        user: String,
    },
    /// The account exists but cannot be used.
    #[error("connected account {account} is {state}")]
    AccountNotActive {
        /// The id of the account.
        account: String,
        /// The status of the account, or another reason why it cannot be used.
        state: String,
    },
    /// The auth config does not allow the tool.
    #[error("auth config {config} does not allow tool {tool}")]
    ToolNotAllowed {
        /// The id of the auth config.
        config: String,
        /// The slug of the tool.
        tool: String,
    },
    /// The arguments do not match the tool's schema. Each problem has its own line.
    #[error("the arguments do not match the schema of {tool}: {}", summary(.problems))]
    ArgumentsInvalid {
        /// The slug of the tool.
        tool: String,
        /// The problems, one line each.
        problems: Vec<String>,
    },
    /// Arguments from a prompt need a language model, and none is configured.
    #[error("a prompt needs a language model, and none is configured")]
    PromptUnavailable,
    /// The model's output did not match the tool's schema in two attempts. Each problem has its own
    /// line.
    #[error("the language model found no arguments that match the schema of {tool}: {}; its last output was: {output}", summary(.problems))]
    PromptNotUnderstood {
        /// The slug of the tool.
        tool: String,
        /// The beginning of the last output.
        output: String,
        /// The problems, one line each.
        problems: Vec<String>,
    },
    /// The request to the language model failed.
    #[error("the request to the language model failed: {0}")]
    ModelFailed(String),

    // legacy ids
    /// No object of the project has or had this legacy id.
    #[error("no {kind} with the legacy id {uuid}")]
    LegacyNotFound {
        /// The kind of object requested.
        kind: &'static str,
        /// The legacy id as given.
        uuid: uuid::Uuid,
    },
    /// The object is deleted.
    #[error("the {kind} with the legacy id {uuid} is deleted")]
    LegacyGone {
        /// The kind of object requested.
        kind: &'static str,
        /// The legacy id as given.
        uuid: uuid::Uuid,
    },

    // proxy requests
    /// The request names neither an account nor a credential.
    #[error("the request names neither a connected account nor a credential")]
    AuthContextMissing,
    /// The URL does not belong to the provider of the credential.
    #[error("{endpoint} is not a URL of the provider of toolkit {toolkit}")]
    OriginMismatch {
        /// The URL as given, without its query.
        endpoint: String,
        /// The slug of the toolkit.
        toolkit: String,
    },
    /// The network policy does not allow the request.
    #[error("the network policy denies the request: {0}")]
    ProxyDenied(String),
    /// The provider did not send a valid response.
    #[error("the provider sent no valid response: {0}")]
    UpstreamFailed(String),
    /// The provider did not respond in time.
    #[error("the provider did not respond in time: {0}")]
    UpstreamTimeout(String),

    // files
    /// The file does not exist in the project.
    #[error("file {0} not found")]
    FileNotFound(String),
    /// The upload was requested, but no bytes were uploaded.
    #[error("file {0} has not been uploaded")]
    FileNotUploaded(String),
    /// The uploaded bytes differ from those announced. Nothing was kept.
    #[error(
        "the uploaded bytes have the MD5 {found}, and the upload request announced {announced}"
    )]
    FileDigest {
        /// The MD5 that was announced in the upload request.
        announced: String,
        /// The MD5 of the uploaded bytes.
        found: String,
    },
    /// The project's files have reached their maximum total size. Nothing was kept.
    #[error("the file would exceed the quota of {0} MiB for all files of the project")]
    FilesFull(u64),
    /// The link was not made by this server, or was changed.
    #[error("the link to the file is not valid")]
    LinkInvalid,
    /// The link has expired.
    #[error("the link to the file has expired")]
    LinkExpired,

    /// The log record does not exist in the project.
    #[error("log {0} not found")]
    LogNotFound(String),

    /// Usage of this name is not counted.
    #[error("usage of `{0}` is not counted")]
    UsageNotFound(String),
    /// The execution has no cassette.
    #[error("log {0} has no cassette")]
    NoCassette(String),

    // the server
    /// The disk is full.
    #[error("the server's storage is full")]
    StorageFull,
    /// A service that the server depends on does not answer.
    #[error("the server cannot perform the operation now: {0}")]
    Unavailable(String),
    /// A fault of the server. The text is for the server's log, not for callers.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The table entry of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The error code, specific to this platform.
    pub code: u32,
    /// The stable name, for programs.
    pub slug: &'static str,
    /// The HTTP status code.
    pub status: u16,
    /// The suggested fix.
    pub hint: &'static str,
}

const fn info(code: u32, slug: &'static str, status: u16, hint: &'static str) -> ErrorInfo {
    ErrorInfo {
        code,
        slug,
        status,
        hint,
    }
}

impl Error {
    /// Returns the table entry of the error.
    #[must_use]
    #[rustfmt::skip]
    pub fn info(&self) -> ErrorInfo {
        match self {
            Self::KeyMissing => info(10401, "HTTP_Unauthorized", 401, "send the project key, or the organization key if the operation needs it"),
            Self::KeyInvalid { .. } => info(10401, "HTTP_Unauthorized", 401, "check the key, or create a new one; a deleted key stays invalid"),
            Self::KeyAmbiguous => info(10401, "HTTP_Unauthorized", 401, "send exactly one key"),
            Self::KeyOfOtherKind { .. } => info(10401, "HTTP_Unauthorized", 401, "send a key of the needed kind in the header of that kind"),
            Self::KeyPermission { .. } => info(10403, "HTTP_Forbidden", 403, "use a key whose permissions include this area, or a key without restrictions"),
            Self::KeyAddress => info(10433, "HTTP_AddressNotAllowed", 403, "send the request from an address in `allowed_ips` of the key, or use another key"),
            Self::TooManyFailures { .. } => info(10430, "HTTP_TooManyFailedAuthentications", 429, "wait, then send a valid key"),
            Self::RateExceeded { .. } => info(10429, "HTTP_TooManyRequests", 429, "wait, or raise `limits.rate`, `limits.rate_per_project` or `limits.rate_per_key`"),
            Self::ProjectBusy => info(10431, "Server_ProjectBusy", 429, "nothing was started: retry after a moment"),
            Self::AddressBusy => info(10435, "Server_AddressBusy", 429, "nothing was started: retry when the other requests have been sent"),
            Self::NodeBusy => info(10503, "Server_Busy", 503, "nothing was started: retry after a moment"),
            Self::Deadline(_) => info(10504, "Server_DeadlineExceeded", 503, "retry; if it fails again, request less in one operation"),

            Self::Invalid(_) => info(10400, "Request_Invalid", 400, "correct the problems that `errors` lists"),
            Self::MalformedId { .. } => info(10422, "Request_MalformedId", 400, "send the id exactly as the server returned it"),
            Self::CursorInvalid => info(10423, "Request_CursorInvalid", 400, "send `next_cursor` exactly as the server returned it, or omit the cursor"),

            Self::IdempotencyKeyReused => info(10424, "Idempotency_KeyReused", 422, "use a new key for each request; reuse a key only to repeat exactly the same request"),
            Self::IdempotencyPending => info(10425, "Idempotency_Unanswered", 409, "retry after a moment; if the error remains, check the effect of the first request and use a new key"),
            Self::IdempotencyResponseGone => info(10426, "Idempotency_AnswerGone", 409, "check the effect of the first request; the server does not store responses above 1 MiB, responses beyond `limits.answers_mib` per day, and responses of tools for projects that store no data"),

            Self::ProjectNotFound(_) => info(701, "Project_NotFound", 404, "list the projects of the organization"),
            Self::ProjectNameTaken(_) => info(702, "Project_NameTaken", 400, "choose another name"),
            Self::KeyNotFound(_) => info(703, "Project_KeyNotFound", 404, "list the keys of the project"),
            Self::MemberNotFound(_) => info(704, "Organization_MemberNotFound", 404, "list the members of the organization"),
            Self::MemberTaken(_) => info(705, "Organization_MemberTaken", 400, "remove the member first, or use another email address"),

            Self::ToolkitNotFound(_) => info(2501, "Toolkit_NotFound", 404, "list the toolkits to see the slugs"),
            Self::ToolNotFound { .. } => info(2401, "Tool_ToolNotFound", 404, "list the tools to see their slugs; `available_versions` has the versions"),
            Self::ToolDeprecated(_) => info(2410, "Tool_ToolDeprecated", 410, "name an exact version to keep using the tool"),
            Self::VersionTaken { .. } => info(2502, "Toolkit_VersionTaken", 409, "publish under a new version; a published version never changes"),
            Self::VersionNotFound { .. } => info(2506, "Toolkit_VersionNotFound", 404, "read the toolkit to see its `available_versions`"),
            Self::ComponentInvalid(_) => info(2503, "Toolkit_ComponentInvalid", 400, "correct the problems that `errors` lists; `toolkit check` reports the same problems before publication"),
            Self::ComponentTooLarge => info(2504, "Toolkit_ComponentTooLarge", 413, "remove dependencies or data from the component"),
            Self::ComponentLimit(_) => info(2505, "Toolkit_ComponentLimit", 422, "make the component smaller or simpler; the limits of compilation are settings of the server"),
            Self::Quarantined { .. } => info(2507, "Toolkit_Quarantined", 503, "nothing was started: use or publish another version, or contact the operator; the server's log has the reason, and a restart ends the quarantine"),
            Self::BreakingChange { .. } => info(2511, "Toolkit_BreakingChange", 422, "publish the version under another day, or allow the incompatible change with `toolkit publish --breaking` or `?breaking=true`"),
            Self::SignatureMissing => info(2508, "Toolkit_SignatureMissing", 403, "sign the component with `toolkit sign`, and send the signature in `x-toolkit-signature`"),
            Self::SignatureInvalid(_) => info(2509, "Toolkit_SignatureInvalid", 403, "sign exactly these bytes with `toolkit sign`"),
            Self::SignerUnknown(_) => info(2510, "Toolkit_SignerUnknown", 403, "sign with a trusted key, or ask the operator to add this key to `publish.trusted_keys`"),

            Self::AuthConfigNotFound(_) => info(301, "Auth_Config_NotFound", 404, "list the auth configs of the project"),
            Self::NoManagedAuth(_) => info(306, "Auth_Config_DefaultAuthConfigNotFound", 400, "create the auth config with type `use_custom_auth` and an `authScheme`, or ask the operator to configure an OAuth app for the toolkit"),
            Self::SchemeNotOffered { .. } => info(302, "Auth_Config_SchemeNotOffered", 400, "read the toolkit to see its `auth_config_details`"),

            Self::AccountNotFound(_) => info(601, "ConnectedAccount_NotFound", 404, "list the connected accounts of the project"),
            Self::AccountRefused(_) => info(600, "ConnectedAccount_BadRequest", 400, "correct the request"),
            Self::AccountFields(_) => info(612, "ConnectedAccount_MissingRequiredFields", 400, "send the fields that `errors` lists in `connection.state.val`"),

            Self::AttemptUnknown => info(610, "ConnectedAccount_FlowInvalid", 400, "start a new connection with POST /connected_accounts/link, and open its link once, in one browser"),
            Self::SessionNotFound => info(611, "ConnectedAccount_SessionNotFound", 404, "complete each `session_uri` once, within ten minutes"),
            Self::CredentialRejected(_) => info(613, "ConnectedAccount_CredentialRejected", 400, "correct the credential, or create a new one at the provider"),
            Self::CheckUnsupported(_) => info(614, "ConnectedAccount_CheckUnsupported", 501, "omit `validate_credentials`, and execute a tool to verify the credential"),
            Self::RefreshInProgress(_) => info(615, "ConnectedAccount_RefreshInProgress", 503, "nothing was sent: retry after a moment"),
            Self::RefreshUnavailable { .. } => info(616, "ConnectedAccount_RefreshUnavailable", 503, "nothing was sent: retry later; the account stays connected"),
            Self::OauthAppNotFound(_) => info(308, "Oauth_App_NotFound", 404, "list the OAuth apps, or configure one with `toolhost oauth-apps set`"),

            Self::NamedAccountNotFound(_) | Self::NoAccount { .. } => info(1810, "ActionExecute_ConnectedAccountNotFound", 404, "connect an account for this user first, or name an account that is shared with the user in `connected_account_id`"),
            Self::AccountUserMissing(_) => info(1811, "ActionExecute_ConnectedAccountEntityIdRequired", 400, "send `user_id` with `connected_account_id`"),
            Self::AccountUserMismatch { .. } => info(1812, "ActionExecute_ConnectedAccountEntityIdMismatch", 400, "send the `user_id` that the account was connected for"),
            Self::AccountNotShared { .. } => info(1815, "ActionExecute_ConnectedAccountNotShared", 403, "change `experimental.acl_config_for_shared` of the account, or use an account of the user"),
            Self::AccountNotActive { .. } => info(1813, "ActionExecute_ConnectedAccountExpired", 422, "enable or reconnect the account, or use another account"),
            Self::ToolNotAllowed { .. } => info(1814, "ActionExecute_ToolNotAllowed", 403, "use a tool that the auth config allows, or change its `tool_access_config`"),
            Self::ArgumentsInvalid { .. } => info(1820, "ActionExecute_ArgumentsInvalid", 400, "correct the problems that `errors` lists; `input_parameters` of the tool is the schema"),
            Self::PromptUnavailable => info(1821, "ActionExecute_TextUnavailable", 501, "send `arguments`, or ask the operator to set `llm.base_url` and `llm.model`"),
            Self::PromptNotUnderstood { .. } => info(1822, "ActionExecute_TextNotUnderstood", 422, "add the values that `errors` reports as missing to `text`, or send `arguments`"),
            Self::ModelFailed(_) => info(1823, "ActionExecute_ModelFailed", 502, "retry, or send `arguments`; the operator configures the model with `llm.*`"),

            Self::LegacyNotFound { .. } => info(2601, "Migration_NotFound", 404, "check `uuid` and `type`; the operator loads legacy ids of an older system with `toolhost import-legacy`"),
            Self::LegacyGone { .. } => info(2602, "Migration_ObjectDeleted", 410, "create a new object; a deleted object cannot be restored"),

            Self::AuthContextMissing => info(1830, "MissingAuthContext", 400, "send `connected_account_id` or `custom_connection_data`"),
            Self::OriginMismatch { .. } => info(1831, "OriginMismatch", 400, "send a path below the provider's base URL, or an absolute https URL of the same domain"),
            Self::ProxyDenied(_) => info(1832, "ActionProxy_Denied", 403, "send the request to a public address of the provider; redirects must stay within the provider's domain"),
            Self::UpstreamFailed(_) => info(1833, "ActionProxy_UpstreamFailed", 502, "retry, or check whether the provider is available"),
            Self::UpstreamTimeout(_) => info(1834, "ActionProxy_UpstreamTimeout", 504, "retry; if it fails again, request less data at once"),

            Self::FileNotFound(_) => info(2701, "File_NotFound", 404, "request a new upload with `files/upload/request`"),
            Self::FileNotUploaded(_) => info(2702, "File_NotUploaded", 400, "PUT the bytes to the `new_presigned_url` of its upload request first"),
            Self::FileDigest { .. } => info(2703, "File_DigestMismatch", 400, "send the bytes with the announced MD5, or request a new upload for these bytes"),
            Self::FilesFull(_) => info(2706, "File_QuotaExceeded", 507, "wait until old files are erased (`files.keep_days`), or ask the operator to raise `files.quota_mib`"),
            Self::LinkInvalid => info(2704, "File_LinkInvalid", 403, "use the link exactly as the server returned it, with its method"),
            Self::LinkExpired => info(2705, "File_LinkExpired", 403, "request a new link"),

            Self::LogNotFound(_) => info(801, "Log_NotFound", 404, "list the logs of the project"),
            Self::UsageNotFound(_) => info(803, "Usage_NotFound", 404, "request the usage of `tool_execution`"),
            Self::NoCassette(_) => info(802, "Log_NoCassette", 404, "the setting `logs.cassettes` selects the executions that are recorded, up to `logs.cassette_kib`, for projects that store data"),

            Self::StorageFull => info(10507, "Server_StorageFull", 507, "nothing was changed: ask the operator to free disk space"),
            Self::Unavailable(_) => info(10503, "Server_Unavailable", 503, "retry after a moment"),
            Self::Internal(_) => info(10500, "Server_InternalError", 500, "send the `request_id` to the operator; the server's log has the reason"),
        }
    }

    /// Returns the problems of errors that can have several, one line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        match self {
            Self::Invalid(lines)
            | Self::ComponentInvalid(lines)
            | Self::ComponentLimit(lines)
            | Self::AccountFields(lines)
            | Self::BreakingChange { lines, .. }
            | Self::PromptNotUnderstood {
                problems: lines, ..
            }
            | Self::ArgumentsInvalid {
                problems: lines, ..
            } => lines,
            _ => &[],
        }
    }

    /// Returns the time to wait before a retry, or `None` if a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyFailures { retry_after }
            | Self::RateExceeded { retry_after, .. }
            | Self::RefreshUnavailable { retry_after, .. } => Some(*retry_after),
            Self::IdempotencyPending
            | Self::RefreshInProgress(_)
            | Self::ProjectBusy
            | Self::AddressBusy
            | Self::NodeBusy
            | Self::Unavailable(_)
            | Self::Deadline(_) => Some(Duration::from_secs(1)),
            _ => None,
        }
    }

    /// Creates an [`Error::Invalid`] with one problem.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(vec![problem.into()])
    }
}

fn summary(lines: &[String]) -> String {
    match lines {
        [] => "no detail".into(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn in_version(version: &str) -> String {
    if version.is_empty() {
        String::new()
    } else {
        format!(" in version {version}")
    }
}

impl From<store::Error> for Error {
    fn from(cause: store::Error) -> Self {
        match cause {
            store::Error::Full => Self::StorageFull,
            store::Error::Unavailable(_) => Self::Unavailable(cause.to_string()),
            // Damaged data, or a query that the store does not support.
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<store::EditError<Error>> for Error {
    fn from(cause: store::EditError<Error>) -> Self {
        match cause {
            store::EditError::Change(cause) => cause,
            store::EditError::Read(cause) => cause.into(),
            store::EditError::Commit(cause) => cause.into(),
        }
    }
}

impl From<store::CommitError> for Error {
    fn from(cause: store::CommitError) -> Self {
        match cause {
            store::CommitError::Full => Self::StorageFull,
            store::CommitError::Invalid(_) => Self::Internal(cause.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Error> {
        let text = || "x".to_owned();
        let lines = || vec!["a".to_owned(), "b".to_owned()];
        let retry_after = Duration::from_secs(3);
        vec![
            Error::KeyMissing,
            Error::KeyInvalid { shown: text() },
            Error::KeyAmbiguous,
            Error::KeyOfOtherKind {
                wanted: "a project",
                given: "an organization",
            },
            Error::TooManyFailures { retry_after },
            Error::RateExceeded {
                who: "the organization",
                retry_after,
            },
            Error::KeyPermission {
                access: "read",
                area: "tools",
            },
            Error::KeyAddress,
            Error::KeyNotFound(text()),
            Error::MemberNotFound(text()),
            Error::MemberTaken(text()),
            Error::ProjectBusy,
            Error::AddressBusy,
            Error::NodeBusy,
            Error::Deadline(retry_after),
            Error::Invalid(lines()),
            Error::MalformedId {
                what: "an account",
                given: text(),
            },
            Error::CursorInvalid,
            Error::IdempotencyKeyReused,
            Error::IdempotencyPending,
            Error::IdempotencyResponseGone,
            Error::ProjectNotFound(text()),
            Error::ProjectNameTaken(text()),
            Error::ToolkitNotFound(text()),
            Error::ToolNotFound {
                slug: text(),
                version: text(),
            },
            Error::ToolDeprecated(text()),
            Error::VersionTaken {
                slug: text(),
                version: text(),
            },
            Error::VersionNotFound {
                slug: text(),
                version: text(),
            },
            Error::ComponentInvalid(lines()),
            Error::ComponentTooLarge,
            Error::ComponentLimit(lines()),
            Error::Quarantined {
                slug: text(),
                version: text(),
            },
            Error::BreakingChange {
                slug: text(),
                version: text(),
                lines: lines(),
            },
            Error::SignatureMissing,
            Error::SignatureInvalid(text()),
            Error::SignerUnknown(text()),
            Error::AuthConfigNotFound(text()),
            Error::NoManagedAuth(text()),
            Error::SchemeNotOffered {
                toolkit: text(),
                scheme: text(),
            },
            Error::AccountNotFound(text()),
            Error::AccountRefused(text()),
            Error::AccountFields(lines()),
            Error::AttemptUnknown,
            Error::SessionNotFound,
            Error::CredentialRejected(text()),
            Error::CheckUnsupported(text()),
            Error::RefreshInProgress(text()),
            Error::RefreshUnavailable {
                account: text(),
                retry_after,
            },
            Error::OauthAppNotFound(text()),
            Error::NoAccount {
                user: text(),
                toolkit: text(),
            },
            Error::NamedAccountNotFound(text()),
            Error::AccountUserMissing(text()),
            Error::AccountUserMismatch {
                account: text(),
                user: text(),
            },
            Error::AccountNotShared {
                account: text(),
                user: text(),
            },
            Error::AccountNotActive {
                account: text(),
                state: text(),
            },
            Error::ToolNotAllowed {
                config: text(),
                tool: text(),
            },
            Error::ArgumentsInvalid {
                tool: text(),
                problems: lines(),
            },
            Error::PromptUnavailable,
            Error::PromptNotUnderstood {
                tool: text(),
                output: text(),
                problems: lines(),
            },
            Error::ModelFailed(text()),
            Error::LegacyNotFound {
                kind: "x",
                uuid: uuid::Uuid::nil(),
            },
            Error::LegacyGone {
                kind: "x",
                uuid: uuid::Uuid::nil(),
            },
            Error::FileNotFound(text()),
            Error::FileNotUploaded(text()),
            Error::FileDigest {
                announced: text(),
                found: text(),
            },
            Error::FilesFull(1),
            Error::LinkInvalid,
            Error::LinkExpired,
            Error::AuthContextMissing,
            Error::OriginMismatch {
                endpoint: text(),
                toolkit: text(),
            },
            Error::ProxyDenied(text()),
            Error::UpstreamFailed(text()),
            Error::UpstreamTimeout(text()),
            Error::LogNotFound(text()),
            Error::UsageNotFound(text()),
            Error::NoCassette(text()),
            Error::StorageFull,
            Error::Unavailable(text()),
            Error::Internal(text()),
        ]
    }

    #[test]
    fn every_error_has_slug_status_and_hint() {
        for error in samples() {
            let info = error.info();
            assert!((400..600).contains(&info.status), "{error:?}");
            // Clients know these two slugs by name.
            let is_named = info.slug.contains('_')
                || ["MissingAuthContext", "OriginMismatch"].contains(&info.slug);
            assert!(
                is_named && !info.hint.is_empty() && !info.hint.ends_with('.'),
                "{error:?}"
            );
        }
    }

    #[test]
    fn a_slug_has_one_code_and_one_status() {
        let mut seen = std::collections::HashMap::new();
        for error in samples() {
            let info = error.info();
            let known = seen
                .insert(info.slug, (info.code, info.status))
                .unwrap_or((info.code, info.status));
            assert_eq!(known, (info.code, info.status), "{}", info.slug);
        }
    }

    #[test]
    fn message_counts_problems_and_list_is_complete() {
        let error = Error::Invalid(vec!["a is missing".into(), "b is wrong".into()]);
        assert_eq!(
            error.to_string(),
            "the request is invalid: a is missing (and 1 more)"
        );
        assert_eq!(error.problems().len(), 2);
    }
}
