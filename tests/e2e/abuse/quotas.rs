//! Amounts that one project may store, and the records of its runs.

use std::{fs, os::unix::fs::PermissionsExt};

use futures::future::join_all;
use harness::{Answer, Client, Host, LimitedDisk, client::Body, guest, host::Setup};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    budget::assert_refused,
    files, given,
    tool_router_sessions::{self, SESSION_PATH},
};

const LOGS_PATH: &str = "/logs/tool_execution";

/// Runs a tool that returns its arguments, which have `bytes` bytes of filler.
async fn run(project: &Client, tool: &str, bytes: usize) -> Answer {
    project
        .execute(tool, json!({ "filler": "x".repeat(bytes) }))
        .await
}

/// Returns the record of a run.
async fn record(project: &Client, ran: &Answer) -> Answer {
    project.log(&ran["log_id"]).await
}

/// Starts the server again after a shutdown, and returns it with its first project.
async fn restarted(host: Host) -> (Host, Client) {
    let key = host.project_key.clone();
    let host = host.terminate().await.0.start().await;
    let project = host.with_key(&key);
    (host, project)
}

#[tokio::test]
async fn records_that_wait_are_bounded_in_bytes() {
    let setup = Setup::embedded()
        .with("logs.wait", "false")
        .with("sandbox.memory_mib", "64");
    let Some(disk) = LimitedDisk::below(&setup, 96) else {
        eprintln!("no small disk can be made here; the room of a record is tested beside it");
        return;
    };
    let host = disk.hold(setup).start().await;
    let (project, tool) = (host.as_project(), given::echo(&host).await);
    run(&project, &tool, 1 << 20).await.expect(200);
    let before = host.footprint().resident_kib;
    disk.fill_leaving(1 << 20);
    // The payloads exceed the size limit of a record, so a waiting record holds only a note.
    // Kept whole, they would take 128 MiB. Threads that parse them keep some freed memory.
    for _ in 0..64 {
        run(&project, &tool, 1 << 20).await.expect(200);
    }
    let grown = host.footprint().resident_kib.saturating_sub(before) >> 10;
    assert!(grown < 64, "the server has grown by {grown} MiB");
    let mut ran = 65;
    let refused = loop {
        let answer = run(&project, &tool, 60 << 10).await;
        if answer.status != 200 {
            break answer;
        }
        ran += 1;
        assert!(ran < 256, "each of these records takes 120 KiB of 16 MiB");
    };
    let row = "Records that wait to be written";
    assert_refused(row, &refused, 503, "Server_Unavailable");
    disk.clear();
    harness::wait_until("runs are let in again", || async {
        run(&project, &tool, 1).await.status == 200
    })
    .await;
    let listed = project.post(LOGS_PATH, &json!({ "limit": 1_000 })).await;
    let kept = listed.expect(200)["logs"].as_array().unwrap().len();
    assert_eq!(kept, ran + 1, "no record is lost");
}

#[tokio::test]
async fn records_past_a_projects_quota_keep_no_payload() {
    let host = Setup::new().with("limits.records_mib", "1").start().await;
    let (project, tool) = (host.as_project(), given::echo(&host).await);
    let first = run(&project, &tool, 60 << 10).await.expect(200);
    for _ in 0..8 {
        run(&project, &tool, 60 << 10).await.expect(200);
    }
    let past = run(&project, &tool, 60 << 10).await.expect(200);
    let assert_left_out = |record: &Answer| {
        for kept in [
            &record["data"]["arguments"],
            &record["data"]["response"]["data"],
        ] {
            assert_eq!(kept["omitted"], true, "{kept}");
            assert!(kept["bytes"].as_u64() > Some(60 << 10), "{kept}");
        }
        let message = record["data"]["log"][0]["message"].as_str().unwrap();
        assert!(message.contains("limits.records_mib"), "{record:#?}");
        assert_eq!(record["status"], "success", "{record:#?}");
    };
    assert!(record(&project, &first).await["data"]["arguments"]["filler"].is_string());
    assert_left_out(&record(&project, &past).await);
    let neighbor = host.new_project().await;
    let own = run(&neighbor, &tool, 60 << 10).await.expect(200);
    assert!(
        record(&neighbor, &own).await["data"]["arguments"]["filler"].is_string(),
        "a quota is of one project"
    );
    let (_host, project) = restarted(host).await;
    let later = run(&project, &tool, 60 << 10).await.expect(200);
    assert_left_out(&record(&project, &later).await);
}

