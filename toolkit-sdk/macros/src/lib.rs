//! The macros of `toolkit-sdk`: `toolkit!`, `#[tool]` and `#[trigger]`.
//!
//! They convert a single declaration by the author (a doc comment, a struct, a word in an
//! attribute) into a manifest and a dispatch table. Everything that can be checked at compile time
//! is checked here. Each error points at the author's own line and says what to write instead.
//! `Manifest::problems` checks the rest.
//!
//! A tool `fn greet` comes with a module `greet` of the same name, which holds its registration.
//! Functions and modules live in different namespaces, so one path `issues::create_issue` in
//! `toolkit!` names both.

mod auth;
mod egress;
mod oauth1;
mod oauth2;
mod signature;
mod tool;
mod toolkit;
mod trigger;

use proc_macro::TokenStream;

/// Declares the toolkit: its name and description, the hosts it reaches, the ways to connect
/// accounts, and its tools. Belongs once at the root of the crate.
#[proc_macro]
pub fn toolkit(input: TokenStream) -> TokenStream {
    finish(toolkit::expand(input.into()))
}

/// Makes a function a tool. The doc comment is its description, the argument's type its input
/// schema, and the type in `Result<…>` its output schema.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    finish(tool::expand(attributes.into(), item.into()))
}

/// Makes a function a trigger. `#[trigger(poll)]` asks a provider for new events,
/// `#[trigger(webhook)]` reads the events that it sends.
#[proc_macro_attribute]
pub fn trigger(attributes: TokenStream, item: TokenStream) -> TokenStream {
    finish(trigger::expand(attributes.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
