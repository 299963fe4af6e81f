//! Files of a release: toolkits and manual, the installer, the service, completions and manual
//! pages.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use harness::{Client, Finished, beside, free_port, host::Setup, listed_commands, wait_until};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{documents::BUILT_TOOLKITS_FOLDER, manual::links};

const PACKAGING_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging");
/// Version and target of the fake release.
const RELEASE_VERSION: &str = "9.9.9";
const RELEASE_TARGET: &str = "test";
const ARCHIVE_NAME: &str = "toolhost-9.9.9-test.tar.gz";

/// Runs a command in a folder. It must succeed.
#[track_caller]
fn run(folder: &Path, program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).current_dir(folder);
    Finished::run(command).succeeded()
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for program in ["toolhost", "toolkit"] {
        let run = |arguments: &[&str]| run(folder.path(), beside(program), arguments);
        let help = run(&["--help"]);
        run(&["man", "pages"]);
        let page = |name: &str| fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
        let main_page = page(&format!("{program}.1"));
        let scripts = ["bash", "zsh", "fish"].map(|shell| run(&["completions", shell]));
        let commands = listed_commands(&help);
        assert!(commands.len() > 12, "{help}");
        for command in commands {
            let name = format!("{program}-{command}").replace('-', "\\-");
            assert!(main_page.contains(&name), "{name}: {main_page}");
            assert!(page(&format!("{program}-{command}.1")).contains(".SH SYNOPSIS"));
            for script in &scripts {
                assert!(script.contains(command), "{command}: {script}");
            }
        }
    }
}

#[test]
fn closed_output_ends_commands_without_report() {
    for (program, code) in [("toolhost", 0), ("toolkit", 141)] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(beside(program));
        command.args(["completions", "bash"]).stdout(writer);
        let ended = command.output().unwrap();
        let report = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.code(), &*report),
            (Some(code), ""),
            "{program}"
        );
    }
}

/// Returns the components of a folder, sorted by name.
fn components(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
    let components = named.filter(|(name, _)| name.ends_with(".wasm"));
    let mut read: Vec<_> = components
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect();
    read.sort();
    read
}

fn packaging(script: &str) -> PathBuf {
    Path::new(PACKAGING_FOLDER).join(script)
}

#[test]
fn archive_and_image_contain_toolkits_and_manual() {
    let folder = tempfile::tempdir().unwrap();
    let programs = beside("toolhost").with_file_name("").display().to_string();
    run(folder.path(), packaging("lay-out"), &[&programs, "archive"]);
    run(folder.path(), packaging("image"), &[&programs, "image"]);
    let built = components(Path::new(BUILT_TOOLKITS_FOLDER));
    assert_eq!(built.len(), 9);
    for prefix in ["archive", "image/usr"] {
        let share = folder.path().join(prefix).join("share");
        assert!(components(&share.join("toolhost/toolkits")) == built);
        let manual = share.join("doc/toolhost");
        for page in ["README.md", "docs/operator.md", "docs/openapi.json"] {
            assert!(manual.join(page).is_file(), "{prefix}: {page}");
        }
        links::check(&manual);
    }
}

