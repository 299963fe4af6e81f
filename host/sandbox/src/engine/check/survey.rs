//! Counts of a component's content, and what of it this host does not support.

use wasmparser::{
    ComponentExternalKind, Encoding, Instance, MemoryType, Parser, Payload, TableType,
};

use super::imports::{import_advice, is_import_available};
use crate::{
    limits::{Limits, MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES},
    toolkit::abi::v1::ENTRY_INTERFACE,
    trace::cut,
};

/// Maximum number of functions in a component.
pub const MAX_FUNCTIONS: u64 = 50_000;
/// Maximum size of one function body, in bytes.
pub const MAX_FUNCTION_BYTES: usize = 1 << 20;
pub(super) const MAX_TYPES: u64 = 20_000;
/// Maximum number of imports, exports, aliases, globals, segments and similar items together.
const MAX_ITEMS: u64 = 50_000;
pub(super) const MAX_MODULES: u64 = 64;
const MAX_COMPONENTS: u64 = 256;

/// Counts the content of a component, including everything nested in it.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) problems: Vec<String>,
    /// Exceeded limits.
    pub(super) over: Vec<String>,
    pub(super) imports: Vec<String>,
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
    pub(super) fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    pub(super) fn read(&mut self, component: &[u8]) -> wasmparser::Result<()> {
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
            self.entry |= export.name.name == ENTRY_INTERFACE
                && export.kind == ComponentExternalKind::Instance;
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

    pub(super) fn finish(mut self) -> Self {
        let over: Vec<_> = self
            .limits()
            .into_iter()
            .filter(|(count, limit, _)| count > limit)
            .map(|(_, limit, what)| format!("it has more than {limit} {what}"))
            .collect();
        // Reading stops when a count exceeds its limit, so the export may come later.
        if !self.entry && over.is_empty() {
            self.problem(format!(
                "it does not export `{ENTRY_INTERFACE}`; build it with `toolkit build`"
            ));
        }
        self.over.extend(over);
        self
    }
}

/// Returns the number of items in a section of which only the items are counted.
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
