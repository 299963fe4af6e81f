//! Declaration of a toolkit in another language, and the manifest built from it.
//!
//! A compiled toolkit is a snapshot of its memory after loading, in which the library leaves the
//! declaration as bytes: `toolhost:declaration:`, its length in eight digits, a colon, and JSON in
//! ASCII. So the declaration is written by the engine that will run the toolkit, and the toolkit's
//! code never runs outside of WebAssembly.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use heck::ToSnakeCase;
use manifest::{
    AuthMode, AuthScheme, Check, ClientCertificate, EgressRule, Field, FieldFormat, Hints, Limits,
    OAuth1, OAuth2, Placement, Sign, Trigger, TriggerKind, Version,
};
use serde::Deserialize;
use serde_json::{Value, json};
use wasmparser::{Parser, Payload};

const DECLARATION_MARK: &[u8] = b"toolhost:declaration:";
/// Number of digits of the length.
const LENGTH_DIGITS: usize = 8;

/// Declaration as the libraries write it. Checks here cover only facts that the manifest no longer
/// contains; all others are made on the manifest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declaration {
    slug: String,
    name: String,
    description: String,
    #[serde(default)]
    categories: Vec<String>,
    version: Option<Version>,
    /// Path of a file in the toolkit's folder.
    logo: Option<String>,
    #[serde(default)]
    auth: Vec<SchemeDeclaration>,
    #[serde(default)]
    egress: Vec<String>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    tools: Vec<ToolDeclaration>,
    #[serde(default)]
    triggers: Vec<TriggerDeclaration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolDeclaration {
    /// Part of the slug after the toolkit's slug, in any case.
    key: String,
    name: Option<String>,
    description: Option<String>,
    input: Value,
    output: Value,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    destructive: bool,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    open_world: bool,
    #[serde(default)]
    important: bool,
    #[serde(default)]
    no_auth: bool,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    synonyms: Vec<String>,
    #[serde(default)]
    scopes: Vec<String>,
    egress: Option<Vec<String>>,
    #[serde(default)]
    examples: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggerDeclaration {
    key: String,
    kind: TriggerKind,
    name: Option<String>,
    description: Option<String>,
    config: Value,
    payload: Value,
    #[serde(default)]
    scopes: Vec<String>,
    egress: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an auth scheme, for example `basic()`"
)]
struct SchemeDeclaration {
    mode: String,
    name: Option<String>,
    title: Option<String>,
    help: Option<String>,
    header: Option<String>,
    query: Option<String>,
    value: Option<String>,
    fields: Option<Vec<FieldDeclaration>>,
    request: Option<Vec<Placement>>,
    base_url: Option<String>,
    verify: Option<String>,
    sign: Option<Sign>,
    client_certificate: Option<ClientCertificate>,
    oauth2: Option<OAuth2>,
    oauth1: Option<OAuth1>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldDeclaration {
    name: String,
    title: Option<String>,
    help: Option<String>,
    #[serde(default)]
    secret: bool,
    #[serde(default)]
    optional: bool,
    default: Option<String>,
    pattern: Option<String>,
    format: Option<FieldFormat>,
    #[serde(default)]
    one_of: Vec<String>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    suffix: String,
    #[serde(default)]
    hidden: bool,
}

/// Reads the declaration from a compiled toolkit.
pub(super) fn find(component: &[u8]) -> Result<Declaration> {
    let mut found: Option<&[u8]> = None;
    for payload in Parser::new(0).parse_all(component) {
        let Payload::DataSection(section) = payload.context("cannot read the compiled toolkit")?
        else {
            continue;
        };
        for segment in section {
            let data = segment
                .context("cannot read the compiled toolkit's data")?
                .data;
            for text in texts(data) {
                // The memory may contain copies. Two different declarations would describe two
                // toolkits.
                match found {
                    Some(first) if first != text => {
                        bail!("the compiled toolkit has two different declarations")
                    }
                    _ => found = Some(text),
                }
            }
        }
    }
    let text =
        found.context("the compiled toolkit has no declaration; this is a bug in `toolkit`")?;
    serde_json::from_slice(text).context("the toolkit's declaration is not valid")
}

/// Returns the JSON texts after each mark.
fn texts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = data
        .windows(DECLARATION_MARK.len())
        .enumerate()
        .filter(|(_, window)| *window == DECLARATION_MARK);
    starts.filter_map(move |(at, _)| {
        let rest = data.get(at + DECLARATION_MARK.len()..)?;
        let length: usize = std::str::from_utf8(rest.get(..LENGTH_DIGITS)?)
            .ok()?
            .parse()
            .ok()?;
        let text = rest.get(LENGTH_DIGITS + 1..)?.get(..length)?;
        serde_json::from_slice::<serde::de::IgnoredAny>(text)
            .is_ok()
            .then_some(text)
    })
}

