//! Python scripts in the workbench of a session: what they return and leave, what they can reach, and
//! what they cannot.

use harness::{
    BucketService, Client, Guest, Host, Postgres, guest, host::Setup, unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given, mcp_endpoints,
    mounts::download,
    tool_router_execution::{execute, mail, with_mail},
    tool_router_sessions::{SESSION_PATH, amys_session, create, execute_meta, with_keyed},
};

const WORKBENCH_TOOL: &str = "SERVICE_REMOTE_WORKBENCH";

/// Runs a script and returns the body of the response.
async fn run(project: &Client, session: &str, code: &str) -> Value {
    let arguments = json!({ "code_to_execute": code, "thought": "to see it run" });
    let ran = execute_meta(project, session, WORKBENCH_TOOL, arguments).await;
    ran.expect(200).json
}

/// Runs a script that must succeed and returns the value of its last expression.
async fn result(project: &Client, session: &str, code: &str) -> String {
    let ran = run(project, session, code).await;
    assert_eq!(ran["result_type"], "completed", "{ran:#}");
    ran["data"]["results"].as_str().unwrap().to_owned()
}

/// Returns the paths of a session's files.
async fn files(project: &Client, session: &str) -> Vec<String> {
    let path = format!("{SESSION_PATH}/{session}/mounts/files/items");
    let listed = project.get(&path).await.expect(200);
    let items = listed["items"].as_array().unwrap().iter();
    let paths = items.map(|item| item["mount_relative_path"].as_str().unwrap().to_owned());
    paths.collect()
}

/// Returns settings for a server that loads the interpreter that the shared server has compiled.
pub(crate) async fn with_interpreter() -> Setup {
    let (host, project) = Host::shared_with_project().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    // The first script of a server waits until the interpreter is compiled.
    result(&project, &session, "1").await;
    Setup::installed().await.with_compiled_of(host)
}

/// Starts a server that reaches the fake provider, and connects an account of `amy` in a new project.
/// Returns the server, the project and the toolkit.
async fn with_fetcher(setup: Setup) -> (Host, Client, String) {
    let setup = setup.with_application(&["api.example.com"], Host::application());
    let host = setup.start().await;
    let (project, toolkit) = (host.new_project().await, given::slug());
    given::publish_with_key(&host, &Guest::fetch(), &toolkit).await;
    project.connect_with_key(&toolkit, "amy").await;
    (host, project, toolkit)
}

/// Returns true if a script of a session may run a tool without arguments.
pub(crate) async fn permits(project: &Client, session: &str, tool: &str) -> bool {
    let code = format!("run_tool('{tool}')");
    let ran = run(project, session, &code).await;
    let error = ran["error"].as_str().unwrap_or_default();
    assert!(
        error.is_empty() || error.contains("does not permit"),
        "{ran:#}"
    );
    error.is_empty()
}

#[tokio::test]
async fn script_begins_no_tool_after_its_session_is_limited() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    given::publish_with_key(host, &Guest::fetch(), &slug).await;
    project.connect_with_key(&slug, "amy").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    // The first script of a server waits until the interpreter is compiled.
    result(&project, &session, "1").await;
    let [running, next] = [unique(8), unique(8)];
    let tool = guest::tool(&slug);
    let fetch =
        |path: String| format!("run_tool('{tool}', {{'url': 'https://api.example.com{path}'}})");
    let first = fetch(format!("/slow/{running}/5000"));
    let second = fetch(format!("/echo/{next}"));
    let code = format!(
        "{first}\ntry:\n    {second}\n    told = ''\nexcept ToolError as cause:\n    told = str(cause)\ntold"
    );
    let limited = async {
        let asked = || given::seen(&running);
        wait_until("the first tool runs", async || asked() == 1).await;
        let none = json!({ "toolkits": { "enable": [] } });
        let path = format!("{SESSION_PATH}/{session}");
        project.patch(&path, &none).await.expect(200);
    };
    let (told, ()) = tokio::join!(result(&project, &session, &code), limited);
    assert!(told.contains("does not permit"), "{told}");
    assert!(Host::application().seen(&next).is_empty());
}

