//! The disk of the data directory: a write that leaves nothing, and the free space.

use std::{
    io::{ErrorKind, Write},
    path::Path,
};

use settings::Config;
use store::DiskSpace;

use super::Finding::{self, Bad, Good};
use crate::commands::archive::format_bytes;

/// Number of bytes that are written.
const WRITTEN_BYTES: usize = 64 << 10;

/// Writes a file in the data directory, and reports the free space of its disk. If the data directory
/// is missing, this is done in the folder in which the first start creates it.
pub(super) fn disk(config: &Config) -> Finding {
    let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
    let folder = data.ancestors().find(|folder| folder.exists());
    let folder = folder.unwrap_or(Path::new("/"));
    let shown = folder.display();
    let space = DiskSpace::of(folder);
    let free = space.map_or_else(
        || "an unknown number of bytes".to_owned(),
        |space| format_bytes(space.free),
    );
    let refused = try_write(folder).err();
    match refused {
        Some(cause)
            if !matches!(
                cause.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ) =>
        {
            Bad(format!(
                "cannot write in {shown}: {cause}; give the user of the server access, or set `data` to another folder"
            ))
        }
        None if !space.is_some_and(|space| space.is_full) => Good(format!(
            "a file can be written in {shown}; {free} of its disk are free"
        )),
        _ => Bad(format!(
            "the disk of {shown} is full: {free} are free, and the server refuses writes; delete files on it, or enlarge it"
        )),
    }
}

/// Writes a file without a name, which is gone when it is closed.
fn try_write(folder: &Path) -> std::io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[0; WRITTEN_BYTES])?;
    file.sync_all()
}
