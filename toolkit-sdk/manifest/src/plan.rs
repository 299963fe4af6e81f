//! How the tools of an imported toolkit call their application.
//!
//! Such a toolkit has no code of its own: a general guest reads the [`Call`] of the tool and does what it says. The calls of
//! all tools lie in one block of bytes, the plan, in the data of the module. A guest reads one tool's call and leaves the
//! rest alone, so that the pages of the others are never touched and cost no memory.
//!
//! Layout: [`MAGIC`], the number of tools, for each tool (in the order of names) place and length of its name and of its
//! call, then the texts. Numbers are 32 bits, little endian; places count from the beginning. A call is JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::is_false;

/// Begins a plan; its last byte is the version of the layout.
pub const MAGIC: [u8; 4] = *b"TPL\x01";

const HEADER: usize = 8;
const ENTRY: usize = 16;

/// What one tool does: one request, and what becomes of its answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// Absolute `https` address. `{name}` is a path parameter by its wire name, or an open field of the account.
    pub url: String,
    /// Values for fields of the account in the address that are not filled in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Sent with every request; names in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// What of the arguments goes into path, query and headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// What of them goes into the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// What the answer is.
    #[serde(skip_serializing_if = "Answer::is_default")]
    pub answer: Answer,
    /// How a list goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// Sends no credential.
    #[serde(skip_serializing_if = "is_false")]
    pub anonymous: bool,
}

/// One argument, and where it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name among the arguments; the same as `name` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// As the application spells it.
    pub name: String,
    /// Where it goes.
    pub place: Place,
    /// How a list or an object is written.
    pub style: Style,
    /// One pair or part for each item, instead of one for all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explode: bool,
    /// A path of several segments: `/` is kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub segments: bool,
    /// Sent when the argument is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The part of a request that a parameter goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the place of `{name}` in the address.
    Path,
    /// After `?`.
    Query,
    /// A header.
    Header,
}

/// How a value that is a list or an object becomes text; the styles of `OpenAPI` (RFC 6570 where it has them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// `a,b`; paths and headers.
    Simple,
    /// `.a.b`; paths.
    Label,
    /// `;name=a,b`; paths.
    Matrix,
    /// `name=a,b`; queries and forms.
    Form,
    /// `name=a b`
    SpaceDelimited,
    /// `name=a|b`
    PipeDelimited,
    /// `name[key]=value`
    DeepObject,
    /// The value as JSON.
    Json,
}

/// The body of a request. Where no argument is named, the arguments that are no parameters are its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "media", rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// JSON.
    Json {
        /// The argument that is the whole body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        argument: Option<String>,
        /// Instead of `application/json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Sent even when no argument of it is given.
        #[serde(default, skip_serializing_if = "is_false")]
        required: bool,
        /// Members that are sent when they are missing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        defaults: BTreeMap<String, Value>,
        /// Names of members that the arguments spell otherwise, by the name of the argument.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
    /// `application/x-www-form-urlencoded`.
    Form {
        /// In order.
        fields: Vec<FormField>,
    },
    /// `multipart/form-data`.
    Multipart {
        /// In order.
        fields: Vec<FormField>,
    },
    /// `multipart/related` (RFC 2387): the arguments as JSON, then a file.
    Related {
        /// The argument that names the file.
        file: String,
        /// Members that are sent when they are missing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        defaults: BTreeMap<String, Value>,
        /// Names of members that the arguments spell otherwise, by the name of the argument.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
    /// The bytes of a file.
    File {
        /// The argument that names the file.
        argument: String,
        /// Instead of the file's own media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// A text as it is.
    Text {
        /// The argument that is the text.
        argument: String,
        /// For example `text/plain`.
        media_type: String,
    },
    /// A `GraphQL` document over JSON; the arguments are its variables.
    Graphql {
        /// Query or mutation.
        document: String,
    },
    /// A tool of a server of the Model Context Protocol (streamable HTTP); the arguments are the tool's.
    Mcp {
        /// Its name there.
        tool: String,
    },
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormField {
    /// Its name among the arguments; the same as `name` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// As the application spells it.
    pub name: String,
    /// What it carries.
    pub carries: Carries,
    /// Sent when the argument is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// What a field of a form carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carries {
    /// A text or number; a list becomes several fields of the same name, an object is JSON.
    Plain,
    /// A text or number; a list becomes one field with commas.
    Joined,
    /// A text or number; lists and objects become `name[0]` and `name[key]`.
    Brackets,
    /// JSON.
    Json,
    /// A file, or a list of files; multipart only.
    File,
}

/// What becomes of the application's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// The answer is put into a file, whatever it is.
    #[serde(skip_serializing_if = "is_false")]
    pub file: bool,
    /// JSON pointer to the part of the answer that matters; empty means all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pick: String,
}

/// How an application divides a list into pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// How the next page is asked for.
    pub next: Next,
    /// JSON pointer to the list in a page; empty when the page is the list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub items: String,
    /// The argument that says how many items to read over all pages.
    pub argument: String,
}

/// Where the next page is. Parameters are query parameters by their wire name, places JSON pointers into the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Next {
    /// The `Link` header (RFC 8288).
    Link,
    /// An address in the page.
    Url {
        /// Where.
        place: String,
    },
    /// A cursor in the page, sent back in a parameter.
    Cursor {
        /// Where.
        place: String,
        /// The parameter.
        parameter: String,
    },
    /// A parameter takes the number of items to skip.
    Offset {
        /// The parameter.
        parameter: String,
    },
    /// A parameter takes the number of the page.
    Page {
        /// The parameter.
        parameter: String,
        /// Number of the first page.
        first: u32,
    },
}

