//! Gives this toolkit a larger stack than the others: checking JSON against a schema calls itself for each level of both.

const STACK: u32 = 1 << 20;

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script its target by the environment")]
fn main() {
    if std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|target| target == "wasm32") {
        println!("cargo:rustc-link-arg=-zstack-size={STACK}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
