//! The `HEAD` file: the acknowledged position, kept outside the database so that a damaged database
//! cannot hide a loss.
//!
//! Two slots of a fixed size are written alternately, each in place and then synced. An interrupted
//! write damages one slot and leaves the other, which holds everything acknowledged before. The
//! file never changes its size, so the sync writes no metadata.

use super::position::Position;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

const SLOT_BYTES: usize = 4096;
const HEAD_MAGIC: [u8; 8] = *b"thHEAD1\n";
/// Common beginning of the marks of all versions. A store that older programs must not touch has
/// another number after it.
const MAGIC_PREFIX: &[u8] = b"thHEAD";
/// Length of mark, checksum, length and generation, in bytes.
const SLOT_HEADER_BYTES: usize = 8 + 4 + 4 + 8;

/// The open file.
#[derive(Debug)]
pub(super) struct Head {
    file: File,
    generation: u64,
}

/// Content of a `HEAD` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadContent {
    /// The file does not exist.
    Missing,
    /// No slot is intact.
    Damaged,
    /// A newer version of the program has written the file.
    Newer,
    /// Position in the newest intact slot.
    Position(Position),
}

impl Head {
    /// Reads the file without changing it.
    pub(super) fn read(path: &Path) -> Result<HeadContent> {
        match fs::read(path) {
            Ok(bytes) => Ok(match newest_slot(&bytes) {
                Some((_, position)) => HeadContent::Position(position),
                None if bytes.chunks(SLOT_BYTES).all(is_newer_version) => HeadContent::Newer,
                None => HeadContent::Damaged,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(HeadContent::Missing),
            Err(error) => Err(error),
        }
    }

    /// Writes `position` to both slots of a new file, which replaces any earlier one, and keeps the
    /// file open.
    pub(super) fn begin(path: &Path, position: &Position) -> Result<Head> {
        let generation = fs::read(path)
            .ok()
            .and_then(|bytes| newest_slot(&bytes))
            .map_or(0, |(generation, _)| generation);
        let temporary = path.with_extension("new");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary)?;
        file.set_len(2 * SLOT_BYTES as u64)?;
        let mut head = Head { file, generation };
        head.write_both(position)?;
        head.file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(path.parent().ok_or(ErrorKind::NotFound)?)?.sync_all()?;
        Ok(head)
    }

    /// Writes `position` to the next slot. When it returns, the position is on the disk.
    pub(super) fn write(&mut self, position: &Position) -> Result<()> {
        self.generation += 1;
        let slot = encode(self.generation, position)?;
        self.file
            .write_all_at(&slot, (self.generation % 2) * SLOT_BYTES as u64)?;
        self.file.sync_data()
    }

    /// Writes both slots, so that damage to either loses nothing.
    pub(super) fn write_both(&mut self, position: &Position) -> Result<()> {
        self.write(position)?;
        self.write(position)
    }
}

fn encode(generation: u64, position: &Position) -> Result<Vec<u8>> {
    let position = position.encode();
    let mut slot = HEAD_MAGIC.to_vec();
    slot.extend_from_slice(&[0; 4]);
    slot.extend_from_slice(&(position.len() as u32).to_le_bytes());
    slot.extend_from_slice(&generation.to_le_bytes());
    slot.extend_from_slice(&position);
    if slot.len() > SLOT_BYTES {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "there are too many collections for the HEAD file",
        ));
    }
    let checksum = crc32fast::hash(&slot[12..]);
    slot[8..12].copy_from_slice(&checksum.to_le_bytes());
    Ok(slot)
}

fn newest_slot(bytes: &[u8]) -> Option<(u64, Position)> {
    bytes
        .chunks(SLOT_BYTES)
        .take(2)
        .filter_map(decode)
        .max_by_key(|(generation, _)| *generation)
}

fn is_newer_version(slot: &[u8]) -> bool {
    slot.starts_with(MAGIC_PREFIX)
        && slot
            .get(MAGIC_PREFIX.len())
            .is_some_and(|number| (b'2'..=b'9').contains(number))
}

fn decode(slot: &[u8]) -> Option<(u64, Position)> {
    let (start, rest) = slot.split_at_checked(SLOT_HEADER_BYTES)?;
    let length = u32::from_le_bytes(start[12..16].try_into().ok()?) as usize;
    let position = rest.get(..length)?;
    let intact = start[..8] == HEAD_MAGIC
        && start[8..12] == crc32fast::hash(&slot[12..SLOT_HEADER_BYTES + length]).to_le_bytes();
    let generation = u64::from_le_bytes(start[16..].try_into().ok()?);
    intact
        .then(|| Position::decode(position).map(|position| (generation, position)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sequence: u64) -> Position {
        Position {
            sequence,
            records: vec![sequence],
            ..Position::empty([1; 16])
        }
    }

    #[test]
    fn newest_intact_slot_wins_over_torn_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("HEAD");
        assert_eq!(Head::read(&path).unwrap(), HeadContent::Missing);
        let mut head = Head::begin(&path, &at(0)).unwrap();
        head.write(&at(1)).unwrap();
        head.write(&at(2)).unwrap();
        assert_eq!(Head::read(&path).unwrap(), HeadContent::Position(at(2)));
        let newest = (head.generation % 2) * SLOT_BYTES as u64;
        head.file.write_all_at(b"torn", newest + 30).unwrap();
        assert_eq!(Head::read(&path).unwrap(), HeadContent::Position(at(1)));
        head.file
            .write_all_at(b"torn", SLOT_BYTES as u64 - newest + 30)
            .unwrap();
        assert_eq!(Head::read(&path).unwrap(), HeadContent::Damaged);
    }

    #[test]
    fn settled_head_survives_loss_of_one_slot() {
        for slot in [0, SLOT_BYTES as u64] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("HEAD");
            let mut head = Head::begin(&path, &at(0)).unwrap();
            head.write(&at(8)).unwrap();
            head.write_both(&at(9)).unwrap();
            head.file.write_all_at(&[0; SLOT_BYTES], slot).unwrap();
            assert_eq!(Head::read(&path).unwrap(), HeadContent::Position(at(9)));
        }
    }

    #[test]
    fn opening_again_goes_on_from_the_newest_slot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("HEAD");
        Head::begin(&path, &at(5)).unwrap().write(&at(6)).unwrap();
        Head::begin(&path, &at(6)).unwrap().write(&at(7)).unwrap();
        assert_eq!(Head::read(&path).unwrap(), HeadContent::Position(at(7)));
    }
}
