//! Every supported auth scheme and its relevant variants, from the request that connects an account
//! to the one that deletes it, compared with the table in `docs/auth.md`.

use std::collections::BTreeMap;

use futures::future::join_all;
use harness::{
    Client, Guest, Host, Issuer, Provider,
    fake_app::ReceivedRequest,
    guest,
    issuer::{CLIENT_ID, CLIENT_SECRET, PUBLIC_CLIENT_ID, SUBJECT_TOKEN},
    signed::{hmac_sha256, is_signed_by_aws_key, private_key},
    unique,
};
use serde_json::{Value, json};

use crate::given;

/// A symmetric key for rows whose accounts sign with one.
const SYMMETRIC_KEY: &str = harness::marked!("shared-secret-0123456789abcdef-");
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Row of accounts with a client certificate, which `certificates.rs` tests.
pub(crate) const CERTIFICATE_ROW: &str = "API_KEY, a client certificate";

/// An auth scheme with the data of an account.
struct Row {
    /// Name of the row in the table.
    name: String,
    mode: &'static str,
    /// Auth scheme of the manifest, or null.
    scheme: Value,
    /// Credentials of the auth config.
    credentials: Value,
    /// Values that the user fills in.
    values: Value,
    at: At,
}

/// Destination of an account's calls, and the credential that they carry.
enum At {
    /// An authorization server and its API: an access token of that server.
    Issuer(Issuer),
    /// An OAuth 1.0 provider: a signature, which the provider verifies.
    Provider(Provider),
    /// A provider that accepts every request: this header.
    Header(&'static str),
    /// A provider that accepts every request: a valid signature.
    Signature(fn(&ReceivedRequest) -> bool),
}

impl Row {
    fn of_fields(mode: &'static str, values: Value, placement: Value, sent: &'static str) -> Self {
        let scheme = json!({ "mode": mode, "name": mode, "fields": fields(&values), "request": [placement] });
        Self {
            name: mode.to_owned(),
            mode,
            scheme,
            credentials: json!({}),
            values,
            at: At::Header(sent),
        }
    }

    fn signing(how: &str, values: Value, sign: Value, good: fn(&ReceivedRequest) -> bool) -> Self {
        let scheme =
            json!({ "mode": "API_KEY", "name": "Keys", "fields": fields(&values), "sign": sign });
        let (name, credentials) = (format!("API_KEY, signed {how}"), json!({}));
        Self {
            name,
            mode: "API_KEY",
            scheme,
            credentials,
            values,
            at: At::Signature(good),
        }
    }

    /// Returns a row for an OAuth 1.0 provider with this signature method.
    fn of_oauth1(method: &str) -> Self {
        let provider = Host::application().provider(&unique(8));
        provider.signs_with(method);
        let (name, values) = (format!("OAUTH1, {method}"), json!({}));
        Self {
            name,
            mode: "OAUTH1",
            scheme: provider.scheme(),
            credentials: Provider::credentials(),
            values,
            at: At::Provider(provider),
        }
    }

    /// Returns a row for a grant at an authorization server, with the members in which the mode
    /// differs from the standard.
    fn of_flow(mode: &'static str, credentials: Value, values: Value, more: Value) -> Self {
        let issuer = Host::application().issuer(&unique(8));
        let mut scheme = issuer.scheme();
        (scheme["mode"], scheme["fields"]) = (mode.into(), fields(&values));
        let mut flow = scheme["oauth2"].take();
        if mode != "OAUTH2" {
            flow.as_object_mut().unwrap().remove("authorize_url");
        }
        flow["revoke"] = json!({ "url": format!("{}/revoke", issuer.url()) });
        scheme["oauth2"] = given::merged(flow, &more);
        Self {
            name: mode.to_owned(),
            mode,
            scheme,
            credentials,
            values,
            at: At::Issuer(issuer),
        }
    }

    /// Returns the same for a provider with discoverable metadata.
    fn discovered(mode: &'static str) -> Self {
        let issuer = Host::application().issuer(&unique(8));
        let scheme = issuer.discovered(mode);
        Self {
            scheme,
            at: At::Issuer(issuer),
            ..Self::of_flow(mode, json!({}), json!({}), json!({}))
        }
    }

    /// Renames the row to a variant of its mode.
    fn named(self, how: &str) -> Self {
        Self {
            name: format!("{}, {how}", self.mode),
            ..self
        }
    }

