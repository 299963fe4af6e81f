//! Checks the content of a component before anything is compiled.
//!
//! Guarantee: the check takes time bounded by the size of the file, and the counts bound the cost
//! of compiling and running the component.
//!
//! The component is read section by section. Nothing is validated in depth and no function body is
//! decoded. The compiler decides whether the component is valid WebAssembly.

use manifest::Manifest;
use wasmparser::{
    ComponentExternalKind, Encoding, Instance, MemoryType, Parser, Payload, TableType,
};

use super::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES};
use crate::{
    InstallError,
    limits::Limits,
    toolkit::abi::v1::ENTRY,
    trace::{cut, one_line},
};

/// Maximum size of a component, in bytes. A component that embeds Python has 18 MB; the rest is for
/// the content of the toolkit.
pub(crate) const MAX_COMPONENT_BYTES: usize = 24 << 20;
/// Maximum number of functions in a component.
pub const MAX_FUNCTIONS: u64 = 50_000;
/// Maximum size of one function body, in bytes.
pub const MAX_FUNCTION_BYTES: usize = 1 << 20;
const MAX_TYPES: u64 = 20_000;
/// Maximum number of imports, exports, aliases, globals, segments and similar items together.
const MAX_ITEMS: u64 = 50_000;
const MAX_MODULES: u64 = 64;
const MAX_COMPONENTS: u64 = 256;
/// Maximum number of problems to list one by one.
const MAX_LISTED_PROBLEMS: usize = 50;

const CONTRACT_PREFIX: &str = "toolhost:toolkit/";
/// Interfaces of the contract that a toolkit may import, at any 1.0 version.
const INTERFACES: [&str; 7] = ["types", "http", "log", "clock", "random", "state", "blob"];
/// WASI interfaces that are linked for guests in other languages, with every access denied.
const WASI: [&str; 15] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
];
/// Newest release of WASI 0.2 that is linked.
const WASI_PATCH: u32 = 12;

/// Manifest and imports of a component that passed the check.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) manifest: Manifest,
    pub(crate) imports: Vec<String>,
}

/// Reads a component and lists all of its problems, or its exceeded limits if it has no other
/// problem.
pub(crate) fn check(component: &[u8]) -> Result<Checked, InstallError> {
    let mut problems = Vec::new();
    let manifest = match manifest::extract(component) {
        Ok(manifest) => {
            problems.extend(manifest.problems());
            Some(manifest)
        }
        Err(
            unreadable @ (manifest::ReadError::Missing
            | manifest::ReadError::Duplicate
            | manifest::ReadError::Invalid(_)),
        ) => {
            problems.push(unreadable.to_string());
            None
        }
        // The file is not a component, so no further check applies.
        Err(unreadable) => return Err(InstallError::Refused(vec![unreadable.to_string()])),
    };
    let mut survey = Survey::default();
    if let Err(broken) = survey.read(component) {
        survey.problem(format!("the component is not valid: {broken}"));
    }
    let Survey {
        problems: found,
        over,
        imports,
        ..
    } = survey.finish();
    problems.extend(found);
    match manifest {
        Some(manifest) if problems.is_empty() && over.is_empty() => {
            Ok(Checked { manifest, imports })
        }
        Some(_) if problems.is_empty() => Err(InstallError::PastLimit(listed(over))),
        _ => Err(InstallError::Refused(listed([problems, over].concat()))),
    }
}

/// Limits the number and the length of the problem lines.
fn listed(mut problems: Vec<String>) -> Vec<String> {
    let more = problems.len().saturating_sub(MAX_LISTED_PROBLEMS);
    problems.truncate(MAX_LISTED_PROBLEMS);
    if more > 0 {
        problems.push(format!("and {more} more problems"));
    }
    problems
        .iter()
        .map(|problem| one_line(cut(problem, 500)))
        .collect()
}

/// Counts the content of a component, including everything nested in it.
#[derive(Default)]
struct Survey {
    problems: Vec<String>,
    /// Exceeded limits.
    over: Vec<String>,
    imports: Vec<String>,
    entry: bool,
    depth: usize,
    functions: u64,
    types: u64,
    items: u64,
    modules: u64,
    components: u64,
    core_instances: u64,
    memories: u64,
    tables: u64,
}

impl Survey {
    fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    fn read(&mut self, component: &[u8]) -> wasmparser::Result<()> {
        for payload in Parser::new(0).parse_all(component) {
            self.section(payload?)?;
            // A count past its limit is already a problem; reading on would only cost time.
            if self.over() {
                break;
            }
        }
        Ok(())
    }

