//! Templates: text with expressions in braces.
//!
//! `{field}` is the value of a field, `{field.part}` a part of a JSON value, `{a || b ||
//! "text"}` the first of several values that exists, and `{base64({id}:{secret})}` the result of a
//! function on templates. The functions are `base64`, `base64url` (without padding), `sha1`,
//! `sha256`, `sha512`, and with a key `hmac_sha1(key, text)`, `hmac_sha256` and `hmac_sha512`.
//! Digests are lower-case hex or, as `sha256_base64` and so on, base64. Quoted text may contain
//! braces. A template contains no loops and sends no requests.
//!
//! Written by hand: template engines of crates have loops, filters and escapes for HTML, and a
//! template of a toolkit must be judged completely before it runs.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};

const MAX_TEMPLATE_BYTES: usize = 4096;
const MAX_FUNCTION_DEPTH: usize = 4;

/// A well-formed template.
pub(crate) struct Template<'a>(Vec<Part<'a>>);

enum Part<'a> {
    Text(&'a str),
    /// The first of these terms that has a value.
    Any(Vec<Term<'a>>),
}

enum Term<'a> {
    Text(&'a str),
    Field(&'a str),
    Function(Function, Vec<Template<'a>>),
}

#[derive(Clone, Copy)]
enum Function {
    Base64,
    Base64Url,
    Digest(Digest),
}

/// A digest function, `hash(text)` or `hmac_hash(key, text)` (RFC 2104). Only servers provide it,
/// and only in flows and signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// Hash function.
    pub hash: Hash,
    /// True if the first argument is a key.
    pub keyed: bool,
    /// True if the result is base64 instead of lower-case hex.
    pub base64: bool,
}

/// A hash function (FIPS 180-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1, for providers that support nothing newer.
    Sha1,
    /// SHA-256, the most common one.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Digest {
    /// Finds the function of a name, for example `hmac_sha256_base64`.
    fn from_name(name: &str) -> Option<Self> {
        let (name, base64) = name
            .strip_suffix("_base64")
            .map_or((name, false), |name| (name, true));
        let (name, keyed) = name
            .strip_prefix("hmac_")
            .map_or((name, false), |name| (name, true));
        let hash = match name {
            "sha1" => Hash::Sha1,
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            _ => return None,
        };
        Some(Self {
            hash,
            keyed,
            base64,
        })
    }
}

/// A source of values for a template. Every lookup function by name is one.
pub trait Source {
    /// Returns the value of a field, or of a part of it as `field.part`.
    fn value(&self, name: &str) -> Option<String>;

    /// Returns the value of a digest.
    fn digest(&self, _digest: Digest, _arguments: &[String]) -> Option<String> {
        None
    }
}

impl<F: Fn(&str) -> Option<String>> Source for F {
    fn value(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// Fills a template. Returns `None` if a value is missing.
#[must_use]
pub fn fill(template: &str, source: &impl Source) -> Option<String> {
    fill_each(template, source, |text| text)
}

/// Fills a template as [`fill`] does, and converts each filled value, for example to encode it for
/// an address.
#[must_use]
pub fn fill_each(
    template: &str,
    source: &impl Source,
    each: impl Fn(String) -> String,
) -> Option<String> {
    Template::parse(template).ok()?.fill(source, &each)
}

impl<'a> Template<'a> {
    /// Parses a template. The error says what is wrong with it.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(format!(
                "{} bytes are too long; at most {MAX_TEMPLATE_BYTES}",
                text.len()
            ));
        }
        Self::nested(text, 0)
    }

    fn nested(text: &'a str, depth: usize) -> Result<Self, String> {
        if depth > MAX_FUNCTION_DEPTH {
            return Err(format!(
                "functions are nested deeper than {MAX_FUNCTION_DEPTH}"
            ));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find(['{', '}']) {
            if rest.as_bytes()[start] == b'}' {
                return Err("`}` without `{`".to_owned());
            }
            if start > 0 {
                parts.push(Part::Text(&rest[..start]));
            }
            let inner = &rest[start + 1..];
            let end = unquoted(inner)
                .find(|&(_, byte, depth)| byte == b'}' && depth == 0)
                .map(|(at, ..)| at)
                .ok_or("`{` without `}`")?;
            let terms = split(&inner[..end], "||")
                .into_iter()
                .map(|term| Term::parse(term.trim(), depth));
            parts.push(Part::Any(terms.collect::<Result<_, _>>()?));
            rest = &inner[end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest));
        }
        Ok(Self(parts))
    }

    /// Returns the fields that the template names, without their parts.
    pub(crate) fn fields(&self) -> Vec<&'a str> {
        let mut fields = Vec::new();
        for part in &self.0 {
            let Part::Any(terms) = part else { continue };
            for term in terms {
                match term {
                    Term::Text(_) => {}
                    Term::Field(name) => {
                        fields.push(name.split_once('.').map_or(*name, |(field, _)| field))
                    }
                    Term::Function(_, arguments) => {
                        fields.extend(arguments.iter().flat_map(Self::fields))
                    }
                }
            }
        }
        fields
    }

    /// Returns true if the template contains a digest.
    pub(crate) fn digests(&self) -> bool {
        let terms = self.0.iter().filter_map(|part| {
            if let Part::Any(terms) = part {
                Some(terms)
            } else {
                None
            }
        });
        terms.flatten().any(|term| match term {
            Term::Text(_) | Term::Field(_) => false,
            Term::Function(Function::Digest(_), _) => true,
            Term::Function(_, arguments) => arguments.iter().any(Template::digests),
        })
    }

    fn fill(&self, source: &impl Source, each: &impl Fn(String) -> String) -> Option<String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Any(terms) => {
                    filled.push_str(&each(terms.iter().find_map(|term| term.fill(source))?))
                }
            }
        }
        Some(filled)
    }
}

