//! Code shared by all requests: base URLs, repositories, pages, accounts, and GitHub's errors.

use std::time::Duration;

use serde::Deserializer;
use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://api.github.com")
    .headers(&[
        ("accept", "application/vnd.github+json"),
        ("x-github-api-version", "2022-11-28"),
    ])
    .errors(refusal);

/// Client for uploads of binary content.
const UPLOADS_API: Client = Client::new("https://uploads.github.com")
    .headers(&[
        ("accept", "application/vnd.github+json"),
        ("x-github-api-version", "2022-11-28"),
    ])
    .errors(refusal);

/// Max size of a string in a list, in bytes. Longer strings are cut; a request for the single
/// item returns the whole string.
const MAX_LISTED_TEXT_CHARS: usize = 1000;
/// Wait after a secondary limit without a stated duration. GitHub asks for at least a minute.
const SECONDARY_LIMIT_WAIT: Duration = Duration::from_secs(60);

/// The repository to work on.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Repo {
    /// Login of the user or organization that owns the repository: `rust-lang` in `rust-lang/rust`.
    #[schemars(length(min = 1))]
    owner: String,
    /// Name of the repository without its owner: `rust` in `rust-lang/rust`.
    #[schemars(length(min = 1))]
    repo: String,
}

impl Repo {
    /// Reads the form `OWNER/NAME`.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let (owner, repo) = text.split_once('/')?;
        (!owner.is_empty() && !repo.is_empty() && !repo.contains('/')).then(|| Self {
            owner: owner.to_owned(),
            repo: repo.to_owned(),
        })
    }

    pub(crate) fn get(&self, path: &str) -> Request {
        self.fill(API.get(&below(path)))
    }

    pub(crate) fn post(&self, path: &str) -> Request {
        self.fill(API.post(&below(path)))
    }

    pub(crate) fn upload(&self, path: &str) -> Request {
        self.fill(UPLOADS_API.post(&below(path)))
    }

    pub(crate) fn put(&self, path: &str) -> Request {
        self.fill(API.put(&below(path)))
    }

    pub(crate) fn patch(&self, path: &str) -> Request {
        self.fill(API.patch(&below(path)))
    }

    pub(crate) fn delete(&self, path: &str) -> Request {
        self.fill(API.delete(&below(path)))
    }

    fn fill(&self, request: Request) -> Request {
        request.path("owner", &self.owner).path("repo", &self.repo)
    }
}

fn below(path: &str) -> String {
    format!("/repos/{{owner}}/{{repo}}{path}")
}

/// Page of a list to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Max number of items to return.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Page to return, starting at 1; `next_page` of the previous response.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    page: u32,
}

fn thirty() -> u32 {
    30
}

fn first() -> u32 {
    1
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    /// `page` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
}

/// One page of a list with a total count.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Counted<T> {
    /// Number of items on all pages.
    total: u64,
    items: Vec<T>,
    /// `page` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
    /// True if GitHub ran out of time, so that items may be missing.
    #[serde(skip_serializing_if = "is_false")]
    incomplete: bool,
}

/// A counted list in GitHub's format, in which each list has its own name for the items.
#[derive(Deserialize)]
struct Wrapped<T> {
    total_count: u64,
    #[serde(
        alias = "workflows",
        alias = "workflow_runs",
        alias = "jobs",
        alias = "check_runs"
    )]
    items: Vec<T>,
    #[serde(default)]
    incomplete_results: bool,
}

impl<T> Page<T> {
    pub(crate) fn each(mut self, change: impl FnMut(&mut T)) -> Self {
        self.items.iter_mut().for_each(change);
        self
    }
}

impl<T> Counted<T> {
    pub(crate) fn each(mut self, change: impl FnMut(&mut T)) -> Self {
        self.items.iter_mut().for_each(change);
        self
    }
}

/// Fetches one page of a list.
pub(crate) fn list<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Page<T>> {
    let response = page(request, part)?;
    Ok(Page {
        items: response.json()?,
        next_page: next(&response, part),
    })
}

/// Fetches one page of a list with a total count.
pub(crate) fn count<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Counted<T>> {
    let response = page(request, part)?;
    let Wrapped {
        total_count: total,
        items,
        incomplete_results: incomplete,
    } = response.json()?;
    Ok(Counted {
        total,
        items,
        next_page: next(&response, part),
        incomplete,
    })
}

fn page(request: Request, part: &Part) -> Result<Response> {
    request
        .query("per_page", part.limit.clamp(1, 100))
        .query("page", part.page)
        .send()
}

fn next(response: &Response, part: &Part) -> Option<u32> {
    response.next_link().map(|_| part.page.saturating_add(1))
}

/// Confirmation of a request that returns no data.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    done: bool,
}

/// Sends a request whose response has no data.
pub(crate) fn done(request: Request) -> Result<Done> {
    request.send()?;
    Ok(Done { done: true })
}

