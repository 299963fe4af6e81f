//! What all requests share: the address, how a repository is named, pages, people, and what GitHub's refusals mean.

use std::time::Duration;

use serde::Deserializer;
use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://api.github.com")
    .headers(&[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")])
    .errors(refusal);

/// Where bytes go that are no JSON.
const UPLOADS: Client = Client::new("https://uploads.github.com")
    .headers(&[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")])
    .errors(refusal);

/// Longer texts are cut in lists: an agent that wants one whole asks for it.
const LONGEST_IN_LIST: usize = 1000;
/// How long to wait after a secondary limit that does not say: GitHub asks for at least a minute.
const SECONDARY_WAIT: Duration = Duration::from_secs(60);

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
    pub(crate) fn get(&self, path: &str) -> Request {
        self.fill(API.get(&below(path)))
    }

    pub(crate) fn post(&self, path: &str) -> Request {
        self.fill(API.post(&below(path)))
    }

    pub(crate) fn upload(&self, path: &str) -> Request {
        self.fill(UPLOADS.post(&below(path)))
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

/// Which part of a list to read.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// How many to answer.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Which page of them, from 1; `next_page` of the answer before.
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

/// A part of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    /// The `page` to read on with; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
}

/// A part of a list that is counted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Counted<T> {
    /// How many there are, on all pages.
    total: u64,
    items: Vec<T>,
    /// The `page` to read on with; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
    /// GitHub ran out of time: there may be more than this.
    #[serde(skip_serializing_if = "is_false")]
    incomplete: bool,
}

/// A counted list as GitHub writes it: the items have a name of their own in each.
#[derive(Deserialize)]
struct Wrapped<T> {
    total_count: u64,
    #[serde(alias = "workflows", alias = "workflow_runs", alias = "jobs", alias = "check_runs")]
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

/// Reads a page of a list.
pub(crate) fn list<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Page<T>> {
    let response = page(request, part)?;
    Ok(Page { items: response.json()?, next_page: next(&response, part) })
}

/// Reads a page of a list that is counted.
pub(crate) fn count<T: DeserializeOwned>(request: Request, part: &Part) -> Result<Counted<T>> {
    let response = page(request, part)?;
    let Wrapped { total_count: total, items, incomplete_results: incomplete } = response.json()?;
    Ok(Counted { total, items, next_page: next(&response, part), incomplete })
}

fn page(request: Request, part: &Part) -> Result<Response> {
    request.query("per_page", part.limit.clamp(1, 100)).query("page", part.page).send()
}

fn next(response: &Response, part: &Part) -> Option<u32> {
    response.next_link().map(|_| part.page.saturating_add(1))
}

/// That it is done; there is nothing else to tell.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done {
    done: bool,
}

/// Sends a request whose answer says nothing.
pub(crate) fn done(request: Request) -> Result<Done> {
    request.send()?;
    Ok(Done { done: true })
}

/// A person, an organization or an app.
#[derive(Deserialize)]
struct Account {
    login: String,
}

/// An account, of which only the login is kept; a deleted one is missing.
pub(crate) fn login<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Account>::deserialize(json)?.map(|account| account.login))
}

/// Accounts, of which only the logins are kept.
pub(crate) fn logins<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    let accounts = Option::<Vec<Account>>::deserialize(json)?.unwrap_or_default();
    Ok(accounts.into_iter().map(|account| account.login).collect())
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    /// Newest or most first.
    #[default]
    Desc,
    /// Oldest or fewest first.
    Asc,
}

/// The word that a choice has in queries: the one agents write.
pub(crate) fn word(choice: impl Serialize) -> String {
    json!(choice).as_str().unwrap_or_default().to_owned()
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// Cuts a text to at most so many bytes, at the end of a line unless that is far away; says whether it did.
pub(crate) fn cut(mut text: String, most: usize) -> (String, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let end = text.floor_char_boundary(most);
    let line = text[..end].rfind('\n').filter(|line| *line > end / 2);
    text.truncate(line.map_or(end, |line| line + 1));
    (text, true)
}

/// Cuts a text of an item in a list; `…` says that it was.
pub(crate) fn shorten(text: &mut Option<String>) {
    if let Some(long) = text.take_if(|text| text.len() > LONGEST_IN_LIST) {
        let (short, _) = cut(long, LONGEST_IN_LIST);
        *text = Some(format!("{}\n…", short.trim_end()));
    }
}

/// What GitHub says when it refuses.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Vec<Value>,
}

/// The usual rules know kind, message and waiting time; this adds what GitHub tells elsewhere.
fn refusal(response: &Response) -> Option<ToolError> {
    if response.is_success() {
        return None;
    }
    let error = response.error();
    let said: Refusal = response.json().unwrap_or_default();
    match response.status() {
        403 | 429 if is_secondary(response, &said) => {
            let slower = format!("{}; make fewer requests at a time", error.text());
            Some(ToolError::rate_limited(slower).retry_after(SECONDARY_WAIT).upstream_status(response.status()))
        }
        403 | 404 if error.kind() != "rate_limited" => {
            let message = format!("{}{}", error.text(), needs(response));
            Some(error.message(message))
        }
        // GitHub's words for a pull request that cannot be merged now, and for a diff that is too large to be answered.
        405 => Some(ToolError::conflict(error.text()).upstream_status(405)),
        406 => Some(ToolError::invalid_input(error.text()).upstream_status(406)),
        422 if !said.errors.is_empty() => {
            let problems: Vec<String> = said.errors.iter().map(problem).collect();
            let message = format!("GitHub refused it: {}: {}", said.message, problems.join("; "));
            Some(error.message(message))
        }
        _ => None,
    }
}

/// A limit on bursts, which comes with 403 or 429 and, often, without a header that says how long it lasts.
fn is_secondary(response: &Response, said: &Refusal) -> bool {
    said.message.contains("secondary rate limit")
        && response.header("retry-after").is_none()
        && response.header("x-ratelimit-remaining").is_none_or(|left| left.trim() != "0")
}

/// What the token would need, which GitHub tells in headers; and that it hides what an account may not see.
fn needs(response: &Response) -> String {
    let header = |name| response.header(name).filter(|value| !value.trim().is_empty());
    if let Some(permissions) = header("x-accepted-github-permissions") {
        return format!("; the token needs the permission {permissions}");
    }
    let Some(scopes) = header("x-accepted-oauth-scopes") else {
        let hidden = "; it does not exist, or the connected account may not see it";
        return if response.status() == 404 { hidden.to_owned() } else { String::new() };
    };
    let has = header("x-oauth-scopes").unwrap_or("none");
    format!(
        "; this needs one of the scopes {scopes}, the token has {has}; what an account may not see looks as if it were not there"
    )
}

/// One problem of many: a text, or `{"resource": "Issue", "field": "title", "code": "missing_field"}`.
fn problem(problem: &Value) -> String {
    let text = |key: &str| problem[key].as_str();
    if let Some(text) = problem.as_str().or_else(|| text("message")) {
        return text.to_owned();
    }
    let place: Vec<&str> = ["resource", "field"].into_iter().filter_map(text).collect();
    format!("{} is {}", place.join("."), text("code").unwrap_or("not valid"))
}
