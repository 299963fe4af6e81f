//! Egress rules as authors write them: `"api.example.com"`, `"*.example.com"`, `"GET,POST
//! api.example.com:8443/v1/"`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::LitStr;

const HTTP_METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
const EXPECTED_FORM: &str = "write a host, for example \"api.example.com\", \"*.example.com\" or \"POST api.example.com/graphql\"";

/// Returns the expression that builds one `EgressRule`.
pub(crate) fn rule(text: &LitStr) -> syn::Result<TokenStream> {
    let value = text.value();
    let fail = |what: String| {
        Err(syn::Error::new(
            text.span(),
            format!("{what}; {EXPECTED_FORM}"),
        ))
    };
    if value.contains("://") {
        return fail("an egress rule has no scheme".to_owned());
    }
    let (methods, target) = match value.split_once(' ') {
        Some((methods, target)) => (methods.split(',').collect::<Vec<_>>(), target),
        None => (Vec::new(), value.as_str()),
    };
    if let Some(unknown) = methods.iter().find(|method| !HTTP_METHODS.contains(method)) {
        return fail(format!(
            "`{unknown}` is not one of {}",
            HTTP_METHODS.join(", ")
        ));
    }
    let (authority, path) = match target.find('/') {
        Some(at) => (&target[..at], Some(&target[at..])),
        None => (target, None),
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => match port.parse::<u16>() {
            Ok(port) => (host, Some(port)),
            Err(_) => return fail(format!("`{port}` is not a port")),
        },
        None => (authority, None),
    };
    if host.strip_prefix("*.").unwrap_or(host).split('.').count() < 2
        || host.contains(char::is_whitespace)
    {
        return fail(format!("`{host}` is not a host with at least two labels"));
    }
    let port = option(port.map(|port| quote!(#port)));
    let path = option(path.map(|path| quote!(::std::string::String::from(#path))));
    Ok(quote! {
        ::toolkit_sdk::rt::manifest::EgressRule {
            host: ::std::string::String::from(#host),
            port: #port,
            methods: ::std::vec![#(::std::string::String::from(#methods)),*],
            path_prefix: #path,
        }
    })
}

/// Returns the expression that builds a list of rules, and reports every malformed one.
pub(crate) fn rules(texts: &[LitStr]) -> syn::Result<TokenStream> {
    let rules = crate::signature::all(texts.iter().map(rule))?;
    Ok(quote!(::std::vec![#(#rules),*]))
}

/// Returns `Some(…)` or `None` as an expression.
pub(crate) fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