impl Declaration {
    /// Builds the manifest as JSON, without a version if the author did not specify one. `folder`
    /// contains the logo.
    pub(super) fn manifest(self, folder: &Path, sdk: &str) -> Result<Value> {
        let slug = self.slug;
        let logo = self.logo.map(|logo| read_logo(folder, &logo)).transpose()?;
        let tools = self
            .tools
            .into_iter()
            .map(|tool| tool.manifest(&slug))
            .collect::<Result<Vec<_>>>()?;
        let triggers = self
            .triggers
            .into_iter()
            .map(|told| told.manifest(&slug))
            .collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "abi": manifest::ABI_VERSION,
            "sdk": sdk,
            "name": self.name,
            "description": self.description,
            "logo": logo,
            "categories": self.categories,
            "version": self.version,
            "auth": self.auth.into_iter().map(SchemeDeclaration::manifest).collect::<Result<Vec<_>>>()?,
            "egress": rules(&self.egress)?,
            "tools": tools,
            "triggers": triggers,
            "limits": self.limits,
            "slug": slug,
        }))
    }
}

impl ToolDeclaration {
    fn manifest(self, slug: &str) -> Result<manifest::Tool> {
        let important = self.important.then(|| "important".to_owned());
        Ok(manifest::Tool {
            slug: format!("{slug}_{}", self.key).to_ascii_uppercase(),
            name: self.name.unwrap_or_else(|| title_from(&self.key)),
            description: described(&self.key, self.description)?,
            input: self.input,
            output: self.output,
            hints: Hints {
                read_only: self.read_only,
                destructive: self.destructive,
                idempotent: self.idempotent,
                open_world: self.open_world,
            },
            tags: important.into_iter().chain(self.tags).collect(),
            synonyms: self.synonyms,
            scopes: self.scopes,
            egress: self.egress.as_deref().map(rules).transpose()?,
            no_auth: self.no_auth,
            loose_output: false,
            examples: self.examples,
        })
    }
}

impl TriggerDeclaration {
    fn manifest(self, slug: &str) -> Result<Trigger> {
        Ok(Trigger {
            slug: format!("{slug}_{}", self.key).to_ascii_uppercase(),
            name: self.name.unwrap_or_else(|| title_from(&self.key)),
            description: described(&self.key, self.description)?,
            kind: self.kind,
            config: self.config,
            payload: self.payload,
            scopes: self.scopes,
            egress: self.egress.as_deref().map(rules).transpose()?,
            subscription: None,
        })
    }
}

