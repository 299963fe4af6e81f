//! `toolhost doctor` and `toolhost health` tell the truth, also next to a running server, and
//! change nothing.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use harness::{
    Host, LimitedDisk, Postgres,
    host::{Setup, on_postgres},
};

/// Modification time of a path, and its content if it is a file.
type State = (i64, i64, Option<Vec<u8>>);

/// Reads everything in the folder of a server, and the rows of its database.
fn state(setup: &Setup) -> (BTreeMap<PathBuf, State>, Option<Vec<u8>>) {
    let mut found = BTreeMap::new();
    let mut folders = vec![setup.data().parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), path_state(&path, fs::read(&path).ok()));
            }
        }
        found.insert(folder.clone(), path_state(&folder, None));
    }
    (
        found,
        on_postgres().then(|| setup.database().rows().unwrap()),
    )
}

fn path_state(path: &Path, content: Option<Vec<u8>>) -> State {
    let about = fs::metadata(path).unwrap();
    (about.mtime(), about.mtime_nsec(), content)
}

/// Returns the address that a server listens on.
fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

#[tokio::test]
async fn doctor_leaves_an_empty_database_empty() {
    let setup = Setup::embedded().on(Postgres::shared().database(None));
    let said = setup.command(&["doctor"]).succeeded();
    assert!(
        said.contains("the first start creates its tables"),
        "{said}"
    );
    let objects = "select (select count(*) from pg_class where relnamespace = 'public'::regnamespace) \
                   + (select count(*) from pg_proc where pronamespace = 'public'::regnamespace)";
    assert_eq!(setup.database().say(objects), ["0"]);
    assert!(!setup.data().exists());
}

#[tokio::test]
async fn doctor_changes_nothing_of_a_stopped_server() {
    let (setup, _) = Setup::new().start().await.terminate().await;
    let before = state(&setup);
    let said = setup.command(&["doctor"]).succeeded();
    let told = match on_postgres() {
        true => "has every table and index",
        false => "`toolhost verify` reads all",
    };
    assert!(said.contains(told), "{said}");
    assert!(state(&setup) == before, "{said}");
}

#[tokio::test]
async fn doctor_creates_nothing_in_an_empty_folder() {
    let setup = Setup::embedded();
    fs::create_dir(setup.data()).unwrap();
    fs::set_permissions(setup.data(), fs::Permissions::from_mode(0o700)).unwrap();
    let said = setup.command(&["doctor"]).succeeded();
    assert!(
        said.contains("has no store; the first start creates it"),
        "{said}"
    );
    assert_eq!(fs::read_dir(setup.data()).unwrap().count(), 0);
}

#[tokio::test]
async fn doctor_reports_damage_and_leaves_it() {
    let (setup, _) = Setup::embedded().start().await.terminate().await;
    let head = setup.data().join("store/HEAD");
    let length = usize::try_from(fs::metadata(&head).unwrap().len()).unwrap();
    fs::write(&head, vec![7; length]).unwrap();
    let doctor = setup.command(&["doctor"]);
    assert!(
        doctor.code == Some(1) && doctor.stdout.contains("HEAD: it is damaged"),
        "{doctor:?}"
    );
    assert_eq!(fs::read(&head).unwrap(), vec![7; length]);
}

#[tokio::test]
async fn doctor_beside_a_running_server_finds_no_problem() {
    let host = Setup::new().start().await;
    let said = host.setup().command(&["doctor"]).succeeded();
    assert!(said.contains("it is ready"), "{said}");
    assert!(!said.contains("another value"), "{said}");
    for advice in ["stop", "move", "another address"] {
        assert!(!said.contains(advice), "{advice}: {said}");
    }
    let setup = host.setup().clone().with("listen", "127.0.0.1:1");
    let said = setup.command(&["doctor"]).succeeded();
    assert!(said.contains("with another value of `listen`"), "{said}");
    // The server logs nothing about the checks.
    assert!(
        !host.output().contains("control socket"),
        "{}",
        host.output()
    );
    host.as_project().project_id().await;
}

