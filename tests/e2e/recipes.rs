//! Recipes of tool router sessions: storing them, executing them, and going on with a run whose server
//! is lost.

mod progress;
mod protection;
mod versions;

use futures::future::join_all;
use harness::{
    Answer, Client, Guest, Host, Postgres,
    client::Body,
    guest,
    host::{Setup, on_postgres},
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    budget::assert_refused,
    files,
    given::{self, seen},
    mcp_endpoints::{request, result},
    polling,
    tool_router_sessions::{SESSION_PATH, create},
    workbench::with_interpreter,
};

/// A session, and two tools that request their argument `url` with an account of the user.
struct Given {
    project: Client,
    session: String,
    /// A read-only tool.
    read: String,
    /// A tool that may change something.
    change: String,
}

impl Given {
    async fn new(host: &Host) -> Self {
        Self::with(host, host.new_project().await).await
    }

    async fn with(host: &Host, project: Client) -> Self {
        let mut tools = Vec::new();
        for hints in [json!({ "read_only": true }), json!({})] {
            let (toolkit, mut manifest) = given::manifest_with_key();
            manifest["tools"][0]["hints"] = hints;
            manifest["tools"][0]["input"] = json!({
                "type": "object", "properties": { "url": { "type": "string" } }, "required": ["url"],
            });
            let component = Guest::strict_fetch().component();
            host.publish(component, &manifest).await;
            project.connect_with_key(&toolkit, "amy").await;
            tools.push(guest::tool(&toolkit));
        }
        let [read, change] = tools.try_into().unwrap();
        let session = create(&project, json!({ "user_id": "amy" })).await;
        Self {
            project,
            session,
            read,
            change,
        }
    }

    async fn execute(&self, slug: &str, arguments: Value) -> Answer {
        execute(&self.project, &self.session, slug, arguments).await
    }

    async fn upsert(&self, recipe: Value) -> Answer {
        self.execute("SERVICE_UPSERT_RECIPE", recipe).await
    }

    /// Stores a recipe and returns its slug.
    async fn store(&self, steps: Value) -> String {
        let stored = self.upsert(recipe(&unique(6), steps)).await.expect(200);
        stored["data"]["slug"].as_str().unwrap().to_owned()
    }

    async fn get(&self, arguments: Value) -> Answer {
        self.execute("SERVICE_GET_RECIPE", arguments).await
    }

    /// Returns a step that requests a path of the provider.
    fn step(&self, name: &str, tool: &str, path: &str) -> Value {
        let url = format!("https://api.example.com{path}");
        json!({ "name": name, "tool_slug": tool, "arguments": { "url": url } })
    }

    async fn run(&self, id: &str) -> Value {
        let found = self.get(json!({ "run_id": id })).await.expect(200);
        found["data"]["run"].clone()
    }

    /// Returns the newest run of a recipe, with its id and its status.
    async fn newest_run(&self, slug: &str) -> Value {
        let found = self.get(json!({ "slug": slug })).await.expect(200);
        found["data"]["runs"][0].clone()
    }

    /// Waits until the newest run of a recipe has ended, and returns it.
    async fn wait_for_end(&self, slug: &str) -> Value {
        let has_ended = async || self.newest_run(slug).await["status"] != "running";
        wait_until("the run has ended", has_ended).await;
        let run = self.newest_run(slug).await;
        self.run(run["run_id"].as_str().unwrap()).await
    }
}

pub(crate) async fn execute(
    project: &Client,
    session: &str,
    slug: &str,
    arguments: Value,
) -> Answer {
    let path = format!("{SESSION_PATH}/{session}/execute");
    let body = json!({ "tool_slug": slug, "arguments": arguments });
    project.post(&path, &body).await
}

pub(crate) fn recipe(name: &str, steps: Value) -> Value {
    json!({ "name": name, "description": "Does several things.", "steps": steps })
}

/// Returns a polling trigger of `amy` whose instances report one event each.
async fn trigger(host: &Host, project: &Client) -> polling::Given {
    let toolkit = polling::toolkit(host, Guest::poll()).await;
    polling::Given::of(project.clone(), &toolkit).await
}

