//! The error type of this crate, and the macro with which each module declares its errors.
//!
//! A module lists its errors in its file `errors.rs`. A class says what kind of failure an error is
//! and knows no transport: the server maps it to a status. Nothing was changed when an operation
//! returns an error, unless the error says that its effect is unknown. A tool that ran and failed is not
//! an error but a result.

use std::{fmt, time::Duration};

pub use super::class::Class;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Time after which an operation that was refused for lack of capacity may succeed.
pub const SHORT_WAIT: Duration = Duration::from_secs(1);

/// Maximum number of problems of a request that an error lists.
const MAX_LISTED_PROBLEMS: usize = 20;

/// The reason why an operation was refused or failed.
#[derive(Debug)]
pub struct Error(Box<Details>);

#[derive(Debug)]
struct Details {
    info: &'static ErrorInfo,
    message: String,
    problems: Vec<String>,
    /// Number of the problems, listed or not.
    problem_count: usize,
    /// Number of those that the message contains.
    contained_count: usize,
    retry_after: Option<Duration>,
    is_effect_unknown: bool,
}

/// The properties that all errors of one kind share.
#[derive(Debug)]
pub struct ErrorInfo {
    /// The class of the failure.
    pub class: Class,
    /// The error code, specific to this platform.
    pub code: u32,
    /// The stable name, for programs.
    pub slug: &'static str,
    /// The message, with the names of its parameters in braces.
    pub message: &'static str,
    /// The suggested fix.
    pub hint: &'static str,
}

/// The problems of a request, one line each.
#[derive(Debug)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Returns the first lines of `count` problems, and a line with the number of the others.
    fn cut(self, count: usize) -> Vec<String> {
        let Self(mut lines) = self;
        if count > MAX_LISTED_PROBLEMS {
            // The search for problems may have ended before the last one.
            let more = count - MAX_LISTED_PROBLEMS;
            lines.truncate(MAX_LISTED_PROBLEMS);
            lines.push(format!("and at least {more} more"));
        }
        lines
    }
}

impl From<Vec<String>> for Problems {
    fn from(lines: Vec<String>) -> Self {
        Self(lines)
    }
}

impl From<String> for Problems {
    fn from(line: String) -> Self {
        Self(vec![line])
    }
}

impl From<&str> for Problems {
    fn from(line: &str) -> Self {
        line.to_owned().into()
    }
}

impl Error {
    /// Creates an error. Only the tables of errors call this.
    #[must_use]
    pub fn new(info: &'static ErrorInfo, message: String) -> Self {
        Self(Box::new(Details {
            info,
            message,
            problems: Vec::new(),
            problem_count: 0,
            contained_count: 0,
            retry_after: None,
            is_effect_unknown: false,
        }))
    }

    /// Adds the problems, of which the first ones are listed after the message.
    #[must_use]
    pub fn with_problems(mut self, problems: impl Into<Problems>) -> Self {
        let problems = problems.into();
        self.0.problem_count = problems.0.len();
        self.0.problems = problems.cut(self.0.problem_count);
        self
    }

    /// Adds problems of which each is listed after the message.
    #[must_use]
    pub(crate) fn with_all_problems(mut self, problems: impl Into<Problems>) -> Self {
        let Problems(lines) = problems.into();
        self.0.problem_count = lines.len();
        self.0.problems = lines;
        self
    }

    /// Adds the problems that the message contains already, one line each.
    #[must_use]
    pub(crate) fn with_contained_problems(mut self, lines: Vec<String>) -> Self {
        self.0.contained_count = lines.len();
        self.with_problems(lines)
    }

    /// Names the field or parameter that the error is about. Its path goes before the message, which is
    /// the only problem.
    #[must_use]
    pub fn at(mut self, path: impl fmt::Display) -> Self {
        self.0.message = format!("{path}: {}", self.0.message);
        let line = self.0.message.clone();
        self.with_contained_problems(vec![line])
    }

    /// Adds the path to the object of the request that the problems are about.
    #[must_use]
    pub(crate) fn inside(mut self, path: &str) -> Self {
        if self.0.contained_count > 0 {
            self.0.message = format!("{path}.{}", self.0.message);
        }
        // The line after these counts the others.
        for line in self.0.problems.iter_mut().take(MAX_LISTED_PROBLEMS) {
            *line = format!("{path}.{line}");
        }
        self
    }

