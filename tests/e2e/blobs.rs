//! Components in a bucket: every start finds them, and a bucket outage affects only the operations
//! that need the bucket.

use harness::{BucketService, Guest, bucket, guest, host::Setup};
use serde_json::json;

use crate::given;

#[tokio::test]
async fn restart_needs_only_the_bucket() {
    let service = BucketService::start();
    let host = Setup::new().in_bucket(&service).start().await;
    let tool = given::echo(&host).await;
    host.as_project()
        .execute(&tool, json!({ "word": "kept" }))
        .await
        .expect(200);
    let objects = std::fs::read_dir(service.file("components"))
        .unwrap()
        .count();
    assert!(objects > 0, "the component lies in the bucket");
    let (setup, _) = host.terminate().await;
    assert!(
        !setup.data().join("store/blobs").exists(),
        "nothing of it lies in the data directory"
    );
    // The compiled files are deleted, as on a new machine.
    std::fs::remove_dir_all(setup.data().join("compiled")).unwrap();
    let host = setup.start().await;
    let answer = host
        .as_project()
        .execute(&tool, json!({ "word": "found" }))
        .await
        .expect(200);
    assert_eq!(answer["data"]["word"], "found");
    assert!(!host.output().contains(bucket::SECRET_KEY));
}

#[tokio::test]
async fn bucket_outage_refuses_publishing_but_not_loaded_tools() {
    let service = BucketService::start();
    let host = Setup::new().in_bucket(&service).start().await;
    let tool = given::echo(&host).await;
    service.stop();
    let manifest = guest::manifest(&given::slug());
    let bytes = guest::with_manifest(Guest::constant().component(), &manifest);
    let refused = host
        .as_org()
        .put(&guest::address(&manifest), bytes.clone())
        .await
        .expect(503);
    assert!(!refused.header("retry-after").is_empty());
    assert!(
        refused.text.contains("bucket") && !refused.text.contains(&service.endpoint()),
        "{}",
        refused.text
    );
    assert!(!host.output().contains(bucket::SECRET_KEY));
    host.as_project()
        .execute(&tool, json!({}))
        .await
        .expect(200);
    service.restart();
    host.as_org()
        .put(&guest::address(&manifest), bytes)
        .await
        .expect(201);
}

#[tokio::test]
async fn file_lost_in_outage_counts_nothing() {
    let service = BucketService::start();
    let setup = given::with_application().in_bucket(&service);
    let host = setup.with("files.quota_mib", "1").start().await;
    let (_, account) = given::fetcher(&host).await;
    let project = host.as_project();
    let body =
        json!({ "connected_account_id": account, "endpoint": "/bytes/x/1000000", "method": "GET" });
    let fetch = || project.post("/tools/execute/proxy", &body);
    service.stop();
    fetch().await.expect(503);
    let listed = project.get("/files/list").await.expect(200);
    assert_eq!(listed["items"], json!([]));
    service.restart();
    fetch().await.expect(200);
    fetch().await.expect(507);
}

#[tokio::test]
async fn wrong_bucket_keys_are_reported_at_start() {
    let service = BucketService::start();
    let setup = Setup::new()
        .in_bucket(&service)
        .with("s3.secret_access_key", harness::marked!("not-the-secret-"));
    let doctor = setup.command(&["doctor"]);
    assert!(
        doctor.stdout.contains("refuses the credentials"),
        "{doctor:?}"
    );
    let refused = setup.try_start().await.unwrap_err();
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.output.contains("refuses the credentials"),
        "{}",
        refused.output
    );
    assert!(!refused.output.contains(harness::marked!("not-the-secret-")));
}

#[tokio::test]
async fn doctor_writes_objects_only_on_request() {
    let service = BucketService::start();
    let setup = Setup::new().in_bucket(&service);
    let objects = || std::fs::read_dir(service.file("")).unwrap().count();
    let doctor = setup.command(&["doctor"]);
    assert!(
        doctor.stdout.contains("objects can be listed in"),
        "{doctor:?}"
    );
    assert_eq!(objects(), 0);
    let doctor = setup.command(&["doctor", "--write"]);
    assert!(
        doctor
            .stdout
            .contains("objects can be listed, written, read and deleted in"),
        "{doctor:?}"
    );
}
