//! Shell commands of a session: the files that they share with applications, and attacks that they
//! survive.

use harness::{Answer, Client, Host, Postgres, host::Setup, unique, wait_until};
use serde_json::{Value, json};

use crate::{
    budget::assert_refused,
    mounts::{download, download_url, session, upload},
    tool_router_sessions::{SESSION_PATH, amys_session, create, execute_meta},
};

/// Command that needs much processor time and little memory.
const BUSY_COMMAND: &str = "jq -n 'last(range(1e12))'";
/// Command that sorts 32 million lines, which needs much memory.
const LARGE_COMMAND: &str = "head -c 1000000 /dev/zero | tr '\\0' '\\n' > a
    for i in 1 2 3 4 5; do cat a a > b; mv b a; done; sort a";

pub(crate) async fn shell(project: &Client, session: &str, command: &str) -> Answer {
    let arguments = json!({ "command": command });
    execute_meta(project, session, "SERVICE_REMOTE_BASH_TOOL", arguments).await
}

/// Runs a command that ends by itself, and returns its data.
async fn run(project: &Client, session: &str, command: &str) -> Value {
    let answer = shell(project, session, command).await.expect(200);
    assert_eq!(answer["error"], Value::Null, "{command}");
    answer["data"].clone()
}

/// Runs a command that a limit ends, and returns the error.
async fn ended(project: &Client, session: &str, command: &str) -> String {
    let answer = shell(project, session, command).await.expect(200);
    let error = answer["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("was ended"), "{command}: {error}");
    error
}

#[tokio::test]
async fn command_works_on_files_of_session() {
    let (project, session) = amys_session().await;
    let rows = "name,amount\nb,2\na,40\nc,\n";
    upload(&project, &session, "in/rows.csv", rows.as_bytes()).await;
    let command = "pwd; tail -n +2 in/rows.csv | sort | awk -F, '{s+=$2} END {print s}'
        sed 's/,/;/g' in/rows.csv > out.csv; grep -c ';' out.csv
        echo '{\"a\": [1, 2]}' | jq '.a[1]'; echo warning >&2; rm in/rows.csv; mkdir empty; exit 3";
    let data = run(&project, &session, command).await;
    assert_eq!(data["stdout"], "/mnt/files\n42\n4\n2\n");
    assert_eq!(data["stdoutLines"], 4);
    assert_eq!(data["stderrLines"], 1);
    assert_eq!(data["stderr"], "warning\n");
    assert_eq!(data["exit_code"], 3);
    let got = download(&project, &session, "out.csv").await;
    assert_eq!(got.bytes, rows.replace(',', ";").into_bytes());
    let left = run(&project, &session, "find . -type f").await;
    assert_eq!(left["stdout"], "./out.csv\n");
}

#[tokio::test]
async fn network_commands_say_what_to_call() {
    let (project, session) = amys_session().await;
    for name in ["curl", "wget", "ssh"] {
        let data = run(&project, &session, &format!("{name} https://example.com")).await;
        let expected = format!(
            "{name}: there is no network here: call run_tool or proxy in SERVICE_REMOTE_WORKBENCH\n"
        );
        assert_eq!(data["stderr"], expected);
        assert_eq!(data["exit_code"], 1);
    }
}

#[tokio::test]
async fn bytes_survive_the_shell() {
    let (project, session) = amys_session().await;
    // Content that compresses little: the shell refuses to unpack what grows a hundredfold.
    let mixed = (0..100_000u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]);
    let bytes: Vec<u8> = mixed.collect();
    upload(&project, &session, "a b/é.bin", &bytes).await;
    run(
        &project,
        &session,
        "cp 'a b/é.bin' copy.bin; gzip -k copy.bin",
    )
    .await;
    assert_eq!(download(&project, &session, "copy.bin").await.bytes, bytes);
    let data = run(
        &project,
        &session,
        "gunzip -c copy.bin.gz | cmp - copy.bin && echo same",
    )
    .await;
    assert_eq!(data["stdout"], "same\n");
}

