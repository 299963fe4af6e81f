//! The macro `toolkit! { … }`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitBool, LitInt, LitStr, Path, Token, braced, bracketed};

use crate::auth::Scheme;
use crate::egress::{self, option};
use crate::signature::{Problems, all};

const KNOWN_KEYS: &str = "slug, name, description, categories, version, logo, auth, egress, limits, import, tools, triggers";

#[derive(Default)]
struct Declaration {
    slug: Option<LitStr>,
    name: Option<LitStr>,
    description: Option<LitStr>,
    categories: Vec<LitStr>,
    version: Option<LitStr>,
    logo: Option<LitStr>,
    auth: Vec<Scheme>,
    egress: Vec<LitStr>,
    limits: Vec<(Ident, LitInt)>,
    import: Import,
    tools: Vec<Path>,
    triggers: Vec<Path>,
}

/// Import of a toolkit, and the settings that its requests share.
#[derive(Default)]
enum Import {
    #[default]
    None,
    Plain,
    /// Path of the client constant whose headers and error rule apply to the import's requests.
    Like(Path),
}

pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    let declaration: Declaration = syn::parse2(input)?;
    let mut problems = Problems::default();
    let mut required = |value: &Option<LitStr>, line: &str| {
        if value.is_none() {
            problems.push(syn::Error::new(
                Span::call_site(),
                format!("a toolkit needs this key; add `{line}`"),
            ));
        }
    };
    required(&declaration.slug, "slug: \"hacker_news\",");
    required(&declaration.name, "name: \"Hacker News\",");
    required(
        &declaration.description,
        "description: \"One or two sentences.\",",
    );
    let slug_form =
        "a slug is 2 to 48 of a-z, 0-9 and _, and begins with a letter: \"hacker_news\"";
    let version_form = "a version is year, month, day and a number: \"20261121_00\"";
    for (value, is_valid, form) in [
        (&declaration.slug, is_slug as fn(&str) -> bool, slug_form),
        (&declaration.version, is_version, version_form),
    ] {
        if let Some(text) = value.as_ref().filter(|text| !is_valid(&text.value())) {
            problems.add(text, form.to_owned());
        }
    }
    problems.finish()?;
    let manifest = declaration.manifest()?;
    let slug = &declaration.slug;
    let tools = &declaration.tools;
    let triggers = &declaration.triggers;
    let client = match &declaration.import {
        Import::None => None,
        Import::Plain => Some(quote!(::core::option::Option::None)),
        Import::Like(client) => Some(quote!(::core::option::Option::Some(#client))),
    };
    let place = client
        .is_some()
        .then(|| quote!(::toolkit_sdk::rt::plan_place!(PLAN);));
    let imported = option(
        client.map(|client| quote!(|tool, arguments| ::toolkit_sdk::rt::imported(&PLAN, #client, tool, arguments))),
    );
    Ok(quote! {
        #place

        /// The toolkit that `toolkit!` declares.
        #[doc(hidden)]
        pub static TOOLKIT: ::toolkit_sdk::rt::Toolkit = ::toolkit_sdk::rt::Toolkit {
            slug: #slug,
            tools: &[#(#tools::REGISTRATION.entry),*],
            triggers: &[#(#triggers::REGISTRATION.entry),*],
            #[cfg(not(target_arch = "wasm32"))]
            describe: || #manifest,
            imported: #imported,
        };

        // In a component only the export that the build calls reaches the description.
        ::toolkit_sdk::rt::export_toolkit!(TOOLKIT, #manifest);
    })
}

impl Parse for Declaration {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut declaration = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if seen.contains(&key) {
                return Err(syn::Error::new(
                    key.span(),
                    format!("`{key}` is given twice; remove one of them"),
                ));
            }
            input.parse::<Token![:]>()?;
            declaration.take(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(declaration)
    }
}

impl Declaration {
    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match key.to_string().as_str() {
            "slug" => self.slug = Some(input.parse()?),
            "name" => self.name = Some(input.parse()?),
            "description" => self.description = Some(input.parse()?),
            "version" => self.version = Some(input.parse()?),
            "logo" => self.logo = Some(input.parse()?),
            "categories" => self.categories = list(input)?,
            "auth" => self.auth = list(input)?,
            "egress" => self.egress = list(input)?,
            "tools" => self.tools = list(input)?,
            "triggers" => self.triggers = list(input)?,
            "import" => {
                self.import = match input.peek(LitBool) {
                    true if input.parse::<LitBool>()?.value() => Import::Plain,
                    true => Import::None,
                    false => Import::Like(input.parse()?),
                }
            }
            "limits" => {
                let content;
                braced!(content in input);
                let entries = Punctuated::<Limit, Token![,]>::parse_terminated(&content)?;
                self.limits = entries
                    .into_iter()
                    .map(|limit| (limit.name, limit.value))
                    .collect();
            }
            other => {
                return Err(syn::Error::new(
                    key.span(),
                    format!("`{other}` is unknown; known are {KNOWN_KEYS}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the expression that builds the manifest.
    fn manifest(&self) -> syn::Result<TokenStream> {
        let Self {
            slug,
            name,
            description,
            categories,
            tools,
            triggers,
            ..
        } = self;
        let prefix = slug.as_ref().map(|slug| slug.value().to_ascii_uppercase());
        let auth = all(self.auth.iter().map(Scheme::expression))?;
        let egress = egress::rules(&self.egress)?;
        let limits = self
            .limits
            .iter()
            .map(|(name, value)| quote!(#name: ::core::option::Option::Some(#value)));
        let logo = option(self.logo.as_ref().map(logo).transpose()?);
        let version = match &self.version {
            Some(version) => quote!(#version),
            None => quote!(::toolkit_sdk::rt::UNSTAMPED_VERSION),
        };
        Ok(quote! {
            ::toolkit_sdk::rt::manifest::Manifest {
                abi: ::std::string::String::from(::toolkit_sdk::rt::manifest::ABI_VERSION),
                sdk: ::std::string::String::from(::toolkit_sdk::rt::SDK_VERSION),
                slug: ::std::string::String::from(#slug),
                name: ::std::string::String::from(#name),
                description: ::std::string::String::from(#description),
                logo: #logo,
                categories: ::std::vec![#(::std::string::String::from(#categories)),*],
                version: ::toolkit_sdk::rt::version(#version),
                auth: ::std::vec![#(#auth),*],
                egress: #egress,
                tools: ::std::vec![#((#tools::REGISTRATION.describe)(#prefix)),*],
                triggers: ::std::vec![#((#triggers::REGISTRATION.describe)(#prefix)),*],
                limits: ::toolkit_sdk::rt::manifest::Limits {
                    #(#limits,)*
                    ..::core::default::Default::default()
                },
            }
        })
    }
}

struct Limit {
    name: Ident,
    value: LitInt,
}

impl Parse for Limit {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        if !["memory_mib", "cpu_ms", "wall_ms"]
            .iter()
            .any(|known| name == known)
        {
            let known = "memory_mib, cpu_ms, wall_ms";
            return Err(syn::Error::new(
                name.span(),
                format!("`{name}` is unknown; known are {known}"),
            ));
        }
        input.parse::<Token![:]>()?;
        Ok(Self {
            name,
            value: input.parse()?,
        })
    }
}

fn list<T: Parse>(input: ParseStream<'_>) -> syn::Result<Vec<T>> {
    let content;
    bracketed!(content in input);
    Ok(Punctuated::<T, Token![,]>::parse_terminated(&content)?
        .into_iter()
        .collect())
}

/// Returns the expression of a logo. An SVG document stays as it is, a PNG becomes a `data:` URL.
fn logo(path: &LitStr) -> syn::Result<TokenStream> {
    let value = path.value();
    if value.ends_with(".svg") {
        let text = quote!(::core::include_str!(
            ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path)
        ));
        return Ok(quote!(::std::string::String::from(#text)));
    }
    if value.ends_with(".png") {
        let bytes = quote!(::core::include_bytes!(
            ::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/", #path)
        ));
        return Ok(quote!(::toolkit_sdk::rt::png(#bytes)));
    }
    Err(syn::Error::new(
        path.span(),
        "a logo is a file next to Cargo.toml that ends in .svg or .png",
    ))
}

fn is_slug(text: &str) -> bool {
    (2..=48).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_version(text: &str) -> bool {
    text.split_once('_').is_some_and(|(day, number)| {
        is_number(day, 8)
            && is_number(number, 2)
            && ("01"..="12").contains(&&day[4..6])
            && ("01"..="31").contains(&&day[6..8])
    })
}

fn is_number(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())
}
