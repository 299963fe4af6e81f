//! Legacy ids, which older clients use.

use harness::{Answer, Client, Host, host::Setup};
use serde_json::json;

use crate::given;

const LEGACY_ID: &str = "0d3f1f7e-6a57-4a8e-9a41-3c1b6f0a9e11";

async fn asked(project: &Client, kind: &str, uuid: &str) -> Answer {
    project
        .get(&format!("/migration/get-nanoid?uuid={uuid}&type={kind}"))
        .await
}

#[tokio::test]
async fn legacy_uuid_resolves_until_deletion() {
    let host = Host::shared().await;
    let (project, other) = (host.new_project().await, host.new_project().await);
    let values = json!({ "api_key": harness::secret() });
    let account = project
        .connect(given::keyed().await, "API_KEY", "amy", values)
        .await;
    let shown = project
        .get(&format!("/connected_accounts/{account}"))
        .await
        .expect(200);
    let config = shown["auth_config"]["id"].as_str().unwrap().to_owned();
    let uuid = shown["deprecated"]["uuid"].as_str().unwrap();
    let config_uuid = shown["auth_config"]["deprecated"]["uuid"].as_str().unwrap();
    assert_eq!(
        asked(&project, "CONNECTED_ACCOUNT", uuid).await.expect(200)["nanoid"],
        account
    );
    assert_eq!(
        asked(&project, "CONNECTED_ACCOUNT", &uuid.to_uppercase())
            .await
            .expect(200)["nanoid"],
        account
    );
    assert_eq!(
        asked(&project, "AUTH_CONFIG", config_uuid)
            .await
            .expect(200)["nanoid"],
        config
    );
    for (client, kind, uuid) in [
        (&project, "AUTH_CONFIG", uuid),
        (&project, "TRIGGER_INSTANCE", uuid),
        (&other, "CONNECTED_ACCOUNT", uuid),
    ] {
        asked(client, kind, uuid).await.expect(404);
    }
    project
        .delete(&format!("/connected_accounts/{account}"))
        .await
        .expect(200);
    project
        .delete(&format!("/auth_configs/{config}"))
        .await
        .expect(200);
    asked(&project, "CONNECTED_ACCOUNT", uuid).await.expect(410);
    asked(&project, "AUTH_CONFIG", config_uuid)
        .await
        .expect(410);
    for (kind, uuid) in [
        ("CONNECTED_ACCOUNT", "7"),
        ("CONNECTED_ACCOUNT", ""),
        ("SHOE", LEGACY_ID),
        ("", LEGACY_ID),
    ] {
        asked(&project, kind, uuid).await.expect(400);
    }
}

#[tokio::test]
async fn import_on_a_store_in_use_is_refused() {
    let host = Setup::embedded().start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = host
        .setup()
        .command(&["import-legacy", &file.path().display().to_string()])
        .failed();
    assert!(refused.contains("stop it"), "{refused}");
    let missing = host
        .setup()
        .command(&["import-legacy", "no-such-file"])
        .failed();
    assert!(missing.contains("cannot read no-such-file"), "{missing}");
}

#[tokio::test]
async fn legacy_id_import_is_atomic() {
    let host = Setup::new().start().await;
    let id = host
        .as_project()
        .get("/auth/session/info")
        .await
        .expect(200)["project"]["nano_id"]
        .clone();
    let slug = given::slug();
    let manifest = harness::guest::manifest_with_key(&slug, given::bearer());
    host.publish(harness::Guest::echo().component(), &manifest)
        .await;
    let account = host.as_project().connect_with_key(&slug, "amy").await;
    let line = |kind: &str, uuid: &str, nanoid: &str| {
        json!({ "project": id, "type": kind, "uuid": uuid, "nanoid": nanoid }).to_string() + "\n"
    };
    let good = line("CONNECTED_ACCOUNT", LEGACY_ID, &account)
        + "\n"
        + &line("TRIGGER_INSTANCE", LEGACY_ID, "ti_AAAAAAAAAAAA");
    let (setup, _) = host.terminate().await;
    let load = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        setup.command(&["import-legacy", &file.path().display().to_string()])
    };
    for (wrong, why) in [
        (
            line("CONNECTED_ACCOUNT", LEGACY_ID, "ca_AAAAAAAAAAAA"),
            "has no connected account",
        ),
        (
            line("AUTH_CONFIG", LEGACY_ID, &account),
            "is not the id of an auth config",
        ),
        (line("SHOE", LEGACY_ID, &account), "unknown variant"),
        ("{".to_owned(), "line 4"),
        (
            line("TRIGGER_INSTANCE", LEGACY_ID, "ti_BBBBBBBBBBBB"),
            "an earlier line",
        ),
    ] {
        let refused = load(&(good.clone() + &wrong)).failed();
        assert!(
            refused.contains(why) && refused.contains("line 4"),
            "{wrong}: {refused}"
        );
    }
    assert!(
        load(&good)
            .succeeded()
            .contains("2 legacy ids loaded, 0 already known"),
        "nothing was loaded before"
    );
    assert!(
        load(&good)
            .succeeded()
            .contains("0 legacy ids loaded, 2 already known")
    );
    let second = load(&line("TRIGGER_INSTANCE", LEGACY_ID, "ti_BBBBBBBBBBBB")).failed();
    assert!(
        second.contains("is already the legacy id of ti_AAAAAAAAAAAA"),
        "{second}"
    );
    let host = setup.clone().start().await;
    let project = host.as_project();
    assert_eq!(
        asked(&project, "CONNECTED_ACCOUNT", LEGACY_ID)
            .await
            .expect(200)["nanoid"],
        account
    );
    assert_eq!(
        asked(&project, "TRIGGER_INSTANCE", LEGACY_ID)
            .await
            .expect(200)["nanoid"],
        "ti_AAAAAAAAAAAA"
    );
    asked(&host.new_project().await, "TRIGGER_INSTANCE", LEGACY_ID)
        .await
        .expect(404);
    project
        .delete(&format!("/connected_accounts/{account}"))
        .await
        .expect(200);
    asked(&project, "CONNECTED_ACCOUNT", LEGACY_ID)
        .await
        .expect(410);
}

#[tokio::test]
async fn deleted_project_keeps_no_legacy_id() {
    let host = Setup::new().start().await;
    let (first, second) = (host.new_project().await, host.new_project().await);
    let (first, second) = (first.project_id().await, second.project_id().await);
    let (setup, _) = host.terminate().await;
    let load = |project: &str| {
        let line = json!({
            "project": project, "type": "TRIGGER_INSTANCE", "uuid": LEGACY_ID, "nanoid": "ti_AAAAAAAAAAAA",
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), line.to_string()).unwrap();
        setup.command(&["import-legacy", &file.path().display().to_string()])
    };
    load(&first).succeeded();
    load(&second).failed();
    let host = setup.clone().start().await;
    host.delete_project(&first).await;
    host.terminate().await;
    load(&second).succeeded();
}
