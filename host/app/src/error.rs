//! Everything this crate may refuse, and the one table of what that means to a caller.
//!
//! A room raises a variant; the table gives it a number, a slug, a status and a hint; the server renders it. A tool that ran
//! and failed is not an error but an answer, see [`crate::tools::Execution`].

use std::time::Duration;

/// Shorthand for what the rooms answer.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done. Nothing was changed when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    // who asks
    /// No key.
    #[error("no API key was given")]
    KeyMissing,
    /// Unknown, revoked, of a deleted project, or mistyped.
    #[error("Invalid API key: {shown}")]
    KeyInvalid {
        /// The first characters, then asterisks.
        shown: String,
    },
    /// More than one credential.
    #[error("more than one API key was given")]
    KeyAmbiguous,
    /// A working key of another kind.
    #[error("this operation takes {wanted} key, not {given} key")]
    KeyOfOtherKind {
        /// With its article, for example `an organization`.
        wanted: &'static str,
        /// The same for what was given.
        given: &'static str,
    },
    /// The key may not do this.
    #[error("this key may not {access} {area}")]
    KeyScope {
        /// `read` or `write`.
        access: &'static str,
        /// What is asked for.
        area: &'static str,
    },
    /// The key may not be used from there.
    #[error("this key may not be used from this address")]
    KeyAddress,
    /// Too many wrong keys from one address.
    #[error("too many failed authentications from this address")]
    TooManyFailures {
        /// When to try again.
        after: Duration,
    },
    /// An allowance is used up.
    #[error("{who} has used up its requests of the last ten minutes")]
    RateExceeded {
        /// Whose, with an article.
        who: &'static str,
        /// When to try again.
        after: Duration,
    },
    /// The project has too much under way. Nothing was started.
    #[error("the project has too many calls under way")]
    ProjectBusy,
    /// The address has too many bodies on their way. Nothing was started.
    #[error("too many request bodies are on their way from this address")]
    AddressBusy,
    /// The node has too much under way. Nothing was started.
    #[error("the server has too many calls under way")]
    NodeBusy,
    /// The operation took longer than it may.
    #[error("the operation took longer than {} s", .0.as_secs())]
    Deadline(Duration),

    // what is asked
    /// The request breaks rules; one line each.
    #[error("the request is invalid: {}", first(.0))]
    Invalid(Vec<String>),
    /// An id that cannot be one.
    #[error("`{given}` is not the id of {what}")]
    MalformedId {
        /// With its article, for example `an auth config`.
        what: &'static str,
        /// As given.
        given: String,
    },
    /// A page marker that this server did not make.
    #[error("the cursor cannot be read")]
    CursorInvalid,

    /// Another request came under the same key.
    #[error("the Idempotency-Key was used for another request")]
    IdempotencyKeyReused,
    /// The first request of the key is under way, or was cut off.
    #[error("the first request with this Idempotency-Key has not answered: it is under way, or was cut off")]
    IdempotencyUnanswered,
    /// The request was done, and its answer is not there.
    #[error("the request with this Idempotency-Key was done, and its answer was not kept")]
    IdempotencyAnswerGone,

    // projects
    /// No such project in the organisation.
    #[error("project {0} not found")]
    ProjectNotFound(String),
    /// The name is in use.
    #[error("a project named `{0}` exists already")]
    ProjectNameTaken(String),
    /// No such key in the project.
    #[error("API key {0} not found")]
    KeyNotFound(String),
    /// No such member in the organisation.
    #[error("member {0} not found")]
    MemberNotFound(String),
    /// The address is in use.
    #[error("a member with the address `{0}` exists already")]
    MemberTaken(String),

    // catalogue
    /// No such toolkit, or no such version of it.
    #[error("toolkit {0} not found")]
    ToolkitNotFound(String),
    /// No such tool in the version asked for.
    #[error("tool {slug} not found{}", in_version(.version))]
    ToolNotFound {
        /// As asked.
        slug: String,
        /// The version asked for, empty when none was.
        version: String,
    },
    /// Every version that could answer is deprecated.
    #[error("tool {0} is deprecated in every version")]
    ToolDeprecated(String),
    /// Other bytes stand under the version.
    #[error("version {version} of {slug} is published with other content")]
    VersionTaken {
        /// Toolkit.
        slug: String,
        /// Version.
        version: String,
    },
    /// The version would break what works with an earlier one of its day; one line each. 422 and not 409, which clients repeat.
    #[error("the version breaks what works with {slug} {version} of the same day: {}", first(.lines))]
    BreakingChange {
        /// Toolkit.
        slug: String,
        /// The earlier version.
        version: String,
        /// What breaks.
        lines: Vec<String>,
    },
    /// No such version of the toolkit.
    #[error("version {version} of toolkit {slug} not found")]
    VersionNotFound {
        /// Toolkit.
        slug: String,
        /// Version.
        version: String,
    },
    /// The component is broken, or asks for what does not exist here; one line each. 400: it is wrong on every server.
    #[error("the component cannot be published: {}", first(.0))]
    ComponentInvalid(Vec<String>),
    /// The component is larger than a component may be. 413: it was not looked at.
    #[error("the component is larger than 24 MiB")]
    ComponentTooLarge,
    /// Nothing is wrong with the component, but it holds more than one may, or compiling it took more than it may; one line
    /// each. 422: understood, and refused for its cost.
    #[error("the component is past a limit: {}", first(.0))]
    ComponentLimit(Vec<String>),
    /// This server takes signed components only.
    #[error("the component is not signed, and this server takes only what a key of `publish.trusted_keys` signed")]
    SignatureMissing,
    /// The signature is unreadable or of other bytes.
    #[error("the component's signature is not valid: {0}")]
    SignatureInvalid(String),
    /// The signature is by a key that the operator did not list.
    #[error("the component is signed by key {0}, which is not among `publish.trusted_keys`")]
    SignerUnknown(String),

    /// The platform broke too often while this version ran. Nothing was started.
    #[error("version {version} of toolkit {slug} is quarantined: the platform broke three times while it ran")]
    Quarantined {
        /// Toolkit.
        slug: String,
        /// Version.
        version: String,
    },

    // auth configs
    /// No such auth config in the project.
    #[error("auth config {0} not found")]
    AuthConfigNotFound(String),
    /// The server has no credentials of its own for the toolkit.
    #[error("toolkit {0} has no managed credentials on this server")]
    NoManagedAuth(String),
    /// The toolkit does not offer the scheme.
    #[error("toolkit {toolkit} cannot be connected with {scheme}")]
    SchemeNotOffered {
        /// Slug.
        toolkit: String,
        /// Name of the scheme.
        scheme: String,
    },

    // connected accounts
    /// No such account in the project.
    #[error("connected account {0} not found")]
    AccountNotFound(String),
    /// A general refusal.
    #[error("{0}")]
    AccountRefused(String),
    /// Fields of the scheme are missing or wrong; one line each.
    #[error("the connection lacks what the toolkit needs: {}", first(.0))]
    AccountFields(Vec<String>),

    /// A browser came with a secret that is none, was used, or has ended. It does not tell which.
    #[error("this way to connect an account is not valid: it was used, has ended, or began in another browser")]
    FlowUnknown,
    /// No account waits for the project's word under this name.
    #[error("no account waits to be completed under this `session_uri`")]
    SessionNotFound,
    /// The application does not take the credential.
    #[error("the application does not take the credential: {0}")]
    CredentialRejected(String),
    /// The toolkit names no request that tells whether a credential works.
    #[error("toolkit {0} has no way to tell whether a credential works")]
    CheckUnsupported(String),
    /// Somebody else renews the token, and it takes long.
    #[error("the token of connected account {0} is being renewed")]
    RefreshInProgress(String),
    /// The token has ended, and the application did not renew it; it is asked again.
    #[error("the token of connected account {account} has ended, and its application does not answer")]
    RefreshUnavailable {
        /// Id.
        account: String,
        /// When it is asked again.
        after: Duration,
    },
    /// The operator has no client for the toolkit.
    #[error("there is no OAuth app for toolkit {0}")]
    OauthAppNotFound(String),

    // running tools
    /// The user has no usable account.
    #[error("no active connected account of user `{user}` for toolkit {toolkit}")]
    NoAccount {
        /// The project's name for the person.
        user: String,
        /// Slug.
        toolkit: String,
    },
    /// The account named is not there.
    #[error("connected account {0} not found")]
    NamedAccountNotFound(String),
    /// An account was named, its user was not.
    #[error("connected account {0} was named without its user")]
    AccountUserMissing(String),
    /// The account belongs to somebody else.
    #[error("connected account {account} does not belong to user `{user}`")]
    AccountUserMismatch {
        /// Id.
        account: String,
        /// As given.
        user: String,
    },
    /// The account is shared, with others.
    #[error("connected account {account} is not shared with user `{user}`")]
    AccountNotShared {
        /// Id.
        account: String,
        /// As given.
        user: String,
    },
    /// The account exists and may not be used.
    #[error("connected account {account} is {state}")]
    AccountNotActive {
        /// Id.
        account: String,
        /// Its status, or what else holds it back.
        state: String,
    },
    /// The auth config forbids the tool.
    #[error("auth config {config} does not allow tool {tool}")]
    ToolNotAllowed {
        /// Id.
        config: String,
        /// Slug.
        tool: String,
    },
    /// Arguments break the tool's schema; one line each.
    #[error("the arguments do not fit {tool}: {}", first(.problems))]
    ArgumentsInvalid {
        /// Slug.
        tool: String,
        /// One line each.
        problems: Vec<String>,
    },
    /// Arguments from a sentence need a language model.
    #[error("arguments from text need a language model, and none is configured")]
    TextUnavailable,
    /// The model's answer breaks the tool's schema, twice; one line each.
    #[error("the language model found no arguments that fit {tool}: {}; its last answer was: {answer}", first(.problems))]
    TextNotUnderstood {
        /// Slug.
        tool: String,
        /// The beginning of it.
        answer: String,
        /// One line each.
        problems: Vec<String>,
    },
    /// The model could not be asked.
    #[error("the language model cannot be asked: {0}")]
    ModelFailed(String),

    // older clients
    /// No object of the project had the id.
    #[error("no {kind} has or had the id {uuid}")]
    LegacyNotFound {
        /// What was asked for.
        kind: &'static str,
        /// As asked.
        uuid: uuid::Uuid,
    },
    /// The object is deleted.
    #[error("the {kind} with the id {uuid} is deleted")]
    LegacyGone {
        /// What was asked for.
        kind: &'static str,
        /// As asked.
        uuid: uuid::Uuid,
    },

    // requests of the caller's own
    /// Neither an account nor a credential came with it.
    #[error("the request names neither an account nor a credential to send it with")]
    AuthContextMissing,
    /// It would leave the application that the credential belongs to.
    #[error("{endpoint} is not an address of {toolkit}")]
    OriginMismatch {
        /// As given, without its query.
        endpoint: String,
        /// Slug.
        toolkit: String,
    },
    /// The way out does not lead there.
    #[error("the request was not let through: {0}")]
    PassageDenied(String),
    /// The application did not answer properly.
    #[error("the application gave no answer: {0}")]
    UpstreamFailed(String),
    /// The application did not answer in time.
    #[error("the application did not answer in time: {0}")]
    UpstreamTimeout(String),

    // files
    /// No such file in the project.
    #[error("file {0} not found")]
    FileNotFound(String),
    /// A place was made for the file, and nothing was put there.
    #[error("file {0} was never uploaded")]
    FileNotUploaded(String),
    /// Other bytes than those announced. Nothing was kept.
    #[error("the file has MD5 {found}, and {announced} was announced")]
    FileDigest {
        /// When the upload was asked for.
        announced: String,
        /// Of what came.
        found: String,
    },
    /// The project has as many bytes of files as it may. Nothing was kept.
    #[error("the project's files have at most {0} MiB together, and this one would be past it")]
    FilesFull(u64),
    /// Not a link of this server, or changed.
    #[error("the link to the file is not valid")]
    LinkInvalid,
    /// A link past its end.
    #[error("the link to the file has expired")]
    LinkExpired,

    /// No such record in the project.
    #[error("log {0} not found")]
    LogNotFound(String),

    /// Nothing of that name is counted.
    #[error("usage of `{0}` is not counted")]
    UsageNotFound(String),
    /// The run was not recorded.
    #[error("there is no cassette of log {0}")]
    NoCassette(String),

    // the house
    /// The disk is full.
    #[error("the server's storage is full")]
    StorageFull,
    /// Something the server needs does not answer.
    #[error("the server cannot do this now: {0}")]
    Unavailable(String),
    /// A fault of ours. The text is for the server's log, not for callers.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What a variant means to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Private to the platform.
    pub code: u32,
    /// Stable, for programs.
    pub slug: &'static str,
    /// In the numbering every client knows.
    pub status: u16,
    /// What to do about it.
    pub fix: &'static str,
}

