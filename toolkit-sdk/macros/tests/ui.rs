//! Compile errors that authors see. Each error points at the author's line and says what to write
//! instead.

#[test]
fn compile_errors_point_at_authors_line() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/valid.rs");
    cases.compile_fail("tests/ui/tool.rs");
    cases.compile_fail("tests/ui/trigger.rs");
    cases.compile_fail("tests/ui/toolkit.rs");
    cases.compile_fail("tests/ui/types.rs");
}
