//! Export of an installation into one file, from a running or a stopped server; import elsewhere,
//! and refusal of damaged files.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use age::secrecy::ExposeSecret;
use futures::future::join_all;
use harness::{
    Client, FakeApp, Guest, Host, guest,
    host::{Setup, on_postgres},
    unique, wait_until,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use crate::{given, mounts, tool_router_sessions};

const ARCHIVE_PASSPHRASE: &str = "four words that rhyme";
const PROVIDER_ORIGIN: &str = "https://api.example.com";

/// A folder for archives, outside of both installations, with the files that decrypt them.
struct Shelf {
    folder: tempfile::TempDir,
    /// Recipient of the archives, for the identity in the folder. Deriving a key from a passphrase
    /// takes a second.
    recipient: String,
}

impl Shelf {
    fn new() -> Self {
        let identity = age::x25519::Identity::generate();
        let shelf = Self {
            folder: tempfile::tempdir().unwrap(),
            recipient: identity.to_public().to_string(),
        };
        let identity = identity.to_string();
        std::fs::write(shelf.path("identity"), identity.expose_secret()).unwrap();
        std::fs::write(shelf.path("passphrase"), format!("{ARCHIVE_PASSPHRASE}\n")).unwrap();
        shelf
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `export` with the recipient, or `import` with the identity.
    fn run(&self, setup: &Setup, what: &str, name: &str) -> harness::Finished {
        let (file, identity) = (self.path(name), self.path("identity"));
        let [option, value] = match what {
            "export" => ["--recipient", &self.recipient],
            _ => ["--identity", identity.to_str().unwrap()],
        };
        setup.command(&[what, file.to_str().unwrap(), option, value])
    }

    /// Runs `export` or `import` with the passphrase.
    fn run_with_passphrase(&self, setup: &Setup, what: &str, name: &str) -> harness::Finished {
        let (file, passphrase) = (self.path(name), self.path("passphrase"));
        let [file, passphrase] = [&file, &passphrase].map(|path| path.to_str().unwrap());
        setup.command(&[what, file, "--passphrase-file", passphrase])
    }

    /// Kills an import once it has restored the first component. Returns false if the import ended
    /// first.
    fn kill_import(&self, setup: &Setup, name: &str) -> bool {
        let (file, identity) = (self.path(name), self.path("identity"));
        let [file, identity] = [&file, &identity].map(|path| path.to_str().unwrap());
        let mut import = setup.begin(&["import", file, "--identity", identity]);
        let blobs = setup.data().join("store/blobs");
        let has_begun =
            || std::fs::read_dir(&blobs).is_ok_and(|mut entries| entries.next().is_some());
        while !has_begun() && !import.has_ended() {
            std::thread::yield_now();
        }
        !import.has_ended()
    }
}

/// Starts a server with a toolkit that requires a key and an account with that key. Returns the
/// server, the tool and the key.
pub(crate) async fn furnished(application: &FakeApp) -> (Host, String, String) {
    let host = Setup::new()
        .with_application(&["api.example.com"], application)
        .start()
        .await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    let secret = format!("sk-{}", harness::secret());
    let values = json!({ "api_key": secret });
    let project = host.as_project();
    project.connect(&slug, "API_KEY", "default", values).await;
    (host, guest::tool(&slug), secret)
}

/// Asserts that the encrypted secret can be decrypted: the provider receives it.
pub(crate) async fn assert_connected(
    client: &Client,
    application: &FakeApp,
    tool: &str,
    secret: &str,
) {
    let tag = unique(8);
    let arguments = json!({ "url": format!("{PROVIDER_ORIGIN}/echo/{tag}") });
    client.execute(tool, arguments).await.data();
    let seen = &application.seen(&tag)[0];
    assert_eq!(seen.header("authorization"), format!("Bearer {secret}"));
}

#[tokio::test]
async fn export_under_load_holds_all_acknowledged_writes() {
    let application = FakeApp::start();
    let (host, tool, secret) = furnished(&application).await;
    let slug = given::toolkit_of(&tool);
    let shelf = Shelf::new();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (client, stop, slug) = (host.as_project(), stop.clone(), slug.clone());
            async move {
                let mut made = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    made.push(client.auth_config(&slug, "API_KEY", json!({})).await);
                }
                made
            }
        })
        .collect();
    let before = host.as_project().get("/auth_configs?limit=1000").await;
    let exporting = async {
        let setup = host.setup().clone();
        let (shelf, done) = tokio::task::spawn_blocking(move || {
            let done = shelf.run(&setup, "export", "all.age");
            (shelf, done)
        })
        .await
        .unwrap();
        stop.store(true, Ordering::Relaxed);
        done.succeeded();
        shelf
    };
    let (made, shelf) = tokio::join!(join_all(writers), exporting);
    assert!(
        made.iter().all(|made| !made.is_empty()),
        "writers went on: {made:?}"
    );

    let fresh = Setup::new().with_application(&["api.example.com"], &application);
    let told = shelf.run(&fresh, "import", "all.age").succeeded();
    assert!(told.contains("records"), "{told}");
    let moved = fresh.start().await;
    let client = moved.with_key(&host.project_key);
    assert_connected(&client, &application, &tool, &secret).await;
    for config in before["items"].as_array().unwrap() {
        let path = format!("/auth_configs/{}", config["id"].as_str().unwrap());
        client.get(&path).await.expect(200);
    }
    // The export is consistent: a later record of a writer is present only if all its earlier ones
    // are.
    for made in made {
        let mut there = Vec::new();
        for id in &made {
            there.push(client.get(&format!("/auth_configs/{id}")).await.status == 200);
        }
        assert!(
            there.is_sorted_by(|earlier, later| earlier >= later),
            "{there:?}"
        );
    }
    let (setup, _) = moved.terminate().await;
    setup.command(&["verify"]).succeeded();
}

