//! `workbench.*`: scripts and shell commands of agents.

use std::time::Duration;

use app::runs::ScriptSettings;
use sandbox::ProgramLimits;
use workbench::ShellLimits;

use super::{Config, setting::settings};

settings! {
    /// Scripts and shell commands of agents.
    pub(crate) struct Workbench {
        /// Time of a script, with the tools that it runs, and of a shell command.
        #[setting(unit = "s", range = 1..=300)] pub time_s: u64 = 180,
        /// Processor time of a script and of a shell command.
        #[setting(unit = "s", range = 1..=60)] pub cpu_s: u64 = 60,
        /// Memory of a script.
        #[setting(unit = "MiB", range = 64..=256)] pub memory_mib: u64 = 256,
        /// Scripts of one project that run concurrently.
        #[setting(range = 1..=1_000)] pub scripts_per_project: usize = 4,
    }
}

impl Config {
    /// Returns the limits of shell commands.
    pub(crate) fn shell(&self) -> ShellLimits {
        ShellLimits {
            time: Duration::from_secs(self.workbench.time_s),
            cpu_seconds: self.workbench.cpu_s,
        }
    }

    /// Returns the settings of scripts.
    pub(crate) fn scripts(&self) -> ScriptSettings {
        let Workbench {
            time_s,
            cpu_s,
            memory_mib,
            scripts_per_project,
        } = self.workbench;
        ScriptSettings {
            limits: ProgramLimits {
                wall: Duration::from_secs(time_s),
                cpu: Duration::from_secs(cpu_s),
                memory: memory_mib << 20,
                ..ProgramLimits::DEFAULT
            },
            per_project: scripts_per_project,
        }
    }
}
