//! Checks of logos. Browsers show logos, so an SVG document may contain shapes and texts, but
//! nothing that runs or loads.
//!
//! An XML parser reads the document, and it is rebuilt from the elements and attributes listed
//! here. Other content is refused in a new manifest and left out of a logo that was published
//! earlier.

use quick_xml::{
    Reader, XmlVersion,
    escape::escape,
    events::{BytesStart, Event},
};

use super::Report;

const MAX_LOGO_BYTES: usize = 64 * 1024;
const MAX_ELEMENT_DEPTH: usize = 32;
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const SVG_NAMESPACE: &str = "http://www.w3.org/2000/svg";
/// Elements that hold shapes.
const SHAPE_ELEMENTS: [&str; 15] = [
    "circle",
    "clipPath",
    "defs",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "mask",
    "path",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "svg",
];
/// Elements that hold text.
const TEXT_ELEMENTS: [&str; 4] = ["desc", "text", "title", "tspan"];
/// Attributes for screen readers. Their value may be any text.
const ACCESSIBILITY_ATTRIBUTES: [&str; 2] = ["aria-label", "role"];
/// Attributes with a plain value (see [`is_plain`]).
const ALLOWED_ATTRIBUTES: [&str; 63] = [
    "aria-hidden",
    "clip-path",
    "clip-rule",
    "clipPathUnits",
    "color",
    "cx",
    "cy",
    "d",
    "dominant-baseline",
    "dx",
    "dy",
    "fill",
    "fill-opacity",
    "fill-rule",
    "focusable",
    "font-family",
    "font-size",
    "font-style",
    "font-weight",
    "fr",
    "fx",
    "fy",
    "gradientTransform",
    "gradientUnits",
    "height",
    "id",
    "letter-spacing",
    "mask",
    "maskContentUnits",
    "maskUnits",
    "offset",
    "opacity",
    "overflow",
    "paint-order",
    "pathLength",
    "points",
    "preserveAspectRatio",
    "r",
    "rx",
    "ry",
    "shape-rendering",
    "spreadMethod",
    "stop-color",
    "stop-opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
    "transform",
    "version",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];
/// Functions that a value may call.
const ALLOWED_FUNCTIONS: [&str; 10] = [
    "hsl",
    "hsla",
    "matrix",
    "rgb",
    "rgba",
    "rotate",
    "scale",
    "skewX",
    "skewY",
    "translate",
];

pub(super) fn check(logo: &str, report: &mut Report) {
    if logo.len() > MAX_LOGO_BYTES {
        return report.add(format_args!(
            "{} bytes are too many; at most {MAX_LOGO_BYTES}",
            logo.len()
        ));
    }
    let trimmed = logo.trim_start();
    if let Some(data) = trimmed.strip_prefix("data:") {
        check_data(data, report);
    } else if is_svg(trimmed) {
        for problem in rebuilt(trimmed).1 {
            report.add(problem);
        }
    } else {
        report.add("write an SVG document or a `data:` URL of an image");
    }
}

/// Returns the form of a logo that browsers may show: an image as it is, an SVG document without
/// its disallowed content, or an empty text for anything else.
#[must_use]
pub fn sanitized_logo(logo: &str) -> String {
    let trimmed = logo.trim_start();
    if is_svg(trimmed) {
        return rebuilt(trimmed).0;
    }
    let mut report = Report::default();
    check(logo, &mut report);
    if report.finish().is_empty() {
        logo.to_owned()
    } else {
        String::new()
    }
}

fn is_svg(logo: &str) -> bool {
    logo.starts_with("<svg") || (logo.starts_with("<?xml") && logo.contains("<svg"))
}

fn check_data(data: &str, report: &mut Report) {
    let Some((media_type, content)) = data.split_once(";base64,") else {
        return report.add("write the `data:` URL with `;base64,`");
    };
    if !IMAGE_TYPES.contains(&media_type) {
        report.add(format_args!(
            "`{media_type}` is not an image of one of the kinds {}",
            IMAGE_TYPES.join(", ")
        ));
    }
    let is_base64 = content
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    if content.is_empty() || !is_base64 {
        report.add("the `data:` URL is not base64");
    }
}

/// Rebuilds a document from its allowed content, and lists the other content. A document that
/// cannot be read results in an empty text.
fn rebuilt(svg: &str) -> (String, Vec<String>) {
    let mut rebuild = Rebuild::default();
    match rebuild.read(svg) {
        Ok(()) => (rebuild.out, rebuild.problems),
        Err(cause) => (
            String::new(),
            vec![format!("the SVG document cannot be read: {cause}")],
        ),
    }
}

#[derive(Default)]
struct Rebuild {
    out: String,
    problems: Vec<String>,
    /// Names of the open elements.
    open: Vec<String>,
    /// Number of open elements, counted from the first omitted one.
    left_out: usize,
    /// True if the root element was read.
    complete: bool,
}

