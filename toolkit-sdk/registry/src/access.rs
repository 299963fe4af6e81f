//! Access to a registry: credentials and transport security.

use std::net::{IpAddr, Ipv6Addr};

use anyhow::{Result, bail};
use clap::Args;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

/// Options for the access to a registry.
#[derive(Debug, Clone, Default, Args)]
pub struct Access {
    /// User name at the registry [default: the one stored by `docker login`].
    #[arg(long, env = "OCI_USERNAME", requires = "password", value_name = "NAME")]
    username: Option<String>,
    /// Password or token for that name.
    #[arg(
        long,
        env = "OCI_PASSWORD",
        requires = "username",
        hide_env_values = true
    )]
    password: Option<String>,
    /// Connect without TLS. A registry on this machine is always accessed without it.
    #[arg(long)]
    plain_http: bool,
}

impl Access {
    /// Returns true if the registry is accessed without TLS.
    pub(crate) fn plain(&self, registry: &str) -> bool {
        self.plain_http || is_loopback(registry)
    }

    /// Returns the credentials from flags or environment, otherwise from `~/.docker/config.json`
    /// and its helpers, otherwise anonymous access.
    ///
    /// # Errors
    /// An error if stored credentials for the registry cannot be used.
    pub(crate) fn credentials(&self, registry: &str) -> Result<RegistryAuth> {
        if let (Some(name), Some(password)) = (&self.username, &self.password) {
            return Ok(RegistryAuth::Basic(name.clone(), password.clone()));
        }
        match docker_credential::get_credential(registry) {
            Ok(DockerCredential::UsernamePassword(name, password)) => {
                Ok(RegistryAuth::Basic(name, password))
            }
            Ok(DockerCredential::IdentityToken(_)) => bail!(
                "the stored login of `docker login` for {registry} is an identity token, which is not supported; give --username and --password"
            ),
            Err(
                CredentialRetrievalError::ConfigNotFound
                | CredentialRetrievalError::ConfigReadError
                | CredentialRetrievalError::NoCredentialConfigured,
            ) => Ok(RegistryAuth::Anonymous),
            Err(cause) => {
                bail!("the stored login of `docker login` for {registry} cannot be used: {cause}")
            }
        }
    }
}

fn is_loopback(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let address = host.parse::<IpAddr>().or_else(|_| {
        host.trim_matches(['[', ']'])
            .parse::<Ipv6Addr>()
            .map(IpAddr::V6)
    });
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_skips_tls_by_default() {
        for here in ["localhost", "localhost:5000", "127.0.0.1:5000", "127.9.9.9"] {
            assert!(is_loopback(here), "{here}");
        }
        for there in [
            "registry.example",
            "localhost.example:80",
            "10.0.0.1:5000",
            "127.0.0.1.example",
        ] {
            assert!(!is_loopback(there), "{there}");
            assert!(
                Access {
                    plain_http: true,
                    ..Access::default()
                }
                .plain(there)
            );
        }
    }
}
