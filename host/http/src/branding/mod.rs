//! The operator word in identifiers of the API.
//!
//! The code spells identifiers with the default word, `service`; this module replaces it with the
//! word of this installation. The replacement happens only in requests and responses: nothing
//! stored contains the word.

mod serializer;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use app::agents::meta::MetaTool;
use bytes::Bytes;
use parking_lot::RwLock;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

pub use self::serializer::Branded;

/// The operator word in the code, and of an installation that does not configure one.
pub const DEFAULT_BRAND: &str = "service";

/// Members of request bodies that contain the word.
const REQUEST_MEMBERS: [&str; 4] = [
    "is_service_link_enabled_for_managed_auth",
    "managed_auth_by_service",
    "managed_auth_via_service",
    "restrict_egress_to_service",
];

/// Properties of an object, whose values stay as they were written.
type RawProperties = BTreeMap<String, Box<RawValue>>;

/// The operator word in its two casings.
#[derive(Debug)]
pub struct Branding {
    lower: String,
    upper: String,
    /// Names of struct fields and enum variants that contain the word, as this installation spells
    /// them. They live as long as the process, because serializers take only such names.
    names: RwLock<HashMap<&'static str, &'static str>>,
}

impl Branding {
    /// Takes the word in lower case.
    pub fn new(word: &str) -> Self {
        Self {
            lower: word.to_owned(),
            upper: word.to_ascii_uppercase(),
            names: RwLock::default(),
        }
    }

    /// Returns true if every identifier keeps its default spelling.
    pub(crate) fn is_default(&self) -> bool {
        self.lower == DEFAULT_BRAND
    }

