//! Conversion of a core module into a publishable component, with its manifest and its version.
//!
//! The toolkit itself provides the manifest: the module exports `toolkit_manifest: func() -> i64`,
//! whose result holds the address and the length of a JSON text in its memory. The export runs
//! once, here, with every import trapping and a limited number of instructions. Afterwards the
//! manifest can be read without running guest code.

use std::{fs, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use manifest::{Manifest, Version};
use serde_json::Value;
use wasmparser::{Parser, Payload};
use wasmtime::{Config, Engine, Linker, Module, OptLevel, Store};
use wit_component::ComponentEncoder;

/// Export with which a module describes itself.
pub(crate) const MANIFEST_EXPORT: &str = "toolkit_manifest";
/// Maximum number of instructions of the export. The largest manifests need a few million.
const MANIFEST_FUEL: u64 = 2_000_000_000;
/// Prefix of the imports that a toolkit may have.
const IMPORT_PREFIX: &str = "toolhost:toolkit/";

/// A finished component.
pub(crate) struct Component {
    pub(crate) bytes: Vec<u8>,
    pub(crate) manifest: Manifest,
    pub(crate) imports: Vec<String>,
    /// True if neither the author nor an argument chose the version, which is then the first of today.
    pub(crate) is_dated: bool,
}

/// Builds the component of a core module from the description that [`describe`] returns. `version`
/// takes precedence over the author's version; `today` is used if both are absent.
pub(crate) fn from_module(
    core: &[u8],
    described: Value,
    version: Option<&Version>,
    today: &Version,
) -> Result<Component> {
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|cause| {
            anyhow!(
                "cannot make a component of the module: {cause:#}{}",
                hint(&format!("{cause:#}"))
            )
        })?;
    let imports = imports(&encoded)?;
    let foreign: Vec<_> = imports
        .iter()
        .filter(|import| !import.starts_with(IMPORT_PREFIX))
        .cloned()
        .collect();
    if !foreign.is_empty() {
        let lines = foreign
            .iter()
            .map(|import| format!("\n  {import}: {}", sandbox::import_advice(import)));
        bail!(
            "the toolkit has imports that the host does not provide:{}",
            lines.collect::<String>()
        );
    }
    describe_with(encoded, described, version, today)
}

/// Returns advice about imports that only a dependency can have added.
fn hint(cause: &str) -> &'static str {
    let imports_any = |names: &[&str]| names.iter().any(|name| cause.contains(name));
    if imports_any(&["__wbindgen", "__wbg_"]) {
        "; a dependency is compiled for browsers: disable its features `js`, `wasmbind` or `wasm-bindgen`, which may be default features"
    } else if imports_any(&["wasi_snapshot_preview1", "wasi_unstable"]) {
        "; the module was compiled for WASI: compile it with `toolkit build`, for `wasm32-unknown-unknown`; dependencies in C cannot be used"
    } else {
        ""
    }
}

/// Adds the manifest to a component.
pub(crate) fn describe_with(
    component: Vec<u8>,
    described: Value,
    version: Option<&Version>,
    today: &Version,
) -> Result<Component> {
    let is_dated = version.is_none() && described["version"].is_null();
    let manifest = stamp(described, version, today)?;
    let imports = imports(&component)?;
    Ok(Component {
        bytes: manifest::embed(component, &manifest),
        manifest,
        imports,
        is_dated,
    })
}

/// Reads a component file and its manifest.
pub(crate) fn read(file: &Path) -> Result<(Vec<u8>, Manifest)> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let manifest =
        manifest_of(&bytes).with_context(|| format!("cannot read {}", file.display()))?;
    Ok((bytes, manifest))
}

/// Reads the manifest of a component. Its slug is checked to be safe in file names and URLs.
pub(crate) fn manifest_of(component: &[u8]) -> Result<Manifest> {
    let manifest = manifest::extract(component)?;
    if !manifest::is_slug(&manifest.slug) {
        bail!(
            "`{}` is not a valid slug of a toolkit",
            manifest.slug.escape_debug()
        );
    }
    Ok(manifest)
}

/// Returns the imports of a component in order, for example `toolhost:toolkit/http@1.0.0`.
pub(crate) fn imports(component: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.context("cannot read the component")? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    names.push(
                        import
                            .context("cannot read the component's imports")?
                            .name
                            .name
                            .to_owned(),
                    );
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Runs the describing export of a module. The result is cached in `cache`: a large module takes
/// seconds to compile, and equal bytes give an equal result.
pub(crate) fn describe(core: &[u8], cache: &Path) -> Result<Value> {
    let kept = cache.join(format!("{}.json", sandbox::Digest::compute(core)));
    if let Ok(bytes) = fs::read(&kept)
        && let Ok(described) = serde_json::from_slice(&bytes)
    {
        return Ok(described);
    }
    let json = manifest_text(core).context("cannot read the manifest that the module describes")?;
    let described = serde_json::from_slice(&json)
        .context("the manifest that the module describes is not JSON")?;
    fs::create_dir_all(cache)
        .with_context(|| format!("cannot make the folder {}", cache.display()))?;
    fs::write(&kept, &json).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(described)
}

fn manifest_text(core: &[u8]) -> Result<Vec<u8>> {
    let mut config = Config::new();
    // The code runs once, so that the fastest compilation is best.
    config
        .consume_fuel(true)
        .cranelift_opt_level(OptLevel::None);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, core)?;
    if module.get_export(MANIFEST_EXPORT).is_none() {
        bail!(
            "the module has no export `{MANIFEST_EXPORT}`; the crate needs a `toolkit! {{ … }}` declaration"
        );
    }
    let mut store = Store::new(&engine, ());
    store.set_fuel(MANIFEST_FUEL)?;
    let mut linker = Linker::new(&engine);
    linker.define_unknown_imports_as_traps(&module)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let export = instance.get_typed_func::<(), i64>(&mut store, MANIFEST_EXPORT)?;
    let place = export.call(&mut store, ())? as u64;
    let address = (place >> 32) as usize;
    let length = (place & u64::from(u32::MAX)) as usize;
    let memory = instance
        .get_memory(&mut store, "memory")
        .context("the module exports no memory")?;
    let text = memory
        .data(&store)
        .get(address..)
        .and_then(|rest| rest.get(..length));
    Ok(text
        .context("the manifest lies outside the module's memory")?
        .to_vec())
}

