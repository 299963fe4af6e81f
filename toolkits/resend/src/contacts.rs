//! Contacts, and the segments that group them for newsletters.

use toolkit_sdk::prelude::*;

use crate::api::{API, Id, Page, Part, read};

/// A contact.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Contact {
    id: String,
    email: String,
    #[serde(default)]
    first_name: Option<String>,
    #[serde(default)]
    last_name: Option<String>,
    created_at: String,
    /// True if the contact gets no newsletters; mails from `send_email` still arrive.
    #[serde(default)]
    unsubscribed: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewContact {
    #[schemars(email)]
    email: String,
    first_name: Option<String>,
    last_name: Option<String>,
    /// True for a contact that wants no newsletters.
    #[serde(default)]
    unsubscribed: bool,
    /// Ids of the segments for the contact, from `list_segments`.
    #[serde(default)]
    segments: Vec<String>,
}

#[derive(Serialize)]
struct Creation {
    email: String,
    #[serde(flatten)]
    names: Names,
    unsubscribed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    segments: Vec<Id>,
}

#[derive(Serialize)]
struct Names {
    #[serde(skip_serializing_if = "Option::is_none")]
    first_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_name: Option<String>,
}

/// Adds a contact for newsletters and puts it into segments. Returns its id.
#[tool(
    important,
    example = r#"{"email": "ada@example.com", "first_name": "Ada"}"#
)]
pub(crate) fn create_contact(input: NewContact) -> Result<Id> {
    let NewContact {
        email,
        first_name,
        last_name,
        unsubscribed,
        segments,
    } = input;
    let segments = segments.into_iter().map(|id| Id { id }).collect();
    let body = Creation {
        email,
        names: Names {
            first_name,
            last_name,
        },
        unsubscribed,
        segments,
    };
    API.post("/contacts").json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Who {
    /// Id or email address of the contact.
    #[schemars(length(min = 1))]
    contact: String,
}

/// Gets one contact by id or email address.
#[tool(read_only, idempotent, example = r#"{"contact": "ada@example.com"}"#)]
pub(crate) fn get_contact(input: Who) -> Result<Contact> {
    API.get("/contacts/{contact}")
        .path("contact", &input.contact)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Listing {
    /// Only contacts of the segment with this id.
    segment: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists all contacts, or those of one segment.
#[tool(read_only, idempotent, example = r#"{"limit": 50}"#)]
pub(crate) fn list_contacts(input: Listing) -> Result<Page<Contact>> {
    let request = match input.segment {
        Some(segment) => API
            .get("/segments/{segment}/contacts")
            .path("segment", segment),
        None => API.get("/contacts"),
    };
    read(request, &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Change {
    /// Id or email address of the contact.
    #[schemars(length(min = 1))]
    contact: String,
    /// New first name. Fields that are left out stay unchanged.
    first_name: Option<String>,
    last_name: Option<String>,
    unsubscribed: Option<bool>,
}

#[derive(Serialize)]
struct Update {
    #[serde(flatten)]
    names: Names,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsubscribed: Option<bool>,
}

/// Changes the name of a contact or its newsletter subscription.
#[tool(
    idempotent,
    destructive,
    example = r#"{"contact": "ada@example.com", "unsubscribed": true}"#
)]
pub(crate) fn update_contact(input: Change) -> Result<Id> {
    let Change {
        contact,
        first_name,
        last_name,
        unsubscribed,
    } = input;
    let body = Update {
        names: Names {
            first_name,
            last_name,
        },
        unsubscribed,
    };
    API.patch("/contacts/{contact}")
        .path("contact", contact)
        .json(&body)
        .send()?
        .json()
}

/// A group of contacts.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Segment {
    id: String,
    name: String,
    created_at: String,
}

/// Lists the segments, which are the groups of contacts that get newsletters.
#[tool(read_only, idempotent, example = r#"{}"#)]
pub(crate) fn list_segments(input: Part) -> Result<Page<Segment>> {
    read(API.get("/segments"), &input)
}
