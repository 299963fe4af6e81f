//! Files of a call, by id. The host holds their bytes. Files that a guest creates count as memory of
//! the node. The memory of given files is reserved by the caller, before it reads them.

use std::{collections::HashMap, sync::Arc};

use bytes::{Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};

use crate::{
    Digest, File, Limits,
    contract::v1::blob::{Error, Info},
    failure::memory_busy,
    schedule::limiter::Reservation,
    trace::{cut, one_line},
};

/// Maximum size of one read, in bytes.
const MAX_READ_BYTES: u32 = 1 << 20;
/// Maximum length of a name and of a media type, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Files visible to one call. Its requests share them and access them without the guest's memory.
#[derive(Clone)]
pub(crate) struct Files(Arc<Mutex<Inner>>);

struct Inner {
    given: Vec<File>,
    /// Memory of the given files, held as long as these.
    _given_memory: Option<Reservation>,
    created: Vec<File>,
    /// Computed digests of files that have not changed since, by id.
    digests: HashMap<String, Digest>,
    /// Memory of the created files.
    memory: Reservation,
    /// Maximum size of the created files together, in bytes.
    max_bytes: u64,
    /// Maximum number of created files.
    max_files: u32,
}

impl Files {
    pub(crate) fn new(
        given: Vec<File>,
        given_memory: Option<Reservation>,
        memory: Reservation,
        limits: &Limits,
    ) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            given,
            _given_memory: given_memory,
            created: Vec::new(),
            digests: HashMap::new(),
            memory,
            max_bytes: limits.file,
            max_files: limits.files,
        })))
    }

    /// Takes the files that the guest created, in order.
    pub(crate) fn take_created(&self) -> Vec<File> {
        std::mem::take(&mut self.lock().created)
    }

    /// Takes the reservation for the memory of the created files, if they take any; hold it as long
    /// as the files.
    pub(crate) fn take_memory(&self) -> Option<Reservation> {
        let inner = self.lock();
        (!inner.memory.is_empty()).then(|| inner.memory.split_off())
    }

    /// Returns a file that was created in this call.
    pub(crate) fn created_file(&self, id: &str) -> Option<File> {
        self.lock().find_created(id).ok().cloned()
    }

    /// Returns the complete content of a file without copying it.
    pub(crate) fn content(&self, id: &str) -> Result<Bytes, Error> {
        self.lock().find_any(id).map(|file| file.bytes.clone())
    }

    /// Returns the size of a file, in bytes.
    pub(crate) fn size(&self, id: &str) -> Result<u64, Error> {
        self.lock().find_any(id).map(|file| file.bytes.len() as u64)
    }

    /// Returns a part of a file, at most as much as one read may have.
    pub(crate) fn read(&self, id: &str, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let inner = self.lock();
        let bytes = &inner.find_any(id)?.bytes;
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let to = from
            .saturating_add(length.min(MAX_READ_BYTES) as usize)
            .min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }

    /// Returns the properties of a file.
    pub(crate) fn info(&self, id: &str) -> Result<Info, Error> {
        let inner = self.lock();
        let file = inner.find_any(id)?;
        Ok(Info {
            id: id.to_owned(),
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            size: file.bytes.len() as u64,
        })
    }

    /// Returns the SHA-256 of a file, or `None` if the file does not exist. It is computed once per
    /// content.
    pub(crate) fn digest(&self, id: &str) -> Option<Digest> {
        let bytes = {
            let inner = self.lock();
            if let Some(known) = inner.digests.get(id) {
                return Some(*known);
            }
            inner.find_any(id).ok()?.bytes.clone()
        };
        let digest = Digest::compute(&bytes);
        self.lock().digests.insert(id.to_owned(), digest);
        Some(digest)
    }

    /// Creates an empty file.
    pub(crate) fn create(&self, name: &str, media_type: &str) -> Result<String, Error> {
        let mut inner = self.lock();
        if inner.created.len() >= inner.max_files as usize {
            return Err(error(
                "limit",
                format!("a call makes at most {} files", inner.max_files),
            ));
        }
        let id = (inner.created.len()..)
            .map(|number| format!("new-{number}"))
            .find(|id| {
                !inner.given.iter().any(|file| file.id == **id) && inner.find_created(id).is_err()
            })
            .unwrap_or_default();
        let file = File {
            id: id.clone(),
            name: cut(name, MAX_NAME_BYTES).to_owned(),
            media_type: cut(media_type, MAX_NAME_BYTES).to_owned(),
            bytes: Bytes::new(),
        };
        inner.created.push(file);
        Ok(id)
    }

    /// Creates a file with this content and takes over its memory from `memory`.
    pub(crate) fn keep(
        &self,
        name: &str,
        media_type: &str,
        bytes: Bytes,
        memory: &Reservation,
    ) -> Result<String, Error> {
        let id = self.create(name, media_type)?;
        let mut inner = self.lock();
        inner.check_size(bytes.len())?;
        inner.memory.take_over(memory);
        if let Some(created) = inner.created.iter_mut().find(|created| created.id == id) {
            created.bytes = bytes;
        }
        Ok(id)
    }

    /// Appends to a file created in this call.
    pub(crate) fn append(&self, id: &str, bytes: &[u8]) -> Result<u64, Error> {
        let mut inner = self.lock();
        if inner.given.iter().any(|file| file.id == id) {
            return Err(error(
                "read_only",
                format!(
                    "the file `{}` is an input of this call and read-only; create a new one",
                    for_message(id)
                ),
            ));
        }
        let size = inner.find_created(id)?.bytes.len() as u64 + bytes.len() as u64;
        inner.check_size(bytes.len())?;
        let grown = inner.memory.try_grow(bytes.len() as u64);
        grown.map_err(|busy| error("limit", memory_busy(busy).to_owned()))?;
        inner.digests.remove(id);
        if let Some(created) = inner.created.iter_mut().find(|created| created.id == id) {
            // A request in flight may share the bytes; its copy stays unchanged.
            let mut whole = std::mem::take(&mut created.bytes)
                .try_into_mut()
                .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            whole.extend_from_slice(bytes);
            created.bytes = whole.freeze();
        }
        Ok(size)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}

