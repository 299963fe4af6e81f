//! Checks of a scheme's templates: they must be well formed and use only known fields.

use super::Report;
use crate::template::Template;

/// Checks that a template is well formed and names only these fields. Returns the fields that it
/// names.
pub(super) fn check<'a>(template: &'a str, known: &[&str], report: &mut Report) -> Vec<&'a str> {
    if Template::parse(template).is_ok_and(|template| template.digests()) {
        report.add("digests may be used only in the requests of a flow and in signatures");
    }
    check_of_flow(template, known, report)
}

/// Checks a template of a flow's requests or of a signature, which may contain digests.
pub(super) fn check_of_flow<'a>(
    template: &'a str,
    known: &[&str],
    report: &mut Report,
) -> Vec<&'a str> {
    match Template::parse(template) {
        Ok(template) => {
            let fields = template.fields();
            for field in fields.iter().filter(|field| !known.contains(field)) {
                report.add(format_args!("`{{{field}}}` is not a field of this scheme"));
            }
            fields
        }
        Err(problem) => {
            report.add(problem);
            Vec::new()
        }
    }
}
