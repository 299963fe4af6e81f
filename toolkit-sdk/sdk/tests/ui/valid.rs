use toolkit_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Input {}

/// Deletes everything.
#[tool(
    destructive,
    idempotent,
    open_world,
    important,
    no_auth,
    tags("a", "b"),
    synonyms("wipe"),
    scopes("s"),
    egress("DELETE api.example.com/x")
)]
fn delete_all(_input: Input) -> Result<Value> {
    Ok(json!({}))
}

toolkit! {
    slug: "demo",
    name: "Demo",
    description: "Shows.",
    categories: ["examples"],
    version: "20261121_00",
    auth: [
        api_key(
            fields: [secret(api_key, title: "Key"), text(site, optional, pattern: "[a-z]+", help: "The first part.")],
            request: [query("key", "{api_key}"), path("~key~", "{api_key}")],
            base_url: "https://{site}.example.com",
            verify: "POST https://api.example.com/me",
        ),
        bearer_token(help: "Settings"),
        basic(sign: r#"{ "with": "template", "request": [
            { "in": "query", "name": "sig", "value": "{username}{hmac_sha1_base64({password},{method}{path})}" }
        ] }"#),
        oauth1(
            fields: [text(user, hidden)],
            flow: r#"{
                "request_url": "https://api.example.com/request", "authorize_url": "https://api.example.com/authorize",
                "token_url": "https://api.example.com/token", "keep": { "user": { "path": "user_id" } }
            }"#,
        ),
        saml(
            token_url: "https://api.example.com/token",
            fields: [secret(xml, title: "Assertion")],
            flow: r#"{ "token": { "params": { "assertion": "{base64url({xml})}" } } }"#,
        ),
        oauth2(
            authorize_url: "https://{site}.example.com/authorize",
            token_url: "https://{site}.example.com/token",
            fields: [text(site)],
            scopes: ["read", "write"],
            scope_separator: ",",
            authorize_params: [param("access_type", "offline")],
            pkce: false,
            client_auth: "basic",
            token_answer: "form",
            flow: r#"{ "refresh_margin": 60, "identity": { "path": "user.email" } }"#,
        ),
        s2s_oauth2(token_url: "https://api.example.com/token", client_auth: "basic"),
        billcom_auth(
            token_url: "https://api.example.com/login",
            fields: [secret(password), text(region, one_of: "eu, us"), text(host, format: "hostname", hidden)],
            client_auth: "none",
            flow: r#"{
                "token": { "params": { "password": "{password}", "region": "{region}" } },
                "response": { "access_token": "session", "keep": { "host": { "path": "host" } } }
            }"#,
        ),
    ],
    egress: ["api.example.com:8443/v1", "GET,POST *.example.com"],
    limits: { memory_mib: 96 },
    tools: [delete_all],
    triggers: [],
}

fn main() {}
