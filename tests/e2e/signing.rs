//! Providers that require signed requests: they receive a proof of the credential, and no other
//! party receives either.

use harness::{
    Answer, Client, Guest, Host, Issuer, Provider, guest,
    host::Setup,
    signed::{CONSUMER_SECRET, hmac_sha256, is_signed_by_aws_key, private_key},
    unique,
};
use serde_json::{Value, json};

use crate::{
    given::{self, open},
    link::{self, Browser},
};

/// A toolkit whose accounts are connected with OAuth 1.0, and its auth config in a project.
struct Signed {
    tag: String,
    slug: String,
    config: String,
    provider: Provider,
}

impl Signed {
    async fn new(host: &Host, project: &Client, method: &str) -> Self {
        let (slug, tag) = (given::slug(), unique(8));
        let provider = Host::application().provider(&tag);
        provider.signs_with(method);
        given::publish_with_scheme(host, &slug, provider.scheme()).await;
        let config = project
            .auth_config(&slug, "OAUTH1", Provider::credentials())
            .await;
        Self {
            tag,
            slug,
            config,
            provider,
        }
    }

    async fn begin(&self, project: &Client) -> Answer {
        let connection =
            json!({ "user_id": "default", "callback_url": "https://app.example/done" });
        let body = json!({ "auth_config": { "id": self.config }, "connection": connection });
        project.post("/connected_accounts", &body).await.expect(201)
    }

    /// Connects an account of the default user and returns its id.
    async fn connect(&self, project: &Client) -> String {
        let made = self.begin(project).await;
        given::assert_lands(project, &self.visit(&made).await).await;
        given::string(&made["id"])
    }

    /// Agrees to a connection attempt at the provider and returns the address of the callback.
    async fn visit(&self, made: &Answer) -> String {
        let url = given::text(&made["redirect_url"]);
        self.provider.visit(url).await
    }

    /// Returns an address that requires a valid signature.
    fn me(&self) -> String {
        format!("{}/api/me", self.provider.url())
    }

    async fn execute(&self, project: &Client, url: String) -> Answer {
        let tool = guest::tool(&self.slug);
        project.execute(&tool, json!({ "url": url })).await
    }

    /// Returns the number of requests for token credentials.
    fn exchanges(&self) -> usize {
        Host::application().asked(&self.tag, "/token")
    }
}

/// Publishes a toolkit with this key scheme, connects an account, and returns tool and account.
async fn keyed(
    host: &Host,
    project: &Client,
    fields: Value,
    sign: Value,
    values: Value,
) -> (String, String) {
    let slug = given::slug();
    let scheme = json!({ "mode": "API_KEY", "name": "Keys", "fields": fields, "sign": sign });
    given::publish_with_scheme(host, &slug, scheme).await;
    let account = project.connect(&slug, "API_KEY", "default", values).await;
    (guest::tool(&slug), account)
}

async fn proxy(project: &Client, account: &str, more: Value) -> Answer {
    let body = json!({ "connected_account_id": account, "method": "POST" });
    let body = given::merged(body, &more);
    project.post("/tools/execute/proxy", &body).await
}

