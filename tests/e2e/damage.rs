//! A damaged data directory: the server starts with all records, or names the broken file and does
//! not start.

use std::path::Path;

use futures::{StreamExt, stream};
pub(crate) use harness::hunt::files_below;
use harness::{
    Dice, Guest, Host, guest,
    host::{Setup, size},
};
use serde_json::json;

use crate::given;

/// Exit code `EX_CONFIG`: the operator must act.
const EX_CONFIG: i32 = 78;

#[derive(Debug, Clone, Copy)]
enum Harm {
    Truncate,
    Flip,
    Zero,
    Delete,
    Swap,
    Leave,
}

/// Weights by which kinds of damage are drawn.
const HARM_WEIGHTS: [(Harm, u64); 6] = [
    (Harm::Truncate, 25),
    (Harm::Flip, 35),
    (Harm::Zero, 15),
    (Harm::Delete, 10),
    (Harm::Swap, 10),
    (Harm::Leave, 5),
];

/// Returns a stopped server with a few records of every kind.
async fn filled(records: usize) -> (Setup, Vec<String>) {
    let host = Setup::embedded().start().await;
    let mut manifest = guest::manifest_with_key("kept", given::bearer());
    manifest["tools"][0]["no_auth"] = json!(true);
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.as_project();
    let config = project.auth_config("kept", "API_KEY", json!({})).await;
    let work = stream::iter(0..records).map(|record| {
        let (project, config) = (project.clone(), config.clone());
        async move {
            let user = format!("user-{record:04}");
            given::made_account(&project, &config, &user, &harness::secret()).await;
            let arguments = json!({ "record": record, "filler": "x".repeat(500) });
            project.execute("KEPT_RUN", arguments).await.data();
        }
    });
    work.buffer_unordered(8).collect::<Vec<_>>().await;
    let dump = dump(&host).await;
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status}");
    (setup, dump)
}

/// Returns all readable content, as in the responses.
async fn dump(host: &Host) -> Vec<String> {
    let project = host.as_project();
    let mut all = Vec::new();
    for path in [
        "/connected_accounts?limit=1000",
        "/auth_configs",
        "/toolkits",
        "/tools",
    ] {
        all.push(project.get(path).await.expect(200).text);
    }
    let projects = host.as_org().get("/org/owner/project/list").await;
    all.push(projects.expect(200).text);
    let mut cursor = json!(null);
    loop {
        let query = json!({ "limit": 100, "cursor": cursor });
        let page = project.post("/logs/tool_execution", &query).await;
        let page = page.expect(200);
        for log in page["logs"].as_array().unwrap() {
            all.push(project.log(&log["id"]).await.text);
        }
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            return all;
        }
    }
}

