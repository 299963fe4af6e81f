//! Verification of a credential with the request that its toolkit declares for this purpose.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use sandbox::{Limits, Policy, ProxyRequest};

use super::{proxy::allowed_origins, run::refusal_error};
use crate::{App, Result, accounts::CredentialCheck, runs::errors};

/// Sends the request of a check, see [`VerifyCredential`](crate::accounts::VerifyCredential).
pub(crate) fn verify_credential<'a>(
    app: &'a App,
    check: CredentialCheck<'a>,
) -> BoxFuture<'a, Result<()>> {
    verify(app, check).boxed()
}

async fn verify(app: &App, check: CredentialCheck<'_>) -> Result<()> {
    let request = to_request(&check)?;
    let sent = app.sandbox.send_proxy_request(request).await;
    let outcome = sent.map_err(|refusal| refusal_error(refusal, check.release))?;
    let response = outcome.response.map_err(|failed| {
        errors::unavailable(format!("the provider did not respond: {}", failed.message))
    })?;
    match response.status {
        200..=299 => Ok(()),
        status @ (500..=599 | 429) => Err(errors::unavailable(format!(
            "the provider responded with status {status}"
        ))),
        status => Err(errors::credential_rejected(format!(
            "the provider responded with status {status}"
        ))),
    }
}

/// Returns the request that the toolkit declares, with the credential under test.
fn to_request(check: &CredentialCheck<'_>) -> Result<ProxyRequest> {
    let release = check.release;
    let scheme = release.scheme(check.mode);
    let declared = scheme.and_then(|scheme| scheme.verify.as_ref());
    let declared = declared.ok_or_else(|| errors::check_unsupported(&release.slug))?;
    let unfilled = || {
        errors::credential_rejected(
            "the URL of the verification request needs a field that has no value",
        )
    };
    let base = check.base_url();
    let mut url =
        manifest::fill(&declared.url, &|name: &str| check.value(name)).ok_or_else(unfilled)?;
    if url.starts_with('/') {
        let base = base.as_deref().ok_or_else(unfilled)?;
        url = format!("{}{url}", base.trim_end_matches('/'));
    }
    let policy = Policy {
        egress: allowed_origins(release, base.as_deref()),
        read_only: false,
    };
    Ok(ProxyRequest {
        tenant: check.project.tenant.clone(),
        policy: Arc::new(policy),
        grant: check.grant()?,
        limits: Limits::default(),
        method: declared.method.clone(),
        url,
        headers: Vec::new(),
        body: None,
    })
}
