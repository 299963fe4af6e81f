//! Link arguments of this toolkit only. Flags for all toolkits would rebuild the standard library.

/// Stack size in bytes, larger than that of other toolkits: JSON Schema validation recurses for
/// each level of data and schema.
const STACK_BYTES: u32 = 1 << 20;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells a build script its target by the environment"
)]
fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|target| target == "wasm32") {
        println!("cargo:rustc-link-arg=-zstack-size={STACK_BYTES}");
        // Cargo does not apply the profile's `strip` to a package with its own profile override.
        println!("cargo:rustc-link-arg=--strip-all");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