#[tokio::test]
async fn no_tool_runs_past_twice_the_log_quota() {
    let host = Setup::new().with("limits.records_mib", "1").start().await;
    let (project, tool) = (host.as_project(), given::echo(&host).await);
    let run_many = async |bytes: usize| {
        let runs = join_all((0..40).map(|_| run(&project, &tool, bytes))).await;
        runs.into_iter().find(|ran| ran.status != 200)
    };
    // Payloads take the quota, and then each record counts with 512 bytes.
    assert!(run_many(60 << 10).await.is_none());
    let mut refused = None;
    for _ in 0..80 {
        refused = run_many(1).await;
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.unwrap();
    let row = "Execution log of one project in a day";
    assert_refused(row, &refused, 507, "Log_QuotaExceeded");
    let neighbor = host.new_project().await;
    run(&neighbor, &tool, 1).await.expect(200);
}

/// Creates `most` records and one more, which is refused. Returns the response that created the first.
async fn fill(what: &str, most: usize, create: impl AsyncFn(usize) -> Answer) -> Answer {
    let first = create(0).await.expect(201);
    // Near the limit records are counted one by one.
    let numbers: Vec<_> = (1..most).collect();
    let (early, late) = numbers.split_at(most.saturating_sub(100));
    for some in early.chunks(40).chain(late.chunks(1)) {
        for created in join_all(some.iter().map(|number| create(*number))).await {
            created.expect(201);
        }
    }
    let refused = create(most).await;
    assert_refused(what, &refused, 507, "Project_TooManyRecords");
    first
}

#[tokio::test]
async fn records_of_a_project_are_limited_in_number() {
    let setup = Setup::new().with("limits.accounts_per_project", "6");
    let host = setup.start().await;
    let slug = tool_router_sessions::keyed(&host).await;
    let (project, neighbor) = (host.new_project().await, host.new_project().await);
    let auth_config = async |project: &Client| {
        let body = json!({
            "toolkit": { "slug": slug },
            "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} },
        });
        project.post("/auth_configs", &body).await
    };
    let amy = json!({ "user_id": "amy" });
    let session = async |project: &Client| project.post(SESSION_PATH, &amy).await;
    let config = fill("Auth configs", 1_000, async |_| auth_config(&project).await).await;
    let config = config["auth_config"]["id"].as_str().unwrap();
    let connect = async |number: usize| {
        let account = given::account(config, &format!("user{number}"), &harness::secret());
        project.post("/connected_accounts", &account).await
    };
    fill("Connected accounts", 6, connect).await;
    let first = fill("Sessions", 3, async |_| session(&project).await).await;
    let server = async |number: usize| {
        let body = json!({ "name": format!("server {number}"), "toolkits": [slug] });
        project.post("/mcp/servers/custom", &body).await
    };
    let server = fill("MCP servers", 1_000, server).await;
    let instances = format!("/mcp/servers/{}/instances", server["id"].as_str().unwrap());
    let instance = async |number: usize| {
        let body = json!({ "user_id": format!("user{number}") });
        project.post(&instances, &body).await
    };
    fill("Instances of MCP servers", 6, instance).await;
    let id = first["session_id"].as_str().unwrap();
    let recipe = async |number: usize| {
        let step = json!({ "name": "one", "tool_slug": guest::tool(&slug), "arguments": {} });
        let recipe = json!({ "name": format!("n{number}"), "description": "d", "steps": [step] });
        let body = json!({ "tool_slug": "SERVICE_UPSERT_RECIPE", "arguments": recipe });
        let path = format!("{SESSION_PATH}/{id}/execute");
        project.post(&path, &body).await
    };
    recipe(0).await.expect(200);
    let refused = recipe(1).await;
    assert_refused("Recipes", &refused, 507, "Project_TooManyRecords");
    recipe(0).await.expect(200);

    auth_config(&neighbor).await.expect(201);
    session(&neighbor).await.expect(201);
    let path = format!("{SESSION_PATH}/{id}");
    project.delete(&path).await.expect(200);
    session(&project).await.expect(201);
}

#[tokio::test]
async fn records_past_a_projects_daily_quota_are_refused() {
    let host = Setup::new().with("limits.records_mib", "1").start().await;
    let (project, neighbor) = (host.as_project(), host.new_project().await);
    let tool = given::echo(&host).await;
    let user = json!({ "user_id": "u".repeat(200) });
    let create = async |project: &Client| project.post(SESSION_PATH, &user).await;
    let mut made = 0;
    let refused = loop {
        let answers = join_all((0..40).map(|_| create(&project))).await;
        match answers.into_iter().find(|answer| answer.status != 201) {
            Some(refused) => break refused,
            None => made += 40,
        }
        assert!(
            made < 1_024,
            "each session and its version count with 512 bytes or more"
        );
    };
    let slug = "Project_RecordQuotaExceeded";
    assert_refused("Other records", &refused, 507, slug);
    let path = format!("/tools/execute/{tool}");
    let keyed = async |key: String| {
        let body = Body::Json(json!({ "version": "latest", "arguments": {} }));
        let headers = [("idempotency-key", key.as_str())];
        project.send(Method::POST, &path, body, &headers).await
    };
    // The remaining quota is too small for a session, but enough for a few keys.
    let mut refused = keyed("0".to_owned()).await;
    for key in 1..8 {
        refused = keyed(key.to_string()).await;
    }
    assert_refused("Other records", &refused, 507, slug);
    run(&project, &tool, 1).await.expect(200);
    create(&neighbor).await.expect(201);
}

#[tokio::test]
async fn credentials_and_values_are_limited_in_size() {
    let project = Host::shared().await.new_project().await;
    let auth_config = async |bytes: usize| {
        let body = json!({
            "toolkit": { "slug": given::keyed().await },
            "auth_config": {
                "type": "use_custom_auth", "authScheme": "API_KEY",
                "credentials": { "unknown": "x".repeat(bytes) },
            },
        });
        project.post("/auth_configs", &body).await
    };
    let made = auth_config(100 << 10).await.expect(201);
    let refused = auth_config(128 << 10).await;
    assert_refused("Auth config", &refused, 400, "Request_Invalid");
    let config = made["auth_config"]["id"].as_str().unwrap();
    let account = async |bytes: usize| {
        let mut account = given::account(config, "amy", &harness::secret());
        account["connection"]["state"]["val"]["unknown"] = json!("x".repeat(bytes));
        project.post("/connected_accounts", &account).await
    };
    account(60 << 10).await.expect(201);
    let refused = account(64 << 10).await;
    assert_refused("Connected account", &refused, 400, "Request_Invalid");
}

#[tokio::test]
async fn answers_past_a_projects_quota_are_not_kept() {
    let host = Setup::new().with("limits.records_mib", "8").start().await;
    let path = format!("/tools/execute/{}", given::echo(&host).await);
    let ask = async |project: &Client, key: &str| {
        let body = json!({ "version": "latest", "arguments": { "a": "x".repeat(600 << 10) } });
        let (body, headers) = (Body::Json(body), [("idempotency-key", key)]);
        project.send(Method::POST, &path, body, &headers).await
    };
    let (project, neighbor) = (host.as_project(), host.new_project().await);
    for (client, key) in [(&project, "first"), (&neighbor, "neighbor")] {
        let answer = ask(client, key).await.expect(200);
        let again = ask(client, key).await.expect(200);
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.text, answer.text);
    }
    let assert_not_kept = async |project: &Client, key: &str| {
        ask(project, key).await.expect(200);
        let gone = ask(project, key).await;
        assert_refused("Answers kept", &gone, 409, "Idempotency_AnswerGone");
    };
    assert_not_kept(&project, "second").await;
    let (_host, project) = restarted(host).await;
    assert_not_kept(&project, "third").await;
}