impl Inner {
    /// Checks that the created files may have more bytes together.
    fn check_size(&self, more: usize) -> Result<(), Error> {
        let created = self.created.iter().map(|file| file.bytes.len() as u64);
        let size = created.sum::<u64>() + more as u64;
        match size > self.max_bytes {
            true => Err(too_large(self.max_bytes)),
            false => Ok(()),
        }
    }

    fn find_any(&self, id: &str) -> Result<&File, Error> {
        let given = self.given.iter().find(|file| file.id == id);
        given.map_or_else(|| self.find_created(id), Ok)
    }

    fn find_created(&self, id: &str) -> Result<&File, Error> {
        let found = self.created.iter().find(|created| created.id == id);
        found.ok_or_else(|| {
            error(
                "not_found",
                format!("this call has no file `{}`", for_message(id)),
            )
        })
    }
}

fn too_large(limit: u64) -> Error {
    error(
        "too_large",
        format!("the files of a call have at most {limit} bytes together"),
    )
}

fn error(kind: &str, message: String) -> Error {
    Error {
        kind: kind.to_owned(),
        message,
    }
}

/// Formats the guest's id for a message.
fn for_message(id: &str) -> String {
    one_line(cut(id, 80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::limiter::NodeMemory;

    fn given() -> Vec<File> {
        vec![File {
            id: "new-0".into(),
            name: "a".into(),
            media_type: "text/plain".into(),
            bytes: "abc".into(),
        }]
    }

    fn files(node: u64) -> Files {
        let limits = Limits {
            file: 10,
            files: 2,
            ..Limits::default()
        };
        let memory = NodeMemory::new(node).reserve(&"a".into());
        Files::new(given(), None, memory, &limits)
    }

    #[test]
    fn memory_of_given_files_is_released_with_them() {
        let node = NodeMemory::new(100);
        let given_memory = node.reserve(&"a".into());
        given_memory.try_grow(3).unwrap();
        let memory = node.reserve(&"a".into());
        let files = Files::new(given(), Some(given_memory), memory, &Limits::default());
        let id = files.create("b", "text/plain").unwrap();
        files.append(&id, b"12").unwrap();
        drop(files.take_memory());
        assert_eq!(node.used(), 3);
        drop(files);
        assert_eq!(node.used(), 0);
    }

    #[test]
    fn a_given_file_is_read_and_never_written() {
        let files = files(100);
        assert_eq!(files.read("new-0", 1, 9).unwrap(), b"bc");
        assert_eq!(files.read("new-0", u64::MAX, u32::MAX).unwrap(), b"");
        assert_eq!(files.append("new-0", b"x").unwrap_err().kind, "read_only");
        assert_eq!(files.content("elsewhere").unwrap_err().kind, "not_found");
    }

    #[test]
    fn content_is_shared_until_the_file_grows() {
        let files = files(100);
        let id = files.create("b", "text/plain").unwrap();
        files.append(&id, b"one").unwrap();
        let first = files.content(&id).unwrap();
        let second = files.content(&id).unwrap();
        assert_eq!(first.as_ptr(), second.as_ptr());
        let before = files.digest(&id);
        files.append(&id, b"two").unwrap();
        assert_eq!(
            (&first[..], &files.content(&id).unwrap()[..]),
            (&b"one"[..], &b"onetwo"[..])
        );
        assert_ne!(files.digest(&id), before);
    }

    #[test]
    fn files_take_memory_of_the_node() {
        let files = files(4);
        let id = files.create("b", "text/plain").unwrap();
        assert_eq!(files.append(&id, &[0; 4]).unwrap(), 4);
        assert_eq!(files.append(&id, &[0]).unwrap_err().kind, "limit");
    }

    #[test]
    fn files_are_limited_in_number_and_size() {
        let files = files(12);
        let id = files.create("b", "text/plain").unwrap();
        assert_eq!(id, "new-1");
        assert_eq!(files.append(&id, &[0; 10]).unwrap(), 10);
        assert_eq!(files.append(&id, &[0]).unwrap_err().kind, "too_large");
        let other = files.create("c", "text/plain").unwrap();
        assert_eq!(files.append(&other, &[0]).unwrap_err().kind, "too_large");
        assert_eq!(files.create("d", "text/plain").unwrap_err().kind, "limit");
        let sizes = files
            .take_created()
            .into_iter()
            .map(|file| file.bytes.len());
        assert_eq!(sizes.collect::<Vec<_>>(), [10, 0]);
    }
}
