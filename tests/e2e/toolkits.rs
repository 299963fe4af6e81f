//! Publishing toolkits, their versions, and their catalog entries.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use harness::{Answer, Client, Guest, Host, guest, host::Setup};
use serde_json::{Value, json};

use crate::given;

/// Publishes two versions that return different results. Returns the slug and the older version's
/// bytes.
async fn two_versions(host: &Host) -> (String, Vec<u8>) {
    let (slug, mut manifest) = given::manifest();
    let older = guest::with_manifest(Guest::echo().component(), &manifest);
    host.publish(Guest::echo().component(), &manifest).await;
    manifest["version"] = json!("20260202_00");
    host.publish(Guest::constant().component(), &manifest).await;
    (slug, older)
}

async fn run(client: &Client, slug: &str, version: &str) -> Answer {
    let body = json!({ "arguments": { "said": "hello" }, "version": version });
    let path = format!("/tools/execute/{}", guest::tool(slug));
    client.post(&path, &body).await
}

/// Asserts that the tool runs in the older version, which returns its arguments, or in the newer one.
async fn assert_runs(client: &Client, slug: &str, version: &str, is_older: bool) {
    let data = run(client, slug, version).await.data();
    let expected = match is_older {
        true => json!({ "said": "hello" }),
        false => json!({ "answer": 42 }),
    };
    assert_eq!(data, expected, "{version}");
}

#[tokio::test]
async fn two_versions_of_one_toolkit_answer_differently() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, _) = two_versions(host).await;
    for (version, is_older) in [
        ("20260101_00", true),
        ("20260202_00", false),
        ("latest", false),
        ("00000000_00", true),
    ] {
        assert_runs(&project, &slug, version, is_older).await;
    }
    for unknown in ["20260303_00", "newest", "20260101"] {
        let answer = run(&project, &slug, unknown).await.expect(404);
        assert_eq!(answer["error"]["code"], 2401, "{unknown:?}");
    }
}

#[tokio::test]
async fn without_a_version_the_prefix_decides() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, _) = two_versions(host).await;
    let path = format!("/tools/execute/{}", guest::tool(&slug));
    let body = json!({ "arguments": { "said": "hello" } });
    let versions = |answer: &Answer| {
        ["x-toolhost-tool-version", "x-toolhost-latest-tool-version"]
            .map(|name| answer.header(name).to_owned())
    };
    let older = project.post(&path, &body).await;
    assert_eq!(versions(&older), ["20260101_00", "20260202_00"]);
    assert_eq!(older.data(), json!({ "said": "hello" }));
    let named = json!({ "arguments": {}, "version": "latest" });
    let named = project.post(&path, &named).await.expect(200);
    assert_eq!(versions(&named), ["", ""]);
    let newer = project.clone().with_newer_prefix();
    let newer = newer.post(&path, &body).await;
    assert_eq!(versions(&newer), ["", ""]);
    assert_eq!(newer.data(), json!({ "answer": 42 }));
    let path = format!("/tools/{}", guest::tool(&slug));
    let older = project.get(&path).await.expect(200);
    assert_eq!(older["version"], "20260101_00");
    let newer = project.with_newer_prefix().get(&path).await;
    assert_eq!(newer.expect(200)["version"], "20260202_00");
}

#[tokio::test]
async fn republishing_different_bytes_is_refused() {
    let host = Host::shared().await;
    let (slug, older) = two_versions(host).await;
    let address = format!("/toolkits/{slug}/versions/20260101_00");
    let first = host.as_org().put(&address, older.clone()).await.expect(200);
    let again = host.as_org().put(&address, older).await.expect(200);
    assert_eq!(first.json, again.json);
    let other = guest::with_manifest(Guest::constant().component(), &guest::manifest(&slug));
    host.as_org().put(&address, other).await.expect(409);
    let project = host.new_project().await;
    assert_runs(&project, &slug, "20260101_00", true).await;
}

#[tokio::test]
async fn deprecated_version_runs_only_when_named() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, _) = two_versions(host).await;
    let deprecate = async |slug: &str, version: &str| {
        let path = format!("/toolkits/{slug}/versions/{version}");
        host.as_org().delete(&path).await
    };
    deprecate(&slug, "20260202_00").await.expect(200);
    assert_runs(&project, &slug, "latest", true).await;
    assert_runs(&project, &slug, "20260202_00", false).await;
    deprecate(&slug, "20260202_00").await.expect(200);
    deprecate(&slug, "20260101_00").await.expect(200);
    let refused = run(&project, &slug, "latest").await;
    refused.expect_error(410, "Tool_ToolDeprecated");
    assert_runs(&project, &slug, "20260101_00", true).await;
    let unknown = given::slug();
    deprecate(&slug, "20260303_00").await.expect(404);
    deprecate(&unknown, "20260101_00").await.expect(404);
}

#[tokio::test]
async fn versions_are_listed_with_their_changes() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, _) = two_versions(host).await;
    let path = format!("/toolkits/{slug}/versions");
    let org = host.as_org();
    let older = format!("{path}/20260101_00");
    org.delete(&older).await.expect(200);
    let all = project.get(&path).await.expect(200);
    assert_eq!(all["total_items"], 2);
    for (place, version, is_deprecated, changelog) in [
        (0, "20260202_00", false, "only the code changed"),
        (1, "20260101_00", true, "the first version"),
    ] {
        let item = &all["items"][place];
        let published = org.get(&format!("{path}/{version}")).await.expect(200);
        let expected = json!({
            "version": version,
            "created_at": published["created_at"],
            "is_deprecated": is_deprecated,
            "changelog": changelog,
        });
        assert_eq!(*item, expected);
    }

    let first = project.get(&format!("{path}?limit=1")).await.expect(200);
    assert_eq!(first["items"], json!([all["items"][0]]));
    let cursor = harness::fake_app::percent(first["next_cursor"].as_str().unwrap());
    let second = project.get(&format!("{path}?cursor={cursor}")).await;
    let second = second.expect(200);
    assert_eq!(second["items"], json!([all["items"][1]]));
    assert_eq!(second["next_cursor"], Value::Null);

    let unknown = format!("/toolkits/{}/versions", given::slug());
    project.get(&unknown).await.expect(404);
    org.get(&path).await.expect(401);
}