#[tokio::test]
async fn authorized_account_signs_every_request() {
    let host = Host::shared().await;
    for method in ["HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"] {
        let project = host.new_project().await;
        let signed = Signed::new(host, &project, method).await;
        let made = signed.begin(&project).await;
        assert_eq!(made["status"], "INITIATED", "{made:?}");
        let id = made["id"].as_str().unwrap();
        let away = made["redirect_url"].as_str().unwrap();
        let start = format!("{}/authorize?oauth_token=tmp-", signed.provider.url());
        assert!(away.starts_with(&start), "{away}");
        let waiting = &made["connectionData"]["val"];
        assert_eq!(waiting["authUri"], away, "{made:?}");
        assert_eq!(waiting["oauth_token"], "tmp-...", "{made:?}");
        let back = signed.provider.visit(away).await;
        let start = format!("{}/api/v3/toolkits/auth/callback?state=", host.url);
        assert!(back.starts_with(&start), "{back}");
        let landed = open(&project, &back).await;
        let expected = format!("https://app.example/done?status=success&connected_account_id={id}");
        assert_eq!(landed.status, 302);
        assert_eq!(landed.header("location"), expected);
        let again = open(&project, &back).await;
        assert_eq!(again.status, 400, "a way back is good once");
        let connected = project.account(id).await;
        let shown = &connected["state"]["val"];
        assert_eq!(connected["status"], "ACTIVE");
        assert_eq!(shown["oauth_token"], "acc-...");
        let secret = given::text(&shown["oauth_token_secret"]);
        assert!(secret.ends_with("..."), "{connected:?}");
        assert!(!connected.text.contains(CONSUMER_SECRET), "{connected:?}");

        let me = signed.me();
        let url = format!("{me}?b=2&a=x%20y&a=1");
        let answer = signed.execute(&project, url).await.data();
        assert_eq!(answer["query"], "b=2&a=x%20y&a=1", "{method}");
        let form = json!([{ "name": "content-type", "value": "application/x-www-form-urlencoded", "type": "header" }]);
        let more = json!({ "endpoint": format!("{me}?q=1"), "body": "status=a+b%26c", "parameters": form });
        let proxied = proxy(&project, id, more).await.expect(200);
        assert_eq!(proxied["status"], 200, "{method}");
        let mut seen = Host::application().seen(&signed.tag).into_iter();
        let asked = seen.find(|seen| seen.path.ends_with("/request"));
        assert_eq!(asked.unwrap().body, b"scope=read%20write");

        let path = format!("/connected_accounts/{id}");
        project.delete(&path).await.expect(200);
        signed.execute(&project, me).await.expect(404);
    }
}

#[tokio::test]
async fn rsa_sha1_is_refused_at_publication() {
    let host = Host::shared().await;
    let provider = Host::application().provider(&unique(8));
    provider.signs_with("RSA-SHA1");
    let manifest = guest::manifest_with_scheme(&given::slug(), provider.scheme());
    let bytes = guest::with_manifest(Guest::fetch().component(), &manifest);
    let refused = host.as_org().put(&guest::address(&manifest), bytes).await;
    let problem = "auth.OAUTH1.sign.method: RSA-SHA1 is not supported";
    given::assert_contains(&refused.expect(400)["error"]["errors"], problem);
}

#[tokio::test]
async fn assertion_key_must_match_the_algorithm() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    let mut scheme = Host::application().issuer(&unique(8)).scheme();
    scheme["oauth2"]["client_auth"] = "private_key_jwt".into();
    scheme["oauth2"]["assertion"] =
        json!({ "algorithm": "RS256", "key": "{client_private_key}", "claims": {} });
    given::publish_with_scheme(host, &slug, scheme).await;
    let good = private_key(2_048);
    let problem = "private_key: the key cannot sign: the provider requires an RSA key";
    for (key, status) in [
        (&*good, 201),
        (&private_key(1_024), 400),
        ("k-0123456789", 400),
    ] {
        let credentials = json!({ "client_id": "robot", "private_key": key });
        let config = json!({ "type": "use_custom_auth", "authScheme": "OAUTH2", "credentials": credentials });
        let body = json!({ "toolkit": { "slug": slug }, "auth_config": config });
        let made = project.post("/auth_configs", &body).await.expect(status);
        let is_named = made.problems().concat().contains(problem);
        assert_eq!(is_named, status == 400, "{made:?}");
        for part in ["0123456789", "BEGIN PRIVATE KEY"] {
            assert!(!made.text.contains(part), "{made:?}");
        }
    }
}

