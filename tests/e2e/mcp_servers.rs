//! MCP servers: creation, change, lists, addresses, instances and deletion.

use harness::{Answer, Client, Guest, Host, guest, host::Setup, unique};
use serde_json::{Value, json};

use crate::{
    given::{self, string},
    mcp_endpoints::other_toolkit,
};

const SERVERS_PATH: &str = "/mcp/servers";

/// A project with an auth config of a toolkit, and a toolkit that needs no account.
struct Given {
    project: Client,
    config: String,
    toolkit: &'static str,
    tool: &'static str,
}

impl Given {
    async fn new() -> Self {
        let project = Host::shared().await.new_project().await;
        Self {
            config: given::auth_config(&project).await,
            toolkit: given::keyed().await,
            tool: given::shared_echo().await,
            project,
        }
    }

    async fn custom(&self, body: Value) -> Answer {
        self.project.post("/mcp/servers/custom", &body).await
    }

    /// Creates a server of the auth config and returns its id.
    async fn server(&self, name: &str) -> String {
        let body = json!({ "name": name, "auth_config_ids": [self.config] });
        let made = self.project.post(SERVERS_PATH, &body).await.expect(201);
        string(&made["id"])
    }

    async fn connect(&self, user: &str) -> String {
        let secret = harness::secret();
        let made = given::made_account(&self.project, &self.config, user, &secret).await;
        string(&made["id"])
    }
}

