//! A certified identity provider in a process of its own: OpenID Connect with registration, code
//! challenges, rotation and revocation.

use std::{collections::BTreeMap, process::Command};

use parking_lot::Mutex;
use reqwest::{Method, header};

use crate::{
    client::{RawResponse, http},
    fetched,
    process::{Process, read, tests},
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

impl IdentityProvider {
    /// Starts a provider without clients and users.
    pub async fn start() -> Self {
        let mut command = Command::new("node");
        command
            .arg(tests("node/provider.mjs"))
            .arg(fetched("parts/node"))
            .arg(ISSUER_URL);
        let (process, output) = Process::logged(command);
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
    pub async fn sign_in_and_consent(&self, url: &str, person: &str) -> String {
        let mut page = self.browse(Method::GET, url, None).await;
        for _ in 0..MAX_PAGES {
            let (to, text) = (page.header("location"), page.text());
            page = if to.starts_with(ISSUER_URL) {
                self.browse(Method::GET, to, None).await
            } else if to.starts_with('/') {
                let to = format!("{ISSUER_URL}{to}");
                self.browse(Method::GET, &to, None).await
            } else if !to.is_empty() {
                return to.to_owned();
            } else {
                assert_eq!(page.status, 200, "{text}");
                let value = |before: &str| {
                    let (_, rest) = text.split_once(before)?;
                    rest.split_once('"').map(|(value, _)| value)
                };
                let to = value("action=\"").expect("the page has a form");
                let prompt = value("name=\"prompt\" value=\"").expect("the form says what it asks");
                let form = format!("prompt={prompt}&login={person}&password=any");
                self.browse(Method::POST, to, Some(form)).await
            };
        }
        panic!("{url} leads through more than {MAX_PAGES} pages");
    }

    /// Returns the user of an access token, or `None` if the token is not valid.
    pub async fn owner(&self, access_token: &str) -> Option<String> {
        let request = http()
            .get(format!("{}/me", self.origin))
            .bearer_auth(access_token);
        let answer = RawResponse::receive(request).await;
        let known: serde_json::Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        known["sub"].as_str().map(str::to_owned)
    }

    /// Expires an access token. Its refresh token stays valid.
    pub async fn end(&self, access_token: &str) {
        let request = http().get(format!("{}/end/{access_token}", self.origin));
        assert_eq!(RawResponse::receive(request).await.status, 200);
    }

    async fn browse(&self, method: Method, url: &str, form: Option<String>) -> RawResponse {
        let own = url.strip_prefix(ISSUER_URL);
        let own = own.unwrap_or_else(|| panic!("{url} is none of the provider's"));
        let mut request = http().request(method, format!("{}{own}", self.origin));
        let cookies: Vec<_> = {
            let cookies = self.cookies.lock();
            let pairs = cookies.iter();
            pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect()
        };
        request = request.header(header::COOKIE, cookies.join("; "));
        if let Some(form) = form {
            request = request
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form);
        }
        let page = RawResponse::receive(request).await;
        for cookie in page.headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap_or_default();
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                let mut cookies = self.cookies.lock();
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        page
    }
}