#[tokio::test]
async fn link_page_connects_a_signing_account() {
    let (host, project) = Host::shared_with_project().await;
    let signed = Signed::new(host, &project, "HMAC-SHA1").await;
    let (id, url) = link::link(&project, &signed.config, json!({})).await;
    let mut browser = Browser::new(&project);
    let page = browser.open(&url).await;
    let token = link::form_token(&page);
    let away = browser.send(&url, &[("form-token", &token)]).await;
    let back = signed.provider.visit(away.header("location")).await;
    let landed = browser.open(&back).await;
    let location = landed.header("location");
    assert!(location.contains("status=success"), "{landed:?}");
    assert_eq!(project.account(&id).await["status"], "ACTIVE");
    signed.execute(&project, signed.me()).await.data();
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_signed_anew() {
    let (host, project) = Host::shared_with_project().await;
    let signed = Signed::new(host, &project, "HMAC-SHA1").await;
    signed.connect(&project).await;
    let tag = &signed.tag;
    let moved = format!("/oauth1/{tag}/api/moved");
    let url = format!("https://api.example.com/redirect/{tag}?to={moved}?x=1");
    let answer = signed.execute(&project, url).await;
    assert_eq!(answer.data()["path"], moved);
    let seen = Host::application().seen(tag);
    let [.., first, last] = &seen[..] else {
        panic!("{seen:?}")
    };
    let signatures = [first, last].map(|seen| seen.header("authorization"));
    for signature in signatures {
        assert!(signature.starts_with("OAuth realm="), "{signature}");
    }
    assert_ne!(signatures[0], signatures[1]);
}

#[tokio::test]
async fn denied_or_foreign_oauth1_callback_connects_nothing() {
    let (host, project) = Host::shared_with_project().await;
    let signed = Signed::new(host, &project, "HMAC-SHA1").await;
    let (made, other) = (signed.begin(&project).await, signed.begin(&project).await);
    let assert_fails = async |made: &Answer, back: &str, error: &str| {
        let landed = open(&project, back).await;
        let location = landed.header("location");
        assert!(location.ends_with(error), "{landed:?}");
        let id = given::text(&made["id"]);
        assert_eq!(project.account(id).await["status"], "FAILED");
    };
    let back = signed.visit(&made).await;
    let others = signed.visit(&other).await;
    let (own, _) = back.split_once("&oauth_token=").unwrap();
    let (_, theirs) = others.split_once("&oauth_token=").unwrap();
    let mixed = format!("{own}&oauth_token={theirs}");
    assert_fails(&made, &mixed, "&error=token_exchange_failed").await;
    signed.provider.deny_authorization();
    let made = signed.begin(&project).await;
    let back = signed.visit(&made).await;
    assert_fails(&made, &back, "&error=access_denied").await;
    assert_eq!(signed.exchanges(), 0);
    let nobody = json!({ "type": "use_custom_auth", "authScheme": "OAUTH1", "credentials": { "consumer_key": "k" } });
    let body = json!({ "toolkit": { "slug": signed.slug }, "auth_config": nobody });
    let refused = project.post("/auth_configs", &body).await.expect(400);
    given::assert_contains(&refused["error"]["message"], "consumer_secret");
}

#[tokio::test]
async fn unknown_consumer_key_fails_without_leaking_secret() {
    let (host, project) = Host::shared_with_project().await;
    let signed = Signed::new(host, &project, "PLAINTEXT").await;
    let credentials = json!({ "consumer_key": "other", "consumer_secret": CONSUMER_SECRET });
    let config = project
        .auth_config(&signed.slug, "OAUTH1", credentials)
        .await;
    let account = json!({ "auth_config": { "id": config }, "connection": {} });
    let refused = project.post("/connected_accounts", &account).await;
    let refused = refused.expect(400);
    assert!(!refused.text.contains(CONSUMER_SECRET), "{refused:?}");
    let listed = project.get("/connected_accounts").await.expect(200);
    assert_eq!(listed["total_items"], 0);
}

#[tokio::test]
async fn imported_oauth1_tokens_sign_and_survive_reconnect() {
    let (host, project) = Host::shared_with_project().await;
    let signed = Signed::new(host, &project, "HMAC-SHA1").await;
    let id = signed.connect(&project).await;
    let refresh = format!("/connected_accounts/{id}/refresh");
    let asked = project.post(&refresh, &json!({})).await.expect(200);
    assert_eq!(asked["status"], "ACTIVE");
    signed.execute(&project, signed.me()).await.data();
    let back = signed.visit(&asked).await;
    assert_eq!(open(&project, &back).await.status, 302);
    signed.execute(&project, signed.me()).await.data();
    let unmask = json!({ "mask_secret_keys_in_connected_account": false });
    given::configure(&project, unmask).await;
    let unmasked = project.clone().may_show_secrets("masking is off");
    let known = unmasked.account(&id).await["state"]["val"].clone();
    let state = json!({ "authScheme": "OAUTH1", "val": {
        "oauth_token": known["oauth_token"], "oauth_token_secret": known["oauth_token_secret"],
    } });
    let body = json!({ "auth_config": { "id": signed.config }, "connection": { "user_id": "amy", "state": state } });
    let brought = unmasked.post("/connected_accounts", &body).await;
    let brought = brought.expect(201);
    assert_eq!(brought["status"], "ACTIVE", "{brought:?}");
    assert_eq!(brought["redirect_url"], Value::Null, "{brought:?}");
    let more = json!({ "endpoint": signed.me() });
    let proxied = proxy(&project, given::text(&brought["id"]), more).await;
    assert_eq!(proxied.expect(200)["status"], 200);
}

#[tokio::test]
async fn aws_keys_sign_requests_and_stay_secret() {
    let (host, project) = Host::shared_with_project().await;
    let secret = format!("wJalr+/{}", harness::secret());
    let fields = json!([
        { "name": "access_key_id", "title": "Key id" },
        { "name": "secret_access_key", "title": "Key", "secret": true },
        { "name": "session", "title": "Session", "secret": true, "optional": true },
        { "name": "region", "title": "Region", "default": "eu-central-1" },
    ]);
    let sign = json!({
        "with": "aws_sigv4", "access_key_id": "{access_key_id}", "secret_access_key": "{secret_access_key}",
        "session_token": "{session}", "region": "{region}", "service": "execute-api",
    });
    let values = json!({ "access_key_id": "AKIDEXAMPLE", "secret_access_key": secret, "session": harness::marked!("session-") });
    let (tool, account) = keyed(host, &project, fields, sign, values).await;
    let tag = unique(8);
    let url = format!("https://api.example.com/echo/{tag}/a b/!?b=2&a=x+y&*");
    project.execute(&tool, json!({ "url": url })).await.data();
    let parameters = json!([
        { "name": "content-type", "value": "application/json", "type": "header" },
        { "name": "X-Amz-Target", "value": "Service.Do", "type": "header" },
        { "name": "x-amz-date", "value": "19700101T000000Z", "type": "header" },
    ]);
    let more = json!({ "endpoint": format!("/echo/{tag}"), "body": { "a": "ä" }, "parameters": parameters });
    proxy(&project, &account, more).await.expect(200);
    let seen = Host::application().seen(&tag);
    assert_eq!(seen.len(), 2);
    for seen in &seen {
        assert!(is_signed_by_aws_key(seen, &secret), "{seen:?}");
        let signature = seen.header("authorization");
        assert!(signature.contains("Credential=AKIDEXAMPLE/"), "{seen:?}");
        assert!(!format!("{seen:?}").contains(&secret));
        let token = seen.header("x-amz-security-token");
        assert_eq!(token, harness::marked!("session-"));
        assert!(!is_signed_by_aws_key(seen, "another"));
    }
    let proxied = &seen[1];
    let signature = proxied.header("authorization");
    assert!(signature.contains("x-amz-target"), "{proxied:?}");
    let date = proxied.header("x-amz-date");
    assert!(!date.starts_with("1970"), "{proxied:?}");
}

#[tokio::test]
async fn custom_signature_is_sent_and_redacted() {
    let (host, project) = Host::shared_with_project().await;
    let secret = harness::secret();
    let fields =
        json!([{ "name": "key", "title": "Key", "secret": true }, { "name": "id", "title": "Id" }]);
    let text = "{method}\n{host}\n{path}\n{sorted_query}\n{body_sha256}\n{now}\n{random}";
    let sign = json!({ "with": "template", "request": [
        { "in": "header", "name": "x-signature", "value": format!("{{id}}:{{hmac_sha256({{key}},{text})}}") },
        { "in": "header", "name": "x-time", "value": "{now}" },
        { "in": "query", "name": "nonce", "value": "{random}" },
    ] });
    let values = json!({ "key": secret, "id": "i-1" });
    let (tool, account) = keyed(host, &project, fields, sign, values).await;
    let tag = unique(8);
    let url = format!("https://api.example.com/leak/{tag}?b=2&a=1");
    let answer = project.execute(&tool, json!({ "url": url })).await;
    let more = json!({ "endpoint": format!("/leak/{tag}?b=2&a=1&nonce=theirs"), "body": "text" });
    let passed = proxy(&project, &account, more).await.expect(200);
    let seen = Host::application().seen(&tag);
    for (seen, answer) in seen.iter().zip([&answer, &passed]) {
        let (query, nonce) = seen.query.split_once("&nonce=").unwrap();
        assert_eq!(query, "b=2&a=1");
        let body = harness::signed::sha256(&seen.body);
        let signed = format!(
            "{}\napi.example.com\n{}\na=1&b=2\n{body}\n{}\n{nonce}",
            seen.method,
            seen.path,
            seen.header("x-time")
        );
        let signature = hmac_sha256(&secret, &signed);
        let sent = seen.header("x-signature");
        assert_eq!(sent, format!("i-1:{signature}"), "over {signed:?}");
        assert!(answer.text.contains("[redacted]"), "{}", answer.text);
        let log = project.log(&answer["log_id"]).await;
        for text in [&answer.text, &log.text] {
            for secret in [&signature, &hex::encode(&signature), &secret] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn cross_port_redirect_carries_no_signature() {
    let application = Host::application();
    let pairs =
        ["", ":8443"].map(|port| format!("https://api.example.com{port}={}", application.origin));
    let setup = Setup::new().with("net.rewrite", pairs.join(","));
    let host = setup.start().await;
    let project = host.as_project();
    let (slug, tag) = (given::slug(), unique(8));
    let sign = json!({ "with": "template", "request": [
        { "in": "header", "name": "x-signature", "value": "{hmac_sha256({key},{path}{now})}" },
    ] });
    let fields = json!([{ "name": "key", "title": "Key", "secret": true }]);
    let scheme = json!({ "mode": "API_KEY", "name": "Keys", "fields": fields, "sign": sign });
    let mut manifest = guest::manifest_with_scheme(&slug, scheme);
    manifest["egress"] =
        json!([{ "host": "api.example.com" }, { "host": "api.example.com", "port": 8443 }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let key = json!({ "key": harness::secret() });
    project.connect(&slug, "API_KEY", "default", key).await;
    for (port, signed) in [("", true), (":8443", false)] {
        let to = format!("https://api.example.com{port}/echo/{tag}");
        let url = format!("https://api.example.com/redirect/from?to={to}");
        let call = json!({ "url": url });
        project.execute(&guest::tool(&slug), call).await.data();
        let seen = application.seen(&tag).pop().unwrap();
        assert_eq!(!seen.header("x-signature").is_empty(), signed, "{seen:?}");
    }
}

#[tokio::test]
async fn identity_provider_assertion_becomes_a_token() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, tag) = (given::slug(), unique(8));
    let issuer: Issuer = Host::application().issuer(&tag);
    let mut scheme = issuer.scheme();
    scheme["mode"] = "SAML".into();
    scheme["fields"] = json!([{ "name": "assertion_xml", "title": "Assertion", "secret": true }]);
    let flow = scheme["oauth2"].as_object_mut().unwrap();
    flow.remove("authorize_url");
    flow.insert("client_auth".into(), "none".into());
    flow.insert(
        "token".into(),
        json!({ "params": { "assertion": "{base64url({assertion_xml})}" } }),
    );
    given::publish_with_scheme(host, &slug, scheme).await;
    let config = project.auth_config(&slug, "SAML", json!({})).await;
    let connect = |xml: &str| {
        let state = json!({ "authScheme": "SAML", "val": { "assertion_xml": xml } });
        json!({ "auth_config": { "id": config }, "connection": { "state": state } })
    };
    let other = connect("<other/>");
    let refused = project.post("/connected_accounts", &other).await;
    refused.expect_error(400, "ConnectedAccount_CredentialRejected");
    let assertion =
        "<saml2:Assertion><saml2:NameID>amy@example.com</saml2:NameID></saml2:Assertion>";
    let account = connect(assertion);
    let made = project.post("/connected_accounts", &account).await;
    let made = made.expect(201);
    assert_eq!(made["status"], "ACTIVE", "{made:?}");
    let me = json!({ "url": format!("{}/api/me", issuer.url()) });
    project.execute(&guest::tool(&slug), me).await.data();
    let mut seen = Host::application().seen(&tag).into_iter();
    let asked = seen.rfind(|seen| seen.path.ends_with("/token")).unwrap();
    let form = String::from_utf8_lossy(&asked.body);
    assert!(
        form.contains("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Asaml2-bearer"),
        "{form}"
    );
    assert!(!form.contains("client_id"), "{form}");
}