/// Lets an instance report its event, and returns the run of the action.
async fn fire(trigger: &polling::Given, id: &str) -> Value {
    trigger.report(id).await;
    let actions = format!("/trigger_instances/manage/{id}/actions");
    let action = async || trigger.project.get(&actions).await.expect(200)["items"][0].clone();
    let has_ended = async || !matches!(action().await["status"].as_str(), None | Some("pending"));
    wait_until("the action has ended", has_ended).await;
    action().await
}

#[tokio::test]
async fn stored_recipe_is_read_and_raised() {
    let given = Given::new(Host::shared().await).await;
    let steps = json!([given.step("one", &given.read, "/echo/a")]);
    let mut stored = recipe("Weekly report", steps.clone());
    stored["input_schema"] = json!({ "type": "object", "required": ["week"] });
    stored["output"] = json!({ "week": "{{input.week}}" });
    let first = given.upsert(stored.clone()).await.expect(200);
    assert_eq!(first["result_type"], "completed", "{first:#?}");
    let slug = first["data"]["slug"].clone();
    assert_eq!(slug, "RECIPE_WEEKLY_REPORT");
    assert_eq!(first["data"]["version"], 1);
    let second = given.upsert(stored.clone()).await.expect(200);
    assert_eq!(second["data"]["version"], 2);
    let found = given.get(json!({ "slug": slug })).await.expect(200);
    let found = &found["data"]["recipe"];
    for member in ["name", "description", "input_schema", "steps", "output"] {
        assert_eq!(found[member], stored[member], "{found:#}");
    }
    assert_eq!(found["version"], 2);
    let listed = given.get(json!({})).await.expect(200);
    assert_eq!(listed["data"]["recipes"][0]["slug"], slug);
    let misspelled = given.get(json!({ "slug": "RECIPE_WEEKLY_REPRT" })).await;
    let text = misspelled.expect(404).text;
    assert!(
        text.contains("did you mean `RECIPE_WEEKLY_REPORT`?"),
        "{text}"
    );
    let deleted = given.upsert(json!({ "slug": slug, "delete": true })).await;
    assert_eq!(deleted.expect(200)["data"]["deleted"], true);
    let refused = given.get(json!({ "slug": slug })).await;
    refused.expect_error(404, "ToolRouterV2_RecipeNotFound");
}

#[tokio::test]
async fn concurrent_recipes_show_what_they_stored() {
    let given = Given::new(Host::shared().await).await;
    let steps = json!([given.step("one", &given.read, "/echo/a")]);
    let store = async |_| {
        let stored = given.upsert(recipe("Weekly", steps.clone())).await;
        stored.expect(200)["data"]["version"].as_u64().unwrap()
    };
    let mut versions = join_all((0..8).map(store)).await;
    versions.sort_unstable();
    assert_eq!(versions, (1..=8).collect::<Vec<_>>());
}

#[tokio::test]
async fn recipes_of_other_users_are_unknown() {
    let given = Given::new(Host::shared().await).await;
    let slug = given
        .store(json!([given.step("one", &given.read, "/echo/a")]))
        .await;
    let other = create(&given.project, json!({ "user_id": "bob" })).await;
    for (tool, arguments) in [
        ("SERVICE_GET_RECIPE", json!({ "slug": slug })),
        (
            "SERVICE_UPSERT_RECIPE",
            json!({ "slug": slug, "delete": true }),
        ),
        (slug.as_str(), json!({})),
    ] {
        execute(&given.project, &other, tool, arguments)
            .await
            .expect(404);
    }
    given.get(json!({ "slug": slug })).await.expect(200);
}

#[tokio::test]
async fn schema_of_recipe_has_rules_of_toolkits() {
    let given = Given::new(Host::shared().await).await;
    let steps = json!([given.step("one", &given.read, "/echo/a")]);
    let all = json!({ "allOf": vec![json!({ "$ref": "#/$defs/1" }); 40] });
    let next = json!({ "allOf": vec![json!({ "$ref": "#/$defs/2" }); 40] });
    let heavy = (0..60).map(|number| (format!(r"^{number}\p{{L}}{{20}}"), json!(true)));
    let heavy: serde_json::Map<_, _> = heavy.collect();
    for (schema, reason) in [
        (
            json!({ "type": "object", "$ref": "#/$defs/0", "$defs": { "0": all, "1": next, "2": {} } }),
            "schemas apply to one value",
        ),
        (
            json!({ "type": "object", "patternProperties": heavy }),
            "most of it for patterns",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "pattern": "(?=a)" } } }),
            "cannot be used",
        ),
    ] {
        let mut recipe = recipe(&unique(6), steps.clone());
        recipe["input_schema"] = schema;
        let refused = given.upsert(recipe).await.expect(400);
        let problems = refused["error"]["errors"].to_string();
        assert!(problems.contains(reason), "{refused:#?}");
    }
}

