//! Creation of projects.

use store::{Batch, CommitError, EditError};
use uuid::Uuid;

use super::{
    Config, KeyKind, ORGANIZATIONS_COLLECTION, Project, ShownKey, StoredProject, errors,
    keys::NewKey, organizations, permissions::KeyRestrictions,
};
use crate::{
    App, Result,
    core::{
        AUDIT_LOG_TARGET,
        ids::{OrganizationId, ProjectId},
    },
};

/// A project to be created.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// The name, with the rules of [`StoredProject::name`].
    pub name: String,
    /// The settings.
    pub config: Config,
    /// The restrictions of the key created with the project, or `None` to create no key.
    pub key: Option<KeyRestrictions>,
}

/// Creates a project. Fails if the name is malformed or taken, or a setting is invalid.
pub async fn create(
    app: &App,
    organization: &OrganizationId,
    request: NewProject,
) -> Result<(Project, Option<ShownKey>)> {
    check_name(&request.name)?;
    request.config.check()?;
    let now = app.clock.now();
    let id = ProjectId::random();
    // If another request takes the same number first, the change runs again with the next number.
    let created = app
        .store
        .change(&ORGANIZATIONS_COLLECTION, organization.as_str(), || async {
            let mut owner = organizations::owner(app, organization).await?;
            let stored = StoredProject {
                name: request.name.clone(),
                number: owner.body.next_number,
                uuid: Uuid::new_v4(),
                config: request.config.clone(),
            };
            owner.body.next_number += 1;
            let mut batch = Batch::at(now)
                .insert(organization.as_str(), id.as_str(), &stored)
                .update(&owner);
            let mut key = None;
            if let Some(rights) = request.key.clone() {
                let mut new = NewKey::first(KeyKind::Project, id.as_str(), organization);
                new.rights = rights;
                let (created, with_key) = new.create(app, batch).await?;
                (key, batch) = (Some(created), with_key);
            }
            Ok((batch, (stored, key)))
        });
    match created.await {
        Ok((stored, key)) => {
            tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), "a project was created");
            let project = Project {
                tenant: id.as_str().into(),
                id,
                organization: organization.clone(),
                stored,
                created_at: now,
                updated_at: now,
            };
            Ok((project, key))
        }
        Err(EditError::Commit(CommitError::Taken { .. })) => {
            Err(errors::project_name_taken(request.name))
        }
        Err(cause) => Err(cause.into()),
    }
}

fn check_name(name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    if (3..=75).contains(&name.len())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    {
        return Ok(());
    }
    Err(errors::invalid(
        "name: must be 3 to 75 letters, digits, `_` and `-`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_names_keep_their_rule() {
        for name in ["abc", "A_b-9", &"x".repeat(75)] {
            check_name(name).unwrap();
        }
        for name in ["", "ab", "a b", "å-long", &"x".repeat(76)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
