//! `workbench.*`: scripts and shell commands of agents.

use std::time::Duration;

use app::runs::ScriptSettings;
use sandbox::ProgramLimits;
use workbench::ShellLimits;

use super::{Config, setting::settings};

settings! {
    /// Scripts and shell commands of agents.
    pub struct Workbench {
        /// Time of a script, with the tools that it runs, of a shell command, and of the calls of
        /// `SERVICE_MULTI_EXECUTE_TOOL` together, of which those that still run then are cancelled.
        /// Scripts and commands have a third of it as processor time, at most 60 s. Lower it if
        /// clients give up earlier.
        #[setting(unit = "s", range = 1..=300)] pub time_s: u64 = 180,
    }
}

/// Memory of a script, in bytes.
pub const SCRIPT_MEMORY_BYTES: u64 = 256 << 20;
/// Scripts of one project that run concurrently.
pub const SCRIPTS_PER_PROJECT: usize = 4;

impl Workbench {
    /// Returns the time of a script, a shell command, or the calls of a parallel execution.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.time_s)
    }

    /// Returns the processor time of a script or a shell command, in seconds.
    pub fn cpu_seconds(&self) -> u64 {
        (self.time_s / 3).clamp(1, 60)
    }
}

impl Config {
    /// Returns the limits of shell commands.
    pub fn shell(&self) -> ShellLimits {
        ShellLimits {
            time: self.workbench.time(),
            cpu_seconds: self.workbench.cpu_seconds(),
        }
    }

    /// Returns the settings of scripts.
    pub fn scripts(&self) -> ScriptSettings {
        ScriptSettings {
            limits: ProgramLimits {
                wall: self.workbench.time(),
                cpu: Duration::from_secs(self.workbench.cpu_seconds()),
                memory: SCRIPT_MEMORY_BYTES,
                ..ProgramLimits::DEFAULT
            },
            per_project: SCRIPTS_PER_PROJECT,
        }
    }
}
