//! Tests of endpoint discovery.

use super::*;

/// Metadata of an issuer at `https://app.example`, with these members over the usual ones.
fn said(more: Value) -> String {
    let mut metadata = json!({
        "issuer": "https://app.example/t", "authorization_endpoint": "https://app.example/agree",
        "token_endpoint": "https://app.example/token", "revocation_endpoint": "https://app.example/revoke",
    });
    metadata.as_object_mut().unwrap().extend(values(more));
    answer("200 OK", "application/json", &metadata.to_string())
}

fn nothing() -> String {
    answer("404 Not Found", "text/html", "<h1>Nothing</h1>")
}

fn discovering() -> AuthScheme {
    serde_json::from_value(
        json!({ "mode": "OAUTH2", "name": "n", "oauth2": { "issuer": "https://app.example/t" } }),
    )
    .unwrap()
}

/// Resolves the scheme at these times against a provider with these responses. Returns the scheme
/// and the recorded requests.
async fn resolve_at(answers: &[String], moments: &[i64]) -> (Vec<Result<OAuth2>>, Vec<String>) {
    resolve(&discovering(), answers, moments).await
}

/// Does the same with another scheme.
async fn resolve(
    scheme: &AuthScheme,
    answers: &[String],
    moments: &[i64],
) -> (Vec<Result<OAuth2>>, Vec<String>) {
    let application = Application::answering(answers).await;
    let client = client();
    let values = Values::new();
    let cache = MetadataCache::default();
    let mut all = Vec::new();
    for moment in moments {
        let now_ms = NOW_MS + moment;
        let flow = Flow {
            net: &application.net,
            now_ms,
            scheme,
            client: &client,
            values: &values,
        };
        all.push(
            cache
                .resolve(&flow)
                .await
                .map(|scheme| scheme.into_owned().oauth2.unwrap()),
        );
    }
    let lines = application
        .seen()
        .iter()
        .map(|seen| seen.lines().next().unwrap_or_default().to_owned())
        .collect();
    (all, lines)
}

/// The examples of RFC 8414, section 3.
#[tokio::test]
async fn issuer_metadata_is_trusted_only_about_itself() {
    let (all, seen) = resolve_at(
        &[said(
            json!({ "authorization_response_iss_parameter_supported": true }),
        )],
        &[0],
    )
    .await;
    let flow = all[0].as_ref().unwrap();
    assert_eq!(
        (&*flow.authorize_url, &*flow.token_url),
        ("https://app.example/agree", "https://app.example/token")
    );
    assert_eq!(
        flow.revoke.as_ref().unwrap().url.as_deref(),
        Some("https://app.example/revoke")
    );
    assert_eq!(
        (flow.issuer.as_deref(), flow.names_issuer),
        (Some("https://app.example/t"), true)
    );
    assert_eq!(
        seen,
        ["GET /.well-known/oauth-authorization-server/t HTTP/1.1"]
    );
    for wrong in [
        json!({ "issuer": "https://app.example/other" }),
        json!({ "issuer": "https://app.example.evil.example/t" }),
        json!({ "issuer": null }),
        json!({ "token_endpoint": null }),
        json!({ "token_endpoint": "http://app.example/token" }),
        json!({ "token_endpoint": "https://{site}.example/token" }),
        json!({ "token_endpoint": "https://app.example@evil.example/token" }),
        json!({ "authorization_endpoint": "javascript:alert(1)" }),
    ] {
        let (all, _) = resolve_at(&[said(wrong.clone())], &[0]).await;
        assert!(
            matches!(all[0], Err(Refusal::Malformed { .. })),
            "{wrong}: {:?}",
            all[0]
        );
    }
}

#[tokio::test]
async fn openid_connect_metadata_is_discovered() {
    let places = [
        "GET /.well-known/openid-configuration/t HTTP/1.1",
        "GET /t/.well-known/openid-configuration HTTP/1.1",
    ];
    for (missing, place) in [1, 2].into_iter().zip(places) {
        let mut answers = vec![nothing(); missing];
        answers.push(said(json!({})));
        let (all, seen) = resolve_at(&answers, &[0]).await;
        let found = all[0].as_ref().unwrap();
        assert_eq!(found.token_url, "https://app.example/token");
        assert_eq!(seen[missing], place);
    }
    let (all, _) = resolve_at(&[nothing(), nothing(), nothing()], &[0]).await;
    assert_malformed(&all[0]);
}

