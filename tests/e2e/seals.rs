//! Encrypted values: they decrypt only in their original position, unaltered and with the right
//! key.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use harness::{
    Answer, BucketService, Client, Database, Guest, HookProvider, Host, Postgres,
    client::Body,
    fake_app, guest,
    host::{Setup, on_postgres},
    inbox::INBOX_ORIGIN,
    signed::hmac_sha256,
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given::{self, Oauth},
    tool_router_sessions::{SESSION_PATH, create},
    webhook_subscribing::{self, GITHUB_TRIGGER, Given, path_of},
};

/// Secret that no response may contain if decryption fails.
const SEALED_SECRET: &str = "k-canary-0123456789";

/// An encrypted property in the records of a table, and a request that needs one of them.
struct Kept {
    table: &'static str,
    /// Path of the property in PostgreSQL's notation.
    member: &'static str,
    client: Client,
    method: Method,
    path: String,
    body: Value,
    headers: Vec<(&'static str, String)>,
}

/// Returns every encrypted property in every table of a database, as table and path.
fn sealed(database: &Database) -> Vec<String> {
    let tables = database.say("select tablename from pg_tables where schemaname = 'public'");
    let of = |table: &String| {
        database.say(&format!(
            "with recursive parts(path, value) as (
                select array[]::text[], body::jsonb from \"{table}\" where json_typeof(body) = 'object'
                union all
                select path || key, each.value from parts,
                    jsonb_each(case when jsonb_typeof(parts.value) = 'object' then parts.value else '{{}}' end) as each
            )
            select distinct '{table} ' || path::text from parts
            where jsonb_typeof(value) = 'string' and value #>> '{{}}' ~ '^v[12]\\.[^.]+\\.([0-9]+\\.)?[A-Za-z0-9+/_-]+$'"
        ))
    };
    let mut all: Vec<_> = tables
        .iter()
        .filter(|table| has_body(database, table))
        .flat_map(of)
        .collect();
    all.sort();
    all
}

fn has_body(database: &Database, table: &str) -> bool {
    let columns = format!(
        "select 1 from information_schema.columns where table_name = '{table}' and column_name = 'body'"
    );
    !database.say(&columns).is_empty()
}

/// Returns the encrypted texts of a table, by record id.
fn texts(database: &Database, table: &str, member: &str) -> Vec<(String, String)> {
    let rows = database.say(&format!(
        "select id || ' ' || (body #>> '{member}') from \"{table}\"
         where body #>> '{member}' is not null and deleted_at is null order by id"
    ));
    let parts = rows.iter().map(|row| row.split_once(' ').unwrap());
    let texts = parts.map(|(id, text)| (id.to_owned(), text.to_owned()));
    texts.collect()
}

/// Replaces the encrypted texts.
fn put(database: &Database, table: &str, member: &str, texts: &[(String, String)]) {
    let rows = texts.iter().map(|(id, text)| format!("('{id}', '{text}')"));
    let rows: Vec<_> = rows.collect();
    database.say(&format!(
        "update \"{table}\" t set body = jsonb_set(t.body::jsonb, '{member}', to_jsonb(v.text))::json
         from (values {}) as v(id, text) where t.id = v.id",
        rows.join(", ")
    ));
}

impl Kept {
    /// Returns a property that a `GET` request needs.
    fn read_at(client: &Client, table: &'static str, member: &'static str, path: &str) -> Self {
        Self {
            table,
            member,
            client: client.clone(),
            method: Method::GET,
            path: path.to_owned(),
            body: Value::Null,
            headers: Vec::new(),
        }
    }

    /// Returns a property that a `POST` request with this body needs.
    fn posted(
        client: &Client,
        table: &'static str,
        member: &'static str,
        path: &str,
        body: Value,
    ) -> Self {
        Self {
            method: Method::POST,
            body,
            ..Self::read_at(client, table, member, path)
        }
    }

