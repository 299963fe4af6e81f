//! Output for the operator: aligned lines, color only on a terminal.

use std::io::{IsTerminal, Write};

/// Output of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// True if standard output is colored.
    color: bool,
}

impl Terminal {
    /// Enables color if standard output is a terminal and `plain` is not set.
    pub(crate) fn new(plain: bool) -> Self {
        Self {
            color: !plain && std::io::stdout().is_terminal(),
        }
    }

    /// Prints one line.
    pub(crate) fn line(self, text: &str) {
        // A closed output cannot be remedied.
        self.try_line(text);
    }

    /// Prints one line. Returns false if the output is closed.
    pub(crate) fn try_line(self, text: &str) -> bool {
        writeln!(std::io::stdout().lock(), "{text}").is_ok()
    }

    /// Prints one line to standard error, so that it is no part of the result.
    pub(crate) fn status(self, text: &str) {
        // A closed output cannot be remedied.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Prints a name and its value, aligned with other pairs.
    pub(crate) fn pair(self, name: &str, value: &str) {
        self.line(&format!("  {}  {value}", self.dim(&format!("{name:<10}"))));
    }

    /// Prints an entry of a list: aligned columns, then dimmed details.
    pub(crate) fn entry(self, columns: &str, details: &str) {
        self.line(&format!("{columns}  {}", self.dim(details)));
    }

    /// Prints a success.
    pub(crate) fn good(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("32", "✓")));
    }

    /// Prints a warning.
    pub(crate) fn note(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("33", "!")));
    }

    /// Prints a problem.
    pub(crate) fn bad(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("31", "✗")));
    }

    /// Formats text in bold.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Formats text as dimmed.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