/// Resolves the scheme of an API against a provider with these responses. Returns the token endpoint
/// and the recorded requests.
async fn resolve_api(answers: &[String]) -> (Result<String>, Vec<String>) {
    let flow = json!({ "resource": "https://app.example/mcp" });
    let scheme = json!({ "mode": "DCR_OAUTH", "name": "n", "oauth2": flow });
    let scheme = serde_json::from_value(scheme).unwrap();
    let (mut all, seen) = resolve(&scheme, answers, &[0]).await;
    (all.remove(0).map(|flow| flow.token_url), seen)
}

#[tokio::test]
async fn api_metadata_is_found_at_every_address() {
    let of_api = |resource: &str| {
        let named =
            json!({ "resource": resource, "authorization_servers": ["https://app.example/t"] });
        ok(&named.to_string())
    };
    let exact = || of_api("https://app.example/mcp");
    let challenge = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer error=\"x\", \
        resource_metadata=\"https://app.example/there\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let path = "GET /.well-known/oauth-protected-resource/mcp HTTP/1.1";
    let root = "GET /.well-known/oauth-protected-resource HTTP/1.1";
    for (answers, places) in [
        (vec![exact()], vec![path]),
        (vec![nothing(), exact()], vec![path, root]),
        (
            vec![nothing(), of_api("https://app.example")],
            vec![path, root],
        ),
        (
            vec![nothing(), nothing(), challenge.to_owned(), exact()],
            vec![path, root, "GET /mcp HTTP/1.1", "GET /there HTTP/1.1"],
        ),
    ] {
        let count = answers.len();
        let (token_url, seen) = resolve_api(&[answers, vec![said(json!({}))]].concat()).await;
        assert_eq!(token_url.unwrap(), "https://app.example/token", "{seen:?}");
        assert_eq!(seen[..count], places);
    }
    let (refused, _) = resolve_api(&[of_api("https://app.example/other")]).await;
    assert_malformed(&refused);
}

#[tokio::test]
async fn api_without_metadata_is_its_own_issuer() {
    let origin = said(json!({ "issuer": "https://app.example" }));
    let missing = [nothing(), nothing(), nothing()];
    let (token_url, seen) = resolve_api(&[&missing[..], &[origin]].concat()).await;
    assert_eq!(token_url.unwrap(), "https://app.example/token");
    assert_eq!(
        seen[3],
        "GET /.well-known/oauth-authorization-server HTTP/1.1"
    );
    let (token_url, seen) = resolve_api(&vec![nothing(); 5]).await;
    assert_eq!(token_url.unwrap(), "https://app.example/token");
    assert_eq!(seen[4], "GET /.well-known/openid-configuration HTTP/1.1");
}

#[tokio::test]
async fn metadata_is_cached_for_an_hour_or_outage() {
    let away = answer("503 Service Unavailable", "text/plain", "");
    let hour = 3_600_000;
    let (all, seen) = resolve_at(&[said(json!({})), away.clone()], &[0, hour - 1, hour]).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(seen.len(), 2);
    let (all, _) = resolve_at(&[away], &[0]).await;
    assert!(
        matches!(all[0], Err(Refusal::Unavailable { .. })),
        "{:?}",
        all[0]
    );
}

#[tokio::test]
async fn private_token_endpoint_is_refused() {
    for inside in [
        "https://127.0.0.1/token",
        "https://localhost/token",
        "https://169.254.169.254/token",
    ] {
        let application =
            Application::answering(&[said(json!({ "token_endpoint": inside }))]).await;
        let scheme = discovering();
        let client = client();
        let values = Values::new();
        let flow = flow(&application.net, &scheme, &client, &values);
        let scheme = MetadataCache::default().resolve(&flow).await.unwrap();
        let refused = Flow {
            scheme: &scheme,
            ..flow
        }
        .exchange(code(None))
        .await;
        assert!(
            matches!(refused, Err(Refusal::Unsent { .. })),
            "{inside}: {refused:?}"
        );
    }
}