#[tokio::test]
async fn events_past_a_projects_quota_are_refused() {
    let host = Setup::new().with("limits.records_mib", "2").start().await;
    let body = json!({ "data": { "filler": "x".repeat(600 << 10) } });
    let (project, neighbor) = (host.as_project(), host.new_project().await);
    let path = format!("{}/test", given::subscribe(&project).await);
    let neighbors = format!("{}/test", given::subscribe(&neighbor).await);
    project.post(&path, &body).await.expect(201);
    let assert_no_room = async |project: &Client| {
        let refused = project.post(&path, &body).await;
        assert_refused("Test events", &refused, 507, "Event_QuotaExceeded");
        given::assert_contains(&refused["error"]["suggested_fix"], "`limits.records_mib`");
    };
    assert_no_room(&project).await;
    neighbor.post(&neighbors, &body).await.expect(201);
    project.post(&path, &json!({})).await.expect(201);
    let listed = project.get(&path.replace("/test", "/deliveries")).await;
    assert_eq!(listed.expect(200)["total_items"], 2);
    let (_host, project) = restarted(host).await;
    assert_no_room(&project).await;
}

/// Uploads `bytes` bytes of value `name`. Returns the response to the upload request, and the final
/// status.
async fn upload(project: &Client, slug: &str, name: u8, bytes: usize) -> (Answer, u16) {
    let bytes = vec![name; bytes];
    let asked = files::ask(project, slug, &bytes, json!({})).await;
    if asked.status != 200 {
        let status = asked.status;
        return (asked, status);
    }
    let put = project
        .exchange(Method::PUT, files::url(&asked), &[], bytes)
        .await;
    if put.status != 200 {
        assert!(put.text().contains("File_QuotaExceeded"), "{put:?}");
    }
    (asked, put.status)
}

