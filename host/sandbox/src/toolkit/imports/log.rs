//! Import that writes the execution log.

use wasmtime::Result;

use crate::{
    Level,
    contract::v1::log::{self, Host},
    toolkit::State,
};

impl Host for State {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        self.count_host_call()?;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        self.trace.log(level, &message);
        Ok(())
    }
}
