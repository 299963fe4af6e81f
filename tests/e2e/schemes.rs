//! Every scheme that is served, from the request that connects an account to the one that deletes it, held against the table that
//! `docs/auth.md` has of them.

use std::collections::BTreeMap;

use futures::future::join_all;
use harness::{Client, Guest, Host, Issuer, guest, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// A key that everybody who has it may use, for rows that sign with one.
const KEY: &str = "shared-secret-0123456789abcdef-0123456789";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A scheme, and what an account of it is made of.
struct Row {
    mode: &'static str,
    /// In the manifest; null for none.
    scheme: Value,
    /// Of the auth config.
    credentials: Value,
    /// What the person fills in.
    values: Value,
    /// The header that calls carry, where it is not a token.
    sent: &'static str,
}

impl Row {
    fn of_fields(mode: &'static str, values: Value, placement: Value, sent: &'static str) -> Self {
        let scheme = json!({ "mode": mode, "name": mode, "fields": fields(&values), "request": [placement] });
        Self { mode, scheme, credentials: json!({}), values, sent }
    }

    /// A flow at an authorization server, with what the mode says differently from the standards.
    fn of_flow(mode: &'static str, issuer: &Issuer, credentials: Value, values: Value, more: Value) -> Self {
        let mut scheme = issuer.scheme();
        (scheme["mode"], scheme["fields"]) = (mode.into(), fields(&values));
        let flow = scheme["oauth2"].as_object_mut().unwrap();
        if values != json!({}) || mode == "S2S_OAUTH2" {
            flow.remove("authorize_url");
        }
        flow.insert("revoke".to_owned(), json!({ "url": format!("{}/revoke", issuer.url()) }));
        flow.extend(more.as_object().unwrap().clone());
        Self { mode, scheme, credentials, values, sent: "" }
    }
}

/// Of each value a field; those are secret whose names say so.
fn fields(values: &Value) -> Value {
    let names = values.as_object().unwrap().keys();
    let secret = |name: &str| ["secret", "key", "pass", "token", "json"].iter().any(|word| name.contains(word));
    names.map(|name| json!({ "name": name, "title": name, "secret": secret(name) })).collect()
}

fn header(value: &str) -> Value {
    json!({ "in": "header", "name": "authorization", "value": value })
}

fn rows(issuer: &impl Fn() -> Issuer) -> Vec<(Row, Issuer)> {
    let without = || json!({});
    let grant = |params: Value| json!({ "token": { "params": params } });
    let password = json!({ "grant_type": "password", "username": "{username}", "password": "{password}" });
    let signed = |key: &str, more: Value| {
        let mut flow = json!({ "assertion": { "algorithm": "HS256", "key": key, "claims": { "iss": "robot" } } });
        flow.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        flow
    };
    let file = json!({ "credentials_json": json!({ "private_key": KEY }).to_string() });
    let installed = json!({ "grant_type": JWT_BEARER, "assertion": "{assertion}" });
    let basic = json!({ "in": "basic", "username": "{username}", "password": "{password}" });
    let discovered = |mode: &'static str, issuer: &Issuer| Row {
        mode,
        scheme: issuer.discovered(mode),
        credentials: json!({}),
        values: json!({}),
        sent: "",
    };
    let own = Issuer::credentials;
    let client = json!({ "client_id": harness::issuer::CLIENT_ID, "client_secret": harness::issuer::CLIENT_SECRET });
    let of = |make: &dyn Fn(&Issuer) -> Row| {
        let issuer = issuer();
        (make(&issuer), issuer)
    };
    vec![
        of(&|_| Row { mode: "NO_AUTH", scheme: Value::Null, credentials: without(), values: without(), sent: "" }),
        of(&|_| {
            Row::of_fields("API_KEY", json!({ "api_key": "k-0123456789" }), header("Key {api_key}"), "Key k-0123456789")
        }),
        of(&|_| {
            Row::of_fields(
                "BEARER_TOKEN",
                json!({ "token": "t-0123456789" }),
                header("Bearer {token}"),
                "Bearer t-0123456789",
            )
        }),
        of(&|_| {
            let values = json!({ "username": "amy", "password": "open sesame" });
            Row::of_fields("BASIC", values, basic.clone(), "Basic YW15Om9wZW4gc2VzYW1l")
        }),
        of(&|issuer| Row::of_flow("OAUTH2", issuer, own(), without(), without())),
        of(&|issuer| discovered("DCR_OAUTH", issuer)),
        of(&|issuer| discovered("CIMD_OAUTH", issuer)),
        of(&|issuer| Row::of_flow("S2S_OAUTH2", issuer, own(), without(), without())),
        of(&|issuer| {
            let flow = signed("{credentials_json.private_key}", json!({ "client_auth": "none" }));
            Row::of_flow("GOOGLE_SERVICE_ACCOUNT", issuer, without(), file.clone(), flow)
        }),
        of(&|issuer| {
            let flow = signed("{private_key}", json!({ "client_auth": "none", "token": { "params": installed } }));
            Row::of_flow("SERVICE_ACCOUNT", issuer, without(), json!({ "private_key": KEY }), flow)
        }),
        of(&|issuer| {
            let values = json!({ "username": "amy", "password": "pass" });
            let flow = json!({ "token": { "params": password }, "refresh": {} });
            Row::of_flow("BASIC_WITH_JWT", issuer, own(), values, flow)
        }),
        of(&|issuer| {
            let values = json!({ "dev_key": "d-0123456789", "password": "pass" });
            let params = json!({ "grant_type": "password", "password": "{password}", "dev": "{dev_key}" });
            Row::of_flow("BILLCOM_AUTH", issuer, own(), values, grant(params))
        }),
        of(&|issuer| {
            let params = json!({
                "grant_type": "client_credentials", "client_id": "{client_id}", "client_secret": "{client_secret}",
            });
            let flow = json!({ "client_auth": "none", "token": { "params": params } });
            Row::of_flow("CALCOM_AUTH", issuer, without(), client.clone(), flow)
        }),
    ]
}