#[tokio::test]
async fn replaced_session_files_are_in_the_export() {
    let host = Setup::embedded().start().await;
    let project = host.as_project();
    let session = tool_router_sessions::create(&project, json!({ "user_id": "amy" })).await;
    let contents = [0, 1].map(|_| unique(20).repeat(50_000));
    for (path, content) in ["a", "b"].into_iter().zip(&contents) {
        mounts::upload(&project, &session, path, content.as_bytes()).await;
    }
    let socket = host.setup().data().join("control.sock");
    let mut export = UnixStream::connect(&socket).await.unwrap();
    export.write_all(b"export\n").await.unwrap();
    // The export reads the records now and contains no later change. It cannot end before its bytes
    // are read here, because each file is larger than the buffer of the socket.
    let mut exported = vec![export.read_u8().await.unwrap()];
    for path in ["a", "b"] {
        mounts::upload(&project, &session, path, b"new").await;
    }
    export.read_to_end(&mut exported).await.unwrap();
    let exported = String::from_utf8_lossy(&exported);
    assert!(contents.iter().all(|content| exported.contains(content)));
}

#[tokio::test]
async fn import_needs_an_empty_destination() {
    let application = FakeApp::start();
    let (host, tool, secret) = furnished(&application).await;
    let key = host.project_key.clone();
    let (setup, _) = host.terminate().await;
    let shelf = Shelf::new();
    shelf.run(&setup, "export", "all.age").succeeded();
    // Nothing is written over.
    for (what, reason) in [("export", "all.age"), ("import", "empty")] {
        let refused = shelf.run(&setup, what, "all.age").failed();
        assert!(refused.contains(reason), "{refused}");
    }
    // The old machine with its key file is gone.
    let fresh = Setup::new().with_application(&["api.example.com"], &application);
    drop(setup);
    shelf.run(&fresh, "import", "all.age").succeeded();
    let moved = fresh.start().await;
    assert_connected(&moved.with_key(&key), &application, &tool, &secret).await;
}

#[tokio::test]
async fn damaged_archive_is_refused_before_writing() {
    let host = Setup::new().start().await;
    let shelf = Shelf::new();
    let exported = shelf.run_with_passphrase(host.setup(), "export", "all.age");
    exported.succeeded();
    let whole = std::fs::read(shelf.path("all.age")).unwrap();
    let text = String::from_utf8_lossy(&whole);
    assert!(
        !text.contains(&host.project_key) && !text.contains("toolhost-key-1"),
        "nothing of it is in the clear"
    );
    let mut changed = whole.clone();
    let at = whole.len() * 2 / 3;
    changed[at] ^= 4;
    std::fs::write(shelf.path("changed.age"), changed).unwrap();
    std::fs::write(shelf.path("cut.age"), &whole[..whole.len() - 1]).unwrap();
    let fresh = Setup::new();
    let untouched = |data: &Path| !data.exists() && !data.with_extension("key").exists();
    for name in ["changed.age", "cut.age"] {
        let refused = shelf.run_with_passphrase(&fresh, "import", name).failed();
        assert!(
            refused.contains(name) && refused.contains("damaged") && untouched(&fresh.data()),
            "{refused}"
        );
    }
    std::fs::write(shelf.path("passphrase"), "four words that reason").unwrap();
    let refused = shelf.run_with_passphrase(&fresh, "import", "all.age");
    let refused = refused.failed();
    assert!(
        refused.contains("passphrase") && untouched(&fresh.data()),
        "{refused}"
    );
}

