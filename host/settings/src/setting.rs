//! Declaration of settings: [`settings!`] makes a struct of values and a description of each.

use std::{collections::BTreeMap, ops::RangeInclusive};

use serde_json::Value;

/// Segment of a key that matches any name.
pub(super) const ANY_NAME: &str = "SLUG";

/// Description of one setting, from the declaration of its field.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// Full key, for example `limits.idle_s`. The segment `SLUG` matches any name.
    pub key: String,
    /// Doc comment of the field.
    pub doc: &'static str,
    /// Doc comment of the group.
    pub group_doc: &'static str,
    /// Default value; null if it is missing.
    pub default: Value,
    /// Unit of a number.
    pub unit: Option<&'static str>,
    /// Allowed numbers.
    pub range: Option<RangeInclusive<u64>>,
    /// Meaning of 0.
    pub zero: Option<&'static str>,
    /// Effect of not setting it, if it lacks a default value.
    pub unset: Option<&'static str>,
    /// Value for the example file, if the default value is missing.
    pub example: Option<Value>,
}

impl Setting {
    /// Describes a setting of which only the key and the texts are known.
    pub(super) fn new(key: &str, doc: &'static str, group_doc: &'static str) -> Self {
        Self {
            key: key.to_owned(),
            doc: doc.trim(),
            group_doc: group_doc.trim(),
            ..Self::default()
        }
    }

    /// Returns the key without the name of its group.
    pub(super) fn name(&self) -> &str {
        self.key
            .rsplit_once('.')
            .map_or(&self.key, |(_, name)| name)
    }

    /// Returns the key of its group; empty for settings outside any group.
    pub(super) fn group(&self) -> &str {
        self.key.rsplit_once('.').map_or("", |(group, _)| group)
    }

    /// Formats the default value with its unit, or the effect of not setting it.
    pub fn default_text(&self) -> String {
        match &self.default {
            Value::String(text) if !text.is_empty() => format!("`{text}`"),
            value @ (Value::Number(_) | Value::Bool(_)) => match self.unit {
                Some(unit) => format!("`{value}` {unit}"),
                None => format!("`{value}`"),
            },
            _ => self.unset.unwrap_or("none").to_owned(),
        }
    }

    /// Formats the allowed numbers with their unit, and the meaning of 0; empty if any number is allowed.
    pub fn range_text(&self) -> String {
        let range = self.range.as_ref().map(|range| match self.unit {
            Some(unit) => format!("{} {unit}", numbers_text(range)),
            None => numbers_text(range),
        });
        let zero = self.zero.map(|meaning| format!("0: {meaning}"));
        let parts: Vec<_> = range.into_iter().chain(zero).collect();
        parts.join("; ")
    }
}

/// Formats the allowed numbers of a setting.
pub(super) fn numbers_text(range: &RangeInclusive<u64>) -> String {
    match (range.start(), range.end()) {
        (0, most) => format!("at most {most}"),
        (least, most) => format!("{least} to {most}"),
    }
}

/// A struct of settings.
pub(crate) trait Group {
    /// Describes the settings in the order of their declaration, without default values.
    fn settings() -> Vec<Setting>;
}

impl<T: Group> Group for BTreeMap<String, T> {
    fn settings() -> Vec<Setting> {
        nested::<T>(ANY_NAME).collect()
    }
}

/// Describes the settings of a group below a key.
pub(super) fn nested<T: Group>(group: &str) -> impl Iterator<Item = Setting> {
    T::settings().into_iter().map(move |setting| Setting {
        key: format!("{group}.{}", setting.key),
        ..setting
    })
}

/// Declares a struct of settings, its default and the description of each setting.
///
/// A field is `/// DOC`, `#[setting(…)]` and `pub key: Type = default`; without a default the field
/// has that of its type. `#[setting]` takes fields of [`Setting`]: `unit`, `range`, `zero`, `unset`
/// and `example`. Structs of settings inside this one follow in `groups { … }`.
macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[setting($($attribute:ident = $value:expr),+ $(,)?)])?
                pub $key:ident: $type:ty $(= $default:expr)?,
            )+
            $(groups { $(pub $group:ident: $group_type:ty,)+ })?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $key: $type,)+
            $($(pub $group: $group_type,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: settings!(@default $($default)?),)+
                    $($($group: Default::default(),)+)?
                }
            }
        }

        impl $crate::setting::Group for $name {
            fn settings() -> Vec<$crate::setting::Setting> {
                let about = concat!($($about),+);
                let own = vec![$(
                    $crate::setting::Setting {
                        $($($attribute: Some($value.into()),)+)?
                        ..$crate::setting::Setting::new(stringify!($key), concat!($($doc),+), about)
                    },
                )+];
                let settings = own.into_iter();
                $($(let settings = settings.chain(
                    $crate::setting::nested::<$group_type>(stringify!($group)),
                );)+)?
                settings.collect()
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}

pub(super) use settings;