/// One account after the other of a row, in a project of their own.
struct Life<'a> {
    row: &'a Row,
    issuer: &'a Issuer,
    project: Client,
    slug: String,
    config: Value,
    /// Where the tool goes.
    url: String,
}

impl<'a> Life<'a> {
    async fn of(host: &Host, row: &'a Row, issuer: &'a Issuer) -> Self {
        let (project, slug) = (host.new_project().await, given::slug());
        let mut manifest = guest::manifest(&slug);
        manifest["egress"] = json!([{ "host": "api.example.com" }]);
        if !row.scheme.is_null() {
            manifest["auth"] = json!([row.scheme]);
        }
        host.publish(Guest::fetch().component(), &manifest).await;
        let config = json!({ "type": "use_custom_auth", "authScheme": row.mode, "credentials": row.credentials });
        let config =
            project.post("/auth_configs", &json!({ "toolkit": { "slug": slug }, "auth_config": config })).await;
        let config = config.expect(201)["auth_config"]["id"].clone();
        let has_flow = row.scheme["oauth2"].is_object();
        let url = if has_flow {
            format!("{}/api/me", issuer.url())
        } else {
            format!("https://api.example.com/echo/{}", unique(8))
        };
        Self { row, issuer, project, slug, config, url }
    }

    fn has_flow(&self) -> bool {
        self.row.scheme["oauth2"].is_object()
    }