#[tokio::test]
async fn wrong_recipe_is_refused_with_reasons() {
    let given = Given::new(Host::shared().await).await;
    let limited = json!({ "user_id": "amy", "tags": ["readOnlyHint"] });
    let limited = create(&given.project, limited).await;
    let refuse = async |session: &str, recipe: Value| -> String {
        let refused = execute(
            &given.project,
            session,
            "SERVICE_UPSERT_RECIPE",
            recipe.clone(),
        );
        let refused = refused.await;
        assert_eq!(refused.status, 400, "{recipe}: {refused:#?}");
        refused["error"]["errors"].to_string()
    };
    let step = |arguments: Value| {
        let mut step = given.step("one", &given.read, "");
        step["arguments"] = arguments;
        json!([step])
    };
    for (steps, reason) in [
        (json!([]), "1 to 50 steps"),
        (
            json!([{ "name": "one", "tool_slug": "NO_SUCH_TOOL" }]),
            "NO_SUCH_TOOL",
        ),
        (
            json!([{ "name": "one", "tool_slug": "SERVICE_GET_RECIPE" }]),
            "cannot be a step",
        ),
        (
            json!([{ "name": "one", "tool_slug": "RECIPE_B" }]),
            "cannot be a step",
        ),
        (json!([{ "name": "one" }]), "must have one of"),
        (step(json!({})), "url"),
        (step(json!({ "url": 7 })), "url"),
        (step(json!({ "url": "{{steps.two.data}}" })), "earlier step"),
        (
            step(json!({ "url": "{{input.url}}", "x": "{{ event.data }}" })),
            "no placeholder",
        ),
    ] {
        let reasons = refuse(&given.session, recipe("A", steps)).await;
        assert!(reasons.contains(reason), "{reason}: {reasons}");
    }
    let large = step(json!({ "url": "x".repeat(64 << 10) }));
    let reasons = refuse(&given.session, recipe("A", large)).await;
    assert!(reasons.contains("65536 bytes"), "{reasons}");
    let many: Vec<_> = (0..=50)
        .map(|index| given.step(&format!("s{index}"), &given.read, "/echo/a"))
        .collect();
    let reasons = refuse(&given.session, recipe("A", json!(many))).await;
    assert!(reasons.contains("1 to 50 steps"), "{reasons}");
    given
        .upsert(recipe("A", json!(many[1..])))
        .await
        .expect(200);
    let nested = |depth: usize| {
        let steps = json!([given.step("last", &given.read, "/echo/a")]);
        (0..depth).fold(
            steps,
            |steps, index| json!([{ "name": format!("g{index}"), "steps": steps }]),
        )
    };
    given.upsert(recipe("A", nested(3))).await.expect(200);
    let reasons = refuse(&given.session, recipe("A", nested(4))).await;
    assert!(reasons.contains("nested"), "{reasons}");
    let change = json!([given.step("one", &given.change, "/echo/a")]);
    let reasons = refuse(&limited, recipe("A", change)).await;
    assert!(reasons.contains("does not permit tool"), "{reasons}");
    let mut wrong = recipe("A", step(json!({ "url": "{{input.url}}" })));
    wrong["slug"] = json!("SERVICE_GET_RECIPE");
    refuse(&given.session, wrong.clone()).await;
    wrong["slug"] = json!(format!("RECIPE_{}", "A".repeat(58)));
    refuse(&given.session, wrong.clone()).await;
    wrong["slug"] = json!(format!("RECIPE_{}", "A".repeat(57)));
    given.upsert(wrong.clone()).await.expect(200);
    wrong["input_schema"] = json!({ "type": "object", "properties": 7 });
    let reasons = refuse(&given.session, wrong).await;
    assert!(reasons.contains("input_schema"), "{reasons}");
}

