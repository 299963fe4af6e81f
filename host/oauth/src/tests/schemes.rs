//! Tests of the modes without a browser, each as a toolkit describes it.

use jsonwebtoken::{DecodingKey, Validation};

use super::*;

const RSA_KEY: &str = include_str!("rsa.pem");

/// Obtains tokens from a provider that sends this response. The second value holds the recorded
/// requests.
async fn obtained(
    scheme: Value,
    client: Client,
    account: Value,
    raw: &str,
) -> (Result<Tokens>, String) {
    let scheme: AuthScheme = serde_json::from_value(scheme).unwrap();
    let application = Application::answering(&[ok(raw)]).await;
    let account = values(account);
    let flow = flow(&application.net, &scheme, &client, &account);
    let tokens = flow.obtain(&["extra".to_owned()]).await;
    (tokens, application.seen().pop().unwrap_or_default())
}

fn scheme_json(mode: &str, fields: &[(&str, bool)], about: Value) -> Value {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, secret)| json!({ "name": name, "title": name, "secret": secret }))
        .collect();
    let mut flow = json!({ "token_url": "https://app.example/token" });
    flow.as_object_mut().unwrap().extend(values(about));
    json!({
        "mode": mode, "name": "N", "fields": fields, "oauth2": flow,
        "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
    })
}

/// Returns the claims of an assertion that the test key signed for an audience.
fn claims(assertion: &str) -> Value {
    let mut validation = Validation::new(jsonwebtoken::Algorithm::RS256);
    validation.validate_exp = false;
    validation.validate_aud = false;
    let key = DecodingKey::from_rsa_pem(include_bytes!("rsa.pub.pem")).unwrap();
    jsonwebtoken::decode::<Value>(assertion, &key, &validation)
        .unwrap()
        .claims
}

fn parameter(request: &str, name: &str) -> String {
    let body = request.split_once("\r\n\r\n").unwrap().1;
    let mut pairs = url::form_urlencoded::parse(body.as_bytes());
    pairs
        .find(|(own, _)| own == name)
        .unwrap_or_else(|| panic!("{name} is not in {body}"))
        .1
        .into_owned()
}

#[tokio::test]
async fn client_credentials_yield_a_token() {
    let scheme = scheme_json(
        "S2S_OAUTH2",
        &[],
        json!({ "client_auth": "basic", "scopes": ["a"], "token": { "params": { "audience": "x" } } }),
    );
    let (tokens, request) = obtained(scheme, client(), json!({}), TOKEN_RESPONSE).await;
    assert_eq!(tokens.unwrap().values["access_token"], "at-1");
    assert!(
        request.ends_with("\r\n\r\ngrant_type=client_credentials&scope=a%20extra&audience=x"),
        "{request}"
    );
    assert!(request.contains("authorization: Basic "), "{request}");
}

#[tokio::test]
async fn password_is_exchanged_for_a_token() {
    let token = json!({ "params": { "grant_type": "password", "username": "{username}", "password": "{password}" } });
    let scheme = scheme_json(
        "S2S_OAUTH2",
        &[("username", false), ("password", true)],
        json!({ "token": token }),
    );
    let (tokens, request) = obtained(
        scheme,
        client(),
        json!({ "username": "amy", "password": "p&w" }),
        TOKEN_RESPONSE,
    )
    .await;
    tokens.unwrap();
    assert_eq!(
        (
            parameter(&request, "grant_type"),
            parameter(&request, "password")
        ),
        ("password".into(), "p&w".into())
    );
}