    fn issuer(&self) -> Option<&Issuer> {
        match &self.at {
            At::Issuer(issuer) => Some(issuer),
            At::Provider(_) | At::Header(_) | At::Signature(_) => None,
        }
    }
}

/// Returns a field for each value. Fields are secret if their names say so.
fn fields(values: &Value) -> Value {
    let names = values.as_object().unwrap().keys();
    let words = ["secret", "key", "pass", "token", "json", "xml"];
    let fields = names.map(|name| {
        let is_secret = words.iter().any(|word| name.contains(word));
        json!({ "name": name, "title": name, "secret": is_secret })
    });
    fields.collect()
}

fn header(value: &str) -> Value {
    json!({ "in": "header", "name": "authorization", "value": value })
}

/// Returns the rows of accounts that consist of the values filled in.
fn keys() -> Vec<Row> {
    let basic = json!({ "in": "basic", "username": "{username}", "password": "{password}" });
    let aws = json!({
        "with": "aws_sigv4", "access_key_id": "{id}", "secret_access_key": "{key}", "region": "eu-central-1", "service": "s3",
    });
    let digest = json!({ "with": "template", "request": [
        { "in": "header", "name": "x-time", "value": "{now}" },
        { "in": "header", "name": "x-signature", "value": "{hmac_sha256({key},{method}{path}{now})}" },
    ] });
    let own = json!({ "id": "AKIDEXAMPLE", "key": SYMMETRIC_KEY });
    vec![
        Row {
            scheme: Value::Null,
            ..Row::of_fields("NO_AUTH", json!({}), json!({}), "")
        },
        Row::of_fields(
            "API_KEY",
            json!({ "api_key": harness::marked!("k-") }),
            header("Key {api_key}"),
            harness::marked!("Key k-"),
        ),
        Row::of_fields(
            "BEARER_TOKEN",
            json!({ "token": harness::marked!("t-") }),
            header("Bearer {token}"),
            harness::marked!("Bearer t-"),
        ),
        Row::of_fields(
            "BASIC",
            json!({ "username": "amy", "password": "open sesame" }),
            basic,
            "Basic YW15Om9wZW4gc2VzYW1l",
        ),
        Row::signing("by AWS Signature Version 4", own.clone(), aws, |seen| {
            is_signed_by_aws_key(seen, SYMMETRIC_KEY)
        }),
        Row::signing("as the toolkit describes", own, digest, |seen| {
            let text = format!("{}{}{}", seen.method, seen.path, seen.header("x-time"));
            seen.header("x-signature") == hmac_sha256(SYMMETRIC_KEY, &text)
        }),
    ]
}

/// Returns the rows of accounts whose users authorize at the provider.
fn agreed() -> Vec<Row> {
    let shown = |how: &str, credentials: Value, more: Value| {
        let flow = given::merged(json!({ "client_auth": how }), &more);
        Row::of_flow("OAUTH2", credentials, json!({}), flow).named(&format!("client_auth: {how}"))
    };
    let claims = json!({ "iss": "{client_id}", "sub": "{client_id}" });
    let assertion = json!({ "assertion": { "algorithm": "RS256", "key": "{client_private_key}", "claims": claims } });
    let key = private_key(2_048);
    let robot = json!({ "client_id": CLIENT_ID, "private_key": key });
    let signs = shown("private_key_jwt", robot, assertion);
    signs.issuer().unwrap().knows_key(&key);
    let public = json!({ "client_id": PUBLIC_CLIENT_ID });
    let mut rows = vec![
        Row::of_flow("OAUTH2", Issuer::credentials(), json!({}), json!({})),
        Row::of_flow("OAUTH2", public, json!({}), json!({})).named("a public client"),
        shown("basic", Issuer::credentials(), json!({})),
        shown("secret_as_user", Issuer::credentials(), json!({})),
        signs,
        Row::discovered("DCR_OAUTH"),
        Row::discovered("CIMD_OAUTH"),
    ];
    rows.extend(["HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"].map(Row::of_oauth1));
    rows
}

/// Returns the rows of accounts whose tokens the provider issues without a user.
fn exchanged() -> Vec<Row> {
    let own = Issuer::credentials;
    let signed = |key: &str, more: Value| {
        let claims = json!({ "iss": "robot" });
        let flow = json!({ "client_auth": "none", "assertion": { "algorithm": "HS256", "key": key, "claims": claims } });
        given::merged(flow, &more)
    };
    let grant = |params: Value| json!({ "token": { "params": params } });
    let file = json!({ "credentials_json": json!({ "private_key": SYMMETRIC_KEY }).to_string() });
    let installed = grant(json!({ "grant_type": JWT_BEARER, "assertion": "{assertion}" }));
    let password = |name: &str| json!({ "grant_type": "password", "username": name, "password": "{password}" });
    let mut renewed = grant(password("{username}"));
    renewed["refresh"] = json!({});
    let exchange = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "{subject_token}",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
    });
    let client = json!({ "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET });
    let credentials = grant(json!({ "grant_type": "client_credentials" }));
    let xml = "<saml2:Assertion><saml2:NameID>amy@example.com</saml2:NameID></saml2:Assertion>";
    let saml = json!({ "client_auth": "none", "token": { "params": { "assertion": "{base64url({xml})}" } } });
    vec![
        Row::of_flow("S2S_OAUTH2", own(), json!({}), json!({})),
        Row::of_flow("S2S_OAUTH2", json!({}), client.clone(), json!({}))
            .named("the account's own client"),
        Row::of_flow(
            "S2S_OAUTH2",
            own(),
            json!({ "subject_token": SUBJECT_TOKEN }),
            grant(exchange),
        )
        .named("token exchange"),
        Row::of_flow(
            "GOOGLE_SERVICE_ACCOUNT",
            json!({}),
            file,
            signed("{credentials_json.private_key}", json!({})),
        ),
        Row::of_flow(
            "SERVICE_ACCOUNT",
            json!({}),
            json!({ "private_key": SYMMETRIC_KEY }),
            signed("{private_key}", installed),
        ),
        Row::of_flow(
            "BASIC_WITH_JWT",
            own(),
            json!({ "username": "amy", "password": "pass" }),
            renewed,
        ),
        Row::of_flow(
            "BILLCOM_AUTH",
            own(),
            json!({ "dev_key": harness::marked!("d-"), "password": "pass" }),
            grant(password("{dev_key}")),
        ),
        Row::of_flow("CALCOM_AUTH", json!({}), client, credentials),
        Row::of_flow("SAML", json!({}), json!({ "xml": xml }), saml),
    ]
}

/// Successive accounts of a row in a separate project.
struct Life<'a> {
    row: &'a Row,
    project: Client,
    slug: String,
    config: String,
    /// Address that the tool requests.
    url: String,
}

