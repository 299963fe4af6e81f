//! Requests and views of members and organizations.

use app::{
    Record,
    core::clock::iso,
    projects::{Organization, members},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{Page, Position};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMember)]
pub(crate) struct Create {
    pub email: String,
    pub name: Option<String>,
    pub role: Role,
    pub project_id: Option<String>,
}

mirror! {
    /// Role of a member, which determines the permissions in all projects.
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Role of members::Role {
        Admin,
        Viewer,
    }
}

view! {
    /// A member of the organization.
    #[schema(as = OrganizationMember)]
    pub(crate) struct View from member: members::Member {
        id: String = member.id.to_string(),
        email: String = member.stored.email,
        name: String = member.stored.name,
        role: Role = member.stored.role.into(),
        /// The project used when a request names none; null for the oldest.
        project_id!: Option<String> = member.stored.project.map(|project| project.to_string()),
        #[schema(format = DateTime)] created_at: String = iso(member.created_at),
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

view! {
    /// A page of organizations.
    #[schema(as = Organizations)]
    pub(crate) struct OrganizationList from (
        organization: Record<Organization>,
        page: &Page,
    ) where {
        let view = OrganizationView {
            id: organization.id,
            name: organization.body.name,
            created_at: iso(organization.created_at),
            updated_at: iso(organization.updated_at),
        };
        let (organizations, total) = page.cut(vec![view]);
    } {
        organizations: Vec<OrganizationView> = organizations,
        #[serde(flatten)] position: Position = Position::counted(page, total),
    }
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