impl SchemeDeclaration {
    fn manifest(self) -> Result<AuthScheme> {
        let secret = |name: &str, title: &str| {
            FieldDeclaration::new(
                name,
                self.title.as_deref().unwrap_or(title),
                self.help.clone(),
                true,
            )
        };
        let (mode, name, fields, value) = match self.mode.as_str() {
            "api_key" => (
                AuthMode::ApiKey,
                "API key",
                vec![secret("api_key", "API key")],
                "{api_key}",
            ),
            "bearer_token" => (
                AuthMode::BearerToken,
                "Token",
                vec![secret("token", "Token")],
                "Bearer {token}",
            ),
            "basic" => {
                let user = FieldDeclaration::new("username", "User name", None, false);
                (
                    AuthMode::Basic,
                    "User name and password",
                    vec![user, secret("password", "Password")],
                    "",
                )
            }
            "oauth1" => (AuthMode::Oauth1, "OAuth 1.0", Vec::new(), ""),
            "no_auth" => (AuthMode::NoAuth, "No account", Vec::new(), ""),
            other => match serde_json::from_value::<AuthMode>(other.to_ascii_uppercase().into()) {
                Ok(mode) if mode.has_flow() => {
                    (mode, "OAuth 2.0", Vec::new(), "Bearer {access_token}")
                }
                _ => bail!("`{other}` is not an auth mode"),
            },
        };
        let value = self.value.unwrap_or_else(|| value.to_owned());
        let request = match (self.request, self.header, self.query) {
            (Some(request), ..) => request,
            (None, Some(name), _) => vec![Placement::Header { name, value }],
            (None, None, Some(name)) => vec![Placement::Query { name, value }],
            (None, None, None) if self.sign.is_some() || self.client_certificate.is_some() => {
                Vec::new()
            }
            (None, None, None) => match mode {
                AuthMode::Basic => {
                    vec![Placement::basic("{username}", "{password}")]
                }
                AuthMode::NoAuth | AuthMode::Oauth1 => Vec::new(),
                AuthMode::ApiKey => {
                    bail!(
                        "an API key needs a place in the request; add `header`, `query` or `request`"
                    )
                }
                _ => vec![Placement::header("authorization", value)],
            },
        };
        Ok(AuthScheme {
            mode,
            name: self.name.unwrap_or_else(|| name.to_owned()),
            fields: self
                .fields
                .unwrap_or(fields)
                .into_iter()
                .map(FieldDeclaration::manifest)
                .collect(),
            request,
            base_url: self.base_url,
            verify: self.verify.as_deref().map(check),
            sign: self
                .sign
                .or_else(|| (mode == AuthMode::Oauth1).then(Sign::oauth1)),
            client_certificate: self.client_certificate,
            oauth2: self.oauth2,
            oauth1: self.oauth1,
        })
    }
}

impl FieldDeclaration {
    fn new(name: &str, title: &str, help: Option<String>, secret: bool) -> Self {
        let name = name.to_owned();
        let title = Some(title.to_owned());
        Self {
            name,
            title,
            help,
            secret,
            ..Self::default()
        }
    }

    fn manifest(self) -> Field {
        Field {
            title: self.title.unwrap_or_else(|| title_from(&self.name)),
            name: self.name,
            description: self.help.unwrap_or_default(),
            secret: self.secret,
            optional: self.optional,
            default: self.default,
            pattern: self.pattern,
            format: self.format,
            one_of: self.one_of,
            prefix: self.prefix,
            suffix: self.suffix,
            hidden: self.hidden,
        }
    }
}

/// Returns the description of a tool or trigger, which agents read to choose it.
fn described(key: &str, description: Option<String>) -> Result<String> {
    description.with_context(|| {
        format!("`{key}` has no description; write one: agents read it to choose among tools")
    })
}

/// Converts an identifier to a title: `get_item` and `getItem` become `Get item`, `api_key` becomes
/// `API key`.
fn title_from(name: &str) -> String {
    let text = name.to_snake_case().replace('_', " ");
    if let Some(rest) = text.strip_prefix("api ") {
        return format!("API {rest}");
    }
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Parses `https://…` or `POST https://…`.
fn check(text: &str) -> Check {
    let (method, url) = text.split_once(' ').unwrap_or(("GET", text));
    Check {
        method: method.to_owned(),
        url: url.to_owned(),
    }
}

fn rules(texts: &[String]) -> Result<Vec<EgressRule>> {
    texts.iter().map(|text| rule(text)).collect()
}

/// Parses `[METHODS ]HOST[:PORT][/PATH]`.
fn rule(text: &str) -> Result<EgressRule> {
    let (methods, target) = text
        .split_once(' ')
        .map_or((Vec::new(), text), |(methods, target)| {
            (methods.split(',').map(str::to_owned).collect(), target)
        });
    let (authority, path) = match target.find('/') {
        Some(at) => (&target[..at], Some(target[at..].to_owned())),
        None => (target, None),
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => {
                bail!(
                    "`{text}` is not an egress rule; write `api.example.com` or `GET,POST api.example.com:8443/v1/`"
                )
            }
        },
        None => (authority, None),
    };
    Ok(EgressRule {
        host: host.to_owned(),
        port,
        methods,
        path_prefix: path,
    })
}

