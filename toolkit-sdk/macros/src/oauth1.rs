//! Signatures of requests, client certificates of connections, and the OAuth 1 settings of an
//! `oauth1(…)` scheme.

use proc_macro2::TokenStream;
use quote::quote;

use crate::auth::Scheme;
use crate::oauth2::object;

/// Values that templates of the scheme may name in addition to its fields.
pub(crate) const TEMPLATE_VALUES: [&str; 4] = [
    "consumer_key",
    "consumer_secret",
    "oauth_token",
    "oauth_token_secret",
];

/// Returns the expression that builds the `OAuth1`, for the mode that has one.
pub(crate) fn expression(scheme: &Scheme) -> syn::Result<Option<TokenStream>> {
    if !scheme.is_oauth1() {
        return Ok(None);
    }
    let Some(flow) = scheme.text("flow")? else {
        let hint = "a flow of OAuth 1 needs `flow: r#\"{ \"request_url\": …, \"authorize_url\": …, \"token_url\": … }\"#`";
        return Err(syn::Error::new(scheme.span(), hint));
    };
    let flow = object(flow)?;
    Ok(Some(quote!(::toolkit_sdk::rt::oauth1(#flow))))
}

/// Returns the expression that builds the `Sign`.
pub(crate) fn sign(scheme: &Scheme) -> syn::Result<Option<TokenStream>> {
    Ok(match scheme.text("sign")? {
        Some(sign) => {
            let sign = object(sign)?;
            Some(quote!(::toolkit_sdk::rt::sign(#sign)))
        }
        None => scheme
            .is_oauth1()
            .then(|| quote!(::toolkit_sdk::rt::manifest::Sign::oauth1())),
    })
}

/// Returns the expression that builds the `ClientCertificate`.
pub(crate) fn certificate(scheme: &Scheme) -> syn::Result<Option<TokenStream>> {
    let about = scheme.text("client_certificate")?.map(object).transpose()?;
    Ok(about.map(|about| quote!(::toolkit_sdk::rt::client_certificate(#about))))
}