#[tokio::test]
async fn files_past_a_projects_quota_are_refused() {
    let host = Setup::new().with("files.quota_mib", "1").start().await;
    let slug = files::copier(&host).await;
    let (project, neighbor) = (host.as_project(), host.new_project().await);
    let (asked, status) = upload(&project, &slug, 1, 600 << 10).await;
    assert_eq!(status, 200);
    for (client, name, expected) in [
        // The same bytes count once, and a quota is of one project.
        (&project, 1, 200),
        (&project, 2, 507),
        (&neighbor, 2, 200),
    ] {
        assert_eq!(upload(client, &slug, name, 600 << 10).await.1, expected);
    }
    let file = json!({ "name": "n", "mimetype": "text/plain", "s3key": asked["key"] });
    let copied = project
        .execute(&guest::tool(&slug), json!({ "file": file }))
        .await
        .expect(200);
    assert_eq!(copied.failure(), "file_not_kept", "{copied:#?}");
    let reason = "the quota of 1 MiB for all files of the project";
    assert!(
        copied["error"].as_str().unwrap().contains(reason),
        "{copied:#?}"
    );
    let (_, last) = upload(&project, &slug, 3, 424 << 10).await;
    assert_eq!(last, 200, "up to the last byte");
    let key = host.project_key.clone();
    let host = host.kill().start().await;
    let project = host.with_key(&key);
    let (refused, _) = upload(&project, &slug, 4, 1).await;
    let row = "Size of all files of one project";
    assert_refused(row, &refused, 507, "File_QuotaExceeded");
}