#[tokio::test]
async fn script_returns_result_output_and_exit_code() {
    let (project, session) = amys_session().await;
    let code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsum(range(10))";
    let ran = run(&project, &session, code).await;
    let data = &ran["data"];
    assert_eq!(ran["result_type"], "completed");
    assert_eq!(ran["error"], Value::Null);
    assert_eq!(data["results"], "45");
    assert_eq!(data["stdout"], "out\n");
    assert_eq!(data["stderr"], "err\n");
    assert_eq!(data["exit_code"], 0);
    assert!(session.ends_with(data["sandbox_id_suffix"].as_str().unwrap()));
    assert!(data["session"]["id"].is_string());

    let failed = run(&project, &session, "print('before')\n1 / 0").await;
    assert_eq!(failed["result_type"], "failed");
    assert_eq!(failed["error"], "ZeroDivisionError: division by zero");
    let data = &failed["data"];
    assert_eq!(data["stdout"], "before\n");
    assert_eq!(data["exit_code"], 1);
    assert!(data["stderr"].as_str().unwrap().contains("line 2"));
    let ended = run(&project, &session, "import sys; sys.exit(3)").await;
    assert_eq!(ended["error"], "the script ended with exit code 3");

    let execute = json!({ "tool_slug": "SERVICE_REMOTE_WORKBENCH", "arguments": { "code_to_execute": "6 * 7" } });
    let path = format!("{SESSION_PATH}/{session}/execute");
    let executed = project.post(&path, &execute).await.expect(200);
    assert_eq!(executed["data"]["results"], "42");
    let log = executed["log_id"].as_str().unwrap();
    let log = project.get(&format!("/logs/tool_execution/{log}")).await;
    assert_eq!(log.expect(200)["context"]["session_id"], *session);
}

#[tokio::test]
async fn variables_last_in_their_session_alone() {
    let (project, session) = amys_session().await;
    let code = "
import statistics
def mean(values): return statistics.mean(values)
values = [1, 2, 6]
pending = (x for x in values)
";
    let ran = run(&project, &session, code).await;
    assert_eq!(ran["data"]["lost_variables"], json!(["pending"]));
    assert_eq!(result(&project, &session, "mean(values)").await, "3");
    run(
        &project,
        &session,
        "values.append(7)\nraise ValueError('kept all the same')",
    )
    .await;
    assert_eq!(result(&project, &session, "values[-1]").await, "7");
    let other = create(&project, json!({ "user_id": "amy" })).await;
    let unknown = run(&project, &other, "values").await;
    assert_eq!(unknown["error"], "NameError: name 'values' is not defined");
}

#[tokio::test]
async fn script_runs_without_variables_that_end_it() {
    let (project, session) = amys_session().await;
    let code = "
class Ending:
    def __setstate__(self, state):
        import os
        os._exit(0)
ending = Ending()
ending.a = 1
other = 2
";
    result(&project, &session, code).await;
    let ran = run(&project, &session, "x = 'other' in globals()\nx").await;
    let data = &ran["data"];
    assert_eq!(data["results"], "False", "{ran:#}");
    assert_eq!(data["lost_variables"], json!(["Ending", "ending", "other"]));
    given::assert_contains(&data["stderr"], "cannot be read and are dropped");
    assert_eq!(result(&project, &session, "x").await, "False");
    run(&project, &session, "import os; os._exit(0)").await;
    let ran = run(&project, &session, "'x' in globals()").await;
    assert_eq!(ran["data"]["results"], "False");
    assert_eq!(ran["data"]["stderr"], "");
}

#[tokio::test]
async fn files_last_and_are_the_sessions_mount() {
    let (project, session) = amys_session().await;
    let code = "
import os, sqlite3
os.makedirs('a/b')
open('a/b/c.txt', 'w').write('hello')
open('gone', 'w').write('x')
with sqlite3.connect('data.db') as db: db.execute('create table t as select 7 as x')
";
    run(&project, &session, code).await;
    let code = "
import os, sqlite3
os.remove('gone')
os.rename('a/b/c.txt', 'moved.txt')
[sqlite3.connect('data.db').execute('select x from t').fetchone()[0], open('moved.txt').read()]
";
    assert_eq!(result(&project, &session, code).await, "[7, 'hello']");
    assert_eq!(files(&project, &session).await, ["data.db", "moved.txt"]);
    let other = create(&project, json!({ "user_id": "amy" })).await;
    let code = "import os; os.listdir('/mnt/files')";
    assert_eq!(result(&project, &other, code).await, "[]");
    let downloaded = download(&project, &session, "moved.txt").await;
    assert_eq!(downloaded.bytes, b"hello");
}

