//! Information about a key and its project.

use app::{
    core::clock::iso,
    events::subscriptions::{self, Opened},
    projects::{Holder, Owner, Project, members},
};
use http::{ApiResult, IN_TABLE, Json, ProjectKey};

use crate::projects;

/// Member id of project keys, which belong to the operator of the server.
const OPERATOR_MEMBER_ID: &str = "operator";

view! {
    /// The project and the member that a key belongs to.
    #[schema(as = Session)]
    pub(crate) struct View from (project: &Project, webhook: Option<Opened>, holder: &Holder) where {
        let member = match &holder.owner {
            Owner::Member(member) => Some(member.as_ref()),
            Owner::Project(_) | Owner::Organization(_) => None,
        };
    } {
        project: ProjectView = ProjectView::new(project, webhook, holder),
        /// Null for the key of a user, which belongs to no single project.
        api_key!: Option<KeyView> = member.is_none().then(|| KeyView::new(project, holder)),
        org_member: MemberView = member.map_or_else(MemberView::operator, MemberView::from),
    }
}

view! {
    #[schema(as = SessionProject)]
    struct ProjectView from (project: &Project, webhook: Option<Opened>, holder: &Holder) where {
        let mut shown = projects::View::new(project, webhook, false);
        // Here the id of the project is its legacy id, and `nano_id` is the id.
        shown.id = project.stored.uuid.to_string();
    } {
        #[serde(flatten)] project: projects::View = shown,
        #[schema(value_type = u64)] auto_id: i64 = project.stored.number,
        nano_id: String = project.id.to_string(),
        org: OrganizationView = OrganizationView::new(project, holder),
    }
}

view! {
    #[schema(as = Organization)]
    struct OrganizationView from (project: &Project, holder: &Holder) {
        id: String = project.organization.to_string(),
        name: String = holder.organization_name.clone(),
        plan: &'static str = "self_hosted",
    }
}

view! {
    #[schema(as = SessionKey)]
    struct KeyView from (project: &Project, holder: &Holder) {
        #[schema(value_type = u64)] auto_id: i64 = project.stored.number,
        /// A UUID made of the key.
        id: String = holder.uuid().to_string(),
        name: String = holder.key_name.clone(),
        project_id: String = project.id.to_string(),
        org_member_id: &'static str = OPERATOR_MEMBER_ID,
        #[schema(format = DateTime)] created_at: String = iso(holder.key_created_at),
        #[schema(format = DateTime)] updated_at: String = iso(holder.key_created_at),
        deleted_at!: Option<String> = None,
        /// A placeholder, never the key itself.
        key: &'static str = "REDACTED",
        deleted: bool = false,
    }
}

view! {
    #[schema(as = Member)]
    struct MemberView from member: &members::Member {
        id: String = member.id.to_string(),
        email: String = member.stored.email.clone(),
        name: String = member.stored.name.clone(),
        role: &'static str = member.stored.role.into_str(),
    }
}

/// Returns the project of a key, the key itself, and the member it belongs to.
///
/// The key of a user belongs to no single project, so it is not part of the response.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn info(key: ProjectKey) -> ApiResult<Json<View>> {
    let webhook = subscriptions::of_project(key.app(), &key.project).await?;
    Ok(Json(View::new(&key.project, webhook, &key.holder)))
}

impl MemberView {
    fn operator() -> Self {
        Self {
            id: OPERATOR_MEMBER_ID.to_owned(),
            email: String::new(),
            name: OPERATOR_MEMBER_ID.to_owned(),
            role: members::Role::Admin.into_str(),
        }
    }
}
