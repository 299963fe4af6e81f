//! Tests of `key_file`.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn key_path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.key");
    (folder, path)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode()
}

#[test]
fn key_file_is_private_and_reads_back() {
    let (_folder, path) = key_path();
    let created = KeyFile::create(&path).unwrap();
    assert_eq!(mode(&path) & 0o777, 0o600);
    let read = KeyFile::read(&path).unwrap();
    assert_eq!(read.render(), created.render());
    assert!(
        KeyFile::create(&path).is_err(),
        "an existing key is never replaced"
    );
}

#[test]
fn key_file_readable_by_others_is_refused() {
    let (_folder, path) = key_path();
    KeyFile::create(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = KeyFile::read(&path);
    assert!(matches!(refused, Err(KeyFileError::Unsafe { .. })));
}

#[test]
fn renewed_key_file_keeps_both_keys() {
    let (_folder, path) = key_path();
    let old = KeyFile::create(&path).unwrap();
    old.clone().with_new_key().replace(&path).unwrap();
    let both = KeyFile::read(&path).unwrap();
    assert_eq!(
        both.previous.as_ref().map(|key| &key.id),
        Some(&old.current.id)
    );
    assert_eq!(
        both.clone().with_new_key().render(),
        both.render(),
        "what has begun goes on with the same key"
    );
    both.clone().without_previous().replace(&path).unwrap();
    let rotated = KeyFile::read(&path).unwrap();
    assert_eq!(
        (rotated.current.id, rotated.previous.is_none()),
        (both.current.id, true)
    );
    assert_eq!(mode(&path) & 0o777, 0o600);
}

#[test]
fn what_is_not_a_key_is_refused() {
    for text in [
        "",
        "toolhost-key-1 mk_a",
        "toolhost-key-1 mk_a zz",
        &format!("other mk_a {}", "11".repeat(32)),
    ] {
        assert!(KeyFile::parse(text).is_none(), "{text}");
    }
    assert!(KeyFile::parse(&format!("toolhost-key-1 mk_a {}", "11".repeat(32))).is_some());
    assert!(KeyFile::parse(&format!("toolhost-key-1 mk_a {}", "00".repeat(32))).is_none());
}

#[test]
fn a_missing_file_and_a_link_are_named() {
    let (_folder, path) = key_path();
    let missing = KeyFile::read(&path);
    assert!(matches!(missing, Err(KeyFileError::Missing(_))));
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    let refused = KeyFile::read(&path);
    assert!(matches!(refused, Err(KeyFileError::Unsafe { .. })));
}
