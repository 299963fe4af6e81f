//! Who a key speaks for.

use app::{
    clock::iso,
    projects::{Holder, Project},
};
use axum::response::Response;
use serde_json::{Value, json};

use crate::{
    api::projects::project_fields,
    auth::ProjectKey,
    respond::{Reply, ok},
    shapes,
};

/// Tells a key's project, itself, and the member it belongs to.
#[utoipa::path(
    get,
    path = "/auth/session/info",
    responses((status = 200, description = "The project and its key", body = shapes::Session)),
)]
pub(crate) async fn info(key: ProjectKey) -> Reply<Response> {
    ok(&view(&key.project, &key.holder))
}

fn view(project: &Project, holder: &Holder) -> Value {
    let mut shown = project_fields(project);
    for (name, value) in [
        ("auto_id", json!(project.stored.number)),
        ("nano_id", json!(project.id)),
        ("org", json!({"id": project.organisation, "name": holder.organisation_name, "plan": "self_hosted"})),
    ] {
        shown.insert(name.to_owned(), value);
    }
    let created = iso(holder.key_created_at);
    json!({
        "project": shown,
        "api_key": {
            "auto_id": project.stored.number,
            "id": holder.key_id,
            "name": holder.key_name,
            "project_id": project.id,
            "org_member_id": MEMBER,
            "created_at": created,
            "updated_at": created,
            "deleted_at": null,
            // A key is shown in full once, when it is made.
            "key": "REDACTED",
            "deleted": false,
        },
        "org_member": {"id": MEMBER, "email": "", "name": "operator", "role": "admin"},
    })
}

/// There are no persons on this server but the one who operates it.
const MEMBER: &str = "operator";
