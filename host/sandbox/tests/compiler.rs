//! Tests of the compile child, which is this program: its output fits the parent, and its refusals
//! have a readable reason.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says that it did not"
)]

mod guest;

use std::{path::PathBuf, process::ExitCode};

use bytes::Bytes;
use guest::{ECHO_CODE, plain};
use host_sandbox::{COMPILE_ARG, Compiler, InstallError, Sandbox, Settings, child::ChildLimits};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE_ARG) {
        return host_sandbox::compile_child();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        what_the_child_compiles_runs_in_the_parent().await;
        what_the_child_refuses_is_said_in_words().await;
        a_child_that_is_missing_or_breaks_is_told_apart_from_a_bad_component().await;
    });
    println!("compiler: 3 passed");
    ExitCode::SUCCESS
}

fn sandbox(program: PathBuf) -> (Sandbox, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let net = net::Client::new(net::Settings::default()).unwrap();
    let settings = Settings {
        compiler: Compiler::Child(program, ChildLimits::default()),
        live: 2,
        ..Settings::new(folder.path().join("cache"), [1; 32], net)
    };
    (Sandbox::open(settings).unwrap(), folder)
}

async fn what_the_child_compiles_runs_in_the_parent() {
    let (sandbox, _folder) = sandbox(std::env::current_exe().unwrap());
    let component = plain("", ECHO_CODE);
    let installed = sandbox.install(component.clone()).await.unwrap();
    assert!(installed.artifact_size > 0 && installed.size == component.len() as u64);
    assert!(
        installed
            .imports
            .iter()
            .all(|import| import.starts_with("toolhost:toolkit/"))
    );
    let call = host_sandbox::Call {
        component: installed.digest,
        tenant: "tenant".into(),
        action: host_sandbox::Action::Execute {
            tool: "HAND_RUN".into(),
            arguments: Bytes::from_static(b"{}"),
        },
        context: host_sandbox::Context::default(),
        policy: std::sync::Arc::default(),
        grant: None,
        limits: host_sandbox::Limits::default(),
        files: Vec::new(),
        files_memory: None,
        state: std::collections::BTreeMap::new(),
        trace: None,
    };
    let outcome = sandbox.call(call).await.unwrap();
    assert_eq!(
        outcome.output.unwrap(),
        host_sandbox::Output::Data(Bytes::from_static(b"{}"))
    );
}

async fn what_the_child_refuses_is_said_in_words() {
    let (sandbox, _folder) = sandbox(std::env::current_exe().unwrap());
    let refused = sandbox
        .install(plain("(func $f (return_call $f))", ECHO_CODE))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, InstallError::Refused(problems) if problems[0].contains("tail")),
        "{refused:?}"
    );
}

async fn a_child_that_is_missing_or_breaks_is_told_apart_from_a_bad_component() {
    for program in ["/nonexistent/compiler", "/bin/false"] {
        let (sandbox, _folder) = sandbox(program.into());
        let broken = sandbox.install(plain("", ECHO_CODE)).await.unwrap_err();
        assert!(
            matches!(broken, InstallError::Unavailable(_)),
            "{program}: {broken:?}"
        );
    }
}
