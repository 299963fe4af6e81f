//! OAuth scopes that tools need at their provider.
//!
//! A tool of a manifest names scopes, all of which it needs. An auth scheme names the scopes that
//! every connection requests. The union of these is therefore the set of least privilege, and it
//! does not depend on the user who grants it.

use std::{collections::BTreeSet, sync::Arc};

use manifest::{AuthMode, AuthScheme};

use super::{Release, ResolvedTool, Snapshot, versions::described_version};
use crate::{Result, catalog::errors, core::shown_slug};

/// The input of a recommendation.
#[derive(Debug, Default)]
pub struct ScopeRequest {
    /// The tools of the toolkit that are to run.
    pub tools: Vec<String>,
    /// The scopes to request in any case.
    pub include: Vec<String>,
    /// The scopes that must not be requested.
    pub exclude: Vec<String>,
    /// The only scopes that may be requested, or `None` for no restriction.
    pub available: Option<Vec<String>>,
}

/// A recommendation of scopes.
#[derive(Debug)]
pub struct RecommendedScopes {
    /// The mode of the auth scheme.
    pub mode: AuthMode,
    /// The scopes to request, in alphabetical order.
    pub scopes: Vec<String>,
}

/// Finds tools in a version of their toolkits. Fails with one line for each tool that does not
/// exist.
pub fn find_tools(
    snapshot: &Snapshot,
    slugs: &[String],
    version: &str,
) -> Result<Vec<ResolvedTool>> {
    all(
        slugs,
        |slug| snapshot.find_tool(slug, version),
        |slug| {
            let version = described_version(version);
            format!("tools: {} is not in {version}", shown_slug(slug))
        },
    )
}

/// Returns the selected auth scheme: the named one, else OAuth 2.0 if the toolkit offers it, else
/// the first one. A toolkit without auth schemes needs no account. Fails if the toolkit does not
/// offer the named scheme.
pub fn scheme<'a>(
    release: &'a Release,
    named: Option<&str>,
) -> Result<(AuthMode, Option<&'a AuthScheme>)> {
    let selected = match named {
        None => release.scheme(AuthMode::Oauth2).or(release.auth.first()),
        Some(name) => release
            .auth
            .iter()
            .find(|scheme| scheme.mode.as_str().eq_ignore_ascii_case(name)),
    };
    match (selected, named) {
        (Some(scheme), _) => Ok((scheme.mode, Some(scheme))),
        (None, Some(name))
            if !(release.auth.is_empty()
                && name.eq_ignore_ascii_case(AuthMode::NoAuth.as_str())) =>
        {
            Err(errors::scheme_not_offered(
                &release.slug,
                "that the request names",
            ))
        }
        (None, _) => Ok((AuthMode::NoAuth, None)),
    }
}

/// Returns the scopes to request so that some tools of a toolkit can run. Fails if the toolkit does
/// not offer the named scheme, or does not have one of the tools.
pub fn recommend_scopes(
    release: &Arc<Release>,
    named: Option<&str>,
    request: &ScopeRequest,
) -> Result<RecommendedScopes> {
    let (mode, scheme) = scheme(release, named)?;
    let tools = all(
        &request.tools,
        |slug| release.tool(slug),
        |tool| {
            let Release { version, slug, .. } = &**release;
            let tool = shown_slug(tool);
            format!("tools: {tool} is not in version {version} of {slug}")
        },
    )?;
    let always = scheme
        .and_then(|scheme| scheme.oauth2.as_ref())
        .map_or(&[][..], |flow| &flow.scopes);
    let mut scopes: BTreeSet<&String> = always
        .iter()
        .chain(tools.iter().flat_map(|tool| &tool.scopes))
        .collect();
    scopes.extend(&request.include);
    scopes.retain(|scope| !request.exclude.contains(scope));
    if let Some(available) = &request.available {
        scopes.retain(|scope| available.contains(scope));
    }
    Ok(RecommendedScopes {
        mode,
        scopes: scopes.into_iter().cloned().collect(),
    })
}

/// Finds the item of each slug. Returns an error with one line for each unknown slug.
fn all<T>(
    slugs: &[String],
    find: impl Fn(&str) -> Option<T>,
    missing: impl Fn(&str) -> String,
) -> Result<Vec<T>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for slug in slugs {
        match find(slug) {
            Some(tool) => found.push(tool),
            None => problems.push(missing(slug)),
        }
    }
    errors::refuse_problems(problems, errors::invalid)?;
    Ok(found)
}
