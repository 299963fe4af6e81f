//! A real browser in a process of its own, operated with the keyboard alone.

use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    fetched,
    host::variable,
    process::{Process, spawn, tests},
};

/// A browser on a page. Dropping it kills the process.
#[derive(Debug)]
pub struct Browser {
    /// The page as presented to a user: `title`, the `focused` element with its `label`,
    /// `description` and `outline`, an `alert`, its `background`, the number of `images` that were
    /// loaded, the flag `wide` for an overly wide page, `url`, `problems` reported by the browser,
    /// and the `violations` of the last audit.
    pub page: Value,
    orders: ChildStdin,
    told: BufReader<ChildStdout>,
    _pictures: TempDir,
    _process: Process,
}

impl Browser {
    /// Opens an address. Screenshots go into a folder deleted with the browser, or into the folder
    /// that `TEST_PICTURES` names.
    pub fn open(url: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let pictures = variable("TEST_PICTURES").map_or(folder.path().to_owned(), Into::into);
        let mut command = Command::new("node");
        command
            .arg(tests("node/browser.mjs"))
            .arg(fetched("parts/node"));
        command.args(["/usr/bin/chromium", url]).arg(pictures);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process(spawn(command));
        let orders = process.0.stdin.take().expect("its input is a pipe");
        let told = BufReader::new(process.0.stdout.take().expect("its output is a pipe"));
        let mut browser = Self {
            page: Value::Null,
            orders,
            told,
            _pictures: folder,
            _process: process,
        };
        browser.look();
        browser
    }

    /// Gives a command that `tests/node/browser.mjs` describes, for example `press` with the key `Tab`.
    pub fn order(&mut self, command: &str, argument: &str) {
        writeln!(self.orders, "{command} {argument}").expect("the browser listens");
        self.look();
    }

    /// Returns the violations of accessibility that axe-core finds on the page.
    pub fn audit(&mut self) -> Value {
        self.order("audit", "");
        self.page["violations"].clone()
    }

    /// Returns a string property of the page, or an empty string if it is missing.
    pub fn says(&self, what: &str) -> &str {
        self.page[what].as_str().unwrap_or_default()
    }

    fn look(&mut self) {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("the browser answers");
        self.page =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("the browser has ended: {line}"));
    }
}
