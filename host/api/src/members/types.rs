//! Requests and views of members and organizations.

use app::{
    Record,
    core::clock::iso,
    projects::{Organization, members},
};
use http::{Page, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
        /// The project used when a request does not name one; null for the oldest.
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
        let (organizations, total) = page.cut(vec![organization.into()]);
    } {
        organizations: Vec<OrganizationView> = organizations,
        #[serde(flatten)] position: Position = Position::counted(page, total),
    }
}

view! {
    #[schema(as = ListedOrganization)]
    struct OrganizationView from organization: Record<Organization> {
        id: String = organization.id,
        name: String = organization.body.name,
        #[schema(format = DateTime)] created_at: String = iso(organization.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(organization.updated_at),
    }
}