/// A user, an organization or an app.
#[derive(Deserialize)]
struct Account {
    login: String,
}

/// Deserializes an account to its login, or to `None` for a deleted account.
pub(crate) fn login<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Account>::deserialize(json)?.map(|account| account.login))
}

/// Deserializes accounts to their logins.
pub(crate) fn logins<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    let accounts = Option::<Vec<Account>>::deserialize(json)?.unwrap_or_default();
    Ok(accounts.into_iter().map(|account| account.login).collect())
}

/// Order of a list.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// Newest or highest first.
    #[default]
    Desc,
    /// Oldest or lowest first.
    Asc,
}

/// Returns the query value of an enum variant, which is its serialized name.
pub(crate) fn word(choice: impl Serialize) -> String {
    json!(choice).as_str().unwrap_or_default().to_owned()
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Cuts a string to at most `most` bytes, at the end of a line unless that drops half of it.
/// Returns true if it was cut.
pub(crate) fn cut(mut text: String, most: usize) -> (String, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let end = text.floor_char_boundary(most);
    let line = text[..end].rfind('\n').filter(|line| *line > end / 2);
    text.truncate(line.map_or(end, |line| line + 1));
    (text, true)
}

/// Cuts a long text of an item in a list and marks the cut with `…`.
pub(crate) fn shorten(text: &mut Option<String>) {
    if let Some(long) = text.take_if(|text| text.len() > MAX_LISTED_TEXT_CHARS) {
        let (short, _) = cut(long, MAX_LISTED_TEXT_CHARS);
        *text = Some(format!("{}\n…", short.trim_end()));
    }
}

/// Body of GitHub's error responses.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Vec<Value>,
}

/// Maps GitHub's error responses. The default rules set kind, message and waiting time; this
/// function adds the details that GitHub sends elsewhere.
fn refusal(response: &Response) -> Option<ToolError> {
    if response.is_success() {
        return None;
    }
    let error = response.error();
    let said: Refusal = response.json().unwrap_or_default();
    match response.status() {
        403 | 429 if is_secondary(response, &said) => {
            let slower = format!("{}; make fewer requests at a time", error.text());
            Some(
                ToolError::rate_limited(slower)
                    .retry_after(SECONDARY_LIMIT_WAIT)
                    .upstream_status(response.status()),
            )
        }
        403 | 404 if error.kind() != "rate_limited" => {
            let message = format!("{}{}", error.text(), needs(response));
            Some(error.message(message))
        }
        // GitHub's status codes for a pull request that cannot be merged now (405) and for a diff
        // above its max size (406).
        405 => Some(ToolError::conflict(error.text()).upstream_status(405)),
        406 => Some(ToolError::invalid_input(error.text()).upstream_status(406)),
        422 if !said.errors.is_empty() => {
            let problems: Vec<String> = said.errors.iter().map(problem).collect();
            let message = format!(
                "GitHub refused it: {}: {}",
                said.message,
                problems.join("; ")
            );
            Some(error.message(message))
        }
        _ => None,
    }
}

/// Returns true for a secondary rate limit without a header that states its duration. Such a limit
/// on bursts comes with 403 or 429.
fn is_secondary(response: &Response, said: &Refusal) -> bool {
    said.message.contains("secondary rate limit")
        && response.header("retry-after").is_none()
        && response
            .header("x-ratelimit-remaining")
            .is_none_or(|left| left.trim() != "0")
}

/// Describes the permissions or scopes that the token needs, from GitHub's headers. For a 404
/// without these headers, says that the resource may be hidden from the account.
fn needs(response: &Response) -> String {
    let header = |name| {
        response
            .header(name)
            .filter(|value| !value.trim().is_empty())
    };
    if let Some(permissions) = header("x-accepted-github-permissions") {
        return format!("; the token needs the permission {permissions}");
    }
    let Some(scopes) = header("x-accepted-oauth-scopes") else {
        let hidden = "; it does not exist, or the connected account may not see it";
        return if response.status() == 404 {
            hidden.to_owned()
        } else {
            String::new()
        };
    };
    let has = header("x-oauth-scopes").unwrap_or("none");
    format!(
        "; this needs one of the scopes {scopes}, the token has {has}; GitHub also responds so if the account may not see the resource"
    )
}

/// Describes one error: a string, or
/// `{"resource": "Issue", "field": "title", "code": "missing_field"}`.
fn problem(problem: &Value) -> String {
    let text = |key: &str| problem[key].as_str();
    if let Some(text) = problem.as_str().or_else(|| text("message")) {
        return text.to_owned();
    }
    let place: Vec<&str> = ["resource", "field"].into_iter().filter_map(text).collect();
    format!(
        "{} is {}",
        place.join("."),
        text("code").unwrap_or("not valid")
    )
}
