//! Patterns with `*`.
//!
//! Written by hand: for `globset`, `{owner}` in the path of a description is a choice and not text,
//! and `/repos/**` excludes `/repos`.

/// Returns true if a string matches a pattern, where `*` matches any characters.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = pieces.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    // The leftmost match is sufficient: the part after a `*` may start anywhere after it.
    for part in middle {
        let Some(place) = rest.find(part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// Returns true if a path matches a pattern, where `*` stays within a segment and `**` matches any
/// number of segments.
pub(super) fn fits_path(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.trim_matches('/').split('/').collect();
    let path: Vec<&str> = path.trim_matches('/').split('/').collect();
    // Row of the usual matching table: entry `n` is true if the first `n` segments of the path
    // match the pattern so far. The time is the product of both lengths.
    let mut row: Vec<bool> = (0..=path.len()).map(|length| length == 0).collect();
    for segment in pattern {
        let mut next = vec![false; path.len() + 1];
        for length in 0..=path.len() {
            next[length] = match segment {
                "**" => row[length] || (length > 0 && next[length - 1]),
                _ => length > 0 && row[length - 1] && fits(segment, path[length - 1]),
            };
        }
        row = next;
    }
    row[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, text) in [
            ("*", ""),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*b*c", "axxbyc"),
            ("repos/*", "repos/get/all"),
            ("a", "a"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*b", "abc"), ("*ab*ab", "ab"), ("", "a")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn two_stars_cross_segments_and_one_does_not() {
        for (pattern, path) in [
            ("/repos/*/issues", "/repos/{owner}/issues"),
            ("/repos/**", "/repos/{owner}/{repo}/issues"),
            ("/**/issues", "/repos/{owner}/issues"),
            ("/**", "/"),
            ("/a/**/z", "/a/z"),
        ] {
            assert!(fits_path(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/repos/*", "/repos/a/b"),
            ("/a", "/a/b"),
            ("/**/z", "/a/b"),
        ] {
            assert!(!fits_path(pattern, path), "{pattern} {path}");
        }
    }
}