#[tokio::test]
async fn constant_files_of_steps_are_checked() {
    let host = Host::shared().await;
    let given = Given::new(host).await;
    let slug = files::copier(host).await;
    let key = files::uploaded(&given.project, &slug, b"text").await;
    let other = host.new_project().await;
    let foreign = files::uploaded(&other, &slug, b"text").await;
    let file = |key: &str| json!({ "name": "note.txt", "mimetype": "text/plain", "s3key": key });
    let upsert = async |file: Value| {
        let step = json!({ "name": "one", "tool_slug": guest::tool(&slug), "arguments": { "file": file } });
        given.upsert(recipe("A", json!([step]))).await
    };
    for accepted in [file(&key), file("{{input.key}}"), json!("")] {
        upsert(accepted).await.expect(200);
    }
    let nameless = json!({ "mimetype": "text/plain", "s3key": key });
    for refused in [file(&foreign), nameless, json!(7)] {
        let answer = upsert(refused.clone()).await.expect(400);
        let reasons = answer["error"]["errors"].to_string();
        assert!(
            reasons.contains("steps[0].arguments: "),
            "{refused}: {reasons}"
        );
    }
}

#[tokio::test]
async fn steps_pass_values_and_loop_over_lists() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let url = "https://api.example.com";
    let fetch = |url: String| json!({ "url": url });
    let steps = json!([
        { "name": "first", "tool_slug": given.read, "arguments": fetch(format!("{url}/list/{tag}?page={{{{input.page}}}}")) },
        {
            "name": "each", "for_each": "{{steps.first.data.items}}", "tool_slug": given.read,
            "if": { "less": ["{{item}}", 21] },
            "arguments": fetch(format!("{url}/echo/{tag}/{{{{item}}}}")),
        },
        {
            "name": "skipped", "if": { "equals": ["{{input.page}}", 3] }, "tool_slug": given.change,
            "arguments": fetch(format!("{url}/echo/{tag}/skipped")),
        },
        {
            "name": "group", "for_each": ["x", "y"], "steps": [
                { "name": "inner", "tool_slug": given.read, "arguments": fetch(format!("{url}/echo/{tag}/{{{{item}}}}")) },
            ],
        },
    ]);
    let mut stored = recipe(&unique(6), steps);
    let properties = json!({ "page": { "type": "integer" } });
    stored["input_schema"] =
        json!({ "type": "object", "properties": properties, "required": ["page"] });
    stored["output"] = json!({
        "items": "{{steps.first.data.items}}", "path": "{{steps.each.data.0.path}}", "none": "{{steps.each.data.1}}",
        "skipped": "{{steps.skipped.skipped}}", "inner": "{{steps.group.data.1.inner.path}}",
    });
    let stored = given.upsert(stored).await.expect(200);
    let slug = stored["data"]["slug"].as_str().unwrap();
    let refused = given.execute(slug, json!({ "page": "two" })).await;
    refused.expect_error(400, "ToolRouterV2_RecipeInputInvalid");
    let ran = given.execute(slug, json!({ "page": 2 })).await.expect(200);
    assert_eq!(ran["error"], Value::Null, "{ran:#?}");
    let data = &ran["data"];
    let output = json!({
        "items": [20, 21], "path": format!("/echo/{tag}/20"), "none": null, "skipped": true,
        "inner": format!("/echo/{tag}/y"),
    });
    assert_eq!(data["output"], output, "{ran:#?}");
    let steps: Vec<_> = data["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["step"])
        .collect();
    assert_eq!(
        steps,
        ["first", "each[0]", "group[0].inner", "group[1].inner"]
    );
    assert_eq!(seen(&tag), 4);
    for log in [&ran["log_id"], &data["steps"][1]["log_id"]] {
        let log = given.project.log(log).await;
        assert!(log.text.contains(&given.session), "{log:#?}");
    }
    let run = given.run(data["run_id"].as_str().unwrap()).await;
    assert_eq!(&run, data);
}