impl Rebuild {
    fn read(&mut self, svg: &str) -> Result<(), String> {
        let mut reader = Reader::from_str(svg);
        loop {
            match reader.read_event().map_err(|cause| cause.to_string())? {
                Event::Start(element) => self.start(&element, false)?,
                Event::Empty(element) => self.start(&element, true)?,
                Event::End(_) => self.end(),
                Event::Text(text) => {
                    self.text(&text.xml10_content().map_err(|cause| cause.to_string())?)
                }
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(|cause| cause.to_string())?;
                    let text = quick_xml::escape::unescape(&format!("&{name};"))
                        .map_err(|cause| cause.to_string())?
                        .into_owned();
                    self.text(&text);
                }
                Event::CData(_) => self
                    .problems
                    .push("remove the CDATA section from the SVG document".into()),
                Event::DocType(_) => self
                    .problems
                    .push("remove the DOCTYPE from the SVG document".into()),
                Event::PI(_) => self
                    .problems
                    .push("remove the processing instruction from the SVG document".into()),
                Event::Decl(_) | Event::Comment(_) => {}
                Event::Eof if self.complete && self.open.is_empty() => return Ok(()),
                Event::Eof => return Err("the document is incomplete".into()),
            }
        }
    }

    fn start(&mut self, element: &BytesStart<'_>, empty: bool) -> Result<(), String> {
        let name =
            std::str::from_utf8(element.name().into_inner()).map_err(|cause| cause.to_string())?;
        if self.open.is_empty() && (self.complete || name != "svg") {
            return Err("it is not one `<svg>` element".into());
        }
        if self.open.len() >= MAX_ELEMENT_DEPTH {
            return Err(format!(
                "its elements are nested deeper than {MAX_ELEMENT_DEPTH}"
            ));
        }
        self.complete = true;
        let allowed = SHAPE_ELEMENTS.contains(&name) || TEXT_ELEMENTS.contains(&name);
        if !allowed {
            self.problems
                .push(format!("remove `<{name}>` from the SVG document"));
        }
        if allowed && self.left_out == 0 {
            let mut attributes = self.attributes(element)?;
            if self.open.is_empty() && !attributes.contains(" xmlns=") {
                // Without the namespace, a browser does not show a standalone document.
                attributes.insert_str(0, &format!(" xmlns=\"{SVG_NAMESPACE}\""));
            }
            self.out.push_str(&format!(
                "<{name}{attributes}{}>",
                if empty { "/" } else { "" }
            ));
        }
        if !empty {
            self.left_out += usize::from(!allowed || self.left_out > 0);
            self.open.push(name.to_owned());
        }
        Ok(())
    }

    fn end(&mut self) {
        let Some(name) = self.open.pop() else { return };
        if self.left_out > 0 {
            self.left_out -= 1;
        } else {
            self.out.push_str(&format!("</{name}>"));
        }
    }

    fn text(&mut self, text: &str) {
        let holds_text = self
            .open
            .last()
            .is_some_and(|name| TEXT_ELEMENTS.contains(&name.as_str()));
        if holds_text && self.left_out == 0 {
            self.out.push_str(&escape(text));
        } else if !text.trim().is_empty() && self.left_out == 0 {
            self.problems
                .push("remove the text between the shapes of the SVG document".into());
        }
    }

    fn attributes(&mut self, element: &BytesStart<'_>) -> Result<String, String> {
        let mut out = String::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|cause| cause.to_string())?;
            let name = std::str::from_utf8(attribute.key.into_inner())
                .map_err(|cause| cause.to_string())?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|cause| cause.to_string())?;
            if is_allowed(name, &value) {
                out.push_str(&format!(" {name}=\"{}\"", escape(value.as_ref())));
            } else {
                self.problems.push(format!(
                    "remove the attribute `{name}` from the SVG document, or write a plain value"
                ));
            }
        }
        Ok(out)
    }
}

fn is_allowed(name: &str, value: &str) -> bool {
    match name {
        "xmlns" => value == SVG_NAMESPACE,
        _ if ACCESSIBILITY_ATTRIBUTES.contains(&name) => true,
        _ => ALLOWED_ATTRIBUTES.contains(&name) && is_plain(value),
    }
}

/// Returns true if a value contains no character that starts an escape, a string or an address in
/// CSS, and calls only [`ALLOWED_FUNCTIONS`], or `url` with an element of the same document.
fn is_plain(value: &str) -> bool {
    let is_plain = value
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || " \t\n\r#.,()%+-_".contains(letter));
    if !is_plain {
        return false;
    }
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('(') {
        let function = before
            .rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
            .next();
        let local = after.trim_start().starts_with('#');
        if !function
            .is_some_and(|name| ALLOWED_FUNCTIONS.contains(&name) || (name == "url" && local))
        {
            return false;
        }
        rest = after;
    }
    true
}
