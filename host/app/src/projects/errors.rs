//! Errors of organizations, projects, members, keys and idempotency keys.

use std::fmt::Display;

use crate::core::error::SHORT_WAIT;
pub use crate::core::errors::*;

crate::error_table! { pub table:
    /// The project does not exist in the organization.
    PROJECT_NOT_FOUND = project_not_found(id: impl Display): NotFound, 701, "Project_NotFound",
        "project {id} not found",
        "list the projects of the organization";
    /// The project name is in use.
    PROJECT_NAME_TAKEN = project_name_taken(name: impl Display): Invalid, 702, "Project_NameTaken",
        "a project named `{name}` already exists",
        "choose another name", at("name");
    /// The member does not exist in the organization.
    MEMBER_NOT_FOUND = member_not_found(id: impl Display): NotFound, 704, "Organization_MemberNotFound",
        "member {id} not found",
        "list the members of the organization";
    /// The email address is in use.
    MEMBER_TAKEN = member_taken(email: impl Display): Invalid, 705, "Organization_MemberTaken",
        "a member with the email address `{email}` already exists",
        "remove the member first, or use another email address", at("email");

    /// The project has as many records of a kind as it may have, by a setting.
    TOO_MANY_RECORDS = too_many_records(what: &str, most: u64): StorageFull, 706, "Project_TooManyRecords",
        "the project may have at most {most} {what}, and has as many",
        "delete those that are not needed any more, or ask the operator to raise `limits.accounts_per_project`";
    /// The project has as many records of a kind as any project may have.
    TOO_MANY_FIXED_RECORDS = too_many_fixed_records(what: &str, most: u64): StorageFull, 706, "Project_TooManyRecords",
        "the project may have at most {most} {what}, and has as many",
        "delete those that are not needed any more; the number is the same for every project";
    /// The project has added too many bytes of records in a day.
    RECORDS_FULL = records_full(): StorageFull, 707, "Project_RecordQuotaExceeded",
        "the project has added as many bytes of records as it may in a day",
        "retry in some hours, or ask the operator to raise `limits.records_mib`";

    /// The key does not exist in the project.
    KEY_NOT_FOUND = key_not_found(id: impl Display): NotFound, 703, "Project_KeyNotFound",
        "API key {id} not found",
        "list the keys of the project";
    /// The key is unknown, revoked, mistyped, or belongs to a deleted project. Its first characters
    /// are shown, followed by asterisks.
    KEY_INVALID = key_invalid(shown: impl Display): Unauthenticated, 10401, "HTTP_Unauthorized",
        "Invalid API key: {shown}",
        "check the key, or create a new one; a deleted key stays invalid";
    /// The key or access token of a request was revoked after the request had started. What had not
    /// started by then did not run.
    CREDENTIAL_REVOKED = credential_revoked(): Unauthenticated, 10401, "HTTP_Unauthorized",
        "the key or access token of the request was revoked, or is required by now, so that nothing more of the request begins",
        "check what has run already, and continue with a valid key or token";
    /// The permissions of the key do not include this access.
    KEY_PERMISSION = key_permission(access: &str, area: &str): Forbidden, 10403, "HTTP_Forbidden",
        "the key has no {access} permission for {area}",
        "use a key whose permissions include one of these areas";

    /// Another request used the same idempotency key.
    IDEMPOTENCY_KEY_REUSED = idempotency_key_reused(): Unprocessable, 10424, "Idempotency_KeyReused",
        "the idempotency key was used for another request",
        "use a new key for each request; reuse a key only to repeat exactly the same request";
    /// The first request with the key is still running or was interrupted.
    IDEMPOTENCY_PENDING = idempotency_pending(): Conflict, 10425, "Idempotency_Unanswered",
        "the first request with this idempotency key has no response: it is still running, or it was interrupted",
        "retry after a moment; if the error remains, check the effect of the first request and use a new key",
        with_retry_after(SHORT_WAIT);
    /// The request was done, but its response was not kept.
    IDEMPOTENCY_RESPONSE_GONE = idempotency_response_gone(): Conflict, 10426, "Idempotency_AnswerGone",
        "the request with this idempotency key was done, and its response was not stored",
        "check the effect of the first request; the server does not store responses above 1 MiB, responses beyond an eighth of `limits.records_mib` per day, and responses of tools for the key of a member or for a project that stores no data";
}
