//! Results that exceed the size of a response: stored as files of the project, behind links that
//! expire.

use harness::{
    Answer, BucketService, Client, Guest, Host, client::RawResponse, guest, host::Setup, unique,
};
use serde_json::{Value, json};

use crate::given;

const MAX_INLINE_BYTES: usize = 4 << 20;

/// Publishes a tool that returns `{"a":"x…"}` with the number of bytes given in its arguments, and
/// returns the toolkit's slug.
async fn talker(host: &Host) -> String {
    let slug = given::slug();
    host.publish(Guest::filler().component(), &guest::manifest(&slug))
        .await;
    slug
}

async fn say(project: &Client, slug: &str, bytes: usize) -> Answer {
    let arguments = json!({ "n": bytes });
    project.execute(&guest::tool(slug), arguments).await
}

fn said(bytes: usize) -> String {
    format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8))
}

/// Returns the file that replaces a result, and the content behind its link.
async fn fetched(project: &Client, data: &Value) -> (Value, RawResponse) {
    let file = data["result_file"].clone();
    let got = given::open(project, file["s3url"].as_str().unwrap()).await;
    assert_eq!(got.status, 200);
    (file, got)
}

#[tokio::test]
async fn large_result_is_a_file_with_expiring_link() {
    let host = Host::shared().await;
    let (project, slug) = (host.new_project().await, talker(host).await);
    let inline = say(&project, &slug, MAX_INLINE_BYTES).await.data();
    assert_eq!(inline.to_string(), said(MAX_INLINE_BYTES));
    for size in [MAX_INLINE_BYTES + 1, 16 << 20] {
        let answer = say(&project, &slug, size).await;
        let id = answer["log_id"].clone();
        let data = answer.data();
        assert_eq!(data.as_object().unwrap().len(), 1, "{data}");
        let (file, got) = fetched(&project, &data).await;
        assert!(got.bytes == said(size).as_bytes(), "{size} bytes");
        assert_eq!(got.header("content-type"), "application/json");
        assert_eq!(file["name"], "result.json");
        assert_eq!(file["mimetype"], "application/json");
        assert_eq!(file["size"], size);
        assert!(file["expires_at"].as_str().unwrap().ends_with('Z'));
        let log = project.log(&id).await;
        let logged = &log["data"]["response"]["data"]["result_file"];
        assert_eq!(logged["size"], size, "{log:#?}");
        assert!(!log.text.contains("signature="), "it holds a link");
        let url = file["s3url"].as_str().unwrap();
        let changed = url.replace("expires=", "expires=9");
        let changed = given::open(&project, &changed).await;
        assert_eq!(changed.status, 403, "the link ends when it says");
    }
    let path = format!("/files/list?tool_slug={}", guest::tool(&slug));
    let list = project.get(&path).await.expect(200);
    assert_eq!(list["total_items"], 2);
    assert_eq!(list["items"][0]["filename"], "result.json");
    let other = host.new_project().await;
    let list = other.get(&path).await.expect(200);
    assert_eq!(list["items"], json!([]), "another project does not see it");
}

#[tokio::test]
async fn result_over_file_limit_is_refused() {
    let host = Setup::new().with("files.size_mib", "5").start().await;
    let (project, slug) = (host.as_project(), talker(&host).await);
    fetched(&project, &say(&project, &slug, 5 << 20).await.data()).await;
    let refused = say(&project, &slug, (5 << 20) + 1).await;
    assert_eq!(refused.failure(), "tool_output_too_large");
    let listed = project.get("/files/list").await.expect(200);
    assert_eq!(listed["total_items"], 1);
}

#[tokio::test]
async fn large_result_is_stored_in_the_bucket() {
    let service = BucketService::start();
    for presigned in ["false", "true"] {
        let host = Setup::new()
            .in_bucket(&service)
            .with("s3.presigned", presigned)
            .start()
            .await;
        let (project, slug) = (host.as_project(), talker(&host).await);
        let data = say(&project, &slug, MAX_INLINE_BYTES + 1).await.data();
        let (file, got) = fetched(&project, &data).await;
        assert!(got.bytes == said(MAX_INLINE_BYTES + 1).as_bytes());
        let from = if presigned == "true" {
            service.endpoint()
        } else {
            host.url.clone()
        };
        assert!(file["s3url"].as_str().unwrap().starts_with(&from), "{file}");
    }
}

#[tokio::test]
async fn large_result_file_is_redacted() {
    let project = Host::shared().await.new_project().await;
    let (slug, secret) = (given::keyed().await, harness::secret());
    project
        .connect(slug, "API_KEY", "default", json!({ "api_key": secret }))
        .await;
    let tag = unique(8);
    let url = format!("https://api.example.com/leak/{tag}/{MAX_INLINE_BYTES}");
    let arguments = json!({ "url": url });
    let ran = project.execute(&guest::tool(slug), arguments).await;
    let data = ran.data();
    let (_, got) = fetched(&project, &data).await;
    let text = String::from_utf8(got.bytes).unwrap();
    assert!(
        text.contains("[redacted]") && !text.contains(&secret),
        "{}",
        &text[text.len() - 2_000..]
    );
}
