//! Messages that carry events, in their three versions.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use store::Record;

use super::{
    errors,
    event::{self, Event, EventKind, MessageVersion, TriggerSource},
};
use crate::{
    App, Error, Result,
    core::{clock::iso, ids::ProjectId},
    projects,
};

/// Envelope of the third version.
#[derive(Serialize)]
struct Envelope<'a> {
    id: String,
    timestamp: String,
    r#type: String,
    metadata: Metadata<'a>,
    data: &'a RawValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Metadata<'a> {
    Trigger {
        log_id: &'a str,
        trigger_slug: &'a str,
        trigger_id: &'a str,
        connected_account_id: &'a str,
        auth_config_id: &'a str,
        user_id: &'a str,
    },
    Account {
        project_id: &'a str,
        org_id: String,
    },
    Project {
        project_id: &'a str,
    },
}

#[derive(Serialize)]
struct SecondVersion<'a> {
    r#type: String,
    timestamp: String,
    log_id: &'a str,
    data: Map<String, Value>,
}

#[derive(Serialize)]
struct FirstVersion<'a> {
    trigger_name: &'a str,
    trigger_id: String,
    connection_id: String,
    payload: &'a RawValue,
    log_id: &'a str,
}

/// Returns the id of the message of an event, the same in every attempt and version.
#[must_use]
pub fn message_id(event_id: &str) -> String {
    format!("msg_{event_id}")
}

/// Writes the message of an event. Fails if the payload cannot be decrypted, or the project does
/// not exist any more.
pub(super) async fn write(
    app: &App,
    event: &Record<Event>,
    version: MessageVersion,
) -> Result<Bytes> {
    let data = event::payload(app, event).await?;
    // Only messages of triggers have older versions.
    let written = match (version, &event.body.source) {
        (MessageVersion::V1, Some(source)) => serde_json::to_vec(&FirstVersion {
            trigger_name: &source.trigger_slug,
            trigger_id: source.trigger_uuid.to_string(),
            connection_id: source.account_uuid.to_string(),
            payload: &data,
            log_id: source.log_id.as_str(),
        }),
        (MessageVersion::V2, Some(source)) => {
            serde_json::to_vec(&second_version(source, event, &data)?)
        }
        _ => serde_json::to_vec(&envelope(app, event, &data).await?),
    };
    written
        .map(Bytes::from)
        .map_err(|cause| unwritable(event, &cause))
}

async fn envelope<'a>(
    app: &App,
    event: &'a Record<Event>,
    data: &'a RawValue,
) -> Result<Envelope<'a>> {
    Ok(Envelope {
        id: message_id(&event.id),
        timestamp: iso(event.created_at),
        r#type: event.body.kind.name(&app.webhooks.operator_word),
        metadata: metadata(app, event).await?,
        data,
    })
}

async fn metadata<'a>(app: &App, event: &'a Record<Event>) -> Result<Metadata<'a>> {
    let project_id = event.project.as_str();
    Ok(match (&event.body.source, event.body.kind) {
        (Some(source), EventKind::TriggerMessage) => Metadata::Trigger {
            log_id: source.log_id.as_str(),
            trigger_slug: &source.trigger_slug,
            trigger_id: source.trigger_id.as_str(),
            connected_account_id: source.account_id.as_str(),
            auth_config_id: source.auth_config_id.as_str(),
            user_id: &source.user_id,
        },
        (_, EventKind::AccountExpired) => {
            let project = projects::lookup(app, &ProjectId::parse(project_id)?).await?;
            Metadata::Account {
                project_id,
                org_id: project.organization.to_string(),
            }
        }
        _ => Metadata::Project { project_id },
    })
}

fn second_version<'a>(
    source: &'a TriggerSource,
    event: &Record<Event>,
    data: &RawValue,
) -> Result<SecondVersion<'a>> {
    let value = serde_json::from_str(data.get()).map_err(|cause| unwritable(event, &cause))?;
    let mut data = match value {
        Value::Object(members) => members,
        other => Map::from_iter([("payload".to_owned(), other)]),
    };
    for (name, value) in [
        ("connection_id", source.account_uuid.to_string()),
        ("connection_nano_id", source.account_id.to_string()),
        ("trigger_id", source.trigger_uuid.to_string()),
        ("trigger_nano_id", source.trigger_id.to_string()),
        ("user_id", source.user_id.clone()),
    ] {
        data.insert(name.to_owned(), value.into());
    }
    Ok(SecondVersion {
        r#type: source.trigger_slug.to_lowercase(),
        timestamp: iso(event.created_at),
        log_id: source.log_id.as_str(),
        data,
    })
}

fn unwritable(event: &Record<Event>, cause: &serde_json::Error) -> Error {
    errors::internal(format_args!(
        "the message of event {} cannot be written: {cause}",
        event.id
    ))
}
