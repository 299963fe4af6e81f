//! Removal of imports that the host does not provide from a component of another toolchain.
//!
//! Compilers of whole language runtimes import everything that their C library knows, including
//! sockets, whether it is used or not. A host that linked all of these imports would have to secure
//! all of them. Therefore each function of an interface that the host does not provide is replaced,
//! inside the component, by a function that traps. The modules of the component stay the same, byte
//! for byte.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    ops::Range,
};

use anyhow::{Context, Result, anyhow, bail};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, CodeSection, Component, ComponentAliasSection,
    ComponentImportSection, ComponentSectionId, ComponentTypeSection, ExportKind, ExportSection,
    Function, FunctionSection, InstanceSection, ModuleSection, RawSection, TypeSection, ValType,
    reencode::{Error, Reencode, ReencodeComponent, component_utils},
};
use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentTypeRef, Parser, Payload,
};
use wit_parser::{
    Resolve, TypeDefKind, WorldKey,
    abi::{AbiVariant, WasmType},
    decoding::{DecodedWasm, decode},
};

/// Name of the stand-in that drops a handle of an absent resource.
const DROP_EXPORT: &str = "drop";

/// Replaces the imports that `given` does not name. `entry` is the interface that the component
/// exports. Snapshot tools wrap the component that has this export into another one; such a
/// component is unwrapped first.
pub(crate) fn stub_imports(
    component: &[u8],
    entry: &str,
    is_provided: fn(&str) -> bool,
) -> Result<Vec<u8>> {
    let component = match wrapped(component, entry)? {
        Some(range) => &component[range],
        None => component,
    };
    let absent = AbsentImports::find(component, is_provided)?;
    if absent.functions.is_empty() && absent.resources.is_empty() {
        return Ok(component.to_vec());
    }
    let mut closed = Component::new();
    closed.section(&ModuleSection(&absent.module()));
    let mut instances = InstanceSection::new();
    instances.instantiate::<[(&str, wasm_encoder::ModuleArg); 0], &str>(0, []);
    closed.section(&instances);
    let mut rewriter = Rewriter {
        absent,
        is_provided,
        depth: 0,
        instances: Vec::new(),
        kept_instances: 0,
        functions: Vec::new(),
        kept_functions: 0,
        types: Vec::new(),
    };
    rewriter
        .parse_component(&mut closed, Parser::new(0), component)
        .map_err(|cause| anyhow!("cannot rewrite the component: {cause}"))?;
    Ok(closed.finish())
}