impl<'a> Life<'a> {
    async fn of(host: &Host, row: &'a Row) -> Self {
        let (project, slug) = (host.new_project().await, given::slug());
        let mut manifest = guest::manifest(&slug);
        manifest["egress"] = json!([{ "host": "api.example.com" }]);
        if !row.scheme.is_null() {
            manifest["auth"] = json!([row.scheme]);
        }
        host.publish(Guest::fetch().component(), &manifest).await;
        let credentials = row.credentials.clone();
        let config = project.auth_config(&slug, row.mode, credentials).await;
        let url = match &row.at {
            At::Issuer(issuer) => format!("{}/api/me", issuer.url()),
            At::Provider(provider) => format!("{}/api/me", provider.url()),
            At::Header(_) | At::Signature(_) => {
                format!("https://api.example.com/echo/{}", unique(8))
            }
        };
        Self {
            row,
            project,
            slug,
            config,
            url,
        }
    }

    /// Connects an account. Returns the table cell for connecting, and the account's id.
    async fn connect(&self) -> (&'static str, String) {
        let state = json!({ "authScheme": self.row.mode, "val": self.row.values });
        let body = json!({ "auth_config": { "id": self.config }, "connection": { "user_id": "default", "state": state } });
        let made = self.project.post("/connected_accounts", &body).await;
        let made = made.expect(201);
        let id = given::string(&made["id"]);
        let how = match made["redirect_url"].as_str() {
            None => "immediately",
            Some(url) => {
                let back = match &self.row.at {
                    At::Issuer(issuer) => issuer.visit(url).await,
                    At::Provider(provider) => provider.visit(url).await,
                    At::Header(_) | At::Signature(_) => {
                        panic!("{} sends nobody to {url}", self.row.name)
                    }
                };
                assert_eq!(given::open(&self.project, &back).await.status, 302);
                "in a browser"
            }
        };
        assert_eq!(self.status(&id).await, "ACTIVE", "{}", self.row.name);
        (how, id)
    }

    async fn status(&self, id: &str) -> Value {
        self.project.account(id).await["status"].clone()
    }

