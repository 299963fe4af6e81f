//! Files of one run, in memory.
//!
//! Guarantee: the program sees this tree and nothing else; a path cannot leave its root. The number
//! of files, their total size and the node's memory are limited. Links do not exist.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{FileChange, Program, ProgramLimits, StoredFile, errno::Errno};
use crate::Reservation;

/// Maximum length of a path, in bytes. Paths do not count as memory.
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// Files and folders by path, without the leading slash. The root is not listed.
pub(crate) struct Files {
    nodes: BTreeMap<String, Node>,
    /// Inodes of the files at the beginning of the run that the program can change.
    initial: BTreeMap<String, u64>,
    limits: ProgramLimits,
    /// Size of the files that the program can change, in bytes. Removed files that are still open
    /// count until the end of the run.
    used: u64,
    /// Bytes of `used` that are reserved from the node's memory.
    reserved: u64,
    memory: Reservation,
    last_inode: u64,
}

enum Node {
    Folder(u64),
    File(FileRef),
}

/// File that may be open and may have lost its path.
pub(super) type FileRef = Arc<Mutex<File>>;

/// Content and properties of one file.
pub(super) struct File {
    content: Content,
    pub(super) inode: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub(super) modified_ms: u64,
    read_only: bool,
    changed: bool,
}

enum Content {
    /// Not read yet; the size is known.
    Stored(u64),
    /// As given to the program.
    Given(Bytes),
    /// Written by the program.
    Written(Vec<u8>),
}

/// Properties of a file or folder.
pub(super) struct Properties {
    pub(super) is_folder: bool,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) modified_ms: u64,
}

/// Entry of a folder.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
    pub(super) inode: u64,
}

impl File {
    pub(super) fn size(&self) -> u64 {
        match &self.content {
            Content::Stored(size) => *size,
            Content::Given(bytes) => bytes.len() as u64,
            Content::Written(bytes) => bytes.len() as u64,
        }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn is_stored(&self) -> bool {
        matches!(self.content, Content::Stored(_))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Stored(_) => &[],
            Content::Given(bytes) => bytes,
            Content::Written(bytes) => bytes,
        }
    }

    /// Sets the content of a file that was not read yet.
    pub(super) fn fill(&mut self, bytes: Bytes) {
        self.content = Content::Given(bytes);
    }

    pub(super) fn properties(&self) -> Properties {
        Properties {
            is_folder: false,
            inode: self.inode,
            size: self.size(),
            modified_ms: self.modified_ms,
        }
    }

    fn written(&mut self) -> &mut Vec<u8> {
        self.changed = true;
        if !matches!(self.content, Content::Written(_)) {
            self.content = Content::Written(self.bytes().to_vec());
        }
        match &mut self.content {
            Content::Written(bytes) => bytes,
            Content::Stored(_) | Content::Given(_) => unreachable!("it was converted above"),
        }
    }
}

impl Files {
    /// Creates the initial tree of a program.
    pub(super) fn new(program: &Program, limits: ProgramLimits, memory: Reservation) -> Self {
        let mut files = Self {
            nodes: BTreeMap::new(),
            initial: BTreeMap::new(),
            limits,
            used: 0,
            reserved: 0,
            memory,
            last_inode: 1,
        };
        for folder in &program.folders {
            let path = join("", folder);
            files.make_parents(&path);
            let inode = files.next_inode();
            files.nodes.insert(path, Node::Folder(inode));
        }
        for (path, bytes) in &program.system_files {
            files.place(path, Content::Given(bytes.clone()), 0, true);
        }
        for StoredFile {
            path,
            size,
            modified_ms,
        } in &program.files
        {
            files.used += size;
            let file = files.place(path, Content::Stored(*size), *modified_ms, false);
            let inode = file.lock().inode;
            files.initial.insert(join("", path), inode);
        }
        files
    }

    fn place(
        &mut self,
        path: &str,
        content: Content,
        modified_ms: u64,
        read_only: bool,
    ) -> FileRef {
        let path = join("", path);
        self.make_parents(&path);
        let file = Arc::new(Mutex::new(File {
            content,
            inode: self.next_inode(),
            modified_ms,
            read_only,
            changed: false,
        }));
        self.nodes.insert(path, Node::File(file.clone()));
        file
    }

    fn make_parents(&mut self, path: &str) {
        let ends: Vec<_> = path.match_indices('/').map(|(at, _)| at).collect();
        for end in ends {
            let inode = self.next_inode();
            self.nodes
                .entry(path[..end].to_owned())
                .or_insert(Node::Folder(inode));
        }
    }