/// Sets the version: the argument, else the author's, else the first one of today.
fn stamp(mut described: Value, version: Option<&Version>, today: &Version) -> Result<Manifest> {
    let object = described
        .as_object_mut()
        .context("the manifest that the module describes is not a JSON object")?;
    let has_version = object
        .get("version")
        .is_some_and(|version| !version.is_null());
    if let Some(version) = version.or_else(|| (!has_version).then_some(today)) {
        object.insert("version".to_owned(), version.as_str().into());
    }
    serde_json::from_value(described).context(
        "the module's manifest is not of this command's format; use the `toolkit` and `toolkit-sdk` of one release",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(version: Option<&str>) -> Value {
        let mut value = json!({
            "abi": "1.0.0", "sdk": "toolkit-sdk 0.1.0", "slug": "hello", "name": "Hello", "description": "Greets.",
        });
        if let Some(version) = version {
            value["version"] = version.into();
        }
        value
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn version_argument_precedes_author_precedes_today() {
        let today = version("20261121_00");
        let asked = version("20270101_07");
        let stamped = |own: Option<&str>, asked: Option<&Version>| {
            stamp(described(own), asked, &today).unwrap().version
        };
        assert_eq!(stamped(Some("20260101_00"), Some(&asked)), asked);
        assert_eq!(stamped(None, Some(&asked)), asked);
        assert_eq!(stamped(Some("20260101_00"), None), version("20260101_00"));
        assert_eq!(stamped(None, None), today);
    }

    #[test]
    fn forbidden_dependency_imports_come_with_advice() {
        for (import, word) in [
            ("__wbindgen_placeholder__", "browser"),
            ("wasi_snapshot_preview1", "compiled for WASI"),
        ] {
            let module =
                wat::parse_str(format!(r#"(module (import "{import}" "f" (func)))"#)).unwrap();
            let Err(error) = from_module(&module, described(None), None, &version("20261121_00"))
            else {
                panic!("{import}")
            };
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn manifest_of_another_release_is_refused() {
        let mut other = described(None);
        other["invented_later"] = true.into();
        let error = stamp(other, None, &version("20261121_00")).unwrap_err();
        assert!(format!("{error:#}").contains("of one release"), "{error:#}");
    }

    #[test]
    fn only_top_level_imports_are_listed() {
        // A component that imports one instance and contains a core module with an import of its
        // own.
        let text = r#"(component
            (import "toolhost:toolkit/log@1.0.0" (instance))
            (core module (import "env" "other" (func)))
            (component (import "inner" (instance)))
            (import "wasi:io/poll@0.2.0" (instance)))"#;
        let bytes = wat::parse_str(text).unwrap();
        assert_eq!(
            imports(&bytes).unwrap(),
            ["toolhost:toolkit/log@1.0.0", "wasi:io/poll@0.2.0"]
        );
    }

    fn described_by(text: &str) -> Result<Value> {
        let cache = tempfile::tempdir().unwrap();
        describe(&wat::parse_str(text).unwrap(), cache.path())
    }

    #[test]
    fn module_without_manifest_export_is_refused() {
        let error = described_by("(module)").unwrap_err();
        assert!(format!("{error:#}").contains("toolkit!"), "{error:#}");
    }

    #[test]
    fn a_description_that_never_ends_is_stopped() {
        let endless = r#"(module (memory (export "memory") 1)
            (func (export "toolkit_manifest") (result i64) (loop (br 0)) (i64.const 0)))"#;
        let error = described_by(endless).unwrap_err();
        assert!(format!("{error:#}").contains("fuel"), "{error:#}");
    }

    #[test]
    fn description_is_read_and_cached() {
        let cache = tempfile::tempdir().unwrap();
        let text = r#"(module (memory (export "memory") 1) (data (i32.const 8) "{\"slug\":1}")
            (func (export "toolkit_manifest") (result i64) (i64.const 0x8_0000_000a)))"#;
        let core = wat::parse_str(text).unwrap();
        assert_eq!(describe(&core, cache.path()).unwrap(), json!({ "slug": 1 }));
        assert_eq!(describe(&core, cache.path()).unwrap(), json!({ "slug": 1 }));
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
        let outside = text.replace("0x8_0000_000a", "0xffff_0000_000a");
        let error = describe(&wat::parse_str(outside).unwrap(), cache.path()).unwrap_err();
        assert!(format!("{error:#}").contains("outside"), "{error:#}");
    }
}
