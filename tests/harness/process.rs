//! Programs that tests run, and processes that do not outlive them.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{LazyLock, mpsc},
    time::Duration,
};

use tempfile::NamedTempFile;

/// Folders of programs: below `target/parts`, where `tests/setup` puts those that are not installed,
/// and of the system.
const PROGRAM_FOLDERS: [&str; 5] = [
    "../target/parts/usr/bin",
    "../target/parts/usr/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
];

/// A process that does not outlive this value: dropping the value kills the process without a
/// shutdown.
#[derive(Debug)]
pub struct Process(pub Child);

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; none if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Process {
    /// Starts a command without input, whose output is not needed.
    pub(crate) fn silent(mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(spawn(command))
    }

    /// Starts a command without input. Returns the file that receives its output, too.
    pub(crate) fn logged(mut command: Command) -> (Self, NamedTempFile) {
        let output = NamedTempFile::new().expect("a temporary file can be made");
        let end = || output.as_file().try_clone().expect("a file can be shared");
        command.stdin(Stdio::null()).stdout(end()).stderr(end());
        (Self(spawn(command)), output)
    }

    /// Returns true if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// Returns the status of the process if it has ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a process can be asked")
    }

    /// Waits until the process has ended.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        loop {
            match self.status() {
                Some(status) => return status,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    pub(crate) fn end(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Finished {
    /// Runs a command without a terminal until it ends.
    pub fn run(mut command: Command) -> Self {
        let output = command.stdin(Stdio::null()).output();
        output
            .unwrap_or_else(|cause| panic!("{command:?}: {cause}"))
            .into()
    }

    /// Runs a script of the folder of tests with these libraries, which `tests/setup` fetches, and a
    /// file with this input. Returns its standard output.
    pub(crate) fn run_script(
        program: &str,
        script: &str,
        libraries: &[&str],
        input: &[u8],
    ) -> String {
        let mut file = NamedTempFile::new().expect("a temporary file can be made");
        file.write_all(input)
            .expect("a temporary file can be written");
        let mut command = Command::new(program);
        command
            .arg(tests(script))
            .args(libraries.iter().map(|library| fetched(library)))
            .arg(file.path());
        Self::run(command).succeeded()
    }

    /// Returns the standard output after asserting that the command succeeded.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.stdout
    }

    /// Returns the standard error after asserting that the command failed.
    #[track_caller]
    pub fn failed(self) -> String {
        assert_eq!(self.code, Some(1), "{self:#?}");
        self.stderr
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns a path in the folder of tests.
pub(crate) fn tests(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns a file or folder below `target` that `tests/setup` fetches.
pub fn fetched(path: &str) -> PathBuf {
    let path = tests("../target").join(path);
    let shown = path.display();
    assert!(
        path.exists(),
        "{shown} is missing: `tests/setup` fetches it"
    );
    path
}

/// Returns the path of an installed program, or of one that `tests/setup` fetches.
pub(crate) fn program(name: &str) -> PathBuf {
    let paths = PROGRAM_FOLDERS.map(|folder| tests(folder).join(name));
    let found = paths.into_iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: `tests/setup` fetches it"))
}

/// Returns the path of a binary that cargo built next to this program.
pub fn beside(name: &str) -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let folders = program.ancestors().skip(1).take(2);
    let found = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("there is no `{name}` to test: `cargo build --workspace` first"))
}

/// Starts a process, which is killed when this process ends, for any reason.
pub(crate) fn spawn(mut command: Command) -> Child {
    type SpawnRequest = (Command, mpsc::Sender<std::io::Result<Child>>);
    // The kernel ties the child to the thread that started it, not to the process. This thread
    // therefore runs until the process ends.
    static SPAWN_THREAD: LazyLock<mpsc::Sender<SpawnRequest>> = LazyLock::new(|| {
        let (orders, inbox) = mpsc::channel::<SpawnRequest>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                reply.send(command.spawn()).ok();
            }
        });
        orders
    });
    #[expect(
        unsafe_code,
        reason = "one system call between fork and exec, and it allocates nothing"
    )]
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let (reply, answer) = mpsc::channel();
    let ordered = SPAWN_THREAD.send((command, reply));
    ordered.expect("the thread never ends");
    let started = answer.recv().expect("the thread never ends");
    started.expect("the program can be started")
}

/// Returns the content printed into a file so far.
pub(crate) fn read(output: &NamedTempFile) -> String {
    let printed = std::fs::read(output.path()).expect("the output can be read");
    String::from_utf8_lossy(&printed).into_owned()
}

/// Sends a signal by name.
pub(crate) fn signal(name: &str, pid: u32) {
    let mut command = Command::new("kill");
    command.arg(format!("-{name}")).arg(pid.to_string());
    command.status().expect("`kill` can be run");
}