#[tokio::test]
async fn long_output_becomes_a_file_of_the_session() {
    let (project, session) = amys_session().await;
    let ran = run(
        &project,
        &session,
        "print('line\\n' * 20_000)\n'x' * 40_000",
    )
    .await;
    let data = &ran["data"];
    assert_eq!(data["stdout"].as_str().unwrap().len(), 32 << 10);
    assert_eq!(data["results"].as_str().unwrap().len(), 32 << 10);
    assert_eq!(data["stderr_file_path"], Value::Null);
    for (path, length) in [
        ("stdout_file_path", "100001"),
        ("results_file_path", "40000"),
    ] {
        let path = data[path].as_str().unwrap();
        let code = format!("len(open('{path}').read())");
        assert_eq!(result(&project, &session, &code).await, length);
    }
    assert_eq!(files(&project, &session).await.len(), 2);
}

/// The tools of a script have run, so it has a result even if its files are refused.
#[tokio::test]
async fn refused_files_are_reported_with_the_result() {
    let (project, session) = amys_session().await;
    run(&project, &session, "kept = 1").await;
    let ran = run(
        &project,
        &session,
        "kept = 2\nopen('a\\nb', 'w').close()\nprint('x' * 40_000)\n'ran'",
    )
    .await;
    assert_eq!(ran["result_type"], "failed");
    assert_eq!(ran["data"]["results"], "ran");
    let error = ran["error"].as_str().unwrap();
    assert!(
        error.contains("could not be stored") && error.contains("control characters"),
        "{error}"
    );
    // The whole output is one of the refused files.
    assert_eq!(ran["data"]["stdout_file_path"], Value::Null);
    assert_eq!(result(&project, &session, "kept").await, "1");
}

