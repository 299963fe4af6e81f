//! Files: uploaded once by a link, read by tools, returned as links, and deleted with their
//! project.

use harness::{Answer, BucketService, Client, Guest, Host, guest, host::Setup, unique, wait_until};
use md5::{Digest, Md5};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    given::{self, open},
    mounts::put,
};

/// Publishes a toolkit whose tool copies the given file, and returns its slug.
pub(crate) async fn copier(host: &Host) -> String {
    published(host, &Guest::copy()).await
}

/// Publishes a toolkit whose tool takes a file and returns one.
async fn published(host: &Host, guest: &Guest<'_>) -> String {
    let (slug, mut manifest) = given::manifest();
    let file = |mark: &str, place: &str| {
        json!({
            "type": "object", mark: true, "required": ["name", "mimetype", place],
            "properties": { "name": { "type": "string" }, "mimetype": { "type": "string" }, place: { "type": "string" } },
        })
    };
    let tool = &mut manifest["tools"][0];
    let input = json!({ "anyOf": [file("file_uploadable", "s3key"), { "type": "null" }] });
    tool["input"] = json!({ "type": "object", "properties": { "file": input } });
    let output = file("file_downloadable", "s3url");
    tool["output"] = json!({ "type": "object", "properties": { "file": output } });
    host.publish(guest.component(), &manifest).await;
    slug
}

/// Returns the copying toolkit of the shared server.
async fn shared() -> (&'static Host, &'static str) {
    static COPY_SLUG: OnceCell<String> = OnceCell::const_new();
    let host = Host::shared().await;
    (host, COPY_SLUG.get_or_init(|| copier(host)).await)
}

fn hex_md5(bytes: &[u8]) -> String {
    hex::encode(Md5::digest(bytes))
}

