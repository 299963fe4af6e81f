//! Runs of the sandbox.
use sandbox::{Call, Digest, Outcome, Refusal, cassette::Cassette};

use crate::{
    App, Error, Result,
    catalog::{self, Release},
    runs::errors,
};

/// Calls the sandbox. If this node does not have the component yet, prepares it first.
pub(super) async fn run_in_sandbox(
    app: &App,
    release: &Release,
    call: impl Fn() -> Call,
    max_cassette_bytes: Option<usize>,
) -> Result<(Outcome, Option<Cassette>)> {
    let call_once = async || match max_cassette_bytes {
        None => Ok((app.sandbox.call(call()).await?, None)),
        Some(max_bytes) => app.sandbox.record(call(), max_bytes).await,
    };
    let ran = match call_once().await {
        Err(Refusal::NotInstalled) => {
            install_component(app, release.digest).await?;
            call_once().await
        }
        other => other,
    };
    ran.map_err(|refusal| refusal_error(refusal, release))
}

async fn install_component(app: &App, component: Digest) -> Result<()> {
    let bytes = app.store.blobs().get(&catalog::blob(component)).await?;
    let bytes = bytes.ok_or_else(|| {
        tracing::error!(%component, "a component is missing: servers that share a database must also share a bucket");
        errors::unavailable("the blob storage of this server does not have the toolkit's component")
    })?;
    match app.sandbox.install(bytes).await {
        Ok(_) => Ok(()),
        Err(sandbox::InstallError::Unavailable(why)) => Err(errors::unavailable(why)),
        Err(other) => Err(errors::internal(format!(
            "component {component} cannot be installed: {other}"
        ))),
    }
}

pub(super) fn refusal_error(refusal: Refusal, release: &Release) -> Error {
    match refusal {
        Refusal::TenantBusy => errors::project_busy(),
        Refusal::NodeBusy => errors::node_busy(),
        Refusal::NotInstalled => {
            errors::unavailable("the toolkit cannot be installed on this node")
        }
        Refusal::Quarantined => errors::quarantined(&release.slug, &release.version),
        Refusal::Unavailable(why) => errors::unavailable(why),
    }
}

#[cfg(test)]
mod tests {
    use store::Time;

    use super::*;
    use crate::catalog::SchemaFile;

    /// Tests the refusal directly, because no client request can make the host panic. The tests of
    /// the sandbox check that the refusal follows the third panic, and other tests check how errors
    /// of the table are sent.
    #[test]
    fn quarantined_component_is_refused() {
        let manifest = serde_json::json!({ "abi": "1.0.0", "sdk": "s", "slug": "acme", "name": "n", "description": "d", "version": "20260101_00", "tools": [], });
        let mut schema_file = SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap();
        let manifest = manifest.to_string();
        let manifest = serde_json::from_str(&manifest).unwrap();
        let release =
            Release::new(manifest, Digest::compute(b""), 0, Time(0), &mut schema_file).unwrap();
        let error = refusal_error(Refusal::Quarantined, &release);
        assert!(error.is(&errors::QUARANTINED), "{error}");
        assert!(
            error.to_string().contains("20260101_00 of toolkit acme"),
            "{error}"
        );
    }
}