    /// How an account is connected, and the account.
    async fn connect(&self) -> (&'static str, String) {
        let state = json!({ "authScheme": self.row.mode, "val": self.row.values });
        let body =
            json!({ "auth_config": { "id": self.config }, "connection": { "user_id": "default", "state": state } });
        let made = self.project.post("/connected_accounts", &body).await.expect(201);
        let id = made["id"].as_str().unwrap().to_owned();
        let how = match made["redirect_url"].as_str() {
            None => "at once",
            Some(url) => {
                let back = self.issuer.visit(url).await;
                assert_eq!(self.project.exchange(Method::GET, &back, &[], Vec::new()).await.status, 302);
                "in a browser"
            }
        };
        assert_eq!(self.status(&id).await, "ACTIVE", "{}", self.row.mode);
        (how, id)
    }

    async fn status(&self, id: &str) -> Value {
        self.project.get(&format!("/connected_accounts/{id}")).await.expect(200)["status"].clone()
    }

    /// Runs the tool with an account; what the application was shown.
    async fn call(&self, id: &str) -> String {
        let body = json!({ "arguments": { "url": self.url }, "user_id": "default", "version": "latest", "connected_account_id": id });
        self.project.post(&format!("/tools/execute/{}", guest::tool(&self.slug)), &body).await.data();
        let path = self.url.trim_start_matches("https://api.example.com");
        let tag = path.split('/').nth(2).unwrap();
        let seen = Host::application().seen(tag);
        seen.iter()
            .rfind(|seen| seen.path == path)
            .expect("the application was asked")
            .header("authorization")
            .to_owned()
    }

    /// Every cell of its row.
    async fn cells(&self) -> [&'static str; 5] {
        let mode = self.row.mode;
        let (connect, id) = self.connect().await;
        let shown = self.call(&id).await;
        let call = match shown.strip_prefix("Bearer ") {
            Some(token) if self.issuer.knows(token) => "with its token",
            _ if shown.is_empty() => "without a credential",
            _ => {
                assert_eq!(shown, self.row.sent, "{mode}");
                "with what was filled in"
            }
        };
        let refresh = if self.has_flow() {
            let renewed = self.issuer.granted("refresh_token");
            self.issuer.expire();
            let again = self.call(&id).await;
            assert!(again != shown && self.issuer.knows(again.trim_start_matches("Bearer ")), "{mode}: {again}");
            if self.issuer.granted("refresh_token") > renewed { "by its refresh token" } else { "as it was got" }
        } else {
            "not needed"
        };
        let told = |good: usize| match (self.has_flow(), good, self.issuer.good()) {
            (false, ..) => "erased",
            (true, before, 0) if before > 0 => "told and erased",
            (true, ..) => "erased here alone",
        };
        let good = self.issuer.good();
        self.project.post(&format!("/connected_accounts/{id}/revoke"), &json!({})).await.expect(200);
        let read = self.project.get(&format!("/connected_accounts/{id}")).await.expect(200);
        assert_eq!(read["state"]["val"], json!({ "status": "REVOKED" }), "{mode}");
        let revoke = told(good);
        let (_, id) = self.connect().await;
        let good = self.issuer.good();
        self.project.delete(&format!("/connected_accounts/{id}?revoke_on_delete=true")).await.expect(200);
        self.project.get(&format!("/connected_accounts/{id}")).await.expect(404);
        [connect, call, refresh, revoke, told(good)]
    }
}

/// The table of the page, by scheme.
fn table() -> BTreeMap<String, Vec<String>> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/auth.md")).unwrap();
    let lines = page.lines().skip_while(|line| !line.starts_with("| Scheme | Connect |")).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        (cells.next().unwrap(), cells.collect())
    });
    rows.collect()
}

#[tokio::test]
async fn every_scheme_connects_calls_renews_takes_back_and_deletes_as_the_table_says() {
    let host = Host::shared().await;
    let issuer = || Host::application().issuer(&unique(8));
    let rows = rows(&issuer);
    let seen = join_all(rows.iter().map(|(row, issuer)| async move {
        let cells = Life::of(host, row, issuer).await.cells().await;
        (row.mode.to_owned(), cells.map(str::to_owned).to_vec())
    }));
    assert_eq!(seen.await.into_iter().collect::<BTreeMap<_, _>>(), table());
}