/// Damages one file of the folder and returns a description of the damage.
fn harm(data: &Path, other: &Path, dice: &mut Dice) -> String {
    let files: Vec<_> = files_below(data)
        .into_iter()
        .filter(|path| path.metadata().unwrap().len() > 0)
        .collect();
    // Half of the cases damage the database file, which holds the records.
    let database = files.iter().max_by_key(|path| {
        let in_store = !path.components().any(|part| {
            ["cache", "artifacts", "blobs"]
                .iter()
                .any(|name| part.as_os_str() == *name)
        });
        (in_store, path.metadata().unwrap().len())
    });
    let path = match dice.below(2) {
        0 => database.unwrap().clone(),
        _ => files[dice.below(files.len() as u64) as usize].clone(),
    };
    let mut share = dice.below(100);
    let mut kind = Harm::Leave;
    for (candidate, size) in HARM_WEIGHTS {
        if share < size {
            kind = candidate;
            break;
        }
        share -= size;
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let at = dice.below(bytes.len() as u64) as usize;
    match kind {
        Harm::Truncate => bytes.truncate(at),
        Harm::Flip => bytes[at] ^= 1 << dice.below(8),
        Harm::Zero => {
            let start = at / 4096 * 4096;
            let end = (start + 4096).min(bytes.len());
            bytes[start..end].fill(0);
        }
        Harm::Swap => {
            let twin = other.join(path.strip_prefix(data).unwrap());
            bytes = std::fs::read(&twin).unwrap_or_default();
        }
        Harm::Delete | Harm::Leave => {}
    }
    match kind {
        Harm::Delete => std::fs::remove_file(&path).unwrap(),
        Harm::Leave => std::fs::write(path.with_extension("new"), &bytes[..at]).unwrap(),
        _ => std::fs::write(&path, bytes).unwrap(),
    }
    format!(
        "{kind:?} of {} at {at}",
        path.strip_prefix(data).unwrap().display()
    )
}

/// Damages a copy of the folder and starts a server on it. Returns true if the server started, or a
/// description of the failure.
async fn case(
    filled: &Setup,
    dump_before: &[String],
    other: &Path,
    seed: u64,
) -> Result<bool, String> {
    let mut dice = Dice::new(seed);
    let setup = filled.copy();
    let what = format!("seed {seed}: {}", harm(&setup.data(), other, &mut dice));
    let data = setup.data().display().to_string();
    match setup.try_start().await {
        Ok(host) => {
            if dump(&host).await != dump_before {
                return Err(format!(
                    "{what}: it started with something else than before"
                ));
            }
            let (project, arguments) = (host.as_project(), json!({ "a": 1 }));
            let ran = project.execute("KEPT_RUN", arguments.clone()).await;
            if ran.status == 200 && ran["data"] == arguments {
                Ok(true)
            } else {
                Err(format!("{what}: a tool does not run: {}", ran.text))
            }
        }
        Err(refused) => {
            let line = refused.output.lines().last().unwrap_or_default();
            let names = line.starts_with("toolhost: ")
                && line.contains(&data)
                && line.contains("restore a backup");
            let has_panicked = refused.output.contains("panicked at");
            if refused.code == Some(EX_CONFIG) && names && !has_panicked {
                Ok(false)
            } else {
                Err(format!("{what}: {:?}, last line: {line}", refused.code))
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_folder_never_starts_with_less() {
    let (before, dump_before) = filled(120).await;
    let (other, _) = filled(3).await;
    let other = other.data();
    let seed = Dice::seed() >> 16;
    let number_of_cases = size(60, 2_000);
    let cases = stream::iter(0..number_of_cases)
        .map(|number| case(&before, &dump_before, &other, seed + number));
    let ends: Vec<_> = cases.buffer_unordered(2).collect().await;
    let wrong: Vec<_> = ends
        .iter()
        .filter_map(|end| end.as_ref().err().map(String::as_str))
        .collect();
    let started = ends.iter().filter(|end| **end == Ok(true)).count();
    eprintln!(
        "{number_of_cases} damaged folders: {started} started with everything, {} refused",
        ends.len() - started - wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} of {number_of_cases} ended badly:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn a_folder_in_use_is_refused_by_name() {
    let host = Setup::embedded().start().await;
    let second = host
        .setup()
        .clone()
        .try_start()
        .await
        .expect_err("two servers on one folder");
    assert!(second.code.is_some_and(|code| code != 0), "{second:?}");
    assert!(
        second.output.contains("in use by another process"),
        "{second:?}"
    );
    host.as_project().project_id().await;
}

#[tokio::test]
async fn missing_master_key_prevents_start() {
    use std::os::unix::fs::PermissionsExt;
    let (before, dump_before) = filled(5).await;
    let copy = before.copy();
    let key = copy.data().with_extension("key");
    let kept = std::fs::read(&key).unwrap();
    let mut wrong = kept.clone();
    let middle = wrong.len() / 2;
    wrong[middle] = if wrong[middle] == b'0' { b'1' } else { b'0' };
    for spoilt in [Some(wrong), Some(Vec::new()), None] {
        match &spoilt {
            Some(bytes) => std::fs::write(&key, bytes).unwrap(),
            None => std::fs::remove_file(&key).unwrap(),
        }
        let refused = copy
            .clone()
            .try_start()
            .await
            .expect_err("it started with a wrong key");
        assert_eq!(refused.code, Some(EX_CONFIG), "{refused:?}");
        assert!(!refused.output.contains("panicked at"), "{refused:?}");
    }
    std::fs::write(&key, kept).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(dump(&copy.start().await).await, dump_before);
}

#[tokio::test]
async fn files_with_secrets_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let host = Setup::embedded().start().await;
    for extension in ["key", "env"] {
        let path = host.data().with_extension(extension);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
    let mode = std::fs::metadata(host.data()).unwrap().permissions().mode() & 0o077;
    assert_eq!(mode, 0, "{}", host.data().display());
}

#[tokio::test]
async fn folder_of_a_newer_version_is_refused() {
    let (setup, _) = Setup::embedded().start().await.terminate().await;
    let head = setup.data().join("store/HEAD");
    let mut bytes = std::fs::read(&head).unwrap();
    for slot in bytes.chunks_mut(4096) {
        assert_eq!(&slot[..8], b"thHEAD1\n");
        slot[6] = b'2';
    }
    std::fs::write(&head, &bytes).unwrap();
    let files = || {
        files_below(&setup.data().join("store"))
            .into_iter()
            .map(|path| (std::fs::read(&path).unwrap(), path))
    };
    let before: Vec<_> = files().collect();
    let refused = setup.clone().try_start().await.unwrap_err();
    assert_eq!(refused.code, Some(EX_CONFIG), "{}", refused.output);
    for said in [
        "newer version",
        "start that version",
        &head.display().to_string(),
    ] {
        assert!(refused.output.contains(said), "{}", refused.output);
    }
    assert!(files().eq(before));
}
