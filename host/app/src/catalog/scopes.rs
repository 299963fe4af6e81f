//! Which scopes of an external application tools need.
//!
//! A tool of a manifest names scopes, all of which it needs; a scheme names those that every connection asks for. So the fewest
//! scopes that suffice are also those with the least privilege, and nothing depends on who grants them.

use std::{collections::BTreeSet, sync::Arc};

use manifest::{AuthMode, AuthScheme};

use super::{Found, Index, Release};
use crate::{Error, Result, cut};

/// What a recommendation starts from.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Tools of the toolkit that are to run.
    pub tools: Vec<String>,
    /// Scopes to ask for in any case.
    pub include: Vec<String>,
    /// Scopes never to ask for.
    pub exclude: Vec<String>,
    /// The only scopes that may be asked for; absent for any.
    pub available: Option<Vec<String>>,
}

/// What to ask for.
#[derive(Debug)]
pub struct Recommended {
    /// How accounts are connected.
    pub mode: AuthMode,
    /// In alphabetical order.
    pub scopes: Vec<String>,
}

/// Finds tools in a version of their toolkits.
///
/// # Errors
/// With one line for each that is not there.
pub fn tools_of(index: &Index, slugs: &[String], version: &str) -> Result<Vec<Found>> {
    all(
        slugs,
        |slug| index.tool(slug, version).ok(),
        |slug| format!("tools: {} is not in version {}", cut(slug), cut(version)),
    )
}

/// The scheme meant: the one named, else OAuth 2.0 where the toolkit has it, else its first. A toolkit without any needs no account.
///
/// # Errors
/// When the toolkit does not offer the scheme named.
pub fn scheme<'a>(release: &'a Release, named: Option<&str>) -> Result<(AuthMode, Option<&'a AuthScheme>)> {
    let oauth = || release.scheme(AuthMode::Oauth2).or(release.auth.first());
    let found = match named {
        None => oauth(),
        Some(name) => release.auth.iter().find(|scheme| scheme.mode.as_str().eq_ignore_ascii_case(name)),
    };
    match (found, named) {
        (Some(scheme), _) => Ok((scheme.mode, Some(scheme))),
        (None, Some(name)) if !(release.auth.is_empty() && name.eq_ignore_ascii_case(AuthMode::NoAuth.as_str())) => {
            Err(Error::SchemeNotOffered { toolkit: release.slug.to_string(), scheme: cut(name) })
        }
        (None, _) => Ok((AuthMode::NoAuth, None)),
    }
}

/// The scopes to ask for when some tools of a toolkit are to run.
///
/// # Errors
/// When the toolkit does not offer the scheme named, or a tool is not its own.
pub fn recommended(release: &Arc<Release>, named: Option<&str>, wanted: &Wanted) -> Result<Recommended> {
    let (mode, scheme) = scheme(release, named)?;
    let missing =
        |slug: &str| format!("tools: {} is not in version {} of {}", cut(slug), release.version, release.slug);
    let tools = all(&wanted.tools, |slug| release.tool(slug), missing)?;
    let always = scheme.and_then(|scheme| scheme.oauth2.as_ref()).map_or(&[][..], |flow| &flow.scopes);
    let mut scopes: BTreeSet<&String> = always.iter().chain(tools.iter().flat_map(|tool| &tool.scopes)).collect();
    scopes.extend(&wanted.include);
    scopes.retain(|scope| !wanted.exclude.contains(scope));
    if let Some(available) = &wanted.available {
        scopes.retain(|scope| available.contains(scope));
    }
    Ok(Recommended { mode, scopes: scopes.into_iter().cloned().collect() })
}

/// What each slug stands for, or a line for each that stands for nothing.
fn all<T>(slugs: &[String], find: impl Fn(&str) -> Option<T>, missing: impl Fn(&str) -> String) -> Result<Vec<T>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for slug in slugs {
        match find(slug) {
            Some(tool) => found.push(tool),
            None => problems.push(missing(slug)),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(Error::Invalid(problems)) }
}
