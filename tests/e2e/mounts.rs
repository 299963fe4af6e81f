//! Files of a session: uploaded and downloaded by links, listed in pages, limited, and erased with
//! their session and project.

use futures::{StreamExt, stream};
use harness::{
    Answer, Client, Host, Postgres, client::RawResponse, host::Setup, unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_sessions::{SESSION_PATH, amys_session, create},
};

/// Limits of `host/app/src/agents/session_files.rs`.
const MAX_FILES: usize = 900;
const MAX_TOTAL_BYTES: usize = 64 << 20;
const MAX_PATH_BYTES: usize = 512;

pub(crate) async fn session(project: &Client) -> String {
    create(project, json!({ "user_id": "amy" })).await
}

async fn mount(project: &Client, session: &str, operation: &str, body: Value) -> Answer {
    let path = format!("{SESSION_PATH}/{session}/mounts/files/{operation}");
    project.post(&path, &body).await
}

async fn items(project: &Client, session: &str, query: &str) -> Answer {
    let path = format!("{SESSION_PATH}/{session}/mounts/files/items?{query}");
    project.get(&path).await.expect(200)
}

async fn upload_url(project: &Client, session: &str, path: &str) -> String {
    let body = json!({ "mount_relative_path": path });
    let asked = mount(project, session, "upload_url", body).await;
    asked.expect(201)["upload_url"].as_str().unwrap().to_owned()
}

pub(crate) async fn put(project: &Client, url: &str, bytes: &[u8]) -> RawResponse {
    let bytes = bytes.to_vec();
    project.exchange(Method::PUT, url, &[], bytes).await
}

/// Uploads a file of a session.
pub(crate) async fn upload(project: &Client, session: &str, path: &str, bytes: &[u8]) {
    let url = upload_url(project, session, path).await;
    assert_eq!(put(project, &url, bytes).await.status, 200, "{path}");
}

pub(crate) async fn download_url(project: &Client, session: &str, path: &str) -> Answer {
    let body = json!({ "mount_relative_path": path });
    mount(project, session, "download_url", body).await
}

/// Downloads a file of a session.
pub(crate) async fn download(project: &Client, session: &str, path: &str) -> RawResponse {
    let link = download_url(project, session, path).await.expect(201);
    given::open(project, link["download_url"].as_str().unwrap()).await
}

fn paths(answer: &Answer) -> Vec<&str> {
    let items = answer["items"].as_array().unwrap().iter();
    items
        .map(|item| item["mount_relative_path"].as_str().unwrap())
        .collect()
}

fn slug(answer: &Answer) -> &str {
    answer["error"]["slug"].as_str().unwrap()
}

#[tokio::test]
async fn uploaded_file_is_listed_and_downloaded() {
    let (project, session) = amys_session().await;
    let bytes = [unique(1000).into_bytes(), vec![0, 255, 10]].concat();
    let body = json!({ "mount_relative_path": "in/data é.bin", "mimetype": "application/x-data" });
    let asked = mount(&project, &session, "upload_url", body).await;
    let asked = asked.expect(201);
    assert_eq!(asked["sandbox_mount_prefix"], "/mnt/files");
    assert!(paths(&items(&project, &session, "").await).is_empty());
    let missing = download_url(&project, &session, "in/data é.bin").await;
    assert_eq!(slug(&missing.expect(404)), "ToolRouterV2_FileNotFound");
    let url = asked["upload_url"].as_str().unwrap();
    // A client that did not see the response sends the content again.
    for _ in 0..2 {
        assert_eq!(put(&project, url, &bytes).await.status, 200);
    }
    let listed = items(&project, &session, "").await;
    assert_eq!(paths(&listed), ["in/data é.bin"]);
    assert_eq!(listed["items"][0]["size"], bytes.len());
    let got = download(&project, &session, "in/data é.bin").await;
    let media_type = got.header("content-type").to_owned();
    assert_eq!((got.status, &*media_type), (200, "application/x-data"));
    assert!(got.header("content-disposition").starts_with("attachment;"));
    assert_eq!(got.bytes, bytes);
}

