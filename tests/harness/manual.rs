//! Executes the manuals literally: every command of a page is typed into one shell, and every file
//! shown is written.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

use crate::{
    process::{Process, read, spawn},
    wait_for,
};

/// Time limit for processes left running to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// An instruction of a page to its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Commands, typed together.
    Type(String),
    /// A file with its whole content. Its path is alone on the preceding line.
    Write(String, String),
    /// Commands that a test cannot run, and the reason, given in a preceding comment
    /// `<!-- not run: … -->`.
    Leave(String, String),
}

/// Returns the steps of a page in order: blocks of `sh`, and other blocks that follow the path of a
/// file.
pub fn steps(page: &Path) -> Vec<Step> {
    let text =
        fs::read_to_string(page).unwrap_or_else(|cause| panic!("{}: {cause}", page.display()));
    let mut steps = Vec::new();
    let mut before = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            if !line.trim().is_empty() {
                before = line;
            }
            continue;
        };
        let block: String = lines
            .by_ref()
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        let within = |start, end| {
            before
                .strip_prefix(start)
                .and_then(|rest: &str| rest.strip_suffix(end))
        };
        match (language, within("`", "`")) {
            ("sh", _) => steps.push(match within("<!-- not run: ", " -->") {
                None => Step::Type(block),
                Some(reason) => Step::Leave(block, reason.to_owned()),
            }),
            (_, Some(file)) => steps.push(Step::Write(file.to_owned(), block)),
            _ => {}
        }
        before = "";
    }
    steps
}

/// Returns the rows of a page's tables that start with code, for example with a command or a
/// setting.
pub fn rows(page: &Path) -> Vec<Row> {
    let text =
        fs::read_to_string(page).unwrap_or_else(|cause| panic!("{}: {cause}", page.display()));
    text.lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            line.trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect()
}

/// Cells of a row, from left to right.
pub type Row = Vec<String>;

/// A shell that runs commands one after another and ends at the first failure.
#[derive(Debug)]
pub struct Shell {
    process: Process,
    input: ChildStdin,
    output: NamedTempFile,
    typed: usize,
    folder: PathBuf,
}

impl Shell {
    /// Opens a shell in a folder with these environment variables.
    pub fn open(folder: &Path, variables: &[(&str, String)]) -> Self {
        let mut command = Command::new("bash");
        command
            .args(["-eu", "-o", "pipefail"])
            .current_dir(folder)
            .envs(variables.iter().cloned());
        let output = NamedTempFile::new().expect("a temporary file can be made");
        // Both streams share one file offset, so neither overwrites the other.
        let both = output.reopen().expect("a temporary file can be opened");
        command
            .stdin(Stdio::piped())
            .stdout(both.try_clone().expect("a file can be shared"))
            .stderr(both);
        let mut process = Process(spawn(command));
        let mut input = process.0.stdin.take().expect("its input is a pipe");
        // Processes left running end with the shell, and clean up, even if a command failed.
        input
            .write_all(b"trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
            .expect("the shell takes what is typed");
        Self {
            process,
            input,
            output,
            typed: 0,
            folder: folder.to_owned(),
        }
    }

    /// Executes a step and returns its output.
    pub async fn follow(&mut self, step: &Step) -> String {
        match step {
            Step::Type(commands) => self.run(commands).await,
            Step::Leave(..) => String::new(),
            Step::Write(path, content) => {
                self.run(&format!(
                    "mkdir -p \"$(dirname {path})\"\ncat > {path} <<'THE-END'\n{content}THE-END"
                ))
                .await
            }
        }
    }

    /// Runs commands until they end and returns their output.
    pub async fn run(&mut self, commands: &str) -> String {
        let from = self.printed().len();
        self.typed += 1;
        let mark = format!("-- {} --", self.typed);
        write!(self.input, "{commands}\necho '{mark}'\n").expect("the shell takes what is typed");
        let mut ended = false;
        wait_for(crate::BUILD_TIMEOUT, &format!("`{commands}` ends"), || {
            ended = self
                .process
                .0
                .try_wait()
                .expect("the shell can be asked")
                .is_some();
            std::future::ready(ended || self.printed()[from..].contains(&mark))
        })
        .await;
        let said = self.printed().split_off(from);
        assert!(!ended, "`{commands}` failed:\n{said}");
        said.replace(&mark, "")
    }

    /// Leaves a command running, as in another terminal, and waits until it has printed a string.
    /// Returns the file that holds its output.
    pub async fn leave(&mut self, command: &str, until: &str) -> PathBuf {
        let file = self.folder.join(format!("terminal-{}", self.typed));
        self.run(&format!(
            "{} > {} 2>&1 &",
            command.trim_end(),
            file.display()
        ))
        .await;
        self.until(&file, until).await;
        file
    }

    /// Waits until a running command has printed a string.
    pub async fn until(&self, terminal: &Path, text: &str) {
        let printed = || fs::read_to_string(terminal).unwrap_or_default();
        wait_for(
            crate::BUILD_TIMEOUT,
            &format!("`{text}` is printed"),
            || std::future::ready(printed().contains(text)),
        )
        .await;
    }

    fn printed(&self) -> String {
        read(&self.output)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // A busy shell is killed below.
        let _ = self.input.write_all(b"exit\n");
        let begun = Instant::now();
        while matches!(self.process.0.try_wait(), Ok(None)) && begun.elapsed() < STOP_TIMEOUT {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
