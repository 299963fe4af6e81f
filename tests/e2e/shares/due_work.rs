//! Background work that is due: while eight projects use all of their shares, the work of one more
//! starts.

use std::cell::RefCell;

use futures::future::join_all;
use harness::{
    Client, Guest, HookProvider, Host, Inbox, Issuer, guest,
    inbox::{INBOX_ORIGIN, Reply},
    unique, wait_for, wait_until,
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::{HOSTILE_COUNT, PLACE_DEADLINE, hostile_projects};
use crate::{
    given::{self, Oauth, seen},
    polling,
    recipes::{execute, recipe},
    renewals::connect,
    tool_router_sessions::create,
    webhook_subscribing::{self, GITHUB_TRIGGER},
};

/// Waits until the work of the newcomer has started, although that of others hangs.
async fn assert_begins(begun: impl Fn() -> bool) {
    wait_for(PLACE_DEADLINE, "the newcomer's work begins", async || {
        begun()
    })
    .await;
}

/// Lets one project start more work than the `cap` that it may hold, and the others more than their
/// `base`. Waits until all of it hangs that they may hold.
async fn fill<P>(
    hostile: &[P],
    (base, cap): (usize, usize),
    begin: impl AsyncFn(&P),
    hanging: impl Fn() -> usize,
) {
    let (greedy, others) = hostile.split_first().unwrap();
    join_all((0..=cap).map(|_| begin(greedy))).await;
    wait_until("one project holds all that it may", async || {
        hanging() >= cap
    })
    .await;
    let others_begin = others
        .iter()
        .flat_map(|other| (0..=base).map(move |_| other));
    join_all(others_begin.map(|other| begin(other))).await;
    wait_until("the others hold all that they may", async || {
        hanging() >= cap + base * (HOSTILE_COUNT - 1)
    })
    .await;
}

/// Connects accounts of a polling toolkit in hostile projects, and in one more.
async fn polled(host: &Host, toolkit: &str) -> (Vec<polling::Given>, polling::Given) {
    let mut hostile = Vec::new();
    for project in hostile_projects(host).await {
        hostile.push(polling::Given::of(project, toolkit).await);
    }
    let newcomer = polling::Given::of(host.new_project().await, toolkit).await;
    (hostile, newcomer)
}

/// Publishes a tool that fetches its argument `url` without an account.
async fn fetch(host: &Host) -> String {
    let (slug, mut manifest) = given::manifest();
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["tools"][0]["no_auth"] = json!(true);
    host.publish(Guest::fetch().component(), &manifest).await;
    guest::tool(&slug)
}

fn call(tool: &str, path: &str) -> Value {
    let url = format!("https://api.example.com{path}");
    json!({ "tool_slug": tool, "arguments": { "url": url } })
}

#[tokio::test]
async fn newcomer_is_polled_while_others_hold_all() {
    const MOST_POLLS: usize = 16;
    let host = given::with_application().start().await;
    let toolkit = polling::toolkit(&host, Guest::poll()).await;
    let (hostile, newcomer) = polled(&host, &toolkit).await;
    let (quick, hangs, served) = (unique(8), unique(8), unique(8));
    let instance = async |given: &polling::Given, kind: &str, tag: &str| {
        given
            .instance(&format!("/{kind}/{tag}/{}", unique(8)))
            .await;
    };
    // The share of a project grows with the polls that succeed.
    join_all((0..MOST_POLLS).map(|_| instance(&hostile[0], "echo", &quick))).await;
    wait_until("polls succeed", async || seen(&quick) >= MOST_POLLS).await;
    let hang = async |given: &polling::Given| instance(given, "hang", &hangs).await;
    fill(&hostile, (1, MOST_POLLS), hang, || seen(&hangs)).await;
    instance(&newcomer, "echo", &served).await;
    assert_begins(|| seen(&served) > 0).await;
}

#[tokio::test]
async fn newcomers_action_runs_while_others_hold_all() {
    const MOST_ACTIONS: usize = 16;
    let host = given::with_application().start().await;
    let toolkit = polling::toolkit(&host, Guest::poll()).await;
    let fetch = fetch(&host).await;
    let (hostile, newcomer) = polled(&host, &toolkit).await;
    let (quick, hangs, served) = (unique(8), unique(8), unique(8));
    // The second poll of an instance reports an event.
    let act = async |given: &polling::Given, kind: &str, tag: &str| {
        let action = call(&fetch, &format!("/{kind}/{tag}"));
        let polled = format!("/echo/{}", unique(8));
        let made = given.upsert(&polled, json!({ "action": action })).await;
        let made = made.expect(201);
        let id = made["trigger_id"].as_str().unwrap();
        given.wait_for_first_poll(id).await;
        given.poll(id).await.expect(200);
    };
    // The share of a project grows with the actions that succeed.
    join_all((0..MOST_ACTIONS).map(|_| act(&hostile[0], "echo", &quick))).await;
    wait_until("actions succeed", async || seen(&quick) >= MOST_ACTIONS).await;
    let hang = async |given: &polling::Given| act(given, "hang", &hangs).await;
    fill(&hostile, (1, MOST_ACTIONS), hang, || seen(&hangs)).await;
    act(&newcomer, "echo", &served).await;
    assert_begins(|| seen(&served) > 0).await;
}

#[tokio::test]
async fn newcomer_subscribes_while_others_hold_all() {
    const MOST_SUBSCRIPTIONS: usize = 4;
    let provider = HookProvider::start();
    let (setup, _toolkits) = webhook_subscribing::setup(&provider);
    let host = setup.start().await;
    let mut projects = hostile_projects(&host).await;
    projects.push(host.new_project().await);
    let connecting = projects.into_iter();
    let connecting = connecting.map(|project| webhook_subscribing::Given::new(project, "github"));
    let mut hostile = join_all(connecting).await;
    let newcomer = hostile.pop().unwrap();
    let owner = unique(8);
    let subscribe = async |given: &webhook_subscribing::Given, kind: &str| {
        let repository = format!("{owner}/{kind}{}", unique(8));
        let config = json!({ "repository": repository });
        given.instance(GITHUB_TRIGGER, config).await
    };
    // The share of a project grows with the subscriptions that succeed.
    for _ in 0..MOST_SUBSCRIPTIONS {
        let id = subscribe(&hostile[0], "quick").await;
        hostile[0].wait_for(&id, "subscribed").await;
    }
    let hang = async |given: &webhook_subscribing::Given| drop(subscribe(given, "hanging").await);
    fill(&hostile, (1, MOST_SUBSCRIPTIONS), hang, || {
        provider.hanging(&owner)
    })
    .await;
    let id = subscribe(&newcomer, "quick").await;
    let subscribed = newcomer.wait_for(&id, "subscribed");
    let subscribed = timeout(PLACE_DEADLINE, subscribed).await;
    subscribed.expect("the newcomer's subscription is made");
}

#[tokio::test]
async fn newcomers_recipe_runs_while_others_hold_all() {
    const RUN_SHARE: (usize, usize) = (2, 48);
    let host = given::with_application().start().await;
    let fetch = fetch(&host).await;
    let hangs = unique(8);
    let store = async |project, path: &str| {
        let session = create(&project, json!({ "user_id": "amy" })).await;
        let mut step = call(&fetch, path);
        step["name"] = json!("only");
        let recipe = recipe("Fetch", json!([step]));
        let stored = execute(&project, &session, "SERVICE_UPSERT_RECIPE", recipe).await;
        let slug = given::text(&stored.expect(200)["data"]["slug"]).to_owned();
        (project, session, slug)
    };
    let mut hostile = Vec::new();
    for project in hostile_projects(&host).await {
        hostile.push(store(project, &format!("/hang/{hangs}")).await);
    }
    let (newcomer, session, slug) = store(host.new_project().await, "/echo/newcomer").await;
    let held = RefCell::new(JoinSet::new());
    let begin = async |(project, session, slug): &(_, String, String)| {
        let (project, session, slug): (Client, _, _) =
            (Clone::clone(project), session.clone(), slug.clone());
        let run = async move { execute(&project, &session, &slug, json!({})).await };
        held.borrow_mut().spawn(run);
    };
    fill(&hostile, RUN_SHARE, begin, || seen(&hangs)).await;
    let ran = execute(&newcomer, &session, &slug, json!({}));
    let ran = timeout(PLACE_DEADLINE, ran).await;
    let ran = ran.expect("the newcomer's recipe runs").expect(200);
    assert_eq!(ran["result_type"], "completed", "{ran:#?}");
}

#[tokio::test]
async fn newcomers_token_is_refreshed_while_others_hold_all() {
    const MOST_REFRESHES: usize = 8;
    // Projects together take more than their base while eight of 24 stay free.
    const HELD_COUNT: usize = 16;
    let host = given::with_application()
        .with("connections.idle_refresh_s", "1")
        .start()
        .await;
    let projects = hostile_projects(&host).await;
    let newcomer = host.new_project().await;
    let first = Oauth::new(&host, &projects[0]).await;
    first.issuer.set(|settings| settings.lifetime = 1);
    for (position, project) in projects.iter().enumerate() {
        let oauth = Oauth {
            tag: first.tag.clone(),
            slug: first.slug.clone(),
            config: project
                .auth_config(&first.slug, "OAUTH2", Issuer::credentials())
                .await,
            issuer: first.issuer.clone(),
        };
        let accounts = if position == 0 { MOST_REFRESHES + 1 } else { 2 };
        let users: Vec<_> = (0..accounts).map(|user| format!("user-{user}")).collect();
        join_all(users.iter().map(|user| connect(&oauth, project, user))).await;
    }
    first.issuer.hold(true);
    let before = first.refreshes();
    wait_until("refreshes hang", async || {
        first.refreshes() >= before + HELD_COUNT
    })
    .await;
    let oauth = Oauth::new(&host, &newcomer).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    connect(&oauth, &newcomer, "amy").await;
    assert_begins(|| oauth.refreshes() > 0).await;
    first.issuer.hold(false);
}

#[tokio::test]
async fn newcomers_event_is_delivered_while_others_hold_all() {
    const EVENT_COUNT: usize = 20;
    // An endpoint that has accepted nothing gets two messages at a time.
    const HELD_COUNT: usize = 12;
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/newcomer" => Reply::Status(200),
        _ => Reply::Hanging,
    });
    let host = inbox.setup().with("sandbox.live", "32");
    let host = host.start().await;
    let send = async |project: &Client, path: &str, events: usize| {
        let url = format!("{INBOX_ORIGIN}{path}");
        let body = json!({ "webhook_url": url, "enabled_events": ["service.trigger.message"] });
        let made = project.post("/webhook_subscriptions", &body).await;
        let made = made.expect(201);
        let path = format!("/webhook_subscriptions/{}/test", given::text(&made["id"]));
        for number in 0..events {
            let body = json!({ "data": { "number": number } });
            project.post(&path, &body).await.expect(201);
        }
    };
    let hostile = hostile_projects(&host).await;
    join_all(
        hostile
            .iter()
            .map(|each| send(each, "/hostile", EVENT_COUNT)),
    )
    .await;
    wait_until("messages to others hang", async || {
        inbox.received_at("/hostile").len() >= HELD_COUNT
    })
    .await;
    send(&host.new_project().await, "/newcomer", 1).await;
    assert_begins(|| !inbox.received_at("/newcomer").is_empty()).await;
}
