//! Information about a key and its project.

use app::{
    core::clock::iso,
    projects::{Holder, Owner, Project, members},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    api::projects,
    http::{auth::ProjectKey, error::ApiResult, reply::Json, signature::IN_TABLE},
};

/// Member id of project keys, which belong to the operator of the server.
const OPERATOR: &str = "operator";

/// The project and the member that a key belongs to.
#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct View {
    project: ProjectView,
    /// Null for the key of a user, which belongs to no single project.
    #[schema(required)]
    api_key: Option<KeyView>,
    org_member: MemberView,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionProject)]
struct ProjectView {
    #[serde(flatten)]
    project: projects::View,
    #[schema(value_type = u64)]
    auto_id: i64,
    nano_id: String,
    org: OrganizationView,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Organization)]
struct OrganizationView {
    id: String,
    name: String,
    plan: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionKey)]
struct KeyView {
    #[schema(value_type = u64)]
    auto_id: i64,
    id: String,
    name: String,
    project_id: String,
    org_member_id: &'static str,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(required)]
    deleted_at: Option<String>,
    /// A placeholder, never the key itself.
    key: &'static str,
    deleted: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
struct MemberView {
    id: String,
    email: String,
    name: String,
    role: &'static str,
}

/// Returns the project of a key, the key itself, and the member it belongs to.
///
/// The key of a user belongs to no single project, so it is not part of the response.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn info(key: ProjectKey) -> ApiResult<Json<View>> {
    Ok(Json(View::new(&key.project, &key.holder)))
}

impl View {
    fn new(project: &Project, holder: &Holder) -> Self {
        let member = match &holder.owner {
            Owner::Member(member) => Some(member.as_ref()),
            Owner::Project(_) | Owner::Organization(_) => None,
        };
        Self {
            project: ProjectView::new(project, holder),
            api_key: member.is_none().then(|| KeyView::new(project, holder)),
            org_member: member.map_or_else(MemberView::operator, MemberView::from),
        }
    }
}

impl ProjectView {
    fn new(project: &Project, holder: &Holder) -> Self {
        Self {
            project: project.into(),
            auto_id: project.stored.number,
            nano_id: project.id.to_string(),
            org: OrganizationView {
                id: project.organization.to_string(),
                name: holder.organization_name.clone(),
                plan: "self_hosted",
            },
        }
    }
}

impl KeyView {
    fn new(project: &Project, holder: &Holder) -> Self {
        let created_at = iso(holder.key_created_at);
        Self {
            auto_id: project.stored.number,
            id: holder.key_id.clone(),
            name: holder.key_name.clone(),
            project_id: project.id.to_string(),
            org_member_id: OPERATOR,
            created_at: created_at.clone(),
            updated_at: created_at,
            deleted_at: None,
            // A key is shown in full once, when it is created.
            key: "REDACTED",
            deleted: false,
        }
    }
}

impl MemberView {
    fn operator() -> Self {
        Self {
            id: OPERATOR.to_owned(),
            email: String::new(),
            name: OPERATOR.to_owned(),
            role: members::Role::Admin.as_str(),
        }
    }
}

impl From<&members::Member> for MemberView {
    fn from(member: &members::Member) -> Self {
        Self {
            id: member.id.to_string(),
            email: member.stored.email.clone(),
            name: member.stored.name.clone(),
            role: member.stored.role.as_str(),
        }
    }
}