pub(crate) async fn ask(project: &Client, slug: &str, bytes: &[u8], changes: Value) -> Answer {
    let mut body = json!({
        "toolkit_slug": slug, "tool_slug": guest::tool(slug), "filename": "note é.txt", "mimetype": "text/plain",
        "md5": hex_md5(bytes),
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    project.post("/files/upload/request", &body).await
}

pub(crate) fn url(answer: &Answer) -> &str {
    answer["new_presigned_url"].as_str().unwrap()
}

/// Returns the headers that an upload to a bucket must send.
fn upload_headers(asked: &Answer) -> Vec<(&str, &str)> {
    let headers = asked["headers"].as_object().unwrap().iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect()
}

async fn copy(project: &Client, slug: &str, key: &str) -> Answer {
    let file = json!({ "name": "note.txt", "mimetype": "text/plain", "s3key": key });
    let tool = guest::tool(slug);
    project.execute(&tool, json!({ "file": file })).await
}

/// Copies a file and returns the link to the copy.
async fn copied(project: &Client, slug: &str, key: &str) -> String {
    let data = copy(project, slug, key).await.data();
    data["file"]["s3url"].as_str().unwrap().to_owned()
}

/// Uploads a file and returns its key.
pub(crate) async fn uploaded(project: &Client, slug: &str, bytes: &[u8]) -> String {
    let asked = ask(project, slug, bytes, json!({})).await.expect(200);
    assert_eq!(put(project, url(&asked), bytes).await.status, 200);
    asked["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn uploaded_file_reaches_tool_and_output_is_linked() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let bytes = [unique(1000).into_bytes(), vec![0, 255, 10]].concat();
    for client in [project.clone(), project.clone().with_newer_prefix()] {
        let asked = ask(&client, slug, &bytes, json!({})).await.expect(200);
        assert_eq!(asked["newPresignedUrl"], asked["new_presigned_url"]);
        assert_eq!(asked["metadata"]["storage_backend"], "s3");
        let headers = [("content-type", "text/plain")];
        let done = client.exchange(Method::PUT, url(&asked), &headers, bytes.clone());
        assert_eq!(done.await.status, 200);
        let answer = copy(&client, slug, asked["key"].as_str().unwrap()).await;
        let file = answer.clone().data()["file"].clone();
        assert_eq!(file["name"], "copy.bin");
        assert_eq!(file["mimetype"], "application/x-copy");
        let got = open(&client, file["s3url"].as_str().unwrap()).await;
        assert_eq!(got.status, 200);
        assert_eq!(got.header("content-type"), "application/x-copy");
        assert_eq!(got.bytes, bytes);
        assert!(got.header("content-disposition").starts_with("attachment;"));
        let log = client.log(&answer["log_id"]).await.text;
        assert!(
            log.contains("new-0") && !log.contains("signature="),
            "the log holds no link that works: {log}"
        );
    }
}

#[tokio::test]
async fn identical_content_is_uploaded_once() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let bytes = unique(100).into_bytes();
    let first = ask(&project, slug, &bytes, json!({})).await.expect(200);
    assert_eq!(first["type"], "new");
    let again = ask(&project, slug, &bytes, json!({})).await.expect(200);
    assert_eq!(again["type"], "new", "nothing was put yet");
    assert_eq!(again["key"], first["key"]);
    assert_eq!(put(&project, url(&first), &bytes).await.status, 200);
    let upper = json!({ "md5": hex_md5(&bytes).to_uppercase(), "tool_slug": guest::tool(slug).to_lowercase() });
    let existing = ask(&project, slug, &bytes, upper).await.expect(200);
    assert_eq!(existing["type"], "existing");
    assert_eq!(existing["key"], first["key"]);
    assert_eq!(existing["existingUrl"], existing["existing_url"]);
    let link = existing["existing_url"].as_str().unwrap();
    assert_eq!(open(&project, link).await.bytes, bytes);
    let again = put(&project, url(&existing), &bytes).await;
    assert_eq!(again.status, 200, "putting it again does no harm");

    let other_tool = copier(host).await;
    for (client, slug) in [
        (&project, other_tool.as_str()),
        (&host.new_project().await, slug),
    ] {
        let other = ask(client, slug, &bytes, json!({})).await.expect(200);
        assert_eq!(other["type"], "new");
        assert_ne!(other["key"], first["key"]);
    }
    let path = format!("/files/list?toolkit_slug={slug}&limit=5");
    let list = project.get(&path).await.expect(200);
    for member in ["total_items", "current_page", "total_pages"] {
        assert_eq!(list[member], 1, "{member}");
    }
    let expected = json!({
        "toolkit_slug": slug, "tool_slug": guest::tool(slug), "filename": "note é.txt", "mimetype": "text/plain",
        "md5": hex_md5(&bytes),
    });
    assert_eq!(list["items"], json!([expected]));
    let none = project.get("/files/list?tool_slug=NO_SUCH").await;
    assert_eq!(none.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn upload_with_wrong_digest_is_refused() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let bytes = unique(100).into_bytes();
    let asked = ask(&project, slug, &bytes, json!({})).await.expect(200);
    for wrong in [&bytes[1..], &[&bytes[..], b"x"].concat(), b""] {
        let refused = put(&project, url(&asked), wrong).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("File_DigestMismatch"));
    }
    let answer = copy(&project, slug, asked["key"].as_str().unwrap()).await;
    answer.expect_error(400, "File_NotUploaded");
    let files = project.get("/files/list").await.expect(200);
    assert_eq!(files["items"], json!([]));
}

#[tokio::test]
async fn file_size_limit_covers_a_whole_call() {
    let host = Setup::new().with("files.size_mib", "1").start().await;
    let slug = copier(&host).await;
    let project = host.as_project();
    let large = vec![7; (1 << 20) + 1];
    let asked = ask(&project, &slug, &large, json!({})).await.expect(200);
    assert_eq!(put(&project, url(&asked), &large).await.status, 413);
    let most = vec![7; 1 << 20];
    let key = uploaded(&project, &slug, &most).await;
    copy(&project, &slug, &key).await.data();
}

#[tokio::test]
async fn created_file_is_limited_by_the_setting() {
    let host = Setup::new().with("files.size_mib", "1").start().await;
    let copier = Guest::copy();
    let append_twice = "
      (func $append_twice (param i32 i32 i32 i32 i32)
        (call $append (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4))
        (call $append (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)))";
    let calls_it = copier.items.replace("$append ", "$append_twice ");
    let items = calls_it + append_twice;
    let twice = Guest {
        items: &items,
        ..copier
    };
    let slug = published(&host, &twice).await;
    let project = host.as_project();
    for (size, created) in [(1 << 19, 1 << 20), ((1 << 19) + 1, (1 << 19) + 1)] {
        let key = uploaded(&project, &slug, &vec![7; size]).await;
        let link = copied(&project, &slug, &key).await;
        assert_eq!(open(&project, &link).await.bytes.len(), created);
    }
}

#[tokio::test]
async fn a_link_that_was_changed_opens_nothing() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let bytes = unique(100).into_bytes();
    let asked = ask(&project, slug, &bytes, json!({})).await.expect(200);
    let good = url(&asked).to_owned();
    let other = uploaded(&project, slug, &unique(10).into_bytes()).await;
    let key = asked["key"].as_str().unwrap();
    let parameter = |name: &str| {
        let value = good
            .split(['?', '&'])
            .find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        value.unwrap().to_owned()
    };
    let mut changed = vec![
        good.replace(key, &other),
        good.split('?').next().unwrap().to_owned(),
    ];
    for (name, value) in [
        ("expires", "1".to_owned()),
        ("expires", format!("9{}", parameter("expires"))),
        ("size", "99999999999".to_owned()),
        ("md5", hex_md5(b"other")),
        ("type", "text%2Fhtml".to_owned()),
        ("signature", "0".repeat(64)),
        ("signature", parameter("signature")[..62].to_owned()),
        ("signature", String::new()),
    ] {
        let [from, to] = [parameter(name), value].map(|value| format!("{name}={value}"));
        changed.push(good.replace(&from, &to));
    }
    for link in changed {
        assert_ne!(link, good);
        assert_eq!(put(&project, &link, &bytes).await.status, 403, "{link}");
    }
    let read = open(&project, &good).await;
    assert_eq!(read.status, 403, "a link to put does not read");
    assert_eq!(put(&project, &good, &bytes).await.status, 200);
    let existing = ask(&project, slug, &bytes, json!({})).await.expect(200);
    let link = existing["existing_url"].as_str().unwrap();
    let written = put(&project, link, &bytes).await;
    assert_eq!(written.status, 403, "a link to read does not put");
    let later = link.replace("expires=1", "expires=2");
    assert_eq!(open(&project, &later).await.status, 403);
}

#[tokio::test]
async fn upload_request_with_invalid_names_is_refused() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let long = "x".repeat(256);
    for (changes, status) in [
        (json!({ "toolkit_slug": "no_such_toolkit" }), 404),
        (json!({ "tool_slug": "NO_SUCH_TOOL" }), 404),
        (json!({ "tool_slug": given::shared_echo().await }), 404),
        (json!({ "filename": "../../etc/passwd" }), 400),
        (json!({ "filename": "..\\windows" }), 400),
        (json!({ "filename": ".." }), 400),
        (json!({ "filename": "" }), 400),
        (json!({ "filename": "a\nb" }), 400),
        (json!({ "filename": long }), 400),
        (json!({ "mimetype": "text" }), 400),
        (json!({ "mimetype": "text/plain\r\nx: y" }), 400),
        (json!({ "md5": "abc" }), 400),
        (json!({ "md5": "g".repeat(32) }), 400),
        (json!({ "md5": 7 }), 400),
    ] {
        let refused = ask(&project, slug, b"x", changes.clone()).await;
        assert_eq!(refused.status, status, "{changes}: {refused:#?}");
        refused.assert_envelope();
    }
}