#[tokio::test]
async fn script_is_a_step_of_a_recipe() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let code = format!(
        "path = recipe['steps']['first']['data']['path']\nrun_tool('{}', {{'url': 'https://api.example.com' + path}})\nlen(path) + recipe['input']['more']",
        given.change
    );
    let first = given.step("first", &given.read, &format!("/echo/{tag}"));
    let slug = given
        .store(json!([first, { "name": "last", "script": code }]))
        .await;
    given.execute(&slug, json!({ "more": 1 })).await.expect(200);
    // The first script of a server waits until the interpreter is compiled.
    let run = given.wait_for_end(&slug).await;
    assert_eq!(run["error"], Value::Null, "{run:#}");
    let length = format!("/echo/{tag}").len() + 1;
    assert_eq!(run["output"]["results"], json!(length.to_string()));
    assert_eq!(seen(&tag), 2);
    let without = json!({ "user_id": "amy", "workbench": { "enable": false } });
    let without = create(&given.project, without).await;
    let script = recipe("A", json!([{ "name": "one", "script": "1" }]));
    let refused = execute(&given.project, &without, "SERVICE_UPSERT_RECIPE", script).await;
    given::assert_contains(&refused.expect(400)["error"]["errors"], "no workbench");
}

/// The database says that another server has claimed the run while the script waits for its tool.
#[tokio::test]
async fn script_that_lost_its_turn_is_not_repeated() {
    let setup = if on_postgres() {
        with_interpreter().await
    } else {
        Setup::embedded().on(Postgres::shared().database(None))
    };
    let setup = setup.with_application(&["api.example.com"], Host::application());
    let host = setup.start().await;
    let given = Given::with(&host, host.as_project()).await;
    // The first script of a server waits until the interpreter is compiled or loaded.
    let first = json!({ "code_to_execute": "1" });
    let ran = given.execute("SERVICE_REMOTE_WORKBENCH", first).await;
    ran.expect(200);
    let tag = unique(8);
    let url = format!("https://api.example.com/hangonce/{tag}");
    let code = format!("run_tool('{}', {{'url': '{url}'}})", given.change);
    let slug = given
        .store(json!([{ "name": "one", "script": code }]))
        .await;
    let lose_turn = async {
        wait_until("the tool of the script hangs", async || seen(&tag) == 1).await;
        let database = host.setup().database();
        database.say("update session_turns set revision = revision + 1");
    };
    let (ran, ()) = tokio::join!(given.execute(&slug, json!({})), lose_turn);
    let ran = ran.expect(200);
    given::assert_contains(&ran["error"], "outcome_unknown");
    assert_eq!(seen(&tag), 1);
}

#[tokio::test]
async fn runs_past_a_projects_quota_are_refused() {
    let setup = given::with_application().with("limits.records_mib", "2");
    let host = setup.start().await;
    let (given, neighbor) = (Given::new(&host).await, Given::new(&host).await);
    // The recipe and its output count.
    let filler = "x".repeat(40 << 10);
    let mut stored = recipe("Large", json!([given.step("one", &given.read, "/echo/a")]));
    stored["output"] = json!({ "filler": filler });
    given.upsert(stored.clone()).await.expect(200);
    let mut ran = Vec::new();
    let refused = loop {
        let answer = given.execute("RECIPE_LARGE", json!({})).await;
        if answer.status != 200 {
            break answer;
        }
        assert_eq!(answer["data"]["output"]["filler"], json!(filler));
        ran.push(answer);
        assert!(ran.len() < 30, "each run keeps more than 80 KiB of 1 MiB");
    };
    let slug = "ToolRouterV2_RecipeRunsFull";
    assert_refused(
        "Runs of recipes of one project in a day",
        &refused,
        507,
        slug,
    );
    // What is kept of a run shows the same as its end.
    let id = ran[0]["data"]["run_id"].as_str().unwrap();
    let kept = given.run(id).await;
    assert_eq!(kept, ran[0]["data"]);
    assert_eq!(kept["steps"][0]["status"], "succeeded", "{kept:#}");
    assert!(kept["steps"][0]["log_id"].is_string(), "{kept:#}");
    let step = neighbor.step("one", &neighbor.read, "/echo/b");
    let slug = neighbor.store(json!([step])).await;
    let ran = neighbor.execute(&slug, json!({})).await.expect(200);
    assert_eq!(ran["error"], Value::Null, "{ran:#?}");
}