#[tokio::test]
async fn only_the_organization_publishes() {
    let host = Host::shared().await;
    let manifest = guest::manifest(&given::slug());
    let bytes = guest::with_manifest(Guest::echo().component(), &manifest);
    let project = host.new_project().await;
    for client in [&project, &host.anonymous()] {
        let refused = client.put(&guest::address(&manifest), bytes.clone()).await;
        refused.expect(401);
    }
    let path = format!("/toolkits/{}", given::text(&manifest["slug"]));
    project.get(&path).await.expect(404);
}

#[tokio::test]
async fn concurrent_publishers_of_one_version_agree() {
    let host = Host::shared().await;
    let manifest = guest::manifest(&given::slug());
    let address = guest::address(&manifest);
    let candidates = [Guest::echo().component(), Guest::constant().component()];
    let publishing = (0..6).map(|turn| {
        let (client, address) = (host.as_org(), address.clone());
        let bytes = guest::with_manifest(candidates[turn % 2].clone(), &manifest);
        async move { (turn % 2, client.put(&address, bytes).await.status) }
    });
    let answers = futures::future::join_all(publishing).await;
    let created = answers.iter().filter(|(_, status)| *status == 201);
    let created: Vec<_> = created.collect();
    assert_eq!(created.len(), 1, "{answers:?}");
    let winner = created[0].0;
    for (turn, status) in &answers {
        let expected: &[u16] = if *turn == winner { &[200, 201] } else { &[409] };
        assert!(expected.contains(status), "{answers:?}");
    }
}

#[tokio::test]
async fn replaced_compiled_file_is_recompiled() {
    let host = Setup::new().start().await;
    let tool = given::echo(&host).await;
    let (setup, _) = host.terminate().await;
    let mut damaged = Vec::new();
    for entry in std::fs::read_dir(setup.data().join("compiled")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        damaged.push((path, bytes));
    }
    let host = setup.start().await;
    let arguments = json!({ "a": 1 });
    let ran = host.as_project().execute(&tool, arguments.clone()).await;
    assert_eq!(ran.data(), arguments);
    let mut damaged = damaged.iter();
    let has_replaced = damaged.any(|(path, bytes)| std::fs::read(path).unwrap() != *bytes);
    assert!(has_replaced, "the damaged file was loaded");
}

#[tokio::test]
async fn list_and_detail_tell_what_the_manifest_says() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let detail = format!("/toolkits/{}", slug.to_uppercase());
    let detail = project.get(&detail).await.expect(200);
    assert_eq!(detail["slug"], *slug);
    let tools = project.get(&format!("/tools?toolkit_slug={slug}")).await;
    for status in [&detail["status"], &tools.expect(200)["items"][0]["status"]] {
        assert_eq!(status, "active");
    }
    let scheme = &detail["auth_config_details"][0];
    assert_eq!(scheme["mode"], "API_KEY");
    let field = &scheme["fields"]["connected_account_initiation"]["required"][0];
    assert_eq!(field["name"], "api_key");
    assert_eq!(field["required"], true);
    let listed = project.get(&format!("/toolkits?search={slug}")).await;
    let listed = listed.expect(200);
    let mut items = listed["items"].as_array().unwrap().iter();
    let found = items.find(|item| item["slug"] == *slug).unwrap();
    assert_eq!(found["no_auth"], false);
    assert_eq!(found["is_local_toolkit"], false);
    assert_eq!(found["status"], "active");
    assert_eq!(found["meta"]["tools_count"], 1);
    let categories = project.get("/toolkits/categories").await;
    assert!(categories.expect(200).text.contains("tests"));
    project.get("/toolkits/no_such_toolkit").await.expect(404);
}

#[tokio::test]
async fn logos_are_images_that_run_nothing() {
    let (host, project) = Host::shared_with_project().await;
    let drawn = "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>";
    let pixel = b"\x89PNG\r\n\x1a\n-pixel";
    let packed = format!("data:image/png;base64,{}", BASE64.encode(pixel));
    for (logo, media_type, bytes) in [
        (drawn, "image/svg+xml", drawn.as_bytes()),
        (&*packed, "image/png", &pixel[..]),
    ] {
        let (slug, mut manifest) = given::manifest();
        manifest["logo"] = logo.into();
        host.publish(Guest::echo().component(), &manifest).await;
        let detail = project.get(&format!("/toolkits/{slug}")).await.expect(200);
        let tool = project.get(&format!("/tools/{}", guest::tool(&slug))).await;
        let url = detail["meta"]["logo"].as_str().unwrap();
        assert_eq!(url, format!("{}/logos/{slug}", host.url));
        assert_eq!(tool.expect(200)["toolkit"]["logo"], url);
        let image = given::open(&host.anonymous(), url).await;
        assert_eq!((image.status, &*image.bytes), (200, bytes), "{url}");
        assert_eq!(image.header("content-type"), media_type);
        assert_eq!(image.header("x-content-type-options"), "nosniff");
        let policy = image.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(policy.ends_with("sandbox"), "{policy}");
    }
    let without = format!("/toolkits/{}", given::keyed().await);
    let without = project.get(&without).await.expect(200);
    assert_eq!(without["meta"]["logo"], "");
}
