//! The plan: the requests that the tools of an imported toolkit send to their provider.
//!
//! Such a toolkit has no code of its own. A general guest reads the [`Call`] of the tool and
//! executes it. The calls of all tools are stored in one block of bytes, the plan, in the data of
//! the module. A guest reads only one tool's call, so the memory pages of the other calls are never
//! touched and cost no memory.
//!
//! Layout: [`PLAN_MAGIC`], the number of tools, and for each tool (in the order of names) offset
//! and length of its name and of its call, followed by the names and calls themselves. Numbers are
//! 32 bits, little endian. Offsets count from the start. A call is JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::is_false;

/// Beginning of a plan. Its last byte is the version of the layout.
pub const PLAN_MAGIC: [u8; 4] = *b"TPL\x01";

const HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 16;

/// The call of one tool: one request, and the conversion of its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// Method: GET, HEAD, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// Absolute `https` address. `{name}` is a path parameter by its wire name, or an open field of
    /// the account.
    pub url: String,
    /// Default values for fields of the account in the address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Headers of every request, names in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Arguments that go into path, query and headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Arguments that go into the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Conversion of the response.
    #[serde(skip_serializing_if = "ResponseRule::is_default")]
    pub answer: ResponseRule,
    /// Paging of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Pages>,
    /// True if the request carries no credential.
    #[serde(skip_serializing_if = "is_false")]
    pub anonymous: bool,
}

/// One argument, and its location in the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name among the arguments; the same as `name` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// Name as the provider spells it.
    pub name: String,
    /// Part of the request.
    pub place: ParameterIn,
    /// Serialization of a list or an object.
    pub style: Style,
    /// True if each item is a pair or part of its own, instead of one for all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub explode: bool,
    /// True if the value is a path of several segments, in which `/` is kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub segments: bool,
    /// Value that is sent when the argument is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The part of a request that a parameter goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterIn {
    /// Path, replacing `{name}` in the address.
    Path,
    /// Query, after `?`.
    Query,
    /// A header.
    Header,
}

/// The serialization of a list or an object; the styles of `OpenAPI` (those of RFC 6570 where it
/// has them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// `a,b`, for paths and headers.
    Simple,
    /// `.a.b`, for paths.
    Label,
    /// `;name=a,b`, for paths.
    Matrix,
    /// `name=a,b`, for queries and forms.
    Form,
    /// `name=a b`
    SpaceDelimited,
    /// `name=a|b`
    PipeDelimited,
    /// `name[key]=value`
    DeepObject,
    /// Value as JSON.
    Json,
}