/// Returns the range of the inner component that has the export.
fn wrapped(component: &[u8], entry: &str) -> Result<Option<Range<usize>>> {
    let mut inside: Vec<Range<usize>> = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload.context("cannot read the component")? {
            Payload::ModuleSection {
                unchecked_range, ..
            }
            | Payload::ComponentSection {
                unchecked_range, ..
            } => {
                inside.push(unchecked_range);
            }
            Payload::End(_) => drop(inside.pop()),
            Payload::ComponentExportSection(section) if inside.len() == 1 => {
                for export in section {
                    if export
                        .context("cannot read the component's exports")?
                        .name
                        .name
                        == entry
                    {
                        return Ok(inside.pop());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Imports that the host does not provide, by interface and name.
struct AbsentImports {
    functions: HashMap<(String, String), (Vec<ValType>, Vec<ValType>)>,
    resources: HashSet<(String, String)>,
}

impl AbsentImports {
    fn find(component: &[u8], is_provided: fn(&str) -> bool) -> Result<Self> {
        let decoded = decode(component).context("cannot read the component's types")?;
        let DecodedWasm::Component(resolve, world) = decoded else {
            bail!("the component is a package of types")
        };
        let mut absent = Self {
            functions: HashMap::new(),
            resources: HashSet::new(),
        };
        for key in resolve.worlds[world].imports.keys() {
            let WorldKey::Interface(id) = key else {
                continue;
            };
            let name = resolve
                .id_of(*id)
                .context("the component imports an interface without a name")?;
            if is_provided(&name) {
                continue;
            }
            let interface = &resolve.interfaces[*id];
            for function in interface.functions.values() {
                absent.functions.insert(
                    (name.clone(), function.name.clone()),
                    signature(&resolve, function),
                );
            }
            let resources = interface
                .types
                .iter()
                .filter(|(_, ty)| matches!(resolve.types[**ty].kind, TypeDefKind::Resource));
            absent
                .resources
                .extend(resources.map(|(ty, _)| (name.clone(), ty.clone())));
        }
        Ok(absent)
    }

    /// Builds a module with one trapping function for each absent import.
    fn module(&self) -> wasm_encoder::Module {
        let mut types = TypeSection::new();
        let mut functions = FunctionSection::new();
        let mut exports = ExportSection::new();
        let mut code = CodeSection::new();
        let mut trap = Function::new([]);
        trap.instructions().unreachable().end();
        let mut names: Vec<_> = self
            .functions
            .iter()
            .map(|(name, signature)| (exported(name), signature.clone()))
            .collect();
        names.push((DROP_EXPORT.to_owned(), (vec![ValType::I32], Vec::new())));
        names.sort();
        for (index, (name, (params, results))) in (0..).zip(names) {
            types.ty().function(params, results);
            functions.function(index);
            exports.export(&name, ExportKind::Func, index);
            code.function(&trap);
        }
        let mut module = wasm_encoder::Module::new();
        module
            .section(&types)
            .section(&functions)
            .section(&exports)
            .section(&code);
        module
    }
}

fn exported((interface, function): &(String, String)) -> String {
    format!("{interface}#{function}")
}

fn signature(resolve: &Resolve, function: &wit_parser::Function) -> (Vec<ValType>, Vec<ValType>) {
    let signature = resolve.wasm_signature(AbiVariant::GuestImport, function);
    (
        signature.params.iter().map(core_type).collect(),
        signature.results.iter().map(core_type).collect(),
    )
}

fn core_type(ty: &WasmType) -> ValType {
    match ty {
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
    }
}

/// State of the rewriting. One core module and one core instance are added before the component's
/// own. Instances and functions of absent interfaces are removed. Absent types stay as types
/// without values, because other types refer to them.
struct Rewriter {
    absent: AbsentImports,
    is_provided: fn(&str) -> bool,
    /// Nesting depth; above 0 inside the declaration of a type, which has its own numbering.
    depth: u32,
    /// For each instance: its new index, or the absent interface that it was.
    instances: Vec<Result<u32, String>>,
    kept_instances: u32,
    /// For each function: its new index, or the export of the trapping module that replaces it.
    functions: Vec<Result<u32, String>>,
    kept_functions: u32,
    /// For each type: true if it is an absent resource.
    types: Vec<bool>,
}

impl Rewriter {
    fn keep_instance(&mut self) {
        self.instances.push(Ok(self.kept_instances));
        self.kept_instances += 1;
    }

    fn keep_function(&mut self) {
        self.functions.push(Ok(self.kept_functions));
        self.kept_functions += 1;
    }

    /// Counts the index that an item adds if it stays.
    fn keep(&mut self, kind: ComponentExternalKind) {
        match kind {
            ComponentExternalKind::Func => self.keep_function(),
            ComponentExternalKind::Instance => self.keep_instance(),
            ComponentExternalKind::Type => self.types.push(false),
            ComponentExternalKind::Module
            | ComponentExternalKind::Component
            | ComponentExternalKind::Value => {}
        }
    }

    fn import(
        &mut self,
        component: &mut Component,
        import: wasmparser::ComponentImport<'_>,
    ) -> RewriteResult {
        let name = import.name.name;
        if matches!(import.ty, ComponentTypeRef::Instance(_)) && !(self.is_provided)(name) {
            self.instances.push(Err(name.to_owned()));
            return Ok(());
        }
        let mut imports = ComponentImportSection::new();
        imports.import(import.name, self.component_type_ref(import.ty)?);
        component.section(&imports);
        self.keep(import.ty.kind());
        Ok(())
    }

    fn alias(&mut self, component: &mut Component, alias: ComponentAlias<'_>) -> RewriteResult {
        if let ComponentAlias::InstanceExport {
            kind,
            instance_index,
            name,
        } = alias
            && let Some(Err(interface)) = self.instances.get(instance_index as usize)
        {
            let item = (interface.clone(), name.to_owned());
            match kind {
                ComponentExternalKind::Type => {
                    let mut types = ComponentTypeSection::new();
                    let resource = self.absent.resources.contains(&item);
                    match resource {
                        true => types.ty().resource(ValType::I32, None),
                        false => types
                            .ty()
                            .defined_type()
                            .primitive(wasm_encoder::PrimitiveValType::U8),
                    }
                    component.section(&types);
                    self.types.push(resource);
                }
                _ => self.functions.push(Err(exported(&item))),
            }
            return Ok(());
        }
        match alias {
            ComponentAlias::InstanceExport { kind, .. } => self.keep(kind),
            ComponentAlias::Outer {
                kind: wasmparser::ComponentOuterAliasKind::Type,
                ..
            } => self.types.push(false),
            _ => {}
        }
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(self.component_alias(alias)?);
        component.section(&aliases);
        Ok(())
    }

    fn canonical(
        &mut self,
        component: &mut Component,
        function: CanonicalFunction,
    ) -> RewriteResult {
        let run_as_wrapper = match &function {
            CanonicalFunction::Lower { func_index, .. } => self
                .functions
                .get(*func_index as usize)
                .and_then(|function| function.clone().err()),
            CanonicalFunction::ResourceDrop { resource } => self
                .types
                .get(*resource as usize)
                .is_some_and(|absent| *absent)
                .then(|| DROP_EXPORT.to_owned()),
            _ => None,
        };
        if let Some(name) = run_as_wrapper {
            let mut aliases = ComponentAliasSection::new();
            aliases.alias(Alias::CoreInstanceExport {
                instance: 0,
                kind: ExportKind::Func,
                name: &name,
            });
            component.section(&aliases);
            return Ok(());
        }
        if matches!(function, CanonicalFunction::Lift { .. }) {
            self.keep_function();
        }
        let mut canonical = CanonicalFunctionSection::new();
        self.parse_component_canonical(&mut canonical, function)?;
        component.section(&canonical);
        Ok(())
    }
}

type RewriteResult = Result<(), Error<Infallible>>;

impl Reencode for Rewriter {
    type Error = Infallible;
}

impl ReencodeComponent for Rewriter {
    fn push_depth(&mut self) {
        self.depth += 1;
    }

    fn pop_depth(&mut self) {
        self.depth -= 1;
    }

    fn module_index(&mut self, module: u32) -> u32 {
        module + 1
    }

    fn instance_index(&mut self, instance: u32) -> u32 {
        instance + 1
    }

    fn component_instance_index(&mut self, instance: u32) -> u32 {
        match self.instances.get(instance as usize) {
            Some(Ok(kept_instances)) if self.depth == 0 => *kept_instances,
            _ => instance,
        }
    }

    fn component_func_index(&mut self, function: u32) -> u32 {
        match self.functions.get(function as usize) {
            Some(Ok(kept_instances)) if self.depth == 0 => *kept_instances,
            _ => function,
        }
    }

    fn parse_component_payload(
        &mut self,
        component: &mut Component,
        payload: Payload<'_>,
        whole: &[u8],
    ) -> RewriteResult {
        match payload {
            Payload::ModuleSection {
                unchecked_range, ..
            } => {
                component.section(&RawSection {
                    id: ComponentSectionId::CoreModule.into(),
                    data: &whole[unchecked_range],
                });
            }
            Payload::ComponentSection {
                unchecked_range, ..
            } => {
                component.section(&RawSection {
                    id: ComponentSectionId::Component.into(),
                    data: &whole[unchecked_range],
                });
            }
            // Name sections are dropped because they refer to old indexes.
            Payload::CustomSection(_) => {}
            Payload::ComponentImportSection(section) => {
                return section
                    .into_iter()
                    .try_for_each(|import| self.import(component, import?));
            }
            Payload::ComponentAliasSection(section) => {
                return section
                    .into_iter()
                    .try_for_each(|alias| self.alias(component, alias?));
            }
            Payload::ComponentCanonicalSection(section) => {
                return section
                    .into_iter()
                    .try_for_each(|function| self.canonical(component, function?));
            }
            Payload::ComponentTypeSection(section) => {
                self.types.extend((0..section.count()).map(|_| false));
                return component_utils::parse_component_payload(
                    self,
                    component,
                    Payload::ComponentTypeSection(section),
                    whole,
                );
            }
            Payload::ComponentInstanceSection(section) => {
                let count = section.count();
                let payload = Payload::ComponentInstanceSection(section);
                component_utils::parse_component_payload(self, component, payload, whole)?;
                (0..count).for_each(|_| self.keep_instance());
            }
            Payload::ComponentExportSection(section) => {
                let kinds: Vec<_> = section
                    .clone()
                    .into_iter()
                    .map(|export| export.map(|it| it.kind))
                    .collect::<Result<_, _>>()?;
                let payload = Payload::ComponentExportSection(section);
                component_utils::parse_component_payload(self, component, payload, whole)?;
                kinds.into_iter().for_each(|kind| self.keep(kind));
            }
            other => {
                return component_utils::parse_component_payload(self, component, other, whole);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Component that imports a provided and an absent interface, calls a function of each, and
    /// drops a resource of the absent one.
    const OPEN_COMPONENT: &str = r#"(component
        (type $log (instance (export "write" (func (param "n" u32)))))
        (import "toolhost:toolkit/log@1.0.0" (instance $is_provided (type $log)))
        (type $sockets (instance
            (export "socket" (type $socket (sub resource)))
            (type $own (own $socket))
            (type $made (func (result $own)))
            (export "create" (func (type $made)))))
        (import "wasi:sockets/tcp@0.2.9" (instance $absent (type $sockets)))
        (alias export $absent "socket" (type $socket))
        (type $again (instance
            (alias outer 1 $socket (type $outer))
            (export "socket" (type $used (eq $outer)))
            (type $borrowed (borrow $used))
            (type $sent (func (param "to" $borrowed)))
            (export "send" (func (type $sent)))))
        (import "wasi:sockets/send@0.2.9" (instance $further (type $again)))
        (alias export $absent "create" (func $create))
        (alias export $further "send" (func $send))
        (alias export $is_provided "write" (func $write))
        (core func $create_core (canon lower (func $create)))
        (core func $send_core (canon lower (func $send)))
        (core func $drop_core (canon resource.drop $socket))
        (core func $write_core (canon lower (func $write)))
        (core module $main
            (import "host" "create" (func $create (result i32)))
            (import "host" "send" (func (param i32)))
            (import "host" "drop" (func (param i32)))
            (import "host" "write" (func $write (param i32)))
            (func (export "quiet") i32.const 7 call $write)
            (func (export "loud") call $create drop))
        (core instance $host
            (export "create" (func $create_core))
            (export "send" (func $send_core))
            (export "drop" (func $drop_core))
            (export "write" (func $write_core)))
        (core instance $run (instantiate $main (with "host" (instance $host))))
        (func $quiet (canon lift (core func $run "quiet")))
        (func $loud (canon lift (core func $run "loud")))
        (instance $entry (export "quiet" (func $quiet)) (export "loud" (func $loud)))
        (export "test:it/entry@1.0.0" (instance $entry)))"#;

    fn is_provided(name: &str) -> bool {
        name.starts_with("toolhost:")
    }

    fn closed(text: &str) -> Vec<u8> {
        let closed = stub_imports(
            &wat::parse_str(text).unwrap(),
            "test:it/entry@1.0.0",
            is_provided,
        )
        .unwrap();
        wasmparser::Validator::new().validate_all(&closed).unwrap();
        closed
    }

    fn call(component: &[u8], name: &str) -> (Vec<u32>, bool) {
        use wasmtime::{
            Engine, Store,
            component::{Component, Linker},
        };
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        let write = |mut store: wasmtime::StoreContextMut<'_, Vec<u32>>, (number,): (u32,)| {
            store.data_mut().push(number);
            Ok(())
        };
        linker
            .instance("toolhost:toolkit/log@1.0.0")
            .unwrap()
            .func_wrap("write", write)
            .unwrap();
        let component = Component::new(&engine, component).unwrap();
        let mut store = Store::new(&engine, Vec::new());
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let entry = instance
            .get_export_index(&mut store, None, "test:it/entry@1.0.0")
            .unwrap();
        let function = instance
            .get_export_index(&mut store, Some(&entry), name)
            .unwrap();
        let function = instance
            .get_typed_func::<(), ()>(&mut store, function)
            .unwrap();
        let ended = function.call(&mut store, ()).is_ok();
        (store.into_data(), ended)
    }

    #[test]
    fn absent_imports_are_replaced_by_traps() {
        let closed = closed(OPEN_COMPONENT);
        assert_eq!(
            crate::component::imports(&closed).unwrap(),
            ["toolhost:toolkit/log@1.0.0"]
        );
        assert_eq!(call(&closed, "quiet"), (vec![7], true));
        assert_eq!(call(&closed, "loud"), (vec![], false));
    }

    #[test]
    fn wrapped_component_is_unwrapped() {
        let wrapper = format!("(component (component) {} (core module))", OPEN_COMPONENT);
        let closed = closed(&wrapper);
        assert_eq!(call(&closed, "quiet"), (vec![7], true));
    }

    #[test]
    fn component_with_provided_imports_stays_unchanged() {
        let text = r#"(component (import "toolhost:toolkit/log@1.0.0" (instance)))"#;
        assert_eq!(closed(text), wat::parse_str(text).unwrap());
    }
}
