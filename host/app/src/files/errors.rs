//! Errors of files and of the links to them.

use std::fmt::Display;

pub use crate::catalog::errors::*;

crate::error_table! { pub table:
    /// The file does not exist in the project.
    FILE_NOT_FOUND = file_not_found(id: impl Display): NotFound, 2701, "File_NotFound",
        "file {id} not found",
        "request a new upload with `files/upload/request`";
    /// The upload was requested, but no bytes were uploaded.
    FILE_NOT_UPLOADED = file_not_uploaded(id: impl Display): Invalid, 2702, "File_NotUploaded",
        "file {id} has not been uploaded",
        "PUT the bytes to the `new_presigned_url` of its upload request first";
    /// The uploaded bytes have another MD5 than was announced. Nothing was kept.
    FILE_DIGEST = file_digest(announced: impl Display, found: impl Display): Invalid, 2703, "File_DigestMismatch",
        "the uploaded bytes have the MD5 {found}, and the upload request announced {announced}",
        "send the bytes with the announced MD5, or request a new upload for these bytes";
    /// The project's files have reached their maximum total size. Nothing was kept.
    FILES_FULL = files_full(quota_mib: u64): StorageFull, 2706, "File_QuotaExceeded",
        "the file would exceed the quota of {quota_mib} MiB for all files of the project",
        "wait until old files are erased (`files.keep_days`), or ask the operator to raise `files.quota_mib`";
    /// The link was not made by this server, or was changed.
    LINK_INVALID = link_invalid(): Forbidden, 2704, "File_LinkInvalid",
        "the link to the file is not valid",
        "use the link exactly as the server returned it, with its method";
    /// The link has expired.
    LINK_EXPIRED = link_expired(): Forbidden, 2705, "File_LinkExpired",
        "the link to the file has expired",
        "request a new link";
}
