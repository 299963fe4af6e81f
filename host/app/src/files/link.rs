//! Links to one file, for one method, until one moment.
//!
//! Whoever has a link may do what it says and nothing else: it names method, file, digest, media type, size and end, and
//! carries a keyed hash over all of them. The key is derived from the vault's and stored nowhere.

use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use store::{Signed, Time};
use zeroize::Zeroizing;

use super::File;
use crate::{
    Error, Result,
    ids::{FileId, ProjectId},
    vault::Vault,
};

/// A link and what it leads to.
#[derive(Debug, Clone)]
pub struct Link {
    /// With everything it needs.
    pub url: String,
    /// Headers that a request must have, where the bucket itself answers it.
    pub headers: Vec<(String, String)>,
    /// Of the file.
    pub media_type: String,
    /// Of the file in bytes, where it is known.
    pub size: Option<u64>,
    /// Then it ends.
    pub expires_at: Time,
}

/// What a link allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The owner of the file.
    pub project: ProjectId,
    /// The file.
    pub id: FileId,
    /// Then it ends.
    pub expires_at: Time,
}

/// Makes links to this server, and reads them.
pub struct Links {
    key: Zeroizing<[u8; 32]>,
    address: OnceLock<String>,
}

/// Parameters of a link's query, in the order in which they are written.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    /// Milliseconds since 1970.
    pub expires: String,
    /// Of the file.
    pub md5: String,
    /// Media type of the file.
    pub media_type: String,
    /// Bytes that a request may carry.
    pub size: String,
    /// Over everything, in hexadecimal.
    pub signature: String,
}

impl Links {
    /// Derives the key.
    #[must_use]
    pub fn new(vault: &Vault) -> Self {
        Self { key: vault.derive("links to files"), address: OnceLock::new() }
    }

    /// Says where clients reach this server, once it is known.
    pub fn lead_to(&self, address: &str) {
        // Said once, at the start.
        let _ = self.address.set(address.to_owned());
    }

    /// Where clients reach this server; empty before it is known.
    pub(crate) fn address(&self) -> &str {
        self.address.get().map(String::as_str).unwrap_or_default()
    }

    /// Writes a link.
    pub(super) fn sign(&self, way: Signed, ticket: &Ticket, file: &File, size: u64) -> String {
        let mut parameters = Parameters {
            expires: ticket.expires_at.0.to_string(),
            md5: file.md5.clone(),
            media_type: file.media_type.clone(),
            size: size.to_string(),
            signature: String::new(),
        };
        let (project, id) = (ticket.project.as_str(), ticket.id.as_str());
        parameters.signature = hex::encode(self.mac(way, project, id, &parameters).finalize().into_bytes());
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("expires", &parameters.expires)
            .append_pair("md5", &parameters.md5)
            .append_pair("type", &parameters.media_type)
            .append_pair("size", &parameters.size)
            .append_pair("signature", &parameters.signature)
            .finish();
        let address = self.address();
        format!("{address}/files/{project}/{id}?{query}")
    }

    /// Reads a link. Answers what it allows, and how many bytes.
    ///
    /// # Errors
    /// When it is not one of ours as it stands, or has ended.
    pub fn read(&self, way: Signed, project: &str, id: &str, given: &Parameters, now: Time) -> Result<(Ticket, u64)> {
        let signature = hex::decode(&given.signature).map_err(|_| Error::LinkInvalid)?;
        // Compares in constant time.
        self.mac(way, project, id, given).verify_slice(&signature).map_err(|_| Error::LinkInvalid)?;
        let number = |text: &str| text.parse::<i64>().map_err(|_| Error::LinkInvalid);
        let expires_at = Time(number(&given.expires)?);
        if expires_at <= now {
            return Err(Error::LinkExpired);
        }
        let size = u64::try_from(number(&given.size)?).map_err(|_| Error::LinkInvalid)?;
        Ok((Ticket { project: ProjectId::parse(project)?, id: FileId::parse(id)?, expires_at }, size))
    }

    /// Each part with its length, so that no two links read the same.
    fn mac(&self, way: Signed, project: &str, id: &str, parameters: &Parameters) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).expect("this hash takes keys of every length");
        let Parameters { expires, md5, media_type, size, .. } = parameters;
        for part in [way.method(), project, id, md5, media_type, size, expires] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::State;

    fn links() -> Links {
        Links { key: Zeroizing::new([7; 32]), address: OnceLock::new() }
    }

    fn file() -> File {
        File {
            toolkit: "t".into(),
            tool: "T_X".into(),
            name: "n".into(),
            media_type: "text/plain; a=b".into(),
            md5: "0".repeat(32),
            size: 0,
            state: State::Awaited,
            content: None,
        }
    }

    fn parameters(url: &str) -> Parameters {
        let query = url.split_once('?').unwrap().1;
        let mut found = Parameters::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()).into_owned() {
            match name.as_str() {
                "expires" => found.expires = value,
                "md5" => found.md5 = value,
                "type" => found.media_type = value,
                "size" => found.size = value,
                _ => found.signature = value,
            }
        }
        found
    }

    #[test]
    fn a_link_allows_what_it_says_until_it_ends_and_nothing_when_a_part_of_it_is_changed() {
        let ticket = Ticket { project: ProjectId::random(), id: FileId::random(), expires_at: Time(1_000) };
        let (project, id) = (ticket.project.as_str(), ticket.id.as_str());
        let good = parameters(&links().sign(Signed::Put, &ticket, &file(), 9));
        let read = |way, project, id, given: &Parameters, now| links().read(way, project, id, given, Time(now));
        assert_eq!(read(Signed::Put, project, id, &good, 999).unwrap(), (ticket.clone(), 9));
        assert!(matches!(read(Signed::Put, project, id, &good, 1_000), Err(Error::LinkExpired)));
        let changes: [fn(&mut Parameters); 6] = [
            |given| given.expires = "9000".into(),
            |given| given.md5 = "1".repeat(32),
            |given| given.media_type = "text/html".into(),
            |given| given.size = "10".into(),
            |given| given.signature.replace_range(..1, "g"),
            |given| given.signature.truncate(62),
        ];
        for change in changes {
            let mut changed = good.clone();
            change(&mut changed);
            assert!(matches!(read(Signed::Put, project, id, &changed, 1), Err(Error::LinkInvalid)), "{changed:?}");
        }
        assert!(read(Signed::Get, project, id, &good, 1).is_err());
        let (other_project, other_file) = (ProjectId::random(), FileId::random());
        assert!(read(Signed::Put, other_project.as_str(), id, &good, 1).is_err());
        assert!(read(Signed::Put, project, other_file.as_str(), &good, 1).is_err());
    }
}
