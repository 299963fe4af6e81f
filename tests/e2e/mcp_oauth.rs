//! Authorization of assistants at MCP endpoints by OAuth 2.1.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use harness::{
    Browser, Client, Host,
    assistants::{Assistant, Library},
    client::RawResponse,
    host::Setup,
    mcp_programs::conformance_of_authorization,
    unique,
};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    given::{self, string},
    link::{self, form_token},
    mcp_endpoints::{failure, request, result},
};

const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
/// Redirect URI of the clients of these tests.
const REDIRECT_URI: &str = "https://assistant.example/callback?from=toolhost";

/// A project that requires a key at its MCP server.
struct Given {
    host: &'static Host,
    project: Client,
    /// Client without a key.
    anonymous: Client,
    /// Address of the MCP server, without a user.
    url: String,
    echo: &'static str,
}

/// An authorization that a client has started.
struct Attempt {
    client_id: String,
    verifier: String,
    resource: String,
    /// Address of the page.
    url: String,
}

impl Given {
    async fn new() -> Self {
        let (host, project) = Host::shared_with_project().await;
        require_key(&project).await;
        let echo = given::shared_echo().await;
        let url = given::mcp_server_of(&project, &given::toolkit_of(echo)).await;
        Self {
            host,
            project,
            anonymous: host.anonymous(),
            url,
            echo,
        }
    }

    async fn get(&self, url: &str) -> RawResponse {
        given::open(&self.anonymous, url).await
    }

    fn base(&self) -> String {
        self.url.split_once("/v3/").unwrap().0.to_owned()
    }

    async fn register(&self) -> String {
        let body = json!({ "client_name": "Assistant", "redirect_uris": [REDIRECT_URI] });
        let registered = self.post_json("/oauth/register", &body).await;
        assert_eq!(registered.status, 201, "{}", registered.text());
        string(&parsed(&registered)["client_id"])
    }

    async fn post_json(&self, path: &str, body: &Value) -> RawResponse {
        self.post(path, "application/json", body.to_string().into())
            .await
    }

    async fn post(&self, path: &str, media_type: &str, body: Vec<u8>) -> RawResponse {
        let url = format!("{}{path}", self.base());
        let headers = [("content-type", media_type)];
        self.anonymous
            .exchange(Method::POST, &url, &headers, body)
            .await
    }

    /// Starts an authorization for an endpoint.
    async fn begin(&self, resource: &str) -> Attempt {
        let client_id = self.register().await;
        let verifier = unique(43);
        let challenge = BASE64.encode(Sha256::digest(&verifier));
        let parameters = [
            ("response_type", "code"),
            ("client_id", &client_id),
            ("redirect_uri", REDIRECT_URI),
            ("state", "a state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", resource),
            ("scope", "mcp"),
        ];
        let page = format!("{}/oauth/authorize", self.base());
        let url = Url::parse_with_params(&page, parameters).unwrap().into();
        Attempt {
            client_id,
            verifier,
            resource: resource.to_owned(),
            url,
        }
    }

    /// Submits the page of an attempt with a key.
    async fn submit(&self, attempt: &Attempt, decision: &str, key: &str) -> RawResponse {
        let mut browser = link::Browser::new(&self.project);
        let page = browser.open(&attempt.url).await;
        let token = form_token(&page);
        let fields = [
            ("form-token", &*token),
            ("decision", decision),
            ("key", key),
        ];
        browser.send(&attempt.url, &fields).await
    }

    /// Gives an attempt access with a key, and returns the code.
    async fn code(&self, attempt: &Attempt, key: &str) -> String {
        let answer = self.submit(attempt, "allow", key).await;
        let answered = answer_of(&answer);
        assert_eq!(answered["state"], "a state");
        assert_eq!(answered["iss"], self.base());
        string(&answered["code"])
    }

    async fn request_tokens(&self, parameters: &[(&str, &str)]) -> RawResponse {
        self.post_form("/oauth/token", parameters).await
    }

    async fn post_form(&self, path: &str, parameters: &[(&str, &str)]) -> RawResponse {
        let form = Url::parse_with_params("http://form.example", parameters).unwrap();
        let body = form.query().unwrap_or_default().into();
        self.post(path, FORM_MEDIA_TYPE, body).await
    }

    async fn exchange(&self, attempt: &Attempt, code: &str) -> RawResponse {
        self.request_tokens(&attempt.exchange(code)).await
    }

