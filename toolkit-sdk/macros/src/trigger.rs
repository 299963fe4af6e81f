//! The attributes `#[trigger(poll)]` and `#[trigger(webhook)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Ident, LitStr};

use crate::egress;
use crate::signature::{Attribute, Problems, Signature, at, attribute_list};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Poll,
    Webhook,
}

#[derive(Default)]
struct Attributes {
    kind: Option<Kind>,
    scopes: Vec<LitStr>,
    egress: Option<Vec<LitStr>>,
    name: Option<LitStr>,
    slug: Option<LitStr>,
    subscription: Option<LitStr>,
}

pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let attributes = Attributes::read(attributes)?;
    let signature = Signature::read(item, "trigger")?;
    let Some(kind) = attributes.kind else {
        let hint = "write #[trigger(poll)] if the toolkit polls the provider, #[trigger(webhook)] if the provider sends webhooks";
        return Err(syn::Error::new(
            Span::call_site(),
            format!("a trigger needs a kind; {hint}"),
        ));
    };
    if let (Kind::Poll, Some(subscription)) = (kind, &attributes.subscription) {
        return Err(syn::Error::new(
            subscription.span(),
            "a trigger that polls needs no subscription; remove it, or write `webhook`",
        ));
    }
    if signature.inputs.len() != 2 {
        let form = match kind {
            Kind::Poll => {
                "fn name(config: Config, cursor: Option<Cursor>) -> Result<Polled<Item, Cursor>>"
            }
            Kind::Webhook => "fn name(config: Config, request: Inbound) -> Result<Received<Item>>",
        };
        return Err(syn::Error::new_spanned(
            &signature.function.sig,
            format!("this trigger needs two arguments; write `{form}`"),
        ));
    }
    registration(&attributes, kind, &signature)
}

impl Attributes {
    fn read(tokens: TokenStream) -> syn::Result<Self> {
        let mut read = Self::default();
        let mut problems = Problems::default();
        for word in attribute_list(tokens)? {
            if let Err(error) = read.take(word) {
                problems.push(error);
            }
        }
        problems.finish()?;
        Ok(read)
    }

    fn take(&mut self, word: Attribute) -> syn::Result<()> {
        let span = word.name.span();
        let name = word.name.to_string();
        match name.as_str() {
            "poll" | "webhook" => {
                word.flag()?;
                let kind = if name == "poll" {
                    Kind::Poll
                } else {
                    Kind::Webhook
                };
                if self.kind.replace(kind).is_some() {
                    return Err(syn::Error::new(
                        span,
                        "a trigger is either `poll` or `webhook`; remove one of them",
                    ));
                }
            }
            "scopes" => self.scopes.extend(word.texts()?),
            "egress" => self.egress.get_or_insert_default().extend(word.texts()?),
            "name" => self.name = Some(word.text()?),
            "slug" => self.slug = Some(word.text()?),
            "subscription" => self.subscription = Some(word.text()?),
            _ => {
                let known = "poll, webhook, scopes(\"…\"), egress(\"…\"), name = \"…\", slug = \"…\", subscription = \"Type\"";
                return Err(syn::Error::new(
                    span,
                    format!("`{name}` is unknown; known are {known}"),
                ));
            }
        }
        Ok(())
    }
}

fn registration(
    attributes: &Attributes,
    kind: Kind,
    signature: &Signature,
) -> syn::Result<TokenStream> {
    let function = &signature.function;
    let ident = signature.ident();
    let suffix = signature.suffix(attributes.slug.as_ref())?;
    let title = signature.title(attributes.name.as_ref());
    let description = &signature.description;
    let scopes = &attributes.scopes;
    let egress = egress::option(
        attributes
            .egress
            .as_deref()
            .map(egress::rules)
            .transpose()?,
    );
    let takes = at(&signature.inputs[0]);
    let answers = at(&signature.output);
    let config = quote_spanned!(takes=> ::toolkit_sdk::rt::config_schema);
    let (source, kind) = match kind {
        Kind::Poll => {
            let poll = quote_spanned!(answers=> ::toolkit_sdk::rt::poll);
            let run = quote!(|config, cursor| #poll(super::#ident, config, cursor));
            (quote!(::toolkit_sdk::rt::Source::Poll(#run)), quote!(Poll))
        }
        Kind::Webhook => {
            let receive = quote_spanned!(answers=> ::toolkit_sdk::rt::receive);
            let run = quote!(|config, request| #receive(super::#ident, config, request));
            (
                quote!(::toolkit_sdk::rt::Source::Webhook(#run)),
                quote!(Webhook),
            )
        }
    };
    let (subscribes, subscribing) = match &attributes.subscription {
        Some(name) => {
            let name: Ident = name.parse().map_err(|_| {
                let hint = "name a type of this module that implements `Subscribe`";
                syn::Error::new(name.span(), hint)
            })?;
            (
                quote!(::core::option::Option::Some(::toolkit_sdk::rt::subscription::<super::#name>)),
                quote!(::core::option::Option::Some(::toolkit_sdk::rt::subscribing::<super::#name>())),
            )
        }
        None => (
            quote!(::core::option::Option::None),
            quote!(::core::option::Option::None),
        ),
    };
    let carried = quote_spanned!(answers=> ::toolkit_sdk::rt::payload_schema(super::#ident));
    Ok(quote! {
        #function

        #[doc(hidden)]
        pub(crate) mod #ident {
            pub(crate) const REGISTRATION: ::toolkit_sdk::rt::TriggerRegistration = ::toolkit_sdk::rt::Registration {
                entry: ::toolkit_sdk::rt::Trigger {
                    function: ::core::stringify!(#ident),
                    suffix: #suffix,
                    source: #source,
                    subscription: #subscribes,
                },
                describe: |prefix| ::toolkit_sdk::rt::manifest::Trigger {
                    slug: ::std::format!("{prefix}_{}", #suffix),
                    name: ::std::string::String::from(#title),
                    description: ::std::string::String::from(#description),
                    kind: ::toolkit_sdk::rt::manifest::TriggerKind::#kind,
                    config: #config(super::#ident),
                    payload: #carried,
                    scopes: ::std::vec![#(::std::string::String::from(#scopes)),*],
                    egress: #egress,
                    subscription: #subscribing,
                },
            };
        }
    })
}
