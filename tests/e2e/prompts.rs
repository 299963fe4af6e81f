//! Arguments from a prompt by a language model, which is a small endpoint of the fake provider.

use harness::{
    Answer, Client, FakeApp, Guest, Host, client::Body, fake_app::ReceivedRequest, guest,
    host::Setup,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{approvals::assert_nothing_ran, given};

const MODEL_KEY: &str = harness::marked!("llm-key-");

/// Starts a server with this model. Returns it with a project, the tag of the model's requests, and
/// a tool that requires a number.
async fn with_model(setup: Setup, answers: &[&str]) -> (Host, Client, String, String) {
    let tag = harness::unique(6);
    let setup = setup
        .with("llm.base_url", Host::application().model(&tag, answers))
        .with("llm.model", "small-one")
        .with("llm.key", MODEL_KEY)
        .with("llm.headers", "x-team,authorization-of-gateway");
    let host = setup.start().await;
    let (slug, mut manifest) = given::manifest();
    manifest["tools"][0]["input"] = json!({
        "type": "object", "properties": { "count": { "type": "integer", "minimum": 1 } }, "required": ["count"],
    });
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.as_project().with_newer_prefix();
    (host, project, tag, guest::tool(&slug))
}

fn asked(application: &FakeApp, tag: &str) -> Vec<(ReceivedRequest, Value)> {
    let all = application.seen(tag).into_iter();
    all.map(|seen| (seen.clone(), serde_json::from_slice(&seen.body).unwrap()))
        .collect()
}

async fn say(project: &Client, tool: &str, text: &str, headers: &[(&str, &str)]) -> Answer {
    let body = Body::Json(json!({ "text": text, "user_id": "default" }));
    let path = format!("/tools/execute/{tool}");
    project.send(Method::POST, &path, body, headers).await
}

#[tokio::test]
async fn prompt_becomes_valid_arguments() {
    let (_host, project, tag, tool) = with_model(Setup::new(), &[r#"{"count": 3}"#]).await;
    let team = harness::secret();
    let gateway =
        json!({ "X-Team": team, "x-other": 7, "authorization": "Bearer mine" }).to_string();
    let headers = [("x-llm-gateway-headers", &*gateway)];
    let answer = say(&project, &tool, "three of them, please", &headers).await;
    let id = answer["log_id"].clone();
    assert_eq!(answer.data(), json!({ "count": 3 }));
    let asked = asked(Host::application(), &tag);
    let [(seen, body)] = &asked[..] else {
        panic!("one question is enough: {asked:?}")
    };
    assert!(seen.path.ends_with("/chat/completions"), "{}", seen.path);
    assert_eq!(
        seen.header("authorization"),
        format!("Bearer {MODEL_KEY}").as_str()
    );
    assert_eq!(seen.header("x-team"), &*team);
    assert_eq!(
        seen.header("x-other"),
        "",
        "what the operator does not list stays here"
    );
    assert_eq!(body["model"], "small-one");
    assert_eq!(body["messages"][1]["content"], "three of them, please");
    let form = &body["response_format"]["json_schema"];
    assert_eq!(form["name"], tool);
    assert_eq!(form["schema"]["required"], json!(["count"]));
    assert!(body["max_tokens"].as_u64() > Some(0), "{body}");
    let log = project.log(&id).await;
    let took = json!({ "model": "small-one", "prompt_tokens": 11, "completion_tokens": 7 });
    assert_eq!(log["metrics"]["language_model"], took);
    assert_eq!(log["data"]["arguments"], json!({ "count": 3 }));
    let malformed = [("x-llm-gateway-headers", "{")];
    say(&project, &tool, "x", &malformed).await.expect(400);
}

#[tokio::test]
async fn refused_call_does_not_reach_the_model() {
    let (host, project, tag, _) = with_model(Setup::new(), &["{}"]).await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::echo(), &slug).await;
    let refused = say(&project, &guest::tool(&slug), "go", &[]).await;
    assert_eq!(refused.expect(404)["error"]["code"], 1810);
    assert!(asked(Host::application(), &tag).is_empty());
}

#[tokio::test]
async fn model_output_may_be_corrected_once() {
    let (_host, project, tag, tool) =
        with_model(Setup::new(), &["three!", r#"{"count": 3}"#]).await;
    let answer = say(&project, &tool, "three of them", &[]).await;
    let id = answer["log_id"].clone();
    assert_eq!(answer.data(), json!({ "count": 3 }));
    let asked = asked(Host::application(), &tag);
    let again = asked[1].1["messages"].as_array().unwrap();
    assert_eq!((asked.len(), &again[2]["content"]), (2, &"three!".into()));
    given::assert_contains(&again[3]["content"], "is not JSON");
    let metrics = &project.log(&id).await["metrics"]["language_model"];
    assert_eq!(metrics["prompt_tokens"], 22, "both rounds are counted");
}

#[tokio::test]
async fn uncorrected_model_output_is_quoted_and_refused() {
    let (_host, project, tag, tool) = with_model(Setup::new(), &[r#"{"count": 0}"#]).await;
    let refused = say(&project, &tool, "none of them", &[]).await.expect(422);
    assert_eq!(refused["error"]["slug"], "ActionExecute_TextNotUnderstood");
    given::assert_contains(&refused["error"]["message"], r#"{"count": 0}"#);
    assert!(refused.problems()[0].starts_with("count: "), "{refused:#?}");
    assert_eq!(asked(Host::application(), &tag).len(), 2);
    assert_nothing_ran(&project).await;
    say(&project, "NO_SUCH_TOOL", "x", &[]).await.expect(404);
    assert_eq!(asked(Host::application(), &tag).len(), 2);
}

#[tokio::test]
async fn arguments_alone_are_made_without_running_anything() {
    let (_host, project, tag, tool) = with_model(Setup::new(), &[r#"{"count": 5}"#]).await;
    let path = format!("/tools/execute/{tool}/input");
    let body = json!({ "text": "five", "custom_description": "Counts sheep.", "system_prompt": "Be terse." });
    let made = project.post(&path, &body).await.expect(200);
    assert_eq!(made.json, json!({ "arguments": { "count": 5 } }));
    let (_, question) = &asked(Host::application(), &tag)[0];
    let system = question["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.starts_with("Be terse.") && system.contains("Counts sheep."),
        "{system}"
    );
    assert_nothing_ran(&project).await;
    for wrong in [
        json!({}),
        json!({ "text": " " }),
        json!({ "text": "x".repeat(16_385) }),
    ] {
        project.post(&path, &wrong).await.expect(400);
    }
    let path = "/tools/execute/NO_SUCH_TOOL/input";
    let missing = project.post(path, &json!({ "text": "five" })).await;
    missing.expect(404);
}

#[tokio::test]
async fn model_failure_is_reported_without_its_key() {
    let application = Host::application().origin.as_str();
    for (origin, behaviour, timeout, why) in [
        (application, "status/{}/500", "30", "status 500"),
        (application, "echo/{}", "30", "chat completion"),
        (application, "hang/{}", "1", "within 1 s"),
        ("http://127.0.0.1:9", "nobody", "30", "does not respond"),
    ] {
        let tag = harness::unique(6);
        let base = format!("{origin}/{}", behaviour.replace("{}", &tag));
        let setup = Setup::new()
            .with("llm.base_url", base)
            .with("llm.model", "m")
            .with("llm.key", MODEL_KEY);
        let host = setup.with("llm.timeout_s", timeout).start().await;
        let tool = given::echo(&host).await;
        let project = host.as_project().with_newer_prefix();
        let answer = say(&project, &tool, "hello", &[]).await.expect(502);
        assert!(answer.text.contains(why), "{behaviour}: {answer:#?}");
        assert!(
            !answer.text.contains(MODEL_KEY) && !host.output().contains(MODEL_KEY),
            "{behaviour}"
        );
        assert!(!answer.text.contains("127.0.0.1"), "{answer:#?}");
    }
}

#[tokio::test]
async fn missing_model_setting_is_named() {
    let project = Host::shared().await.new_project().await.with_newer_prefix();
    let tool = given::shared_echo().await;
    let path = format!("/tools/execute/{tool}/input");
    let input = project.post(&path, &json!({ "text": "do it" })).await;
    for answer in [say(&project, tool, "do it", &[]).await, input] {
        let answer = answer.expect(501);
        for (field, named) in [
            ("message", "`text` is a prompt"),
            ("suggested_fix", "in `arguments`"),
            ("suggested_fix", "llm.base_url"),
        ] {
            let text = answer["error"][field].as_str().unwrap();
            assert!(text.contains(named), "{answer:#?}");
        }
    }
}
