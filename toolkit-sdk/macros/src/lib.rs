//! The macros of `toolkit-sdk`: `toolkit!`, `#[tool]` and `#[trigger]`.
//!
//! They turn what the author writes once (a doc comment, a struct, a word in an attribute) into a manifest and a dispatch
//! table. What can be checked while compiling is checked here, and the error stands on the author's own line and says what
//! to write instead; the rest is checked by `Manifest::problems`.
//!
//! A tool `fn greet` comes with a module `greet` of the same name, which holds its registration: functions and modules
//! live in different namespaces, so the one path `issues::create_issue` in `toolkit!` names both.

mod auth;
mod egress;
mod oauth1;
mod oauth2;
mod signature;
mod tool;
mod toolkit;
mod trigger;

use proc_macro::TokenStream;

/// Declares the toolkit: what it is, which hosts it reaches, how accounts are connected, which tools it has. Stands once, at
/// the root of the crate.
#[proc_macro]
pub fn toolkit(input: TokenStream) -> TokenStream {
    finish(toolkit::expand(input.into()))
}

/// Makes a function a tool. The doc comment is its description, the argument's type its input schema, the type in
/// `Result<…>` its output schema.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    finish(tool::expand(attributes.into(), item.into()))
}

/// Makes a function a trigger: `#[trigger(poll)]` asks an application for news, `#[trigger(webhook)]` reads what it sends.
#[proc_macro_attribute]
pub fn trigger(attributes: TokenStream, item: TokenStream) -> TokenStream {
    finish(trigger::expand(attributes.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