    async fn read(&self) -> Answer {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers.map(|(name, value)| (*name, &**value)).collect();
        let body = match &self.body {
            Value::Null => Body::None,
            body => Body::Json(body.clone()),
        };
        let method = self.method.clone();
        self.client.send(method, &self.path, body, &headers).await
    }

    async fn assert_readable(&self) {
        let answer = self.read().await;
        let place = format!("{} {}", self.table, self.member);
        assert!(answer.status < 300, "{place}: {answer:#?}");
    }
}

/// Returns an encrypted value with one byte of its ciphertext changed.
fn flipped(text: &str, at: usize) -> String {
    let (head, value) = text.rsplit_once('.').unwrap();
    let mut bytes = BASE64.decode(value).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 1;
    format!("{head}.{}", BASE64.encode(bytes))
}

/// Returns an encrypted value with the version of compressed values instead of that of others, or
/// the reverse.
fn of_other_version(text: &str) -> String {
    match text.strip_prefix("v1.") {
        Some(rest) => format!("v2.{rest}"),
        None => text.replacen("v2.", "v1.", 1),
    }
}

/// Creates a record of every kind in a project, and returns a request that needs each of them.
async fn furnished(
    host: &Host,
    project: Client,
    tool: &str,
    toolkits: [&str; 2],
    provider: &HookProvider,
) -> Vec<Kept> {
    let [slug, managed] = toolkits;
    let more = json!({
        "credentials": { "own": SEALED_SECRET },
        "shared_credentials": { "all": SEALED_SECRET },
        "proxy_config": { "proxy_url": "http://proxy.example", "proxy_auth_key": SEALED_SECRET },
    });
    let config = given::key_config(&project, slug, &more).await;
    let account = given::made_account(&project, &config, "amy", SEALED_SECRET).await;
    let account = account["id"].as_str().unwrap().to_owned();
    let said = json!({ "said": SEALED_SECRET, "more": "x".repeat(4 << 10) });
    let ran = project.execute(tool, said).await;
    let log = ran.expect(200)["log_id"].as_str().unwrap().to_owned();
    let id = project.project_id().await;
    let of_operator = json!({ "toolkit": { "slug": managed } });
    let made = project
        .post("/auth_configs", &of_operator)
        .await
        .expect(201);
    let begin = json!({ "auth_config": { "id": made["auth_config"]["id"] }, "connection": {} });
    let accounts = "/connected_accounts";
    project.post(accounts, &begin).await.expect(201);
    let registered = Oauth::registered(host, &project, json!({})).await;
    let register = json!({ "auth_config": { "id": registered.config }, "connection": {} });
    project.post(accounts, &register).await.expect(201);
    let body = json!({ "toolkit_slug": slug, "client_id": "app" });
    let made = project.post("/webhook_endpoints", &body).await.expect(201);
    let endpoint = format!("/webhook_endpoints/{}", given::text(&made["id"]));
    let secrets = json!({ "data": { "secret": SEALED_SECRET } });
    project.patch(&endpoint, &secrets).await.expect(200);
    let upsert = format!("/trigger_instances/{}_ARRIVED/upsert", slug.to_uppercase());
    let instance = json!({
        "connected_account_id": account, "trigger_config": { "secret": SEALED_SECRET },
        "action": { "tool_slug": tool, "arguments": { "said": SEALED_SECRET } },
    });
    project.post(&upsert, &instance).await.expect(201);
    let (subscription, delivery, event) = replayed(&project).await;
    let again = json!({ "toolkit": { "slug": slug }, "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} } });
    let key = vec![("idempotency-key", unique(8))];
    let get = |table, member, path: &str| Kept::read_at(&project, table, member, path);
    let post = |table, member, path, body| Kept::posted(&project, table, member, path, body);
    let config = format!("/auth_configs/{config}");
    let account = format!("/connected_accounts/{account}");
    let log = format!("/logs/tool_execution/{log}");
    let cassette = format!("{log}/cassette");
    let project_path = format!("/org/owner/project/{id}");
    let active = "/trigger_instances/active";
    let mut all = vec![
        get("auth_configs", "{credentials}", &config),
        get("auth_configs", "{proxy}", &config),
        get("auth_configs", "{shared}", &config),
        get("credentials", "{values}", &account),
        get("execution_cassettes", "{sealed}", &cassette),
        get("execution_details", "{sealed}", &log),
        Kept {
            client: host.as_org(),
            ..get("api_keys", "{secret}", &project_path)
        },
        get("trigger_progress", "{action}", active),
        get("trigger_progress", "{config}", active),
        get("webhook_endpoints", "{values}", &endpoint),
        get("webhook_subscriptions", "{endpoint}", &subscription),
        get("webhook_deliveries", "{url}", &delivery),
        get("events", "{data}", &event),
        post("clients", "{answer}", accounts, register),
        post("oauth_apps", "{secret}", accounts, begin),
        Kept {
            headers: key,
            ..post(
                "idempotency_keys",
                "{state,done,answer}",
                "/auth_configs",
                again,
            )
        },
    ];
    all.extend(subscribed(&project, provider).await);
    all.extend(ran_recipe(&project, tool).await);
    for kept in &all {
        kept.assert_readable().await;
    }
    all
}

/// Subscribes a trigger instance at a provider, which refuses another. Returns a webhook for the first,
/// and a read of the second.
async fn subscribed(project: &Client, provider: &HookProvider) -> [Kept; 2] {
    let given = Given::new(project.clone(), "github").await;
    let repository = format!("o/{}", unique(6));
    let config = json!({ "repository": repository });
    let accepted = given.instance(GITHUB_TRIGGER, config).await;
    given.wait_for(&accepted, "subscribed").await;
    let config = json!({ "repository": format!("o/refused-{}", unique(6)) });
    let refused = given.instance(GITHUB_TRIGGER, config).await;
    given.wait_for(&refused, "failed").await;
    let hook = provider.hooks(&repository).remove(0);
    let body = json!({ "zen": "Speak like a human." });
    let signature = hmac_sha256(&hook.secret, &body.to_string());
    let table = "trigger_subscriptions";
    let webhook = Kept {
        headers: vec![
            ("x-github-event", "ping".to_owned()),
            ("x-hub-signature-256", format!("sha256={signature}")),
        ],
        ..Kept::posted(project, table, "{parts}", path_of(&hook.url), body)
    };
    let read = format!("/trigger_instances/active?show_disabled=true&trigger_ids={refused}");
    [
        webhook,
        Kept::read_at(project, table, "{last_error}", &read),
    ]
}

/// Stores a recipe in two versions and runs it. Returns reads of both versions and of the run, which
/// opens the results of the run and of its call.
async fn ran_recipe(project: &Client, tool: &str) -> [Kept; 4] {
    let session = create(project, json!({ "user_id": "amy" })).await;
    let path = format!("{SESSION_PATH}/{session}/execute");
    let call = |slug: &str, arguments| json!({ "tool_slug": slug, "arguments": arguments });
    let step = json!({ "name": "one", "tool_slug": tool, "arguments": { "said": SEALED_SECRET } });
    let recipe = json!({ "name": "Says", "description": SEALED_SECRET, "steps": [step] });
    let stored = call("SERVICE_UPSERT_RECIPE", recipe);
    project.post(&path, &stored).await.expect(200);
    project.post(&path, &stored).await.expect(200);
    let slug = "RECIPE_SAYS";
    let ran = project.post(&path, &call(slug, json!({}))).await;
    let ran = ran.expect(200);
    assert_eq!(ran["error"], Value::Null, "{ran:#?}");
    let run = json!({ "run_id": ran["data"]["run_id"] });
    let first = json!({ "slug": slug, "version": 1 });
    [
        ("recipes", "{definition}", json!({ "slug": slug })),
        ("recipe_versions", "{definition}", first),
        ("recipe_runs", "{result}", run.clone()),
        ("recipe_calls", "{result}", run),
    ]
    .map(|(table, member, arguments)| {
        let body = call("SERVICE_GET_RECIPE", arguments);
        Kept::posted(project, table, member, &path, body)
    })
}

/// Replays an event to another URL, which fails. Returns the paths of its subscription, its delivery
/// and its entry in the log of triggers.
async fn replayed(project: &Client) -> (String, String, String) {
    let subscription = given::subscribe(project).await;
    let test = format!("{subscription}/test");
    let sent = project.post(&test, &json!({})).await.expect(201);
    let delivery = format!("{subscription}/deliveries/{}", given::text(&sent["id"]));
    let failed = async || project.get(&delivery).await.expect(200)["status"] == "failed";
    wait_until("the delivery has failed", async || failed().await).await;
    let elsewhere = json!({ "webhook_url": format!("{INBOX_ORIGIN}/elsewhere") });
    let replay = format!("{delivery}/replay");
    project.post(&replay, &elsewhere).await.expect(200);
    wait_until("the replay has failed", async || failed().await).await;
    let listed = project.post("/internal/trigger/logs", &json!({})).await;
    let id = given::text(&listed.expect(200)["data"][0]["id"]).to_owned();
    let log = format!("/internal/trigger/log/{id}");
    (subscription, delivery, log)
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_or_altered_ciphertext_never_decrypts() {
    let bucket = BucketService::start();
    let provider = HookProvider::start();
    let (setup, _toolkits) = webhook_subscribing::setup(&provider);
    let setup = setup
        .on(Postgres::shared().database(None))
        .in_bucket(&bucket)
        .with("logs.cassettes", "all")
        .with("webhooks.retry_delays_s", "0.1");
    let host = setup
        .with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
        .start()
        .await;
    let tool = given::echo(&host).await;
    let slugs = [given::slug(), given::slug()];
    for slug in &slugs {
        let mut manifest = guest::manifest_with_key(slug, given::bearer());
        manifest["triggers"] = json!([given::webhook_trigger(slug, "ARRIVED")]);
        host.publish(Guest::fetch().component(), &manifest).await;
    }
    let mut managed = Vec::new();
    for _ in 0..2 {
        let (slug, ..) = given::oauth_toolkit(&host).await;
        let path = format!("/org/oauth_apps/{slug}");
        let app = given::oauth_app();
        host.as_org().put_json(&path, &app).await.expect(200);
        managed.push(slug);
    }
    let toolkits = |at: usize| [&*slugs[at], &*managed[at]];
    let project = host.as_project();
    let mine = furnished(&host, project, &tool, toolkits(0), &provider).await;
    let project = host.new_project().await;
    furnished(&host, project, &tool, toolkits(1), &provider).await;
    let database = host.setup().database();
    // No repeatable request decrypts these: they are opened by the first use of a project, by a
    // callback, by the server that runs a recipe, and by the end of a subscription.
    let mut known: Vec<_> = mine
        .iter()
        .map(|kept| format!("{} {}", kept.table, kept.member))
        .collect();
    let others = [
        "data_keys {key}",
        "flows {held}",
        "trigger_subscriptions {current}",
    ];
    known.extend(others.map(str::to_owned));
    known.sort();
    assert_eq!(sealed(database), known, "every sealed member is tried");

    let all: Vec<_> = mine
        .iter()
        .map(|kept| texts(database, kept.table, kept.member))
        .collect();
    for (number, kept) in mine.iter().enumerate() {
        let (texts, put) = (&all[number], |texts: &[_]| {
            put(database, kept.table, kept.member, texts)
        });
        assert!(texts.len() > 1, "{} {}", kept.table, kept.member);
        let others = &all[(number + 1) % all.len()];
        let each = |change: &dyn Fn(usize, &str) -> String| -> Vec<_> {
            texts
                .iter()
                .enumerate()
                .map(|(at, (id, text))| (id.clone(), change(at, text)))
                .collect()
        };
        let wrong = [
            ("the nonce is changed", each(&|_, text| flipped(text, 3))),
            ("the value is changed", each(&|_, text| flipped(text, 30))),
            (
                "the tag is changed",
                each(&|_, text| flipped(text, usize::MAX)),
            ),
            (
                "it is cut",
                each(&|_, text| text[..text.len() - 4].to_owned()),
            ),
            (
                "its version is another",
                each(&|_, text| of_other_version(text)),
            ),
            (
                "its key is another",
                each(&|_, text| text.replacen('.', ".dk_", 1)),
            ),
            (
                "it is another record's",
                each(&|at, _| texts[(at + 1) % texts.len()].1.clone()),
            ),
            (
                "it is another field's",
                each(&|at, _| others[at % others.len()].1.clone()),
            ),
        ];
        for (case, texts) in wrong {
            put(&texts);
            let answer = kept.read().await;
            let place = format!("{} {}: {case}: {answer:#?}", kept.table, kept.member);
            assert!(
                answer.status == 500 && !answer.text.contains("canary"),
                "{place}"
            );
            answer.assert_envelope();
        }
        put(texts);
        kept.assert_readable().await;
    }

    // Swapped and altered data keys are detected when a server first decrypts them.
    let right = texts(database, "data_keys", "{key}");
    let swapped: Vec<_> = (0..right.len())
        .map(|at| (right[at].0.clone(), right[(at + 1) % right.len()].1.clone()))
        .collect();
    let setup = host.kill();
    put(setup.database(), "data_keys", "{key}", &swapped);
    let refused = setup.clone().try_start().await.unwrap_err();
    assert_eq!(refused.code, Some(78), "{}", refused.output);
    put(setup.database(), "data_keys", "{key}", &right);
    let host = setup.start().await;
    for kept in mine.iter().filter(|kept| kept.table == "credentials") {
        host.with_key(kept.client.key())
            .get(&kept.path)
            .await
            .expect(200);
    }
}

/// A copy of an installation under another path is fully usable with its key, and unusable without
/// it.
#[tokio::test]
async fn copied_data_opens_only_with_its_key() {
    let host = given::with_application().start().await;
    let project = host.as_project();
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    let key = json!({ "api_key": SEALED_SECRET });
    project.connect(&slug, "API_KEY", "default", key).await;
    let (setup, status) = host.terminate().await;
    assert!(status.success(), "{status}");
    let copy = setup.copy();
    let key = copy.data().with_extension("key");
    let own = std::fs::read(&key).unwrap();
    let (stranger, _) = Setup::new().start().await.terminate().await;
    let others = std::fs::read(stranger.data().with_extension("key")).unwrap();
    // Opening the embedded store changes its files but not their content.
    let state = || {
        if on_postgres() {
            copy.database().rows().unwrap()
        } else {
            copy.command(&["verify"]).succeeded().into()
        }
    };
    let before = state();
    let away = key.with_extension("away");
    for (wrong, said) in [(Some(&others), "does not belong to"), (None, "key")] {
        match wrong {
            Some(wrong) => std::fs::write(&key, wrong).unwrap(),
            None => std::fs::rename(&key, &away).unwrap(),
        }
        let refused = copy.clone().try_start().await.unwrap_err();
        assert_eq!(refused.code, Some(78), "{}", refused.output);
        assert!(refused.output.contains(said), "{}", refused.output);
        // No new key takes the place of one that is missing.
        assert_eq!(key.exists(), wrong.is_some());
        assert_eq!(state(), before);
    }
    std::fs::rename(&away, &key).unwrap();
    std::fs::write(&key, own).unwrap();
    let tag = unique(8);
    let copied = copy.start().await;
    let call = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    let ran = copied.as_project().execute(&guest::tool(&slug), call).await;
    ran.data();
    let seen = Host::application().seen(&tag).remove(0);
    let expected = format!("Bearer {SEALED_SECRET}");
    assert_eq!(seen.header("authorization"), expected);
}
