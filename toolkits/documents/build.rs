//! Link arguments of this toolkit alone; flags for all would build the standard library again.

/// Larger than the others': checking JSON against a schema calls itself for each level of both.
const STACK: u32 = 1 << 20;

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its target by the environment")]
fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|target| target == "wasm32") {
        println!("cargo:rustc-link-arg=-zstack-size={STACK}");
        // The profile's `strip` is not applied to a package with an override of its own.
        println!("cargo:rustc-link-arg=--strip-all");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
