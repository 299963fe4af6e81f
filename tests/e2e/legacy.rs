//! Legacy ids, which older clients use.

use harness::{Answer, Client, Finished, Guest, Host, host::Setup};
use serde_json::json;

use crate::given;

const LEGACY_ID: &str = "0d3f1f7e-6a57-4a8e-9a41-3c1b6f0a9e11";

async fn asked(project: &Client, kind: &str, uuid: &str) -> Answer {
    let path = format!("/migration/get-nanoid?uuid={uuid}&type={kind}");
    project.get(&path).await
}

/// Asserts that a legacy UUID is resolved to an id.
async fn assert_resolves(project: &Client, kind: &str, uuid: &str, id: &str) {
    let answer = asked(project, kind, uuid).await.expect(200);
    assert_eq!(answer["nanoid"], id, "{kind} {uuid}");
}

/// Runs the command that imports a file with this text.
fn load(setup: &Setup, text: &str) -> Finished {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    setup.command(&["import-legacy", file.path().to_str().unwrap()])
}

#[tokio::test]
async fn legacy_uuid_resolves_until_deletion() {
    let host = Host::shared().await;
    let (project, other) = (host.new_project().await, host.new_project().await);
    let account = project.connect_with_key(given::keyed().await, "amy").await;
    let shown = project.account(&account).await;
    let config = shown["auth_config"]["id"].as_str().unwrap().to_owned();
    let uuid = shown["deprecated"]["uuid"].as_str().unwrap();
    let config_uuid = shown["auth_config"]["deprecated"]["uuid"].as_str().unwrap();
    for (kind, uuid, id) in [
        ("CONNECTED_ACCOUNT", uuid, &account),
        ("CONNECTED_ACCOUNT", &uuid.to_uppercase(), &account),
        ("AUTH_CONFIG", config_uuid, &config),
    ] {
        assert_resolves(&project, kind, uuid, id).await;
    }
    for (client, kind, uuid) in [
        (&project, "AUTH_CONFIG", uuid),
        (&project, "TRIGGER_INSTANCE", uuid),
        (&other, "CONNECTED_ACCOUNT", uuid),
    ] {
        asked(client, kind, uuid).await.expect(404);
    }
    for (path, kind, uuid) in [
        (
            format!("/connected_accounts/{account}"),
            "CONNECTED_ACCOUNT",
            uuid,
        ),
        (
            format!("/auth_configs/{config}"),
            "AUTH_CONFIG",
            config_uuid,
        ),
    ] {
        project.delete(&path).await.expect(200);
        asked(&project, kind, uuid).await.expect(410);
    }
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
    let refused = load(host.setup(), "").failed();
    assert!(refused.contains("stop it"), "{refused}");
    let missing = host.setup().command(&["import-legacy", "no-such-file"]);
    let missing = missing.failed();
    assert!(missing.contains("cannot read no-such-file"), "{missing}");
}

#[tokio::test]
async fn legacy_id_import_is_atomic() {
    let host = Setup::new().start().await;
    let id = host.as_project().project_id().await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::echo(), &slug).await;
    let account = host.as_project().connect_with_key(&slug, "amy").await;
    let line = |kind: &str, uuid: &str, nanoid: &str| {
        json!({ "project": id, "type": kind, "uuid": uuid, "nanoid": nanoid }).to_string() + "\n"
    };
    let good = line("CONNECTED_ACCOUNT", LEGACY_ID, &account)
        + "\n"
        + &line("TRIGGER_INSTANCE", LEGACY_ID, "ti_AAAAAAAAAAAA");
    let (setup, _) = host.terminate().await;
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
        let refused = load(&setup, &(good.clone() + &wrong)).failed();
        assert!(
            refused.contains(why) && refused.contains("line 4"),
            "{wrong}: {refused}"
        );
    }
    for counts in [
        "2 legacy ids loaded, 0 already known",
        "0 legacy ids loaded, 2 already known",
    ] {
        let said = load(&setup, &good).succeeded();
        assert!(said.contains(counts), "{said}");
    }
    let second = line("TRIGGER_INSTANCE", LEGACY_ID, "ti_BBBBBBBBBBBB");
    let second = load(&setup, &second).failed();
    assert!(
        second.contains("is already the legacy id of ti_AAAAAAAAAAAA"),
        "{second}"
    );
    let host = setup.clone().start().await;
    let project = host.as_project();
    assert_resolves(&project, "CONNECTED_ACCOUNT", LEGACY_ID, &account).await;
    assert_resolves(&project, "TRIGGER_INSTANCE", LEGACY_ID, "ti_AAAAAAAAAAAA").await;
    let stranger = host.new_project().await;
    let foreign = asked(&stranger, "TRIGGER_INSTANCE", LEGACY_ID).await;
    foreign.expect(404);
    let path = format!("/connected_accounts/{account}");
    project.delete(&path).await.expect(200);
    let gone = asked(&project, "CONNECTED_ACCOUNT", LEGACY_ID).await;
    gone.expect(410);
}

#[tokio::test]
async fn deleted_project_keeps_no_legacy_id() {
    let host = Setup::new().start().await;
    let (first, second) = (host.new_project().await, host.new_project().await);
    let (first, second) = (first.project_id().await, second.project_id().await);
    let (setup, _) = host.terminate().await;
    let line = |project: &str| {
        json!({
            "project": project, "type": "TRIGGER_INSTANCE", "uuid": LEGACY_ID, "nanoid": "ti_AAAAAAAAAAAA",
        })
        .to_string()
    };
    load(&setup, &line(&first)).succeeded();
    load(&setup, &line(&second)).failed();
    let host = setup.clone().start().await;
    host.delete_project(&first).await;
    host.terminate().await;
    load(&setup, &line(&second)).succeeded();
}
