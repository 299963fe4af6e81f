//! Compile errors that authors see. Each error points at the author's line and says what to write
//! instead.

#[test]
fn errors_point_at_the_authors_line_and_say_what_to_write() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/valid.rs");
    cases.compile_fail("tests/ui/tool.rs");
    cases.compile_fail("tests/ui/trigger.rs");
    cases.compile_fail("tests/ui/toolkit.rs");
    cases.compile_fail("tests/ui/types.rs");
}
