//! Lines for the execution log: `log::info!("read {} items", count)`. Secrets are removed by the platform.

use crate::host;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For whoever writes the toolkit.
    Debug,
    /// What happened.
    Info,
    /// What may be wrong.
    Warn,
    /// What went wrong.
    Error,
}

/// Writes one line. At most 1,000 lines and 256 KiB a call.
pub fn write(level: Level, message: &str) {
    host::log(level, message);
}

/// Writes a line for whoever writes the toolkit.
#[doc(inline)]
pub use crate::__log_debug as debug;
/// Writes a line about what went wrong.
#[doc(inline)]
pub use crate::__log_error as error;
/// Writes a line about what happened.
#[doc(inline)]
pub use crate::__log_info as info;
/// Writes a line about what may be wrong.
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
