//! Memory and secrets of one run, and runs whose caller has disconnected.

use futures::future::join_all;
use harness::{
    Answer, Client, Guest, Host, guest, guest::imports, host::Setup, unique, wait_until,
};
use serde_json::{Value, json};

use crate::{
    budget::{assert_refused, start},
    files::uploaded,
    given,
};

const ACCOUNT_KEY: &str = harness::marked!("k-");

/// Runs a tool with secrets sent along with the call.
async fn with_params(project: &Client, tool: &str, url: &str, params: Value) -> Answer {
    let body =
        json!({ "version": "latest", "arguments": { "url": url }, "custom_auth_params": params });
    project.post(&format!("/tools/execute/{tool}"), &body).await
}

/// Returns a tool on the shared server that fetches `api.example.com`.
async fn fetch() -> String {
    guest::tool(given::keyed().await)
}

/// Publishes a guest with long time limits that may reach `api.example.com` without an account, and
/// returns its tool.
async fn publish(host: &Host, guest: &Guest<'_>) -> String {
    let mut manifest = guest::manifest(&given::slug());
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["limits"] = json!({ "cpu_ms": 60_000, "wall_ms": 300_000 });
    host.publish(guest.component(), &manifest).await;
    guest::tool(manifest["slug"].as_str().unwrap())
}

/// Returns the kernel's status of the child processes of a process.
fn statuses_of_children(pid: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let statuses =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    statuses
        .filter(|status| status.contains(&format!("\nPPid:\t{pid}\n")))
        .collect()
}

/// Returns the largest growth of the server's resident memory during an attack, in KiB.
async fn peak_of<T>(host: &Host, attack: impl Future<Output = T>) -> (T, u64) {
    let before = host.footprint().peak_kib;
    let done = attack.await;
    // The kernel's count of a process is not exact, and may be lower later.
    (done, host.footprint().peak_kib.saturating_sub(before))
}

