//! The custom section that carries the manifest.
//!
//! A component is read as data here: eight bytes of header, followed by sections of (id, length,
//! content). Only the section headers are decoded, so reading is quick and safe on untrusted bytes.

use std::fmt;

use crate::Manifest;

/// Name of the custom section.
pub const SECTION_NAME: &str = "toolhost:manifest";

const COMPONENT_HEADER: [u8; 8] = [0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00];
const MODULE_HEADER: [u8; 8] = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/// Reason why no manifest could be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file is empty.
    Empty,
    /// The file is not WebAssembly.
    NotWasm,
    /// The file is a core module, not a component.
    CoreModule,
    /// A section is longer than the file.
    Truncated,
    /// The component lacks the manifest section.
    Missing,
    /// The component has more than one manifest section.
    Duplicate,
    /// The section does not hold a manifest.
    Invalid(serde_json::Error),
}

/// Reads the manifest of a component without running it.
///
/// # Errors
/// See [`ReadError`]. Its text says how to fix the error.
pub fn extract(component: &[u8]) -> Result<Manifest, ReadError> {
    if component.is_empty() {
        return Err(ReadError::Empty);
    }
    let header = component.get(..8).ok_or(ReadError::NotWasm)?;
    if header == MODULE_HEADER {
        return Err(ReadError::CoreModule);
    }
    if header != COMPONENT_HEADER {
        return Err(ReadError::NotWasm);
    }
    let mut section = None;
    let mut rest = &component[8..];
    while let Some((&id, after)) = rest.split_first() {
        let (length, after) = leb128(after).ok_or(ReadError::Truncated)?;
        let content = after.get(..length).ok_or(ReadError::Truncated)?;
        rest = &after[length..];
        if id != 0 {
            continue;
        }
        let (name_length, named) = leb128(content).ok_or(ReadError::Truncated)?;
        let name = named.get(..name_length).ok_or(ReadError::Truncated)?;
        if name == SECTION_NAME.as_bytes() && section.replace(&named[name_length..]).is_some() {
            return Err(ReadError::Duplicate);
        }
    }
    Manifest::from_json(section.ok_or(ReadError::Missing)?).map_err(ReadError::Invalid)
}

/// Adds the manifest to a component without one.
#[must_use]
pub fn embed(mut component: Vec<u8>, manifest: &Manifest) -> Vec<u8> {
    let json = serde_json::to_vec(manifest).unwrap_or_default();
    let mut content = Vec::with_capacity(json.len() + SECTION_NAME.len() + 5);
    push_leb128(&mut content, SECTION_NAME.len());
    content.extend_from_slice(SECTION_NAME.as_bytes());
    content.extend_from_slice(&json);
    component.push(0);
    push_leb128(&mut component, content.len());
    component.extend_from_slice(&content);
    component
}

/// Reads an unsigned LEB128 number of at most 32 bits, and returns it with the bytes that follow
/// it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).ok()?;
            return Some((value as usize, &bytes[index + 1..]));
        }
    }
    None
}

fn push_leb128(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::NotWasm => f.write_str("the file is not a WebAssembly component"),
            Self::CoreModule => {
                f.write_str("the file is a core WebAssembly module, not a component; build it with `toolkit build`")
            }
            Self::Truncated => f.write_str("the file is truncated: a section extends past its end"),
            Self::Missing => write!(f, "the component has no `{SECTION_NAME}` section; build it with `toolkit build`"),
            Self::Duplicate => write!(f, "the component has more than one `{SECTION_NAME}` section"),
            Self::Invalid(cause) => write!(f, "the manifest cannot be read: {cause}"),
        }
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn manifest() -> Manifest {
        let json = r#"{
            "abi": "1.0.0", "sdk": "test", "slug": "demo", "name": "Demo", "description": "Shows.", "version": "20261121_00"
        }"#;
        Manifest::from_json(json.as_bytes()).unwrap()
    }

    fn component() -> Vec<u8> {
        embed(COMPONENT_HEADER.to_vec(), &manifest())
    }

    #[test]
    fn what_is_embedded_is_extracted() {
        assert_eq!(extract(&component()).unwrap(), manifest());
    }

    #[test]
    fn what_is_no_described_component_is_told_apart() {
        assert!(matches!(extract(b""), Err(ReadError::Empty)));
        assert!(matches!(extract(b"hello, world"), Err(ReadError::NotWasm)));
        assert!(matches!(extract(&[0; 1000]), Err(ReadError::NotWasm)));
        let core_module = extract(&MODULE_HEADER);
        assert!(matches!(core_module, Err(ReadError::CoreModule)));
        let bare = extract(&COMPONENT_HEADER);
        assert!(matches!(bare, Err(ReadError::Missing)));
        let twice = extract(&embed(component(), &manifest()));
        assert!(matches!(twice, Err(ReadError::Duplicate)));
        let mut broken = component();
        let last = broken.len() - 1;
        broken[last] = b'!';
        assert!(matches!(extract(&broken), Err(ReadError::Invalid(_))));
    }

    #[test]
    fn truncated_component_is_refused() {
        let whole = component();
        for length in 0..whole.len() {
            assert!(
                extract(&whole[..length]).is_err(),
                "{length} of {} bytes",
                whole.len()
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_sections_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = extract(&[&COMPONENT_HEADER[..], &bytes].concat());
        }

        #[test]
        fn other_sections_are_passed_over(id in 1u8..12, content in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut component = COMPONENT_HEADER.to_vec();
            component.push(id);
            push_leb128(&mut component, content.len());
            component.extend_from_slice(&content);
            prop_assert_eq!(extract(&embed(component, &manifest())).unwrap(), manifest());
        }
    }
}