    fn section(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::Version {
                encoding: Encoding::Component,
                ..
            } if self.depth > 0 => self.components += 1,
            Payload::ModuleSection { .. } => {
                self.modules += 1;
                self.depth += 1;
            }
            Payload::ComponentSection { .. } => self.depth += 1,
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::FunctionSection(section) => self.functions += u64::from(section.count()),
            Payload::CodeSectionEntry(body) if body.range().len() > MAX_FUNCTION_BYTES => {
                self.over.push(format!(
                    "one function is larger than {MAX_FUNCTION_BYTES} bytes"
                ));
            }
            Payload::MemorySection(section) => {
                self.memories += u64::from(section.count());
                section
                    .into_iter()
                    .take(MAX_MEMORIES as usize + 1)
                    .try_for_each(|memory| memory.map(|it| self.memory(it)))?;
            }
            Payload::TableSection(section) => {
                self.tables += u64::from(section.count());
                section
                    .into_iter()
                    .take(MAX_TABLES as usize + 1)
                    .try_for_each(|table| table.map(|it| self.table(it.ty)))?;
            }
            Payload::TagSection(_) => {
                self.problem("it uses exceptions, which this host does not support")
            }
            Payload::InstanceSection(section) => self.instances(section)?,
            Payload::TypeSection(section) => self.types += u64::from(section.count()),
            Payload::CoreTypeSection(section) => self.types += u64::from(section.count()),
            Payload::ComponentTypeSection(section) => self.types += u64::from(section.count()),
            Payload::ComponentImportSection(section) => self.component_imports(section)?,
            Payload::ComponentExportSection(section) => self.component_exports(section)?,
            other => self.items += items(&other),
        }
        Ok(())
    }

    fn memory(&mut self, memory: MemoryType) {
        let most = Limits::CEILING.memory / (64 << 10);
        if memory.shared {
            self.problem("it uses threads, which this host does not support");
        }
        if memory.memory64 {
            self.problem("it uses 64-bit memory, which this host does not support");
        }
        if memory.initial > most {
            self.over.push(format!(
                "a memory begins with {} pages of 64 KiB; at most {most} are possible",
                memory.initial
            ));
        }
    }

    fn table(&mut self, table: TableType) {
        if table.initial > MAX_TABLE_ELEMENTS as u64 {
            self.over.push(format!(
                "a table begins with {} elements; at most {MAX_TABLE_ELEMENTS} are possible",
                table.initial
            ));
        }
    }

    fn instances(
        &mut self,
        section: wasmparser::InstanceSectionReader<'_>,
    ) -> wasmparser::Result<()> {
        self.items += u64::from(section.count());
        for instance in section.into_iter().take(MAX_ITEMS as usize) {
            if let Instance::Instantiate { .. } = instance? {
                self.core_instances += 1;
            }
        }
        Ok(())
    }

    fn component_imports(
        &mut self,
        section: wasmparser::ComponentImportSectionReader<'_>,
    ) -> wasmparser::Result<()> {
        self.items += u64::from(section.count());
        if self.depth > 0 {
            return Ok(());
        }
        for import in section.into_iter().take(MAX_ITEMS as usize) {
            let name = import?.name.name;
            if !is_import_available(name) {
                let name = cut(name, 120);
                let advice = import_advice(name);
                self.problem(format!(
                    "it imports `{name}`, which is not available to toolkits; {advice}"
                ));
            }
            self.imports.push(cut(name, 120).to_owned());
        }
        Ok(())
    }

    fn component_exports(
        &mut self,
        section: wasmparser::ComponentExportSectionReader<'_>,
    ) -> wasmparser::Result<()> {
        self.items += u64::from(section.count());
        if self.depth > 0 {
            return Ok(());
        }
        for export in section.into_iter().take(MAX_ITEMS as usize) {
            let export = export?;
            self.entry |=
                export.name.name == ENTRY && export.kind == ComponentExternalKind::Instance;
        }
        Ok(())
    }

    fn over(&self) -> bool {
        self.limits().iter().any(|(count, limit, _)| count > limit)
    }

    fn limits(&self) -> [(u64, u64, &'static str); 8] {
        [
            (self.functions, MAX_FUNCTIONS, "functions"),
            (self.types, MAX_TYPES, "types"),
            (
                self.items,
                MAX_ITEMS,
                "imports, exports, globals and segments",
            ),
            (self.modules, MAX_MODULES, "modules"),
            (self.components, MAX_COMPONENTS, "nested components"),
            (
                self.core_instances,
                MAX_CORE_INSTANCES.into(),
                "module instances",
            ),
            (self.memories, MAX_MEMORIES.into(), "memories"),
            (self.tables, MAX_TABLES.into(), "tables"),
        ]
    }

    fn finish(mut self) -> Self {
        let over = self
            .limits()
            .into_iter()
            .filter(|(count, limit, _)| count > limit);
        let over: Vec<_> = over
            .map(|(_, limit, what)| format!("it has more than {limit} {what}"))
            .collect();
        // Reading stops when a count exceeds its limit, so the export may come later.
        if !self.entry && over.is_empty() {
            self.problem(format!(
                "it does not export `{ENTRY}`; build it with `toolkit build`"
            ));
        }
        self.over.extend(over);
        self
    }
}