#[tokio::test]
async fn long_output_becomes_a_file() {
    let (project, session) = amys_session().await;
    let data = run(&project, &session, "seq 1 20000").await;
    assert_eq!(data["stdoutLines"], 20_000);
    let path = data["stdout_file_path"].as_str().unwrap();
    let path = path.strip_prefix("/mnt/files/").unwrap();
    let whole = download(&project, &session, path).await.bytes;
    let shown = data["stdout"].as_str().unwrap();
    assert!(whole.starts_with(shown.as_bytes()) && whole.ends_with(b"\n20000\n"));
}

#[tokio::test]
async fn files_of_command_count_toward_shared_memory() {
    let host = Setup::new().with("sandbox.memory_mib", "16").start().await;
    let project = host.as_project();
    let session = session(&project).await;
    let command = "head -c 1000000 /dev/zero > a; for i in 1 2 3 4 5; do cat a a > b; mv b a; done";
    let refused = shell(&project, &session, command).await;
    assert_refused("past the memory", &refused, 429, "Server_ProjectBusy");
    let data = run(&project, &session, "ls").await;
    assert_eq!(data["stdout"], "");
}

#[tokio::test]
async fn host_is_out_of_reach() {
    let variable = format!("SECRET_{}", unique(8));
    let setup = Setup::new().with_variable(&variable, "visible");
    let host = setup.start().await;
    let project = host.as_project();
    let session = session(&project).await;
    let seen = |command: String| {
        let (project, session) = (&project, &session);
        async move { run(project, session, &command).await.to_string() }
    };
    for file in [
        "/etc/passwd",
        "/etc/hostname",
        "/proc/self/environ",
        "/proc/1/cmdline",
    ] {
        let said = seen(format!(
            "cat {file}; cat /mnt/files/../..{file}; ls -la {file}"
        ))
        .await;
        assert!(
            !said.contains("root:") && !said.contains("toolhost"),
            "{said}"
        );
    }
    let said = seen("env; set; printenv; echo $PATH; ls -R /".to_owned()).await;
    assert!(
        !said.contains(&variable) && !said.contains("visible"),
        "{said}"
    );
    assert!(!said.contains("store"), "{said}");
    let port = host.url.rsplit(':').next().unwrap();
    let said = seen(format!(
        "curl -s {url}/health; wget -qO- {url}/health; exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected; nc 127.0.0.1 {port} </dev/null",
        url = host.url
    ))
    .await;
    assert!(
        !said.contains("connected") && !said.contains("\"status\""),
        "{said}"
    );
    let said =
        seen("/bin/sh -c id; /usr/bin/python3 -c 'print(7*6)'; perl -e 'print 7*6'".to_owned());
    assert!(!said.await.contains("42"));
}

#[tokio::test]
async fn hostile_commands_are_ended() {
    let (project, session) = amys_session().await;
    upload(&project, &session, "kept.txt", b"kept").await;
    for command in [
        "rm kept.txt; for ((;;)); do echo x >> kept.txt; done",
        "f() { f; f; }; rm kept.txt; f",
        "rm kept.txt; dd if=/dev/zero of=big bs=1M count=10000",
    ] {
        ended(&project, &session, command).await;
        let data = run(&project, &session, "cat kept.txt").await;
        assert_eq!(data["stdout"], "kept", "{command}");
    }
}

#[tokio::test]
async fn endless_loop_changes_no_file() {
    let (project, session) = amys_session().await;
    ended(&project, &session, "echo a > a.txt; while true; do :; done").await;
    let data = run(&project, &session, "ls; echo next").await;
    assert_eq!(data["stdout"], "next\n");
}

#[tokio::test]
async fn commands_are_ended_at_their_limits() {
    for (seconds, command, limit) in [
        ("1", "sleep 1000", "longer than 1 s"),
        ("5", BUSY_COMMAND, "1 s of processor time"),
    ] {
        let setup = Setup::new().with("workbench.time_s", seconds);
        let host = setup.start().await;
        let project = host.new_project().await;
        assert_ended_by(&project, command, limit).await;
    }
    let project = Host::shared().await.new_project().await;
    assert_ended_by(&project, LARGE_COMMAND, "512 MiB of memory").await;
}