#[tokio::test]
async fn doctor_suggests_another_address_for_a_used_one() {
    let host = Host::shared().await;
    let foreign = &Host::application().origin;
    for (used, told) in [
        (&host.url, "or `listen` to another address"),
        (foreign, "another program accepts connections"),
    ] {
        let doctor = Setup::embedded()
            .with("listen", address(used))
            .command(&["doctor"]);
        assert!(
            doctor.code == Some(1) && doctor.stdout.contains(told),
            "{doctor:?}"
        );
        assert!(!doctor.stdout.contains("stop"), "{doctor:?}");
    }
}

#[tokio::test]
async fn doctor_names_the_announced_address() {
    let host = Setup::new().start().await;
    let setup = host.setup().clone().with("listen", "0.0.0.0:1");
    let said = setup.command(&["doctor"]).succeeded();
    let expected = [
        format!("as {}: it is ready", host.url),
        format!("clients receive {} as", host.url),
    ];
    for line in expected {
        assert!(said.contains(&line), "{line}: {said}");
    }
    // Without a running server, it is the one that the next start announces.
    let (setup, _) = host.terminate().await;
    let said = setup.with("listen", "0.0.0.0:1").command(&["doctor"]);
    let announced = "clients receive http://127.0.0.1:1 as";
    assert!(said.stdout.contains(announced), "{said:?}");
    let setup = Setup::new().with("public_url", "https://tools.example.com/");
    let host = setup.start().await;
    let said = host.setup().command(&["doctor"]).succeeded();
    for line in [
        "as https://tools.example.com, listens on 127.0.0.1:",
        "it is ready",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[tokio::test]
async fn doctor_reports_free_space_and_full_disk() {
    let setup = Setup::embedded();
    let Some(disk) = LimitedDisk::below(&setup, 64) else {
        eprintln!("no small disk can be made here");
        return;
    };
    let setup = disk.hold(setup);
    let said = setup.command(&["doctor"]).succeeded();
    let line = said
        .lines()
        .find(|line| line.contains("of its disk are free"));
    assert!(line.is_some_and(|line| line.contains(" MiB")), "{said}");
    // The server refuses writes below 8 MiB. The last bytes are refused by the disk.
    for (left, told) in [(4 << 20, "4 MiB are free"), (0, "0 bytes are free")] {
        disk.fill_leaving(left);
        let doctor = setup.command(&["doctor"]);
        let full = doctor.stdout.lines().find(|line| line.contains("is full"));
        assert!(
            doctor.code == Some(1) && full.is_some_and(|line| line.contains(told)),
            "{doctor:?}"
        );
    }
}

#[tokio::test]
async fn doctor_reports_a_folder_without_access() {
    let setup = Setup::embedded().with("data", "/proc/toolhost/data");
    let doctor = setup.command(&["doctor"]);
    assert!(
        doctor.code == Some(1) && doctor.stdout.contains("cannot write in /proc"),
        "{doctor:?}"
    );
}

#[tokio::test]
async fn folder_of_other_programs_keeps_its_mode() {
    let setup = Setup::embedded();
    fs::create_dir(setup.data()).unwrap();
    fs::set_permissions(setup.data(), fs::Permissions::from_mode(0o755)).unwrap();
    let doctor = setup.command(&["doctor"]);
    assert!(
        doctor.code == Some(1)
            && doctor
                .stdout
                .contains("set `data` to a new folder inside it"),
        "{doctor:?}"
    );
    assert!(!doctor.stdout.contains("chmod"), "{doctor:?}");
}

#[tokio::test]
async fn health_tells_readiness_by_its_exit_code() {
    let host = Host::shared().await;
    let ask = |listen: &str| {
        Setup::embedded()
            .with("listen", listen)
            .command(&["health"])
    };
    let said = ask(address(&host.url)).succeeded();
    assert!(said.contains("is ready"), "{said}");
    let foreign = ask(address(&Host::application().origin)).failed();
    assert!(
        foreign.contains("does not respond as a server"),
        "{foreign}"
    );
    let missing = ask("127.0.0.1:1").failed();
    assert!(
        missing.contains("no server accepts connections"),
        "{missing}"
    );
}

#[tokio::test]
async fn health_finds_server_of_data_directory() {
    let host = Setup::new().start().await;
    let setup = host.setup().clone().with("listen", "127.0.0.1:1");
    let said = setup.command(&["health"]).succeeded();
    assert!(said.contains(address(&host.url)), "{said}");
    setup
        .command(&["health", "--listen", "127.0.0.1:1"])
        .failed();
}
