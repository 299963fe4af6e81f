//! `toolhost verify`: reads everything and reports damage.

use std::process::ExitCode;

use settings::Config;

use crate::{
    open::{self, Stop},
    terminal::Terminal,
};

pub(crate) async fn run(config: &Config, terminal: Terminal) -> Result<ExitCode, Stop> {
    open::check_exists(config, "set --data to the one to verify")?;
    let store = open::store(config).await?;
    let report = store.verify().await;
    store.close().await;
    for line in &report.damage {
        terminal.bad(line);
    }
    let counted = format!("{} records and {} files read", report.records, report.blobs);
    if report.damage.is_empty() {
        terminal.good(&format!("{counted}, no damage found"));
        return Ok(ExitCode::SUCCESS);
    }
    terminal.line(&format!("{counted}, {} damaged", report.damage.len()));
    Ok(ExitCode::FAILURE)
}
