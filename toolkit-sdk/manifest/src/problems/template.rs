//! Templates: text, and `{field}` for the value of a field. Nothing else.

use super::Report;

/// The fields a template names, or what is wrong with it.
pub(super) fn fields(template: &str) -> Result<Vec<&str>, String> {
    let mut fields = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find(['{', '}']) {
        if rest.as_bytes()[start] == b'}' {
            return Err("`}` without `{`".to_owned());
        }
        let inner = &rest[start + 1..];
        let end = inner.find(['{', '}']).filter(|&end| inner.as_bytes()[end] == b'}');
        let Some(end) = end else { return Err("`{` without `}`".to_owned()) };
        let name = &inner[..end];
        if !is_field(name) {
            return Err(format!("`{{{name}}}` is not a field; a template is text and `{{field}}`"));
        }
        fields.push(name);
        rest = &inner[end + 1..];
    }
    Ok(fields)
}

/// Whether this can be the name of a field.
pub(super) fn is_field(name: &str) -> bool {
    (1..=48).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Checks that a template is well formed and names only these fields; answers those it names.
pub(super) fn check<'a>(template: &'a str, known: &[&str], report: &mut Report) -> Vec<&'a str> {
    match fields(template) {
        Ok(fields) => {
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
