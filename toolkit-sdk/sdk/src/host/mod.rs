//! The platform's functions as plain Rust. In a guest they are the imports of the WIT contract,
//! elsewhere the scripted host of `testing`. No module above this one knows the difference.

#[cfg(target_arch = "wasm32")]
pub(crate) mod guest;

#[cfg(target_arch = "wasm32")]
pub(crate) use guest::calls::*;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::mock::calls::*;

/// Bytes in memory, or a file that never enters the guest's memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Blob(String),
}

/// One part of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) filename: Option<String>,
    pub(crate) media_type: Option<String>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Empty,
    Content(Content),
    Multipart(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
    pub(crate) credential: String,
    pub(crate) timeout_ms: u32,
    pub(crate) into_blob: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) blob: Option<String>,
}

/// A refusal by the platform, or a request that got no response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// Metadata of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Info {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size: u64,
}