/// The request of RFC 7523, section 2.1, as Google expects it.
#[tokio::test]
async fn a_key_file_of_google_becomes_a_token() {
    let about = json!({
        "scopes": ["https://www.example.com/auth/drive"],
        "assertion": {
            "algorithm": "RS256", "key": "{credentials_json.private_key}", "key_id": "{credentials_json.private_key_id}", "lifetime": 3600,
            "claims": {
                "iss": "{credentials_json.client_email}", "aud": "https://app.example/token", "scope": "{scope}", "sub": "{subject}",
            },
        },
    });
    let scheme = scheme_json(
        "GOOGLE_SERVICE_ACCOUNT",
        &[("credentials_json", true)],
        about,
    );
    let file =
        json!({ "client_email": "robot@example.com", "private_key_id": "k1", "private_key": RSA_KEY })
            .to_string();
    let (tokens, request) = obtained(
        scheme.clone(),
        Client::default(),
        json!({ "credentials_json": file }),
        TOKEN_RESPONSE,
    )
    .await;
    tokens.unwrap();
    assert_eq!(
        parameter(&request, "grant_type"),
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let assertion = parameter(&request, "assertion");
    assert_eq!(
        jsonwebtoken::decode_header(&assertion)
            .unwrap()
            .kid
            .as_deref(),
        Some("k1")
    );
    let mut claims = claims(&assertion);
    assert!(claims.as_object_mut().unwrap().remove("jti").is_some());
    let issued = NOW_MS / 1000 - 30;
    let expected = json!({
        "iat": issued, "exp": issued + 3600, "iss": "robot@example.com", "aud": "https://app.example/token",
        "scope": "https://www.example.com/auth/drive extra",
    });
    assert_eq!(claims, expected);
    assert!(
        !request.contains("client_id") && !request.contains("PRIVATE"),
        "{request}"
    );
    let (refused, _) = obtained(
        scheme,
        Client::default(),
        json!({ "credentials_json": "{\"private_key\":\"no key\"}" }),
        TOKEN_RESPONSE,
    )
    .await;
    assert!(
        matches!(&refused, Err(Refusal::Unsent { reason }) if !reason.contains("no key")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn app_installation_yields_a_token() {
    let about = json!({
        "token_url": "https://app.example/installations/{installation_id}/access_tokens", "client_auth": "none",
        "assertion": { "algorithm": "RS256", "key": "{private_key}", "claims": { "iss": "{application_id}" } },
        "token": { "format": "json", "headers": { "authorization": "Bearer {assertion}" } },
        "response": { "access_token": "token", "expiry": { "path": "expires_at", "kind": "at" } },
    });
    let scheme = scheme_json(
        "SERVICE_ACCOUNT",
        &[
            ("application_id", false),
            ("installation_id", false),
            ("private_key", true),
        ],
        about,
    );
    // The key as it is pasted from JSON.
    let account = json!({ "application_id": 7, "installation_id": 42, "private_key": RSA_KEY.replace('\n', "\\n") });
    let answer = r#"{"token":"ghs_1","expires_at":"2026-01-01T01:00:00Z"}"#;
    let (tokens, request) = obtained(scheme, Client::default(), account, answer).await;
    let tokens = tokens.unwrap();
    assert_eq!(
        (&tokens.values["access_token"], tokens.lifetime),
        (&json!("ghs_1"), Some(Duration::from_secs(3600)))
    );
    assert!(
        request.starts_with("POST /installations/42/access_tokens "),
        "{request}"
    );
    let bearer = request
        .lines()
        .find_map(|line| line.strip_prefix("authorization: Bearer "))
        .unwrap();
    assert_eq!(claims(bearer)["iss"], "7");
    assert!(request.ends_with("\r\n\r\n{}"), "{request}");
}

/// Client authentication of RFC 7523, section 2.2.
#[tokio::test]
async fn a_client_signs_instead_of_showing_a_secret() {
    let about = json!({
        "client_auth": "private_key_jwt",
        "assertion": {
            "algorithm": "RS256", "key": "{client_private_key}", "key_id": "{client_key_id}",
            "claims": { "iss": "{client_id}", "sub": "{client_id}", "aud": "https://app.example/token" },
        },
    });
    let credentials = values(json!({ "client_id": "c1", "private_key": RSA_KEY, "key_id": "k9" }));
    let client = Client::from_credentials(&credentials).unwrap();
    let (tokens, request) = obtained(
        scheme_json("S2S_OAUTH2", &[], about),
        client,
        json!({}),
        TOKEN_RESPONSE,
    )
    .await;
    tokens.unwrap();
    let kind = parameter(&request, "client_assertion_type");
    assert_eq!(
        kind,
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    assert_eq!(
        claims(&parameter(&request, "client_assertion"))["sub"],
        "c1"
    );
    assert!(!request.contains("client_secret"), "{request}");
}

#[tokio::test]
async fn basic_login_yields_a_token_or_session() {
    let about = json!({ "token": { "headers": { "authorization": "Basic {base64({username}:{password})}" } }, "client_auth": "none",
        "response": { "root": "data", "access_token": "jwt" } });
    let scheme = scheme_json(
        "BASIC_WITH_JWT",
        &[("username", false), ("password", true)],
        about,
    );
    let (tokens, request) = obtained(
        scheme,
        Client::default(),
        json!({ "username": "amy", "password": "pw" }),
        r#"{"data":{"jwt":"j-1"}}"#,
    )
    .await;
    assert_eq!(tokens.unwrap().values["access_token"], "j-1");
    assert!(
        request.contains("\r\nauthorization: Basic YW15OnB3\r\n"),
        "{request}"
    );
    let about = json!({
        "client_auth": "none",
        "token": { "params": { "devKey": "{dev_key}", "password": "{password}" } },
        "response": { "root": "response_data", "ok_if": { "path": "response_status", "equals": "0" }, "access_token": "sessionId" },
    });
    let scheme = scheme_json(
        "BILLCOM_AUTH",
        &[("dev_key", true), ("password", true)],
        about,
    );
    let account = json!({ "dev_key": "d", "password": "p" });
    let answer = r#"{"response_status":0,"response_data":{"sessionId":"s-1"}}"#;
    let (tokens, request) =
        obtained(scheme.clone(), Client::default(), account.clone(), answer).await;
    assert_eq!(tokens.unwrap().values["access_token"], "s-1");
    assert!(
        request.ends_with("\r\n\r\ndevKey=d&password=p"),
        "{request}"
    );
    let refused = r#"{"response_status":1,"response_data":{"error_code":"BDC_1101"}}"#;
    let (refused, _) = obtained(scheme, Client::default(), account, refused).await;
    assert!(
        matches!(refused, Err(Refusal::Denied { .. })),
        "{refused:?}"
    );
}

/// Examples of FIPS 180-2, appendix B.1, and RFC 4231, test case 2.
#[tokio::test]
async fn digests_are_those_of_the_standards() {
    let params = json!({ "sha": "{sha256(abc)}", "mac": "{hmac_sha256({key},what do ya want for nothing?)}" });
    let scheme = scheme_json(
        "CALCOM_AUTH",
        &[("key", true)],
        json!({ "client_auth": "none", "token": { "params": params } }),
    );
    let (tokens, request) = obtained(
        scheme,
        Client::default(),
        json!({ "key": "Jefe" }),
        TOKEN_RESPONSE,
    )
    .await;
    tokens.unwrap();
    assert_eq!(
        parameter(&request, "sha"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        parameter(&request, "mac"),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
}

/// Registration of RFC 7591, section 3.
#[tokio::test]
async fn registration_and_metadata_document_agree() {
    let about = json!({
        "authorize_url": "https://app.example/agree", "scopes": ["a", "b"],
        "register": { "url": "https://app.example/register", "params": { "software_id": "toolhost" } },
    });
    let scheme: AuthScheme = serde_json::from_value(scheme_json("DCR_OAUTH", &[], about)).unwrap();
    let registered = answer(
        "201 Created",
        "application/json",
        r#"{"client_id":"dyn-1","client_secret_expires_at":0,"x":1}"#,
    );
    let application = Application::answering(&[registered, ok("{}")]).await;
    let nobody = Client::default();
    let values = Values::new();
    let flow = flow(&application.net, &scheme, &nobody, &values);
    let client = flow
        .register("Acme", "https://us.example/back")
        .await
        .unwrap();
    assert_eq!(
        Value::Object(client.clone()),
        json!({ "client_id": "dyn-1", "client_secret_expires_at": 0 })
    );
    let request = &application.seen()[0];
    let sent: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let mut expected = metadata(
        scheme.oauth2.as_ref().unwrap(),
        "Acme",
        "https://us.example/back",
    );
    assert_eq!(
        (&expected["scope"], &expected["token_endpoint_auth_method"]),
        (&json!("a b"), &json!("none"))
    );
    expected.insert("software_id".into(), "toolhost".into());
    assert_eq!(sent, Value::Object(expected));
    let known = Flow {
        values: &client,
        ..flow
    };
    let url = known.authorize(AUTHORIZE_PARAMS).unwrap();
    assert!(url.as_str().contains("&client_id=dyn-1&"), "{url}");
    let exchanged = known
        .exchange(ExchangeParams {
            verifier: Some("v"),
            ..code(None)
        })
        .await;
    assert_malformed(&exchanged);
    assert!(
        application.seen()[1].ends_with("&code_verifier=v&client_id=dyn-1"),
        "{}",
        application.seen()[1]
    );
}

/// Replaced metadata of RFC 7591, section 3.2.1.
#[tokio::test]
async fn registered_client_authentication_is_used() {
    let basic = "authorization: Basic ZHluOnMlMjBj";
    let secret = "client_secret=s%20c";
    for (declared, registered, sent, not_sent) in [
        ("body", "client_secret_basic", vec![basic], vec![secret]),
        (
            "basic",
            "client_secret_post",
            vec!["client_id=dyn", secret],
            vec![basic],
        ),
        ("basic", "none", vec!["client_id=dyn"], vec![basic, secret]),
        ("body", "", vec!["client_id=dyn", secret], vec![basic]),
    ] {
        let about = json!({ "client_auth": declared });
        let scheme = serde_json::from_value(scheme_json("DCR_OAUTH", &[], about)).unwrap();
        let application = Application::answering(&[ok(TOKEN_RESPONSE)]).await;
        let flow = Flow {
            net: &application.net,
            now_ms: NOW_MS,
            scheme: &scheme,
            client: &Client::default(),
            values: &values(json!({
                "client_id": "dyn", "client_secret": "s c", "refresh_token": "r", REGISTERED_AUTH: registered,
            })),
        };
        flow.refresh().await.unwrap();
        let request = &application.seen()[0];
        let what = format!("{declared}, registered as `{registered}`: {request}");
        assert!(sent.iter().all(|part| request.contains(part)), "{what}");
        assert!(
            !not_sent.iter().any(|part| request.contains(part)),
            "{what}"
        );
    }
}