#[tokio::test]
async fn call_secrets_are_counted_at_any_depth() {
    let project = Host::shared().await.new_project().await;
    let tool = fetch().await;
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let texts = |count: usize| -> Vec<String> {
        let numbers = 0..count;
        numbers.map(|number| format!("secret-{number}")).collect()
    };
    let header = json!([{ "name": "x-own", "in": "header", "value": unique(4 << 10) }]);
    let nested = json!([{ "b": texts(40) }, [[texts(25)]]]);
    let [largest, larger] = ["", "x"].map(|end| unique(4 << 10) + end);
    for (parameters, value, fine) in [
        (json!([]), json!(texts(64)), true),
        (json!([]), json!(texts(65)), false),
        (json!([]), nested, false),
        (header.clone(), json!(largest), true),
        (header, json!(larger), false),
    ] {
        let params = json!({ "parameters": parameters, "body": { "a": value } });
        let answer = with_params(&project, &tool, &url, params).await;
        if fine {
            answer.data();
            continue;
        }
        assert_refused("secrets", &answer, 400, "Request_Invalid");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("custom_auth_params") && message.contains("64 secrets"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn stored_accounts_bring_no_more_secrets_than_calls() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let most = given::made_account(&project, &config, "amy", &"k".repeat(16 << 10)).await;
    let id = most["id"].as_str().unwrap();
    let key = "k".repeat((16 << 10) + 1);
    let larger = given::account(&config, "bob", &key);
    let refused = project.post("/connected_accounts", &larger).await;
    let refused = refused.expect(400);
    assert!(refused.text.contains("16384 bytes"), "{refused:#?}");
    let patch = json!({ "connection": { "state": { "authScheme": "API_KEY", "val": { "api_key": key } } } });
    let path = format!("/connected_accounts/{id}");
    project.patch(&path, &patch).await.expect(400);
}

#[tokio::test]
async fn answers_costly_to_search_are_withheld() {
    let project = Host::shared().await.new_project().await;
    // Every position of the response almost matches the secret.
    let params = json!({ "parameters": [{ "name": "x-own", "in": "header", "value": "x".repeat(4 << 10) + "y" }] });
    let url = format!("https://api.example.com/big/{}/{}", unique(8), 200 << 10);
    let answer = with_params(&project, &fetch().await, &url, params).await;
    assert_eq!(answer.failure(), "protocol", "{}", start(&answer));
    assert!(answer.text.contains("withheld"), "{}", answer.text);
}

#[tokio::test]
async fn answers_in_unknown_encodings_are_withheld() {
    let project = Host::shared().await.new_project().await;
    let secret = harness::secret();
    let params = json!({ "parameters": [{ "name": "x-own", "in": "header", "value": secret }] });
    let url = format!("https://api.example.com/encoded/{}", unique(8));
    let answer = with_params(&project, &fetch().await, &url, params).await;
    assert_eq!(answer.failure(), "protocol", "{answer:#?}");
    assert!(answer.text.contains("content encoding"), "{answer:#?}");
}

#[tokio::test]
async fn media_types_of_answers_show_no_secret() {
    let host = Host::shared().await;
    let imports = format!(
        "{}{}",
        imports::SEND,
        r#"(import "toolhost:toolkit/blob@1.0.0" "stat" (func $stat (param i32 i32 i32)))"#
    );
    let url = format!("https://api.example.com/typed/{}", unique(8));
    let items = format!(r#"(data (i32.const 2048) "GET") (data (i32.const 2064) "{url}")"#);
    // The response is saved to a file, and the guest reports its media type as the message of a
    // failure.
    let execute = format!(
        "(call $send (i32.const 2048) (i32.const 3) (i32.const 2064) (i32.const {}) (i32.const 0) (i32.const 0)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1)
            (i32.const 1280))
        (if (i32.load8_u (i32.const 1280)) (then (unreachable)))
        (call $stat (i32.load (i32.const 1308)) (i32.load (i32.const 1312)) (i32.const 1344))
        (if (i32.load8_u (i32.const 1344)) (then (unreachable)))
        (call $fail (i32.const 2048) (i32.const 3) (i32.load (i32.const 1368)) (i32.load (i32.const 1372)))",
        url.len()
    );
    let guest = Guest {
        imports: &imports,
        items: &items,
        execute: &execute,
        ..Guest::default()
    };
    let manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    host.publish(guest.component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let project = host.new_project().await;
    let key = json!({ "api_key": ACCOUNT_KEY });
    project.connect(slug, "API_KEY", "default", key).await;
    let told = project.execute(&guest::tool(slug), json!({})).await;
    assert_eq!(told["data"]["message"], "Bearer/[redacted]", "{told:#?}");
}

#[tokio::test]
async fn disconnected_caller_frees_its_concurrency_slot() {
    let setup = given::with_application().with("sandbox.live", "1");
    let host = setup.start().await;
    let spin = Guest {
        execute: "(loop $l (br $l)) unreachable",
        ..Guest::default()
    };
    let spin = publish(&host, &spin).await;
    let fetch = publish(&host, &Guest::fetch()).await;
    let echo = given::echo(&host).await;
    let (attacker, neighbor) = (host.new_project().await, host.new_project().await);
    let tag = unique(8);
    let waits = json!({ "url": format!("https://api.example.com/hang/{tag}") });
    let burns = async || {
        let begun = host.ticks();
        wait_until("the guest computes", async || host.ticks() > begun + 30).await;
    };
    tokio::select! {
        ended = attacker.execute(&spin, json!({})) => panic!("it goes on for a minute: {ended:#?}"),
        () = burns() => {}
    }
    neighbor.execute(&echo, json!({ "after": 1 })).await.data();
    tokio::select! {
        ended = attacker.execute(&fetch, waits) => panic!("the provider never answers: {ended:#?}"),
        () = Host::application().wait_for_requests(&tag, 1) => {}
    }
    neighbor.execute(&echo, json!({ "after": 2 })).await.data();
    Host::application().wait_for_abandoned(&tag, 1).await;
}

#[tokio::test]
async fn parts_of_one_file_share_its_bytes() {
    let host = Setup::new().start().await;
    let imports = format!(
        "{}{}{}",
        imports::SEND,
        r#"(import "toolhost:toolkit/blob@1.0.0" "create" (func $create (param i32 i32 i32 i32 i32)))"#,
        r#"(import "toolhost:toolkit/blob@1.0.0" "append" (func $append (param i32 i32 i32 i32 i32)))"#
    );
    // A file of 4 MiB, and a request with a hundred parts of 44 bytes each, all of which name it.
    let guest = Guest {
        imports: &imports,
        memory: r#"(memory (export "memory") 80)"#,
        items: r#"(data (i32.const 2048) "POST") (data (i32.const 2064) "https://api.example.com/parts")"#,
        execute: "(call $create (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 4) (i32.const 1280))
            (call $append (i32.load (i32.const 1284)) (i32.load (i32.const 1288))
                (i32.const 131072) (i32.const 4194304) (i32.const 1296))
            (if (i32.load8_u (i32.const 1296)) (then (unreachable)))
            (local.set $i (i32.const 100))
            (local.set $j (i32.const 4400000))
            (loop $next
                (i32.store8 offset=32 (local.get $j) (i32.const 1))
                (i32.store offset=36 (local.get $j) (i32.load (i32.const 1284)))
                (i32.store offset=40 (local.get $j) (i32.load (i32.const 1288)))
                (local.set $j (i32.add (local.get $j) (i32.const 44)))
                (local.set $i (i32.sub (local.get $i) (i32.const 1)))
                (br_if $next (local.get $i)))
            (call $send (i32.const 2048) (i32.const 4) (i32.const 2064) (i32.const 29) (i32.const 0) (i32.const 0)
                (i32.const 2) (i32.const 4400000) (i32.const 100) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                (i32.const 0) (i32.const 1280))
            (if (i32.eqz (i32.load8_u (i32.const 1280))) (then (unreachable)))
            (call $fail (i32.load (i32.const 1284)) (i32.load (i32.const 1288))
                (i32.load (i32.const 1292)) (i32.load (i32.const 1296)))",
        ..Guest::default()
    };
    let tool = publish(&host, &guest).await;
    let project = host.as_project();
    let (answer, grown) = peak_of(&host, project.execute(&tool, json!({}))).await;
    assert_eq!(answer.failure(), "too_large", "{answer:#?}");
    assert!(
        grown < 100 << 10,
        "{grown} KiB for a hundred parts of one file of 4 MiB"
    );
}

#[tokio::test]
async fn request_list_memory_is_bounded() {
    let host = Setup::new().start().await;
    // Each request is 56 zero bytes.
    let guest = Guest {
        imports: r#"(import "toolhost:toolkit/http@1.0.0" "send-all" (func $all (param i32 i32 i32)))"#,
        memory: r#"(memory (export "memory") 50)"#,
        execute: "(global.set $top (i32.const 2931072))
            (call $all (i32.const 131072) (i32.const 50000) (i32.const 1280))
            (if (i32.ne (i32.load (i32.const 1284)) (i32.const 50000)) (then (unreachable)))
            (call $ok (local.get $args) (local.get $args_len))",
        ..Guest::default()
    };
    let tool = publish(&host, &guest).await;
    let project = host.as_project();
    let (answer, grown) = peak_of(&host, project.execute(&tool, json!({}))).await;
    answer.data();
    assert!(
        grown < 150 << 10,
        "{grown} KiB for a list of 50,000 requests"
    );
}

#[tokio::test]
async fn response_bytes_count_toward_shared_run_memory() {
    let setup = given::with_application().with("sandbox.memory_mib", "64");
    let host = setup.start().await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    let project = host.new_project().await;
    let account = project.connect_with_key(&slug, "default").await;
    let ask = |mebibytes: usize| {
        let endpoint = format!("/big/{}/{}", unique(8), mebibytes << 20);
        let body =
            json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
        let project = project.clone();
        async move { project.post("/tools/execute/proxy", &body).await }
    };
    let (answers, grown) = peak_of(&host, join_all([ask(90), ask(90), ask(90)])).await;
    for answer in answers {
        answer.assert_envelope();
        assert_eq!(answer.status, 502, "{answer:#?}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("memory"), "{answer:#?}");
    }
    assert!(
        grown < 160 << 10,
        "{grown} KiB for answers where all runs together have 64 MiB"
    );
    // The memory of the requests has been released.
    ask(20).await.expect(200);
}

#[tokio::test]
async fn files_of_calls_count_toward_shared_run_memory() {
    let setup = given::with_application().with("sandbox.memory_mib", "64");
    let host = setup.start().await;
    let mut manifest = guest::manifest(&given::slug());
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["limits"] = json!({ "wall_ms": 300_000 });
    let file = json!({ "type": "object", "file_uploadable": true });
    manifest["tools"][0]["input"] = json!({ "type": "object", "properties": { "file": file } });
    host.publish(Guest::fetch().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let (project, tool) = (host.new_project().await, guest::tool(slug));
    let key = uploaded(&project, slug, &vec![7; 30 << 20]).await;
    let run = |path: String| {
        // The guest fetches the first text of its arguments.
        let address = format!("https://api.example.com/{path}");
        let file = json!({ "name": "n", "mimetype": "text/plain", "s3key": key });
        let arguments = json!({ "address": address, "file": file });
        let (project, tool) = (project.clone(), tool.clone());
        async move { project.execute(&tool, arguments).await }
    };
    let tag = unique(8);
    let holding = run(format!("hang/{tag}"));
    let attack = async {
        Host::application().wait_for_requests(&tag, 1).await;
        let further = (0..16).map(|_| run(format!("echo/{}", unique(8))));
        peak_of(&host, join_all(further)).await
    };
    let (answers, grown) = tokio::select! {
        ended = holding => panic!("the provider never answers: {ended:#?}"),
        refused = attack => refused,
    };
    // The first call holds 30 of the 64 MiB, and a further one needs as much in addition to its own
    // memory.
    for answer in answers {
        assert_refused("files of executions", &answer, 429, "Server_ProjectBusy");
    }
    assert!(
        grown < 100 << 10,
        "{grown} KiB for files where all runs together have 64 MiB"
    );
    // The caller of the first call has disconnected. A file fits only if all memory is released.
    wait_until("a call gets its file", async || {
        run(format!("echo/{}", unique(8))).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn compiler_runs_without_sockets_and_files() {
    let host = Setup::new().start().await;
    let manifest = guest::manifest(&given::slug());
    let functions: String = (0..6_000)
        .map(|n| format!("(func (result i32) (i32.const {n}) (i32.const 3) (i32.mul))"))
        .collect();
    let large = Guest {
        items: &functions,
        ..Guest::default()
    };
    let publishing = host.publish(large.component(), &manifest);
    let restricted = async || {
        statuses_of_children(host.pid())
            .iter()
            .any(|status| status.contains("\nSeccomp:\t2\n"))
    };
    futures::join!(
        publishing,
        wait_until("the compiler is restricted while it works", restricted)
    );
}