#[tokio::test]
async fn another_projects_file_is_not_found() {
    let (host, slug) = shared().await;
    let owner = host.new_project().await;
    let key = uploaded(&owner, slug, &unique(10).into_bytes()).await;
    copy(&owner, slug, &key).await.data();
    let other = host.new_project().await;
    let foreign = copy(&other, slug, &key).await.expect(404);
    let unknown = copy(&other, slug, "file_AAAAAAAAAAAA").await.expect(404);
    assert_eq!(foreign["error"]["slug"], unknown["error"]["slug"]);
    for malformed in ["../../x", "file_", "", "ca_AAAAAAAAAAAA"] {
        copy(&other, slug, malformed).await.expect(400);
    }
    assert_eq!(other.get("/files/list").await.expect(200)["total_items"], 0);
}

#[tokio::test]
async fn empty_file_argument_is_dropped() {
    let (host, slug) = shared().await;
    let project = host.new_project().await;
    let arguments = json!({ "file": "", "other": "" });
    let answer = project.execute(&guest::tool(slug), arguments).await;
    assert_eq!(answer.data(), json!({ "other": "" }));
}

#[tokio::test]
async fn with_its_project_a_file_is_gone() {
    let host = Setup::new().start().await;
    let slug = copier(&host).await;
    let (id, project) = given::project(&host, json!({})).await;
    let bytes = unique(20_000).into_bytes();
    let key = uploaded(&project, &slug, &bytes).await;
    let link = copied(&project, &slug, &key).await;
    let blobs = host.data().join("store/blobs");
    let files = || {
        let names = std::fs::read_dir(&blobs)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("file."))
            .count()
    };
    assert_eq!(files(), 2);
    host.delete_project(&id).await;
    wait_until("the files are erased", || async { files() == 0 }).await;
    assert_eq!(open(&host.as_project(), &link).await.status, 404);
}

