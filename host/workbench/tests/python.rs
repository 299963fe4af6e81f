//! Tests of Python scripts: what works, what lasts from script to script, and what a hostile script
//! cannot do.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use host_workbench::{
    Finished, MAX_CODE_BYTES, MAX_RESULT_CHARS, NotRun, Script, Session, Workbench,
};
use parking_lot::Mutex;
use sandbox::{FileChange, ProgramLimits, Sandbox, Settings, StoredFile, kind};
use serde_json::{Value, json};

/// Workbench of all tests. The interpreter is compiled once and stays compiled under `target/`.
static SHARED_WORKBENCH: LazyLock<Workbench> = LazyLock::new(|| {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    let net = net::Client::new(net::Settings::default()).unwrap();
    Workbench::new(Sandbox::open(Settings::new(cache, [1; 32], net)).unwrap())
});

/// Session whose files and variables last.
#[derive(Default)]
struct Kept {
    files: Mutex<BTreeMap<String, Bytes>>,
    variables: Mutex<Option<Bytes>>,
    calls: Mutex<Vec<(String, Value)>>,
}

#[async_trait]
impl Session for Kept {
    async fn call(&self, function: &str, arguments: Bytes) -> Result<Bytes, String> {
        let arguments: Value = serde_json::from_slice(&arguments).unwrap();
        let answer = match arguments["slug"].as_str() {
            Some("FORBIDDEN") => Err("the session does not permit FORBIDDEN".to_owned()),
            Some("HANGING") => std::future::pending().await,
            _ => Ok(json!({"echo": arguments}).to_string().into()),
        };
        self.calls.lock().push((function.to_owned(), arguments));
        answer
    }

    async fn read(&self, path: &str) -> Result<Bytes, String> {
        let found = self.files.lock().get(path).cloned();
        found.ok_or_else(|| "no such file".to_owned())
    }
}

impl Kept {
    async fn run_within(self: &Arc<Self>, code: &str, limits: ProgramLimits) -> Finished {
        let files = self.files.lock().clone().into_iter();
        let files = files.map(|(path, bytes)| StoredFile {
            path,
            size: bytes.len() as u64,
            modified_ms: 0,
        });
        let script = Script {
            run_id: "run".to_owned(),
            tenant: "tenant".into(),
            code: code.to_owned(),
            files: files.collect(),
            variables: self.variables.lock().clone(),
            limits,
            session: self.clone(),
        };
        let finished = SHARED_WORKBENCH.run_python(script).await.unwrap();
        for FileChange { path, content } in &finished.changes {
            match content {
                Some(bytes) => drop(self.files.lock().insert(path.clone(), bytes.clone())),
                None => drop(self.files.lock().remove(path)),
            }
        }
        if let Some(variables) = &finished.variables {
            *self.variables.lock() = Some(variables.clone());
        }
        finished
    }

    async fn run(self: &Arc<Self>, code: &str) -> Finished {
        self.run_within(code, ProgramLimits::default()).await
    }
}

/// Limits that a hostile script reaches soon.
fn tight() -> ProgramLimits {
    ProgramLimits {
        cpu: Duration::from_secs(2),
        wall: Duration::from_secs(20),
        output: 64 << 10,
        file_bytes: 1 << 20,
        files: 50,
        ..ProgramLimits::default()
    }
}

/// Runs a hostile script, checks that the next script works, and returns the result of the first.
async fn attack(code: &str) -> Finished {
    let session = Arc::new(Kept::default());
    let finished = session.run_within(code, tight()).await;
    assert_eq!(session.run("6 * 7").await.result.text, "42");
    finished
}

fn ended_by(finished: &Finished) -> &str {
    &finished.exit.as_ref().unwrap_err().kind
}

