//! Settings that all requests to one provider share.

use super::{Request, Response};
use crate::ToolError;

/// Base URL of a provider's API, and the headers and error rule of every request to it. Meant to be
/// a `const`.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    base: &'static str,
    headers: &'static [(&'static str, &'static str)],
    errors: Option<fn(&Response) -> Option<ToolError>>,
}

impl Client {
    /// Creates a client for URLs below `base`. The base may contain non-secret fields of the
    /// account: `https://{subdomain}.example.com/api`.
    #[must_use]
    pub const fn new(base: &'static str) -> Self {
        Self {
            base,
            headers: &[],
            errors: None,
        }
    }

    /// Sends these headers with every request, for example the version of the API.
    #[must_use]
    pub const fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    /// Sets a function that checks every response first, whatever its status. `Some` is the error
    /// that `send` returns; `None` leaves the response to the default rules. Meant for providers
    /// that report errors with status 200, or in a form of their own.
    #[must_use]
    pub const fn errors(mut self, errors: fn(&Response) -> Option<ToolError>) -> Self {
        self.errors = Some(errors);
        self
    }

    /// Starts a GET request to a path below the base.
    pub fn get(&self, path: &str) -> Request {
        self.request("GET", path)
    }

    /// Starts a HEAD request to a path below the base.
    pub fn head(&self, path: &str) -> Request {
        self.request("HEAD", path)
    }

    /// Starts a POST request to a path below the base.
    pub fn post(&self, path: &str) -> Request {
        self.request("POST", path)
    }

    /// Starts a PUT request to a path below the base.
    pub fn put(&self, path: &str) -> Request {
        self.request("PUT", path)
    }

    /// Starts a PATCH request to a path below the base.
    pub fn patch(&self, path: &str) -> Request {
        self.request("PATCH", path)
    }

    /// Starts a DELETE request to a path below the base.
    pub fn delete(&self, path: &str) -> Request {
        self.request("DELETE", path)
    }

    fn request(&self, method: &'static str, path: &str) -> Request {
        let mut url = String::with_capacity(self.base.len() + path.len());
        url.push_str(self.base);
        url.push_str(path);
        self.shared(Request::new(method, url))
    }

    /// Applies the settings of this client to a request with any URL.
    pub(crate) fn shared(&self, mut request: Request) -> Request {
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.errors = self.errors;
        request
    }
}
