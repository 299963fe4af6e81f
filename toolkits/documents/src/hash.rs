//! Digests.

use data_encoding::{BASE64, HEXLOWER, HEXLOWER_PERMISSIVE};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use toolkit_sdk::prelude::*;

/// Max size of a file in bytes. Files are read into memory.
const MAX_FILE_BYTES: u64 = 20_000_000;

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Md5,
    Sha1,
    #[default]
    Sha256,
    Sha512,
}

/// Encoding of the bytes in `text`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Utf8,
    Hex,
    Base64,
}

/// Encoding of the digest.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Spelling {
    #[default]
    Hex,
    Base64,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Content {
    /// Text to hash. Give `text` or `file`.
    text: Option<String>,
    /// File to hash, at most 20 MB.
    file: Option<File>,
    #[serde(default)]
    text_encoding: Encoding,
    #[serde(default)]
    algorithm: Algorithm,
    #[serde(default)]
    digest_encoding: Spelling,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Digested {
    digest: String,
    algorithm: Algorithm,
    /// Number of hashed bytes.
    size: usize,
}

/// Computes the MD5, SHA-1, SHA-256 or SHA-512 digest of a file, of text, or of bytes given as hex
/// or base64. Use it to compare content or to check a published checksum; MD5 and SHA-1 are not
/// safe against forgery.
#[tool(
    read_only,
    idempotent,
    example = r#"{"text": "hello", "algorithm": "sha256"}"#
)]
pub(crate) fn hash(input: Content) -> Result<Digested> {
    let bytes = match (input.text, input.file) {
        (Some(text), None) => decoded(&text, &input.text_encoding)?,
        (None, Some(file)) => file.read(MAX_FILE_BYTES)?,
        _ => return Err(ToolError::invalid_input("give either `text` or `file`")),
    };
    let raw_digest = match input.algorithm {
        Algorithm::Md5 => Md5::digest(&bytes).to_vec(),
        Algorithm::Sha1 => Sha1::digest(&bytes).to_vec(),
        Algorithm::Sha256 => Sha256::digest(&bytes).to_vec(),
        Algorithm::Sha512 => Sha512::digest(&bytes).to_vec(),
    };
    let digest = match input.digest_encoding {
        Spelling::Hex => HEXLOWER.encode(&raw_digest),
        Spelling::Base64 => BASE64.encode(&raw_digest),
    };
    Ok(Digested {
        digest,
        algorithm: input.algorithm,
        size: bytes.len(),
    })
}

fn decoded(text: &str, encoding: &Encoding) -> Result<Vec<u8>> {
    let digits = text.trim_ascii().as_bytes();
    let bytes = match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Hex => HEXLOWER_PERMISSIVE
            .decode(digits)
            .map_err(|error| format!("`text` is not hex: {error}")),
        Encoding::Base64 => BASE64
            .decode(digits)
            .map_err(|error| format!("`text` is not base64: {error}")),
    };
    bytes.map_err(ToolError::invalid_input)
}
