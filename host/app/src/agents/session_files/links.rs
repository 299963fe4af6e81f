//! Links by which applications exchange files with a session. This server answers them also if a
//! bucket holds the bytes, because the limits of a session are checked when the bytes arrive.

use std::collections::BTreeMap;

use bytes::Bytes;
use sandbox::Reservation;
use store::{Batch, Record, Time};

use super::{
    COLLECTION, MAX_CHANGE_MS, MAX_TOTAL_BYTES, MOUNT_PATH_FIELD, Owner, SessionCaller, Stored,
    check_limits, check_path, media_type_of, write,
};
use crate::{
    App, Error, Result,
    agents::errors,
    core::ids::FileId,
    files::{self, File, Link, SignedOperation, Ticket},
    projects::{self, record_limits},
};

/// Number of uploads whose time is over and that are erased for a further one.
const LAPSED_PER_LINK: usize = 64;

/// Returns a link to which the content of a file is sent. It can be used repeatedly. Fails if the
/// path or the media type is invalid, or the limits of the session do not permit another file.
pub async fn upload_link(
    app: &App,
    caller: &SessionCaller,
    path: &str,
    media_type: Option<&str>,
) -> Result<Link> {
    check_path(MOUNT_PATH_FIELD, path)?;
    if !media_type.is_none_or(files::is_media_type) {
        let problem = "mimetype: must be a media type, such as `text/csv`";
        return Err(errors::session_invalid(problem));
    }
    let owner = Owner::from(caller);
    let seconds = i64::from(caller.project.stored.config.file_url_expiry);
    let now = app.clock.now();
    let awaited_ms = seconds * 1_000 + MAX_CHANGE_MS;
    let expires_at = Time(now.0.saturating_add(awaited_ms));
    let prepared = app.store.change(&COLLECTION, owner.session, || async {
        let batch = Batch::at(now).check(&owner.session(app).await?);
        let Some(mut file) = owner.at(app, path).await? else {
            let new = BTreeMap::from([(path.to_owned(), Some(0))]);
            let records = owner.records(app).await?;
            check_limits(&records, &new, now)?;
            record_limits::count_bytes(app, owner.project, 0)?;
            // Nothing was uploaded in their time, so that there is no content to erase with them.
            let lapsed = records.iter().filter(|record| {
                let file = &record.body;
                file.place.is_some() && file.blob.is_none() && file.is_expired(now)
            });
            let without_lapsed = lapsed.take(LAPSED_PER_LINK).fold(batch, Batch::purge);
            let id = FileId::of_session();
            let awaited = awaited(owner, path, media_type, now, expires_at);
            let inserted = without_lapsed.insert(owner.project, id.as_str(), &awaited);
            return Ok::<_, Error>((inserted, id));
        };
        if let Some(media_type) = media_type {
            media_type.clone_into(&mut file.body.media_type);
        }
        if file.body.blob.is_none() {
            file.body.expires_at = Some(expires_at);
        }
        Ok((batch.update(&file), FileId::parse(&file.id)?))
    });
    let id = prepared.await?;
    let size = app.files.settings.size.min(MAX_TOTAL_BYTES);
    let media_type = media_type.unwrap_or_else(|| media_type_of(path));
    let file = File::unlisted(path, media_type, 0);
    let link = files::server_link(app, &caller.project, id, &file, SignedOperation::Put, size);
    Ok(link)
}

/// Returns the record of a file whose content is not uploaded yet.
fn awaited(
    owner: Owner<'_>,
    path: &str,
    media_type: Option<&str>,
    now: Time,
    expires_at: Time,
) -> Stored {
    Stored {
        session: owner.session.to_owned(),
        place: Some(owner.place(path)),
        path: path.to_owned(),
        blob: None,
        media_type: media_type.unwrap_or_else(|| media_type_of(path)).to_owned(),
        size: 0,
        modified_at: now,
        expires_at: Some(expires_at),
    }
}

/// Returns a link to the content of a file. Fails if the file does not exist.
pub async fn download_link(app: &App, caller: &SessionCaller, path: &str) -> Result<Link> {
    check_path(MOUNT_PATH_FIELD, path)?;
    let stored = Owner::from(caller)
        .at(app, path)
        .await?
        .filter(|file| file.body.blob.is_some())
        .ok_or_else(|| errors::session_file_not_found(path))?;
    let size = stored.body.size;
    let file = File::unlisted(path, &stored.body.media_type, size);
    let id = FileId::parse(&stored.id)?;
    let link = files::server_link(app, &caller.project, id, &file, SignedOperation::Get, size);
    Ok(link)
}

/// Stores the content of a file, as permitted by its link. Fails if the file or its session was
/// deleted, or if a limit of the session or the quota of the project is exceeded.
pub async fn put(app: &App, ticket: &Ticket, bytes: Bytes) -> Result<()> {
    let record = linked(app, ticket).await?;
    let (project, session) = (&*record.project, &*record.body.session);
    let owner = Owner { project, session };
    let change = BTreeMap::from([(record.body.path.clone(), Some(bytes))]);
    write(app, owner, change, None).await
}

/// Returns a file and its content, as permitted by its link. Fails if the file does not exist. A blob
/// is missing if the file was replaced after its record was read, so the record is read once more.
pub async fn download(app: &App, ticket: &Ticket) -> Result<(File, Bytes, Reservation)> {
    for _ in 0..2 {
        let file = linked(app, ticket).await?.body;
        let Some(key) = &file.blob else { break };
        let memory = files::reserve_memory(app, &ticket.project.as_str().into(), file.size)?;
        if let Some(bytes) = app.store.blobs().get(key).await? {
            let file = File::unlisted(&file.path, &file.media_type, file.size);
            return Ok((file, bytes, memory));
        }
    }
    Err(errors::file_not_found(&ticket.id))
}

async fn linked(app: &App, ticket: &Ticket) -> Result<Record<Stored>> {
    let project = ticket.project.as_str();
    if !projects::is_live(&app.store, project).await? {
        return Err(errors::file_not_found(&ticket.id));
    }
    app.store
        .get::<Stored>(project, ticket.id.as_str())
        .await?
        .filter(|record| record.body.place.is_some())
        .ok_or_else(|| errors::file_not_found(&ticket.id))
}