    async fn refresh(&self, attempt: &Attempt, token: &Value) -> RawResponse {
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str().unwrap()),
            ("client_id", &attempt.client_id),
            ("resource", &attempt.resource),
        ];
        self.request_tokens(&parameters).await
    }

    /// Returns an attempt that has access, and its tokens.
    async fn authorized(&self, resource: &str, key: &str) -> (Attempt, Value) {
        let attempt = self.begin(resource).await;
        let code = self.code(&attempt, key).await;
        let tokens = self.exchange(&attempt, &code).await;
        assert_eq!(tokens.status, 200, "{}", tokens.text());
        (attempt, parsed(&tokens))
    }

    /// Lists tools with an access token, and returns the response.
    async fn list(&self, url: &str, token: &Value) -> RawResponse {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        self.list_with(url, &[("authorization", &bearer)]).await
    }

    async fn list_with(&self, url: &str, headers: &[(&str, &str)]) -> RawResponse {
        request(&self.anonymous, url, "tools/list", json!({}), headers).await
    }

    /// Asserts that the tokens of an attempt have ended.
    async fn assert_ended(&self, url: &str, attempt: &Attempt, tokens: &Value) {
        let refreshed = self.refresh(attempt, &tokens["refresh_token"]).await;
        assert_refused(&refreshed, "invalid_grant");
        let listed = self.list(url, &tokens["access_token"]).await;
        assert!([401, 404].contains(&listed.status), "{}", listed.text());
    }

    async fn session(&self) -> String {
        given::mcp_session(&self.project, &json!({ "user_id": "amy" })).await
    }

    /// Opens the page of an attempt in a new browser.
    async fn page(&self, url: &str) -> RawResponse {
        link::Browser::new(&self.project).open(url).await
    }

    /// Creates another key of the project and returns it with its path.
    async fn key(&self, mut body: Value) -> (String, String) {
        let project = self.project.project_id().await;
        let keys = format!("/org/owner/project/{project}/api_keys");
        body["name"] = unique(4).into();
        let made = self.host.as_org().post(&keys, &body).await.expect(201);
        let path = format!("{keys}/{}", made["id"].as_str().unwrap());
        (string(&made["key"]), path)
    }
}

impl Attempt {
    fn exchange<'a>(&'a self, code: &'a str) -> [(&'a str, &'a str); 6] {
        [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", &self.client_id),
            ("redirect_uri", REDIRECT_URI),
            ("code_verifier", &self.verifier),
            ("resource", &self.resource),
        ]
    }

    /// Returns the address of the page with another value of a parameter, or without it.
    fn url_with(&self, name: &str, value: Option<&str>) -> String {
        let mut url = Url::parse(&self.url).unwrap();
        let others = url
            .query_pairs()
            .into_owned()
            .filter(|(known, _)| known != name);
        let others: Vec<_> = others.collect();
        url.query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .extend_pairs(value.map(|value| (name, value)));
        url.into()
    }
}

async fn require_key(project: &Client) {
    given::configure(project, json!({ "require_mcp_api_key": true })).await;
}

/// Returns the address of the metadata of an issuer (RFC 8414, section 3.1).
fn metadata_of(base: &str, issuer: &str) -> String {
    let path = issuer.strip_prefix(base).unwrap();
    format!("{base}/.well-known/oauth-authorization-server{path}")
}

#[track_caller]
fn parsed(response: &RawResponse) -> Value {
    serde_json::from_slice(&response.bytes).unwrap_or_else(|_| panic!("{}", response.text()))
}

/// Returns the parameters that a redirect to the client has.
#[track_caller]
fn answer_of(response: &RawResponse) -> Value {
    assert_eq!(response.status, 303, "{}", response.text());
    let location = response.header("location");
    assert!(location.starts_with(REDIRECT_URI), "{location}");
    let pairs = Url::parse(location).unwrap();
    let pairs = pairs.query_pairs().into_owned();
    Value::Object(pairs.map(|(name, value)| (name, value.into())).collect())
}

/// Asserts that a response is an error of OAuth.
#[track_caller]
fn assert_refused(response: &RawResponse, code: &str) {
    let body = parsed(response);
    assert_eq!(
        (response.status, &body["error"]),
        (400, &code.into()),
        "{body}"
    );
    assert!(
        body["error_description"].as_str().unwrap().contains(';'),
        "{body}"
    );
}