const fn row(code: u32, slug: &'static str, status: u16, fix: &'static str) -> Row {
    Row { code, slug, status, fix }
}

impl Error {
    /// The table.
    #[must_use]
    #[rustfmt::skip]
    pub fn row(&self) -> Row {
        match self {
            Self::KeyMissing => row(10401, "HTTP_Unauthorized", 401, "send the project key, or the organization key where the operation asks for it"),
            Self::KeyInvalid { .. } => row(10401, "HTTP_Unauthorized", 401, "check the key, or make a new one; a deleted key never works again"),
            Self::KeyAmbiguous => row(10401, "HTTP_Unauthorized", 401, "send exactly one key"),
            Self::KeyOfOtherKind { .. } => row(10401, "HTTP_Unauthorized", 401, "send the other kind of key in its own header"),
            Self::KeyScope { .. } => row(10403, "HTTP_Forbidden", 403, "use a key whose permissions have this area, or one without restrictions"),
            Self::KeyAddress => row(10433, "HTTP_AddressNotAllowed", 403, "send it from an address among the key's `allowed_ips`, or use another key"),
            Self::TooManyFailures { .. } => row(10430, "HTTP_TooManyFailedAuthentications", 429, "wait, then send a working key"),
            Self::RateExceeded { .. } => row(10429, "HTTP_TooManyRequests", 429, "wait, or raise `limits.rate`, `limits.rate_per_project` or `limits.rate_per_key`"),
            Self::ProjectBusy => row(10431, "Server_ProjectBusy", 429, "nothing was started: try again in a moment"),
            Self::AddressBusy => row(10435, "Server_AddressBusy", 429, "nothing was started: try again when the other requests have been sent"),
            Self::NodeBusy => row(10503, "Server_Busy", 503, "nothing was started: try again in a moment"),
            Self::Deadline(_) => row(10504, "Server_DeadlineExceeded", 503, "try again; ask for less at once if it happens again"),

            Self::Invalid(_) => row(10400, "Request_Invalid", 400, "correct what `errors` lists"),
            Self::MalformedId { .. } => row(10422, "Request_MalformedId", 400, "use the id as the server gave it"),
            Self::CursorInvalid => row(10423, "Request_CursorInvalid", 400, "use `next_cursor` as it was answered, or leave the cursor out"),

            Self::IdempotencyKeyReused => row(10424, "Idempotency_KeyReused", 422, "send a new key with every new request, and the same one only with the very same request"),
            Self::IdempotencyUnanswered => row(10425, "Idempotency_Unanswered", 409, "ask again in a moment; if it stays so, look what the first request did, and use a new key"),
            Self::IdempotencyAnswerGone => row(10426, "Idempotency_AnswerGone", 409, "look what the first request did; answers above 1 MiB, those past `limits.answers_mib` of a day, and those of tools for projects that store no data, are not kept"),

            Self::ProjectNotFound(_) => row(701, "Project_NotFound", 404, "list the projects of the organization"),
            Self::ProjectNameTaken(_) => row(702, "Project_NameTaken", 400, "choose another name"),
            Self::KeyNotFound(_) => row(703, "Project_KeyNotFound", 404, "list the keys of the project"),
            Self::MemberNotFound(_) => row(704, "Organization_MemberNotFound", 404, "list the members of the organization"),
            Self::MemberTaken(_) => row(705, "Organization_MemberTaken", 400, "remove the member first, or use another address"),

            Self::ToolkitNotFound(_) => row(2501, "Toolkit_NotFound", 404, "list the toolkits to see the slugs"),
            Self::ToolNotFound { .. } => row(2401, "Tool_ToolNotFound", 404, "list the tools to see the slugs, and `available_versions` for the versions"),
            Self::ToolDeprecated(_) => row(2410, "Tool_ToolDeprecated", 410, "name an exact version to go on using it"),
            Self::VersionTaken { .. } => row(2502, "Toolkit_VersionTaken", 409, "publish under a new version; what is published never changes"),
            Self::VersionNotFound { .. } => row(2506, "Toolkit_VersionNotFound", 404, "read the toolkit to see its `available_versions`"),
            Self::ComponentInvalid(_) => row(2503, "Toolkit_ComponentInvalid", 400, "correct what `errors` lists; `toolkit check` finds the same before publishing"),
            Self::ComponentTooLarge => row(2504, "Toolkit_ComponentTooLarge", 413, "leave out dependencies or data"),
            Self::ComponentLimit(_) => row(2505, "Toolkit_ComponentLimit", 422, "make the component smaller or simpler; the limits of compiling are settings of the server"),
            Self::Quarantined { .. } => row(2507, "Toolkit_Quarantined", 503, "nothing was started: use or publish another version, or tell the operator, whose log has the reason; a restart ends it"),
            Self::BreakingChange { .. } => row(2511, "Toolkit_BreakingChange", 422, "publish it under another day, or say that you mean it: `toolkit publish --breaking`, or `?breaking=true`"),
            Self::SignatureMissing => row(2508, "Toolkit_SignatureMissing", 403, "sign the component with `toolkit sign`, and send the signature in `x-toolkit-signature`"),
            Self::SignatureInvalid(_) => row(2509, "Toolkit_SignatureInvalid", 403, "sign these very bytes again with `toolkit sign`"),
            Self::SignerUnknown(_) => row(2510, "Toolkit_SignerUnknown", 403, "sign with a trusted key, or have the operator add this one to `publish.trusted_keys`"),

            Self::AuthConfigNotFound(_) => row(301, "Auth_Config_NotFound", 404, "list the auth configs of the project"),
            Self::NoManagedAuth(_) => row(306, "Auth_Config_DefaultAuthConfigNotFound", 400, "create the auth config with type `use_custom_auth` and an `authScheme`, or have the operator keep an OAuth app for the toolkit"),
            Self::SchemeNotOffered { .. } => row(302, "Auth_Config_SchemeNotOffered", 400, "read the toolkit to see its `auth_config_details`"),

            Self::AccountNotFound(_) => row(601, "ConnectedAccount_NotFound", 404, "list the connected accounts of the project"),
            Self::AccountRefused(_) => row(600, "ConnectedAccount_BadRequest", 400, "correct the request"),
            Self::AccountFields(_) => row(612, "ConnectedAccount_MissingRequiredFields", 400, "send the fields that `errors` lists in `connection.state.val`"),

            Self::FlowUnknown => row(610, "ConnectedAccount_FlowInvalid", 400, "begin again with a new link, and go through it once, in one browser"),
            Self::SessionNotFound => row(611, "ConnectedAccount_SessionNotFound", 404, "complete each `session_uri` once, within ten minutes"),
            Self::CredentialRejected(_) => row(613, "ConnectedAccount_CredentialRejected", 400, "correct the credential, or make a new one at the application"),
            Self::CheckUnsupported(_) => row(614, "ConnectedAccount_CheckUnsupported", 501, "leave `validate_credentials` out, and run a tool to see"),
            Self::RefreshInProgress(_) => row(615, "ConnectedAccount_RefreshInProgress", 503, "nothing was sent: try again in a moment"),
            Self::RefreshUnavailable { .. } => row(616, "ConnectedAccount_RefreshUnavailable", 503, "nothing was sent: try again later; the account stays connected"),
            Self::OauthAppNotFound(_) => row(308, "Oauth_App_NotFound", 404, "list the OAuth apps, or keep one with `toolhost oauth-apps set`"),

            Self::NamedAccountNotFound(_) | Self::NoAccount { .. } => row(1810, "ActionExecute_ConnectedAccountNotFound", 404, "connect an account for this user first, or name one that is shared with the user in `connected_account_id`"),
            Self::AccountUserMissing(_) => row(1811, "ActionExecute_ConnectedAccountEntityIdRequired", 400, "send `user_id` with `connected_account_id`"),
            Self::AccountUserMismatch { .. } => row(1812, "ActionExecute_ConnectedAccountEntityIdMismatch", 400, "send the `user_id` that the account was connected for"),
            Self::AccountNotShared { .. } => row(1815, "ActionExecute_ConnectedAccountNotShared", 403, "change the account's `experimental.acl_config_for_shared`, or use an account of this user's own"),
            Self::AccountNotActive { .. } => row(1813, "ActionExecute_ConnectedAccountExpired", 422, "enable or reconnect the account, or use another one"),
            Self::ToolNotAllowed { .. } => row(1814, "ActionExecute_ToolNotAllowed", 403, "use a tool that the auth config allows, or change its `tool_access_config`"),
            Self::ArgumentsInvalid { .. } => row(1820, "ActionExecute_ArgumentsInvalid", 400, "correct what `errors` lists; `input_parameters` of the tool is the schema"),
            Self::TextUnavailable => row(1821, "ActionExecute_TextUnavailable", 501, "send `arguments`, or have the operator set `llm.base_url` and `llm.model`"),
            Self::TextNotUnderstood { .. } => row(1822, "ActionExecute_TextNotUnderstood", 422, "say in `text` what `errors` misses, or send `arguments`"),
            Self::ModelFailed(_) => row(1823, "ActionExecute_ModelFailed", 502, "try again, or send `arguments`; the operator's settings of the model are `llm.*`"),

            Self::LegacyNotFound { .. } => row(2601, "Migration_NotFound", 404, "check `uuid` and `type`; pairs of an older system come in by `toolhost import-legacy`"),
            Self::LegacyGone { .. } => row(2602, "Migration_ObjectDeleted", 410, "make a new one; what is deleted does not come back"),

            Self::AuthContextMissing => row(1830, "MissingAuthContext", 400, "send `connected_account_id` or `custom_connection_data`"),
            Self::OriginMismatch { .. } => row(1831, "OriginMismatch", 400, "send a path below the application's base URL, or an absolute https URL of the same domain"),
            Self::PassageDenied(_) => row(1832, "ActionProxy_Denied", 403, "send the request to a public address of the application; it may redirect within its own domain only"),
            Self::UpstreamFailed(_) => row(1833, "ActionProxy_UpstreamFailed", 502, "try again, or look whether the application is down"),
            Self::UpstreamTimeout(_) => row(1834, "ActionProxy_UpstreamTimeout", 504, "try again; ask the application for less at once if it happens again"),

            Self::FileNotFound(_) => row(2701, "File_NotFound", 404, "ask for a new upload with `files/upload/request`"),
            Self::FileNotUploaded(_) => row(2702, "File_NotUploaded", 400, "PUT the bytes to the `new_presigned_url` of its upload request first"),
            Self::FileDigest { .. } => row(2703, "File_DigestMismatch", 400, "send the bytes that the upload was asked for, or ask for an upload of these"),
            Self::FilesFull(_) => row(2706, "File_QuotaExceeded", 507, "wait until old files are let go (`files.keep_days`), or have the operator raise `files.quota_mib`"),
            Self::LinkInvalid => row(2704, "File_LinkInvalid", 403, "use the link as it was answered, with the method it is for"),
            Self::LinkExpired => row(2705, "File_LinkExpired", 403, "ask for a new link"),

            Self::LogNotFound(_) => row(801, "Log_NotFound", 404, "list the logs of the project"),
            Self::UsageNotFound(_) => row(803, "Usage_NotFound", 404, "ask for `tool_execution`"),
            Self::NoCassette(_) => row(802, "Log_NoCassette", 404, "runs are recorded as `logs.cassettes` says, up to `logs.cassette_kib`, for projects that store data"),

            Self::StorageFull => row(10507, "Server_StorageFull", 507, "tell the operator to make room; nothing was changed"),
            Self::Unavailable(_) => row(10503, "Server_Unavailable", 503, "try again in a moment"),
            Self::Internal(_) => row(10500, "Server_InternalError", 500, "tell the operator the `request_id`; the server's log has the reason"),
        }
    }

