//! A separate mount namespace in which files differ from those outside. It needs no root user, and
//! nothing of it remains after its keeper process ends.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{ChildStdin, Command, Stdio},
};

use crate::{Process, host::Setup};

const UNSHARE_ARGUMENTS: &[&str] = &["--user", "--map-root-user", "--mount"];

/// A running keeper process and the command that enters its namespace.
#[derive(Debug)]
pub(crate) struct Room {
    keeper: Process,
    /// Standard input of the keeper, which ends when it is closed.
    _input: ChildStdin,
    /// Command that runs a program in the namespace.
    inside: Vec<String>,
}

impl Room {
    /// Creates a namespace prepared by a script with these arguments (`$0`, `$1`, …). Returns
    /// `None` if the script fails, or if the system does not allow this user to create a namespace,
    /// as in some containers.
    pub(crate) fn prepare<A: AsRef<OsStr>>(script: &str, arguments: &[A]) -> Option<Self> {
        let ways = [
            (&["--mount"][..], &["--mount"][..]),
            (
                UNSHARE_ARGUMENTS,
                &["--user", "--preserve-credentials", "--mount"],
            ),
        ];
        ways.into_iter().find_map(|(to_make, to_enter)| {
            let script = format!("{script} && echo furnished && cat");
            let mut command = Command::new("unshare");
            command
                .args(to_make)
                .args(["sh", "-c", &script])
                .args(arguments);
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut keeper = command.spawn().ok()?;
            let output = keeper.stdout.take()?;
            let input = keeper.stdin.take()?;
            let pid = keeper.id().to_string();
            let enter = ["nsenter", "--target", &pid]
                .into_iter()
                .chain(to_enter.iter().copied());
            let room = Self {
                keeper: Process(keeper),
                _input: input,
                inside: enter.map(str::to_owned).collect(),
            };
            let mut said = String::new();
            BufReader::new(output.take(64)).read_line(&mut said).ok()?;
            (said == "furnished\n").then_some(room)
        })
    }

    /// Returns the root of the namespace's files as seen from outside.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.keeper.0.id()))
    }

    /// Returns the same settings for a server that runs in the namespace. It has the usual working folder,
    /// which a program that enters a namespace leaves.
    pub(crate) fn hold(&self, setup: Setup) -> Setup {
        let folder = setup.data().with_file_name("");
        let place = ["env", "--chdir", &folder.to_string_lossy()].map(str::to_owned);
        setup.run_by([self.inside.clone(), place.to_vec()].concat())
    }
}