#[tokio::test]
async fn scripts_of_a_session_run_in_turn() {
    let (project, session) = amys_session().await;
    run(&project, &session, "n = 0").await;
    let code = "n += 1; n";
    let several = (0..5).map(|_| result(&project, &session, code));
    let mut seen = futures::future::join_all(several).await;
    seen.sort();
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_on_two_servers_run_in_turn() {
    let bucket = BucketService::start();
    let setup = Setup::embedded().on(Postgres::shared().database(None));
    let first = setup.in_bucket(&bucket).start().await;
    let project = first.new_project().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    // The first script waits until the interpreter is compiled, and the second server loads it.
    run(&project, &session, "n = 0").await;
    let second = first.setup().another().with_compiled_of(&first);
    let second = second.start().await;
    let elsewhere = second.with_key(project.key());
    let other = create(&project, json!({ "user_id": "amy" })).await;
    result(&elsewhere, &other, "1").await;
    let code = "n += 1; open('log', 'a').write('x'); n";
    let clients = [&project, &elsewhere, &project, &elsewhere];
    let several = clients.map(|client| result(client, &session, code));
    let mut seen = futures::future::join_all(several).await;
    seen.sort();
    assert_eq!(seen, ["1", "2", "3", "4"]);
    let read = result(&elsewhere, &session, "open('log').read()").await;
    assert_eq!(read, "xxxx");
}

#[tokio::test]
async fn scripts_run_tools_in_the_scope() {
    let (project, toolkit) = with_mail().await;
    let slug = |name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let (list, send) = (slug("LIST"), slug("SEND"));
    for (config, permitted) in [
        (json!({}), [true, true]),
        (
            json!({ "toolkits": { "disable": [toolkit] } }),
            [false, false],
        ),
        (
            json!({ "tools": { &toolkit: { "enable": [list] } } }),
            [true, false],
        ),
        (
            json!({ "tags": { "disable": ["destructiveHint"] } }),
            [true, false],
        ),
        (json!({ "tags": ["destructiveHint"] }), [false, true]),
    ] {
        let mut body = config.clone();
        body["user_id"] = json!("amy");
        let session = create(&project, body).await;
        for (tool, permitted) in [&list, &send].into_iter().zip(permitted) {
            assert_eq!(
                permits(&project, &session, tool).await,
                permitted,
                "{tool}: {config}"
            );
        }
    }
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let code = format!(
        "given = {{'word': 'quote \" and ]}}; exit(9)', '__class__': None}}; run_tool('{list}', given) == given"
    );
    assert_eq!(result(&project, &session, &code).await, "True");
    for refused in ["SERVICE_REMOTE_WORKBENCH", "NONESUCH_RUN"] {
        let ran = run(&project, &session, &format!("run_tool('{refused}')")).await;
        let error = ran["error"].as_str().unwrap();
        assert!(error.starts_with("workbench.ToolError"), "{error}");
    }
}

#[tokio::test]
async fn tools_of_scripts_use_accounts_and_leave_records() {
    let (project, toolkit) = with_keyed().await;
    let tool = guest::tool(&toolkit);
    project.connect_with_key(&toolkit, "bob").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let code = format!("run_tool('{tool}', {{'word': 'hi'}})['word']");
    let missing = run(&project, &session, &code).await;
    given::assert_contains(&missing["error"], "no active connection");
    let account = project.connect_with_key(&toolkit, "amy").await;
    assert_eq!(result(&project, &session, &code).await, "hi");
    let filter = json!({ "field": "session_id", "operator": "==", "value": session });
    let body = json!({ "filters": [filter] });
    let found = project.post("/logs/tool_execution", &body).await;
    let found = found.expect(200);
    let logs = found["logs"].as_array().unwrap().iter();
    let of_tool: Vec<_> = logs
        .filter(|log| log["metadata"]["tool_slug"] == *tool)
        .collect();
    assert_eq!(of_tool.len(), 1);
    assert_eq!(of_tool[0]["metadata"]["connected_account_id"], *account);
}

/// The client of the tests fails on every response that has a secret.
#[tokio::test]
async fn scripts_send_proxy_requests_without_credentials() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    project.connect_with_key(toolkit, "amy").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let tag = unique(6);
    let code = format!("
answer = proxy('{toolkit}', 'post', '/echo/{tag}', body={{'a': 1}}, query={{'page': 2}}, headers={{'x-own': 'b'}})
[answer['status'], answer['headers']['content-type'].split(';')[0]]
");
    assert_eq!(
        result(&project, &session, &code).await,
        "[200, 'text/plain']"
    );
    let seen = &Host::application().seen(&tag)[0];
    assert_eq!(seen.method, "POST");
    assert_eq!(seen.query, "page=2");
    assert_eq!(seen.body, br#"{"a": 1}"#);
    assert_eq!(seen.header("x-own"), "b");
    assert!(seen.header("authorization").starts_with("Bearer "));
    let code = format!("str(proxy('{toolkit}', 'GET', '/leak/{}'))", unique(6));
    result(&project, &session, &code).await;
    let elsewhere = format!("proxy('{toolkit}', 'GET', 'https://files.example.net/echo/x')");
    let refused = run(&project, &session, &elsewhere).await;
    given::assert_contains(&refused["error"], "is not a URL of the provider");
    for config in [
        json!({ "user_id": "amy", "toolkits": { "disable": [toolkit] } }),
        json!({ "user_id": "amy", "tags": ["readOnlyHint"] }),
        json!({ "user_id": "amy", "proxy_execute": { "enable": false } }),
    ] {
        let session = create(&project, config.clone()).await;
        let refused = run(&project, &session, &code).await;
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains("does not permit"), "{config}: {error}");
    }
}

#[tokio::test]
async fn scripts_send_proxy_requests_only_with_permission() {
    let (host, project) = Host::shared_with_project().await;
    let id = project.project_id().await;
    let keys = format!("/org/owner/project/{id}/api_keys");
    let toolkit = given::keyed().await;
    project.connect_with_key(toolkit, "amy").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let tag = unique(6);
    let code = format!("proxy('{toolkit}', 'GET', '/echo/{tag}')['status']");
    let steps = json!([{ "name": "one", "script": code }]);
    let recipe = json!({ "name": "Send", "description": "Sends a request.", "steps": steps });
    let store = json!({ "tool_slug": "SERVICE_UPSERT_RECIPE", "arguments": recipe });
    execute(&project, &session, store).await.expect(200);
    let script = json!({ "code_to_execute": code });
    let refusal = "no write permission for proxy_execute";
    for (areas, permitted) in [
        (&["session_tool_execution"][..], false),
        (&["tool_execution", "proxy_execute"], true),
    ] {
        let areas = areas.iter();
        let permissions = areas.map(|area| json!({ "preset": area, "access": "write" }));
        let body = json!({ "name": "scoped", "permissions": permissions.collect::<Vec<_>>() });
        let made = host.as_org().post(&keys, &body).await.expect(201);
        let client = host.with_key(made["key"].as_str().unwrap());
        for (tool, arguments) in [
            ("SERVICE_REMOTE_WORKBENCH", script.clone()),
            ("RECIPE_SEND", json!({})),
        ] {
            let call = json!({ "tool_slug": tool, "arguments": arguments });
            let ran = execute(&client, &session, call).await.expect(200);
            let error = ran["error"].as_str().unwrap_or_default();
            assert_eq!(error.is_empty(), permitted, "{ran:#?}");
            assert_eq!(error.contains(refusal), !permitted, "{ran:#?}");
        }
        let url = format!("{}/tool_router/{session}/mcp", host.url);
        let params = json!({ "name": "SERVICE_REMOTE_WORKBENCH", "arguments": script });
        let headers = [("x-api-key", client.key())];
        let called = mcp_endpoints::request(&client, &url, "tools/call", params, &headers).await;
        let called = mcp_endpoints::result(&called);
        let is_refused = called.to_string().contains(refusal);
        assert_eq!(called["isError"], !permitted, "{called:#}");
        assert_eq!(is_refused, !permitted, "{called:#}");
    }
    assert_eq!(given::seen(&tag), 3);
}

#[tokio::test]
async fn switches_of_the_session_bind_scripts() {
    let (host, project) = Host::shared_with_project().await;
    let tool = format!("{}_LIST", mail(host).await.to_uppercase());
    let session = json!({
        "user_id": "amy", "search": { "enable": false },
        "workbench": { "enable_tool_execution": false, "enable_proxy_execution": false },
    });
    let session = create(&project, session).await;
    let proxy = format!("proxy('{}', 'GET', '/echo/x')", given::keyed().await);
    for (code, switch) in [
        (
            format!("run_tool('{tool}')"),
            "workbench.enable_tool_execution",
        ),
        (proxy, "workbench.enable_proxy_execution"),
        ("search_tools('send a mail')".to_owned(), "search.enable"),
    ] {
        let refused = run(&project, &session, &code).await;
        given::assert_contains(&refused["error"], switch);
    }
    let session = json!({ "user_id": "amy", "workbench": { "enable": false } });
    let session = create(&project, session).await;
    let code = json!({ "code_to_execute": "1" });
    let off = execute_meta(&project, &session, WORKBENCH_TOOL, code).await;
    off.expect_error(403, "ToolRouterV2_MetaToolDisabled");
}

#[tokio::test]
async fn scripts_search_within_the_scope() {
    let (project, toolkit) = with_mail().await;
    let config = json!({ "user_id": "amy", "toolkits": { "enable": [toolkit] } });
    let session = create(&project, config).await;
    let code = "
found = search_tools('list the arguments')
sorted({slug.split('_')[0].lower() for slug in found['tool_schemas']})
";
    assert_eq!(
        result(&project, &session, code).await,
        format!("['{toolkit}']")
    );
    let empty = run(&project, &session, "search_tools()").await;
    assert!(
        empty["error"].as_str().unwrap().contains("use cases"),
        "{empty:#}"
    );
}

#[tokio::test]
async fn uploaded_file_belongs_to_the_project() {
    let (project, session) = amys_session().await;
    let code = "
open('report.csv', 'w').write('a,b')
import json
json.dumps(upload_file('report.csv', 'text/csv'))
";
    let file: Value = serde_json::from_str(&result(&project, &session, code).await).unwrap();
    assert_eq!(file["name"], "report.csv");
    assert_eq!(file["mimetype"], "text/csv");
    let url = file["url"].as_str().unwrap();
    let downloaded = project.exchange(Method::GET, url, &[], vec![]).await;
    assert_eq!(downloaded.bytes, b"a,b");
    let listed = project.get("/files/list").await.expect(200);
    assert_eq!(listed["items"][0]["tool_slug"], "UPLOAD_FILE");
    assert!(file["s3key"].is_string());
}

/// A script does nothing to this machine, and the next one works. Scripts that are ended are tested
/// with their limits.
#[tokio::test]
async fn hostile_scripts_are_contained() {
    let (project, session) = amys_session().await;
    for (code, expected) in [
        (
            "import os; [p for p in ('/etc/passwd', '/proc/self/environ', '../../etc/passwd') if os.path.exists(p)]",
            "[]",
        ),
        ("import os; sorted(os.environ)", "['HOME', 'PWD']"),
        ("import os; sorted(os.listdir('/mnt'))", "['files']"),
    ] {
        assert_eq!(result(&project, &session, code).await, expected, "{code}");
    }
    for code in [
        "open('/usr/local/lib/python314.zip', 'wb')",
        "open('/workbench/driver.py', 'w')",
        "import os; os.symlink('/etc/passwd', 'p')",
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
        "import subprocess; subprocess.run(['ls'])",
        "import os\nwhile True: os.fork()",
        "import threading\nwhile True: threading.Thread(target=print).start()",
        "x = bytearray(10_000_000_000)",
        "x = []\nwhile True: x.append(bytes(1_000_000))",
        "while True: print('x' * 100_000)",
        "import _bashkit; _bashkit.http('GET', 'http://127.0.0.1/', [], b'', None)",
        "import _bashkit; _bashkit.http('CALL', 'nonesuch', [], b'{}', None)",
        "def f(): return f()\nf()",
    ] {
        let ran = run(&project, &session, code).await;
        assert_eq!(ran["result_type"], "failed", "{code}: {ran:#}");
        assert_eq!(
            result(&project, &session, "6 * 7").await,
            "42",
            "after {code}"
        );
    }
}

#[tokio::test]
async fn scripts_are_ended_at_their_limits() {
    let setup = with_interpreter().await.with("workbench.time_s", "5");
    let (_host, project, toolkit) = with_fetcher(setup).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    run(&project, &session, "kept = 1").await;
    let tag = unique(6);
    let hanging = format!("kept = 2\nproxy('{toolkit}', 'GET', '/hang/{tag}')");
    for (code, kind) in [
        ("kept = 2\nwhile True: pass", "tool_cpu_limit"),
        ("kept = 2\nimport time; time.sleep(1_000)", "tool_timeout"),
        (&hanging, "tool_timeout"),
    ] {
        let ran = run(&project, &session, code).await;
        let error = ran["error"].as_str().unwrap();
        assert!(error.starts_with(kind), "{code}: {error}");
        assert_eq!(ran["data"]["exit_code"], Value::Null);
        assert_eq!(result(&project, &session, "kept").await, "1", "{code}");
    }
    Host::application().wait_for_abandoned(&tag, 1).await;
    let ran = run(&project, &session, "x = bytearray(260_000_000)").await;
    assert_eq!(ran["error"], "MemoryError");
}

#[tokio::test]
async fn scripts_wait_for_others_for_a_limited_time() {
    const SCRIPTS_PER_PROJECT: usize = 4;
    let (_host, project, toolkit) = with_fetcher(with_interpreter().await).await;
    let mut sessions = Vec::new();
    for _ in 0..SCRIPTS_PER_PROJECT {
        sessions.push(create(&project, json!({ "user_id": "amy" })).await);
    }
    let session = sessions[0].clone();
    let other = create(&project, json!({ "user_id": "amy" })).await;
    // The first script waits until the interpreter is loaded.
    result(&project, &session, "1").await;
    let tag = unique(6);
    let code = format!("import time; proxy('{toolkit}', 'GET', '/echo/{tag}'); time.sleep(100)");
    let send = |session: String, code: String| {
        let project = project.clone();
        let code = json!({ "code_to_execute": code });
        async move { execute_meta(&project, &session, WORKBENCH_TOOL, code).await }
    };
    let refusals = async {
        Host::application()
            .wait_for_requests(&tag, SCRIPTS_PER_PROJECT)
            .await;
        tokio::join!(
            send(session.clone(), "1".to_owned()),
            send(other, "1".to_owned())
        )
    };
    let held = sessions.iter().map(|held| send(held.clone(), code.clone()));
    let (of_session, of_project) = tokio::select! {
        ended = futures::future::join_all(held) => panic!("the scripts have ended: {ended:#?}"),
        refused = refusals => refused,
    };
    of_session.expect_error(409, "ToolRouterV2_SessionBusy");
    of_project.expect_error(429, "Server_ProjectBusy");
    // The client has disconnected, which ends its scripts and frees the session.
    assert_eq!(result(&project, &session, "1").await, "1");
}

#[tokio::test]
async fn deleted_session_leaves_no_variables() {
    let (project, session) = amys_session().await;
    run(&project, &session, "kept = 1").await;
    let path = format!("{SESSION_PATH}/{session}");
    project.delete(&path).await.expect(200);
    let code = json!({ "code_to_execute": "kept" });
    let gone = execute_meta(&project, &session, WORKBENCH_TOOL, code).await;
    gone.expect_error(404, "ToolRouterV2_SessionNotFound");
}