#[tokio::test]
async fn bucket_files_survive_a_restart() {
    let service = BucketService::start();
    let host = Setup::new().in_bucket(&service).start().await;
    let slug = copier(&host).await;
    let bytes = unique(1000).into_bytes();
    let key = uploaded(&host.as_project(), &slug, &bytes).await;
    let (setup, _) = host.terminate().await;
    let host = setup.start().await;
    let project = host.as_project();
    let wrong = ask(&project, &slug, b"other", json!({})).await.expect(200);
    assert_eq!(put(&project, url(&wrong), &bytes).await.status, 400);
    let link = copied(&project, &slug, &key).await;
    assert!(link.starts_with(&host.url), "{link}");
    assert_eq!(open(&project, &link).await.bytes, bytes);
}

#[tokio::test]
async fn presigned_bucket_serves_files_directly() {
    let service = BucketService::start();
    let host = Setup::new()
        .in_bucket(&service)
        .with("s3.presigned", "true")
        .start()
        .await;
    let (slug, project) = (copier(&host).await, host.as_project());
    let bytes = unique(1000).into_bytes();
    let asked = ask(&project, &slug, &bytes, json!({})).await.expect(200);
    assert!(url(&asked).starts_with(&service.endpoint()), "{asked:#?}");
    let headers = upload_headers(&asked);
    let key = asked["key"].as_str().unwrap();
    let send = async |url: &str, bytes: &[u8]| {
        let sent = project.exchange(Method::PUT, url, &headers, bytes.to_vec());
        sent.await.status
    };
    let bare = put(&project, url(&asked), &bytes).await;
    assert_eq!(bare.status, 403, "the headers are part of the link");
    let wrong = send(url(&asked), b"other").await;
    assert_eq!(wrong, 400, "the bucket compares the digest");
    let missing = copy(&project, &slug, key).await.expect(400);
    assert_eq!(missing["error"]["slug"], "File_NotUploaded");
    let forged = url(&asked).replace("X-Amz-Expires=3600", "X-Amz-Expires=3601");
    assert_ne!(forged, url(&asked));
    assert_eq!(send(&forged, &bytes).await, 403);
    assert_eq!(send(url(&asked), &bytes).await, 200);
    let link = copied(&project, &slug, key).await;
    assert!(link.starts_with(&service.endpoint()), "{link}");
    assert!(
        link.contains("response-content-disposition=attachment"),
        "it is saved and not opened: {link}"
    );
    assert_eq!(open(&project, &link).await.bytes, bytes);
    let opened = link.replace("disposition=attachment", "disposition=inline");
    assert_eq!(open(&project, &opened).await.status, 403);
    let existing = ask(&project, &slug, &bytes, json!({})).await.expect(200);
    assert_eq!(existing["type"], "existing");
    let verified = host.terminate().await.0.command(&["verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test]
async fn large_object_in_bucket_is_removed_unread() {
    let service = BucketService::start();
    let host = Setup::new()
        .in_bucket(&service)
        .with("s3.presigned", "true")
        .with("files.size_mib", "1")
        .start()
        .await;
    let (slug, project) = (copier(&host).await, host.as_project());
    let bytes = vec![7; 64 << 20];
    let asked = ask(&project, &slug, &bytes, json!({})).await.expect(200);
    let key = asked["key"].as_str().unwrap();
    let object = service.file(&format!("components/file.{key}"));
    let done = project
        .exchange(Method::PUT, url(&asked), &upload_headers(&asked), bytes)
        .await;
    assert_eq!((done.status, object.exists()), (200, true), "{done:?}");
    let before = host.footprint().peak_kib;
    let refused = copy(&project, &slug, key).await.expect(400);
    assert_eq!(refused["error"]["slug"], "File_NotUploaded");
    assert!(!object.exists(), "the object is removed");
    let grown = host.footprint().peak_kib - before;
    assert!(grown < 32 << 10, "the server grew by {grown} KiB");
}