impl Answer {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Lays out the calls of tools, by their slugs.
///
/// # Errors
/// When the plan would be larger than 4 GiB.
pub fn write(calls: &BTreeMap<String, Call>) -> Result<Vec<u8>, std::num::TryFromIntError> {
    let mut index = Vec::with_capacity(HEADER + calls.len() * ENTRY);
    index.extend_from_slice(&MAGIC);
    index.extend_from_slice(&u32::try_from(calls.len())?.to_le_bytes());
    let begin = HEADER + calls.len() * ENTRY;
    let mut texts = Vec::new();
    for (name, call) in calls {
        let json = serde_json::to_vec(call).unwrap_or_default();
        for text in [name.as_bytes(), &json] {
            index.extend_from_slice(&u32::try_from(begin + texts.len())?.to_le_bytes());
            index.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
            texts.extend_from_slice(text);
        }
    }
    index.append(&mut texts);
    Ok(index)
}

/// Finds the call of one tool, by its slug, without reading the others. `None` when there is none, or these bytes are no plan.
#[must_use]
pub fn find(plan: &[u8], name: &str) -> Option<Call> {
    let number = |place: usize| -> Option<usize> {
        let bytes = plan.get(place..place + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let text = |place: usize| -> Option<&[u8]> { plan.get(number(place)?..)?.get(..number(place + 4)?) };
    if !plan.starts_with(&MAGIC) {
        return None;
    }
    let (mut low, mut high) = (0, number(4)?);
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = HEADER.checked_add(middle.checked_mul(ENTRY)?)?;
        match text(entry)?.cmp(name.as_bytes()) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return serde_json::from_slice(text(entry + 8)?).ok(),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Vec<u8> {
        let call = |url: &str| Call { method: "GET".to_owned(), url: url.to_owned(), ..Call::default() };
        let names = ["LIST_ITEMS", "A", "GET_ITEM", "Z"];
        write(&names.iter().map(|name| ((*name).to_owned(), call(name))).collect()).unwrap()
    }

    #[test]
    fn each_call_is_found_by_its_name_alone() {
        let plan = plan();
        for name in ["A", "GET_ITEM", "LIST_ITEMS", "Z"] {
            assert_eq!(find(&plan, name).unwrap().url, name);
        }
        for name in ["", "B", "ZZ", "GET_ITEMS"] {
            assert_eq!(find(&plan, name), None, "{name}");
        }
        assert_eq!(find(&write(&BTreeMap::new()).unwrap(), "A"), None);
    }

    #[test]
    fn bytes_that_are_no_plan_hold_nothing() {
        let plan = plan();
        for end in 0..plan.len() {
            for name in ["A", "Z"] {
                let _ = find(&plan[..end], name);
            }
        }
        let mut wild = plan;
        wild[4..].fill(0xff);
        assert_eq!(find(&wild, "A"), None);
        assert_eq!(find(b"", "A"), None);
    }
}
