//! Values that are not valid, which are reported together.

use std::fmt;

/// A value that its key does not permit.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) key: String,
    pub(super) text: String,
    /// Doc comment of the setting, if it helps; else empty.
    pub(super) doc: &'static str,
}

impl Problem {
    /// Describes a problem in a message that names the key.
    pub(super) fn new(key: &str, text: impl ToString) -> Self {
        Self {
            key: key.to_owned(),
            text: text.to_string(),
            doc: "",
        }
    }
}

/// The problems of all values.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

impl Problems {
    /// Adds a problem, unless its text names a key that has one already: it may be a consequence.
    pub(super) fn add(&mut self, problem: Problem) {
        let mut known = self.0.iter().map(|known| format!("`{}`", known.key));
        if !known.any(|key| problem.text.contains(&key)) {
            self.0.push(problem);
        }
    }

    /// Adds the problem with the value of a key, if it has one.
    pub(super) fn of<T>(&mut self, key: &str, value: Result<T, impl ToString>) {
        if let Err(cause) = value {
            self.add(Problem::new(key, cause));
        }
    }

    /// Adds a problem with a key if its value is not valid. The text follows the key.
    pub(super) fn unless(&mut self, valid: bool, key: &str, text: impl fmt::Display) {
        if !valid {
            self.add(Problem::new(key, format!("`{key}` {text}")));
        }
    }
}
