//! Settings of tool router sessions.

use std::time::Duration;

/// Time limits of meta tools and sessions, and the word in the slugs of meta tools.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Operator word, in lower case.
    pub operator_word: String,
    /// Time that a call waits for a user to connect accounts.
    pub connection_wait: Duration,
    /// Time after which the calls of a parallel execution that still run are cancelled.
    pub multi_execute_timeout: Duration,
    /// Time after which a session is erased that was not used, or `None` if it never is.
    pub retention: Option<Duration>,
}
