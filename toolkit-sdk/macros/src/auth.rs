//! Auth schemes as authors write them:
//!
//! ```text
//! api_key(header: "authorization", value: "Bearer {api_key}", help: "Settings, API keys")
//! api_key(fields: [secret(api_key), text(site, title: "Site")],
//!         request: [query("key", "{api_key}")], base_url: "…")
//! oauth2(authorize_url: "https://…", token_url: "https://…", scopes: ["read"], pkce: false)
//! oauth1(flow: r#"{ "request_url": … }"#)   api_key(…, sign: r#"{ "with": "aws_sigv4", … }"#)
//! s2s_oauth2(token_url: "https://…", flow: r#"{ "token": { … } }"#)
//! bearer_token()   basic()   no_auth()
//! ```

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitBool, LitStr, Token, bracketed, parenthesized, token};

use crate::egress::option;
use crate::signature::{Problems, all, capitalized};
use crate::{oauth1, oauth2};

const KNOWN_MODES: &str = "api_key(…), bearer_token(…), basic(…), oauth2(…), s2s_oauth2(…), google_service_account(…), \
                     service_account(…), basic_with_jwt(…), billcom_auth(…), calcom_auth(…), dcr_oauth(…), cimd_oauth(…), oauth1(…), saml(…) or no_auth()";
/// Modes in which the provider issues a token: the word in the macro, the variant in the manifest,
/// and the readable name.
const TOKEN_MODES: [(&str, &str, &str); 10] = [
    ("oauth2", "Oauth2", "OAuth"),
    ("s2s_oauth2", "S2sOauth2", "OAuth, server to server"),
    ("dcr_oauth", "DcrOauth", "OAuth"),
    ("cimd_oauth", "CimdOauth", "OAuth"),
    (
        "google_service_account",
        "GoogleServiceAccount",
        "Service account",
    ),
    ("service_account", "ServiceAccount", "Service account"),
    ("basic_with_jwt", "BasicWithJwt", "User name and password"),
    ("billcom_auth", "BillcomAuth", "User name and password"),
    ("calcom_auth", "CalcomAuth", "Client"),
    ("saml", "Saml", "Single sign-on"),
];
const KNOWN_KEYS: &str = "name, title, help, header, query, value, fields, request, base_url, verify, sign, client_certificate";

/// One scheme as the author wrote it.
pub(crate) struct Scheme {
    mode: Ident,
    keys: Vec<(Ident, Value)>,
}

pub(crate) enum Value {
    Text(LitStr),
    List(Vec<Call>),
    Texts(Vec<LitStr>),
    Flag(LitBool),
}

/// Call such as `secret(api_key, title: "API key")` or `header("x-key", "{api_key}")`.
pub(crate) struct Call {
    pub(crate) name: Ident,
    words: Vec<Ident>,
    pub(crate) texts: Vec<LitStr>,
    named: Vec<(Ident, LitStr)>,
}

struct Mode {
    variant: &'static str,
    name: &'static str,
    /// Default fields: name, title and secrecy. They apply if the author does not list any.
    fields: &'static [(&'static str, &'static str, bool)],
    value: &'static str,
}

impl Parse for Scheme {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mode: Ident = input
            .parse()
            .map_err(|error| syn::Error::new(error.span(), format!("write {KNOWN_MODES}")))?;
        if !input.peek(token::Paren) {
            return Err(syn::Error::new(mode.span(), format!("write {KNOWN_MODES}")));
        }
        let content;
        parenthesized!(content in input);
        let keys = Punctuated::<Entry, Token![,]>::parse_terminated(&content)?;
        Ok(Self {
            mode,
            keys: keys
                .into_iter()
                .map(|entry| (entry.key, entry.value))
                .collect(),
        })
    }
}

struct Entry {
    key: Ident,
    value: Value,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        input.parse::<Token![:]>()?;
        let value = if input.peek(token::Bracket) {
            let content;
            bracketed!(content in input);
            if content.peek(LitStr) {
                Value::Texts(
                    Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?
                        .into_iter()
                        .collect(),
                )
            } else {
                Value::List(
                    Punctuated::<Call, Token![,]>::parse_terminated(&content)?
                        .into_iter()
                        .collect(),
                )
            }
        } else if input.peek(LitBool) {
            Value::Flag(input.parse()?)
        } else {
            Value::Text(input.parse()?)
        };
        Ok(Self { key, value })
    }
}

