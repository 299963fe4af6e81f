//! Wrapper around the compiler and the linker for the compilation of toolkits.
//!
//! Problem: the compiler embeds the paths of source files for panic messages, which discloses the
//! directory layout of the author's machine. In addition, the code that describes a toolkit is a
//! third of a small toolkit, but it runs only once, in `toolkit build`, and is dead weight in the
//! published component.
//!
//! Guarantee: source files are named by crate and version. Each module has a lean variant next to
//! it, linked from the same objects without the describing export, so that the linker drops all
//! code that only this export reaches.
//!
//! Basis: cargo runs `RUSTC_WRAPPER` instead of the compiler, and the compiler runs the linker that
//! it is told to use. This command plays both roles if [`LINKER_VARIABLE`] is set in the
//! environment. Cargo does not compile again if the wrapper changes, so toolkits of several
//! workspaces share compiled crates. Another wrapper set by the author is not used here.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

use anyhow::{Context, Result};

use crate::{component::MANIFEST_EXPORT, toolchain::GUEST_TARGET};

/// Environment variable set while this command acts as wrapper. Its value is the linker to use.
const LINKER_VARIABLE: &str = "TOOLKIT_LINKER";
/// File extension of a lean module.
const LEAN_EXTENSION: &str = "lean";
/// Variables of cargo with folders that the compiler may embed, and the path that replaces each
/// folder below the crate's name.
const REMAPPED_FOLDERS: [(&str, &str); 2] = [("OUT_DIR", "/out"), ("CARGO_MANIFEST_DIR", "")];

/// Configures a cargo command to compile through this wrapper.
pub(crate) fn wrap_compiler(cargo: &mut Command, linker: &str) {
    // If the path of this executable is unknown, the modules are compiled without the wrapper.
    if let Ok(this) = env::current_exe() {
        cargo
            .env("RUSTC_WRAPPER", this)
            .env(LINKER_VARIABLE, linker);
    }
}

/// Returns the lean variant of a compiled module, if there is one.
pub(crate) fn lean(module: &Path) -> Option<PathBuf> {
    Some(lean_of(module)).filter(|lean| lean.is_file())
}

/// Returns the path of the lean variant of a module.
pub(crate) fn lean_of(module: &Path) -> PathBuf {
    let name = module.file_name().unwrap_or_default();
    let deps = module.with_file_name("deps");
    deps.join(name).with_extension(LEAN_EXTENSION)
}

/// Acts as the compiler or the linker if this command was called as one.
#[expect(
    clippy::disallowed_methods,
    reason = "it is called as another program, which has no options of ours"
)]
pub(crate) fn run_as_wrapper() -> Option<ExitCode> {
    let linker = env::var_os(LINKER_VARIABLE)?;
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, _)) if first == "-flavor" => link(&linker, &arguments),
        Some((compiler, arguments)) => compile(compiler, arguments, |name| env::var_os(name)),
        None => return None,
    };
    Some(match done {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        ),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn compile(
    compiler: &OsStr,
    arguments: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<ExitStatus> {
    let mut command = Command::new(compiler);
    command.args(arguments);
    // Build scripts and macros run on this machine and are compiled unchanged.
    if arguments.iter().any(|argument| argument == GUEST_TARGET) {
        command.args(remap_flags(variable));
        let mut linker = OsString::from("-Clinker=");
        linker.push(env::current_exe().context("this command has no path")?);
        command.arg(linker);
    }
    run(command)
}

/// Returns flags that replace the crate's folders by the crate's name.
fn remap_flags(variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
    let name = variable("CARGO_PKG_NAME").unwrap_or_default();
    let version = variable("CARGO_PKG_VERSION").unwrap_or_default();
    let mut flags = Vec::new();
    // The last matching flag wins, and the crate's output folder may be inside its source folder.
    for (folder, below) in REMAPPED_FOLDERS.into_iter().rev() {
        let Some(folder) = variable(folder) else {
            continue;
        };
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder);
        flag.push("=");
        flag.push(&name);
        flag.push("-");
        flag.push(&version);
        flag.push(below);
        flags.push(flag);
    }
    flags
}

fn link(linker: &OsStr, arguments: &[OsString]) -> Result<ExitStatus> {
    let mut whole = Command::new(linker);
    whole.args(arguments);
    let status = run(whole)?;
    match without_description(arguments).filter(|_| status.success()) {
        None => Ok(status),
        Some(arguments) => {
            let mut lean = Command::new(linker);
            lean.args(arguments);
            run(lean)
        }
    }
}

/// Returns the arguments that link the lean module, or `None` if the module is not a toolkit.
fn without_description(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let export = arguments
        .windows(2)
        .position(|pair| pair[0] == "--export" && pair[1] == MANIFEST_EXPORT)?;
    let mut arguments = arguments.to_vec();
    arguments.drain(export..export + 2);
    let index = arguments.iter().position(|argument| argument == "-o")? + 1;
    let output = arguments.get_mut(index)?;
    *output = Path::new(output).with_extension(LEAN_EXTENSION).into();
    Some(arguments)
}

fn run(mut command: Command) -> Result<ExitStatus> {
    command
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn lean_module_lacks_only_the_manifest_export() {
        let line = "-flavor wasm --export a --export toolkit_manifest --export b x.o -o deps/hello.wasm --gc-sections";
        let lean = without_description(&words(line)).unwrap();
        assert_eq!(
            lean,
            words("-flavor wasm --export a --export b x.o -o deps/hello.lean --gc-sections")
        );
        assert_eq!(
            without_description(&words("-flavor wasm --export a x.o -o deps/other.wasm")),
            None
        );
    }

    #[test]
    fn crate_folders_are_remapped_to_crate_name() {
        let flags = remap_flags(|name| {
            Some(match name {
                "CARGO_MANIFEST_DIR" => "/home/ada/serde".into(),
                "CARGO_PKG_NAME" => "serde".into(),
                "CARGO_PKG_VERSION" => "1.0.0".into(),
                _ => return None,
            })
        });
        assert_eq!(flags, ["--remap-path-prefix=/home/ada/serde=serde-1.0.0"]);
    }
}
