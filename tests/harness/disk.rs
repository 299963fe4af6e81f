//! A disk so small that a test can fill it.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::host::Setup;

const AS_ANYBODY: &[&str] = &["--user", "--map-root-user", "--mount"];

/// A file system in memory, in a mount namespace of its own: nobody has to be root for it, and nothing of it is left when its
/// keeper ends.
#[derive(Debug)]
pub struct SmallDisk {
    keeper: Child,
    /// The keeper ends when this does.
    _input: ChildStdin,
    /// The data directory, seen from outside.
    root: PathBuf,
    /// What brings a program to where the disk is.
    inside: Vec<String>,
}

impl SmallDisk {
    /// One of so many MiB, where the data directory is; none where the system lets this user make no namespace, as in some
    /// containers.
    ///
    /// # Panics
    /// When there is a data directory already.
    #[must_use]
    pub fn below(setup: &Setup, mib: usize) -> Option<Self> {
        let data = setup.data();
        std::fs::create_dir(&data).expect("the data directory is not there yet");
        let ways =
            [(&["--mount"][..], &["--mount"][..]), (AS_ANYBODY, &["--user", "--preserve-credentials", "--mount"])];
        ways.into_iter().find_map(|(to_make, to_enter)| {
            let script = format!("mount -t tmpfs -o size={mib}m,mode=700 tmpfs \"$0\" && echo mounted && cat");
            let mut command = Command::new("unshare");
            command.args(to_make).args(["sh", "-c", &script]).arg(&data).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut keeper = command.stderr(Stdio::null()).spawn().ok()?;
            let mut said = String::new();
            BufReader::new(keeper.stdout.take()?.take(64)).read_line(&mut said).ok()?;
            let input = keeper.stdin.take()?;
            let pid = keeper.id().to_string();
            let root = PathBuf::from(format!("/proc/{pid}/root{}", data.display()));
            let enter = ["nsenter", "--target", &pid].into_iter().chain(to_enter.iter().copied());
            let inside = enter.map(str::to_owned).collect();
            let disk = Self { keeper, _input: input, root, inside };
            (said == "mounted\n").then_some(disk)
        })
    }

    /// The same settings for a server that sees the disk.
    #[must_use]
    pub fn hold(&self, setup: Setup) -> Setup {
        setup.run_by(self.inside.clone())
    }

    /// Free bytes.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn free(&self) -> usize {
        let said =
            Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&self.root).output().expect("`stat` can be run");
        let text = String::from_utf8_lossy(&said.stdout);
        let numbers: Vec<usize> = text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        numbers.iter().product()
    }

    /// Fills it with something else, but for so many bytes; again, with more of it.
    ///
    /// # Panics
    /// When that cannot be written.
    pub fn fill_but_for(&self, bytes: usize) {
        let filler = vec![0; self.free().saturating_sub(bytes)];
        let file = File::options().create(true).append(true).open(self.root.join("filler"));
        file.and_then(|mut file| file.write_all(&filler)).expect("there is space for the filler");
    }

    /// Takes that away again.
    ///
    /// # Panics
    /// When it is not there.
    pub fn clear(&self) {
        std::fs::remove_file(self.root.join("filler")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.keeper.kill().ok();
        self.keeper.wait().ok();
    }
}
