//! What every kind of description is read into.

use std::collections::BTreeMap;
use std::fmt;

use manifest::plan::{Carries, Pages, Place, Style};
use manifest::{AuthScheme, Hints};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a description cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// What a reader answers.
pub type Result<T> = std::result::Result<T, Error>;

/// An API, as far as tools can be made of it. It is kept as JSON in the toolkit's folder.
///
/// Schemas are JSON Schema as [`manifest`] knows it (draft 07 with `$defs`), apart from two things: a `$ref` is `#/$defs/NAME`
/// and leads to [`Api::schemas`], where circles are allowed; and sizes are not bounded. The common part closes and cuts them.
/// A file is the schema [`crate::file`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Api {
    /// For people, for example `Acme`.
    pub name: String,
    /// One or two sentences; may be empty.
    pub description: String,
    /// Where the API is; the first is used unless an operation names another. Empty when the description does not say.
    pub servers: Vec<Server>,
    /// Ways to connect an account, the usual one first, at most one of each mode.
    pub auth: Vec<AuthScheme>,
    /// Schemas that others refer to.
    pub schemas: BTreeMap<String, Value>,
    /// What can be called.
    pub operations: Vec<Operation>,
    /// What of the description is not carried over.
    pub unsupported: Vec<Unsupported>,
}

/// A base address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Absolute, without a slash at the end; `{name}` is a variable: `https://{region}.example.com/v1`.
    pub url: String,
    /// What may stand for `{name}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
}

/// A part of an address that each account fills in for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Variable {
    /// As it stands in the address.
    pub name: String,
    /// Taken when the account says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// All values that are possible; empty means any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// For the person who connects an account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// One thing that can be called, with one request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operation {
    /// Stays the same when the description grows: its own name for the operation, else `METHOD /path`. Unique in an [`Api`].
    pub id: String,
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// Below the server, with a slash at the beginning; `{name}` is a path parameter.
    pub path: String,
    /// Instead of the API's own server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// A few words; may be empty, then they are made of the id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What an agent reads; may be empty, then it is the title.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Labels of the description.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// From the method, see [`crate::hints`], or from what the description says.
    pub hints: Hints,
    /// Scopes of the application, all of them needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Works without an account although the API has auth.
    #[serde(skip_serializing_if = "is_false")]
    pub no_auth: bool,
    /// The description advises against it; left out unless the overlay asks for it.
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// What goes into path, query and headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Headers that are always the same, names in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// What is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// What comes back.
    pub answer: Answer,
    /// How a list goes on; its `argument` is chosen later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// What arguments are called, by the names of parameters and members that are spelt otherwise; the overlay sets it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Arguments that work, by the names of arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Value>,
}

/// A value that goes into path, query or headers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// As the application spells it.
    pub name: String,
    /// Where it goes.
    pub place: Place,
    /// How a list or an object is written.
    pub style: Style,
    /// One pair for each item.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explode: bool,
    /// A path of several segments.
    #[serde(default, skip_serializing_if = "is_false")]
    pub segments: bool,
    /// Whether a call needs it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Of the value, its description in it.
    pub schema: Value,
    /// Sent when the argument is missing; the overlay sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// No argument: only its default is sent. The overlay sets it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// How it is written.
    pub media: Media,
    /// Of the whole body. An object's members become arguments beside the parameters where no name stands twice; everything
    /// else becomes the argument `body`.
    pub schema: Value,
    /// Whether a call needs it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// Members that are sent when they are missing; the overlay sets them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, Value>,
}

/// How a body is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Media {
    /// JSON.
    Json {
        /// Instead of `application/json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`; the schema is an object.
    Form {
        /// How members are written that are not plain.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<Field>,
    },
    /// `multipart/form-data`; the schema is an object.
    Multipart {
        /// How members are written that are not plain; a member whose schema is [`crate::file`] is a file anyway.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<Field>,
    },
    /// `multipart/related` (RFC 2387): JSON first, then a file. The schema is of the JSON.
    Related {
        /// Schema of the file, see [`crate::file`]; its argument is called `file`.
        file: Value,
    },
    /// A file; the schema is [`crate::file`].
    File {
        /// Instead of the file's own media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// A text; the schema is a string.
    Text {
        /// For example `text/plain`.
        media_type: String,
    },
    /// A `GraphQL` document; the schema describes its variables.
    Graphql {
        /// Query or mutation.
        document: String,
    },
    /// A tool of a server of the Model Context Protocol; the schema describes its arguments.
    Mcp {
        /// Its name there.
        tool: String,
    },
}

/// How one member of a form is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Of the member.
    pub name: String,
    /// How.
    pub carries: Carries,
}

/// What comes back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// A file: an image, an archive, a document.
    #[serde(skip_serializing_if = "is_false")]
    pub file: bool,
    /// JSON pointer to the part that matters; empty means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pick: String,
    /// Of that part; absent when it is not known, or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Something of the description that is not carried over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unsupported {
    /// Id of the operation; absent when it is about the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// What it is, for example `cookie parameter session`.
    pub what: String,
    /// Whether the operation does not work without it; such an operation is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unusable: bool,
}

impl Error {
    /// An error that says what is wrong and what to do.
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
    /// About one operation, which works without it.
    pub fn part(operation: &str, what: impl Into<String>) -> Self {
        Self { operation: Some(operation.to_owned()), what: what.into(), unusable: false }
    }

    /// About one operation, which does not work without it.
    pub fn unusable(operation: &str, what: impl Into<String>) -> Self {
        Self { operation: Some(operation.to_owned()), what: what.into(), unusable: true }
    }

    /// About the API as a whole.
    pub fn whole(what: impl Into<String>) -> Self {
        Self { operation: None, what: what.into(), unusable: false }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
