//! Account of the temporary project, connected once with the author's own credential.

use anyhow::{Context, Result, anyhow};
use manifest::AuthScheme;
use reqwest::Method;
use serde_json::json;

use super::{
    Api, Dev,
    console::{Console, Event},
    release::Served,
};
use crate::{
    account::{self, Values},
    run,
};

/// Connects an account for each toolkit whose field values are given. A failure is reported and
/// does not stop the command.
pub(crate) async fn connect(
    api: &Api,
    options: &Dev,
    served: &[Served],
    console: &Console,
) -> bool {
    for Served { manifest, .. } in served {
        let connected = match find(options, &manifest.auth) {
            Ok(Some((scheme, values))) => create(api, &manifest.slug, scheme, &values).await,
            Ok(None) => match &options.credentials {
                Some(file) if !manifest.auth.is_empty() => Err(anyhow!(
                    "{} does not have every field of an auth scheme; `toolkit run` lists the missing ones",
                    file.display()
                )),
                _ => continue,
            },
            Err(cause) => Err(cause),
        };
        match connected {
            Ok(account) => console.print(&Event::Connected {
                toolkit: &manifest.slug,
                account: &account,
            }),
            Err(cause) => console.print(&Event::Failed(&format!(
                "no account was connected: {cause:#}"
            ))),
        }
    }
    true
}

/// Returns the first scheme whose required fields are all given.
fn find<'m>(options: &Dev, schemes: &'m [AuthScheme]) -> Result<Option<(&'m AuthScheme, Values)>> {
    let file = options
        .credentials
        .as_deref()
        .map(run::read_credentials)
        .transpose()?;
    Ok(account::schemes(schemes).find_map(|scheme| {
        let values = account::complete(scheme, |name| run::credential(file.as_ref(), name));
        Some((scheme, values.ok()?))
    }))
}

async fn create(api: &Api, toolkit: &str, scheme: &AuthScheme, values: &Values) -> Result<String> {
    let mode = scheme.mode.as_str();
    let request = json!({
        "toolkit": { "slug": toolkit },
        "auth_config": { "type": "use_custom_auth", "authScheme": mode, "credentials": {} },
    });
    let config = api
        .ask(Method::POST, "/auth_configs", Some(&request))
        .await?
        .context("the server does not have the toolkit")?;
    let account = json!({
        "auth_config": { "id": config["auth_config"]["id"] },
        "connection": { "user_id": "default", "state": { "authScheme": mode, "val": values } },
    });
    let made = api
        .ask(Method::POST, "/connected_accounts", Some(&account))
        .await?
        .context("the server does not have the auth config")?;
    made["id"]
        .as_str()
        .map(str::to_owned)
        .context("the server's response has no account id")
}