impl<'a> Term<'a> {
    fn parse(text: &'a str, depth: usize) -> Result<Self, String> {
        if let Some(quoted) = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
        {
            return Ok(Self::Text(quoted));
        }
        let Some((name, arguments)) = text.split_once('(') else {
            return if is_name(text) {
                Ok(Self::Field(text))
            } else {
                Err(format!(
                    "`{{{text}}}` is not a field; a template is text and `{{field}}`"
                ))
            };
        };
        let inside = arguments
            .strip_suffix(')')
            .ok_or_else(|| format!("`{name}(` without `)`"))?;
        let (function, count) = match (name, Digest::from_name(name)) {
            ("base64", _) => (Function::Base64, 1),
            ("base64url", _) => (Function::Base64Url, 1),
            (_, Some(digest)) => (Function::Digest(digest), 1 + usize::from(digest.keyed)),
            (other, None) => {
                return Err(format!(
                    "`{other}` is not a function; there are base64, base64url, sha256, hmac_sha256, and these with sha1 \
                     and sha512 and as sha256_base64"
                ));
            }
        };
        let arguments = if count == 1 {
            vec![inside]
        } else {
            split(inside, ",")
        };
        if arguments.len() != count {
            return Err(format!(
                "`{name}` takes {count} arguments, not {}",
                arguments.len()
            ));
        }
        let read = arguments
            .into_iter()
            .map(|text| Template::nested(text, depth + 1));
        Ok(Self::Function(function, read.collect::<Result<_, _>>()?))
    }

    fn fill(&self, source: &impl Source) -> Option<String> {
        let (function, arguments) = match self {
            Self::Text(text) => return Some((*text).to_owned()),
            Self::Field(name) => return source.value(name),
            Self::Function(function, arguments) => (function, arguments),
        };
        let filled = arguments
            .iter()
            .map(|argument| argument.fill(source, &|text| text))
            .collect::<Option<Vec<_>>>()?;
        match function {
            Function::Base64 => Some(STANDARD.encode(filled.first()?)),
            Function::Base64Url => Some(URL_SAFE_NO_PAD.encode(filled.first()?)),
            Function::Digest(digest) => source.digest(*digest, &filled),
        }
    }
}