    /// Adds the problems of another error of the same request.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        let Details {
            problems,
            problem_count,
            ..
        } = *other.0;
        self.0.problem_count += problem_count;
        let own = std::mem::take(&mut self.0.problems);
        self.0.problems = Problems([own, problems].concat()).cut(self.0.problem_count);
        self
    }

    /// Adds the time to wait before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Marks that the operation may have had its effect, although it failed.
    #[must_use]
    pub(crate) fn with_unknown_effect(mut self) -> Self {
        self.0.is_effect_unknown = true;
        self
    }

    /// Returns true if the operation may have had its effect, although it failed.
    #[must_use]
    pub fn is_effect_unknown(&self) -> bool {
        self.0.is_effect_unknown
    }

    /// Returns true if the error is of this kind.
    #[must_use]
    pub fn is(&self, kind: &'static ErrorInfo) -> bool {
        std::ptr::eq(self.0.info, kind)
    }

    /// Returns another error instead of one of this kind.
    #[must_use]
    pub(crate) fn replace_if(self, kind: &'static ErrorInfo, other: impl FnOnce() -> Self) -> Self {
        if self.is(kind) { other() } else { self }
    }

    /// Returns the properties that the error shares with all of its kind.
    #[must_use]
    pub fn info(&self) -> &'static ErrorInfo {
        self.0.info
    }

    /// Returns the problems of errors that can have several, one line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.0.problems
    }

    /// Returns the time to wait before a retry, or `None` if a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the message, the other problems and the suggested fix, one line each, for callers that get an
    /// error as text. Details of an internal error are only logged.
    #[must_use]
    pub fn full_text(&self) -> String {
        if self.info().class == Class::Internal {
            tracing::error!(cause = %self, "a call failed");
            return "internal error".to_owned();
        }
        let others = self.problems().iter().skip(1);
        let others: String = others.map(|line| format!("\n{line}")).collect();
        format!("{self}{others}\n{}", self.info().hint)
    }

    /// Returns the message without its beginning that all errors of the kind share.
    #[must_use]
    pub fn reason(&self) -> &str {
        let shared = self.0.info.message.split('{').next().unwrap_or_default();
        let message = &self.0.message;
        message.strip_prefix(shared).unwrap_or(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)?;
        let named_count = match (self.0.contained_count, self.problems()) {
            (0, [first, ..]) => {
                write!(formatter, ": {first}")?;
                1
            }
            (contained_count, _) => contained_count,
        };
        match self.0.problem_count - named_count {
            0 => Ok(()),
            more => write!(formatter, " (and {more} more)"),
        }
    }
}

impl std::error::Error for Error {}

/// Declares the errors of a module, in a static slice `TABLE`. An entry has the name of its
/// [`ErrorInfo`], the function that creates the error, its class, code, slug, message and hint. The
/// message names the parameters of the function. Calls at the end add problems or the time to wait.
#[macro_export]
macro_rules! error_table {
    ($visibility:vis table: $(
        $(#[$doc:meta])*
        $info:ident = $create:ident($($parameter:ident: $type:ty),*):
            $class:ident, $code:literal, $slug:literal, $message:literal, $hint:literal
            $(, $add:ident($value:expr))*;
    )*) => {
        /// The errors of this module.
        $visibility static TABLE: &[&$crate::ErrorInfo] = &[$(&$info),*];

        $(
            $(#[$doc])*
            $visibility static $info: $crate::ErrorInfo = $crate::ErrorInfo {
                class: $crate::Class::$class,
                code: $code,
                slug: $slug,
                message: $message,
                hint: $hint,
            };

            $(#[$doc])*
            #[must_use]
            $visibility fn $create($($parameter: $type),*) -> $crate::Error {
                $crate::Error::new(&$info, format!($message))$(.$add($value))*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use crate::core::errors;

    #[test]
    fn message_counts_problems_and_list_is_complete() {
        let error = errors::invalid(vec!["a: is required".into(), "b is wrong".into()]);
        assert_eq!(
            error.to_string(),
            "the request is invalid: a: is required (and 1 more)"
        );
        assert_eq!(error.problems().len(), 2);
    }

    #[test]
    fn error_of_one_member_lists_its_message() {
        let error = errors::malformed_id("a project", "pr_").at("project");
        assert!(error.to_string().starts_with("project: the text is not"));
        assert_eq!(error.problems(), [error.to_string()]);
        let both = error.and(errors::invalid("name: is required"));
        assert!(both.to_string().ends_with(" (and 1 more)"), "{both}");
        assert_eq!(both.problems()[1], "name: is required");
    }

    #[test]
    fn path_of_an_object_is_added_to_problems() {
        let listed = errors::invalid("name: is required").inside("a");
        assert_eq!(
            listed.to_string(),
            "the request is invalid: a.name: is required"
        );
        let named = errors::malformed_id("a project", "pr_")
            .at("id")
            .inside("a");
        assert!(named.to_string().starts_with("a.id: the text"), "{named}");
        assert_eq!(named.problems(), [named.to_string()]);
    }

    #[test]
    fn full_text_has_every_problem_and_the_fix() {
        let error = errors::invalid(vec!["a: is required".into(), "b is wrong".into()]);
        let expected = format!("{error}\nb is wrong\n{}", error.info().hint);
        assert_eq!(error.full_text(), expected);
        assert_eq!(errors::internal("disk").full_text(), "internal error");
    }

    #[test]
    fn reason_is_the_end_of_the_message() {
        let error = errors::unavailable("the disk is slow");
        assert_eq!(error.reason(), "the disk is slow");
        assert!(error.to_string().ends_with(": the disk is slow"), "{error}");
    }
}
