//! Dated versions, `YYYYMMDD_NN`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The version of a toolkit: a day and a number within it, for example `20261121_00`. Its order as
/// text is the order in time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

/// The error for a string that is not `YYYYMMDD_NN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidVersion(String);

impl Version {
    /// Returns the version as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the version's day exists. A version with a day that does not exist can be
    /// read, because earlier servers accepted it, but cannot be published.
    #[must_use]
    pub fn is_on_calendar(&self) -> bool {
        let year = number(&self.0[..4]);
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match number(&self.0[4..6]) {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        number(&self.0[6..8]) <= days
    }
}

fn number(digits: &str) -> u32 {
    digits.parse().unwrap_or_default()
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let valid = match text.split_once('_') {
            Some((day, number)) => {
                day.len() == 8
                    && number.len() == 2
                    && has_only_digits(day)
                    && has_only_digits(number)
                    && is_day(day)
            }
            None => false,
        };
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidVersion(text.to_owned()))
        }
    }
}

fn has_only_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
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
        write!(
            f,
            "`{}` is not a dated version; write year, month, day and a number, for example 20261121_00",
            self.0
        )
    }
}

impl std::error::Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn version_is_a_day_and_a_number() {
        for text in ["20261121_00", "20260101_99"] {
            assert_eq!(text.parse::<Version>().unwrap().as_str(), text);
        }
        for text in [
            "",
            "20261121",
            "2026112_000",
            "20261321_00",
            "20261100_00",
            "20261121_0a",
            "20261121-00",
            "２0261121_00",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn days_that_no_month_has_are_told() {
        let on_calendar = |text: &str| text.parse::<Version>().unwrap().is_on_calendar();
        for text in [
            "20260131_00",
            "20260430_00",
            "20240229_00",
            "20000229_00",
            "20261231_00",
        ] {
            assert!(on_calendar(text), "{text}");
        }
        for text in ["20260230_00", "20260229_00", "20260431_00", "21000229_00"] {
            assert!(!on_calendar(text), "{text}");
        }
    }

    #[test]
    fn versions_are_ordered_by_time() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("20261121_00") < version("20261121_01"));
        assert!(version("20261121_99") < version("20261201_00"));
    }
}
