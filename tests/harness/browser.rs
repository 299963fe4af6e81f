//! A real browser in a process of its own, moved by keys alone.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::host::{Process, spawn};

/// A browser on a page. Dropped, it is killed.
#[derive(Debug)]
pub struct Browser {
    /// The page, as somebody meets it: `title`, what is `focused` with its `label`, `description` and `outline`, an `alert`,
    /// whether it is too `wide`, its `url`, and `problems` that the browser has with it.
    pub page: Value,
    orders: ChildStdin,
    told: BufReader<ChildStdout>,
    _pictures: TempDir,
    _process: Process,
}

impl Browser {
    /// Opens an address. Pictures go into a folder that goes with the browser, or into what `TEST_PICTURES` names.
    ///
    /// # Panics
    /// When there is no browser: `tests/setup` fetches one.
    pub fn open(url: &str) -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        #[expect(clippy::disallowed_methods, reason = "the tests' settings are read here")]
        let pictures = std::env::var_os("TEST_PICTURES").map_or(folder.path().to_owned(), Into::into);
        let mut command = Command::new("node");
        command.arg(tests.join("node/browser.mjs")).arg(tests.join("../target/parts/node"));
        command.args(["/usr/bin/chromium", url]).arg(pictures);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process(spawn(command));
        let orders = process.0.stdin.take().expect("its input is a pipe");
        let told = BufReader::new(process.0.stdout.take().expect("its output is a pipe"));
        let mut browser = Self { page: Value::Null, orders, told, _pictures: folder, _process: process };
        browser.look();
        browser
    }

    /// Types a text where the focus is.
    pub fn write(&mut self, text: &str) {
        self.order("type", text);
    }

    /// Presses a key, `Tab` or `Enter` for example.
    pub fn press(&mut self, key: &str) {
        self.order("press", key);
    }

    /// Presses a key that leads to another page, and waits for that.
    pub fn send(&mut self, key: &str) {
        self.order("send", key);
    }

    /// Takes a picture.
    pub fn picture(&mut self, name: &str) {
        self.order("picture", name);
    }

    /// What the page says of something; empty when it says nothing.
    pub fn says(&self, what: &str) -> &str {
        self.page[what].as_str().unwrap_or_default()
    }

    fn order(&mut self, what: &str, argument: &str) {
        writeln!(self.orders, "{what} {argument}").expect("the browser listens");
        self.look();
    }

    fn look(&mut self) {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("the browser answers");
        self.page = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the browser has ended: {line}"));
    }
}
