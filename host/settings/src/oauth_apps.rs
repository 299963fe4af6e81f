//! `oauth_apps.SLUG.*`: OAuth apps of the operator at providers.

use app::accounts::oauth_apps::NewOauthApp;

use super::{
    Config,
    problems::Problems,
    setting::settings,
    values::{List, Secret},
};

settings! {
    /// OAuth apps of the operator at providers; `SLUG` is a toolkit. They replace those of
    /// `toolhost oauth-apps` at each start. Set them if projects have no clients of their own.
    pub struct OauthApp {
        /// Client id that the provider issued.
        #[setting(unset = "required", example = "client-id")] pub client_id: String,
        /// Client secret that the provider issued; left out for a client without one.
        #[setting(example = "secret")] pub client_secret: Option<Secret>,
        /// Scopes requested for every connection, in addition to those of the toolkit.
        #[setting(example = ["read"])] pub scopes: List,
    }
}

impl Config {
    pub(super) fn check_oauth_apps(&self, problems: &mut Problems) {
        for (slug, app) in &self.oauth_apps {
            problems.unless(
                !app.client_id.is_empty(),
                &format!("oauth_apps.{slug}.client_id"),
                "is missing: set the id that the provider issued",
            );
        }
    }

    /// Returns the OAuth apps of the operator at providers.
    pub fn oauth_apps(&self) -> impl Iterator<Item = NewOauthApp> {
        self.oauth_apps.iter().map(|(slug, app)| {
            let secret = app.client_secret.as_ref();
            NewOauthApp {
                toolkit: slug.to_lowercase(),
                client_id: app.client_id.clone(),
                client_secret: secret
                    .map(|secret| secret.expose().to_string())
                    .unwrap_or_default(),
                scopes: app.scopes.to_vec(),
            }
        })
    }
}
