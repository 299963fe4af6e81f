//! Information about a key and its project.

use app::{
    clock::iso,
    projects::{Holder, Owner, Project},
};
use axum::response::Response;
use serde_json::{Value, json};

use crate::{
    api::projects::project_fields,
    http::{auth::ProjectKey, error::ApiResult, scaffold::ok},
    shapes,
};

/// Returns the project of a key, the key itself, and the member it belongs to.
///
/// The key of a user belongs to no single project, so it is not part of the response.
#[utoipa::path(
    get,
    path = "/auth/session/info",
    responses((status = 200, description = "The project and its key", body = shapes::Session)),
)]
pub(crate) async fn info(key: ProjectKey) -> ApiResult<Response> {
    ok(&view(&key.project, &key.holder))
}

fn view(project: &Project, holder: &Holder) -> Value {
    let mut shown = project_fields(project);
    for (name, value) in [
        ("auto_id", json!(project.stored.number)),
        ("nano_id", json!(project.id)),
        (
            "org",
            json!({"id": project.organization, "name": holder.organization_name, "plan": "self_hosted"}),
        ),
    ] {
        shown.insert(name.to_owned(), value);
    }
    let (key, member) = match &holder.owner {
        Owner::Member(member) => {
            let stored = &member.stored;
            let view = json!({
                "id": member.id,
                "email": stored.email,
                "name": stored.name,
                "role": stored.role.as_str(),
            });
            (Value::Null, view)
        }
        _ => (
            own(project, holder),
            json!({"id": OPERATOR, "email": "", "name": OPERATOR, "role": "admin"}),
        ),
    };
    json!({"project": shown, "api_key": key, "org_member": member})
}

/// Returns the project's own key.
fn own(project: &Project, holder: &Holder) -> Value {
    let created = iso(holder.key_created_at);
    json!({
        "auto_id": project.stored.number,
        "id": holder.key_id,
        "name": holder.key_name,
        "project_id": project.id,
        "org_member_id": OPERATOR,
        "created_at": created,
        "updated_at": created,
        "deleted_at": null,
        // A key is shown in full once, when it is created.
        "key": "REDACTED",
        "deleted": false,
    })
}

/// Member id of project keys, which belong to the operator of the server.
const OPERATOR: &str = "operator";