/// Returns true if the text is `field` or `field.part`.
fn is_name(text: &str) -> bool {
    let (field, path) = text
        .split_once('.')
        .map_or((text, None), |(field, path)| (field, Some(path)));
    is_field(field) && path.is_none_or(|path| crate::path::is_path(path) && !path.is_empty())
}

/// Returns true if the text is a valid name of a field.
pub(crate) fn is_field(name: &str) -> bool {
    (1..=48).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the bytes outside of quotes, with their position and the number of brackets that are
/// open before them.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, u8, usize)> {
    let mut depth = 0_usize;
    let mut quoted = false;
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        quoted ^= byte == b'"';
        if quoted || byte == b'"' {
            return None;
        }
        let before = depth;
        match byte {
            b'{' | b'(' => depth += 1,
            b'}' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, byte, before))
    })
}

/// Splits a string at separators outside of quotes and brackets.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _, depth) in unquoted(text) {
        if depth == 0 && at >= from && text.as_bytes()[at..].starts_with(separator.as_bytes()) {
            pieces.push(&text[from..at]);
            from = at + separator.len();
        }
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Option<String> {
        fill(template, &|name: &str| match name {
            "a" => Some("1".to_owned()),
            "n" => Some("2".to_owned()),
            "key.part" => Some("p".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn a_template_is_filled_or_not_used() {
        for (template, expected) in [
            ("x{a}y{n}", Some("x1y2")),
            ("{a}{b}", None),
            ("{a", None),
            ("plain", Some("plain")),
            ("{key.part}", Some("p")),
            ("{b || a || n}", Some("1")),
            (r#"{b||"none, (really) {"}!"#, Some("none, (really) {!")),
            ("{b || c}", None),
        ] {
            assert_eq!(filled(template).as_deref(), expected, "{template}");
        }
    }

    /// Uses the test vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_standard_and_source_computes_digests() {
        assert_eq!(
            filled("{base64(foob)} {base64({a}:{n})}").as_deref(),
            Some("Zm9vYg== MToy")
        );
        assert_eq!(filled("{base64url(foob)}").as_deref(), Some("Zm9vYg"));
        assert_eq!(
            filled("{base64({sha256({a})})}"),
            None,
            "this source has none"
        );
        let digests = |template| Template::parse(template).unwrap().digests();
        assert!(digests("{a || base64({hmac_sha256(k,{a})})}") && !digests("{base64({a})}"));
    }

    #[test]
    fn fields_are_found_wherever_they_stand() {
        let template =
            Template::parse(r#"{a}{b.c || "d"}{hmac_sha256({e},{base64({f})})}"#).unwrap();
        assert_eq!(template.fields(), ["a", "b", "e", "f"]);
    }

    #[test]
    fn only_filled_values_are_converted() {
        let each = fill_each("a/{a}", &|_: &str| Some("b/c".to_owned()), |text| {
            text.replace('/', "%2F")
        });
        assert_eq!(each.as_deref(), Some("a/b%2Fc"));
    }

    #[test]
    fn what_is_no_template_says_why() {
        for (template, why) in [
            ("{", "`{` without `}`"),
            ("a}", "`}` without `{`"),
            ("{A}", "is not a field"),
            ("{}", "is not a field"),
            ("{a.}", "is not a field"),
            ("{a ||}", "is not a field"),
            ("{md5({a})}", "is not a function"),
            ("{sha256({a}}", "without"),
            ("{hmac_sha256({a})}", "2 arguments"),
            (
                "{base64({base64({base64({base64({base64({a})})})})})}",
                "deep",
            ),
            (&"a".repeat(5000), "too long"),
        ] {
            let problem = Template::parse(template).err().unwrap_or_default();
            assert!(problem.contains(why), "{template}: {problem}");
        }
    }
}
