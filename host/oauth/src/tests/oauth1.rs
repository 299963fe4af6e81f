//! Tests of OAuth 1.0 with redirection (RFC 5849, section 2).

use super::*;

const TOKEN_PAIR: &str = "oauth_token=t%2B1&oauth_token_secret=s1";

fn scheme_with(more: Value) -> AuthScheme {
    let mut flow = json!({
        "request_url": "https://app.example/request?a=1", "authorize_url": "https://app.example/agree?b=1",
        "token_url": "https://app.example/token", "authorize_params": { "name": "{site}" },
    });
    flow.as_object_mut().unwrap().extend(values(more));
    serde_json::from_value(json!({
        "mode": "OAUTH1", "name": "OAuth", "sign": { "with": "oauth1" }, "oauth1": flow,
        "fields": [{ "name": "site", "title": "Site" }, { "name": "user", "title": "User", "hidden": true, "pattern": "[0-9]+" }],
    }))
    .unwrap()
}

fn form(body: &str) -> String {
    answer("200 OK", "application/x-www-form-urlencoded", body)
}

async fn authorized(raw: String) -> (Result<(Url, Values)>, Vec<String>) {
    let application = Application::answering(&[raw]).await;
    let scheme = scheme_with(json!({}));
    let client = client();
    let values =
        values(json!({ "site": "n&s", "oauth_token": "old", "oauth_token_secret": "old" }));
    let flow = flow(&application.net, &scheme, &client, &values);
    (
        flow.authorize_oauth1("https://us.example/back", "st").await,
        application.seen(),
    )
}

async fn exchanged(
    about: Value,
    raw: String,
    callback: &[(&str, &str)],
) -> (Result<Tokens>, Vec<String>) {
    let application = Application::answering(&[raw]).await;
    let scheme = scheme_with(about);
    let client = client();
    let values = values(json!({ "site": "n", "oauth_token": "t+1", "oauth_token_secret": "s1" }));
    let flow = flow(&application.net, &scheme, &client, &values);
    let callback: Vec<_> = callback
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let code = ExchangeParams {
        code: "v 1",
        redirect_uri: "https://us.example/back",
        verifier: None,
        callback: &callback,
    };
    (flow.exchange(code).await, application.seen())
}

#[tokio::test]
async fn oauth1_authorization_needs_confirmed_callback() {
    let (answered, seen) = authorized(form(&format!(
        "{TOKEN_PAIR}&oauth_callback_confirmed=true&more=x"
    )))
    .await;
    let (url, temporary) = answered.unwrap();
    assert_eq!(
        url.as_str(),
        "https://app.example/agree?b=1&oauth_token=t%2B1&name=n%26s"
    );
    assert_eq!(
        Value::Object(temporary),
        json!({ "oauth_token": "t+1", "oauth_token_secret": "s1" })
    );
    assert!(seen[0].starts_with("POST /request?a=1 "), "{}", seen[0]);
    for part in [
        "oauth_consumer_key=\"id%201\"",
        "oauth_callback=\"https%3A%2F%2Fus.example%2Fback%3Fstate%3Dst\"",
        "oauth_timestamp=\"1767225600\"",
    ] {
        assert!(seen[0].contains(part), "{part}: {}", seen[0]);
    }
    assert!(
        !seen[0].contains("oauth_token=") && !seen[0].contains("s+cret"),
        "{}",
        seen[0]
    );
    for answer in [
        form(TOKEN_PAIR),
        form(&format!("{TOKEN_PAIR}&oauth_callback_confirmed=false")),
        form("oauth_token=t"),
    ] {
        assert_malformed(&authorized(answer).await.0);
    }
    let away = answer("503 Service Unavailable", "text/html", "<h1>Sorry</h1>");
    assert!(matches!(
        authorized(away).await.0,
        Err(Refusal::Unavailable { .. })
    ));
}

#[tokio::test]
async fn oauth1_token_response_fills_account_fields() {
    let about = json!({ "keep": { "user": { "path": "user_id" } }, "identity": "screen_name" });
    let given = "oauth_token=acc&oauth_token_secret=sec&user_id=7&screen_name=amy";
    let back = [
        ("state", "st"),
        ("oauth_token", "t+1"),
        ("oauth_verifier", "v 1"),
    ];
    let (tokens, seen) = exchanged(about.clone(), form(given), &back).await;
    let tokens = tokens.unwrap();
    let expected = json!({ "oauth_token": "acc", "oauth_token_secret": "sec", "user": "7", "displayName": "amy" });
    assert_eq!(
        (Value::Object(tokens.values), tokens.lifetime),
        (expected, None)
    );
    assert!(
        seen[0].contains("oauth_token=\"t%2B1\"") && seen[0].contains("oauth_verifier=\"v%201\""),
        "{}",
        seen[0]
    );
    let other = exchanged(
        about.clone(),
        form("oauth_token=acc&oauth_token_secret=sec&user_id=x"),
        &back,
    )
    .await;
    assert_malformed(&other.0);
    let unsaid = exchanged(
        json!({}),
        form("oauth_token=acc&oauth_token_secret=sec"),
        &back,
    )
    .await;
    assert_malformed(&unsaid.0);
}

#[tokio::test]
async fn verifier_for_another_token_is_not_sent() {
    for back in [&[("oauth_token", "t+2")][..], &[]] {
        let (refused, seen) = exchanged(json!({}), form(TOKEN_PAIR), back).await;
        assert!(matches!(refused, Err(Refusal::Unsent { .. })) && seen.is_empty());
    }
    let echo = answer(
        "401 Unauthorized",
        "application/json",
        r#"{"error":"no","message":"v 1 with s1 of t+1 by s+cret"}"#,
    );
    let (refused, _) = exchanged(json!({}), echo, &[("oauth_token", "t+1")]).await;
    let words = refused.unwrap_err().to_string();
    assert!(
        ["v 1", "s1", "t+1", "s+cret"]
            .iter()
            .all(|secret| !words.contains(secret)),
        "{words}"
    );
}
