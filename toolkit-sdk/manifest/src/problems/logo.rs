//! Logos: shown in browsers, so an SVG document must not bring anything that runs or loads.

use super::Report;

const LARGEST: usize = 64 * 1024;
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const FORBIDDEN: [&str; 10] = [
    "<script",
    "<foreignobject",
    "<iframe",
    "<embed",
    "<object",
    "<!entity",
    "<!doctype",
    "javascript:",
    "@import",
    "<style",
];

pub(super) fn check(logo: &str, report: &mut Report) {
    if logo.len() > LARGEST {
        report.add(format_args!("{} bytes are too many; at most {LARGEST}", logo.len()));
    }
    let trimmed = logo.trim_start();
    if let Some(data) = trimmed.strip_prefix("data:") {
        check_data(data, report);
    } else if trimmed.starts_with("<svg") || (trimmed.starts_with("<?xml") && trimmed.contains("<svg")) {
        check_svg(&trimmed.to_ascii_lowercase(), report);
    } else {
        report.add("write an SVG document or a `data:` URL of an image");
    }
}

fn check_data(data: &str, report: &mut Report) {
    let Some((media_type, content)) = data.split_once(";base64,") else {
        return report.add("write the `data:` URL with `;base64,`");
    };
    if !IMAGES.contains(&media_type) {
        report.add(format_args!("`{media_type}` is not an image of one of the kinds {}", IMAGES.join(", ")));
    }
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if content.is_empty() || !content.bytes().all(digit) {
        report.add("the `data:` URL is not base64");
    }
}

fn check_svg(svg: &str, report: &mut Report) {
    for word in FORBIDDEN.iter().filter(|word| svg.contains(*word)) {
        report.add(format_args!("remove `{word}` from the SVG document"));
    }
    for attribute in svg.split([' ', '\n', '\t', '\r', '"', '\'', '/']).filter_map(|part| part.split_once('=')) {
        let (name, _) = attribute;
        let letters = name.trim();
        if letters.len() > 2 && letters.starts_with("on") && letters.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            report.add(format_args!("remove the event handler `{letters}` from the SVG document"));
        }
    }
    let loads = ["http://", "https://", "//"].iter().any(|start| {
        ["\"", "'"].iter().any(|quote| svg.contains(&format!("href={quote}{start}")))
            || svg.contains(&format!("url({start}"))
    });
    if loads {
        report.add("remove links to other addresses from the SVG document");
    }
}
