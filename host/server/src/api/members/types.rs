//! Requests and views of members and organizations.

use app::{
    Record,
    core::clock::iso,
    projects::{Organization, members},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::page::{Page, Position};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMember)]
pub(crate) struct Create {
    pub email: String,
    #[serde(default)]
    pub name: Option<String>,
    pub role: Role,
    #[serde(default)]
    pub project_id: Option<String>,
}

/// Role of a member, which determines the permissions in all projects.
#[derive(Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Admin,
    Viewer,
}

impl From<Role> for members::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Admin => Self::Admin,
            Role::Viewer => Self::Viewer,
        }
    }
}

impl From<members::Role> for Role {
    fn from(role: members::Role) -> Self {
        match role {
            members::Role::Admin => Self::Admin,
            members::Role::Viewer => Self::Viewer,
        }
    }
}

/// A member of the organization.
#[derive(Serialize, ToSchema)]
#[schema(as = OrganizationMember)]
pub(crate) struct View {
    id: String,
    email: String,
    name: String,
    role: Role,
    /// The project used when a request names none; null for the oldest.
    #[schema(required)]
    project_id: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

impl From<members::Member> for View {
    fn from(member: members::Member) -> Self {
        let stored = member.stored;
        Self {
            id: member.id.to_string(),
            email: stored.email,
            name: stored.name,
            role: stored.role.into(),
            project_id: stored.project.map(|project| project.to_string()),
            created_at: iso(member.created_at),
        }
    }
}

/// The member that was created.
#[derive(Serialize, ToSchema)]
#[schema(as = NewMember)]
pub(crate) struct CreatedView {
    #[serde(flatten)]
    pub member: View,
    /// The key in full, shown only in this response.
    pub key: String,
}

/// A page of organizations.
#[derive(Serialize, ToSchema)]
#[schema(as = Organizations)]
pub(crate) struct OrganizationList {
    organizations: Vec<OrganizationView>,
    #[serde(flatten)]
    position: Position,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ListedOrganization)]
struct OrganizationView {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl OrganizationList {
    /// Builds the view of a page of the list that consists of one organization.
    pub(crate) fn new(organization: Record<Organization>, page: &Page) -> Self {
        let view = OrganizationView {
            id: organization.id,
            name: organization.body.name,
            created_at: iso(organization.created_at),
            updated_at: iso(organization.updated_at),
        };
        let (organizations, total) = page.cut(vec![view]);
        Self {
            organizations,
            position: Position::counted(page, total),
        }
    }
}
