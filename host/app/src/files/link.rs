//! Signed links to one file, for one method, until an expiry time.
//!
//! A link allows its holder exactly one operation. It contains method, file, digest, media type,
//! size and expiry time, and a keyed hash over all of them. The key is derived from the vault's key
//! and stored nowhere.

use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use store::{SignedOperation, Time};
use zeroize::Zeroizing;

use super::File;
use crate::{
    Result,
    core::{
        ids::{FileId, ProjectId},
        vault::Vault,
    },
    files::errors,
};

/// A link and the properties of its file.
#[derive(Debug, Clone)]
pub struct Link {
    /// The URL, with all parameters.
    pub url: String,
    /// The headers that a request must have if the bucket answers it directly.
    pub headers: Vec<(String, String)>,
    /// The media type of the file.
    pub media_type: String,
    /// The size of the file in bytes, if it is known.
    pub size: Option<u64>,
    /// The expiry time.
    pub expires_at: Time,
}

/// The rights that a link grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The project that owns the file.
    pub project: ProjectId,
    /// The id of the file.
    pub id: FileId,
    /// The expiry time.
    pub expires_at: Time,
}

/// The signer and verifier of links to this server.
pub struct Links {
    key: Zeroizing<[u8; 32]>,
    base_url: OnceLock<String>,
}

/// The query parameters of a link, in the order in which they are written.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    /// The expiry time, in epoch milliseconds.
    pub expires: String,
    /// The MD5 of the file.
    pub md5: String,
    /// The media type of the file.
    pub media_type: String,
    /// The maximum size of a request body, in bytes.
    pub size: String,
    /// The keyed hash over all parts, in hexadecimal.
    pub signature: String,
}

impl Links {
    /// Creates a signer whose key is derived from the vault.
    #[must_use]
    pub fn new(vault: &Vault) -> Self {
        Self {
            key: vault.derive("links to files"),
            base_url: OnceLock::new(),
        }
    }

    /// Sets the base URL of this server, once it is known.
    pub fn set_base_url(&self, base_url: &str) {
        // The base URL is set only once, at start.
        let _ = self.base_url.set(base_url.to_owned());
    }

    /// Returns the base URL of this server, or an empty text before it is known.
    pub(crate) fn base_url(&self) -> &str {
        self.base_url.get().map(String::as_str).unwrap_or_default()
    }

    pub(super) fn sign(
        &self,
        method: SignedOperation,
        ticket: &Ticket,
        file: &File,
        size: u64,
    ) -> String {
        let mut parameters = Parameters {
            expires: ticket.expires_at.0.to_string(),
            md5: file.md5.clone(),
            media_type: file.media_type.clone(),
            size: size.to_string(),
            signature: String::new(),
        };
        let (project, id) = (ticket.project.as_str(), ticket.id.as_str());
        let mac = self.mac(method, project, id, &parameters).finalize();
        parameters.signature = hex::encode(mac.into_bytes());
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("expires", &parameters.expires)
            .append_pair("md5", &parameters.md5)
            .append_pair("type", &parameters.media_type)
            .append_pair("size", &parameters.size)
            .append_pair("signature", &parameters.signature)
            .finish();
        let base_url = self.base_url();
        format!("{base_url}/files/{project}/{id}?{query}")
    }

    /// Verifies a link. Returns the rights that it grants, and the maximum size of the body in
    /// bytes. Fails if the link was not made by this server, was changed, or has expired.
    pub fn verify(
        &self,
        method: SignedOperation,
        project: &str,
        id: &str,
        given: &Parameters,
        now: Time,
    ) -> Result<(Ticket, u64)> {
        let signature = hex::decode(&given.signature).map_err(|_| errors::link_invalid())?;
        // The comparison takes constant time.
        let verified = self
            .mac(method, project, id, given)
            .verify_slice(&signature);
        verified.map_err(|_| errors::link_invalid())?;
        let expires_at = Time(parse_number(&given.expires)?);
        if expires_at <= now {
            return Err(errors::link_expired());
        }
        let size = u64::try_from(parse_number(&given.size)?).map_err(|_| errors::link_invalid())?;
        let ticket = Ticket {
            project: ProjectId::parse(project)?,
            id: FileId::parse(id)?,
            expires_at,
        };
        Ok((ticket, size))
    }

    /// Computes the keyed hash. Each part is preceded by its length, so that no two links give the
    /// same input.
    fn mac(
        &self,
        method: SignedOperation,
        project: &str,
        id: &str,
        parameters: &Parameters,
    ) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key)
            .expect("this hash takes keys of every length");
        let Parameters {
            expires,
            md5,
            media_type,
            size,
            ..
        } = parameters;
        for part in [method.method(), project, id, md5, media_type, size, expires] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

fn parse_number(text: &str) -> Result<i64> {
    text.parse().map_err(|_| errors::link_invalid())
}

#[cfg(test)]
mod tests;
