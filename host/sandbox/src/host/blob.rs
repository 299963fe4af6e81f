//! Files of a call, by id. Their bytes live on the host's side; what a guest makes counts as memory of the node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wasmtime::Result;

use crate::{
    File, Limits,
    abi::v1::blob::{Error, Host, Info},
    limiter::Reservation,
    state::State,
    trace::cut,
};

/// Bytes of one read.
const READ: u32 = 1 << 20;
/// Bytes of a name and of a media type.
const NAME: usize = 256;

/// The files that one call can see. Shared with its requests, which read and write them without the guest's memory.
#[derive(Clone)]
pub(crate) struct Files(Arc<Mutex<Inner>>);

struct Inner {
    given: Vec<File>,
    made: Vec<Made>,
    room: Reservation,
    limits: Limits,
}

struct Made {
    file: File,
    bytes: Vec<u8>,
}

impl Files {
    pub(crate) fn new(given: Vec<File>, room: Reservation, limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Inner { given, made: Vec::new(), room, limits })))
    }

    /// The files that the guest made, in order.
    pub(crate) fn take_made(&self) -> Vec<File> {
        let made = std::mem::take(&mut self.lock().made);
        made.into_iter().map(|made| File { bytes: made.bytes.into(), ..made.file }).collect()
    }

    /// A file that was made in this call.
    pub(crate) fn whole(&self, id: &str) -> Option<File> {
        let inner = self.lock();
        let made = inner.find(id).ok()?;
        Some(File { bytes: Bytes::copy_from_slice(&made.bytes), ..made.file.clone() })
    }

    /// The whole content of a file.
    pub(crate) fn content(&self, id: &str) -> std::result::Result<Bytes, Error> {
        let inner = self.lock();
        if let Some(file) = inner.given.iter().find(|file| file.id == id) {
            return Ok(file.bytes.clone());
        }
        inner.find(id).map(|made| Bytes::copy_from_slice(&made.bytes))
    }

    /// A new, empty file.
    pub(crate) fn create(&self, name: &str, media_type: &str) -> std::result::Result<String, Error> {
        let mut inner = self.lock();
        if inner.made.len() >= inner.limits.files as usize {
            return Err(error("limit", format!("a call makes at most {} files", inner.limits.files)));
        }
        let taken = |id: &str| inner.given.iter().any(|file| file.id == id) || inner.find(id).is_ok();
        let id = (inner.made.len()..).map(|number| format!("new-{number}")).find(|id| !taken(id)).unwrap_or_default();
        let file = File {
            id: id.clone(),
            name: cut(name, NAME).to_owned(),
            media_type: cut(media_type, NAME).to_owned(),
            bytes: Bytes::new(),
        };
        inner.made.push(Made { file, bytes: Vec::new() });
        Ok(id)
    }

    /// Adds to the end of a file made in this call.
    pub(crate) fn append(&self, id: &str, bytes: &[u8]) -> std::result::Result<u64, Error> {
        let mut inner = self.lock();
        if inner.given.iter().any(|file| file.id == id) {
            return Err(error("read_only", format!("the file `{}` was given to this call; make a new one", shown(id))));
        }
        let (limit, size) = (inner.limits.file, inner.find(id)?.bytes.len() as u64 + bytes.len() as u64);
        if size > limit {
            return Err(error("too_large", format!("a file has at most {limit} bytes")));
        }
        if !inner.room.grow(bytes.len() as u64) {
            return Err(error("limit", "this node has no memory left for files; try again later".to_owned()));
        }
        if let Some(made) = inner.made.iter_mut().find(|made| made.file.id == id) {
            made.bytes.extend_from_slice(bytes);
        }
        Ok(size)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn find(&self, id: &str) -> std::result::Result<&Made, Error> {
        let found = self.made.iter().find(|made| made.file.id == id);
        found.ok_or_else(|| error("not_found", format!("this call has no file `{}`", shown(id))))
    }

    fn read(&self, id: &str, offset: u64, length: u32) -> std::result::Result<Vec<u8>, Error> {
        let bytes: &[u8] = match self.given.iter().find(|file| file.id == id) {
            Some(file) => &file.bytes,
            None => &self.find(id)?.bytes,
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let to = from.saturating_add(length.min(READ) as usize).min(bytes.len());
        Ok(bytes[from..to].to_vec())
    }

    fn info(&self, id: &str) -> std::result::Result<Info, Error> {
        let (file, size) = match self.given.iter().find(|file| file.id == id) {
            Some(file) => (file, file.bytes.len()),
            None => self.find(id).map(|made| (&made.file, made.bytes.len()))?,
        };
        let (name, media_type) = (file.name.clone(), file.media_type.clone());
        Ok(Info { id: id.to_owned(), name, media_type, size: size as u64 })
    }
}

impl Host for State {
    fn stat(&mut self, id: String) -> Result<std::result::Result<Info, Error>> {
        self.count()?;
        Ok(self.files.lock().info(&id))
    }

    fn read(&mut self, id: String, offset: u64, length: u32) -> Result<std::result::Result<Vec<u8>, Error>> {
        self.count()?;
        Ok(self.files.lock().read(&id, offset, length))
    }

    fn create(&mut self, name: String, media_type: String) -> Result<std::result::Result<String, Error>> {
        self.count()?;
        Ok(self.files.create(&name, &media_type))
    }

    fn append(&mut self, id: String, bytes: Vec<u8>) -> Result<std::result::Result<u64, Error>> {
        self.count()?;
        Ok(self.files.append(&id, &bytes))
    }
}

fn error(kind: &str, message: String) -> Error {
    Error { kind: kind.to_owned(), message }
}

/// A guest's id in a message.
fn shown(id: &str) -> String {
    crate::trace::one_line(cut(id, 80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::NodeMemory;

    fn files(node: u64) -> Files {
        let given = File { id: "new-0".into(), name: "a".into(), media_type: "text/plain".into(), bytes: "abc".into() };
        let limits = Limits { file: 10, files: 2, ..Limits::default() };
        Files::new(vec![given], NodeMemory::new(node).reserve(), limits)
    }

    #[test]
    fn a_given_file_is_read_and_never_written() {
        let files = files(100);
        assert_eq!(files.lock().read("new-0", 1, 9).unwrap(), b"bc");
        assert_eq!(files.lock().read("new-0", u64::MAX, u32::MAX).unwrap(), b"");
        assert_eq!(files.append("new-0", b"x").unwrap_err().kind, "read_only");
        assert_eq!(files.content("elsewhere").unwrap_err().kind, "not_found");
    }

    #[test]
    fn files_are_bounded_in_number_in_size_and_on_the_node() {
        let files = files(12);
        let id = files.create("b", "text/plain").unwrap();
        assert_eq!(id, "new-1");
        assert_eq!(files.append(&id, &[0; 10]).unwrap(), 10);
        assert_eq!(files.append(&id, &[0]).unwrap_err().kind, "too_large");
        let other = files.create("c", "text/plain").unwrap();
        assert_eq!(files.append(&other, &[0; 5]).unwrap_err().kind, "limit");
        assert_eq!(files.create("d", "text/plain").unwrap_err().kind, "limit");
        assert_eq!(files.take_made().iter().map(|file| file.bytes.len()).collect::<Vec<_>>(), [10, 0]);
    }
}
