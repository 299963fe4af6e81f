//! The OAuth 2.0 settings of an `oauth2(…)` scheme.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

use crate::auth::{Call, Scheme, Value, check_template};
use crate::egress::option;
use crate::signature::{Problems, all};

/// Name of the issued access token in templates.
pub(crate) const ACCESS_TOKEN: &str = "access_token";
pub(crate) const KNOWN_KEYS: &str = "authorize_url, token_url, scopes, scope_separator, authorize_params, pkce, client_auth, token_answer, flow";
/// Methods of client authentication: the word in the macro and the variant in the manifest.
const CLIENT_AUTH: [(&str, &str); 5] = [
    ("body", "Body"),
    ("basic", "Basic"),
    ("secret_as_user", "SecretAsUser"),
    ("private_key_jwt", "PrivateKeyJwt"),
    ("none", "None"),
];

/// Returns the expression that builds the `OAuth2`.
pub(crate) fn expression(scheme: &Scheme, fields: &[String]) -> syn::Result<TokenStream> {
    let flow = scheme.text("flow")?.map(object).transpose()?;
    let discovered = flow.is_some_and(is_discovered);
    let address = |key: &str| match scheme.text(key)? {
        None if discovered => Ok(String::new()),
        _ => url(scheme, key, fields).map(LitStr::value),
    };
    let authorize_url = if scheme.redirects() {
        address("authorize_url")?
    } else {
        String::new()
    };
    let token_url = address("token_url")?;
    let scopes = texts(scheme, "scopes")?;
    let separator = option(
        scheme
            .text("scope_separator")?
            .map(|text| quote!(::std::string::String::from(#text))),
    );
    let params = all(scheme
        .list("authorize_params")?
        .unwrap_or_default()
        .iter()
        .map(parameter))?;
    let pkce = scheme
        .value("pkce", "false", |value| {
            if let Value::Flag(flag) = value {
                Some(flag.value)
            } else {
                None
            }
        })?
        .unwrap_or(true);
    let client_auth = choice(scheme, "client_auth", "ClientAuth", &CLIENT_AUTH)?;
    let token_answer = choice(
        scheme,
        "token_answer",
        "TokenAnswer",
        &[("json", "Json"), ("form", "Form")],
    )?;
    let more = flow.map_or_else(|| "{}".to_owned(), LitStr::value);
    Ok(quote! {
        ::toolkit_sdk::rt::manifest::OAuth2 {
            authorize_url: ::std::string::String::from(#authorize_url),
            token_url: ::std::string::String::from(#token_url),
            scopes: ::std::vec![#(::std::string::String::from(#scopes)),*],
            scope_separator: #separator,
            authorize_params: ::core::iter::IntoIterator::into_iter([#(#params),*]).collect(),
            pkce: #pkce,
            client_auth: #client_auth,
            token_answer: #token_answer,
            ..::toolkit_sdk::rt::flow(#more)
        }
    })
}

fn url<'a>(scheme: &'a Scheme, key: &str, fields: &[String]) -> syn::Result<&'a LitStr> {
    let Some(text) = scheme.text(key)? else {
        return Err(syn::Error::new(
            scheme.span(),
            format!("a flow needs `{key}: \"https://…\"`"),
        ));
    };
    if !text.value().starts_with("https://") {
        return Err(syn::Error::new(
            text.span(),
            format!("write the whole URL: `{key}: \"https://…\"`"),
        ));
    }
    let mut problems = Problems::default();
    check_template(text, fields, &mut problems);
    problems.finish()?;
    Ok(text)
}

fn texts<'a>(scheme: &'a Scheme, key: &str) -> syn::Result<&'a [LitStr]> {
    Ok(scheme
        .value(key, "[\"…\"]", |value| match value {
            Value::Texts(texts) => Some(texts.as_slice()),
            Value::List(calls) if calls.is_empty() => Some(&[][..]),
            _ => None,
        })?
        .unwrap_or_default())
}

/// Parses `param("access_type", "offline")`.
fn parameter(call: &Call) -> syn::Result<TokenStream> {
    match (call.name.to_string().as_str(), call.texts.as_slice()) {
        ("param", [name, value]) => {
            Ok(quote!((::std::string::String::from(#name), ::std::string::String::from(#value))))
        }
        _ => Err(syn::Error::new(
            call.name.span(),
            "a parameter is `param(\"access_type\", \"offline\")`",
        )),
    }
}

/// Returns true if the provider's metadata supplies the URLs that are left out.
fn is_discovered(flow: &LitStr) -> bool {
    let flow = serde_json::from_str::<serde_json::Value>(&flow.value());
    flow.is_ok_and(|flow| {
        ["issuer", "resource"]
            .iter()
            .any(|name| flow.get(name).is_some())
    })
}

/// Checks that the further settings of a flow are a JSON object. Its content is parsed when the
/// manifest is built.
pub(crate) fn object(text: &LitStr) -> syn::Result<&LitStr> {
    match serde_json::from_str::<serde_json::Value>(&text.value()) {
        Ok(serde_json::Value::Object(_)) => Ok(text),
        Ok(_) => Err(syn::Error::new(
            text.span(),
            "write an object, for example r#\"{ \"token\": { … } }\"#",
        )),
        Err(cause) => Err(syn::Error::new(
            text.span(),
            format!("this is not JSON: {cause}"),
        )),
    }
}

/// Returns the variant that a string names, or the first one if there is no string.
fn choice(
    scheme: &Scheme,
    key: &str,
    kind: &str,
    words: &[(&str, &str)],
) -> syn::Result<TokenStream> {
    let text = scheme.text(key)?;
    let word = text.map_or_else(|| words[0].0.to_owned(), LitStr::value);
    let Some((_, variant)) = words.iter().find(|(known, _)| *known == word) else {
        let known: Vec<_> = words
            .iter()
            .map(|(word, _)| format!("`{key}: \"{word}\"`"))
            .collect();
        let span = text.map_or_else(|| scheme.span(), LitStr::span);
        return Err(syn::Error::new(
            span,
            format!("write {}", known.join(" or ")),
        ));
    };
    let kind = quote::format_ident!("{kind}");
    let variant = quote::format_ident!("{variant}");
    Ok(quote!(::toolkit_sdk::rt::manifest::#kind::#variant))
}
