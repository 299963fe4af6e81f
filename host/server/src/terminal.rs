//! What the operator sees: aligned lines, colour only on a terminal.

use std::io::{IsTerminal, Write};

/// Standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    colour: bool,
}

impl Terminal {
    /// Colour when standard output is a terminal and `plain` is not asked for.
    pub(crate) fn new(plain: bool) -> Self {
        Self { colour: !plain && std::io::stdout().is_terminal() }
    }

    /// One line.
    pub(crate) fn line(self, text: &str) {
        // Nobody reads any more: there is nobody to tell.
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// A name and its value, aligned with others.
    pub(crate) fn pair(self, name: &str, value: &str) {
        self.line(&format!("  {}  {value}", self.dim(&format!("{name:<10}"))));
    }

    /// Something that is well.
    pub(crate) fn good(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("32", "✓")));
    }

    /// Something to know.
    pub(crate) fn note(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("33", "!")));
    }

    /// Something that is wrong.
    pub(crate) fn bad(self, text: &str) {
        self.line(&format!("{} {text}", self.paint("31", "✗")));
    }

    /// Strong text.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Weak text.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
