//! A certified identity provider in a process of its own: OpenID Connect with registration, code
//! challenges, rotation and revocation.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
    sync::Mutex,
};

use reqwest::{Method, Url, header};
use tempfile::NamedTempFile;

use crate::{
    client::plain_http,
    host::{Process, read, spawn},
    wait_until,
};

/// Issuer identifier of the provider. The server under test must redirect this address to the
/// provider.
pub const ISSUER_URL: &str = "https://login.example.com";
/// Largest number of pages that a user passes through.
const MAX_PAGES: usize = 20;

/// A running provider. Dropping it kills the process.
#[derive(Debug)]
pub struct IdentityProvider {
    pub(crate) origin: String,
    /// Cookies of the only browser.
    cookies: Mutex<BTreeMap<String, String>>,
    _process: Process,
}

/// A response of the provider.
struct Page {
    status: u16,
    location: Option<String>,
    text: String,
}

impl IdentityProvider {
    /// Starts a provider without clients and users.
    pub async fn start() -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let parts = tests.join("../target/parts/node");
        assert!(
            parts.is_dir(),
            "the identity provider is missing: `tests/setup` fetches it"
        );
        let output = NamedTempFile::new().expect("a temporary file can be made");
        let mut command = Command::new("node");
        command
            .arg(tests.join("node/provider.mjs"))
            .arg(&parts)
            .arg(ISSUER_URL)
            .stdin(Stdio::null());
        command
            .stdout(
                output
                    .as_file()
                    .try_clone()
                    .expect("a file can be opened twice"),
            )
            .stderr(Stdio::null());
        let process = Process(spawn(command));
        let listens = || {
            read(&output)
                .lines()
                .find(|line| line.starts_with("http://"))
                .map(str::to_owned)
        };
        wait_until("the identity provider listens", || async {
            listens().is_some()
        })
        .await;
        let origin = listens().expect("it has said so");
        Self {
            origin,
            cookies: Mutex::default(),
            _process: process,
        }
    }

    /// Passes through the pages as a user who signs in as `person` and agrees. Returns the address
    /// to which the browser is redirected at the end.
    ///
    /// # Panics
    /// If the pages do not lead to a redirect.
    pub async fn sign_in_and_consent(&self, url: &str, person: &str) -> String {
        let mut page = self.browse(Method::GET, url, None).await;
        for _ in 0..MAX_PAGES {
            page = match page.location {
                Some(to) if to.starts_with(ISSUER_URL) => self.browse(Method::GET, &to, None).await,
                Some(to) if to.starts_with('/') => {
                    self.browse(Method::GET, &format!("{ISSUER_URL}{to}"), None)
                        .await
                }
                Some(to) => return to,
                None => {
                    assert_eq!(page.status, 200, "{}", page.text);
                    let value = |before: &str| {
                        page.text
                            .split_once(before)?
                            .1
                            .split_once('"')
                            .map(|(value, _)| value)
                    };
                    let to = value("action=\"").expect("the page has a form").to_owned();
                    let prompt =
                        value("name=\"prompt\" value=\"").expect("the form says what it asks");
                    let form = format!("prompt={prompt}&login={person}&password=any");
                    self.browse(Method::POST, &to, Some(form)).await
                }
            };
        }
        panic!("{url} leads through more than {MAX_PAGES} pages");
    }

    /// Returns the user of an access token, or `None` if the token is not valid.
    pub async fn owner(&self, access_token: &str) -> Option<String> {
        let request = http()
            .get(format!("{}/me", self.origin))
            .bearer_auth(access_token);
        let answer = request.send().await.expect("the provider answers");
        let known: serde_json::Value = answer.json().await.unwrap_or_default();
        known["sub"].as_str().map(str::to_owned)
    }

    /// Expires an access token. Its refresh token stays valid.
    ///
    /// # Panics
    /// If the provider does not know the token.
    pub async fn end(&self, access_token: &str) {
        let answer = http()
            .get(format!("{}/end/{access_token}", self.origin))
            .send()
            .await;
        assert_eq!(answer.expect("the provider answers").status(), 200);
    }

    async fn browse(&self, method: Method, url: &str, form: Option<String>) -> Page {
        let own = Url::parse(url).expect("an address of the provider");
        assert!(
            url.starts_with(ISSUER_URL),
            "{url} is none of the provider's"
        );
        let query = own
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let mut request = http().request(method, format!("{}{}{query}", self.origin, own.path()));
        let cookies: Vec<_> = self
            .cookies
            .lock()
            .expect("no panic holds it")
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        request = request.header(header::COOKIE, cookies.join("; "));
        if let Some(form) = form {
            request = request
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form);
        }
        let answer = request.send().await.expect("the provider answers");
        for cookie in answer.headers().get_all(header::SET_COOKIE) {
            let pair = cookie
                .to_str()
                .unwrap_or_default()
                .split(';')
                .next()
                .unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies
                    .lock()
                    .expect("no panic holds it")
                    .insert(name.to_owned(), value.to_owned());
            }
        }
        let location = answer
            .headers()
            .get(header::LOCATION)
            .and_then(|to| to.to_str().ok())
            .map(str::to_owned);
        Page {
            status: answer.status().as_u16(),
            location,
            text: answer.text().await.unwrap_or_default(),
        }
    }
}

fn http() -> reqwest::Client {
    let client = plain_http().redirect(reqwest::redirect::Policy::none());
    client.build().expect("a client can be made")
}
