//! Tests of providers that each differ from the standards in one way.

use super::*;

/// Exchanges a code with a provider that sends these responses. The second value holds the recorded
/// requests.
async fn exchanged(
    mut scheme: AuthScheme,
    fields: Value,
    callback: &[(&str, &str)],
    answers: &[String],
) -> (Result<Tokens>, Vec<String>) {
    if let Value::Array(fields) = fields {
        scheme.fields = fields
            .into_iter()
            .map(|field| serde_json::from_value(field).unwrap())
            .collect();
    }
    let application = Application::answering(answers).await;
    let client = client();
    let values = values(json!({ "site": "north" }));
    let flow = flow(&application.net, &scheme, &client, &values);
    let callback: Vec<_> = callback
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let code = ExchangeParams {
        callback: &callback,
        ..code(None)
    };
    (flow.exchange(code).await, application.seen())
}

async fn of(about: Value, answers: &[String]) -> (Result<Tokens>, Vec<String>) {
    exchanged(scheme(about), Value::Null, &[], answers).await
}

fn hidden(name: &str) -> Value {
    json!([{ "name": name, "title": "T", "hidden": true, "pattern": "[a-z0-9.-]+" }, { "name": "site", "title": "Site" }])
}

fn body(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn authorization_parameters_can_be_renamed() {
    let about = json!({ "authorize_rename": { "client_id": "client_key" }, "authorize_params": { "org": "{site}", "x": "{absent}" } });
    let url = authorized(about, json!({ "site": "a b" }), None, &[]).unwrap();
    assert!(
        url.contains("&client_key=id%201&")
            && !url.contains("client_id")
            && url.ends_with("&org=a%20b"),
        "{url}"
    );
}

#[tokio::test]
async fn token_request_can_be_nested_json() {
    let token = json!({
        "format": "json", "headers": { "x-site": "{site}", "x-none": "{absent}" },
        "params": { "auth.client.key": "{client_id}", "at": "{now}" }, "drop": ["client_secret"], "rename": { "code": "auth_code" },
    });
    let (tokens, seen) = of(json!({ "token": token }), &[ok(TOKEN_RESPONSE)]).await;
    tokens.unwrap();
    assert!(
        seen[0].contains("\r\nx-site: north\r\n") && !seen[0].contains("x-none"),
        "{}",
        seen[0]
    );
    let sent: Value = serde_json::from_str(body(&seen[0])).unwrap();
    let expected = json!({
        "grant_type": "authorization_code", "auth_code": "c-1", "redirect_uri": "https://us.example/back", "client_id": "id 1",
        "at": "1767225600", "auth": { "client": { "key": "id 1" } },
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn token_request_can_be_a_get() {
    let (tokens, seen) = of(
        json!({ "token": { "method": "GET" } }),
        &[ok(TOKEN_RESPONSE)],
    )
    .await;
    tokens.unwrap();
    assert!(
        seen[0].starts_with("GET /token?grant_type=authorization_code&code=c-1&"),
        "{}",
        seen[0]
    );
    assert_eq!(body(&seen[0]), "");
}

#[tokio::test]
async fn client_authenticates_as_the_scheme_says() {
    for (how, header, id, secret) in [
        ("basic", "Basic aWQlMjAxOnMlMkJjcmV0", false, false),
        ("secret_as_user", "Basic cytjcmV0Og==", false, false),
        ("none", "", false, false),
        ("body", "", true, true),
    ] {
        let (tokens, seen) = of(json!({ "client_auth": how }), &[ok(TOKEN_RESPONSE)]).await;
        tokens.unwrap();
        let request = &seen[0];
        assert_eq!(
            request.contains("authorization: "),
            !header.is_empty(),
            "{how}: {request}"
        );
        assert!(request.contains(header), "{how}: {request}");
        assert_eq!(
            (
                body(request).contains("client_id="),
                body(request).contains("client_secret=")
            ),
            (id, secret),
            "{how}"
        );
    }
}

#[tokio::test]
async fn tokens_are_found_at_configured_paths() {
    let response = json!({
        "root": "data", "ok_if": { "path": "code", "equals": "0" }, "access_token": "user.token", "refresh_token": "user.renew",
        "expiry": { "path": "ttl", "kind": "in_ms" },
    });
    let answer = r#"{"code":0,"error":"none","data":{"user":{"token":"a","renew":"r"},"ttl":60000,"scope":["x","y"]}}"#;
    let (tokens, _) = of(json!({ "response": response }), &[ok(answer)]).await;
    let expected =
        json!({ "access_token": "a", "refresh_token": "r", "scope": "x y", "expires_in": 60 });
    assert_eq!(Value::Object(tokens.unwrap().values), expected);
    let (refused, _) = of(
        json!({ "response": response }),
        &[ok(r#"{"code":17,"message":"Bad code c-1"}"#)],
    )
    .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the provider refused: refused: Bad code […]"
    );
}

#[tokio::test]
async fn token_of_the_user_replaces_a_missing_one() {
    let response = json!({ "fallback_root": "authed_user" });
    let user = r#""authed_user":{"id":"U1","access_token":"xoxp-1","expires_in":60,"scope":"a"}"#;
    let only = format!(r#"{{"ok":true,{user}}}"#);
    let (tokens, _) = of(json!({ "response": response }), &[ok(&only)]).await;
    let expected = json!({ "access_token": "xoxp-1", "scope": "a", "expires_in": 60 });
    assert_eq!(Value::Object(tokens.unwrap().values), expected);
    let both = format!(r#"{{"ok":true,"access_token":"xoxb-1",{user}}}"#);
    let (tokens, _) = of(json!({ "response": response }), &[ok(&both)]).await;
    assert_eq!(
        tokens.unwrap().values,
        values(json!({ "access_token": "xoxb-1" }))
    );
}

#[tokio::test]
async fn the_whole_answer_is_the_token() {
    let response = json!({ "access_token": "" });
    for answer in [answer("200 OK", "text/plain", "tok-1\n"), ok("\"tok-1\"")] {
        let (tokens, _) = of(json!({ "response": response }), &[answer]).await;
        assert_eq!(tokens.unwrap().values["access_token"], "tok-1");
    }
}

#[tokio::test]
async fn token_expiry_is_parsed_in_every_format() {
    let later = NOW_MS / 1000 + 90;
    for (kind, written, default, seconds) in [
        ("at", format!("{later}"), Value::Null, Some(90)),
        ("at", format!("{later}000"), Value::Null, Some(90)),
        (
            "at",
            "\"2026-01-01T00:01:30Z\"".into(),
            Value::Null,
            Some(90),
        ),
        ("at", "1000".into(), Value::Null, Some(0)),
        ("in", "\"3600\"".into(), Value::Null, Some(3600)),
        ("in", "3599.7".into(), Value::Null, Some(3599)),
        ("in", "0".into(), Value::Null, None),
        ("in", "-1".into(), Value::Null, None),
        ("in", "\"soon\"".into(), Value::Null, None),
        ("in", "\"20m\"".into(), Value::Null, Some(1200)),
        ("in", "\"2 h\"".into(), Value::Null, Some(7200)),
        ("in", "null".into(), json!(86400), Some(86400)),
        ("in", "null".into(), Value::Null, None),
    ] {
        let response = json!({ "expiry": { "path": "end", "kind": kind, "default": default } });
        let body = format!(r#"{{"access_token":"a","end":{written}}}"#);
        let tokens = of(json!({ "response": response }), &[ok(&body)])
            .await
            .0
            .unwrap();
        assert_eq!(
            tokens.lifetime.map(|span| span.as_secs()),
            seconds,
            "{kind} {written}"
        );
        let has_new = tokens.values.contains_key("refresh_token");
        assert!(!has_new, "the caller keeps the old one");
    }
    // {"exp": NOW + 60}
    let claims = base64::Engine::encode(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
        r#"{"exp":1767225660}"#,
    );
    let tokens = of(
        json!({}),
        &[ok(&format!(r#"{{"access_token":"e30.{claims}.sig"}}"#))],
    )
    .await
    .0
    .unwrap();
    assert_eq!(
        tokens.lifetime,
        Some(Duration::from_secs(60)),
        "a JWT says it itself"
    );
}

#[tokio::test]
async fn token_response_fills_account_fields() {
    let pattern = r"https://([a-z]+)\.crm\.example";
    let about = json!({ "response": { "keep": { "instance": { "path": "instance_url", "pattern": pattern } } } });
    let with = |url: &str| ok(&format!(r#"{{"access_token":"a","instance_url":"{url}"}}"#));
    let (tokens, _) = exchanged(
        scheme(about.clone()),
        hidden("instance"),
        &[],
        &[with("https://acme.crm.example")],
    )
    .await;
    assert_eq!(tokens.unwrap().values["instance"], "acme");
    let (refused, _) = exchanged(
        scheme(about),
        hidden("instance"),
        &[],
        &[with("https://evil.example")],
    )
    .await;
    assert_malformed(&refused);
}

#[tokio::test]
async fn callback_values_cannot_leave_provider_hosts() {
    let about = json!({ "token_url": "https://{dc}.example/token", "callback": { "keep": { "dc": "location" } } });
    let mut here = scheme(
        json!({ "token_url": "https://app.example/{dc}/token", "callback": { "keep": { "dc": "location" } } }),
    );
    let (tokens, seen) = exchanged(
        here.clone(),
        hidden("dc"),
        &[("location", "eu")],
        &[ok(TOKEN_RESPONSE)],
    )
    .await;
    assert_eq!(tokens.unwrap().values["dc"], "eu");
    assert!(seen[0].starts_with("POST /eu/token "), "{}", seen[0]);
    let (refused, seen) =
        exchanged(here.clone(), hidden("dc"), &[("location", "eu/../..")], &[]).await;
    assert!(
        matches!(refused, Err(Refusal::Malformed { .. })) && seen.is_empty(),
        "{refused:?}"
    );
    here.oauth2 = scheme(about).oauth2;
    let (refused, _) = exchanged(here, hidden("dc"), &[("location", "evil.example")], &[]).await;
    assert!(
        matches!(refused, Err(Refusal::Unsent { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn access_token_can_refresh_itself() {
    let about = json!({ "refresh": {
        "url": "https://app.example/refresh", "method": "GET", "drop": ["refresh_token", "client_id", "client_secret"],
        "params": { "grant_type": "ig_refresh", "access_token": "{access_token}" },
    } });
    let (tokens, seen) = refreshed(about, ok(TOKEN_RESPONSE)).await;
    tokens.unwrap();
    assert!(
        seen[0].starts_with("GET /refresh?access_token=at-0&grant_type=ig_refresh HTTP"),
        "{}",
        seen[0]
    );
}

#[tokio::test]
async fn further_steps_exchange_the_token_and_fetch_others() {
    let long = json!({ "request": {
        "url": "https://app.example/long", "method": "GET",
        "params": { "short": "{access_token}", "secret": "{client_secret}" } } });
    let second = json!({
        "request": { "url": "https://app.example/second", "headers": { "authorization": "Bearer {access_token}" } },
        "keep": { "site_token": { "path": "token" } },
    });
    let fields = json!([{ "name": "site_token", "title": "T", "hidden": true, "secret": true }]);
    let answers = [
        ok(r#"{"access_token":"short","scope":"s"}"#),
        ok(r#"{"access_token":"long","expires_in":99}"#),
        ok(r#"{"token":"t2"}"#),
    ];
    let (tokens, seen) = exchanged(
        scheme(json!({ "steps": [long, second] })),
        fields,
        &[],
        &answers,
    )
    .await;
    let tokens = tokens.unwrap();
    let expected =
        json!({ "access_token": "long", "scope": "s", "expires_in": 99, "site_token": "t2" });
    assert_eq!(
        (Value::Object(tokens.values), tokens.lifetime),
        (expected, Some(Duration::from_secs(99)))
    );
    assert!(
        seen[1].starts_with("GET /long?secret=s%2Bcret&short=short HTTP"),
        "{}",
        seen[1]
    );
    assert!(
        seen[2].contains("\r\nauthorization: Bearer long\r\n"),
        "{}",
        seen[2]
    );
}

#[tokio::test]
async fn new_connection_runs_steps_and_identity() {
    let about = json!({
        "after_connect": [{
            "request": { "url": "https://app.example/sites", "method": "GET", "headers": { "authorization": "Bearer {access_token}" } },
            "keep": { "cloud": { "path": "0.id" } },
        }],
        "identity": { "request": { "url": "https://app.example/{cloud}/me", "method": "GET" }, "path": "user.email" },
    });
    let answers = [
        ok(r#"{"access_token":"a"}"#),
        ok(r#"[{"id":"c1"},{"id":"c2"}]"#),
        ok(r#"{"user":{"email":"amy@example.com"}}"#),
    ];
    let (tokens, seen) = exchanged(scheme(about.clone()), hidden("cloud"), &[], &answers).await;
    let tokens = tokens.unwrap();
    assert_eq!(
        (&tokens.values["cloud"], &tokens.values[DISPLAY_NAME]),
        (&json!("c1"), &json!("amy@example.com"))
    );
    assert!(seen[2].starts_with("GET /c1/me "), "{}", seen[2]);
    let answers = [
        ok(r#"{"access_token":"a"}"#),
        ok(r#"[{"id":"c1"}]"#),
        answer("500 Oops", "text/plain", ""),
    ];
    let (tokens, _) = exchanged(scheme(about.clone()), hidden("cloud"), &[], &answers).await;
    assert!(
        !tokens.unwrap().values.contains_key(DISPLAY_NAME),
        "that nobody says who it is stops nothing"
    );
    let (refused, _) = exchanged(
        scheme(about),
        hidden("cloud"),
        &[],
        &[ok(r#"{"access_token":"a"}"#), ok("[]")],
    )
    .await;
    assert_malformed(&refused);
}

#[tokio::test]
async fn tokens_are_revoked_at_the_provider() {
    let about = json!({ "revoke": { "url": "https://app.example/revoke" } });
    for (about, raw, done) in [
        (about.clone(), answer("200 OK", "text/plain", ""), true),
        (
            about.clone(),
            answer(
                "400 Bad Request",
                "application/json",
                r#"{"error":"unsupported_token_type"}"#,
            ),
            false,
        ),
        (json!({}), ok(""), false),
    ] {
        let application = Application::answering(&[raw]).await;
        let scheme = scheme(about);
        let client = client();
        let values = values(json!({ "refresh_token": "rt-1", "access_token": "at-0" }));
        let flow = flow(&application.net, &scheme, &client, &values);
        assert_eq!(flow.revoke().await.is_ok(), done);
        if done {
            assert!(
                application.seen()[0]
                    .ends_with("\r\n\r\ntoken=rt-1&client_id=id%201&client_secret=s%2Bcret")
            );
        }
    }
}