#[tokio::test]
async fn later_content_replaces_earlier() {
    let (project, session) = amys_session().await;
    for content in ["one", "", "three"] {
        upload(&project, &session, "a.txt", content.as_bytes()).await;
        let got = download(&project, &session, "a.txt").await;
        assert_eq!(got.bytes, content.as_bytes());
        assert_eq!(got.header("content-type"), "text/plain");
    }
    assert_eq!(paths(&items(&project, &session, "").await), ["a.txt"]);
}

#[tokio::test]
async fn deleted_file_is_gone_with_its_links() {
    let (project, session) = amys_session().await;
    let upload_link = upload_url(&project, &session, "a.txt").await;
    put(&project, &upload_link, b"a").await;
    let link = download_url(&project, &session, "a.txt").await.expect(201);
    let link = link["download_url"].as_str().unwrap();
    let body = json!({ "mount_relative_path": "a.txt" });
    let deleted = mount(&project, &session, "delete", body.clone()).await;
    assert_eq!(deleted.expect(200)["mount_relative_path"], "a.txt");
    mount(&project, &session, "delete", body).await.expect(404);
    assert!(paths(&items(&project, &session, "").await).is_empty());
    assert_eq!(given::open(&project, link).await.status, 404);
    assert_eq!(put(&project, &upload_link, b"b").await.status, 404);
}