/// Reads the logo: an SVG document unchanged, a PNG as a `data:` URL.
fn read_logo(folder: &Path, logo: &str) -> Result<String> {
    let file = folder.join(logo);
    let bytes =
        fs::read(&file).with_context(|| format!("cannot read the logo {}", file.display()))?;
    match Path::new(logo).extension().and_then(|end| end.to_str()) {
        Some("svg") => String::from_utf8(bytes)
            .with_context(|| format!("{} is not an SVG text", file.display())),
        Some("png") => Ok(format!("data:image/png;base64,{}", STANDARD.encode(bytes))),
        _ => bail!("the logo {} must be an .svg or .png file", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(declaration: &Value) -> Result<manifest::Manifest> {
        let declaration: Declaration = serde_json::from_value(declaration.clone())?;
        let mut manifest = declaration.manifest(Path::new("."), "toolkit-sdk 0.0.0 (test)")?;
        manifest["version"] = "20260101_00".into();
        Ok(serde_json::from_value(manifest)?)
    }

    fn declared(more: &Value) -> Value {
        let mut declaration = json!({ "slug": "hello", "name": "Hello", "description": "Greets." });
        declaration
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        declaration
    }

    #[test]
    fn declaration_and_rust_sdk_manifests_agree() {
        let made = manifest(&declared(&json!({
            "auth": [{ "mode": "bearer_token", "help": "Settings", "verify": "/me" }, { "mode": "basic" }],
            "egress": ["GET,POST api.example.com:8443/v1/", "*.example.com"],
            "tools": [{
                "key": "get_item", "description": "Reads one.", "read_only": true, "important": true, "tags": ["items"],
                "synonyms": ["fetch"],
                "input": { "type": "object", "properties": {} }, "output": {}, "egress": ["api.example.com"],
            }],
            "triggers": [{ "key": "newItem", "kind": "poll", "description": "Fires.", "config": {}, "payload": {} }],
        })));
        let made = made.unwrap();
        assert_eq!(made.tools[0].slug, "HELLO_GET_ITEM");
        assert_eq!(made.tools[0].name, "Get item");
        assert_eq!(made.tools[0].tags, ["important", "items"]);
        assert_eq!(made.tools[0].synonyms, ["fetch"]);
        assert_eq!(made.triggers[0].slug, "HELLO_NEWITEM");
        assert_eq!(made.egress[0].port, Some(8443));
        assert_eq!(made.egress[0].methods, ["GET", "POST"]);
        assert_eq!(made.egress[0].path_prefix.as_deref(), Some("/v1/"));
        assert_eq!(made.auth[0].fields[0].description, "Settings");
        let bearer = Placement::header("authorization", "Bearer {token}");
        assert_eq!(made.auth[0].request, [bearer]);
        assert_eq!(made.auth[0].verify.as_ref().unwrap().method, "GET");
        assert_eq!(made.auth[1].fields.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let tool = json!({ "key": "greet", "input": {}, "output": {} });
        for (part, more) in [
            (
                "an API key needs a place",
                json!({ "auth": [{ "mode": "api_key" }] }),
            ),
            ("`magic`", json!({ "auth": [{ "mode": "magic" }] })),
            (
                "`api.example.com:x`",
                json!({ "egress": ["api.example.com:x"] }),
            ),
            ("missing.svg", json!({ "logo": "missing.svg" })),
            ("invented", json!({ "invented": 1 })),
            ("expected an auth scheme", json!({ "auth": ["basic"] })),
            ("`greet` has no description", json!({ "tools": [tool] })),
        ] {
            let problem = format!("{:#}", manifest(&declared(&more)).unwrap_err());
            assert!(problem.contains(part), "{problem}");
        }
    }

    fn snapshot(texts: &[&str]) -> Vec<u8> {
        let data: String = texts
            .iter()
            .map(|json| format!("toolhost:declaration:{:08}:{json}", json.len()))
            .map(|text| format!("(data (i32.const 0) {text:?})"))
            .collect();
        wat::parse_str(format!("(component (core module (memory 1) {data}))")).unwrap()
    }

    #[test]
    fn declaration_is_found_in_module_memory() {
        let one = r#"{"slug":"one","name":"One","description":"1"}"#;
        assert_eq!(find(&snapshot(&[one, one])).unwrap().slug, "one");
        let other = r#"{"slug":"two","name":"Two","description":"2"}"#;
        for (texts, part) in [
            (&[one, other][..], "two different declarations"),
            (&[], "no declaration"),
        ] {
            let refused = find(&snapshot(texts)).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        assert!(find(&snapshot(&["{\"cut short"])).is_err());
    }
}