#[tokio::test]
async fn page_shows_invisible_characters_of_addresses() {
    let given = Given::new().await;
    let user = format!("{}?user_id=ad%E2%80%AEa%EF%B8%8F", given.url);
    let server = format!("{}\u{2800}\u{202e}", given.url);
    for (address, shown) in [(user, r"ad\u202ea\ufe0f"), (server, "unknown</dd>")] {
        let attempt = given.begin(&address).await;
        let page = given.page(&attempt.url).await.text();
        assert!(page.contains(shown), "{page}");
        assert!(
            !page.contains(['\u{202e}', '\u{2800}', '\u{fe0f}']),
            "{page}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn official_client_gets_access_in_a_browser() {
    let given = Given::new().await;
    let url = format!("{}?user_id=amy", given.url);
    let said = json!({ "said": unique(6) });
    let calls = json!([{ "name": given.echo, "arguments": said }]);
    let options = json!({ "url": url, "mode": "auto", "oauth": true, "calls": calls });
    let mut assistant = Assistant::start(Library::Python, &options);
    let mut browser = Browser::open(&assistant.line().await);
    browser.order("picture", "consent");
    assert_eq!(browser.says("title"), "Allow Test Assistant to use tools?");
    assert_eq!(
        (browser.says("focused"), browser.says("label")),
        ("key", "Your key"),
        "{}",
        browser.page
    );
    assert_eq!(browser.page["wide"], false);
    browser.order("type", "ak_wrong");
    browser.order("send", "Enter");
    browser.order("picture", "consent-wrong");
    assert_eq!(browser.says("alert"), "The key is not valid.");
    assert_eq!(browser.says("focused"), "key");
    browser.order("type", given.project.key());
    browser.order("press", "Tab");
    assert_eq!(
        (browser.says("focused"), browser.says("outline")),
        ("decision", "solid"),
        "{}",
        browser.page
    );
    browser.order("send", "Enter");
    assert_eq!(browser.says("title"), "Done", "{}", browser.page);
    let report = assistant.report().await;
    assert_eq!(report["calls"][0]["structured"], said, "{report:#}");
}

#[tokio::test]
async fn conformance_suite_accepts_the_authorization_server() {
    let given = Given::new().await;
    let session = given.session().await;
    let port = harness::free_port().to_string();
    let callback = format!("http://127.0.0.1:{port}/callback");
    let body = json!({ "redirect_uris": [callback] });
    let registered = parsed(&given.post_json("/oauth/register", &body).await);
    let base = given.base();
    let client_id = registered["client_id"].as_str().unwrap();
    let arguments = [
        ["--url", &base],
        ["--client-id", client_id],
        ["--resource", &session],
        ["--port", &port],
    ]
    .concat();
    let visit = async |page: &str| {
        let mut browser = link::Browser::new(&given.anonymous);
        let token = form_token(&browser.open(page).await);
        let key = given.project.key();
        let fields = [("form-token", &*token), ("decision", "allow"), ("key", key)];
        let redirect = browser.send(page, &fields).await;
        assert_eq!(redirect.status, 303, "{}", redirect.text());
        browser.open(redirect.header("location")).await;
    };
    let checks = conformance_of_authorization(&arguments, visit).await;
    let scenarios: BTreeSet<_> = checks.iter().map(|check| &check.scenario).collect();
    assert_eq!(scenarios.len(), 2, "{checks:#?}");
    // The suite recommends client ids that are addresses of documents, which the server does not have.
    let unmet = checks.iter().filter(|check| check.has_failed());
    let unmet: Vec<_> = unmet.map(|check| &*check.id).collect();
    assert_eq!(unmet, ["authorization-server-metadata-cimd"], "{checks:#?}");
}

#[tokio::test]
async fn refused_requests_say_where_to_authorize() {
    let given = Given::new().await;
    let base = given.base();
    let server = format!("{}?user_id=amy", given.url);
    let session = given.session().await;
    for endpoint in [&server, &given.url, &format!("{}/mcp", given.url), &session] {
        let refused = given.list_with(endpoint, &[]).await;
        assert_eq!(refused.status, 401, "{}", refused.text());
        let challenge = refused.header("www-authenticate").to_owned();
        let metadata = challenge.split('"').nth(1).unwrap();
        let path = endpoint.strip_prefix(&base).unwrap();
        let expected = format!("{base}/.well-known/oauth-protected-resource{path}");
        assert_eq!(metadata, expected, "{challenge}");
        let metadata = parsed(&given.get(metadata).await);
        assert_eq!(metadata["resource"], *endpoint);
        let issuer = metadata["authorization_servers"][0].as_str().unwrap();
        let server = parsed(&given.get(&metadata_of(&base, issuer)).await);
        assert_eq!(server["issuer"], issuer);
        assert_eq!(
            server["authorization_endpoint"],
            format!("{issuer}/authorize")
        );
        assert_eq!(server["token_endpoint"], format!("{base}/oauth/token"));
        let appended = format!("{issuer}/.well-known/oauth-authorization-server");
        assert_eq!(parsed(&given.get(&appended).await), server);
        let wrong = given.list(endpoint, &json!("mcpa_wrong")).await;
        assert_eq!(wrong.status, 401, "{}", wrong.text());
        let challenge = wrong.header("www-authenticate");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    }
    let metadata = format!("{base}/.well-known/oauth-authorization-server");
    let metadata = parsed(&given.get(&metadata).await);
    assert_eq!(metadata["issuer"], base);
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    for (name, path) in [
        ("authorization_endpoint", "authorize"),
        ("token_endpoint", "token"),
        ("registration_endpoint", "register"),
    ] {
        assert_eq!(metadata[name], format!("{base}/oauth/{path}"));
    }
    let other = format!("{base}/.well-known/oauth-protected-resource/api/v3/tools");
    let other = given.get(&other).await;
    assert_eq!(other.status, 400, "{}", other.text());
}

#[tokio::test]
async fn tokens_work_at_one_endpoint_only() {
    let given = Given::new().await;
    let server = format!("{}?user_id=amy", given.url);
    let session = given.session().await;
    let toolkit = given::toolkit_of(given.echo);
    let other_server = given::mcp_server_of(&given.project, &toolkit).await;
    let others = Given::new().await;
    let endpoints = [
        &server,
        &given.url,
        &other_server,
        &session,
        &given.session().await,
        &others.url,
    ];
    for own in [&server, &given.url, &session] {
        let (_, tokens) = given.authorized(own, given.project.key()).await;
        let token = &tokens["access_token"];
        assert_eq!(tokens["token_type"], "Bearer");
        assert_eq!(tokens["expires_in"], 900);
        for endpoint in endpoints {
            let listed = given.list(endpoint, token).await;
            let expected = if endpoint == own { 200 } else { 401 };
            assert_eq!(listed.status, expected, "{own} at {endpoint}");
        }
        let refresh = given.list(own, &tokens["refresh_token"]).await;
        assert_eq!(refresh.status, 401, "a refresh token is no access token");
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        let key = ("x-api-key", given.project.key());
        let both = [("authorization", &*bearer), key];
        assert_eq!(given.list_with(own, &both).await.status, 401);
        for header in [
            ("authorization", &*bearer),
            ("x-api-key", token.as_str().unwrap()),
        ] {
            let url = format!("{}/api/v3/tools", given.base());
            let api = given
                .anonymous
                .exchange(Method::GET, &url, &[header], Vec::new())
                .await;
            assert_eq!(api.status, 401, "{} in the API", header.0);
        }
    }
    // The two spellings of an address are one endpoint.
    let (_, tokens) = given.authorized(&given.url, given.project.key()).await;
    let long = format!("{}/mcp", given.url);
    assert_eq!(given.list(&long, &tokens["access_token"]).await.status, 200);
}

#[tokio::test]
async fn codes_are_exchanged_once_by_their_client() {
    let given = Given::new().await;
    let attempt = given.begin(&given.url).await;
    let code = given.code(&attempt, given.project.key()).await;
    let other_client = given.register().await;
    let session = given.session().await;
    let other_uri = "https://assistant.example/other";
    let user = format!("{}?user_id=amy", given.url);
    let other_server = "https://other.example/v3/mcp/1";
    let (longer, token) = (format!("{code}0"), code.replace("mcpc_", "mcpa_"));
    for (name, value, refusal) in [
        ("code_verifier", &*"a".repeat(43), "invalid_grant"),
        ("code_verifier", "", "invalid_request"),
        ("redirect_uri", other_uri, "invalid_grant"),
        ("client_id", &other_client, "invalid_grant"),
        ("client_id", "unknown", "invalid_client"),
        ("resource", &session, "invalid_target"),
        ("resource", &user, "invalid_target"),
        ("resource", other_server, "invalid_target"),
        ("grant_type", "client_credentials", "unsupported_grant_type"),
        ("code", &longer, "invalid_grant"),
        ("code", &token, "invalid_grant"),
    ] {
        let mut parameters = attempt.exchange(&code);
        let parameter = parameters.iter_mut().find(|(known, _)| *known == name);
        parameter.unwrap().1 = value;
        assert_refused(&given.request_tokens(&parameters).await, refusal);
    }
    let twice = [&attempt.exchange(&code)[..], &[("code", &code)]].concat();
    assert_refused(&given.request_tokens(&twice).await, "invalid_request");

    let tokens = given.exchange(&attempt, &code).await;
    assert_eq!(tokens.header("cache-control"), "no-store");
    let tokens = parsed(&tokens);
    assert_eq!(
        given.list(&given.url, &tokens["access_token"]).await.status,
        200
    );
    assert_refused(&given.exchange(&attempt, &code).await, "invalid_grant");
    given.assert_ended(&given.url, &attempt, &tokens).await;
}

#[tokio::test]
async fn refresh_token_used_twice_gives_the_same_tokens() {
    let given = Given::new().await;
    let (attempt, first) = given.authorized(&given.url, given.project.key()).await;
    let refresh = || given.refresh(&attempt, &first["refresh_token"]);
    let (one, other) = tokio::join!(refresh(), refresh());
    assert_eq!((one.status, other.status), (200, 200));
    let tokens = parsed(&one);
    assert_eq!(parsed(&other), tokens);
    let listed = given.list(&given.url, &tokens["access_token"]).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    let mut other_client = given.begin(&given.url).await;
    other_client.resource.clone_from(&attempt.resource);
    let stolen = given.refresh(&other_client, &first["refresh_token"]).await;
    assert_refused(&stolen, "invalid_grant");
    let next = given.refresh(&attempt, &tokens["refresh_token"]).await;
    assert_eq!(next.status, 200, "{}", next.text());
}

#[tokio::test]
async fn refresh_beyond_the_granted_scope_is_refused() {
    let given = Given::new().await;
    let (attempt, tokens) = given.authorized(&given.url, given.project.key()).await;
    let refresh = async |scope: &str| {
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
            ("client_id", &attempt.client_id),
            ("scope", scope),
        ];
        given.request_tokens(&parameters).await
    };
    assert_refused(&refresh("mcp admin").await, "invalid_scope");
    let granted = refresh("mcp").await;
    assert_eq!(granted.status, 200, "{}", granted.text());
}

#[tokio::test]
async fn token_requests_that_are_json_are_refused() {
    let given = Given::new().await;
    let body = json!({ "grant_type": "refresh_token", "refresh_token": "x", "client_id": "y" });
    for path in ["/oauth/token", "/oauth/revoke"] {
        let refused = given.post_json(path, &body).await;
        assert_refused(&refused, "invalid_request");
        let text = refused.text();
        assert!(text.contains("application/x-www-form-urlencoded"), "{text}");
    }
}

#[tokio::test]
async fn pages_of_endpoints_need_no_resource() {
    let given = Given::new().await;
    let base = given.base();
    let server = format!("{}?user_id=amy", given.url);
    let session = given.session().await;
    for endpoint in [&server, &session] {
        let path = endpoint.strip_prefix(&base).unwrap();
        let metadata = format!("{base}/.well-known/oauth-protected-resource{path}");
        let metadata = parsed(&given.get(&metadata).await);
        let issuer = string(&metadata["authorization_servers"][0]);
        let (path, query) = endpoint.split_once('?').unwrap_or((endpoint.as_str(), ""));
        let slashed = format!("{path}/?{query}");
        let origin = format!("{base}/");
        let spellings = [&slashed, &origin, &base, endpoint].map(|spelling| Some(&**spelling));
        for resource in [None].into_iter().chain(spellings) {
            let mut attempt = given.begin(endpoint).await;
            attempt.url = attempt
                .url_with("resource", resource)
                .replace(&format!("{base}/oauth"), &issuer);
            let answer = given.submit(&attempt, "allow", given.project.key()).await;
            let answered = answer_of(&answer);
            assert_eq!(answered["iss"], issuer, "{resource:?}");
            let code = string(&answered["code"]);
            let exchange = attempt.exchange(&code);
            let mut parameters = exchange[..5].to_vec();
            parameters.extend(resource.map(|resource| ("resource", resource)));
            let tokens = given.request_tokens(&parameters).await;
            assert_eq!(tokens.status, 200, "{resource:?}: {}", tokens.text());
            for address in [endpoint.as_str(), slashed.as_str()] {
                let listed = given.list(address, &parsed(&tokens)["access_token"]).await;
                assert_eq!(listed.status, 200, "{address}: {}", listed.text());
            }
        }
        let attempt = given.begin(&given.url).await;
        let other = attempt.url.replace(&format!("{base}/oauth"), &issuer);
        let page = given.get(&other).await;
        assert_eq!(page.status, 400, "another endpoint: {}", page.text());
    }
    let unknown = format!("{base}/oauth/endpoints/x/authorize");
    assert_eq!(given.get(&unknown).await.status, 400);
}

#[tokio::test]
async fn page_names_server_project_and_toolkits() {
    let given = Given::new().await;
    let server = format!("{}?user_id=amy", given.url);
    let session = given.session().await;
    for (endpoint, name) in [(&server, "All tools</dd>"), (&session, "<dd>amy</dd>")] {
        let attempt = given.begin(endpoint).await;
        let page = given.page(&attempt.url).await.text();
        let shown = page.split("</form>").next().unwrap();
        for part in [
            name,
            "<dt>Project</dt><dd>test-",
            "<dt>Toolkits</dt>",
            "<dd>amy</dd>",
        ] {
            assert!(shown.contains(part), "{part}: {page}");
        }
        let id = endpoint
            .split('/')
            .skip(3)
            .find(|part| part.len() >= 14)
            .unwrap();
        assert!(!page.contains(id.split('?').next().unwrap()), "{page}");
    }
}

#[tokio::test]
async fn scripts_of_web_pages_may_sign_in() {
    let given = Given::new().await;
    let base = given.base();
    let path = given.url.strip_prefix(&base).unwrap();
    let metadata = "/.well-known/oauth-authorization-server";
    let resource = format!("/.well-known/oauth-protected-resource{path}");
    let page = ("origin", "https://chat.example");
    let session = given.session().await;
    let session = session.strip_prefix(&base).unwrap();
    for (path, method) in [
        (path, "POST"),
        (path, "DELETE"),
        (session, "POST"),
        (metadata, "GET"),
        (&*resource, "GET"),
        ("/oauth/register", "POST"),
        ("/oauth/token", "POST"),
        ("/oauth/revoke", "POST"),
    ] {
        let asked = "authorization,content-type,mcp-protocol-version";
        let headers = [
            page,
            ("access-control-request-method", method),
            ("access-control-request-headers", asked),
        ];
        let url = format!("{base}{path}");
        let preflight = given
            .anonymous
            .exchange(Method::OPTIONS, &url, &headers, Vec::new())
            .await;
        assert_eq!(preflight.status, 204, "{path}");
        assert_eq!(
            preflight.header("access-control-allow-origin"),
            "*",
            "{path}"
        );
        assert_eq!(
            preflight.header("access-control-allow-headers"),
            asked,
            "{path}"
        );
        let methods = preflight.header("access-control-allow-methods");
        assert!(methods.contains(method), "{path}: {methods}");
        assert_eq!(preflight.header("access-control-allow-credentials"), "");
    }
    let refused = given.list_with(&given.url, &[page]).await;
    assert_eq!(refused.status, 401, "{}", refused.text());
    assert_eq!(refused.header("access-control-allow-origin"), "*");
    let exposed = refused.header("access-control-expose-headers");
    for name in ["WWW-Authenticate", "Mcp-Session-Id", "Mcp-Protocol-Version"] {
        assert!(exposed.contains(name), "{exposed}");
    }
    let (_, tokens) = given.authorized(&given.url, given.project.key()).await;
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let headers = [page, ("authorization", &*bearer)];
    let listed = given.list_with(&given.url, &headers).await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    let attempt = given.begin(&given.url).await;
    let consent = given
        .anonymous
        .exchange(Method::GET, &attempt.url, &[page], Vec::new())
        .await;
    assert_eq!(consent.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn metadata_is_found_below_a_public_path() {
    let public = "http://proxy.example/tools";
    let host = Setup::new().with("public_url", public).start().await;
    let project = host.as_project();
    require_key(&project).await;
    let toolkit = given::toolkit_of(&given::echo(&host).await);
    let body = json!({ "name": "Below", "no_auth_apps": [toolkit] });
    let made = project.post("/mcp/servers", &body).await.expect(201);
    let url = string(&made["mcp_url"]);
    let path = url.strip_prefix(public).expect("the address has the path");
    // The proxy takes the path away, except from well-known addresses.
    let get = async |path: &str| given::open(&project, &format!("{}{path}", host.url)).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let headers = [
        ("content-type", "application/json"),
        ("host", "proxy.example"),
    ];
    let body = list.to_string().into_bytes();
    let refused = project
        .exchange(Method::POST, &format!("{}{path}", host.url), &headers, body)
        .await;
    let challenge = refused.header("www-authenticate");
    let named = challenge.split('"').nth(1).unwrap();
    let named = named
        .strip_prefix(public)
        .expect("the address has the path");
    let resource = parsed(&get(named).await);
    assert_eq!(resource["resource"], url);
    let well_known = "/.well-known/oauth-protected-resource/tools";
    assert_eq!(parsed(&get(&format!("{well_known}{path}")).await), resource);
    let issuer = string(&resource["authorization_servers"][0]);
    let below = issuer.strip_prefix("http://proxy.example").unwrap();
    for (issuer, path) in [(public, "/tools"), (public, ""), (&*issuer, below)] {
        let address = format!("/.well-known/oauth-authorization-server{path}");
        let metadata = parsed(&get(&address).await);
        assert_eq!(metadata["issuer"], issuer, "{address}");
        for (name, address) in metadata.as_object().unwrap() {
            let is_below = address
                .as_str()
                .is_none_or(|address| address.starts_with(public));
            assert!(is_below, "{name}: {address}");
        }
    }
    let home = get("/").await.text();
    assert!(home.contains("href=\"/tools/docs\""), "{home}");
    assert!(
        !home.contains("href=\"/docs") && !home.contains("href=\"/api"),
        "{home}"
    );
    let docs = get("/docs").await.text();
    assert!(!docs.contains("=\"/"), "{docs}");
    let described = parsed(&get("/api/v3.1/openapi.json").await);
    assert_eq!(described["servers"][0]["url"], "/tools/api/v3.1");
}

#[tokio::test]
async fn reused_refresh_token_revokes_all_tokens() {
    let given = Given::new().await;
    let (attempt, first) = given.authorized(&given.url, given.project.key()).await;
    let second = parsed(&given.refresh(&attempt, &first["refresh_token"]).await);
    let third = parsed(&given.refresh(&attempt, &second["refresh_token"]).await);
    for tokens in [&first, &second, &third] {
        let listed = given.list(&given.url, &tokens["access_token"]).await;
        assert_eq!(listed.status, 200, "access tokens outlive a refresh");
    }
    let reused = given.refresh(&attempt, &first["refresh_token"]).await;
    assert_refused(&reused, "invalid_grant");
    for tokens in [&first, &second, &third] {
        given.assert_ended(&given.url, &attempt, tokens).await;
    }
}

#[tokio::test]
async fn client_revokes_its_own_tokens() {
    let given = Given::new().await;
    let other_client = given.register().await;
    for kind in ["access_token", "refresh_token"] {
        let (attempt, tokens) = given.authorized(&given.url, given.project.key()).await;
        let token = tokens[kind].as_str().unwrap();
        for (client, token, status) in [
            (&other_client, token, 200),
            (&attempt.client_id, "mcpa_wrong", 200),
            (&attempt.client_id, token, 401),
        ] {
            let parameters = [("client_id", &**client), ("token", token)];
            let revoked = given.post_form("/oauth/revoke", &parameters).await;
            assert_eq!(revoked.status, 200, "{}", revoked.text());
            let listed = given.list(&given.url, &tokens["access_token"]).await;
            assert_eq!(listed.status, status, "{}", listed.text());
        }
        let refreshed = given.refresh(&attempt, &tokens["refresh_token"]).await;
        assert_refused(&refreshed, "invalid_grant");
    }
    let nothing = given.post_form("/oauth/revoke", &[]).await;
    assert_refused(&nothing, "invalid_request");
}

#[tokio::test]
async fn access_ends_with_key_endpoint_and_project() {
    let given = Given::new().await;
    let session = given.session().await;
    let (key, path) = given.key(json!({})).await;
    let by_key = given.authorized(&session, &key).await;
    let organization = given.host.as_org();
    let body = json!({ "email": format!("{}@example.com", unique(8)), "role": "admin" });
    let member = organization.post("/org/members", &body).await.expect(201);
    let by_member = given
        .authorized(&session, member["key"].as_str().unwrap())
        .await;
    let by_session = given.authorized(&session, given.project.key()).await;
    let by_server = given.authorized(&given.url, given.project.key()).await;
    for ((_, tokens), url) in [
        (&by_key, &session),
        (&by_member, &session),
        (&by_session, &session),
        (&by_server, &given.url),
    ] {
        assert_eq!(given.list(url, &tokens["access_token"]).await.status, 200);
    }

    organization.delete(&path).await.expect(200);
    let member = format!("/org/members/{}", member["id"].as_str().unwrap());
    organization.delete(&member).await.expect(200);
    for (attempt, tokens) in [&by_key, &by_member] {
        given.assert_ended(&session, attempt, tokens).await;
    }
    let id = session.rsplit('/').nth(1).unwrap();
    let path = format!("/tool_router/session/{id}");
    given.project.delete(&path).await.expect(200);
    let (attempt, tokens) = &by_session;
    given.assert_ended(&session, attempt, tokens).await;

    let (attempt, tokens) = &by_server;
    let project = given.project.project_id().await;
    given.host.delete_project(&project).await;
    given.assert_ended(&given.url, attempt, tokens).await;
}

#[tokio::test]
async fn scripts_of_token_have_permissions_of_key() {
    let given = Given::new().await;
    let session = given.session().await;
    let area = json!({ "preset": "session_tool_execution", "access": "write" });
    let (key, _) = given.key(json!({ "permissions": [area] })).await;
    let (_, tokens) = given.authorized(&session, &key).await;
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let headers = [("authorization", &*bearer)];
    let code = format!("proxy('{}', 'GET', '/echo/x')", given::keyed().await);
    let script = json!({ "code_to_execute": code });
    let params = json!({ "name": "SERVICE_REMOTE_WORKBENCH", "arguments": script });
    let called = request(&given.anonymous, &session, "tools/call", params, &headers).await;
    let called = result(&called);
    let refused = failure(&called);
    assert!(
        refused.contains("no write permission for proxy_execute"),
        "{refused}"
    );
}

#[tokio::test]
async fn page_gives_access_with_project_keys_only() {
    let given = Given::new().await;
    let attempt = given.begin(&given.url).await;
    let stranger = given.host.new_project().await;
    let read = json!({ "permissions": [{ "preset": "tools", "access": "read" }] });
    let (restricted, _) = given.key(read).await;
    let (elsewhere, _) = given.key(json!({ "allowed_ips": ["192.0.2.1"] })).await;
    let organization = given.host.as_org();
    for (key, problem) in [
        ("", "The key is not valid."),
        ("ak_wrong", "The key is not valid."),
        (stranger.key(), "gives no access to this endpoint"),
        (organization.key(), "gives no access to this endpoint"),
        (&restricted, "no permission to run tools"),
        (&elsewhere, "may not be used from your address"),
    ] {
        let refused = given.submit(&attempt, "allow", key).await;
        let page = refused.text();
        assert_eq!(refused.status, 422, "{page}");
        assert!(page.contains(problem), "{problem}: {page}");
        assert!(
            key.is_empty() || !page.contains(key),
            "the page shows a key"
        );
    }
    let unknown = given.url.replace("/v3/mcp/", "/v3/mcp/0");
    let unknown = given.begin(&unknown).await;
    let refused = given.submit(&unknown, "allow", given.project.key()).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    given.code(&attempt, given.project.key()).await;
}

#[tokio::test]
async fn cancelling_tells_the_client() {
    let given = Given::new().await;
    let attempt = given.begin(&given.url).await;
    let answer = answer_of(&given.submit(&attempt, "deny", "").await);
    assert_eq!(
        answer,
        json!({ "error": "access_denied", "state": "a state", "iss": given.base(), "from": "toolhost" })
    );
}

#[tokio::test]
async fn forms_of_other_browsers_are_refused() {
    let given = Given::new().await;
    let attempt = given.begin(&given.url).await;
    let mut browser = link::Browser::new(&given.project);
    let page = browser.open(&attempt.url).await;
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self' https: https://assistant.example;",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    let token = form_token(&page);
    let key = given.project.key();
    let fields = [("form-token", &*token), ("decision", "allow"), ("key", key)];
    let stranger = link::Browser::new(&given.project);
    assert_eq!(stranger.send(&attempt.url, &fields).await.status, 400);
    let forged = [("form-token", "0"), ("decision", "allow"), ("key", key)];
    assert_eq!(browser.send(&attempt.url, &forged).await.status, 400);
    let other_state = attempt.url_with("state", Some("another"));
    assert_eq!(browser.send(&other_state, &fields).await.status, 400);
    answer_of(&browser.send(&attempt.url, &fields).await);
}

#[tokio::test]
async fn invalid_requests_are_never_redirected() {
    let given = Given::new().await;
    let attempt = given.begin(&given.url).await;
    for (name, value) in [
        ("client_id", None),
        ("client_id", Some("mcpi_wrong")),
        ("redirect_uri", None),
        ("redirect_uri", Some("https://evil.example/callback")),
        ("redirect_uri", Some("https://assistant.example/callback")),
        ("response_type", Some("token")),
        ("code_challenge", None),
        ("code_challenge", Some("short")),
        ("code_challenge_method", None),
        ("code_challenge_method", Some("plain")),
        ("scope", Some("admin")),
        ("scope", Some("mcp admin")),
        ("resource", None),
        ("resource", Some("https://evil.example/v3/mcp/1")),
    ] {
        let page = given.page(&attempt.url_with(name, value)).await;
        assert_eq!(page.status, 400, "{name} {value:?}: {}", page.text());
        assert_eq!(page.header("location"), "", "{name} {value:?}");
    }
}

#[tokio::test]
async fn programs_choose_their_loopback_port() {
    let given = Given::new().await;
    let uri = "http://127.0.0.1/callback";
    let body = json!({ "redirect_uris": [uri, "cursor://callback"] });
    let registered = parsed(&given.post_json("/oauth/register", &body).await);
    let mut attempt = given.begin(&given.url).await;
    attempt.url = attempt.url_with("client_id", registered["client_id"].as_str());
    for (uri, status) in [
        ("http://127.0.0.1:49152/callback", 200),
        ("cursor://callback", 200),
        ("http://127.0.0.1:49152/other", 400),
        ("http://localhost:49152/callback", 400),
        ("cursor://callback/other", 400),
    ] {
        let page = attempt.url_with("redirect_uri", Some(uri));
        let page = given.page(&page).await;
        assert_eq!(page.status, status, "{uri}: {}", page.text());
    }
}

#[tokio::test]
async fn registration_is_checked() {
    let given = Given::new().await;
    let named = |name: &str| json!({ "client_name": name, "redirect_uris": [REDIRECT_URI] });
    let at = |uri: &str| json!({ "redirect_uris": [uri] });
    let sized = |size: usize| {
        let start = "https://assistant.example/";
        at(&format!("{start}{}", "a".repeat(size - start.len())))
    };
    for (body, refusal) in [
        (named(&"a".repeat(100)), ""),
        (named(&"a".repeat(101)), "invalid_client_metadata"),
        (named("a\nb"), "invalid_client_metadata"),
        (named("a\u{202e}b"), "invalid_client_metadata"),
        (named("a\u{2066}b"), "invalid_client_metadata"),
        (named("a\u{200b}b"), "invalid_client_metadata"),
        (named("a\u{e0041}b"), "invalid_client_metadata"),
        (sized(2 << 10), ""),
        (sized((2 << 10) + 1), "invalid_redirect_uri"),
        (json!({}), "invalid_redirect_uri"),
        (
            at("http://assistant.example/callback"),
            "invalid_redirect_uri",
        ),
        (
            at("javascript://assistant.example/"),
            "invalid_redirect_uri",
        ),
    ] {
        let response = given.post_json("/oauth/register", &body).await;
        if refusal.is_empty() {
            assert_eq!(response.status, 201, "{}", response.text());
            let client = parsed(&response);
            assert_eq!(client["redirect_uris"], body["redirect_uris"]);
            assert_eq!(client["token_endpoint_auth_method"], "none");
            // The client id fits into the address of the page.
            let mut attempt = given.begin(&given.url).await;
            attempt.url = attempt.url_with("client_id", client["client_id"].as_str());
            let uri = client["redirect_uris"][0].as_str();
            let page = attempt.url_with("redirect_uri", uri);
            let page = given.page(&page).await;
            assert_eq!(page.status, 200, "{}", page.text());
        } else {
            assert_refused(&response, refusal);
        }
    }
}

#[tokio::test]
async fn large_requests_are_refused() {
    let given = Given::new().await;
    let filled = |size: usize| format!("a={}", "a".repeat(size - 2));
    let headers = [("content-type", FORM_MEDIA_TYPE)];
    let page = given.begin(&given.url).await.url;
    let tokens = format!("{}/oauth/token", given.base());
    for (url, limit) in [(&page, 4 << 10), (&tokens, 16 << 10)] {
        for (size, status) in [(limit, 400), (limit + 1, 413)] {
            let body = filled(size).into_bytes();
            let response = given
                .anonymous
                .exchange(Method::POST, url, &headers, body)
                .await;
            assert_eq!(response.status, status, "{url}: {}", response.text());
        }
    }
}