#[tokio::test]
async fn files_made_at_once_all_count() {
    let host = Setup::new().with("files.quota_mib", "1").start().await;
    let (slug, project) = (files::copier(&host).await, host.as_project());
    let (asked, _) = upload(&project, &slug, 1, 100 << 10).await;
    let file = json!({ "name": "n", "mimetype": "text/plain", "s3key": asked["key"] });
    let tool = guest::tool(&slug);
    let ran = join_all((0..16).map(|_| project.execute(&tool, json!({ "file": file })))).await;
    let kept = ran.iter().filter(|ran| ran["successful"] == true).count();
    assert_eq!(
        kept, 9,
        "100 KiB each, in 1 MiB with the file that they copy"
    );
}

#[tokio::test]
async fn one_project_cannot_hold_the_whole_model() {
    let tag = harness::unique(8);
    let host = Setup::new()
        .with(
            "llm.base_url",
            format!("{}/hang/{tag}", Host::application().origin),
        )
        .with("llm.model", "small-one")
        .with("llm.timeout_s", "2")
        .with("sandbox.live", "192")
        .start()
        .await;
    let path = format!("/tools/execute/{}", given::echo(&host).await);
    let (greedy, neighbor) = (host.as_project(), host.new_project().await);
    let text = json!({ "text": "go" });
    let say = async |project: &Client| project.post(&path, &text).await;
    let greedy_ones = join_all((0..6).map(|_| say(&greedy)));
    let asked = Host::application().wait_for_requests(&tag, 3);
    let (all, neighbors) = tokio::join!(greedy_ones, async {
        asked.await;
        say(&neighbor).await
    });
    let row = "a neighbor's sentence, which the model never answers";
    assert_refused(row, &neighbors, 502, "ActionExecute_ModelFailed");
    let busy: Vec<_> = all.iter().filter(|answer| answer.status != 502).collect();
    assert_eq!(busy.len(), 3);
    for answer in busy {
        let row = "Concurrent prompts of one project";
        assert_refused(row, answer, 429, "Server_ProjectBusy");
    }
    assert_eq!(say(&greedy).await.status, 502, "places are given back");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_ends_nothing() {
    for nowhere in ["2>/dev/full", "2> >(:)"] {
        let shell = |setup: Setup| {
            let script = format!("exec \"$0\" \"$@\" {nowhere}");
            setup.run_by(["bash", "-c", &script].map(str::to_owned).to_vec())
        };
        let host = shell(Setup::new().with("log", "debug")).start().await;
        for _ in 0..3 {
            let session = host.as_project().get("/auth/session/info").await;
            session.expect(200);
        }
        host.terminate().await;
        // The last log line cannot be written either; the exit code reports the failure.
        let refused = shell(Setup::new().with("listen", "nowhere"))
            .try_start()
            .await
            .unwrap_err();
        let end = (refused.code, refused.signal);
        assert_eq!(end, (Some(1), None), "{refused:?}");
    }
}

#[tokio::test]
async fn a_data_folder_open_to_others_is_refused() {
    let (setup, _) = Setup::new().start().await.terminate().await;
    let mode = |mode| fs::set_permissions(setup.data(), fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(
        fs::metadata(setup.data()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for open in [0o710, 0o702] {
        mode(open);
        let refused = setup.clone().try_start().await.unwrap_err();
        assert_eq!(refused.code, Some(78), "{refused:?}");
        assert!(refused.output.contains("chmod 700"), "{refused:?}");
        let doctor = setup.command(&["doctor"]);
        assert!(
            doctor.code == Some(1) && doctor.stdout.contains("chmod 700"),
            "{doctor:?}"
        );
    }
    mode(0o700);
    setup.start().await;
}

#[tokio::test]
async fn short_secrets_are_masked_whole() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    for (secret, shown) in [("1234567", "REDACTED"), ("12345678", "1234...")] {
        let made = given::made_account(&project, &config, secret, secret).await;
        let read = project.account(made["id"].as_str().unwrap()).await;
        assert_eq!(read["state"]["val"]["api_key"], Value::from(shown));
    }
}