#[tokio::test]
async fn failed_step_ends_the_recipe() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let path = |end: &str| format!("/status/{tag}{end}");
    let mut failing = given.step("failing", &given.change, &path("/500"));
    let last = given.step("last", &given.read, &format!("/echo/{tag}"));
    let slug = given.store(json!([failing, last])).await;
    let ran = given.execute(&slug, json!({})).await.expect(200);
    given::assert_contains(&ran["error"], "step `failing`: upstream_error");
    assert_eq!(ran["result_type"], "failed");
    assert_eq!(ran["data"]["status"], "failed");
    assert_eq!(seen(&tag), 1);
    failing["continue_on_error"] = json!(true);
    let last = json!({
        "name": "last", "tool_slug": given.read, "if": { "exists": "{{steps.failing.error}}" },
        "arguments": { "url": format!("https://api.example.com/echo/{tag}") },
    });
    let slug = given.store(json!([failing, last])).await;
    let ran = given.execute(&slug, json!({})).await.expect(200);
    assert_eq!(ran["error"], Value::Null, "{ran:#?}");
    assert_eq!(ran["data"]["steps"][0]["status"], "failed");
    assert_eq!(seen(&tag), 3);
}

#[tokio::test]
async fn scope_of_session_limits_its_recipes() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let slug = given
        .store(json!([given.step(
            "one",
            &given.change,
            &format!("/echo/{tag}")
        )]))
        .await;
    let limited = json!({ "user_id": "amy", "tags": ["readOnlyHint"] });
    let limited = create(&given.project, limited).await;
    let ran = execute(&given.project, &limited, &slug, json!({}))
        .await
        .expect(200);
    given::assert_contains(&ran["error"], "does not permit tool");
    assert_eq!(seen(&tag), 0);
    let several = json!({
        "tools": [{ "tool_slug": slug, "arguments": {} }], "sync_response_to_workbench": false,
    });
    let ran = given
        .execute("SERVICE_MULTI_EXECUTE_TOOL", several)
        .await
        .expect(200);
    let response = &ran["data"]["results"][0]["response"];
    assert_eq!(response["successful"], true, "{ran:#?}");
    assert_eq!(response["data"]["status"], "succeeded");
    assert_eq!(seen(&tag), 1);
}

#[tokio::test]
async fn recipes_past_the_limit_are_refused() {
    let given = Given::new(Host::shared().await).await;
    let steps = json!([given.step("one", &given.read, "/echo/a")]);
    for number in 0..100 {
        let stored = recipe(&format!("number {number}"), steps.clone());
        given.upsert(stored).await.expect(200);
    }
    let refused = given.upsert(recipe("one more", steps.clone())).await;
    refused.expect_error(422, "ToolRouterV2_TooManyRecipes");
    given.upsert(recipe("number 7", steps)).await.expect(200);
}

#[tokio::test]
async fn runs_past_a_limit_fail() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let looped = |name: &str, count: usize| {
        let mut step = given.step(name, &given.read, &format!("/echo/{tag}"));
        step["for_each"] = json!("{{input.items}}");
        step["if"] = json!({ "less": ["{{item}}", count] });
        step
    };
    // Its steps are skipped, so that no call counts.
    let nested =
        json!([{ "name": "outer", "for_each": "{{input.items}}", "steps": [looped("inner", 0)] }]);
    let big = |name: &str| given.step(name, &given.read, &format!("/big/{tag}/2200000"));
    let items = |count: usize| json!({ "items": (0..count).collect::<Vec<_>>() });
    for (steps, input, reason) in [
        (json!([looped("a", 1)]), items(101), "101 items"),
        (
            json!([looped("a", 100), looped("b", 100), looped("c", 51)]),
            items(100),
            "250 calls",
        ),
        (nested.clone(), items(100), "10000 items"),
        (json!([big("a"), big("b")]), items(0), "4194304 bytes"),
    ] {
        let slug = given.store(steps).await;
        let ran = given.execute(&slug, input).await.expect(200);
        given::assert_contains(&ran["error"], reason);
    }
    for (steps, count) in [
        (
            json!([looped("a", 100), looped("b", 100), looped("c", 50)]),
            100,
        ),
        (nested, 99),
        (json!([big("a")]), 100),
    ] {
        let slug = given.store(steps).await;
        let ran = given.execute(&slug, items(count)).await.expect(200);
        assert_eq!(ran["error"], Value::Null, "{}", ran["error"]);
    }
}

