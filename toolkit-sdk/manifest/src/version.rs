//! Dated versions, `YYYYMMDD_NN`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The version of a toolkit: a day and a number within it, for example `20261121_00`. Ordered as text, which is by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

/// The text is not `YYYYMMDD_NN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidVersion(String);

impl Version {
    /// The version as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let valid = match text.split_once('_') {
            Some((day, number)) => day.len() == 8 && number.len() == 2 && digits(day) && digits(number) && is_day(day),
            None => false,
        };
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidVersion(text.to_owned())) }
    }
}

fn is_day(day: &str) -> bool {
    ("01"..="12").contains(&&day[4..6]) && ("01"..="31").contains(&&day[6..8])
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a dated version; write year, month, day and a number, for example 20261121_00", self.0)
    }
}

impl std::error::Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn only_a_day_and_a_number_are_a_version() {
        for text in ["20261121_00", "20260101_99"] {
            assert_eq!(text.parse::<Version>().unwrap().as_str(), text);
        }
        for text in
            ["", "20261121", "2026112_000", "20261321_00", "20261100_00", "20261121_0a", "20261121-00", "２0261121_00"]
        {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_by_time() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("20261121_00") < version("20261121_01"));
        assert!(version("20261121_99") < version("20261201_00"));
    }
}
