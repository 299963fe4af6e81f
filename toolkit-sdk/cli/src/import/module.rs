//! Embedding of a plan in a module, as data behind the compiler's data.
//!
//! The initial memory grows by the pages that the plan needs. These pages are unused: the
//! compiler's data, the stack and the arena are in front of them, and allocators request pages
//! behind them. The address and the length of the plan are written into the eight bytes that the
//! module exports as `toolkit_plan`. A runtime maps such data from the compiled file, page by page
//! as it is read.

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::{
    ConstExpr, DataCountSection, DataSection, MemorySection, MemoryType, RawSection,
};
use wasmparser::{DataKind, ExternalKind, Operator, Parser, Payload};

/// Exported global whose value is the address of the plan's address and length.
const PLAN_GLOBAL: &str = "toolkit_plan";
const PAGE_BYTES: usize = 64 << 10;

/// Layout of a module before it is rewritten.
#[derive(Debug, Default)]
struct Layout {
    /// Initial number of pages of the memory.
    pages: u64,
    /// Address of the bytes for the plan's address and length.
    place: Option<u32>,
}

/// Adds a plan to a module that reserves a slot for it.
pub(crate) fn with_plan(module: &[u8], plan: &[u8]) -> Result<Vec<u8>> {
    let layout = read(module).context("cannot read the module")?;
    let place = layout.place.with_context(|| {
        format!("the module exports no `{PLAN_GLOBAL}`; a crate with an import needs `import: true` in its `toolkit!`")
    })?;
    let address = u32::try_from(layout.pages * PAGE_BYTES as u64)
        .context("the module's memory is too large")?;
    let length = u32::try_from(plan.len()).context("the plan is too large")?;
    let pages = layout.pages + plan.len().div_ceil(PAGE_BYTES) as u64;
    let place_bytes = [address.to_le_bytes(), length.to_le_bytes()].concat();
    let segments = [(place, place_bytes.as_slice()), (address, plan)];
    let mut out = wasm_encoder::Module::new();
    let mut added = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::MemorySection(section) => {
                let mut memories = MemorySection::new();
                for memory in section {
                    let memory = memory?;
                    memories.memory(MemoryType {
                        minimum: pages,
                        maximum: memory.maximum.map(|most| most.max(pages)),
                        memory64: memory.memory64,
                        shared: memory.shared,
                        page_size_log2: memory.page_size_log2,
                    });
                }
                out.section(&memories);
            }
            Payload::DataCountSection { count, .. } => {
                out.section(&DataCountSection {
                    count: count + segments.len() as u32,
                });
            }
            Payload::DataSection(section) => {
                out.section(&data(section, &segments)?);
                added = true;
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    out.section(&RawSection {
                        id,
                        data: &module[range],
                    });
                }
            }
        }
    }
    ensure!(added, "the module has no data");
    Ok(out.finish())
}

/// Appends the plan's segments to the existing data. Where segments overlap, the later one wins,
/// which is intended for the slot of the plan's address and length.
fn data(
    section: wasmparser::DataSectionReader<'_>,
    segments: &[(u32, &[u8])],
) -> Result<DataSection> {
    let mut all = DataSection::new();
    for segment in section {
        let segment = segment?;
        match segment.kind {
            DataKind::Passive => {
                all.passive(segment.data.iter().copied());
            }
            DataKind::Active {
                memory_index,
                offset_expr,
            } => {
                let Some(offset) = constant(&offset_expr)? else {
                    bail!("a data segment's address is not a constant")
                };
                all.active(
                    memory_index,
                    &ConstExpr::i32_const(offset),
                    segment.data.iter().copied(),
                );
            }
        }
    }
    for (address, bytes) in segments {
        all.active(
            0,
            &ConstExpr::i32_const(*address as i32),
            bytes.iter().copied(),
        );
    }
    Ok(all)
}

fn read(module: &[u8]) -> Result<Layout> {
    let mut layout = Layout::default();
    let mut globals: Vec<Option<i32>> = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if matches!(import?.ty, wasmparser::TypeRef::Global(_)) {
                        globals.push(None);
                    }
                }
            }
            Payload::MemorySection(section) => {
                ensure!(
                    section.count() == 1,
                    "the module has {} memories instead of one",
                    section.count()
                );
                for memory in section {
                    layout.pages = memory?.initial;
                }
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    globals.push(constant(&global?.init_expr)?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.name == PLAN_GLOBAL && export.kind == ExternalKind::Global {
                        let address = globals.get(export.index as usize).copied().flatten();
                        layout.place = address.map(|address| address as u32);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(layout)
}

/// Returns the value of a constant expression.
fn constant(expression: &wasmparser::ConstExpr<'_>) -> Result<Option<i32>> {
    Ok(match expression.get_operators_reader().read()? {
        Operator::I32Const { value } => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use wasmtime::{Engine, Instance, Module, Store};

    use super::*;

    const GUEST_TEXT: &str = r#"(module
        (memory (export "memory") 2)
        (global (export "toolkit_plan") i32 (i32.const 16))
        (data (i32.const 8) "before\00\00\ff\ff\ff\ff\ff\ff\ff\ffafter")
        (func (export "first") (result i32) (i32.load8_u (i32.load (i32.const 16))))
        (func (export "grow") (result i32) (memory.grow (i32.const 1))))"#;

    #[test]
    fn plan_is_placed_behind_all_data() {
        let plan = [b"P".to_vec(), vec![7; PAGE_BYTES]].concat();
        let bytes = with_plan(&wat::parse_str(GUEST_TEXT).unwrap(), &plan).unwrap();
        let engine = Engine::default();
        let mut store = Store::new(&engine, ());
        let instance =
            Instance::new(&mut store, &Module::new(&engine, bytes).unwrap(), &[]).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        let address = 2 * PAGE_BYTES;
        let length = plan.len();
        assert_eq!(&memory.data(&store)[8..14], b"before");
        assert_eq!(&memory.data(&store)[24..29], b"after");
        let place = [
            (address as u32).to_le_bytes(),
            (length as u32).to_le_bytes(),
        ]
        .concat();
        assert_eq!(&memory.data(&store)[16..24], place);
        assert_eq!(&memory.data(&store)[address..address + length], plan);
        let first = instance
            .get_typed_func::<(), i32>(&mut store, "first")
            .unwrap();
        assert_eq!(first.call(&mut store, ()).unwrap(), i32::from(b'P'));
        let grow = instance
            .get_typed_func::<(), i32>(&mut store, "grow")
            .unwrap();
        assert_eq!(
            grow.call(&mut store, ()).unwrap(),
            4,
            "what a guest asks for comes behind the plan"
        );
    }

    #[test]
    fn module_without_plan_export_is_refused() {
        let plain = wat::parse_str("(module (memory 1) (data (i32.const 0) \"a\"))").unwrap();
        let refused = with_plan(&plain, b"plan").unwrap_err();
        assert!(refused.to_string().contains("import: true"));
        assert!(with_plan(b"no module", b"plan").is_err());
    }
}