impl Parse for Call {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut call = Self {
            name: input.parse()?,
            words: Vec::new(),
            texts: Vec::new(),
            named: Vec::new(),
        };
        let content;
        parenthesized!(content in input);
        while !content.is_empty() {
            if content.peek(LitStr) {
                call.texts.push(content.parse()?);
            } else {
                let word: Ident = content.parse()?;
                if content.peek(Token![:]) {
                    content.parse::<Token![:]>()?;
                    call.named.push((word, content.parse()?));
                } else {
                    call.words.push(word);
                }
            }
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        Ok(call)
    }
}

impl Scheme {
    /// Returns the expression that builds the `AuthScheme`.
    pub(crate) fn expression(&self) -> syn::Result<TokenStream> {
        let mode = self.mode()?;
        self.check_keys()?;
        let declared = match self.list("fields")? {
            Some(calls) => all(calls.iter().map(field))?,
            None => self.default_fields(&mode)?,
        };
        let mut names: Vec<String> = declared.iter().map(|field| field.name.clone()).collect();
        let flow_tokens = if self.has_flow() {
            Some(oauth2::expression(self, &names)?)
        } else {
            None
        };
        names.extend(
            flow_tokens
                .as_ref()
                .map(|_| oauth2::ACCESS_TOKEN.to_owned()),
        );
        let certificate = option(oauth1::certificate(self)?);
        let sign = option(oauth1::sign(self)?);
        let oauth1 = option(oauth1::expression(self)?);
        names.extend(
            self.is_oauth1()
                .then_some(oauth1::TEMPLATE_VALUES)
                .into_iter()
                .flatten()
                .map(str::to_owned),
        );
        let placements = self.request(&mode)?;
        let mut problems = Problems::default();
        for template in placements
            .iter()
            .flat_map(|placement| &placement.templates)
            .chain(self.text("base_url")?)
        {
            check_template(template, &names, &mut problems);
        }
        problems.finish()?;
        let variant = Ident::new(mode.variant, self.mode.span());
        let name = self
            .text("name")?
            .map_or_else(|| mode.name.to_owned(), LitStr::value);
        let base_url = option(
            self.text("base_url")?
                .map(|url| quote!(::std::string::String::from(#url))),
        );
        let verify = option(self.text("verify")?.map(check).transpose()?);
        let flow = option(flow_tokens);
        let fields = declared.iter().map(|field| &field.tokens);
        let request = placements.iter().map(|placement| &placement.tokens);
        Ok(quote! {
            ::toolkit_sdk::rt::manifest::AuthScheme {
                mode: ::toolkit_sdk::rt::manifest::AuthMode::#variant,
                name: ::std::string::String::from(#name),
                fields: ::std::vec![#(#fields),*],
                request: ::std::vec![#(#request),*],
                base_url: #base_url,
                verify: #verify,
                sign: #sign,
                client_certificate: #certificate,
                oauth2: #flow,
                oauth1: #oauth1,
            }
        })
    }

    fn has_flow(&self) -> bool {
        TOKEN_MODES.iter().any(|(word, ..)| self.mode == word)
    }

    pub(crate) fn is_oauth1(&self) -> bool {
        self.mode == "oauth1"
    }

    /// Returns true if the user is redirected to the provider for consent.
    pub(crate) fn redirects(&self) -> bool {
        ["oauth2", "dcr_oauth", "cimd_oauth"]
            .iter()
            .any(|word| self.mode == word)
    }

    pub(crate) fn span(&self) -> Span {
        self.mode.span()
    }

    fn mode(&self) -> syn::Result<Mode> {
        Ok(match self.mode.to_string().as_str() {
            "api_key" => Mode {
                variant: "ApiKey",
                name: "API key",
                fields: &[("api_key", "API key", true)],
                value: "{api_key}",
            },
            "bearer_token" => Mode {
                variant: "BearerToken",
                name: "Token",
                fields: &[("token", "Token", true)],
                value: "Bearer {token}",
            },
            "basic" => Mode {
                variant: "Basic",
                name: "User name and password",
                fields: &[
                    ("username", "User name", false),
                    ("password", "Password", true),
                ],
                value: "",
            },
            "oauth1" => Mode {
                variant: "Oauth1",
                name: "OAuth",
                fields: &[],
                value: "",
            },
            "no_auth" => Mode {
                variant: "NoAuth",
                name: "No account",
                fields: &[],
                value: "",
            },
            other => match TOKEN_MODES.iter().find(|(word, ..)| *word == other) {
                Some(&(_, variant, name)) => Mode {
                    variant,
                    name,
                    fields: &[],
                    value: "Bearer {access_token}",
                },
                None => {
                    let message = format!("`{other}` is not an auth mode; write {KNOWN_MODES}");
                    return Err(syn::Error::new(self.mode.span(), message));
                }
            },
        })
    }

    fn check_keys(&self) -> syn::Result<()> {
        let mut problems = Problems::default();
        let flow = match () {
            () if self.has_flow() => oauth2::KNOWN_KEYS,
            () if self.is_oauth1() => "flow",
            () => "",
        };
        for (index, (key, _)) in self.keys.iter().enumerate() {
            let is_known = KNOWN_KEYS
                .split(", ")
                .chain(flow.split(", "))
                .any(|known| key == known);
            if !is_known {
                let more = if flow.is_empty() { "" } else { ", " };
                problems.add(
                    key,
                    format!("`{key}` is unknown; known are {KNOWN_KEYS}{more}{flow}"),
                );
            } else if self.keys[..index].iter().any(|(earlier, _)| earlier == key) {
                problems.add(key, format!("`{key}` is given twice; remove one of them"));
            }
        }
        problems.finish()
    }

    pub(crate) fn text(&self, name: &str) -> syn::Result<Option<&LitStr>> {
        self.value(name, "\"…\"", |value| {
            if let Value::Text(text) = value {
                Some(text)
            } else {
                None
            }
        })
    }

    pub(crate) fn list(&self, name: &str) -> syn::Result<Option<&[Call]>> {
        self.value(name, "[…]", |value| {
            if let Value::List(calls) = value {
                Some(calls.as_slice())
            } else {
                None
            }
        })
    }

    /// Returns the value of a key that has only one form.
    pub(crate) fn value<'a, T>(
        &'a self,
        name: &str,
        form: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> syn::Result<Option<T>> {
        let Some((key, value)) = self.keys.iter().find(|(key, _)| key == name) else {
            return Ok(None);
        };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(syn::Error::new(
                key.span(),
                format!("write `{name}: {form}`"),
            )),
        }
    }

    fn default_fields(&self, mode: &Mode) -> syn::Result<Vec<Field>> {
        let title = self.text("title")?.map(LitStr::value);
        let help = self.text("help")?.map(LitStr::value).unwrap_or_default();
        let fields = mode.fields.iter().map(|&(name, default_title, secret)| {
            let title = title.as_deref().filter(|_| secret).unwrap_or(default_title);
            let help = if secret { help.as_str() } else { "" };
            Field {
                name: name.to_owned(),
                tokens: field_tokens(name, title, help, secret, false, &TokenStream::new()),
            }
        });
        Ok(fields.collect())
    }

    fn request(&self, mode: &Mode) -> syn::Result<Vec<Placement>> {
        if let Some(calls) = self.list("request")? {
            return all(calls.iter().map(placement));
        }
        let value = self
            .text("value")?
            .cloned()
            .unwrap_or_else(|| LitStr::new(mode.value, self.mode.span()));
        if let Some(name) = self.text("header")? {
            return Ok(vec![header(name, &value)?]);
        }
        if let Some(name) = self.text("query")? {
            return Ok(vec![query(name, &value)]);
        }
        if self.is_oauth1()
            || self.text("sign")?.is_some()
            || self.text("client_certificate")?.is_some()
        {
            return Ok(Vec::new());
        }
        let text = |text: &str| LitStr::new(text, self.mode.span());
        match mode.variant {
            _ if self.has_flow() => Ok(vec![header(&text("authorization"), &value)?]),
            "BearerToken" => Ok(vec![header(&text("authorization"), &value)?]),
            "Basic" => Ok(vec![basic(&text("{username}"), &text("{password}"))]),
            "NoAuth" => Ok(Vec::new()),
            _ => {
                let hint = "write `header: \"authorization\", value: \"Bearer {api_key}\"`, `query: \"key\"` or `request: […]`";
                Err(syn::Error::new(
                    self.mode.span(),
                    format!("an API key needs a place in the request; {hint}"),
                ))
            }
        }
    }
}

struct Field {
    name: String,
    tokens: TokenStream,
}

struct Placement {
    tokens: TokenStream,
    templates: Vec<LitStr>,
}

fn field(call: &Call) -> syn::Result<Field> {
    let secret = match call.name.to_string().as_str() {
        "secret" => true,
        "text" => false,
        _ => {
            return fail(
                call.name.span(),
                "a field is `secret(name, title: \"…\")` or `text(name, title: \"…\")`",
            );
        }
    };
    let [name, flags @ ..] = call.words.as_slice() else {
        return fail(
            call.name.span(),
            "a field begins with its name, for example `text(subdomain, title: \"Subdomain\")`",
        );
    };
    if let Some(unknown) = flags
        .iter()
        .find(|flag| !["optional", "hidden"].iter().any(|known| flag == known))
    {
        return fail(
            unknown.span(),
            "only `optional` and `hidden` are written without a value here",
        );
    }
    let known = [
        "title", "help", "default", "pattern", "format", "one_of", "prefix", "suffix",
    ];
    if let Some((key, _)) = call
        .named
        .iter()
        .find(|(key, _)| !known.iter().any(|known| key == known))
    {
        return fail(
            key.span(),
            &format!(
                "a field has {} and the words `optional` and `hidden`",
                known.join(", ")
            ),
        );
    }
    let get = |wanted: &str| {
        call.named
            .iter()
            .find(|(key, _)| key == wanted)
            .map(|(_, text)| text.value())
    };
    let hidden = flags.iter().any(|flag| flag == "hidden");
    let optional = flags.iter().any(|flag| flag == "optional");
    let name = name.to_string();
    let title = get("title").unwrap_or_else(|| title_from(&name));
    let help = get("help").unwrap_or_default();
    let more = more_tokens(call, &get, hidden)?;
    let tokens = field_tokens(&name, &title, &help, secret, optional, &more);
    Ok(Field { name, tokens })
}

fn fail(span: Span, message: &str) -> syn::Result<Field> {
    Err(syn::Error::new(span, message))
}

/// Returns the rarely used properties of a field.
fn more_tokens(
    call: &Call,
    get: &impl Fn(&str) -> Option<String>,
    hidden: bool,
) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    for name in ["default", "pattern"] {
        let key = Ident::new(name, Span::call_site());
        let value = get(name).map(string_tokens);
        tokens.extend(value.map(|value| quote!(#key: ::core::option::Option::Some(#value),)));
    }
    for name in ["prefix", "suffix"] {
        let key = Ident::new(name, Span::call_site());
        let value = get(name).map(string_tokens);
        tokens.extend(value.map(|value| quote!(#key: #value,)));
    }
    if let Some(all) = get("one_of") {
        let all = all
            .split(',')
            .map(|one| one.trim().to_owned())
            .map(string_tokens);
        tokens.extend(quote!(one_of: ::std::vec![#(#all),*],));
    }
    if let Some(format) = get("format") {
        let kinds = [
            ("hostname", "Hostname"),
            ("uri", "Uri"),
            ("uuid", "Uuid"),
            ("email", "Email"),
        ];
        let Some((_, kind)) = kinds.iter().find(|(word, _)| *word == format) else {
            return Err(syn::Error::new(
                call.name.span(),
                "a format is \"hostname\", \"uri\", \"uuid\" or \"email\"",
            ));
        };
        let kind = Ident::new(kind, Span::call_site());
        tokens.extend(quote!(format: ::core::option::Option::Some(::toolkit_sdk::rt::manifest::FieldFormat::#kind),));
    }
    Ok(quote!(#tokens hidden: #hidden,))
}

fn string_tokens(text: String) -> TokenStream {
    quote!(::std::string::String::from(#text))
}

/// Converts a name to words: `api_key` to `API key`, `site` to `Site`.
fn title_from(name: &str) -> String {
    let text = name.replace('_', " ");
    match text.strip_prefix("api ") {
        Some(rest) => format!("API {rest}"),
        None => capitalized(&text),
    }
}

fn field_tokens(
    name: &str,
    title: &str,
    help: &str,
    secret: bool,
    optional: bool,
    more: &TokenStream,
) -> TokenStream {
    quote! {
        ::toolkit_sdk::rt::manifest::Field {
            name: ::std::string::String::from(#name),
            title: ::std::string::String::from(#title),
            description: ::std::string::String::from(#help),
            secret: #secret,
            optional: #optional,
            #more
            ..::core::default::Default::default()
        }
    }
}

fn placement(call: &Call) -> syn::Result<Placement> {
    match (call.name.to_string().as_str(), call.texts.as_slice()) {
        ("header", [name, value]) => header(name, value),
        ("query", [name, value]) => Ok(query(name, value)),
        ("basic", [username, password]) => Ok(basic(username, password)),
        ("path", [marker, value]) => Ok(Placement {
            tokens: quote! {
                ::toolkit_sdk::rt::manifest::Placement::Path {
                    marker: ::std::string::String::from(#marker),
                    value: ::std::string::String::from(#value),
                }
            },
            templates: vec![value.clone()],
        }),
        _ => {
            let forms = "header(\"name\", \"{field}\"), query(\"name\", \"{field}\"), basic(\"{user}\", \"{password}\") \
                         or path(\"~marker~\", \"{field}\")";
            Err(syn::Error::new(
                call.name.span(),
                format!("a credential goes into {forms}"),
            ))
        }
    }
}

fn header(name: &LitStr, value: &LitStr) -> syn::Result<Placement> {
    let text = name.value();
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let message = format!(
            "header names are in lower case: write \"{}\"",
            text.to_ascii_lowercase()
        );
        return Err(syn::Error::new(name.span(), message));
    }
    Ok(Placement {
        tokens: quote!(::toolkit_sdk::rt::manifest::Placement::header(#name, #value)),
        templates: vec![value.clone()],
    })
}

fn query(name: &LitStr, value: &LitStr) -> Placement {
    Placement {
        tokens: quote!(::toolkit_sdk::rt::manifest::Placement::query(#name, #value)),
        templates: vec![value.clone()],
    }
}

fn basic(username: &LitStr, password: &LitStr) -> Placement {
    Placement {
        tokens: quote!(::toolkit_sdk::rt::manifest::Placement::basic(#username, #password)),
        templates: vec![username.clone(), password.clone()],
    }
}

/// Parses `"https://…"` or `"POST https://…"`.
fn check(text: &LitStr) -> syn::Result<TokenStream> {
    let value = text.value();
    let (method, url) = value.split_once(' ').unwrap_or(("GET", &value));
    if !["GET", "POST"].contains(&method) || !(url.starts_with("https://") || url.starts_with('/'))
    {
        let hint =
            "write an address, or GET or POST and an address: \"GET https://api.example.com/me\"";
        return Err(syn::Error::new(text.span(), hint));
    }
    Ok(quote! {
        ::toolkit_sdk::rt::manifest::Check {
            method: ::std::string::String::from(#method),
            url: ::std::string::String::from(#url),
        }
    })
}

/// Checks that every `{name}` is a field of the scheme. Alternatives and functions are parsed when
/// the manifest is checked.
pub(crate) fn check_template(template: &LitStr, fields: &[String], problems: &mut Problems) {
    let text = template.value();
    if text.contains(['|', '(', '"']) {
        return;
    }
    for (index, part) in text.split('{').enumerate() {
        let Some((name, _)) = part.split_once('}') else {
            if index > 0 {
                problems.add(
                    template,
                    "`{` without `}`: a template is text and `{field}`".to_owned(),
                );
            }
            continue;
        };
        let name = name.split_once('.').map_or(name, |(field, _)| field);
        if index > 0 && !fields.iter().any(|field| field == name) {
            let known = match fields {
                [] => "it has none".to_owned(),
                fields => format!("its fields are `{}`", fields.join("`, `")),
            };
            problems.add(
                template,
                format!("`{{{name}}}` is not a field of this scheme; {known}"),
            );
        }
    }
}