    fn next_inode(&mut self) -> u64 {
        self.last_inode += 1;
        self.last_inode
    }

    /// Returns the properties of what is at a path.
    pub(super) fn properties(&self, path: &str) -> Result<Properties, Errno> {
        let inode = if path.is_empty() {
            1
        } else {
            match self.nodes.get(path).ok_or(Errno::NOENT)? {
                Node::Folder(inode) => *inode,
                Node::File(file) => return Ok(file.lock().properties()),
            }
        };
        Ok(Properties {
            is_folder: true,
            inode,
            size: 0,
            modified_ms: 0,
        })
    }

    /// Returns the file at a path.
    pub(super) fn file(&self, path: &str) -> Result<FileRef, Errno> {
        match self.nodes.get(path) {
            Some(Node::File(file)) => Ok(file.clone()),
            Some(Node::Folder(_)) => Err(Errno::ISDIR),
            None if path.is_empty() => Err(Errno::ISDIR),
            None => Err(Errno::NOENT),
        }
    }

    /// Returns true if there is a folder at a path.
    pub(super) fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || matches!(self.nodes.get(path), Some(Node::Folder(_)))
    }

    /// Creates an empty file.
    pub(super) fn create(&mut self, path: &str, now_ms: u64) -> Result<FileRef, Errno> {
        self.check_place(path)?;
        let file = self.place(path, Content::Written(Vec::new()), now_ms, false);
        file.lock().changed = true;
        Ok(file)
    }

    /// Creates an empty folder.
    pub(super) fn create_folder(&mut self, path: &str) -> Result<(), Errno> {
        if path.is_empty() {
            return Err(Errno::EXIST);
        }
        self.check_place(path)?;
        let inode = self.next_inode();
        self.nodes.insert(path.to_owned(), Node::Folder(inode));
        Ok(())
    }

    /// Checks that something may be created at a path.
    fn check_place(&self, path: &str) -> Result<(), Errno> {
        if path.len() > MAX_PATH_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        if self.nodes.contains_key(path) {
            return Err(Errno::EXIST);
        }
        self.check_parent(path)?;
        if self.nodes.len() >= self.limits.files as usize {
            return Err(Errno::NOSPC);
        }
        Ok(())
    }

    fn check_parent(&self, path: &str) -> Result<(), Errno> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.nodes.get(parent) {
            Some(Node::File(_)) => Err(Errno::NOTDIR),
            None if !parent.is_empty() => Err(Errno::NOENT),
            _ => Ok(()),
        }
    }

    /// Writes bytes at an offset of a file. A gap before them is filled with zeros.
    pub(super) fn write(
        &mut self,
        file: &FileRef,
        at: u64,
        bytes: &[u8],
        now_ms: u64,
    ) -> Result<(), Errno> {
        let mut file = file.lock();
        let end = at.checked_add(bytes.len() as u64).ok_or(Errno::FBIG)?;
        self.grow(end.saturating_sub(file.size()))?;
        let content = file.written();
        let (start, end) = (at as usize, end as usize);
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
        file.modified_ms = now_ms;
        Ok(())
    }

    /// Sets the size of a file.
    pub(super) fn resize(&mut self, file: &FileRef, size: u64, now_ms: u64) -> Result<(), Errno> {
        let mut file = file.lock();
        let previous = file.size();
        self.grow(size.saturating_sub(previous))?;
        self.used = self.used.saturating_sub(previous.saturating_sub(size));
        if size == 0 {
            file.content = Content::Written(Vec::new());
        }
        let content = file.written();
        content.resize(size as usize, 0);
        if size < previous {
            // The memory that no longer counts is given back.
            content.shrink_to_fit();
        }
        file.modified_ms = now_ms;
        Ok(())
    }

    /// Counts bytes of files against the limit and against the node's memory.
    fn grow(&mut self, bytes: u64) -> Result<(), Errno> {
        let used = self.used.saturating_add(bytes);
        if used > self.limits.file_bytes {
            return Err(Errno::NOSPC);
        }
        if used > self.reserved {
            if self.memory.try_grow(used - self.reserved).is_err() {
                return Err(Errno::NOSPC);
            }
            self.reserved = used;
        }
        self.used = used;
        Ok(())
    }

    /// Removes a file.
    pub(super) fn remove(&mut self, path: &str) -> Result<(), Errno> {
        let file = self.file(path)?;
        if file.lock().read_only {
            return Err(Errno::ROFS);
        }
        self.nodes.remove(path);
        // This function holds it, too. Its content stays for as long as it is open.
        if Arc::strong_count(&file) == 1 {
            self.used = self.used.saturating_sub(file.lock().size());
        }
        Ok(())
    }

    /// Removes an empty folder.
    pub(super) fn remove_folder(&mut self, path: &str) -> Result<(), Errno> {
        match self.nodes.get(path) {
            Some(Node::Folder(_)) if self.children(path).next().is_none() => {
                self.nodes.remove(path);
                Ok(())
            }
            Some(Node::Folder(_)) => Err(Errno::NOTEMPTY),
            Some(Node::File(_)) => Err(Errno::NOTDIR),
            None if path.is_empty() => Err(Errno::BUSY),
            None => Err(Errno::NOENT),
        }
    }

    /// Gives a file or folder another path. A file at the new path is replaced.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), Errno> {
        let source = self.properties(from)?;
        if from == to {
            return Ok(());
        }
        if from.is_empty() || to.is_empty() {
            return Err(Errno::BUSY);
        }
        self.check_parent(to)?;
        let inside = format!("{from}/");
        if to.starts_with(&inside) {
            return Err(Errno::INVAL);
        }
        let moved: Vec<String> = self
            .below(from)
            .map(|(path, _)| path.clone())
            .chain([from.to_owned()])
            .collect();
        let added = to.len().saturating_sub(from.len());
        if moved.iter().any(|path| path.len() + added > MAX_PATH_BYTES) {
            return Err(Errno::NAMETOOLONG);
        }
        let has_read_only = moved.iter().any(
            |path| matches!(self.nodes.get(path), Some(Node::File(file)) if file.lock().read_only),
        );
        if has_read_only {
            return Err(Errno::ROFS);
        }
        match (self.nodes.get(to), source.is_folder) {
            (None, _) => {}
            (Some(Node::Folder(_)), true) => self.remove_folder(to)?,
            (Some(Node::Folder(_)), false) => return Err(Errno::ISDIR),
            (Some(Node::File(_)), true) => return Err(Errno::NOTDIR),
            (Some(Node::File(_)), false) => self.remove(to)?,
        }
        for path in moved {
            if let Some(node) = self.nodes.remove(&path) {
                self.nodes
                    .insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        Ok(())
    }

    /// Returns everything below a folder, at any depth.
    fn below(&self, folder: &str) -> impl Iterator<Item = (&String, &Node)> {
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        self.nodes
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .take_while({
                let prefix = prefix.clone();
                move |(path, _)| path.starts_with(&prefix)
            })
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn children(&self, folder: &str) -> impl Iterator<Item = (&String, &Node)> {
        let depth = if folder.is_empty() {
            0
        } else {
            folder.len() + 1
        };
        self.below(folder)
            .filter(move |(path, _)| !path[depth..].contains('/'))
    }

    /// Returns the content of a folder, in the order of the names.
    pub(super) fn list(&self, folder: &str) -> Arc<[Entry]> {
        let depth = if folder.is_empty() {
            0
        } else {
            folder.len() + 1
        };
        let dots = [".", ".."].map(|name| Entry {
            name: name.to_owned(),
            is_folder: true,
            inode: 1,
        });
        let children = self.children(folder).map(|(path, node)| {
            let (is_folder, inode) = match node {
                Node::Folder(inode) => (true, *inode),
                Node::File(file) => (false, file.lock().inode),
            };
            Entry {
                name: path[depth..].to_owned(),
                is_folder,
                inode,
            }
        });
        dots.into_iter().chain(children).collect()
    }

    /// Returns the changes of the run and the reservation for their memory.
    pub(super) fn into_changes(self) -> (Vec<FileChange>, Reservation) {
        let mut changes: Vec<_> = self
            .initial
            .keys()
            .filter(|path| !matches!(self.nodes.get(*path), Some(Node::File(_))))
            .map(|path| FileChange {
                path: format!("/{path}"),
                content: None,
            })
            .collect();
        for (path, node) in &self.nodes {
            let Node::File(file) = node else { continue };
            let mut file = file.lock();
            let is_same = self.initial.get(path) == Some(&file.inode);
            if file.read_only || (is_same && !file.changed) {
                continue;
            }
            let content = match std::mem::replace(&mut file.content, Content::Stored(0)) {
                // A renamed file that was never read always has content here: `rename` reads it.
                Content::Stored(_) => continue,
                Content::Given(bytes) => bytes,
                Content::Written(bytes) => bytes.into(),
            };
            changes.push(FileChange {
                path: format!("/{path}"),
                content: Some(content),
            });
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        (changes, self.memory)
    }

    /// Returns the files at a path and below it that were not read yet, with their paths at the
    /// beginning of the run.
    pub(super) fn unread(&self, path: &str) -> Vec<(String, FileRef)> {
        let at = self.nodes.get_key_value(path);
        self.below(path)
            .chain(at)
            .filter_map(|(_, node)| match node {
                Node::File(file) if file.lock().is_stored() => Some(file.clone()),
                _ => None,
            })
            .filter_map(|file| self.stored_path(&file).map(|path| (path, file)))
            .collect()
    }

    /// Returns the path that a file had at the beginning of the run.
    pub(super) fn stored_path(&self, file: &FileRef) -> Option<String> {
        let inode = file.lock().inode;
        let mut initial = self.initial.iter();
        let found = initial.find(|(_, initial)| **initial == inode);
        found.map(|(path, _)| format!("/{path}"))
    }

    /// Counts the content of a file that was read against the node's memory.
    pub(super) fn count_read(&mut self, bytes: u64) -> Result<(), Errno> {
        self.memory.try_grow(bytes).map_err(|_| Errno::NOMEM)
    }
}

/// Returns the path of a name relative to a folder. It cannot leave the root.
pub(super) fn join(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = if name.starts_with('/') {
        Vec::new()
    } else {
        folder.split('/').filter(|part| !part.is_empty()).collect()
    };
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::limiter::NodeMemory;

    /// Returns the tree of a run that starts with an empty file `a`.
    fn tree() -> Files {
        let mut files = Files {
            nodes: BTreeMap::new(),
            initial: BTreeMap::new(),
            limits: ProgramLimits {
                file_bytes: 100,
                ..ProgramLimits::default()
            },
            used: 0,
            reserved: 0,
            memory: NodeMemory::new(1_000).reserve(&"a".into()),
            last_inode: 1,
        };
        let file = files.place("a", Content::Given(Bytes::new()), 0, false);
        let inode = file.lock().inode;
        files.initial.insert("a".to_owned(), inode);
        files
    }

    #[test]
    fn paths_are_limited_however_they_are_made() {
        let mut files = tree();
        let long = "n".repeat(MAX_PATH_BYTES);
        assert!(files.create(&format!("{long}n"), 0).is_err());
        files.create_folder("b").unwrap();
        files.create("b/c", 0).unwrap();
        assert!(files.rename("b", &long).is_err());
        files.rename("a", &long).unwrap();
    }

    #[test]
    fn shrunk_file_gives_its_memory_back() {
        let mut files = tree();
        let file = files.create("b", 0).unwrap();
        files.resize(&file, 100, 0).unwrap();
        files.resize(&file, 1, 0).unwrap();
        assert_eq!(files.used, 1);
        assert!(file.lock().written().capacity() < 100);
    }

    #[test]
    fn removed_file_counts_while_it_is_open() {
        let mut files = tree();
        for path in ["a", "b"] {
            // A file at the path of an initial one is another file.
            let _ = files.remove(path);
            let open = files.create(path, 0).unwrap();
            files.write(&open, 0, &[7; 60], 0).unwrap();
            files.remove(path).unwrap();
            assert_eq!(files.used, 60);
            assert!(files.resize(&open, 101, 0).is_err());
            files.resize(&open, 0, 0).unwrap();
        }
        let closed = files.create("c", 0).unwrap();
        files.write(&closed, 0, &[7; 60], 0).unwrap();
        drop(closed);
        files.remove("c").unwrap();
        assert_eq!(files.used, 0);
    }

    #[test]
    fn replaced_file_is_a_change() {
        let mut files = tree();
        files.remove("a").unwrap();
        files.create("a", 0).unwrap();
        let (changes, _) = files.into_changes();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].content.as_deref(), Some(&[][..]));
    }

    #[test]
    fn paths_cannot_leave_the_root() {
        for (folder, name, path) in [
            ("", "/a/b", "a/b"),
            ("a", "b/./c", "a/b/c"),
            ("a", "/b", "b"),
            ("a/b", "../c", "a/c"),
            ("a", "../../../etc/passwd", "etc/passwd"),
            ("", "..", ""),
            ("a", "//", ""),
        ] {
            assert_eq!(join(folder, name), path, "{folder} {name}");
        }
    }
}