    /// One line per problem, where there may be several.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        match self {
            Self::Invalid(lines)
            | Self::ComponentInvalid(lines)
            | Self::ComponentLimit(lines)
            | Self::AccountFields(lines)
            | Self::BreakingChange { lines, .. }
            | Self::TextNotUnderstood { problems: lines, .. }
            | Self::ArgumentsInvalid { problems: lines, .. } => lines,
            _ => &[],
        }
    }

    /// When to try again, where trying again makes sense.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyFailures { after }
            | Self::RateExceeded { after, .. }
            | Self::RefreshUnavailable { after, .. } => Some(*after),
            Self::IdempotencyUnanswered
            | Self::RefreshInProgress(_)
            | Self::ProjectBusy
            | Self::AddressBusy
            | Self::NodeBusy
            | Self::Unavailable(_)
            | Self::Deadline(_) => Some(Duration::from_secs(1)),
            _ => None,
        }
    }

    /// One problem with the request.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(vec![problem.into()])
    }
}

fn first(lines: &[String]) -> String {
    match lines {
        [] => "no detail".into(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

fn in_version(version: &str) -> String {
    if version.is_empty() { String::new() } else { format!(" in version {version}") }
}

impl From<store::Error> for Error {
    fn from(cause: store::Error) -> Self {
        match cause {
            store::Error::Full => Self::StorageFull,
            store::Error::Unavailable(_) => Self::Unavailable(cause.to_string()),
            // Damage, or a query of ours that the store does not know.
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
        let after = Duration::from_secs(3);
        vec![
            Error::KeyMissing,
            Error::KeyInvalid { shown: text() },
            Error::KeyAmbiguous,
            Error::KeyOfOtherKind { wanted: "a project", given: "an organization" },
            Error::TooManyFailures { after },
            Error::RateExceeded { who: "the organization", after },
            Error::KeyScope { access: "read", area: "tools" },
            Error::KeyAddress,
            Error::KeyNotFound(text()),
            Error::MemberNotFound(text()),
            Error::MemberTaken(text()),
            Error::ProjectBusy,
            Error::AddressBusy,
            Error::NodeBusy,
            Error::Deadline(after),
            Error::Invalid(lines()),
            Error::MalformedId { what: "an account", given: text() },
            Error::CursorInvalid,
            Error::IdempotencyKeyReused,
            Error::IdempotencyUnanswered,
            Error::IdempotencyAnswerGone,
            Error::ProjectNotFound(text()),
            Error::ProjectNameTaken(text()),
            Error::ToolkitNotFound(text()),
            Error::ToolNotFound { slug: text(), version: text() },
            Error::ToolDeprecated(text()),
            Error::VersionTaken { slug: text(), version: text() },
            Error::VersionNotFound { slug: text(), version: text() },
            Error::ComponentInvalid(lines()),
            Error::ComponentTooLarge,
            Error::ComponentLimit(lines()),
            Error::Quarantined { slug: text(), version: text() },
            Error::BreakingChange { slug: text(), version: text(), lines: lines() },
            Error::SignatureMissing,
            Error::SignatureInvalid(text()),
            Error::SignerUnknown(text()),
            Error::AuthConfigNotFound(text()),
            Error::NoManagedAuth(text()),
            Error::SchemeNotOffered { toolkit: text(), scheme: text() },
            Error::AccountNotFound(text()),
            Error::AccountRefused(text()),
            Error::AccountFields(lines()),
            Error::FlowUnknown,
            Error::SessionNotFound,
            Error::CredentialRejected(text()),
            Error::CheckUnsupported(text()),
            Error::RefreshInProgress(text()),
            Error::RefreshUnavailable { account: text(), after },
            Error::OauthAppNotFound(text()),
            Error::NoAccount { user: text(), toolkit: text() },
            Error::NamedAccountNotFound(text()),
            Error::AccountUserMissing(text()),
            Error::AccountUserMismatch { account: text(), user: text() },
            Error::AccountNotShared { account: text(), user: text() },
            Error::AccountNotActive { account: text(), state: text() },
            Error::ToolNotAllowed { config: text(), tool: text() },
            Error::ArgumentsInvalid { tool: text(), problems: lines() },
            Error::TextUnavailable,
            Error::TextNotUnderstood { tool: text(), answer: text(), problems: lines() },
            Error::ModelFailed(text()),
            Error::LegacyNotFound { kind: "x", uuid: uuid::Uuid::nil() },
            Error::LegacyGone { kind: "x", uuid: uuid::Uuid::nil() },
            Error::FileNotFound(text()),
            Error::FileNotUploaded(text()),
            Error::FileDigest { announced: text(), found: text() },
            Error::FilesFull(1),
            Error::LinkInvalid,
            Error::LinkExpired,
            Error::AuthContextMissing,
            Error::OriginMismatch { endpoint: text(), toolkit: text() },
            Error::PassageDenied(text()),
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
    fn every_row_has_a_slug_a_status_of_an_error_and_a_hint() {
        for error in samples() {
            let row = error.row();
            assert!((400..600).contains(&row.status), "{error:?}");
            // Clients know these two by name.
            let is_named = row.slug.contains('_') || ["MissingAuthContext", "OriginMismatch"].contains(&row.slug);
            assert!(is_named && !row.fix.is_empty() && !row.fix.ends_with('.'), "{error:?}");
        }
    }

    #[test]
    fn a_slug_has_one_code_and_one_status() {
        let mut seen = std::collections::HashMap::new();
        for error in samples() {
            let row = error.row();
            let before = seen.insert(row.slug, (row.code, row.status)).unwrap_or((row.code, row.status));
            assert_eq!(before, (row.code, row.status), "{}", row.slug);
        }
    }

    #[test]
    fn several_problems_are_counted_in_the_message_and_listed_whole() {
        let error = Error::Invalid(vec!["a is missing".into(), "b is wrong".into()]);
        assert_eq!(error.to_string(), "the request is invalid: a is missing (and 1 more)");
        assert_eq!(error.problems().len(), 2);
    }
}