/// Checks that a command is ended because of a limit, and that it changes no file.
async fn assert_ended_by(project: &Client, command: &str, limit: &str) {
    let session = session(project).await;
    upload(project, &session, "kept.txt", b"kept").await;
    let command = format!("echo lost > kept.txt; {command}");
    let error = ended(project, &session, &command).await;
    assert!(error.contains(limit), "{command}: {error}");
    let kept = download(project, &session, "kept.txt").await;
    assert_eq!(kept.bytes, b"kept", "{command}");
}

#[tokio::test]
async fn fork_bombs_memory_and_output_are_contained() {
    let (project, session) = amys_session().await;
    for command in [
        ":(){ :|:& };:",
        "x=xxxxxxxxxxxxxxxx; while true; do x=$x$x; done",
        "yes",
        "seq 1 100000000",
        "head -c 10000000000 /dev/zero | sort",
        "a=(); for i in {1..100000000}; do a+=($i); done",
        "printf '%1000000000s' x",
    ] {
        let answer = shell(&project, &session, command).await.expect(200);
        let text = answer.text.len();
        assert!(text < 300_000, "{command}: {text} bytes");
        let data = run(&project, &session, "echo next").await;
        assert_eq!(data["stdout"], "next\n", "{command}");
    }
}

#[tokio::test]
async fn too_many_files_are_not_stored() {
    let (project, session) = amys_session().await;
    let command = "for i in $(seq 1 1000); do echo > f$i; done; echo ran";
    let answer = shell(&project, &session, command).await.expect(200);
    assert_eq!(answer["data"]["stdout"], "ran\n");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("more than 900 files"), "{error}");
    assert_eq!(run(&project, &session, "ls").await["stdout"], "");
}

#[tokio::test]
async fn commands_of_a_session_take_turns() {
    let (project, session) = amys_session().await;
    run(&project, &session, "echo 0 > n").await;
    let commands = (0..6).map(|_| {
        run(
            &project,
            &session,
            "n=$(cat n); sleep 0.05; echo $((n + 1)) > n",
        )
    });
    futures::future::join_all(commands).await;
    assert_eq!(run(&project, &session, "cat n").await["stdout"], "6\n");
}

/// The commands of two other sessions hold all permits of the project. The database shows which
/// commands are waiting for one.
#[tokio::test]
async fn command_that_waits_ends_with_its_session() {
    let setup = Setup::embedded().on(Postgres::database_with_tables());
    let host = setup.start().await;
    let project = host.as_project();
    let sessions = [
        session(&project).await,
        session(&project).await,
        session(&project).await,
    ];
    let begun = async |count: usize| {
        wait_until("the commands have their turns", async || {
            let turns = "select count(*) from session_turns";
            host.setup().database().say(turns) == [count.to_string()]
        })
        .await;
    };
    let waiting = async {
        begun(2).await;
        let path = format!("{SESSION_PATH}/{}", sessions[2]);
        let limited = async {
            begun(3).await;
            let off = json!({ "workbench": { "enable": false } });
            project.patch(&path, &off).await.expect(200);
        };
        let command = shell(&project, &sessions[2], "echo late > late.txt");
        let (answer, ()) = tokio::join!(command, limited);
        answer.expect(403);
    };
    let hold = |session: &str| {
        let (project, session) = (project.clone(), session.to_owned());
        async move { shell(&project, &session, "sleep 5").await.expect(200) }
    };
    tokio::join!(hold(&sessions[0]), hold(&sessions[1]), waiting);
    let late = download_url(&project, &sessions[2], "late.txt").await;
    late.expect(404);
}

#[tokio::test]
async fn shell_needs_the_workbench() {
    let project = Host::shared().await.new_project().await;
    let config = json!({ "user_id": "amy", "workbench": { "enable": false } });
    let session = create(&project, config).await;
    shell(&project, &session, "echo x").await.expect(403);
    let long = "x".repeat((256 << 10) + 1);
    let (project, session) = amys_session().await;
    shell(&project, &session, &long).await.expect(400);
}
