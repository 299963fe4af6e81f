//! The common model into which every kind of description is read.

use std::collections::BTreeMap;
use std::fmt;

use manifest::plan::{FieldEncoding, Pages, ParameterIn, Style};
use manifest::{AuthScheme, Hints};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reason why a description cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// Result of a reader.
pub type Result<T> = std::result::Result<T, Error>;

/// An API, as far as tools can be made from it. It is stored as JSON in the toolkit's folder.
///
/// Schemas are JSON Schema as [`manifest`] knows it (draft 07 with `$defs`), apart from two things.
/// A `$ref` is `#/$defs/NAME` and refers to [`Api::schemas`], where cycles are allowed. Sizes are
/// not bounded. The common part inlines and shortens the schemas. A file has the schema
/// [`crate::file`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    /// Readable name, for example `Acme`.
    pub name: String,
    /// One or two sentences; may be empty.
    pub description: String,
    /// Base addresses of the API. The first is used unless an operation names another. Empty if the
    /// description does not state any.
    pub servers: Vec<Server>,
    /// Ways to connect an account, the most common first, at most one of each mode.
    pub auth: Vec<AuthScheme>,
    /// Schemas that others refer to.
    pub schemas: BTreeMap<String, Value>,
    /// Operations of the API.
    pub operations: Vec<Operation>,
    /// Parts of the description that are not carried over.
    pub unsupported: Vec<Unsupported>,
}

/// A base address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Absolute URL without a slash at the end. `{name}` is a variable:
    /// `https://{region}.example.com/v1`.
    pub url: String,
    /// Variables that may appear as `{name}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// A part of a base address that each account fills in for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variable {
    /// Name as it appears in the URL.
    pub name: String,
    /// Value if the account does not specify one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// All possible values; empty means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Description for the user who connects an account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// An operation, called with one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operation {
    /// Identifier that stays the same when the description grows: the description's own name for
    /// the operation, otherwise `METHOD /path`. Unique in an [`Api`].
    pub id: String,
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// Path below the server, with a slash at the beginning. `{name}` is a path parameter.
    pub path: String,
    /// Base address that replaces the API's own server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// Short title. May be empty; the title is then made from the id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Description for agents. May be empty; the title is then used.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Tags of the description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Other words for what the operation does, which only an overlay has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<String>,
    /// Hints from the method, see [`crate::hints`], or from the description.
    pub hints: Hints,
    /// Scopes of the provider, all of them required.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// True if the operation works without an account although the API has auth.
    #[serde(skip_serializing_if = "is_false")]
    pub no_auth: bool,
    /// True if the description advises against the operation. It is left out unless the overlay
    /// asks for it.
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Values for the path, the query and the headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Headers with fixed values, with names in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Response of the operation.
    pub answer: Answer,
    /// Pagination of a list; its `argument` is chosen later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Names of arguments, by the names of the parameters and members that are spelled differently.
    /// Set by the overlay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Examples of valid arguments, by the names of arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
}

/// A value for the path, the query or a header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name as the provider spells it.
    pub name: String,
    /// Part of the request that the value goes into.
    pub place: ParameterIn,
    /// Serialization of a list or an object.
    pub style: Style,
    /// True if each item becomes a pair of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explode: bool,
    /// True if the value is a path of several segments.
    #[serde(default, skip_serializing_if = "is_false")]
    pub segments: bool,
    /// True if a call requires the parameter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Schema of the value, including its description.
    pub schema: Value,
    /// Value to send if the argument is missing. Set by the overlay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// True if the parameter is not an argument and only its default is sent. Set by the overlay.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Encoding of the body.
    pub media: Media,
    /// Schema of the whole body. The properties of an object become arguments in addition to the
    /// parameters, with a suffix if a name appears twice. Any other body becomes the argument
    /// `body`.
    pub schema: Value,
    /// True if a call requires the body.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Values of members that are sent if the argument is missing. Set by the overlay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, Value>,
}

/// Encoding of a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Media {
    /// JSON.
    Json {
        /// Media type that replaces `application/json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`; the schema is an object.
    Form {
        /// Encoding of the members that are not plain.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<Field>,
    },
    /// `multipart/form-data`; the schema is an object.
    Multipart {
        /// Encoding of the fields that are not plain. A field whose schema is [`crate::file`] is
        /// always a file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<Field>,
    },
    /// `multipart/related` (RFC 2387): JSON first, then a file. The schema describes the JSON.
    Related {
        /// Schema of the file, see [`crate::file`]; its argument is called `file`.
        file: Value,
    },
    /// A file; the schema is [`crate::file`].
    File {
        /// Media type that replaces the file's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// Plain text. The schema is a string.
    Text {
        /// Media type, for example `text/plain`.
        media_type: String,
    },
    /// A `GraphQL` document; the schema describes its variables.
    Graphql {
        /// Query or mutation.
        document: String,
    },
    /// A tool of a Model Context Protocol server; the schema describes its arguments.
    Mcp {
        /// Name of the tool on that server.
        tool: String,
    },
}

/// Encoding of one field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Encoding of its value.
    pub carries: FieldEncoding,
}

/// The response of an operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// True if the response is a file, for example an image, an archive or a document.
    #[serde(skip_serializing_if = "is_false")]
    pub file: bool,
    /// JSON pointer to the relevant part; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pick: String,
    /// Schema of that part. Absent if it is unknown, or if there is no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A part of the description that the import omits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unsupported {
    /// Id of the operation. Absent if the entry is about the whole API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Name of the part, for example `cookie parameter session`.
    pub what: String,
    /// True if the operation does not work without the part. Such an operation is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unusable: bool,
}

impl Error {
    /// Creates an error from a message that states the problem and the remedy.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Unsupported {
    /// Creates an entry about one operation.
    pub fn new(operation: &str, what: impl Into<String>, unusable: bool) -> Self {
        Self {
            operation: Some(operation.to_owned()),
            what: what.into(),
            unusable,
        }
    }

    /// Creates an entry about one operation that works without the part.
    pub fn part(operation: &str, what: impl Into<String>) -> Self {
        Self::new(operation, what, false)
    }

    /// Creates an entry about one operation that does not work without the part.
    pub fn unusable(operation: &str, what: impl Into<String>) -> Self {
        Self::new(operation, what, true)
    }

    /// Creates an entry about the API as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self {
            operation: None,
            what: what.into(),
            unusable: false,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}