/// Adds filler that the server does not read to a component.
fn padded(component: Vec<u8>) -> Vec<u8> {
    let filler = wasm_encoder::CustomSection {
        name: "filler".into(),
        data: vec![b'x'; 3 << 20].into(),
    };
    let mut bytes = component;
    wasm_encoder::ComponentSection::append_to_component(&filler, &mut bytes);
    bytes
}

#[tokio::test]
async fn killed_import_prevents_start() {
    let host = Setup::new().start().await;
    let slugs: Vec<_> = (0..6).map(|_| given::slug()).collect();
    for slug in &slugs {
        host.publish(padded(Guest::echo().component()), &guest::manifest(slug))
            .await;
    }
    let shelf = Shelf::new();
    shelf.run(host.setup(), "export", "all.age").succeeded();
    let mut killed = None;
    for _ in 0..20 {
        let target = Setup::new();
        if shelf.kill_import(&target, "all.age") {
            killed = Some(target);
            break;
        }
    }
    let target = killed.expect("an import is slower than a signal");
    let refused = target.clone().try_start().await.unwrap_err();
    assert_eq!(refused.code, Some(78), "{}", refused.output);
    let repair = if on_postgres() {
        "import again into an empty database"
    } else {
        "move it away and import again"
    };
    assert!(refused.output.contains(repair), "{}", refused.output);
    // The command is followed as the message states it.
    let target = if on_postgres() {
        Setup::new()
    } else {
        std::fs::rename(target.data(), target.data().with_extension("away")).unwrap();
        target
    };
    shelf.run(&target, "import", "all.age").succeeded();
    let moved = target.start().await;
    let client = moved.with_key(&host.project_key);
    for slug in slugs {
        client.execute(&guest::tool(&slug), json!({})).await.data();
    }
}

#[tokio::test]
async fn short_or_missing_passphrase_is_refused() {
    let setup = Setup::new().start().await.kill();
    let shelf = Shelf::new();
    std::fs::write(shelf.path("passphrase"), "short").unwrap();
    for (refused, reason) in [
        (
            shelf.run_with_passphrase(&setup, "export", "all.age"),
            "12 characters",
        ),
        (setup.command(&["export", "all.age"]), "--passphrase-file"),
        (
            setup.command(&["export", "all.age", "--recipient", "nobody"]),
            "nobody",
        ),
    ] {
        let said = refused.failed();
        assert!(said.contains(reason), "{said}");
    }
}

#[tokio::test]
async fn export_during_shutdown_is_atomic() {
    let host = Setup::new().start().await;
    let tool = given::echo(&host).await;
    for _ in 0..50 {
        let arguments = json!({ "word": unique(2_000) });
        host.as_project().execute(&tool, arguments).await.data();
    }
    let shelf = Shelf::new();
    let setup = host.setup().clone();
    let exporting = std::thread::spawn(move || (shelf.run(&setup, "export", "all.age"), shelf));
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status}");
    let (done, shelf) = exporting.join().unwrap();
    assert_eq!(
        done.code == Some(0),
        shelf.path("all.age").exists(),
        "{done:?}"
    );
    let mut left = std::fs::read_dir(shelf.folder.path()).unwrap();
    assert!(left.all(|entry| entry.unwrap().path().extension() != Some("partial".as_ref())));
    setup.command(&["verify"]).succeeded();
}

#[tokio::test]
async fn start_after_import_writes_the_keys() {
    let host = Setup::new().start().await;
    let shelf = Shelf::new();
    shelf.run(host.setup(), "export", "all.age").succeeded();
    let fresh = Setup::new();
    let told = shelf.run(&fresh, "import", "all.age").succeeded();
    let env_file = fresh.data().with_extension("env");
    let file = env_file.display().to_string();
    assert!(
        told.contains(&format!("writes the keys to {file}")),
        "{told}"
    );
    if on_postgres() {
        assert!(told.contains("the database now contains"), "{told}");
    }
    let moved = fresh.start().await;
    wait_until("the start names the file of the keys", async || {
        moved.output().contains(&file)
    })
    .await;
    let expected = (&host.org_key, &host.project_key);
    assert_eq!((&moved.org_key, &moved.project_key), expected);
    let command = moved.setup().command(&["projects", "list"]);
    assert!(command.succeeded().contains("demo"));
    // A file that the operator deletes stays deleted, and the hint about it is true.
    let (setup, _) = moved.terminate().await;
    std::fs::remove_file(&env_file).unwrap();
    let again = setup.start().await;
    wait_until("the start names the command for keys", async || {
        again.output().contains("`toolhost keys show` prints them")
    })
    .await;
    assert!(!env_file.exists());
    let shown = again.setup().command(&["keys", "show"]).succeeded();
    assert!(shown.contains(&host.project_key), "{shown}");
}
