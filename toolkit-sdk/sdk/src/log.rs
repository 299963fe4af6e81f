//! Lines for the execution log: `log::info!("read {} items", count)`. The platform removes secrets
//! from them.

use crate::host;

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Detail for the toolkit author.
    Debug,
    /// A normal event.
    Info,
    /// A possible problem.
    Warn,
    /// A failure.
    Error,
}

/// Writes one line. A call may write at most 1,000 lines and 256 KiB.
pub fn write(level: Level, message: &str) {
    host::log(level, message);
}

/// Writes a line with detail for the toolkit author.
#[doc(inline)]
pub use crate::__log_debug as debug;
/// Writes a line about a failure.
#[doc(inline)]
pub use crate::__log_error as error;
/// Writes a line about a normal event.
#[doc(inline)]
pub use crate::__log_info as info;
/// Writes a line about a possible problem.
#[doc(inline)]
pub use crate::__log_warn as warn;

#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Debug, &::std::format!($($text)*)) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Info, &::std::format!($($text)*)) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Warn, &::std::format!($($text)*)) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($text:tt)*) => { $crate::log::write($crate::log::Level::Error, &::std::format!($($text)*)) };
}
