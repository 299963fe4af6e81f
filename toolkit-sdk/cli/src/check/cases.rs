//! Runs case files through the component.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use manifest::{
    ACCESS_TOKEN, AuthScheme, EgressRule, Manifest,
    cases::{Case, Ended, GivenFile, NOW},
};
use net::Origin;
use sandbox::{Clock, File, Inbound, Limits, Outcome};
use serde_json::Value;
use url::Url;

use super::{
    Ran,
    case::{CaseFile, Subject},
    compare::Background,
    upstream::Upstream,
};
use crate::{
    account::{self, Account, Values},
    host::{self, Entry, Given, Host},
    outcome, progress, schema,
};

/// How long a case waits for an answer that its script never gives.
const NO_ANSWER: Duration = Duration::from_millis(250);

/// Runs the cases one after the other.
pub(super) async fn run(manifest: &Manifest, component: Bytes, files: &[CaseFile<'_>]) -> Result<Vec<Ran>> {
    let upstream = Upstream::start(origins(manifest, files)).await?;
    let clock = Arc::new(AtomicU64::new(NOW));
    let network = host::network(upstream.rewrites(), Vec::new());
    let host = Host::open(component, network, Clock::Set(clock.clone())).await?;
    let counter = progress::counter(&format!("{}: cases", manifest.slug), files.len());
    let mut ran = Vec::new();
    for file in files {
        clock.store(file.case.now.unwrap_or(NOW), Ordering::Relaxed);
        let problems = run_case(&host, &upstream, file).await?;
        ran.push(Ran { case: file.name.clone(), passed: problems.is_empty(), problems });
        counter.step();
    }
    Ok(ran)
}

/// Every origin that a request may go to: those of the cases, and the declared ones, so that a request that no case expects
/// does not reach a real application.
fn origins(manifest: &Manifest, files: &[CaseFile<'_>]) -> BTreeSet<String> {
    let exchanges = files.iter().flat_map(|file| &file.case.exchanges);
    let scripted = exchanges.filter_map(|exchange| Origin::of(&Url::parse(&exchange.request.url).ok()?));
    let tools = manifest.tools.iter().filter_map(|tool| tool.egress.as_ref());
    let triggers = manifest.triggers.iter().filter_map(|trigger| trigger.egress.as_ref());
    let rules = manifest.egress.iter().chain(tools.flatten()).chain(triggers.flatten());
    scripted.map(|origin| origin.to_string()).chain(rules.filter_map(declared)).collect()
}

fn declared(rule: &EgressRule) -> Option<String> {
    let url = format!("https://{}:{}", rule.host, rule.port.unwrap_or(443));
    // A pattern is no origin: what lies below it is known from the cases alone.
    if rule.host.contains('*') { None } else { url.parse::<Origin>().ok().map(|origin| origin.to_string()) }
}

/// Runs one case and says what differs.
async fn run_case(host: &Host, upstream: &Upstream, file: &CaseFile<'_>) -> Result<Vec<String>> {
    let manifest = &host.installed.manifest;
    let case = &file.case;
    let account = dummy_account(&manifest.auth, file.subject, case);
    let background = Background { placements: account.placements.clone(), files: case.files.clone() };
    upstream.begin(&case.exchanges, background);
    let given = Given {
        account,
        run_id: "log_test".to_owned(),
        user_id: String::new(),
        files: case.files.iter().map(given_file).collect(),
        limits: Some(impatient),
    };
    let outcome = host.call(entry(manifest, file.subject, case), given).await?;
    let mut problems = upstream.end();
    problems.extend(compare_answer(file.subject, case, &outcome));
    if !problems.is_empty() {
        problems.extend(hints(&outcome));
    }
    Ok(problems)
}

fn entry(manifest: &Manifest, subject: Subject<'_>, case: &Case) -> Entry {
    let arguments: Bytes = case.arguments.to_string().into();
    match subject {
        Subject::Tool(tool) => Entry::tool(manifest, tool, arguments),
        Subject::Trigger(trigger) => match &case.request {
            Some(request) => {
                let (headers, body) = request.parts();
                let (method, path) = (request.method.clone(), request.path.clone());
                let inbound = Inbound { method, path, headers, body: body.into() };
                Entry::receive(manifest, trigger, arguments, inbound)
            }
            None => {
                let cursor = case.cursor.as_ref().map(|cursor| cursor.to_string().into()).unwrap_or_default();
                Entry::poll(manifest, trigger, arguments, cursor)
            }
        },
    }
}

fn given_file(file: &GivenFile) -> File {
    File {
        id: file.id.clone(),
        name: file.name.clone(),
        media_type: file.mimetype.clone(),
        bytes: file.text.clone().into(),
    }
}

/// The account of a case: its own fields, and made-up values for the rest.
fn dummy_account(schemes: &[AuthScheme], subject: Subject<'_>, case: &Case) -> Account {
    let anonymous = matches!(subject, Subject::Tool(tool) if tool.no_auth);
    let scheme = account::schemes(schemes).next().filter(|_| !anonymous);
    let mut account = scheme.map(|scheme| Account::of(scheme, &dummy_values(scheme, case))).unwrap_or_default();
    let known: Vec<_> = account.fields.iter().map(|(name, _)| name.clone()).collect();
    let more = case.fields.iter().filter(|(name, _)| !known.contains(name));
    account.fields.extend(more.map(|(name, value)| (name.clone(), value.clone())));
    account
}

fn dummy_values(scheme: &AuthScheme, case: &Case) -> Values {
    let value = |field: &manifest::Field| {
        let made_up = (field.secret || !field.optional).then(|| format!("case-{}", field.name));
        case.fields.get(&field.name).cloned().or_else(|| field.default.clone()).or(made_up)
    };
    let filled_in = scheme.fields.iter().filter_map(|field| Some((field.name.clone(), value(field)?)));
    let granted = scheme.oauth2.as_ref().map(|_| (ACCESS_TOKEN.to_owned(), format!("case-{ACCESS_TOKEN}")));
    filled_in.chain(granted).collect()
}

fn impatient(limits: Limits) -> Limits {
    Limits { first_byte: NO_ANSWER, ..limits }
}

fn compare_answer(subject: Subject<'_>, case: &Case, outcome: &Outcome) -> Vec<String> {
    match &outcome.answer {
        Ok(answer) => {
            let mut actual = outcome::answer(answer);
            name_files(&mut actual, &outcome.files);
            let differs = case.judge(Ended::Data(&actual));
            let expected = case.data.is_some();
            differs
                .into_iter()
                .chain(expected.then(|| schema_problems(subject, case, &actual)).into_iter().flatten())
                .collect()
        }
        // What the platform says about an exchange that failed is its own affair: the scripted host and the sandbox use
        // different words.
        Err(failure) if is_broken(case) && case.error.as_ref().is_some_and(|error| error.kind == failure.kind) => {
            Vec::new()
        }
        Err(failure) => {
            let ended = Ended::Error { kind: &failure.kind, message: &failure.message };
            case.judge(ended).into_iter().collect()
        }
    }
}

fn is_broken(case: &Case) -> bool {
    case.exchanges.iter().any(|exchange| exchange.response.error.is_some())
}

/// What a server would refuse before the call, or warn about after it.
fn schema_problems(subject: Subject<'_>, case: &Case, data: &Value) -> Vec<String> {
    let (input, output) = match subject {
        Subject::Tool(tool) => (&tool.input, Some(&tool.output)),
        Subject::Trigger(trigger) => (&trigger.config, None),
    };
    let against = |schema: &Value, value: &Value, what: &str| {
        // A schema that is none was reported with the manifest.
        let problems = schema::compile(schema).map(|validator| schema::problems(&validator, value)).unwrap_or_default();
        problems.into_iter().map(|problem| format!("{what}: {problem}")).collect::<Vec<_>>()
    };
    let mut problems = against(input, &case.arguments, "the arguments do not fit the schema");
    problems.extend(output.map(|output| against(output, data, "the data does not fit the schema")).unwrap_or_default());
    problems
}

/// Gives files that the call made the names that the scripted host gives them: `file_1`, `file_2`.
fn name_files(value: &mut Value, files: &[File]) {
    match value {
        Value::String(text) => {
            if let Some(index) = files.iter().position(|file| file.id == *text) {
                *text = format!("file_{}", index + 1);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_files(item, files)),
        Value::Object(members) => members.values_mut().for_each(|member| name_files(member, files)),
        _ => {}
    }
}

/// What helps to understand a failure.
fn hints(outcome: &Outcome) -> Vec<String> {
    let requests = outcome
        .requests
        .iter()
        .filter_map(|request| Some(format!("{} {}: {}", request.method, request.url, request.error.as_ref()?)));
    let log = outcome.log.iter().map(|line| format!("log, {}: {}", line.level, line.message));
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

    fn ended(answer: std::result::Result<sandbox::Answer, sandbox::Failure>) -> Outcome {
        Outcome {
            answer,
            requests: Vec::new(),
            log: Vec::new(),
            usage: sandbox::Usage::default(),
            files: vec![File { id: "blob-77".into(), name: "n".into(), media_type: "m".into(), bytes: Bytes::new() }],
            state: std::collections::BTreeMap::new(),
        }
    }

    fn data(json: &'static str) -> Outcome {
        ended(Ok(sandbox::Answer::Data(Bytes::from_static(json.as_bytes()))))
    }

    fn failed(kind: &str, message: &str) -> Outcome {
        ended(Err(sandbox::Failure {
            cause: sandbox::Cause::Tool,
            kind: kind.to_owned(),
            message: message.to_owned(),
            retry_after: None,
            upstream_status: None,
            details: None,
        }))
    }

    #[test]
    fn data_is_compared_exactly_but_for_order_and_names_of_files() {
        let tool = tool();
        let problems = |given: Value, outcome: &Outcome| compare_answer(Subject::Tool(&tool), &case(given), outcome);
        let answered = data(r#"{"b":2,"a":{"s3url":"blob-77"}}"#);
        assert!(problems(json!({ "data": { "a": { "s3url": "file_1" }, "b": 2 } }), &answered).is_empty());
        let differs = problems(json!({ "data": { "b": 3, "a": { "s3url": "file_1" } } }), &answered);
        assert!(differs[0].contains("-   \"b\": 3") && differs[0].contains("+   \"b\": 2"), "{differs:?}");
    }

    #[test]
    fn a_failure_is_compared_by_kind_and_by_a_part_of_its_message() {
        let tool = tool();
        let problems = |given: Value, outcome: &Outcome| compare_answer(Subject::Tool(&tool), &case(given), outcome);
        let outcome = failed("not_found", "there is no item 7");
        assert!(problems(json!({ "error": { "kind": "not_found" } }), &outcome).is_empty());
        assert!(problems(json!({ "error": { "kind": "not_found", "message": "item 7" } }), &outcome).is_empty());
        assert_eq!(problems(json!({ "error": { "kind": "not_found", "message": "item 8" } }), &outcome).len(), 1);
        assert_eq!(problems(json!({ "error": { "kind": "forbidden" } }), &outcome).len(), 1);
        assert_eq!(problems(json!({ "data": {} }), &outcome).len(), 1);
        assert_eq!(problems(json!({ "error": { "kind": "not_found" } }), &data("{}")).len(), 1);
        let request = json!({ "method": "GET", "url": "https://a.example/" });
        let broken = json!([{ "request": request, "response": { "error": "timeout" } }]);
        let given = json!({ "exchanges": broken, "error": { "kind": "not_found", "message": "scripted: timeout" } });
        assert!(problems(given, &outcome).is_empty(), "the platform's own words do not count");
    }

    #[test]
    fn a_success_must_fit_both_schemas() {
        let tool = tool();
        let given = case(json!({ "arguments": { "name": 1 }, "data": [] }));
        let problems = compare_answer(Subject::Tool(&tool), &given, &data("[]"));
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn a_case_runs_with_made_up_secrets_and_its_own_open_fields() {
        let field = |name: &str, secret: bool, optional: bool| Field {
            name: name.to_owned(),
            title: String::new(),
            description: String::new(),
            secret,
            optional,
            default: None,
            pattern: None,
        };
        let scheme = AuthScheme {
            mode: AuthMode::ApiKey,
            name: String::new(),
            fields: vec![field("api_key", true, false), field("site", false, false), field("team", false, true)],
            request: vec![Placement::Header { name: "x-key".to_owned(), value: "{api_key}".to_owned() }],
            base_url: None,
            verify: None,
            oauth2: None,
        };
        let given = case(json!({ "fields": { "site": "north", "extra": "e" }, "data": {} }));
        let mut tool = tool();
        let account = dummy_account(std::slice::from_ref(&scheme), Subject::Tool(&tool), &given);
        let header = Placement::Header { name: "x-key".to_owned(), value: "case-api_key".to_owned() };
        assert_eq!(account.placements, [header]);
        assert_eq!(account.fields, [("site".into(), "north".into()), ("extra".into(), "e".into())]);
        tool.no_auth = true;
        assert!(dummy_account(&[scheme], Subject::Tool(&tool), &given).grant.is_none());
    }
}
