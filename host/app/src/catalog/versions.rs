//! Resolution of the version of a toolkit. No other module decides which version a caller gets.

use std::collections::BTreeMap;

/// The selector of the greatest version.
pub const LATEST: &str = "latest";
/// The selector of the first version, which every toolkit has.
pub const BASE: &str = "00000000_00";

/// The reason why no version was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// The toolkit lacks the version.
    Unknown,
    /// Every candidate version is deprecated. An exact version could still be used.
    Deprecated,
}

/// Finds the version selected by `latest`, by an exact `YYYYMMDD_NN`, or by the base version
/// `00000000_00`.
///
/// Versions compare as strings. Of the versions that are not deprecated, `latest` is the greatest
/// and the base version is the oldest. An exact version is found even if it is deprecated. Fails
/// with [`Unresolved`] if no version was found.
pub(super) fn resolve<'a, R>(
    releases: &'a BTreeMap<String, R>,
    wanted: &str,
    is_deprecated: impl Fn(&R) -> bool,
) -> Result<&'a R, Unresolved> {
    let mut candidates = releases.values().filter(|release| !is_deprecated(release));
    let release = match wanted {
        LATEST => candidates.next_back(),
        BASE => candidates.next(),
        exact => return releases.get(exact).ok_or(Unresolved::Unknown),
    };
    release.ok_or(if releases.is_empty() {
        Unresolved::Unknown
    } else {
        Unresolved::Deprecated
    })
}

/// Returns true for `latest` and for text of the form of a version.
#[must_use]
pub fn is_version(text: &str) -> bool {
    let is_dated = text.len() == BASE.len()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_');
    is_dated || text == LATEST
}

/// Returns the name of a requested version for messages. A text of another form is not repeated, because
/// it could be a secret.
pub(super) fn described_version(version: &str) -> String {
    if is_version(version) {
        format!("version {version}")
    } else {
        "the version that the request names".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(releases: &[(&str, bool)], wanted: &str) -> Result<String, Unresolved> {
        let map = releases
            .iter()
            .map(|(v, gone)| ((*v).to_owned(), ((*v).to_owned(), *gone)))
            .collect();
        resolve(&map, wanted, |(_, gone)| *gone).map(|(version, _)| version.clone())
    }

    const THREE_RELEASES: [(&str, bool); 3] = [
        ("20260101_00", false),
        ("20260101_01", false),
        ("20261121_00", false),
    ];

    #[test]
    fn latest_is_the_greatest_and_base_the_oldest() {
        assert_eq!(of(&THREE_RELEASES, LATEST).unwrap(), "20261121_00");
        assert_eq!(of(&THREE_RELEASES, BASE).unwrap(), "20260101_00");
        assert_eq!(of(&THREE_RELEASES, "20260101_01").unwrap(), "20260101_01");
    }

    #[test]
    fn only_texts_like_versions_are_repeated() {
        assert_eq!(described_version("20260101_02"), "version 20260101_02");
        assert_eq!(described_version(LATEST), "version latest");
        assert_eq!(
            described_version("s3cr3t"),
            "the version that the request names"
        );
    }

    #[test]
    fn an_unknown_or_malformed_version_is_unknown() {
        for wanted in ["20260101_02", "", "LATEST", "newest", "20260101"] {
            assert_eq!(
                of(&THREE_RELEASES, wanted),
                Err(Unresolved::Unknown),
                "{wanted}"
            );
        }
        assert_eq!(of(&[], LATEST), Err(Unresolved::Unknown));
    }

    #[test]
    fn deprecated_version_needs_its_exact_name() {
        let some = [
            ("20260101_00", true),
            ("20260601_00", false),
            ("20261121_00", true),
        ];
        assert_eq!(of(&some, LATEST).unwrap(), "20260601_00");
        assert_eq!(of(&some, BASE).unwrap(), "20260601_00");
        assert_eq!(of(&some, "20261121_00").unwrap(), "20261121_00");
        let all = [("20260101_00", true)];
        assert_eq!(of(&all, LATEST), Err(Unresolved::Deprecated));
        assert_eq!(of(&all, "20260101_00").unwrap(), "20260101_00");
    }
}
