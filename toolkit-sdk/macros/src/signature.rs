//! Common parts of tools and triggers: the annotated function, its documentation, and the words of
//! an attribute.

use heck::ToShoutySnakeCase;
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, ReturnType, Token, Type, parenthesized, token,
};

const MAX_DESCRIPTION_BYTES: usize = 4096;

/// The annotated function, checked.
pub(crate) struct Signature {
    pub(crate) function: ItemFn,
    pub(crate) description: String,
    pub(crate) inputs: Vec<Type>,
    pub(crate) output: Type,
}

impl Signature {
    /// Parses the item; `what` is `tool` or `trigger`.
    pub(crate) fn read(item: TokenStream, what: &str) -> syn::Result<Self> {
        let span = item
            .clone()
            .into_iter()
            .next()
            .map_or_else(Span::call_site, |token| token.span());
        let function: ItemFn = syn::parse2(item).map_err(|error| {
            syn::Error::new(
                span,
                format!(
                    "#[{what}] must be on a function with a body: `fn name(…) -> Result<…>`: {error}"
                ),
            )
        })?;
        let signature = &function.sig;
        let mut problems = Problems::default();
        if let Some(token) = &signature.asyncness {
            problems.add(
                token,
                format!("a {what} is a synchronous function: remove `async`; `send()` blocks until the response arrives"),
            );
        }
        if let Some(token) = &signature.unsafety {
            problems.add(
                token,
                format!("a {what} is a safe function: remove `unsafe`"),
            );
        }
        if !signature.generics.params.is_empty() {
            problems.add(
                &signature.generics,
                format!("a {what} has one input type: remove the type parameters"),
            );
        }
        let mut inputs = Vec::new();
        for argument in &signature.inputs {
            match argument {
                FnArg::Receiver(receiver) => problems.add(
                    receiver,
                    format!("a {what} is a free function: remove `self`"),
                ),
                FnArg::Typed(typed) => inputs.push((*typed.ty).clone()),
            }
        }
        let description = description(&function);
        if description.is_empty() {
            let hint = format!(
                "write a doc comment: it is the description that agents read to choose this {what}"
            );
            problems.add(
                &signature.ident,
                format!("`{}` has no description; {hint}", signature.ident),
            );
        } else if description.len() > MAX_DESCRIPTION_BYTES {
            problems.add(
                &signature.ident,
                "the doc comment is longer than 4 KiB; shorten it".to_owned(),
            );
        }
        let output = match &signature.output {
            ReturnType::Type(_, output) => (**output).clone(),
            ReturnType::Default => {
                problems.add(
                    &signature.ident,
                    format!("a {what} returns a value: write `-> Result<…>`"),
                );
                Type::Verbatim(TokenStream::new())
            }
        };
        problems.finish()?;
        Ok(Self {
            description,
            inputs,
            output,
            function,
        })
    }

    /// Returns the function's name.
    pub(crate) fn ident(&self) -> &Ident {
        &self.function.sig.ident
    }

    /// Returns the part of the slug after the toolkit's name: the given one, or the function's
    /// name.
    pub(crate) fn suffix(&self, given: Option<&LitStr>) -> syn::Result<String> {
        let Some(given) = given else {
            return Ok(self.ident().to_string().to_shouty_snake_case());
        };
        let value = given.value();
        if !value.is_empty()
            && value
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        {
            return Ok(value);
        }
        let hint = "write the part after the toolkit's name in upper case, for example slug = \"CREATE_ISSUE\"";
        Err(syn::Error::new(
            given.span(),
            format!("`{value}` cannot be part of a slug; {hint}"),
        ))
    }

    /// Returns the readable name: the given one, or the function's name in words.
    pub(crate) fn title(&self, given: Option<&LitStr>) -> String {
        if let Some(given) = given {
            return given.value();
        }
        let name = self.ident().to_string();
        capitalized(&name.trim_start_matches("r#").replace('_', " "))
    }
}

/// Returns the text with its first letter in upper case.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Returns a span for generated code that resolves names at the call site and reports errors at the
/// author's tokens.
pub(crate) fn at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::call_site())
}

fn description(function: &ItemFn) -> String {
    let mut lines = Vec::new();
    for attribute in function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
    {
        let syn::Meta::NameValue(meta) = &attribute.meta else {
            continue;
        };
        if let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &meta.value
        {
            let text = text.value();
            lines.extend(
                text.split('\n')
                    .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()),
            );
        }
    }
    lines.join("\n").trim().to_owned()
}

/// One word of an attribute: `read_only`, `name = "…"` or `tags("…", "…")`.
pub(crate) struct Attribute {
    pub(crate) name: Ident,
    pub(crate) value: Given,
}

/// Value that follows the word.
pub(crate) enum Given {
    Nothing,
    One(LitStr),
    Many(Vec<LitStr>),
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Given::One(input.parse()?)
        } else if input.peek(token::Paren) {
            let content;
            parenthesized!(content in input);
            Given::Many(
                Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?
                    .into_iter()
                    .collect(),
            )
        } else {
            Given::Nothing
        };
        Ok(Self { name, value })
    }
}

impl Attribute {
    /// Reads a word without a value.
    pub(crate) fn flag(self) -> syn::Result<bool> {
        match self.value {
            Given::Nothing => Ok(true),
            _ => Err(syn::Error::new(
                self.name.span(),
                format!("`{0}` takes no value: write just `{0}`", self.name),
            )),
        }
    }

    /// Reads `word = "text"`.
    pub(crate) fn text(self) -> syn::Result<LitStr> {
        match self.value {
            Given::One(text) => Ok(text),
            _ => Err(syn::Error::new(
                self.name.span(),
                format!("write `{} = \"…\"`", self.name),
            )),
        }
    }

    /// Reads `word("text", "text")`.
    pub(crate) fn texts(self) -> syn::Result<Vec<LitStr>> {
        match self.value {
            Given::Many(texts) if !texts.is_empty() => Ok(texts),
            _ => Err(syn::Error::new(
                self.name.span(),
                format!("write `{}(\"…\")`", self.name),
            )),
        }
    }
}

/// Parses the words of an attribute.
pub(crate) fn attribute_list(attributes: TokenStream) -> syn::Result<Vec<Attribute>> {
    let words = syn::parse::Parser::parse2(
        Punctuated::<Attribute, Token![,]>::parse_terminated,
        attributes,
    )?;
    Ok(words.into_iter().collect())
}

/// Collects errors, so that the author sees all of them together.
#[derive(Default)]
pub(crate) struct Problems(Option<syn::Error>);

impl Problems {
    pub(crate) fn add(&mut self, place: &impl ToTokens, message: String) {
        self.push(syn::Error::new_spanned(place, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Returns every value, or every error.
pub(crate) fn all<T>(results: impl IntoIterator<Item = syn::Result<T>>) -> syn::Result<Vec<T>> {
    let mut problems = Problems::default();
    let mut values = Vec::new();
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => problems.push(error),
        }
    }
    problems.finish()?;
    Ok(values)
}
