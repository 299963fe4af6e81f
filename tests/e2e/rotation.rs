//! Rotation of the master key: under load, interrupted at any step, and on a stopped server.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use harness::{
    Dice, FakeApp, Host,
    host::{Setup, size},
};
use serde_json::json;

use crate::moving::{self, assert_connected};

/// Number of projects, each with its own data key.
const PROJECT_COUNT: usize = 150;

/// Starts a server with many data keys, and an account whose secret its provider receives.
async fn furnished(application: &FakeApp) -> (Host, String, String) {
    let (host, tool, secret) = moving::furnished(application).await;
    for _ in 0..PROJECT_COUNT {
        host.new_project().await;
    }
    (host, tool, secret)
}

/// Returns the ids of the keys in the file.
fn key_ids(data: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data.with_extension("key")).unwrap();
    text.lines()
        .map(|line| line.split(' ').nth(1).unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn master_key_rotates_without_failed_requests() {
    let application = FakeApp::start();
    let (host, tool, secret) = furnished(&application).await;
    let old = key_ids(&host.data());
    let told = host.setup().command(&["keys"]).succeeded();
    assert!(told.contains(&old[0]) && told.contains("in use"), "{told}");
    let stop = Arc::new(AtomicBool::new(false));
    let load = {
        let (host, tool, secret, stop) = (&host, &tool, &secret, stop.clone());
        async move {
            let mut requests = 0;
            while requests < 20 || !stop.load(Ordering::Relaxed) {
                assert_connected(&host.as_project(), &application, tool, secret).await;
                host.new_project()
                    .await
                    .post("/logs/tool_execution", &json!({}))
                    .await
                    .expect(200);
                requests += 1;
            }
            application
        }
    };
    let rotating = async {
        for _ in 0..2 {
            let setup = host.setup().clone();
            tokio::task::spawn_blocking(move || setup.command(&["keys", "rotate"]))
                .await
                .unwrap()
                .succeeded();
        }
        stop.store(true, Ordering::Relaxed);
    };
    let (application, ()) = tokio::join!(load, rotating);
    let new = key_ids(&host.data());
    assert!(
        new.len() == 1 && new != old,
        "the old key is retired: {new:?}"
    );
    let told = host.setup().command(&["keys"]).succeeded();
    assert!(told.contains(&new[0]) && !told.contains(&old[0]), "{told}");
    let (setup, _) = host.terminate().await;
    let host = setup.start().await;
    assert_connected(&host.as_project(), &application, &tool, &secret).await;
}

#[tokio::test]
async fn killed_key_rotation_resumes() {
    let application = FakeApp::start();
    let (mut host, tool, secret) = furnished(&application).await;
    let old = key_ids(&host.data());
    let seed = Dice::seed();
    println!("seed {seed}");
    let (mut dice, mut interrupted) = (Dice::new(seed), 0);
    for _ in 0..size(6, 40) {
        let setup = host.setup().clone();
        let data = host.data();
        let rotating = std::thread::spawn(move || setup.command(&["keys", "rotate"]));
        while key_ids(&data).len() == 1 && !rotating.is_finished() {
            std::thread::yield_now();
        }
        // The kill comes between the first step and the last.
        for _ in 0..dice.below(300) {
            key_ids(&data);
        }
        let setup = host.kill();
        interrupted += usize::from(key_ids(&data).len() == 2);
        rotating.join().unwrap();
        host = setup.start().await;
        assert_connected(&host.as_project(), &application, &tool, &secret).await;
    }
    assert!(interrupted > 0, "no kill came between the steps");
    host.setup().command(&["keys", "rotate"]).succeeded();
    let new = key_ids(&host.data());
    assert!(new.len() == 1 && new != old, "{new:?}");
    assert_connected(&host.as_project(), &application, &tool, &secret).await;
}

#[tokio::test]
async fn master_key_of_stopped_server_is_rotated() {
    let application = FakeApp::start();
    let host = Setup::new()
        .with_application(&["api.example.com"], &application)
        .start()
        .await;
    let (setup, _) = host.terminate().await;
    let file = setup.data().with_extension("key");
    let old = std::fs::read(&file).unwrap();
    setup.command(&["keys", "rotate"]).succeeded();
    let new = std::fs::read(&file).unwrap();
    assert_ne!(old, new);
    std::fs::write(&file, old).unwrap();
    let refused = setup.clone().try_start().await.unwrap_err();
    assert_eq!(refused.code, Some(78), "{}", refused.output);
    std::fs::write(&file, new).unwrap();
    setup.start().await;
}
