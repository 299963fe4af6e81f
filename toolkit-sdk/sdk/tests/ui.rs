//! Compile errors that authors see. Each error points at the author's line and says what to write
//! instead. `ui/valid.rs` compiles: it is a test target, so that the dependencies of the others
//! need no code.

#[test]
fn compile_errors_point_at_authors_line() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/tool.rs");
    cases.compile_fail("tests/ui/trigger.rs");
    cases.compile_fail("tests/ui/toolkit.rs");
    cases.compile_fail("tests/ui/types.rs");
}
