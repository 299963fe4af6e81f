//! Bodies that are no plain UTF-8: responses of providers, and requests of clients.

use harness::{Answer, Client, FakeApp, Guest, Host, client::Body, guest, unique};
use reqwest::Method;
use serde_json::json;

use crate::given;

const ACCOUNT_KEY: &str = harness::marked!("k-");

/// "名前" in Shift_JIS.
const SHIFT_JIS: &[u8] = b"\x96\xbc\x91\x4f";

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Returns a JSON object with a string of these bytes.
fn object(text: &[u8]) -> Vec<u8> {
    [&b"{\"a\":\""[..], text, b"\"}"].concat()
}

async fn connected() -> (Client, String) {
    let project = Host::shared().await.new_project().await;
    let values = json!({ "api_key": ACCOUNT_KEY });
    let account = project
        .connect(given::keyed().await, "API_KEY", "default", values)
        .await;
    (project, account)
}

async fn proxied(project: &Client, account: &str, media_type: &str, body: &[u8]) -> Answer {
    let headers = json!({ "content-type": media_type });
    let endpoint = FakeApp::said(&unique(8), &headers, body);
    let request = json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
    project
        .post("/tools/execute/proxy", &request)
        .await
        .expect(200)
}

#[tokio::test]
async fn responses_are_read_in_their_charset() {
    let (project, account) = connected().await;
    let json = |text: &str| json!({ "a": text });
    for (media_type, body, data) in [
        (
            "application/json; charset=iso-8859-1",
            object(b"caf\xe9"),
            json("café"),
        ),
        (
            "application/json; charset=Shift_JIS",
            object(SHIFT_JIS),
            json("名前"),
        ),
        (
            "application/json; charset=utf-16le",
            utf16("{\"a\":\"é\"}"),
            json("é"),
        ),
        ("application/json", object(b"caf\xe9"), json("caf\u{fffd}")),
        (
            "application/json",
            object(b"cut \\ud83d"),
            json("cut \u{fffd}"),
        ),
        (
            "application/json",
            [&b"\xef\xbb\xbf"[..], &object(b"b")].concat(),
            json("b"),
        ),
        (
            "text/html; charset=windows-1252",
            b"5 \x80".to_vec(),
            "5 €".into(),
        ),
        ("text/plain; charset=utf-8", utf16("\u{feff}é"), "é".into()),
        ("text/plain", b"caf\xe9".to_vec(), "caf\u{fffd}".into()),
    ] {
        let answer = proxied(&project, &account, media_type, &body).await;
        assert_eq!(answer["data"], data, "{media_type}");
    }
    // Anything other than text stays unchanged.
    for (media_type, body) in [
        ("image/png; charset=utf-8", &b"\xef\xbb\xbf\xff"[..]),
        ("text/plain; charset=utf-8", b"\x00\x01\xff"),
    ] {
        let answer = proxied(&project, &account, media_type, body).await;
        let link = answer["binary_data"]["url"].as_str().unwrap();
        let got = project.exchange(Method::GET, link, &[], vec![]).await;
        assert_eq!(got.bytes, body, "{media_type}");
    }
}

#[tokio::test]
async fn credential_in_another_charset_is_removed() {
    let (project, account) = connected().await;
    let body = utf16(&format!("{{\"a\":\"{ACCOUNT_KEY}\"}}"));
    let media_type = "application/json; charset=utf-16le";
    let answer = proxied(&project, &account, media_type, &body).await;
    assert!(answer["data"]["a"].is_string(), "{answer:#?}");
    assert_ne!(answer["data"]["a"], ACCOUNT_KEY);
}

#[tokio::test]
async fn credential_in_a_confused_charset_is_removed() {
    let project = Host::shared().await.new_project().await;
    let values = json!({ "api_key": format!("{ACCOUNT_KEY}ä-wort") });
    let account = project
        .connect(given::keyed().await, "API_KEY", "default", values)
        .await;
    for echo in [
        "Ã¤",
        "\u{fffd}",
        r"\u00c3\u00A4",
        "Ã\u{83}Â¤",
        "a\u{308}",
        "?",
    ] {
        let body = object(format!("{ACCOUNT_KEY}{echo}-wort").as_bytes());
        let answer = proxied(&project, &account, "application/json", &body).await;
        assert_eq!(answer["data"]["a"], "[redacted]", "{echo}");
    }
}

#[tokio::test]
async fn tools_get_text_in_utf8() {
    let (host, project) = Host::shared_with_project().await;
    let mut manifest = guest::manifest(&given::slug());
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let tool = guest::tool(manifest["slug"].as_str().unwrap());
    for (media_type, body, text) in [
        (
            "application/json; charset=Shift_JIS",
            object(SHIFT_JIS),
            "名前",
        ),
        (
            "application/json",
            object(b"\\ud83d\\ude00\\ud83d"),
            "😀\u{fffd}",
        ),
        ("", [&b"\xef\xbb\xbf"[..], &object(b"b")].concat(), "b"),
    ] {
        let headers = match media_type {
            "" => json!({}),
            media_type => json!({ "content-type": media_type }),
        };
        let path = FakeApp::said(&unique(8), &headers, &body);
        let url = format!("https://api.example.com{path}");
        let data = project.execute(&tool, json!({ "url": url })).await.data();
        assert_eq!(data, json!({ "a": text }), "{media_type}");
    }
}

#[tokio::test]
async fn requests_are_read_in_their_charset() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let send = async |media_type: &'static str, body: Vec<u8>| {
        let body = Body::Raw(media_type, body);
        project.send(Method::POST, &path, body, &[]).await
    };
    let body = |text: &[u8]| {
        [
            b"{\"user_id\":\"default\",\"arguments\":".as_slice(),
            &object(text),
            b"}",
        ]
        .concat()
    };
    let marked = [b"\xef\xbb\xbf".as_slice(), &body(b"b")].concat();
    let wide = utf16(std::str::from_utf8(&body("é".as_bytes())).unwrap());
    for (media_type, body, text) in [
        (
            "application/json; charset=ISO-8859-1",
            body(b"caf\xe9"),
            "café",
        ),
        (
            "application/json;charset=\"shift_jis\"",
            body(SHIFT_JIS),
            "名前",
        ),
        ("application/json; charset=utf-16le", wide, "é"),
        ("application/json; charset=utf-8", marked, "b"),
        ("application/json", body(b"cut \\ud83d"), "cut \u{fffd}"),
    ] {
        let data = send(media_type, body).await.data();
        assert_eq!(data, json!({ "a": text }), "{media_type}");
    }
    for media_type in [
        "application/json; charset=koi8-r",
        "application/json; charset=unknown",
    ] {
        let refused = send(media_type, body(b"b")).await.expect(415);
        assert_eq!(refused["error"]["slug"], "HTTP_UnsupportedCharset");
    }
    // Bytes that are not of the charset would change the arguments unnoticed.
    send("application/json", body(b"caf\xe9")).await.expect(400);
}
