//! Files in results. Files that a tool made and named in its result are stored, and links replace
//! their names. A result too large for a response is itself stored as a file.

use bytes::Bytes;
use sandbox::File as MadeFile;
use serde_json::{Value, json};

use super::{Link, NewFile, download_link, record, store_new};
use crate::{
    App, Result,
    catalog::ResolvedTool,
    core::{clock::iso, ids::FileId},
    files::errors,
    projects::Project,
};

/// The field of a result that names a file.
const FILE_MEMBER: &str = "s3url";

/// Size of the beginning of a result, in bytes.
const BEGINNING_BYTES: usize = 16 << 10;

/// Returns the beginning of a result, cut between two characters.
#[must_use]
pub fn beginning(result: &[u8]) -> Bytes {
    let end = match std::str::from_utf8(result) {
        Ok(text) => text.floor_char_boundary(BEGINNING_BYTES),
        Err(_) => BEGINNING_BYTES.min(result.len()),
    };
    // A slice would keep the whole result in memory.
    Bytes::copy_from_slice(result.get(..end).unwrap_or_default())
}

/// Returns a tool's result with links to its files: those that the tool made, and those that it was
/// given. Fails if a file cannot be stored.
pub(crate) async fn link_files(
    app: &App,
    project: &Project,
    resolved: &ResolvedTool,
    data: &Bytes,
    made: Vec<MadeFile>,
    given: &[String],
) -> Result<Bytes> {
    let mut value: Value = serde_json::from_slice(data).map_err(|cause| {
        errors::internal(format!(
            "the data of a tool is not JSON although it was validated: {cause}"
        ))
    })?;
    let mut names = Vec::new();
    visit_file_names(&mut value, &mut |place| {
        names.extend(place.as_str().map(str::to_owned))
    });
    names.sort_unstable();
    names.dedup();
    let mut links: Vec<(String, Link)> = Vec::new();
    for file in made.into_iter().filter(|file| names.contains(&file.id)) {
        let new = NewFile {
            toolkit: &resolved.release.slug,
            tool: &resolved.tool.slug,
            name: &file.name,
            media_type: &file.media_type,
            bytes: file.bytes,
        };
        let stored = store_new(app, project, new).await?;
        links.push((file.id, stored.link));
    }
    for id in given.iter().filter(|id| names.contains(id)) {
        let record = record(app, project.id.as_str(), &FileId::parse(id)?).await?;
        links.push((id.clone(), download_link(app, project, &record).await?));
    }
    if links.is_empty() {
        return Ok(data.clone());
    }
    visit_file_names(&mut value, &mut |place| {
        let link = links.iter().find(|(id, _)| *place == **id);
        if let Some((_, link)) = link {
            *place = link.url.clone().into();
        }
    });
    Ok(value.to_string().into())
}

/// Stores the result of a tool of a toolkit as a file. Returns the result for the caller, and the
/// data for the log record, which contains no link. Fails if it would exceed the storage quota of
/// the project.
pub async fn result_as_file(
    app: &App,
    project: &Project,
    (toolkit, tool): (&str, &str),
    data: Bytes,
) -> Result<[Bytes; 2]> {
    const FILE_NAME: &str = "result.json";
    const MEDIA_TYPE: &str = "application/json";
    let size = data.len();
    let made = NewFile {
        toolkit,
        tool,
        name: FILE_NAME,
        media_type: MEDIA_TYPE,
        bytes: data,
    };
    let link = store_new(app, project, made).await?.link;
    let mut file = json!({ "name": FILE_NAME, "mimetype": MEDIA_TYPE, "size": size });
    let record = json!({ "result_file": file }).to_string();
    file[FILE_MEMBER] = link.url.into();
    file["expires_at"] = iso(link.expires_at).into();
    let shown = json!({ "result_file": file }).to_string();
    Ok([shown.into(), record.into()])
}

/// Calls a function with every value that may name a file.
fn visit_file_names(value: &mut Value, act: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if name == FILE_MEMBER && value.is_string() {
                    act(value);
                } else {
                    visit_file_names(value, act);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                visit_file_names(item, act);
            }
        }
        _ => {}
    }
}