#[tokio::test]
async fn runs_past_the_limit_are_refused() {
    let host = given::with_application().start().await;
    let given = Given::with(&host, host.as_project()).await;
    // A request that hangs reaches its timeout; so many last longer than the test.
    let hanging = (0..50).map(|number| {
        let mut step = given.step(&format!("s{number}"), &given.read, "/hang/a");
        step["continue_on_error"] = json!(true);
        step
    });
    let slug = given.store(hanging.collect()).await;
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let before = given.newest_run(&slug).await;
        let (project, session) = (given.project.clone(), given.session.clone());
        let called = slug.clone();
        calls.spawn(async move { execute(&project, &session, &called, json!({})).await });
        let has_begun = async || given.newest_run(&slug).await != before;
        wait_until("the run has begun", has_begun).await;
    }
    let refused = given.execute(&slug, json!({})).await;
    refused.expect_error(429, "ToolRouterV2_TooManyRecipeRuns");
}

#[tokio::test]
async fn assistants_see_recipes_as_prompts() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let url = format!("https://api.example.com/echo/{tag}/{{{{input.week}}}}");
    let step = json!({ "name": "one", "tool_slug": given.read, "arguments": { "url": url } });
    let mut stored = recipe("Weekly report", json!([step]));
    let week = json!({ "type": "integer", "description": "Number of the week." });
    stored["input_schema"] =
        json!({ "type": "object", "properties": { "week": week }, "required": ["week"] });
    given.upsert(stored).await.expect(200);
    let path = format!("{SESSION_PATH}/{}", given.session);
    let session = given.project.get(&path).await.expect(200);
    let url = session["mcp"]["url"].as_str().unwrap();
    let key = [("x-api-key", given.project.key())];
    let send = async |method: &str, params: Value| {
        result(&request(&given.project, url, method, params, &key).await)
    };
    let listed = send("prompts/list", json!({})).await;
    let slug = "RECIPE_WEEKLY_REPORT";
    let argument =
        json!({ "name": "week", "description": "Number of the week.", "required": true });
    assert_eq!(
        listed["prompts"],
        json!([{
            "name": slug, "title": "Weekly report", "description": "Does several things.",
            "arguments": [argument],
        }])
    );
    let named = json!({ "name": slug, "arguments": { "week": "7" } });
    let got = send("prompts/get", named.clone()).await;
    let text = got["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("SERVICE_MULTI_EXECUTE_TOOL"), "{text}");
    assert!(
        text.contains(slug) && text.contains(r#"{"week":7}"#),
        "{text}"
    );
    // The name is that of another session, and may read like an instruction.
    assert!(!text.contains("Weekly report"), "{text}");
    let call = json!({ "name": slug, "arguments": { "week": 7 } });
    let called = send("tools/call", call).await;
    assert_eq!(
        called["structuredContent"]["status"], "succeeded",
        "{called:#}"
    );
    assert_eq!(
        Host::application().seen(&tag)[0].path,
        format!("/echo/{tag}/7")
    );
    let unknown = json!({ "name": "RECIPE_OTHER" });
    let unknown = request(&given.project, url, "prompts/get", unknown, &key).await;
    let unknown = unknown.text();
    assert!(unknown.contains("-32602"), "{unknown}");
    let without = json!({ "execute": { "enable_multi_execute": false } });
    given.project.patch(&path, &without).await.expect(200);
    let got = send("prompts/get", named).await;
    let text = got["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(!text.contains("SERVICE_MULTI_EXECUTE_TOOL"), "{text}");
    assert!(text.contains(&format!("call the tool {slug}")), "{text}");
}

#[tokio::test]
async fn trigger_runs_recipe_for_its_event() {
    let host = Host::shared().await;
    let given = Given::new(host).await;
    let trigger = trigger(host, &given.project).await;
    let tag = unique(8);
    let url = format!("https://api.example.com/echo/{tag}/{{{{input.method}}}}");
    let step = |name: &str, tool: &str| json!({ "name": name, "tool_slug": tool, "arguments": { "url": url } });
    let slug = given
        .store(json!([
            step("one", &given.read),
            step("two", &given.change)
        ]))
        .await;
    let upsert = async |action: Value| {
        let path = format!("/echo/{}", unique(8));
        trigger.upsert(&path, json!({ "action": action })).await
    };
    for refused in [
        json!({ "tool_slug": "RECIPE_NO_SUCH" }),
        json!({ "tool_slug": slug, "user_id": "bob" }),
    ] {
        upsert(refused).await.expect(404);
    }
    for refused in [
        json!({ "tool_slug": slug, "connected_account_id": trigger.account }),
        json!({ "tool_slug": slug, "version": "20260101_00" }),
    ] {
        upsert(refused).await.expect(400);
    }
    let arguments = json!({ "method": "{{event.data.method}}" });
    let made = upsert(json!({ "tool_slug": slug, "arguments": arguments }))
        .await
        .expect(201);
    let id = made["trigger_id"].as_str().unwrap();
    let action = fire(&trigger, id).await;
    assert_eq!(action["status"], "succeeded", "{action:#}");
    assert_eq!(action["attempt_count"], 1, "{action:#}");
    assert_eq!(seen(&tag), 2);
    assert_eq!(
        Host::application().seen(&tag)[0].path,
        format!("/echo/{tag}/GET")
    );
    let log = given.project.log(&action["log_id"]).await;
    assert!(log.text.contains(id), "{log:#?}");
    assert_eq!(given.wait_for_end(&slug).await["status"], "succeeded");
}

/// A server is killed while a step runs, for each step of a recipe.
#[tokio::test]
async fn kill_at_any_step_repeats_no_effect() {
    const STEP_KINDS: [&str; 4] = ["change", "read", "change", "read"];
    let mut host = given::with_application().start().await;
    let mut given = Given::with(&host, host.as_project()).await;
    let mut runs = Vec::new();
    for hung in 0..STEP_KINDS.len() {
        let tags: Vec<_> = STEP_KINDS.iter().map(|_| unique(8)).collect();
        let steps = STEP_KINDS.iter().zip(&tags).enumerate();
        let steps: Vec<_> = steps
            .map(|(index, (kind, tag))| {
                let tool = if *kind == "read" {
                    &given.read
                } else {
                    &given.change
                };
                let behavior = if index == hung { "hangonce" } else { "echo" };
                given.step(&format!("s{index}"), tool, &format!("/{behavior}/{tag}"))
            })
            .collect();
        runs.push((given.store(json!(steps)).await, tags));
    }
    let mut calls = JoinSet::new();
    for (slug, _) in &runs {
        let body = Body::Json(json!({ "tool_slug": slug, "arguments": {} }));
        let path = format!("{SESSION_PATH}/{}/execute", given.session);
        let project = given.project.clone();
        calls.spawn(async move {
            let sent = project.try_send(Method::POST, &path, body, &[]).await;
            sent.is_ok()
        });
    }
    wait_until("each recipe hangs in its step", async || {
        runs.iter()
            .enumerate()
            .all(|(hung, (_, tags))| seen(&tags[hung]) == 1)
    })
    .await;
    host = host.kill().start().await;
    while let Some(answered) = calls.join_next().await {
        assert!(!answered.unwrap(), "the caller got no response");
    }
    given.project = host.as_project();
    for (hung, (slug, tags)) in runs.iter().enumerate() {
        let run = given.wait_for_end(slug).await;
        let unknown = run["error"].to_string().contains("outcome_unknown");
        let (status, calls) = match STEP_KINDS[hung] {
            "change" => ("failed", hung + 1),
            _ => ("succeeded", STEP_KINDS.len()),
        };
        assert_eq!(run["status"], json!(status), "{run:#}");
        assert_eq!(unknown, status == "failed", "{run:#}");
        assert_eq!(run["steps"].as_array().unwrap().len(), calls, "{run:#}");
        for (index, tag) in tags.iter().enumerate() {
            let requests = match STEP_KINDS[hung] {
                "read" if index == hung => 2,
                "change" if index > hung => 0,
                _ => 1,
            };
            assert_eq!(seen(tag), requests, "step {index} of {run:#}");
        }
    }
}
