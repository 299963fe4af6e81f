//! Verification of a credential with the request that its toolkit declares for this purpose.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use sandbox::{Limits, Policy};

use super::{
    errors,
    proxy::allowed_origins,
    run::{self, Request, Run},
};
use crate::{App, Result, accounts::CredentialCheck};

/// Sends the request of a check, see [`VerifyCredential`](crate::accounts::VerifyCredential).
pub(crate) fn verify_credential<'a>(
    app: &'a App,
    check: CredentialCheck<'a>,
) -> BoxFuture<'a, Result<()>> {
    verify(app, check).boxed()
}

async fn verify(app: &App, check: CredentialCheck<'_>) -> Result<()> {
    let outcome = run::send(app, to_run(&check)?).await?;
    let response = outcome.output.map_err(|failed| {
        errors::unavailable(format!("the provider did not respond: {}", failed.message))
    })?;
    let status = response.status;
    let reason = format!("the provider responded with status {status}");
    match status {
        200..=299 => Ok(()),
        500..=599 | 429 => Err(errors::unavailable(reason)),
        _ => Err(errors::credential_rejected(reason)),
    }
}

fn unfilled() -> crate::Error {
    errors::credential_rejected(
        "the URL of the verification request needs a field that has no value",
    )
}

/// Returns the run that sends the request of the toolkit with the credential under test.
fn to_run<'a>(check: &CredentialCheck<'a>) -> Result<Run<'a, 'a, Request>> {
    let release = check.release;
    let scheme = release.scheme(check.mode);
    let declared = scheme.and_then(|scheme| scheme.verify.as_ref());
    let declared = declared.ok_or_else(|| errors::check_unsupported(&release.slug))?;
    let base = check.base_url();
    let mut url =
        manifest::fill(&declared.url, &|name: &str| check.value(name)).ok_or_else(unfilled)?;
    if url.starts_with('/') {
        let base = base.as_deref().ok_or_else(unfilled)?;
        url = format!("{}{url}", base.trim_end_matches('/'));
    }
    let policy = Policy {
        egress: allowed_origins(release, base.as_deref()),
        ..Policy::default()
    };
    Ok(Run {
        project: check.project,
        release,
        what: Request {
            method: declared.method.clone(),
            url,
            headers: Vec::new(),
            body: None,
            max_text_bytes: 0,
        },
        policy: Arc::new(policy),
        credential: check.grant()?,
        limits: Limits::default(),
        record: None,
    })
}
