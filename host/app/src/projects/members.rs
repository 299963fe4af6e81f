//! Members: the users of the organization. Each member has a personal key that works in every
//! project.

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, Erasure, Field, Kind, Listed, Query, Record, Time,
    Window,
};
use strum::IntoStaticStr;
use zeroize::Zeroizing;

use super::{
    KeyKind, Project,
    keys::{self, NewKey},
    permissions::Permissions,
};
use crate::{
    App, Result,
    core::{
        AUDIT_LOG_TARGET,
        ids::{MemberId, OrganizationId, ProjectId},
    },
    projects::errors,
};

/// Maximum length of an email address, in characters.
const MAX_EMAIL_CHARS: usize = 254;
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;

pub(crate) static COLLECTION: Collection = Collection {
    name: "members",
    erasure: Erasure::Other("members belong to the organization"),
    fields: &[Field::unique("email", Kind::Text)],
};

/// A member, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredMember {
    /// The email address in lower case, unique among the members.
    pub email: String,
    /// The display name.
    pub name: String,
    /// The permissions of the member.
    pub role: Role,
    /// The project used when a request names none. If absent, the oldest project is used.
    #[serde(default)]
    pub project: Option<ProjectId>,
}

impl Document for StoredMember {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The role of a member in the projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Role {
    /// Read and write access to everything.
    Admin,
    /// Read access only.
    Viewer,
}

/// A member as requests see it.
#[derive(Debug, Clone)]
pub struct Member {
    /// The id.
    pub id: MemberId,
    /// The organization that the member belongs to.
    pub organization: OrganizationId,
    /// The stored body.
    pub stored: StoredMember,
    /// The creation time.
    pub created_at: Time,
}

/// Creates a member with a key. The key is shown only once. Fails if the address is malformed or
/// taken, the name is too long, or the project is unknown.
pub async fn add(
    app: &App,
    organization: &OrganizationId,
    new: StoredMember,
) -> Result<(Member, Zeroizing<String>)> {
    let stored = StoredMember {
        email: new.email.trim().to_lowercase(),
        name: new.name.trim().to_owned(),
        ..new
    };
    let email = &stored.email;
    let parts = email.split_once('@');
    let has_parts = parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    let is_short = email.chars().count() <= MAX_EMAIL_CHARS;
    if !has_parts || !is_short || email.contains(char::is_whitespace) {
        return Err(errors::invalid(format!(
            "email: must be an email address of at most {MAX_EMAIL_CHARS} characters"
        )));
    }
    if stored.name.chars().count() > MAX_NAME_CHARS {
        return Err(errors::invalid(format!(
            "name: at most {MAX_NAME_CHARS} characters"
        )));
    }
    if let Some(project) = &stored.project {
        super::get(app, organization, project).await?;
    }
    let (id, now) = (MemberId::random(), app.clock.now());
    let mut new = NewKey::first(KeyKind::User, id.as_str(), organization);
    new.rights.scopes = (stored.role == Role::Viewer).then(Permissions::reading);
    let batch = Batch::at(now).insert(organization.as_str(), id.as_str(), &stored);
    let (key, batch) = new.create(app, batch).await?;
    match app.store.commit(batch).await {
        Ok(()) => {
            tracing::info!(target: AUDIT_LOG_TARGET, member = id.as_str(), "a member was added");
            let member = Member {
                id,
                organization: organization.clone(),
                stored,
                created_at: now,
            };
            Ok((member, key.secret))
        }
        Err(CommitError::Taken { .. }) => Err(errors::member_taken(stored.email)),
        Err(cause) => Err(cause.into()),
    }
}

/// Returns a page of the members, newest first, and their total number.
pub async fn list(
    app: &App,
    organization: &OrganizationId,
    window: Window,
) -> Result<Listed<Member>> {
    let query = Query::for_project(organization.as_str())
        .descending()
        .window(window);
    let listed = app.store.list::<StoredMember>(&query).await?;
    listed.try_map(Member::from_record)
}

/// Removes a member. The member's key stops working immediately. Fails if the member does not
/// exist.
pub async fn remove(app: &App, organization: &OrganizationId, id: &MemberId) -> Result<()> {
    let removed = keys::revoke_where(
        app,
        id.as_str(),
        |_| true,
        || async {
            let owner = organization.as_str();
            let member = app.store.get::<StoredMember>(owner, id.as_str()).await?;
            let member = member.ok_or_else(|| errors::member_not_found(id))?;
            Ok((Batch::at(app.clock.now()).remove(&member), ()))
        },
    );
    removed.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, member = id.as_str(), "a member was removed");
    Ok(())
}

/// Returns the project that a member's request is about: the named one, else the member's default
/// project, else the oldest. Fails if no such project exists.
pub async fn project(app: &App, member: &Member, named: Option<&ProjectId>) -> Result<Project> {
    if let Some(id) = named.or(member.stored.project.as_ref()) {
        return super::get(app, &member.organization, id).await;
    }
    let oldest = super::oldest(app, &member.organization).await?;
    oldest.ok_or_else(|| errors::project_not_found("of the organization"))
}

impl Member {
    pub(super) fn from_record(record: Record<StoredMember>) -> Result<Self> {
        Ok(Self {
            id: MemberId::parse(&record.id)?,
            organization: OrganizationId::parse(&record.project)?,
            stored: record.body,
            created_at: record.created_at,
        })
    }
}