fn names(listed: &Answer) -> Vec<&str> {
    let items = listed["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn server_combines_toolkits_of_all_it_names() {
    let given = Given::new().await;
    let body = json!({
        "name": "My-Tools 1", "auth_config_ids": [given.config],
        "custom_tools": [given.tool.to_lowercase()], "managed_auth_via_service": true,
    });
    let made = given.custom(body).await.expect(201);
    assert_eq!(made["allowed_tools"], json!([given.tool]));
    let mut toolkits = [given.toolkit.to_owned(), given::toolkit_of(given.tool)];
    toolkits.sort();
    assert_eq!(made["toolkits"], json!(toolkits));
    assert_eq!(made["managed_auth_via_service"], true);
    let icons = made["toolkit_icons"].as_object().unwrap();
    assert!(icons.contains_key(given.toolkit), "{icons:?}");
    let url = string(&made["mcp_url"]);
    let path = format!("/v3/mcp/{}?user_id=default", string(&made["id"]));
    assert!(
        url.contains(&path) && url.ends_with("include_service_helper_actions=true"),
        "{url}"
    );
    for command in ["cursor", "claude", "windsurf"] {
        assert!(string(&made["commands"][command]).contains(&url));
    }
}

#[tokio::test]
async fn unknown_parts_of_a_server_are_listed() {
    let given = Given::new().await;
    let body = json!({
        "name": "a_b", "toolkits": ["no_such"], "auth_config_ids": ["ac_AAAAAAAAAAAA", "x"],
        "allowed_tools": ["NO_SUCH"],
    });
    let refused = given.custom(body).await.expect(400);
    assert_eq!(refused["error"]["slug"], "McpServer_BadRequest");
    let problems = refused["error"]["errors"].as_array().unwrap();
    assert_eq!(problems.len(), 5, "{problems:?}");
    let other = given::auth_config(&given.project).await;
    let both = json!({ "name": "Mail", "auth_config_ids": [given.config, other] });
    given.project.post(SERVERS_PATH, &both).await.expect(400);
}

#[tokio::test]
async fn user_of_a_server_is_refused() {
    let given = Given::new().await;
    let id = given.server("Before").await;
    let body = json!({ "name": "Mail", "auth_config_ids": [], "user_id": "amy" });
    for refused in [
        given.project.post(SERVERS_PATH, &body).await,
        given.custom(body.clone()).await,
        given.project.patch(&format!("/mcp/{id}"), &body).await,
    ] {
        let problems = refused.expect(400).problems();
        assert!(problems[0].starts_with("user_id: "), "{problems:?}");
        assert!(problems[0].ends_with("`?user_id=`"), "{problems:?}");
    }
}

#[tokio::test]
async fn change_leaves_other_fields_alone() {
    let given = Given::new().await;
    let id = given.server("Before").await;
    let path = format!("/mcp/{id}");
    let change = json!({ "name": "After" });
    let changed = given.project.patch(&path, &change).await.expect(200);
    assert_eq!(changed["auth_config_ids"], json!([given.config]));
    assert_eq!(changed["toolkits"], json!([given.toolkit]));
    let none = json!({ "auth_config_ids": [], "toolkits": [] });
    let changed = given.project.patch(&path, &none).await.expect(200);
    assert_eq!(changed["name"], "After");
    assert_eq!(changed["toolkits"], json!([]));
    let nothing_left = json!({ "name": "no" });
    given.project.patch(&path, &nothing_left).await.expect(400);
}

#[tokio::test]
async fn removed_auth_config_leaves_only_named_toolkits() {
    let given = Given::new().await;
    let (other, config) = other_toolkit(&given.project).await;
    let mut all = [given.toolkit.to_owned(), other.clone()];
    all.sort();
    for (named, left) in [
        (json!([]), json!([given.toolkit])),
        (json!([other]), json!(all)),
    ] {
        let body = json!({
            "name": "Both", "toolkits": named, "auth_config_ids": [given.config, config],
        });
        let made = given.custom(body).await.expect(201);
        assert_eq!(made["toolkits"], json!(all));
        let path = format!("/mcp/{}", string(&made["id"]));
        let change = json!({ "auth_config_ids": [given.config] });
        let changed = given.project.patch(&path, &change).await.expect(200);
        assert_eq!(changed["toolkits"], left, "{named}");
    }
}

#[tokio::test]
async fn lists_filter_and_page_by_number() {
    let given = Given::new().await;
    for name in ["First one", "Second", "Third one"] {
        given.server(name).await;
    }
    let custom = json!({ "name": "Without", "allowed_tools": [given.tool] });
    given.custom(custom).await.expect(201);
    let list = async |query: &str| {
        let path = format!("{SERVERS_PATH}?{query}");
        given.project.get(&path).await.expect(200)
    };
    let page = list("limit=2&order_by=created_at&order_direction=asc&page_no=2").await;
    assert_eq!(names(&page), ["Third one", "Without"]);
    assert_eq!(page["total_pages"], 2);
    assert_eq!(page["current_page"], 2);
    let named = list("name=ONE").await;
    assert_eq!(names(&named), ["Third one", "First one"]);
    let of_config = list(&format!("auth_config_ids={}", given.config)).await;
    assert_eq!(names(&of_config).len(), 3);
    assert_eq!(names(&list("toolkits=no_such").await).len(), 0);
    for no_number in ["limit=NaN", "page_no=NaN"] {
        let path = format!("{SERVERS_PATH}?{no_number}");
        given.project.get(&path).await.expect(400);
    }
    let path = format!("/mcp/app/{}", given.toolkit);
    let of_toolkit = given.project.get(&path).await.expect(200);
    assert_eq!(names(&of_toolkit).len(), 3);
    let of_other_too = given.project.get(&format!("{path}?toolkits=no_such")).await;
    assert_eq!(names(&of_other_too.expect(200)).len(), 0);
    let unknown = given.project.get("/mcp/app/no_such_toolkit").await;
    unknown.expect(404);
}

#[tokio::test]
async fn generated_addresses_keep_the_order() {
    let given = Given::new().await;
    let id = given.server("Mail").await;
    let body = json!({
        "mcp_server_id": id, "user_ids": ["b c", "a&b"], "connected_account_ids": ["ca_x"],
        "managed_auth_by_service": true,
    });
    let made = given.project.post("/mcp/servers/generate", &body).await;
    let made = made.expect(200);
    let url = string(&made["mcp_url"]);
    assert!(url.ends_with(&format!("/v3/mcp/{id}")), "{url}");
    let flag = "include_service_helper_actions=true";
    let users = ["b+c", "a%26b"].map(|user| format!("{url}?user_id={user}&{flag}"));
    assert_eq!(made["user_ids_url"], json!(users));
    let accounts = [format!("{url}?connected_account_id=ca_x&{flag}")];
    assert_eq!(made["connected_account_urls"], json!(accounts));
}

#[tokio::test]
async fn instance_needs_an_account_and_deletes_it() {
    let given = Given::new().await;
    let id = given.server("Mail").await;
    let path = format!("{SERVERS_PATH}/{id}/instances");
    let create = json!({ "user_id": "amy" });
    let refused = given.project.post(&path, &create).await.expect(403);
    assert!(string(&refused["error"]["message"]).contains(&given.config));
    let account = given.connect("amy").await;
    let other = given.connect("bob").await;
    let made = given.project.post(&path, &create).await.expect(201);
    assert_eq!(made["instance_id"], "amy");
    assert_eq!(made["mcp_server_id"], json!(id));
    given.project.post(&path, &create).await.expect(409);
    let listed = given.project.get(&format!("{path}?search=AM")).await;
    let listed = listed.expect(200);
    assert_eq!(listed["instances"][0]["id"], made["id"]);
    assert_eq!(listed["server_name"], "Mail");
    let read = given.project.get(&format!("/mcp/{id}")).await.expect(200);
    assert_eq!(read["server_instance_count"], 1);
    let instance = format!("{path}/amy");
    let removed = given.project.delete(&instance).await.expect(200);
    assert_eq!(removed["deleted_connected_accounts"], 1);
    given.project.delete(&instance).await.expect(404);
    assert_eq!(given::status(&given.project, &account).await, "");
    assert_eq!(given::status(&given.project, &other).await, "ACTIVE");
}

#[tokio::test]
async fn deleted_server_takes_its_instances_along() {
    let given = Given::new().await;
    let id = given.server("Mail").await;
    given.connect("amy").await;
    let instances = format!("{SERVERS_PATH}/{id}/instances");
    let instance = json!({ "user_id": "amy" });
    given.project.post(&instances, &instance).await.expect(201);
    let path = format!("/mcp/{id}");
    let removed = given.project.delete(&path).await.expect(200);
    assert_eq!(removed.json, json!({ "id": id, "deleted": true }));
    given.project.delete(&path).await.expect(404);
    given.project.get(&instances).await.expect(404);
}

#[tokio::test]
async fn server_of_another_project_is_not_found() {
    let given = Given::new().await;
    let id = given.server("Mail").await;
    let other = Host::shared().await.new_project().await;
    let path = format!("/mcp/{id}");
    other.get(&path).await.expect(404);
    other.patch(&path, &json!({})).await.expect(404);
    other.delete(&path).await.expect(404);
    let body = json!({ "name": "Mail", "auth_config_ids": [given.config] });
    other.post(SERVERS_PATH, &body).await.expect(400);
    assert_eq!(names(&other.get(SERVERS_PATH).await.expect(200)).len(), 0);
}

#[tokio::test]
async fn operator_word_names_the_helper_tools() {
    let host = Setup::new().with("operator_word", "acme").start().await;
    let slug = format!("t{}", unique(6));
    host.publish(Guest::echo().component(), &guest::manifest(&slug))
        .await;
    let project = host.as_project();
    let body = json!({ "name": "Mail", "auth_config_ids": [], "no_auth_apps": ["acme", slug] });
    let made = project.post(SERVERS_PATH, &body).await.expect(201);
    assert_eq!(made["managed_auth_via_acme"], true);
    assert_eq!(made["toolkits"], json!([slug]));
    assert!(string(&made["mcp_url"]).ends_with("include_acme_helper_actions=true"));
    let body = json!({ "name": "Mail", "managed_auth_via_acme": true });
    let made = project.post("/mcp/servers/custom", &body).await.expect(201);
    assert_eq!(made["managed_auth_via_acme"], true);
}