/// The body of a request. If no argument is named, the arguments that are not parameters are its
/// members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "media", rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// JSON.
    Json {
        /// Argument used as the whole body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        argument: Option<String>,
        /// Media type, instead of `application/json`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// True if the body is sent even when all of its arguments are missing.
        #[serde(default, skip_serializing_if = "is_false")]
        required: bool,
        /// Values of members that are missing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        defaults: BTreeMap<String, Value>,
        /// Names of members that differ from their arguments, by the name of the argument.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
    /// `application/x-www-form-urlencoded`.
    Form {
        /// Fields, in order.
        fields: Vec<FormField>,
    },
    /// `multipart/form-data`.
    Multipart {
        /// Fields, in order.
        fields: Vec<FormField>,
    },
    /// `multipart/related` (RFC 2387): the arguments as JSON, followed by a file.
    Related {
        /// Argument that names the file.
        file: String,
        /// Values of members that are missing.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        defaults: BTreeMap<String, Value>,
        /// Names of members that differ from their arguments, by the name of the argument.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
    /// Bytes of a file.
    File {
        /// Argument that names the file.
        argument: String,
        /// Media type, instead of the file's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
    /// Text as it is.
    Text {
        /// Argument with the text.
        argument: String,
        /// Media type, for example `text/plain`.
        media_type: String,
    },
    /// `GraphQL` document over JSON. The arguments are its variables.
    Graphql {
        /// Query or mutation.
        document: String,
        /// Names of variables that differ from their arguments, by the name of the argument.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
    /// Call of a tool on a server of the Model Context Protocol (streamable HTTP). The arguments
    /// are those of the tool.
    Mcp {
        /// Name of the tool on that server.
        tool: String,
        /// Names of the tool's arguments that differ here, by the name of the argument here.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        renamed: BTreeMap<String, String>,
    },
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormField {
    /// Name among the arguments; the same as `name` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// Name as the provider spells it.
    pub name: String,
    /// Content of the field.
    pub carries: FieldEncoding,
    /// Value that is sent when the argument is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The content of a form field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldEncoding {
    /// Text or number. A list becomes several fields of the same name, an object becomes JSON.
    Plain,
    /// Text or number. A list becomes one field with commas.
    Joined,
    /// Text or number. Lists and objects become `name[0]` and `name[key]`.
    Brackets,
    /// JSON.
    Json,
    /// File, or a list of files. For multipart only.
    File,
}

/// The conversion of the provider's response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseRule {
    /// True if the response is stored in a file, whatever it contains.
    #[serde(skip_serializing_if = "is_false")]
    pub file: bool,
    /// JSON pointer to the relevant part of the response. Empty means all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pick: String,
}

/// The paging of a list at a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// Reference to the next page.
    pub next: Next,
    /// JSON pointer to the list in a page. Empty when the page is the list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub items: String,
    /// Argument with the number of items to read over all pages.
    pub argument: String,
}

/// The reference to the next page. Parameters are query parameters by their wire name, places are
/// JSON pointers into the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Next {
    /// `Link` header (RFC 8288).
    Link,
    /// Address in the page.
    Url {
        /// Location of the address.
        place: String,
    },
    /// Cursor in the page, sent back in a parameter.
    Cursor {
        /// Location of the cursor.
        place: String,
        /// Name of the parameter.
        parameter: String,
    },
    /// Parameter with the number of items to skip.
    Offset {
        /// Name of the parameter.
        parameter: String,
    },
    /// Parameter with the number of the page.
    Page {
        /// Name of the parameter.
        parameter: String,
        /// Number of the first page.
        first: u32,
    },
}

impl ResponseRule {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Serializes the calls of tools, given by their slugs, as a plan.
///
/// # Errors
/// An error if the plan would be larger than 4 GiB.
pub fn write(calls: &BTreeMap<String, Call>) -> Result<Vec<u8>, std::num::TryFromIntError> {
    let mut index = Vec::with_capacity(HEADER_BYTES + calls.len() * ENTRY_BYTES);
    index.extend_from_slice(&PLAN_MAGIC);
    index.extend_from_slice(&u32::try_from(calls.len())?.to_le_bytes());
    let begin = HEADER_BYTES + calls.len() * ENTRY_BYTES;
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

/// Finds the call of one tool by its slug, without reading the others. Returns `None` if the plan
/// does not contain the call or is not a plan.
#[must_use]
pub fn find(plan: &[u8], name: &str) -> Option<Call> {
    if !plan.starts_with(&PLAN_MAGIC) {
        return None;
    }
    let mut low = 0;
    let mut high = number_at(plan, 4)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = HEADER_BYTES.checked_add(middle.checked_mul(ENTRY_BYTES)?)?;
        match bytes_at(plan, entry)?.cmp(name.as_bytes()) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                return serde_json::from_slice(bytes_at(plan, entry + 8)?).ok();
            }
        }
    }
    None
}

fn number_at(plan: &[u8], position: usize) -> Option<usize> {
    let bytes = plan.get(position..position + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// Returns the bytes whose offset and length are stored at a position.
fn bytes_at(plan: &[u8], position: usize) -> Option<&[u8]> {
    plan.get(number_at(plan, position)?..)?
        .get(..number_at(plan, position + 4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Vec<u8> {
        let call = |url: &str| Call {
            method: "GET".to_owned(),
            url: url.to_owned(),
            ..Call::default()
        };
        let names = ["LIST_ITEMS", "A", "GET_ITEM", "Z"];
        write(
            &names
                .iter()
                .map(|name| ((*name).to_owned(), call(name)))
                .collect(),
        )
        .unwrap()
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
    fn invalid_plan_is_rejected() {
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