#[tokio::test(flavor = "multi_thread")]
async fn usual_modules_work() {
    let session = Arc::new(Kept::default());
    let finished = session.run(include_str!("modules.py")).await;
    assert_eq!(finished.stderr.text, "");
    assert_eq!(finished.exit, Ok(0));
    assert_eq!(finished.result.text, "20 modules");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_no_unicode_is_reported() {
    let session = Arc::new(Kept::default());
    let finished = session.run("'a\\udc80é'").await;
    assert_eq!(finished.exit, Ok(0));
    assert_eq!(finished.result.text, "a?é");
    let failed = session.run("raise ValueError('a\\udc80')").await;
    assert_eq!(failed.exit, Ok(1));
    assert!(failed.error.unwrap().starts_with("ValueError: a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_result_and_exit_code_are_returned() {
    let session = Arc::new(Kept::default());
    let finished = session
        .run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n[1, 'a']")
        .await;
    assert_eq!(finished.stdout.text, "out\n");
    assert_eq!(finished.stderr.text, "err\n");
    assert_eq!(finished.result.text, "[1, 'a']");
    assert_eq!(session.run("import sys; sys.exit(3)").await.exit, Ok(3));
    let failed = session.run("x = 1\nx / 0").await;
    assert_eq!(failed.exit, Ok(1));
    assert_eq!(failed.error.unwrap(), "ZeroDivisionError: division by zero");
    assert!(
        failed.stderr.text.contains("line 2"),
        "{}",
        failed.stderr.text
    );
    assert!(!failed.stderr.text.contains("driver.py"));
    let broken = session.run("def").await;
    assert!(broken.error.unwrap().starts_with("SyntaxError"));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_functions_and_imports_last() {
    let session = Arc::new(Kept::default());
    let first = "
import json as j
from statistics import mean
class Point:
    def __init__(self, x): self.x = x
    def double(self): return helper(self.x)
def helper(x): return 2 * x
points = [Point(1), Point(2)]
same = points
";
    let finished = session.run(first).await;
    assert_eq!((finished.exit, finished.lost), (Ok(0), vec![]));
    let second = session
        .run("same.append(Point(6)); j.dumps([mean(p.double() for p in points), len(points)])")
        .await;
    assert_eq!(second.result.text, "[6, 3]", "{}", second.stderr.text);
    let third = session.run("len(points)").await;
    assert_eq!(third.result.text, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_scripts_replace_nothing_of_the_host() {
    let session = Arc::new(Kept::default());
    for (path, code) in [("csv.py", "taken = True"), ("own.py", "value = 7")] {
        session.files.lock().insert(path.to_owned(), code.into());
    }
    let code = "import csv\nfrom own import value\n(hasattr(csv, 'taken'), value)";
    assert_eq!(session.run(code).await.result.text, "(False, 7)");
    let code = "def run_tool(*given): return 'taken'\nrun_tool()";
    let finished = session.run(code).await;
    assert_eq!(finished.result.text, "taken");
    assert_eq!(finished.lost, ["run_tool"]);
    let next = session.run("run_tool('X')['echo']['slug']").await;
    assert_eq!(next.result.text, "X", "{}", next.stderr.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_variables_are_dropped() {
    let session = Arc::new(Kept::default());
    session.run("x = [1, 2, 3]").await;
    let whole = session.variables.lock().clone().unwrap();
    *session.variables.lock() = Some(whole.slice(..whole.len() / 2));
    let finished = session.run("y = 'x' in globals()\ny").await;
    assert_eq!(finished.result.text, "False", "{}", finished.stderr.text);
    let told = &finished.stderr.text;
    assert!(told.contains("cannot be read and are dropped"), "{told}");
    let next = session.run("y").await;
    assert_eq!((&*next.result.text, &*next.stderr.text), ("False", ""));
}

/// Returns a script that leaves two variables, and a third one that runs code when it is read.
fn leaving(body: &str) -> String {
    format!(
        "
class T:
    def __setstate__(self, state):
        import os, sys
        {body}
t = T()
t.a = 1
other = [1, 2]
same = [other]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_that_end_their_reading_are_dropped() {
    for body in [
        "os._exit(0)",
        "os.abort()",
        "os.closerange(0, 10)",
        "sys.stdout.close()",
        "while True: pass",
    ] {
        let session = Arc::new(Kept::default());
        session.run(&leaving(body)).await;
        let code = "y = 't' in globals() or 'other' in globals()\ny";
        let finished = session.run_within(code, tight()).await;
        assert_eq!(finished.exit, Ok(0), "{body}: {}", finished.stderr.text);
        assert_eq!(finished.result.text, "False", "{body}");
        assert_eq!(finished.lost, ["T", "other", "same", "t"], "{body}");
        let told = &finished.stderr.text;
        assert!(told.contains("cannot be read and are dropped"), "{told}");
        let next = session.run("y").await;
        assert_eq!((&*next.result.text, &*next.stderr.text), ("False", ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_interpreter_leaves_no_variables() {
    let session = Arc::new(Kept::default());
    let pretending =
        "import _bashkit; _bashkit.http('CALL', 'workbench.begin', [], b'', None); os._exit(0)";
    session.run(&leaving(pretending)).await;
    let finished = session.run("1").await;
    let told = &finished.stderr.text;
    assert!(told.contains("no variables last"), "{told}");
    let next = session.run("'other' in globals()").await;
    assert_eq!((&*next.result.text, &*next.stderr.text), ("False", ""));
    session.run("x = 1").await;
    let ended = session.run("import os; os._exit(3)").await;
    assert_eq!(ended.exit, Ok(3));
    let next = session.run("'x' in globals()").await;
    assert_eq!((&*next.result.text, &*next.stderr.text), ("False", ""));
}

/// The next script reads what this one leaves, so nothing may remain of what ends the reading.
#[tokio::test(flavor = "multi_thread")]
async fn ended_script_leaves_no_variables_that_end_reading() {
    let session = Arc::new(Kept::default());
    session.run(&leaving("os._exit(0)")).await;
    let ended = session.run_within("while True: pass", tight()).await;
    assert_eq!(ended_by(&ended), kind::CPU);
    let next = session.run("'other' in globals()").await;
    assert_eq!((&*next.result.text, &*next.stderr.text), ("False", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_variable_takes_no_other_with_it() {
    for body in [
        "sys.exit(3)",
        "raise KeyboardInterrupt",
        "raise BaseException",
        "raise GeneratorExit",
        "raise ValueError",
        "run_tool('ECHO')",
        "import time; time.sleep(1_000_000)",
    ] {
        let session = Arc::new(Kept::default());
        session.run(&leaving(body)).await;
        let finished = session.run("other.append(3); same").await;
        assert_eq!(finished.exit, Ok(0), "{body}: {}", finished.stderr.text);
        assert_eq!(finished.result.text, "[[1, 2, 3]]", "{body}");
        assert_eq!(finished.lost, ["t"], "{body}");
        let told = &finished.stderr.text;
        assert!(told.contains("are dropped: t\n"), "{body}: {told}");
        assert!(session.calls.lock().is_empty());
        let next = session.run("same").await;
        assert_eq!(
            (&*next.result.text, &*next.stderr.text),
            ("[[1, 2, 3]]", "")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_earlier_versions_are_read() {
    let session = Arc::new(Kept::default());
    let code = "
import pickle
shared = [1]
data = pickle.dumps({'a': shared, 'b': shared}, 5)
state = ({'m': 'math'}, {'f': 'def f(): return 2'}, data, ['a', 'b'])
open('state', 'wb').write(pickle.dumps(state, 5))
";
    session.run(code).await;
    *session.variables.lock() = session.files.lock().remove("state");
    let finished = session.run("[a is b, m.floor(1.5), f()]").await;
    assert_eq!(
        finished.result.text, "[True, 1, 2]",
        "{}",
        finished.stderr.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_that_cannot_be_kept_are_named() {
    let session = Arc::new(Kept::default());
    let code = "
import sqlite3
db = sqlite3.connect('data.db')
generator = (x for x in range(3))
square = lambda x: x * x
large = bytes(9_000_000)
small = 1
class Ending:
    def __getstate__(self): raise SystemExit(3)
ending = Ending()
";
    let finished = session.run(code).await;
    assert_eq!(finished.exit, Ok(0));
    assert_eq!(
        finished.lost,
        ["db", "ending", "generator", "large", "square"]
    );
    assert_eq!(session.run("small").await.result.text, "1");
}

/// A value whose class cannot be kept takes no other one with it, and classes are restored after the
/// imports that their sources use.
#[tokio::test(flavor = "multi_thread")]
async fn lost_class_takes_no_other_variable() {
    let session = Arc::new(Kept::default());
    let code = "
import functools
from collections import namedtuple
from dataclasses import dataclass
Pair = namedtuple('Pair', 'x y')
pair = Pair(1, 2)
@dataclass
class Point:
    x: int
point = Point(3)
@functools.cache
def double(x): return 2 * x
def triple(x): return 3 * x
triple = lambda x: 4 * x
total = 5
";
    let finished = session.run(code).await;
    assert_eq!(finished.lost, ["Pair", "pair", "triple"]);
    let second = session.run("[total, point.x, double(7)]").await;
    assert_eq!(second.result.text, "[5, 3, 14]", "{}", second.stderr.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_databases_last() {
    let session = Arc::new(Kept::default());
    let code = "
import os, sqlite3, zipfile
os.makedirs('a/b')
open('a/b/c.txt', 'w').write('hello')
with sqlite3.connect('data.db') as db:
    db.execute('create table t (x)')
    db.executemany('insert into t values (?)', [(n,) for n in range(100)])
with zipfile.ZipFile('z.zip', 'w') as archive: archive.write('a/b/c.txt')
open('gone', 'w').write('x')
";
    assert_eq!(session.run(code).await.exit, Ok(0));
    let code = "
import os, sqlite3
os.remove('gone')
os.rename('a', 'moved')
total = sqlite3.connect('data.db').execute('select sum(x) from t').fetchone()[0]
[total, open('moved/b/c.txt').read(), sorted(os.listdir())]
";
    let finished = session.run(code).await;
    let expected = "[4950, 'hello', ['data.db', 'moved', 'z.zip']]";
    assert_eq!(finished.result.text, expected, "{}", finished.stderr.text);
    let names: Vec<_> = session.files.lock().keys().cloned().collect();
    assert_eq!(names, ["data.db", "moved/b/c.txt", "z.zip"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_reach_tools_through_session() {
    let session = Arc::new(Kept::default());
    let code = "
open('f.txt', 'w').write('abc')
answers = [
    run_tool('ECHO', {'a': 1})['echo']['arguments'],
    search_tools('send mail')['echo']['use_cases'],
    proxy('github', 'GET', '/user')['echo']['endpoint'],
    upload_file('f.txt')['echo']['content'],
]
try:
    run_tool('FORBIDDEN')
except ToolError as problem:
    answers.append(str(problem))
answers
";
    let finished = session.run(code).await;
    let expected =
        "[{'a': 1}, ['send mail'], '/user', 'YWJj', 'the session does not permit FORBIDDEN']";
    assert_eq!(finished.result.text, expected, "{}", finished.stderr.text);
    let functions: Vec<_> = session
        .calls
        .lock()
        .iter()
        .map(|call| call.0.clone())
        .collect();
    assert_eq!(
        functions,
        [
            "run_tool",
            "search_tools",
            "proxy",
            "upload_file",
            "run_tool"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_becomes_file() {
    let session = Arc::new(Kept::default());
    let finished = session.run("print('line\\n' * 20_000)").await;
    assert_eq!(finished.stdout.lines, 20_001);
    assert_eq!(
        finished.stdout.file.as_deref(),
        Some("outputs/run-stdout.txt")
    );
    let read = session
        .run("open('outputs/run-stdout.txt').read().count('line')")
        .await;
    assert_eq!(read.result.text, "20000");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_script_is_refused() {
    let session = Arc::new(Kept::default());
    let script = Script {
        run_id: "run".to_owned(),
        tenant: "tenant".into(),
        code: " ".repeat(MAX_CODE_BYTES + 1),
        files: Vec::new(),
        variables: None,
        limits: ProgramLimits::default(),
        session,
    };
    let refused = SHARED_WORKBENCH.run_python(script).await.unwrap_err();
    assert!(matches!(refused, NotRun::TooLong(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_files_and_environment_are_invisible() {
    let code = "
import os, pathlib
found = [p for p in ('/etc/passwd', '/proc/self/environ', '/root', '/home', '/work', '../../etc/passwd') if os.path.exists(p)]
[found, sorted(os.environ), sorted(os.listdir('/'))]
";
    let finished = attack(code).await;
    assert_eq!(
        finished.result.text, "[[], ['HOME', 'PWD'], ['mnt', 'tmp', 'usr', 'workbench']]",
        "{}",
        finished.stderr.text
    );
    let finished = attack("open('/usr/local/lib/python314.zip', 'wb')").await;
    assert!(finished.error.unwrap().contains("Read-only file system"));
}

#[tokio::test(flavor = "multi_thread")]
async fn network_and_processes_are_refused() {
    let code = "
import socket, subprocess, os, urllib.request, requests
problems = []
for attempt in (
    lambda: socket.create_connection(('127.0.0.1', 80)),
    lambda: urllib.request.urlopen('http://127.0.0.1/'),
    lambda: requests.get('https://example.com'),
    lambda: subprocess.run(['ls']),
    lambda: os.fork(),
    lambda: os.system('ls'),
):
    try:
        attempt()
    except BaseException as problem:
        problems.append(type(problem).__name__)
len(problems)
";
    let finished = attack(code).await;
    assert_eq!(finished.result.text, "6", "{}", finished.stderr.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_bomb_is_refused() {
    let finished = attack("import os\nwhile True: os.fork()").await;
    assert_eq!(finished.exit, Ok(1), "{}", finished.stderr.text);
    let finished =
        attack("import threading\nwhile True: threading.Thread(target=print).start()").await;
    assert_eq!(finished.exit, Ok(1), "{}", finished.stderr.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_loop_is_ended() {
    assert_eq!(ended_by(&attack("while True: pass").await), kind::CPU);
    let code = "
while True:
    try:
        while True: pass
    except BaseException: pass
";
    assert_eq!(ended_by(&attack(code).await), kind::CPU);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_waits_are_ended() {
    let limits = ProgramLimits {
        wall: Duration::from_secs(1),
        ..tight()
    };
    let session = Arc::new(Kept::default());
    for code in ["import time; time.sleep(1_000_000)", "run_tool('HANGING')"] {
        let finished = session.run_within(code, limits).await;
        assert_eq!(ended_by(&finished), kind::TIMEOUT);
    }
    assert_eq!(session.run("1").await.result.text, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_allocation_is_refused() {
    let finished = attack("x = bytearray(10_000_000_000)").await;
    assert!(finished.error.unwrap().starts_with("OverflowError"));
    let finished = attack("x = bytearray(2_000_000_000)").await;
    assert!(finished.error.unwrap().starts_with("MemoryError"));
    let finished = attack("x = []\nwhile True: x.append(bytes(1_000_000))").await;
    assert!(finished.exit != Ok(0));
    assert!(finished.usage.peak_memory <= ProgramLimits::default().memory);
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_recursion_is_reported() {
    let finished = attack("def f(): return f()\nf()").await;
    assert!(finished.error.unwrap().starts_with("RecursionError"));
    let finished = attack("x = []\nfor _ in range(1_000_000): x = [x]\nrepr(x)").await;
    assert!(finished.exit != Ok(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_output_ends() {
    let finished = attack("while True: print('x' * 1000)").await;
    assert_eq!(finished.exit, Ok(1), "{}", finished.stderr.text);
    assert!(finished.stdout.file.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_limited_in_size_and_number() {
    let finished =
        attack("f = open('f', 'wb')\nwhile True: f.write(bytes(100_000)); f.flush()").await;
    assert!(finished.error.unwrap().contains("No space left"));
    let finished = attack("for n in range(1000): open(str(n), 'w').close()").await;
    assert!(finished.error.unwrap().contains("No space left"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_host_are_limited() {
    let limits = ProgramLimits {
        requests: 3,
        ..tight()
    };
    let session = Arc::new(Kept::default());
    let finished = session
        .run_within("for n in range(10): run_tool('ECHO')", limits)
        .await;
    assert!(finished.error.unwrap().contains("more than 3 calls"));
    assert_eq!(session.calls.lock().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_call_of_host_is_refused() {
    let limits = ProgramLimits {
        message: 4096,
        ..tight()
    };
    let session = Arc::new(Kept::default());
    let code = "
try:
    run_tool('ECHO', {'a': 'x' * 5000})
except ToolError as problem:
    print(problem)
";
    let finished = session.run_within(code, limits).await;
    assert_eq!(
        finished.stdout.text,
        "the request is not valid, or too large\n"
    );
    assert!(session.calls.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn long_result_is_cut() {
    let session = Arc::new(Kept::default());
    let finished = session.run("'x' * 5_000_000").await;
    let file = finished.result.file.unwrap();
    assert_eq!(session.files.lock()[&file].len(), MAX_RESULT_CHARS);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_script_changes_nothing() {
    let session = Arc::new(Kept::default());
    session.run("x = 1; open('kept', 'w').write('1')").await;
    let code = "x = 2; open('kept', 'w').write('2')\nwhile True: pass";
    let finished = session.run_within(code, tight()).await;
    assert_eq!(ended_by(&finished), kind::CPU);
    let read = session.run("[x, open('kept').read()]").await;
    assert_eq!(read.result.text, "[1, '1']");
}