    /// Executes the tool with an account. Returns the request that the provider received, and its
    /// response.
    async fn call(&self, id: &str) -> (ReceivedRequest, Value) {
        let body = json!({ "arguments": { "url": self.url }, "user_id": "default", "version": "latest", "connected_account_id": id });
        let execute = format!("/tools/execute/{}", guest::tool(&self.slug));
        let answer = self.project.post(&execute, &body).await.data();
        let path = self.url.trim_start_matches("https://api.example.com");
        let tag = path.split('/').nth(2).unwrap();
        let mut seen = Host::application().seen(tag).into_iter();
        let seen = seen.rfind(|seen| seen.path == path);
        (seen.expect("the application was asked"), answer)
    }

    /// Returns the table cell for the credential of a call.
    async fn shown(&self, id: &str) -> &'static str {
        let ((seen, answer), name) = (self.call(id).await, &self.row.name);
        let header = seen.header("authorization");
        match &self.row.at {
            At::Header("") if header.is_empty() => "without a credential",
            At::Header(sent) => {
                assert_eq!(header, *sent, "{name}");
                "with the values of its fields"
            }
            At::Signature(is_good) => {
                let request = format!("{seen:?}");
                assert!(is_good(&seen), "{name}: {request}");
                assert!(!request.contains(SYMMETRIC_KEY), "{name}: {request}");
                "signed with the values of its fields"
            }
            At::Issuer(issuer) => {
                let token = header.trim_start_matches("Bearer ");
                assert!(issuer.knows(token), "{name}: {header}");
                "with its token"
            }
            At::Provider(_) => {
                assert!(answer["path"].is_string(), "{name}: {answer}");
                "signed with its token"
            }
        }
    }

    /// Returns the table cell for the renewal of an expired token.
    async fn renewed(&self, id: &str) -> &'static str {
        let Some(issuer) = self.row.issuer() else {
            return "not needed";
        };
        let renewed = issuer.granted("refresh_token");
        issuer.expire();
        self.shown(id).await;
        if issuer.granted("refresh_token") > renewed {
            "by its refresh token"
        } else {
            "requested again"
        }
    }

    /// Returns the table cell for the erasure of an account: also at the provider, or only here.
    /// `before` is the number of valid tokens before the erasure.
    fn forgotten(&self, before: usize) -> &'static str {
        match self.row.issuer() {
            None => "erased",
            Some(issuer) if before > 0 && issuer.good() == 0 => {
                "revoked at the provider and erased"
            }
            Some(_) => "erased here alone",
        }
    }

    /// Returns all cells of the row.
    async fn cells(&self) -> [&'static str; 5] {
        let name = &self.row.name;
        let (connect, id) = self.connect().await;
        let (call, refresh) = (self.shown(&id).await, self.renewed(&id).await);
        let good = || self.row.issuer().map_or(0, Issuer::good);
        let before = good();
        let revoke = format!("/connected_accounts/{id}/revoke");
        self.project.post(&revoke, &json!({})).await.expect(200);
        let read = self.project.account(&id).await;
        let left = json!({ "status": "REVOKED" });
        assert_eq!(read["state"]["val"], left, "{name}");
        let revoke = self.forgotten(before);
        let (_, id) = self.connect().await;
        let before = good();
        let path = format!("/connected_accounts/{id}");
        let delete = format!("{path}?revoke_on_delete=true");
        self.project.delete(&delete).await.expect(200);
        self.project.get(&path).await.expect(404);
        [connect, call, refresh, revoke, self.forgotten(before)]
    }
}

/// Reads the table of the page, by scheme.
pub(crate) fn table() -> BTreeMap<String, Vec<String>> {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/auth.md")).unwrap();
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("| Scheme | Connect |"))
        .skip(2);
    let rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().replace('`', ""));
        (cells.next().unwrap(), cells.collect())
    });
    rows.collect()
}

#[tokio::test]
async fn auth_schemes_behave_as_the_table_says() {
    let host = Host::shared().await;
    let rows = [keys(), agreed(), exchanged()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let seen = join_all(rows.iter().map(|row| async move {
        let cells = Life::of(host, row).await.cells().await;
        (row.name.clone(), cells.map(str::to_owned).to_vec())
    }));
    let mut table = table();
    assert!(table.remove(CERTIFICATE_ROW).is_some());
    assert_eq!(seen.await.into_iter().collect::<BTreeMap<_, _>>(), table);
}
