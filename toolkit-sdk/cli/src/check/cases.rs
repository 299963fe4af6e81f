//! Runs case files through the component.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use manifest::{
    AuthScheme, EgressRule, Manifest,
    cases::{Case, DEFAULT_TIME_MS},
};
use net::Origin;
use sandbox::{Clock, Inbound, Limits, Outcome};
use serde_json::Value;
use url::Url;

use super::{
    CaseReport,
    case::{CaseFile, Subject},
    compare::CompareContext,
    observed::{CorrectedFile, ObservedResult},
    upstream::{self, Upstream},
};
use crate::{
    account::{self, Account},
    host::{self, CallInput, Entry, Host},
    progress, schema,
};

/// Timeout of a case for a response that its script never sends.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the cases sequentially. With `bless`, files whose expectations differ from the result are
/// rewritten.
pub(super) async fn run(
    manifest: &Manifest,
    component: Bytes,
    files: Vec<CaseFile<'_>>,
    bless: bool,
) -> Result<Vec<CaseReport>> {
    let upstream = Upstream::start(origins(manifest, &files)).await?;
    let clock = Arc::new(AtomicU64::new(DEFAULT_TIME_MS));
    let network = host::network(upstream.rewrites(), Vec::new());
    let runner = CaseRunner {
        host: Host::open(component, network, Clock::Set(clock.clone())).await?,
        upstream,
        clock,
    };
    let counter = progress::counter(&format!("{}: cases", manifest.slug), files.len());
    let mut ran = Vec::new();
    for mut file in files {
        let mut result = runner.run(&file).await?;
        let corrected = result
            .corrected
            .take_if(|_| bless && result.problems.is_empty());
        let blessed = match corrected {
            Some(CorrectedFile { text, difference }) => {
                fs::write(&file.file, &text)
                    .with_context(|| format!("cannot write {}", file.file.display()))?;
                file.case = Case::from_json(&text)
                    .map_err(|cause| anyhow!("{}: {cause}", file.file.display()))?;
                result = runner.run(&file).await?;
                Some(difference)
            }
            None => None,
        };
        ran.push(result.ran(file.name, blessed));
        counter.step();
    }
    Ok(ran)
}

/// Environment in which cases run.
struct CaseRunner {
    host: Host,
    upstream: Upstream,
    clock: Arc<AtomicU64>,
}

/// Result of one run of a case.
struct RunResult {
    corrected: Option<CorrectedFile>,
    /// Problems that cannot be fixed by rewriting the file.
    problems: Vec<String>,
    hints: Vec<String>,
}

impl RunResult {
    fn ran(self, case: String, blessed: Option<String>) -> CaseReport {
        let mut problems: Vec<_> = self
            .corrected
            .map(|file| format!("it differs (- expected, + observed):\n{}", file.difference))
            .into_iter()
            .chain(self.problems)
            .collect();
        let passed = problems.is_empty();
        problems.extend(self.hints.into_iter().filter(|_| !passed));
        CaseReport {
            case,
            passed,
            blessed,
            problems,
        }
    }
}