/// Returns the number of items in a section that is only counted.
fn items(payload: &Payload<'_>) -> u64 {
    let count = match payload {
        Payload::ImportSection(section) => section.count(),
        Payload::GlobalSection(section) => section.count(),
        Payload::ExportSection(section) => section.count(),
        Payload::ElementSection(section) => section.count(),
        Payload::DataSection(section) => section.count(),
        Payload::ComponentInstanceSection(section) => section.count(),
        Payload::ComponentAliasSection(section) => section.count(),
        Payload::ComponentCanonicalSection(section) => section.count(),
        _ => 1,
    };
    u64::from(count)
}

/// Returns true if a toolkit may import this name, by exact name and version. Allowed are
/// interfaces of the contract, and of WASI for guests in other languages.
#[must_use]
pub fn is_import_available(name: &str) -> bool {
    let Some((interface, version)) = name.rsplit_once('@') else {
        return false;
    };
    match interface.strip_prefix(CONTRACT_PREFIX) {
        Some(ours) => INTERFACES.contains(&ours) && patch(version, "1.0.").is_some(),
        None => {
            WASI.contains(&interface)
                && patch(version, "0.2.").is_some_and(|patch| patch <= WASI_PATCH)
        }
    }
}

/// Returns advice about an import that is not available.
#[must_use]
pub fn import_advice(name: &str) -> &'static str {
    let interface = name.split('@').next().unwrap_or_default();
    let package = interface.split('/').next().unwrap_or_default();
    match package {
        _ if interface.starts_with(CONTRACT_PREFIX) => {
            "this host supports version 1.0 of the contract; build the toolkit with this release of `toolkit`"
        }
        _ if WASI.contains(&interface) => {
            "this host supports releases 0.2.0 to 0.2.12 of the interface; build the toolkit for one of them"
        }
        "wasi:http" => {
            "send requests with the SDK's `http` or `Client`, which use `toolhost:toolkit/http`"
        }
        "wasi:sockets" => {
            "sockets are not available: send HTTP requests with the SDK's `http` or `Client`, and remove dependencies that need sockets"
        }
        "wasi:filesystem" => "a file system is not available: use the SDK's `File`",
        "wasi:keyvalue" | "wasi:blobstore" => {
            "use the SDK's `state` for data of a trigger, and its `File` for files"
        }
        _ => "remove the dependency that needs it",
    }
}