#[test]
fn release_answers_first_call_without_rust() {
    let folder = tempfile::tempdir().unwrap();
    let programs = beside("toolhost").with_file_name("").display().to_string();
    let run = |program: &Path, arguments: &[&str]| run(folder.path(), program, arguments);
    run(&packaging("lay-out"), &[&programs, "toolhost"]);
    run(Path::new("tar"), &["-cf", "archive.tar", "toolhost"]);
    fs::create_dir(folder.path().join("unpacked")).unwrap();
    run(Path::new("tar"), &["-xf", "archive.tar", "-C", "unpacked"]);
    // This build is slower than a release, and other tests run concurrently.
    let mut command = Command::new(packaging("try-first-call"));
    command.arg("unpacked/toolhost").env("LIMIT", "600");
    command.current_dir(folder.path());
    let said = Finished::run(command).succeeded();
    let manual = "share/doc/toolhost/README.md";
    for line in ["manual ", manual, "first call after"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    eprintln!("{}", said.lines().last().unwrap());
}

/// A prefix with a server and components, as a release has them.
struct Installed {
    prefix: TempDir,
}

impl Installed {
    fn with(toolkits: &[&str]) -> Self {
        let prefix = tempfile::tempdir().unwrap();
        let folder = prefix.path().join("share/toolhost/toolkits");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(prefix.path().join("bin")).unwrap();
        // A program that this process has written cannot be run while another thread starts one.
        let server = beside("toolhost").display().to_string();
        run(prefix.path(), "cp", &[&server, "bin/toolhost"]);
        let installed = Self { prefix };
        toolkits.iter().for_each(|name| installed.add(name));
        installed
    }

    fn add(&self, toolkit: &str) {
        let file = format!("{toolkit}.wasm");
        let folder = self.prefix.path().join("share/toolhost/toolkits");
        let built = Path::new(BUILT_TOOLKITS_FOLDER).join(&file);
        fs::copy(built, folder.join(file)).unwrap();
    }

    /// Returns settings for this server instead of the one that was built.
    fn setup(&self) -> Setup {
        let program = self.prefix.path().join("bin/toolhost");
        let replaced = format!("shift; exec '{}' \"$@\"", program.display());
        let runner = ["sh", "-c", &replaced, "sh"].map(str::to_owned);
        Setup::new().run_by(runner.to_vec())
    }
}

/// Returns each published version with its state, from the lines of `toolkits list`.
fn published(setup: &Setup) -> Vec<(String, bool)> {
    let said = setup.command(&["toolkits", "list"]).succeeded();
    let lines = said.lines().map(|line| {
        let slug = line.split_whitespace().next().unwrap().to_owned();
        (slug, line.contains("deprecated"))
    });
    lines.collect()
}

#[tokio::test]
async fn removed_toolkit_of_the_release_stays_removed() {
    let installed = Installed::with(&["hackernews"]);
    let host = installed.setup().start().await;
    let removed = ("hackernews".to_owned(), true);
    let listed = host.setup().command(&["toolkits", "list"]).succeeded();
    let version = listed.split_whitespace().nth(1).unwrap();
    let remove = ["toolkits", "remove", "hackernews", version];
    host.setup().command(&remove).succeeded();
    // The next release has another toolkit.
    installed.add("resend");
    let (setup, _) = host.terminate().await;
    let host = setup.start().await;
    let added = ("resend".to_owned(), false);
    assert_eq!(published(host.setup()), [removed, added]);
}

#[tokio::test]
async fn toolkit_being_published_is_not_missing() {
    let installed = Installed::with(&["hackernews"]);
    let listen = format!("127.0.0.1:{}", free_port());
    let client = Client::new(&format!("http://{listen}"), None);
    let setup = installed.setup().with("listen", listen);
    let _server = setup.leave(&["serve"]);
    let seen = Mutex::new(BTreeSet::new());
    let is_published = async || {
        let status = client.try_get_root("/logos/hackernews").await;
        seen.lock().unwrap().extend(status);
        status == Some(200)
    };
    wait_until("the toolkit is published", is_published).await;
    let seen: Vec<_> = seen.into_inner().unwrap().into_iter().collect();
    assert!(seen == [200] || seen == [200, 503], "{seen:?}");
}

#[tokio::test]
async fn named_folder_replaces_toolkits_of_the_release() {
    let installed = Installed::with(&["hackernews"]);
    let empty = tempfile::tempdir().unwrap();
    let setup = installed.setup();
    let setup = setup.with("toolkits", empty.path().to_str().unwrap());
    let host = setup.start().await;
    assert!(published(host.setup()).is_empty());
}

#[tokio::test]
async fn unsigned_toolkits_of_the_release_are_reported() {
    let installed = Installed::with(&["hackernews"]);
    let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    let setup = installed.setup().with("publish.trusted_keys", key);
    let host = setup.start().await;
    let said = host.output();
    assert!(
        said.contains("1 toolkits of the release are not published"),
        "{said}"
    );
    assert!(published(host.setup()).is_empty());
}

/// A change of a release that the installer must notice.
type Tampering<'a> = &'a dyn Fn(&Release);

/// A signed release whose programs do nothing.
struct Release {
    folder: TempDir,
}

impl Release {
    fn new() -> Self {
        let release = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let content = format!("toolhost-{RELEASE_VERSION}-{RELEASE_TARGET}");
        for program in ["toolhost", "toolkit"] {
            let file = release.file(&format!("{content}/bin/{program}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\necho fake\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let share = release.file(&format!("{content}/share/doc/toolhost"));
        fs::create_dir_all(&share).unwrap();
        fs::write(share.join("LICENSE"), "a license").unwrap();
        let archive = ["-czf", ARCHIVE_NAME, &content];
        run(release.folder.path(), "tar", &archive);
        release.list();
        for key in ["publisher.key", "other.key"] {
            release.toolkit(&["sign", "--generate", "--no-password", "--key", key]);
        }
        release.sign("publisher.key");
        release
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the list of checksums.
    fn list(&self) {
        let digest = hex::encode(Sha256::digest(fs::read(self.file(ARCHIVE_NAME)).unwrap()));
        let list = format!("{digest}  {ARCHIVE_NAME}\n");
        fs::write(self.file("SHA256SUMS"), list).unwrap();
    }

    fn sign(&self, key: &str) {
        self.toolkit(&["sign", "SHA256SUMS", "--key", key]);
    }

    fn toolkit(&self, arguments: &[&str]) {
        run(self.folder.path(), beside("toolkit"), arguments);
    }

    /// Replaces the content of a file.
    fn edit(&self, name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) {
        let file = self.file(name);
        fs::write(&file, change(fs::read(&file).unwrap())).unwrap();
    }

    fn install(&self) -> Finished {
        let key = fs::read_to_string(self.file("publisher.pub")).unwrap();
        let mut command = Command::new("sh");
        command
            .arg(packaging("install.sh"))
            .args(["--version", RELEASE_VERSION, "--target", RELEASE_TARGET])
            .args(["--key", key.lines().last().unwrap()])
            .arg("--from")
            .arg(self.folder.path())
            .arg("--prefix")
            .arg(self.file("installed"));
        Finished::run(command)
    }
}

#[test]
fn installer_copies_a_signed_release() {
    let release = Release::new();
    let said = release.install().succeeded();
    assert!(said.contains("toolhost 9.9.9 is installed"), "{said}");
    for program in ["toolhost", "toolkit"] {
        let installed = release.file("installed/bin").join(program);
        assert_eq!(run(release.folder.path(), installed, &[]), "fake\n");
    }
    let license = release.file("installed/share/doc/toolhost/LICENSE");
    assert!(license.is_file());
    // A second run replaces the first.
    release.install().succeeded();
}

#[test]
fn installer_refuses_tampered_releases() {
    let append = |mut bytes: Vec<u8>| {
        bytes.push(b'\n');
        bytes
    };
    let tampered: [(&str, Tampering<'_>); 6] = [
        ("checksum", &|release| release.edit(ARCHIVE_NAME, append)),
        ("signature", &|release| {
            release.edit(ARCHIVE_NAME, append);
            release.list();
        }),
        ("signature", &|release| release.sign("other.key")),
        ("signature", &|release| {
            release.edit("SHA256SUMS.minisig", |signature| {
                let text = String::from_utf8(signature).unwrap();
                text.replace("file:SHA256SUMS", "file:SHA256SUMZ").into()
            });
        }),
        ("SHA256SUMS.minisig", &|release| {
            fs::remove_file(release.file("SHA256SUMS.minisig")).unwrap();
        }),
        ("does not list", &|release| {
            fs::write(release.file("SHA256SUMS"), "").unwrap();
            release.sign("publisher.key");
        }),
    ];
    for (told, tamper) in tampered {
        let release = Release::new();
        tamper(&release);
        let error = release.install().failed();
        assert!(error.contains(told), "{told}: {error}");
        assert!(!release.file("installed").exists(), "{told}");
    }
}

#[test]
fn service_unit_is_valid_and_confined() {
    let folder = tempfile::tempdir().unwrap();
    let unit = fs::read_to_string(packaging("toolhost.service")).unwrap();
    let program = beside("toolhost").display().to_string();
    let unit = unit.replace("/usr/bin/toolhost", &program);
    fs::write(folder.path().join("toolhost.service"), unit).unwrap();
    let analyze = |arguments: &[&str]| run(folder.path(), "systemd-analyze", arguments);
    analyze(&["verify", "--man=no", "./toolhost.service"]);
    // The exposure is 1.4 of 10 by the measure of systemd; an unconfined service has 9.6.
    let security = ["security", "--offline=true", "--threshold=20"];
    analyze(&[&security[..], &["./toolhost.service"]].concat());
}