/// Returns all origins that a request may be sent to: those of the cases and the declared ones. The
/// latter ensure that an unexpected request does not reach a real provider.
fn origins(manifest: &Manifest, files: &[CaseFile<'_>]) -> BTreeSet<String> {
    let exchanges = files.iter().flat_map(|file| &file.case.exchanges);
    let scripted =
        exchanges.filter_map(|exchange| Origin::from_url(&Url::parse(&exchange.request.url).ok()?));
    let tools = manifest
        .tools
        .iter()
        .filter_map(|tool| tool.egress.as_ref());
    let triggers = manifest
        .triggers
        .iter()
        .filter_map(|trigger| trigger.egress.as_ref());
    let rules = manifest
        .egress
        .iter()
        .chain(tools.flatten())
        .chain(triggers.flatten());
    scripted
        .map(|origin| origin.to_string())
        .chain(rules.filter_map(declared))
        .collect()
}

fn declared(rule: &EgressRule) -> Option<String> {
    let url = format!("https://{}:{}", rule.host, rule.port.unwrap_or(443));
    // A pattern is not an origin. Origins that match a pattern are known only from the cases.
    if rule.host.contains('*') {
        None
    } else {
        url.parse::<Origin>().ok().map(|origin| origin.to_string())
    }
}

impl CaseRunner {
    /// Runs one case.
    async fn run(&self, file: &CaseFile<'_>) -> Result<RunResult> {
        let manifest = &self.host.installed.manifest;
        let case = &file.case;
        self.clock
            .store(case.now.unwrap_or(DEFAULT_TIME_MS), Ordering::Relaxed);
        let account = dummy_account(&manifest.auth, file.subject, case);
        let context = CompareContext {
            placements: account.placements.clone(),
            files: case.files.clone(),
        };
        self.upstream.begin(&case.exchanges, context);
        let input = CallInput {
            account,
            run_id: "log_test".to_owned(),
            user_id: String::new(),
            files: case.files.iter().map(host::given_file).collect(),
            // All other cases keep the default timeout: a slow machine is not a failure of the
            // component.
            limits: case
                .exchanges
                .iter()
                .any(upstream::hangs)
                .then_some(impatient),
        };
        let outcome = self
            .host
            .call(entry(manifest, file.subject, case), input)
            .await?;
        let observed = ObservedResult::new(self.upstream.end(), &outcome);
        let mut problems = observed.unanswered();
        problems.extend(observed.unexpected_failure(case));
        if let Some(data) = observed.data() {
            problems.extend(schema_problems(file.subject, case, data));
        }
        Ok(RunResult {
            corrected: observed.corrected(file)?,
            problems,
            hints: hints(&outcome),
        })
    }
}

fn entry(manifest: &Manifest, subject: Subject<'_>, case: &Case) -> Entry {
    let arguments: Bytes = case.arguments.to_string().into();
    match subject {
        Subject::Tool(tool) => Entry::tool(manifest, tool, arguments),
        Subject::Trigger(trigger) => match (&case.subscription, &case.request) {
            (Some(subscription), _) => {
                let call = serde_json::json!(subscription.call(&case.arguments));
                Entry::subscription(manifest, trigger, call.to_string().into())
            }
            (None, Some(request)) => {
                let (headers, body) = request.parts();
                let inbound = Inbound {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    headers,
                    body: body.into(),
                };
                Entry::receive(manifest, trigger, arguments, inbound)
            }
            (None, None) => {
                let cursor = case
                    .cursor
                    .as_ref()
                    .map(|cursor| cursor.to_string().into())
                    .unwrap_or_default();
                Entry::poll(manifest, trigger, arguments, cursor)
            }
        },
    }
}

/// Builds the account of a case from its own fields, and generated values for all others.
fn dummy_account(schemes: &[AuthScheme], subject: Subject<'_>, case: &Case) -> Account {
    let anonymous = matches!(subject, Subject::Tool(tool) if tool.no_auth);
    let scheme = account::schemes(schemes).next().filter(|_| !anonymous);
    let mut account = scheme
        .map(|scheme| Account::new(scheme, &case.account_values(scheme)))
        .unwrap_or_default();
    let known: Vec<_> = account
        .fields
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    let more = case.fields.iter().filter(|(name, _)| !known.contains(name));
    account
        .fields
        .extend(more.map(|(name, value)| (name.clone(), value.clone())));
    account
}

fn impatient(limits: Limits) -> Limits {
    Limits {
        first_byte: RESPONSE_TIMEOUT,
        ..limits
    }
}

/// Reports arguments that a server would reject, and data about which it would warn.
fn schema_problems(subject: Subject<'_>, case: &Case, data: &Value) -> Vec<String> {
    let (input, output) = match subject {
        Subject::Tool(tool) => (&tool.input, (!tool.loose_output).then_some(&tool.output)),
        Subject::Trigger(trigger) => (&trigger.config, None),
    };
    let what = "the arguments do not match the input schema";
    let mut problems = mismatches(input, &case.arguments, what);
    if let Some(output) = output {
        let what = "the data does not match the output schema";
        problems.extend(mismatches(output, data, what));
    }
    problems
}

/// Reports differences between a value and a schema. Invalid schemas are reported together with the
/// manifest.
fn mismatches(schema: &Value, value: &Value, what: &str) -> Vec<String> {
    schema::compile(schema)
        .map(|validator| schema::problems(&validator, value))
        .unwrap_or_default()
        .into_iter()
        .map(|problem| format!("{what}: {problem}"))
        .collect()
}

/// Returns details that help to understand a failure.
fn hints(outcome: &Outcome) -> Vec<String> {
    let requests = outcome.requests.iter().filter_map(|request| {
        Some(format!(
            "{} {}: {}",
            request.method,
            request.url,
            request.error.as_ref()?
        ))
    });
    let log = outcome
        .log
        .iter()
        .map(|line| format!("log, {}: {}", line.level, line.message));
    requests.chain(log).collect()
}

#[cfg(test)]
mod tests {
    use manifest::{AuthMode, Field, Placement};
    use serde_json::json;

    use super::*;

    fn case(value: Value) -> Case {
        serde_json::from_value(value).unwrap()
    }

    fn tool() -> manifest::Tool {
        serde_json::from_value(json!({
            "slug": "HELLO_GREET", "name": "n", "description": "d",
            "input": { "type": "object", "properties": { "name": { "type": "string" } } },
            "output": { "type": "object" },
        }))
        .unwrap()
    }

    #[test]
    fn a_success_must_fit_both_schemas() {
        let tool = tool();
        let given = case(json!({ "arguments": { "name": 1 }, "data": [] }));
        let problems = schema_problems(Subject::Tool(&tool), &given, &json!([]));
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn case_account_uses_generated_secrets() {
        let team = Field {
            optional: true,
            ..Field::new("team", "", false)
        };
        let scheme = AuthScheme {
            mode: AuthMode::ApiKey,
            name: String::new(),
            fields: vec![
                Field::new("api_key", "", true),
                Field::new("site", "", false),
                team,
            ],
            request: vec![Placement::header("x-key", "{api_key}")],
            ..AuthScheme::default()
        };
        let given = case(json!({ "fields": { "site": "north", "extra": "e" }, "data": {} }));
        let mut tool = tool();
        let account = dummy_account(std::slice::from_ref(&scheme), Subject::Tool(&tool), &given);
        let header = Placement::header("x-key", "case-api_key");
        assert_eq!(account.placements, [header]);
        assert_eq!(
            account.fields,
            [
                ("site".into(), "north".into()),
                ("extra".into(), "e".into())
            ]
        );
        tool.no_auth = true;
        assert!(
            dummy_account(&[scheme], Subject::Tool(&tool), &given)
                .grant
                .is_none()
        );
    }
}