/// Returns the last number of a version that begins with `begins`.
fn patch(version: &str, begins: &str) -> Option<u32> {
    let patch = version.strip_prefix(begins)?;
    let number = patch.bytes().all(|byte| byte.is_ascii_digit())
        && (patch.len() == 1 || !patch.starts_with('0'));
    patch.parse().ok().filter(|_| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static ENGINE: LazyLock<wasmtime::Engine> =
        LazyLock::new(|| wasmtime::Engine::new(&crate::engine::config()).unwrap());

    #[test]
    fn imports_are_judged_by_name_and_version() {
        for name in [
            "toolhost:toolkit/http@1.0.0",
            "toolhost:toolkit/types@1.0.7",
            "wasi:cli/exit@0.2.0",
            "wasi:io/poll@0.2.12",
        ] {
            assert!(is_import_available(name), "{name}");
        }
        for name in [
            "toolhost:toolkit/http",
            "toolhost:toolkit/http@1.1.0",
            "toolhost:toolkit/http@1.0.0-rc",
            "toolhost:toolkit/http@1.0.",
            "toolhost:toolkit/http@1.0.01",
            "toolhost:toolkit/entry@1.0.0",
            "toolhost:toolkit/secrets@1.0.0",
            "wasi:sockets/tcp@0.2.0",
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:cli/terminal-input@0.2.0",
            "wasi:cli/exit@0.2.13",
            "wasi:cli/exit@0.3.0",
            "wasi:cli/exit@0.2.0+x",
            "",
            "@",
            "http",
            "toolhost:toolkit/../http@1.0.0",
        ] {
            assert!(!is_import_available(name), "{name}");
        }
    }

    #[test]
    fn refused_imports_come_with_advice() {
        for (name, word) in [
            ("wasi:http/outgoing-handler@0.2.0", "toolhost:toolkit/http"),
            ("wasi:sockets/tcp@0.2.0", "sockets are not available"),
            ("wasi:cli/exit@0.3.0", "0.2.0 to 0.2.12"),
            ("toolhost:toolkit/http@2.0.0", "1.0"),
            ("evil:api/thing", "remove the dependency"),
        ] {
            assert!(
                import_advice(name).contains(word),
                "{name}: {}",
                import_advice(name)
            );
        }
    }

    fn problems(component: &[u8]) -> Vec<String> {
        match check(component) {
            Err(InstallError::Refused(problems) | InstallError::PastLimit(problems)) => problems,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn non_components_give_one_problem() {
        for (bytes, word) in [
            (&b""[..], "empty"),
            (&b"\0asm\x01\0\0\0"[..], "core WebAssembly module"),
            (&b"(component)"[..], "not a WebAssembly component"),
            (&[0; 100_000][..], "not a WebAssembly component"),
            (&b"\0asm\x0d\0\x01\0\x01\xff"[..], "truncated"),
        ] {
            let problems = problems(bytes);
            assert!(
                problems.len() == 1 && problems[0].contains(word),
                "{problems:?}"
            );
        }
    }

    #[test]
    fn all_problems_are_listed_at_once() {
        let component = wat::parse_str(
            r#"(component
                (import "wasi:sockets/tcp@0.2.0" (instance))
                (import "evil\u{202e}" (func))
                (core module (memory 1 1 shared))
                (core module (memory i64 1))
                (core module (memory 65536))
                (core module (table 10000000 funcref)))"#,
        );
        let problems = problems(&component.unwrap()).join("\n");
        for part in [
            "`toolhost:manifest`",
            "wasi:sockets/tcp",
            "evil\\u{202e}",
            "threads",
            "64-bit",
            "65536 pages",
            "10000000 elements",
            ENTRY,
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }

    #[test]
    fn counts_past_their_limit_are_refused_quickly() {
        let modules = "(core module)".repeat(MAX_MODULES as usize + 1);
        let instances = format!(
            "(core module $m) {}",
            "(core instance (instantiate $m))".repeat(MAX_CORE_INSTANCES as usize + 1)
        );
        let memories = "(core module (memory 1))".repeat(MAX_MEMORIES as usize + 1);
        let types = "(type string)".repeat(MAX_TYPES as usize + 1);
        for (body, what) in [
            (modules, "modules"),
            (instances, "module instances"),
            (memories, "memories"),
            (types, "types"),
        ] {
            let problems = problems(&wat::parse_str(format!("(component {body})")).unwrap());
            assert!(
                problems
                    .iter()
                    .any(|problem| problem.contains("more than") && problem.contains(what)),
                "{problems:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn a_damaged_component_is_judged_without_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = guest::plain("(data (i32.const 2048) \"x\")", guest::ECHO).to_vec();
            changes.into_iter().for_each(|(at, byte)| *at.get_mut(&mut bytes) = byte);
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            match check(&bytes) {
                // A component that passes this check can still be refused by the compiler, but must
                // not crash it.
                Ok(_) => drop(ENGINE.precompile_component(&bytes)),
                Err(InstallError::Refused(problems) | InstallError::PastLimit(problems)) => {
                    prop_assert!(!problems.is_empty() && problems.len() <= MAX_LISTED_PROBLEMS + 1);
                }
                Err(other) => prop_assert!(false, "{other:?}"),
            }
        }

        #[test]
        fn any_component_bytes_are_checked_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(check(&[b"\0asm\x0d\0\x01\0", bytes.as_slice()].concat()).is_err());
        }
    }
}