#[tokio::test]
async fn pages_follow_the_order_of_paths() {
    let (project, session) = amys_session().await;
    for path in ["b/2", "a", "b/1", "c", "b/3"] {
        upload(&project, &session, path, b"").await;
    }
    let first = items(&project, &session, "limit=2&mount_relative_prefix=b/").await;
    assert_eq!(paths(&first), ["b/1", "b/2"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let query = format!("cursor={cursor}&mount_relative_prefix=b/");
    let last = items(&project, &session, &query).await;
    assert_eq!(paths(&last), ["b/3"]);
    assert_eq!(last.json.get("next_cursor"), None);
    let all = items(&project, &session, "limit=9999").await;
    assert_eq!(paths(&all), ["a", "b/1", "b/2", "b/3", "c"]);
}

#[tokio::test]
async fn files_of_other_projects_are_not_found() {
    let host = Host::shared().await;
    let (project, other) = (host.new_project().await, host.new_project().await);
    let session = session(&project).await;
    upload(&project, &session, "a.txt", b"a").await;
    let body = json!({ "mount_relative_path": "a.txt" });
    for operation in ["upload_url", "download_url", "delete"] {
        let refused = mount(&other, &session, operation, body.clone()).await;
        assert_eq!(slug(&refused.expect(404)), "ToolRouterV2_SessionNotFound");
    }
    let path = format!("{SESSION_PATH}/{session}/mounts/files/items");
    other.get(&path).await.expect(404);
    let mount = format!("{SESSION_PATH}/{session}/mounts/other/items");
    let refused = project.get(&mount).await.expect(404);
    assert_eq!(slug(&refused), "ToolRouterV2_MountNotFound");
    assert_eq!(download(&project, &session, "a.txt").await.bytes, b"a");
}

#[tokio::test]
async fn paths_outside_the_mount_are_refused() {
    let (project, session) = amys_session().await;
    upload(&project, &session, "file", b"").await;
    let long = "x".repeat(MAX_PATH_BYTES + 1);
    for path in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a\nb",
        "file/x",
        &*long,
    ] {
        let body = json!({ "mount_relative_path": path });
        let refused = mount(&project, &session, "upload_url", body).await;
        refused.expect(400);
    }
    upload(&project, &session, &long[1..], b"").await;
}

#[tokio::test]
async fn long_media_type_is_refused() {
    let (project, session) = amys_session().await;
    for (length, status) in [(255, 201), (256, 400)] {
        let media_type = format!("text/{}", "x".repeat(length - 5));
        let body = json!({ "mount_relative_path": "a.txt", "mimetype": media_type });
        let asked = mount(&project, &session, "upload_url", body).await;
        asked.expect(status);
    }
}

#[tokio::test]
async fn number_of_files_is_limited() {
    let (project, session) = amys_session().await;
    let names: Vec<_> = (0..MAX_FILES).map(|at| at.to_string()).collect();
    let requests = names
        .iter()
        .map(|name| upload_url(&project, &session, name));
    stream::iter(requests)
        .buffer_unordered(4)
        .collect::<Vec<_>>()
        .await;
    let body = json!({ "mount_relative_path": "more" });
    let refused = mount(&project, &session, "upload_url", body.clone()).await;
    assert_eq!(slug(&refused.expect(400)), "ToolRouterV2_FilesFull");
    upload(&project, &session, "7", b"content").await;
    let deleted = json!({ "mount_relative_path": "8" });
    let deleted = mount(&project, &session, "delete", deleted).await;
    deleted.expect(200);
    let added = mount(&project, &session, "upload_url", body).await;
    added.expect(201);
}

/// The records are changed in the database, because an upload is awaited for more than an hour.
#[tokio::test]
async fn lapsed_uploads_make_room_and_are_erased() {
    /// Limit of `host/app/src/agents/session_files/links.rs`.
    const LAPSED_PER_LINK: usize = 64;
    let setup = Setup::embedded().on(Postgres::database_with_tables());
    let host = setup.start().await;
    let project = host.as_project();
    let session = session(&project).await;
    upload_url(&project, &session, "awaited").await;
    let database = host.setup().database();
    let others = MAX_FILES - 1;
    database.say(&format!(
        "insert into session_files (id, project, revision, created_at, updated_at, body)
         select id || '_' || n, project, revision, created_at, updated_at,
             (body::jsonb || jsonb_build_object('path', 'n' || n, 'place', '{session}/n' || n))::json
         from session_files, generate_series(1, {others}) n"
    ));
    let body = json!({ "mount_relative_path": "more" });
    let refused = mount(&project, &session, "upload_url", body.clone()).await;
    assert_eq!(slug(&refused.expect(400)), "ToolRouterV2_FilesFull");
    database.say(
        "update session_files set revision = revision + 1,
             body = (body::jsonb || jsonb_build_object('expires_at', created_at - 1))::json",
    );
    let asked = mount(&project, &session, "upload_url", body).await;
    asked.expect(201);
    let left = MAX_FILES - LAPSED_PER_LINK + 1;
    let kept = database.say("select count(*) from session_files");
    assert_eq!(kept, [left.to_string()]);
}

#[tokio::test]
async fn size_of_all_files_is_limited() {
    let (project, session) = amys_session().await;
    let half = vec![b'x'; MAX_TOTAL_BYTES / 2];
    for path in ["a", "b"] {
        upload(&project, &session, path, &half).await;
    }
    let url = upload_url(&project, &session, "c").await;
    assert_eq!(put(&project, &url, b"x").await.status, 400);
    let body = json!({ "mount_relative_path": "a" });
    mount(&project, &session, "delete", body).await.expect(200);
    assert_eq!(put(&project, &url, b"x").await.status, 200);
}

#[tokio::test]
async fn quota_of_project_counts_session_files() {
    let host = Setup::new().with("files.quota_mib", "1").start().await;
    let project = host.as_project();
    let one = session(&project).await;
    let most = vec![b'x'; 600 << 10];
    upload(&project, &one, "a", &most).await;
    let other = session(&project).await;
    let url = upload_url(&project, &other, "a").await;
    assert_eq!(put(&project, &url, &most).await.status, 507);
    let path = format!("{SESSION_PATH}/{one}");
    project.delete(&path).await.expect(200);
    assert_eq!(put(&project, &url, &most).await.status, 200);
}

#[tokio::test]
async fn files_are_erased_with_session_and_project() {
    let host = Setup::new().start().await;
    let (id, project) = given::project(&host, json!({})).await;
    let blobs = host.data().join("store/blobs");
    let blobs = || {
        let names = std::fs::read_dir(&blobs).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| name.to_string_lossy().starts_with("file."))
            .count()
    };
    let (one, other) = (session(&project).await, session(&project).await);
    for session in [&one, &other] {
        for content in ["first", "second"] {
            upload(&project, session, "a.txt", content.as_bytes()).await;
        }
        upload_url(&project, session, "awaited.txt").await;
    }
    assert_eq!(blobs(), 2, "replaced content is erased");
    let link = download_url(&project, &one, "a.txt").await.expect(201);
    let path = format!("{SESSION_PATH}/{one}");
    project.delete(&path).await.expect(200);
    assert_eq!(blobs(), 1);
    let link = link["download_url"].as_str().unwrap();
    assert_eq!(given::open(&project, link).await.status, 404);
    host.delete_project(&id).await;
    wait_until("the files are erased", || async { blobs() == 0 }).await;
}