    /// Returns an identifier with this installation's word.
    pub fn rename<'a>(&self, identifier: &'a str) -> Cow<'a, str> {
        // The name of an auth scheme is the same everywhere.
        if self.is_default() || identifier.ends_with("SERVICE_ACCOUNT") {
            return identifier.into();
        }
        // The upper case is replaced first: its replacement lacks lower-case letters that could
        // match the word.
        let upper = identifier.replace(&DEFAULT_BRAND.to_ascii_uppercase(), &self.upper);
        upper.replace(DEFAULT_BRAND, &self.lower).into()
    }

    /// Returns a string in which the slugs of meta tools have this installation's word. It may be
    /// JSON.
    pub fn rename_slugs<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        if !self.is_default() {
            for tool in MetaTool::all() {
                if text.contains(tool.slug()) {
                    text = text.replace(tool.slug(), &self.rename(tool.slug())).into();
                }
            }
        }
        text
    }

    /// Returns the data of a meta tool's result with this installation's word in the slugs of meta tools,
    /// except in the data of other tools.
    pub fn rename_result(&self, tool: MetaTool, data: Bytes) -> Bytes {
        if self.is_default() {
            return data;
        }
        let renamed = match std::str::from_utf8(&data) {
            Ok(text) if tool == MetaTool::MultiExecuteTool => self.rename_reasons(text),
            Ok(text) if !tool.returns_tool_data() => Some(self.rename_slugs(text).into_owned()),
            _ => None,
        };
        renamed.map_or(data, Bytes::from)
    }

    /// Returns the result of several calls with this installation's word in the reasons why some of them
    /// did not run, or `None` if all ran.
    fn rename_reasons(&self, text: &str) -> Option<String> {
        if !text.contains(r#""response":null"#) {
            return None;
        }
        let mut result: RawProperties = serde_json::from_str(text).ok()?;
        let results = result.get_mut("results")?;
        let mut calls: Vec<RawProperties> = serde_json::from_str(results.get()).ok()?;
        let without_response = calls
            .iter_mut()
            .filter(|call| call.get("response").is_some_and(|raw| raw.get() == "null"));
        for reason in without_response.filter_map(|call| call.get_mut("error")) {
            let renamed = self.rename_slugs(reason.get()).into_owned();
            *reason = RawValue::from_string(renamed).ok()?;
        }
        *results = to_raw_value(&calls).ok()?;
        serde_json::to_string(&result).ok()
    }

    /// Returns the name of a struct field or enum variant with this installation's word.
    pub(super) fn name(&self, default: &'static str) -> &'static str {
        let names = self.names.read();
        if let Some(name) = names.get(default) {
            return name;
        }
        drop(names);
        let Cow::Owned(renamed) = self.rename(default) else {
            return default;
        };
        let mut names = self.names.write();
        names.entry(default).or_insert_with(|| renamed.leak())
    }

    /// Returns a request body with the default names of its members.
    pub fn restore(&self, body: Value) -> Value {
        if self.is_default() {
            return body;
        }
        match body {
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| {
                    let default = REQUEST_MEMBERS
                        .into_iter()
                        .find(|member| self.rename(member) == name);
                    let name = default.map_or(name, str::to_owned);
                    (name, self.restore(value))
                })
                .collect(),
            other => other,
        }
    }

    /// Returns an API description with this installation's identifiers in every string that
    /// consists of one identifier.
    pub fn render(&self, described: Value) -> Value {
        match described {
            Value::String(text) => self.rendered(text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.render(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (self.rendered(name), self.render(value)))
                .collect(),
            other => other,
        }
    }

    fn rendered(&self, text: String) -> String {
        let one = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if one {
            self.rename(&text).into_owned()
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every identifier of the API that contains the word.
    const BRANDED_IDENTIFIERS: [&str; 32] = [
        "is_service_managed",
        "use_service_managed_auth",
        "service_managed_auth_schemes",
        "service_managed_auth",
        "service",
        "managed_auth_via_service",
        "managed_auth_by_service",
        "include_service_helper_actions",
        "is_service_link_enabled_for_managed_auth",
        "restrict_egress_to_service",
        "service_link_redirect_url",
        "SERVICE_LINK",
        "SERVICE_SEARCH_TOOLS",
        "SERVICE_MULTI_EXECUTE_TOOL",
        "SERVICE_MANAGE_CONNECTIONS",
        "SERVICE_WAIT_FOR_CONNECTIONS",
        "SERVICE_REMOTE_WORKBENCH",
        "SERVICE_REMOTE_BASH_TOOL",
        "SERVICE_GET_TOOL_SCHEMAS",
        "SERVICE_UPSERT_RECIPE",
        "SERVICE_GET_RECIPE",
        "SERVICE_PROXY_EXECUTE",
        "SERVICE_SUBMIT_FEEDBACK",
        "SERVICE",
        "service_search",
        "service.trigger.message",
        "service.connected_account.expired",
        "service.trigger.disabled",
        "service.",
        "x-service-webhook-version",
        "polling_failure_in_service_infra",
        "/mnt/files/.service/output",
    ];

    #[test]
    fn texts_name_meta_tools_with_operator_word() {
        let text = r#"{"next":"call SERVICE_SEARCH_TOOLS, not SERVICE_X"}"#;
        assert_eq!(Branding::new(DEFAULT_BRAND).rename_slugs(text), text);
        let renamed = r#"{"next":"call ACME_SEARCH_TOOLS, not SERVICE_X"}"#;
        assert_eq!(Branding::new("acme").rename_slugs(text), renamed);
    }

    #[test]
    fn data_of_tools_keeps_its_words() {
        let branding = Branding::new("acme");
        let data = Bytes::from_static(br#"{"next":"SERVICE_SEARCH_TOOLS"}"#);
        let of_tool = branding.rename_result(MetaTool::ProxyExecute, data.clone());
        assert_eq!(of_tool, data);
        let own = branding.rename_result(MetaTool::SearchTools, data);
        assert_eq!(own, r#"{"next":"ACME_SEARCH_TOOLS"}"#);
    }

    #[test]
    fn only_calls_without_response_are_renamed() {
        let ran = r#"{"error":null,"response":{"data":1.00,"error":"SERVICE_GET_RECIPE"}}"#;
        let refused = r#"{"error":"no SERVICE_GET_RECIPE","response":null}"#;
        let data = |calls: &[&str]| Bytes::from(format!(r#"{{"results":[{}]}}"#, calls.join(",")));
        let renamed = |data: Bytes| {
            let branding = Branding::new("acme");
            branding.rename_result(MetaTool::MultiExecuteTool, data)
        };
        assert_eq!(renamed(data(&[ran])), data(&[ran]));
        let expected = r#"{"error":"no ACME_GET_RECIPE","response":null}"#;
        assert_eq!(renamed(data(&[ran, refused])), data(&[ran, expected]));
    }

    #[test]
    fn identifiers_carry_operator_word_in_their_casing() {
        let (default, other, inside) = (
            Branding::new(DEFAULT_BRAND),
            Branding::new("acme"),
            Branding::new("myservice"),
        );
        for identifier in BRANDED_IDENTIFIERS {
            assert_eq!(default.rename(identifier), identifier);
            let said = other.rename(identifier);
            assert!(!said.to_lowercase().contains(DEFAULT_BRAND), "{said}");
            assert_eq!(
                said.replace("acme", DEFAULT_BRAND)
                    .replace("ACME", "SERVICE"),
                identifier
            );
            assert_eq!(
                inside
                    .rename(identifier)
                    .to_lowercase()
                    .matches("my")
                    .count(),
                1,
                "{identifier}"
            );
        }
    }
}
