//! The keys of a project, as requests manage them.

use store::Batch;
use zeroize::Zeroizing;

use super::{COLLECTION, KeyKind, NewKey, ShownKey, list, revoke_where};
use crate::{
    App, Result,
    core::{
        AUDIT_LOG_TARGET,
        ids::{OrganizationId, ProjectId},
        shown_slug,
        vault::SealContext,
    },
    projects::{self, errors, permissions::KeyRestrictions},
};

/// Maximum number of live keys of one owner.
pub const MAX_KEYS_PER_OWNER: usize = 100;
/// Maximum length of a key's name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Adds a key to a project. Fails if the project does not exist or has a hundred keys, or the name
/// is invalid.
pub async fn add_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    name: &str,
    rights: KeyRestrictions,
) -> Result<ShownKey> {
    let owner = id.as_str();
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(errors::invalid(format!(
            "name: must be 1 to {MAX_NAME_CHARS} characters"
        )));
    }
    let added = app.store.change(&COLLECTION, owner, || async {
        // The project is written, so that requests in parallel count the keys one after another.
        let project = projects::record(app, organization, id).await?;
        let batch = Batch::at(app.clock.now()).update(&project);
        if list(app, owner).await?.len() >= MAX_KEYS_PER_OWNER {
            return Err(errors::invalid(format!(
                "a project has at most {MAX_KEYS_PER_OWNER} keys: revoke a key that is not used"
            )));
        }
        let new = NewKey {
            name,
            rights: rights.clone(),
            ..NewKey::first(KeyKind::Project, owner, organization)
        };
        let (key, batch) = new.create(app, batch).await?;
        Ok((batch, key))
    });
    let key: ShownKey = added.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = owner, key = key.id, "a key was added");
    Ok(key)
}

/// Deletes every key of a project and creates a new one. Fails if the project does not exist.
pub async fn regenerate_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
) -> Result<ShownKey> {
    // The new key is not in the store yet, so it is not among the keys that end.
    let owner = id.as_str();
    let replaced = revoke_where(
        app,
        owner,
        |_| true,
        || async {
            let project = projects::record(app, organization, id).await?;
            let batch = Batch::at(app.clock.now()).check(&project);
            let new = NewKey::first(KeyKind::Project, owner, organization);
            let (key, batch) = new.create(app, batch).await?;
            Ok((batch, key))
        },
    );
    let key = replaced.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = owner, key = key.id, "the keys of a project were replaced");
    Ok(key)
}

/// Revokes one key of a project immediately. Fails if the project or the key does not exist.
pub async fn remove_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    key: &str,
) -> Result<()> {
    projects::record(app, organization, id).await?;
    let keys = list(app, id.as_str()).await?;
    if !keys.iter().any(|own| own.body.key_id == key) {
        return Err(errors::key_not_found(shown_slug(key)));
    }
    revoke_where(
        app,
        id.as_str(),
        |own| own == key,
        || async { Ok((Batch::at(app.clock.now()), ())) },
    )
    .await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), key, "a key was revoked");
    Ok(())
}

/// Returns the keys of a project or organization with their secrets, oldest first. Fails if a key
/// does not open.
pub async fn show_keys(app: &App, owner: &str) -> Result<Vec<ShownKey>> {
    let mut shown = Vec::new();
    for record in list(app, owner).await? {
        let context = SealContext::of(&record, "secret");
        let sealed = &record.body.secret;
        let secret = app.vault.unseal(context, sealed, app.clock.now()).await?;
        shown.push(ShownKey {
            secret: Zeroizing::new(secret),
            used_at: record.body.used_at.max(app.keys.used_at(&record.id)),
            id: record.body.key_id,
            name: record.body.name,
            rights: record.body.rights,
            created_at: record.created_at,
        });
    }
    Ok(shown)
}
