//! The embedded backend.

use crate::suite::{COLLECTIONS, Place};
use host_store::Store;

struct Folder(tempfile::TempDir);

impl Place for Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    async fn open(&self) -> Store {
        Store::open(self.0.path(), COLLECTIONS).unwrap()
    }
}

crate::suite::promises!(Folder);
