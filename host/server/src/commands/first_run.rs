//! Data that a first start creates, and messages that each start prints.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use app::{
    App,
    core::ids::OrganizationId,
    projects::{self, Config, NewProject, permissions::KeyRestrictions},
};
use http::{Server, errors};
use zeroize::Zeroizing;

use crate::{installed, open::Stop, terminal::Terminal};

/// Name of the organization that the first start creates.
const ORGANIZATION_NAME: &str = "default";
/// Name of the project that the first start creates.
const PROJECT_NAME: &str = "demo";

/// Maximum number of toolkits that a first start names.
const MAX_LISTED_TOOLKITS: usize = 12;

/// Keys that clients of the first project need.
pub(crate) struct Keys {
    pub project: String,
    pub project_key: Zeroizing<String>,
    pub organization_key: Zeroizing<String>,
}

/// Creates the organization, a demo project and their keys.
pub(crate) async fn create(app: &App) -> Result<Keys, Stop> {
    let (organization, organization_key) =
        match projects::create_organization(app, ORGANIZATION_NAME).await {
            // Another server on the same store created it first. The other records are found, or
            // created here.
            Err(error) if error.is(&errors::PROJECT_NAME_TAKEN) => {
                existing_organization(app).await?
            }
            made => made?,
        };
    let request = NewProject {
        name: PROJECT_NAME.into(),
        config: Config::default(),
        key: Some(KeyRestrictions::default()),
    };
    let (project, key) = match projects::create(app, &organization, request).await {
        Err(error) if error.is(&errors::PROJECT_NAME_TAKEN) => return Box::pin(find(app)).await,
        made => made?,
    };
    let project_key = key.map(|key| key.secret).unwrap_or_default();
    Ok(Keys {
        project: project.id.to_string(),
        project_key,
        organization_key,
    })
}

async fn existing_organization(app: &App) -> Result<(OrganizationId, Zeroizing<String>), Stop> {
    let found = projects::organization(app).await?;
    let id = found
        .map(|record| OrganizationId::parse(&record.id))
        .transpose()?;
    let id = id.ok_or_else(|| {
        anyhow::anyhow!("the organization exists but cannot be read: start the server again")
    })?;
    let key = projects::organization_key(app, &id).await?;
    Ok((id, key))
}

/// Returns the keys of the oldest project. Completes a first start that was interrupted.
pub(crate) async fn find(app: &App) -> Result<Keys, Stop> {
    let organization = projects::organization(app)
        .await?
        .filter(|organization| organization.body.has_had_projects());
    let Some(organization) = organization else {
        return create(app).await;
    };
    let id = OrganizationId::parse(&organization.id)?;
    let mut keys = Keys {
        project: String::new(),
        project_key: Zeroizing::default(),
        organization_key: projects::organization_key(app, &id).await?,
    };
    if let Some(oldest) = projects::oldest(app, &id).await? {
        let shown = projects::show_keys(app, oldest.id.as_str()).await?;
        keys.project = oldest.id.to_string();
        keys.project_key = shown
            .into_iter()
            .next()
            .map(|key| key.secret)
            .unwrap_or_default();
    }
    Ok(keys)
}

/// Makes the next start write the file that a client's shell reads with `.`, as a first start does.
pub(crate) fn request_env(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    write_private(path, "")
}

/// Writes the file that a client's shell reads with `.`. This happens on the first start, and again
/// if the file exists with other content: the address has changed, or an import requests the file.
pub(crate) fn write_env(path: &Path, url: &str, keys: &Keys, new: bool) -> Result<()> {
    let content = Zeroizing::new(format!(
        "export TOOLHOST_URL={url}\nexport TOOLHOST_API_KEY={}\nexport TOOLHOST_ORG_API_KEY={}\nexport TOOLHOST_PROJECT_ID={}\n",
        keys.project_key.as_str(),
        keys.organization_key.as_str(),
        keys.project
    ));
    if new {
        return write_private(path, &content);
    }
    let Ok(present) = fs::read_to_string(path).map(Zeroizing::new) else {
        return Ok(());
    };
    if *present == *content {
        Ok(())
    } else {
        write_private(path, &content)
    }
}

/// Writes a file that only its owner can read. The file is replaced as a whole or not at all.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let temporary = path.with_extension("new");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Prints the address of the server and the location of its keys. On a first start, also prints the
/// data directory, the master key file and the toolkits.
pub(crate) fn print_summary(
    server: &Server,
    url: &str,
    address: SocketAddr,
    new: bool,
    terminal: Terminal,
) {
    let config = &server.config;
    terminal.line(&format!("{}  {url}", terminal.bold("toolhost")));
    if config.public_url.is_some() {
        terminal.pair("listens on", &format!("http://{address}"));
    }
    if new {
        terminal.line("");
        terminal.pair("data", &config.data_path().display().to_string());
        terminal.pair(
            "master key",
            &format!("{}  (keep a copy elsewhere)", config.key_file().display()),
        );
        if let Some(page) = installed::manual() {
            terminal.pair("manual", &page.display().to_string());
        }
    }
    let env_file = config.env_file();
    let keys = if env_file.exists() {
        env_file.display().to_string()
    } else {
        "in no file: `toolhost keys show` prints them".to_owned()
    };
    terminal.pair("keys", &keys);
    if new {
        terminal.pair("toolkits", &published_toolkits(server));
    }
    for pair in config.net.rewrite.iter() {
        terminal.note(&format!(
            "net.rewrite sends requests for {}",
            pair.replacen('=', " to ", 1)
        ));
    }
}

/// Names the published toolkits, of which many are only counted.
fn published_toolkits(server: &Server) -> String {
    let index = server.app.catalog.snapshot();
    let first = index.toolkits().take(MAX_LISTED_TOOLKITS);
    let names: Vec<_> = first.map(|toolkit| &*toolkit.slug).collect();
    let tools: usize = index
        .toolkits()
        .map(|toolkit| toolkit.current().tools.len())
        .sum();
    let more = index.toolkits().count() - names.len();
    match (names.is_empty(), more) {
        (true, _) => {
            "none: `--toolkits DIR` names a folder of components, and `toolkit publish` publishes one"
                .to_owned()
        }
        (false, 0) => format!("{} ({tools} tools)", names.join(", ")),
        (false, more) => format!("{} and {more} more ({tools} tools)", names.join(", ")),
    }
}

/// Prints commands that call the API.
pub(crate) fn print_examples(server: &Server, terminal: Terminal) {
    let index = server.app.catalog.snapshot();
    let key = r#"-H "x-api-key: $TOOLHOST_API_KEY""#;
    let api = "$TOOLHOST_URL/api/v3.1";
    let call = match index.tool("DOCUMENTS_HASH", app::catalog::LATEST) {
        Ok(_) => format!(
            r#"curl -s {api}/tools/execute/DOCUMENTS_HASH {key} -H 'content-type: application/json' -d '{{"arguments":{{"text":"hello"}}}}'"#
        ),
        Err(_) => format!("curl -s {api}/toolkits {key}"),
    };
    terminal.line("");
    terminal.line("  Commands to try:");
    for line in [
        format!(". {}", server.config.env_file().display()),
        format!("curl -s {api}/auth/session/info {key}"),
        format!(r#"curl -s "{api}/tools?limit=3" {key}"#),
        call,
    ] {
        terminal.line(&format!("    {}", terminal.dim(&line)));
    }
}
