//! Concurrent writers of one record, and records that are deleted while they are in use.

use futures::future::join_all;
use harness::{
    Answer, BucketService, Client, Database, Guest, Host, fake_app::percent, guest, host::Setup,
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files,
    given::{self, Oauth},
    link::link,
};

/// Number of concurrent writers of one record: as many requests as a project may have.
const WRITER_COUNT: usize = 64;
/// Number of records in a list read page by page.
const LISTED_RECORDS: usize = 16;

/// Publishes a toolkit that requires an API key and returns its slug.
async fn keyed(host: &Host) -> String {
    let slug = given::slug();
    given::publish_with_key(host, &Guest::fetch(), &slug).await;
    slug
}

/// Creates an account with a key and returns its id.
async fn account(project: &Client, config: &str, user: &str) -> String {
    let made = given::made_account(project, config, user, &harness::secret()).await;
    made["id"].as_str().unwrap().to_owned()
}

/// Lets all writers change one auth config, one account, one project and one file concurrently,
/// alternating between the clients of a project. Returns the statuses of the refused requests.
async fn refused(clients: &[Client], slug: &str) -> Vec<u16> {
    let project = &clients[0];
    let client = |writer: usize| &clients[writer % clients.len()];
    let config = project.auth_config(slug, "API_KEY", json!({})).await;
    let id = account(project, &config, "default").await;
    let config = format!("/auth_configs/{config}");
    let id = format!("/connected_accounts/{id}");
    let asked = files::ask(project, slug, b"the same", json!({})).await;
    let asked = asked.expect(200);
    let mut statuses = Vec::new();
    for (path, member) in [
        (&*config, "name"),
        (&*id, "alias"),
        ("/org/project/config", "display_name"),
    ] {
        let changed = (0..WRITER_COUNT).map(async |writer| {
            let mut change = json!({ member: format!("writer {writer}") });
            if member == "name" {
                change["type"] = json!("custom");
            }
            client(writer).patch(path, &change).await.status
        });
        statuses.extend(join_all(changed).await);
    }
    let put = (0..WRITER_COUNT).map(async |writer| {
        let bytes = b"the same".to_vec();
        let put = client(writer).exchange(Method::PUT, files::url(&asked), &[], bytes);
        put.await.status
    });
    statuses.extend(join_all(put).await);
    statuses.retain(|status| *status != 200);
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn all_writers_of_one_record_succeed() {
    let host = Setup::new().start().await;
    let slug = keyed(&host).await;
    let refused = refused(&[host.as_project()], &slug).await;
    assert_eq!(refused, Vec::<u16>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_writers_on_two_servers_succeed() {
    let bucket = BucketService::start();
    let one = given::on_its_own_database()
        .in_bucket(&bucket)
        .start()
        .await;
    let slug = keyed(&one).await;
    let two = one.setup().another().start().await;
    let clients = [one.as_project(), two.with_key(&one.project_key)];
    let path = format!("/toolkits/{slug}");
    clients[1].wait_for(&path).await;
    assert_eq!(refused(&clients, &slug).await, Vec::<u16>::new());
}

/// Starts two servers on one database that holds up new versions of toolkits while its gate is shut.
async fn two_with_a_gate() -> [Host; 2] {
    let one = given::on_its_own_database().start().await;
    let two = one.setup().another().start().await;
    one.setup().database().say(
        "create table gate as select true as shut;
         create function pass() returns trigger language plpgsql as $$ begin
             while (select shut from gate) loop perform pg_sleep(0.02); end loop;
             return new;
         end $$;
         create trigger pass before insert on toolkit_versions for each row execute function pass()",
    );
    [one, two]
}

/// Publishes one manifest on each server, so that the second one has judged the catalog before the
/// first one is stored. Returns the responses.
async fn published_together(hosts: &[Host; 2], manifests: [&Value; 2]) -> [Answer; 2] {
    let database = hosts[0].setup().database();
    let publish = async |server: usize| {
        let manifest = manifests[server];
        let component = guest::with_manifest(Guest::echo().component(), manifest);
        let address = guest::address(manifest);
        hosts[server].as_org().put(&address, component).await
    };
    let held_up = async |count: &str| {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
                       and (wait_event_type = 'Lock' or wait_event = 'PgSleep')";
        wait_until("publications are held up", || async {
            database.say(waiting) == [count]
        })
        .await;
    };
    database.say("update gate set shut = true");
    let second = async {
        held_up("1").await;
        let open = async {
            held_up("2").await;
            database.say("update gate set shut = false")
        };
        tokio::join!(publish(1), open).0
    };
    let (first, second) = tokio::join!(publish(0), second);
    [first, second]
}

#[tokio::test(flavor = "multi_thread")]
async fn publications_on_two_servers_are_judged_in_order() {
    let hosts = two_with_a_gate().await;
    let slug = given::slug();
    let with_tool = |slug: &str, version: &str, tool: &str| {
        let mut manifest = guest::manifest(slug);
        manifest["version"] = version.into();
        manifest["tools"][0]["slug"] = tool.into();
        manifest
    };
    let tool = format!("{}_OWN_RUN", slug.to_uppercase());
    let one = with_tool(&slug, "20260101_00", &tool);
    let other = with_tool(&format!("{slug}_own"), "20260101_00", &tool);
    let [first, second] = published_together(&hosts, [&one, &other]).await;
    first.expect(201);
    let line = format!("tools.{tool}: the name is used by toolkit {slug}");
    assert!(second.expect(400).problems().contains(&line));

    let mut more = with_tool(&slug, "20260101_01", &tool);
    let mut added = more["tools"][0].clone();
    added["slug"] = guest::tool(&slug).into();
    more["tools"].as_array_mut().unwrap().push(added);
    let less = with_tool(&slug, "20260101_02", &tool);
    let [first, second] = published_together(&hosts, [&more, &less]).await;
    first.expect(201);
    second.expect_error(422, "Toolkit_BreakingChange");

    let same = with_tool(&slug, "20260102_00", &tool);
    let [first, second] = published_together(&hosts, [&same, &same]).await;
    assert_eq!((first.status, second.status), (201, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_made_while_their_auth_config_changes() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let path = format!("/auth_configs/{config}");
    let create = async |user: usize| {
        let body = given::account(&config, &format!("user-{user}"), &harness::secret());
        project.post("/connected_accounts", &body).await
    };
    let change = json!({ "type": "custom", "name": "changed" });
    let changes = (0..16).map(|_| project.patch(&path, &change));
    let (changed, made) = tokio::join!(join_all(changes), join_all((0..16).map(create)));
    assert!(
        changed.iter().all(|answer| answer.status == 200),
        "{changed:?}"
    );
    assert!(made.iter().all(|answer| answer.status == 201), "{made:?}");
    let (deleted, raced) = tokio::join!(project.delete(&path), join_all((16..32).map(create)));
    deleted.expect(200);
    let slugs: Vec<_> = raced
        .iter()
        .filter(|answer| answer.status != 201)
        .map(|answer| answer["error"]["slug"].clone())
        .collect();
    assert!(
        slugs.iter().all(|slug| slug == "Auth_Config_NotFound"),
        "an account is made, or there is no config: {slugs:?}"
    );
    create(32).await.expect(404);
}

#[tokio::test]
async fn account_without_its_auth_config_is_passed_over() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let [older, newer] = [
        given::auth_config(&project).await,
        given::auth_config(&project).await,
    ];
    let kept = harness::secret();
    given::made_account(&project, &older, "default", &kept).await;
    for _ in 0..3 {
        account(&project, &newer, "default").await;
    }
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    let tool = guest::tool(slug);
    let path = |config: &str| format!("/auth_configs/{config}");
    project.delete(&path(&newer)).await.expect(200);
    project.execute(&tool, url.clone()).await.data();
    let seen = Host::application().seen(&tag);
    let sent = seen.last().unwrap().header("authorization");
    assert_eq!(sent, format!("Bearer {kept}"));
    project.delete(&path(&older)).await.expect(200);
    let none = project.execute(&tool, url).await.expect(404);
    let missing = "ActionExecute_ConnectedAccountNotFound";
    assert_eq!(none["error"]["slug"], missing);
}

/// Reads a list in pages of five and deletes the items of each page except the first one. Asserts that
/// every record was read.
async fn assert_all_are_read(client: &Client, path: &str, query: &str, items: &str) {
    let (mut read, mut pages, mut cursor) = (0, 0, String::new());
    loop {
        let page = client.get(&format!("{path}{query}limit=5{cursor}")).await;
        let page = page.expect(200);
        let shown = page[items].as_array().unwrap();
        (read, pages) = (read + shown.len(), pages + 1);
        assert_eq!(page["current_page"], pages);
        let total = page["total_pages"].as_u64().unwrap();
        assert!(total >= pages, "{}", page.text);
        for item in shown.iter().skip(1) {
            let path = format!("{path}/{}", item["id"].as_str().unwrap());
            client.delete(&path).await.expect(200);
        }
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={}", percent(next));
    }
    assert_eq!(read, LISTED_RECORDS, "{path}{query}");
}

#[tokio::test]
async fn lists_miss_nothing_while_records_are_deleted() {
    let host = Setup::new().start().await;
    let slug = keyed(&host).await;
    let (org, project) = (host.as_org(), host.as_project());
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    for query in ["?", "?order_by=updated_at&", "?order_direction=asc&"] {
        let before = project.get("/connected_accounts").await.expect(200);
        let before = before["total_items"].as_u64().unwrap() as usize;
        for _ in before..LISTED_RECORDS {
            account(&project, &config, "default").await;
        }
        assert_all_are_read(&project, "/connected_accounts", query, "items").await;
    }
    for _ in 1..LISTED_RECORDS {
        project.auth_config(&slug, "API_KEY", json!({})).await;
        host.new_project().await;
    }
    for _ in 0..LISTED_RECORDS {
        host.new_member("viewer").await;
    }
    assert_all_are_read(&project, "/auth_configs", "?", "items").await;
    assert_all_are_read(&org, "/org/owner/project", "/list?", "data").await;
    assert_all_are_read(&org, "/org/members", "?", "items").await;
}

#[tokio::test]
async fn cursors_that_count_pages_are_still_read() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let mut made = Vec::new();
    for user in ["a", "b", "c"] {
        made.insert(0, account(&project, &config, user).await);
    }
    // The second page of two: an older cursor without a page token, and one with the time of the
    // first page.
    for cursor in ["Mi0y", "Mi0yLTk5OTk5OTk5OTk5OTk="] {
        let path = format!("/connected_accounts?cursor={cursor}");
        let page = project.get(&path).await.expect(200);
        assert_eq!(page["items"].as_array().unwrap().len(), 1);
        assert_eq!(page["items"][0]["id"], made[2]);
        for (name, value) in [
            ("current_page", json!(2)),
            ("total_pages", json!(2)),
            ("next_cursor", Value::Null),
        ] {
            assert_eq!(page[name], value, "{name}");
        }
    }
    let first = project.get("/connected_accounts?limit=2").await.expect(200);
    let cursor = percent(first["next_cursor"].as_str().unwrap());
    let foreign = format!("/connected_accounts?order_by=updated_at&cursor={cursor}");
    let refused = project.get(&foreign).await.expect(400);
    assert_eq!(refused["error"]["slug"], "Request_CursorInvalid");
}

/// Returns the number of records of a project that may hold a secret, including deleted ones.
fn secrets_of(database: &Database, project: &str) -> usize {
    let tables = [
        "auth_configs",
        "connected_accounts",
        "credentials",
        "flows",
        "clients",
        "files",
        "file_totals",
        "api_keys",
        "idempotency_keys",
    ];
    let counts = tables
        .map(|table| format!("(select count(*) from {table} where project = '{project}')"))
        .join(" + ");
    let noted = format!("(select count(*) from project_removals where id = '{project}')");
    database.say(&format!("select {counts} + {noted}"))[0]
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_project_is_refused_and_then_erased() {
    let host = given::on_its_own_database()
        .with("connections.idle_refresh_s", "1")
        .start()
        .await;
    let database = host.setup().database();
    let (project, neighbor) = (host.new_project().await, host.new_project().await);
    let id = project.project_id().await;
    let [own, other] = [
        Oauth::new(&host, &project).await,
        Oauth::new(&host, &neighbor).await,
    ];
    for (oauth, project) in [(&own, &project), (&other, &neighbor)] {
        oauth.issuer.set(|settings| settings.lifetime = 1);
        oauth.connect(project).await;
    }
    let slug = keyed(&host).await;
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    // A previously deleted record also holds secrets.
    let gone = account(&project, &config, "gone").await;
    let path = format!("/connected_accounts/{gone}");
    project.delete(&path).await.expect(200);
    let (_, link) = link(&project, &config, json!({})).await;
    let begun = own.begin(&project, "https://app.example/done").await;
    let back = own.visit(&begun).await;
    files::uploaded(&project, &slug, b"bytes").await;
    let asked = files::ask(&project, &slug, b"bytes", json!({})).await;
    let asked = asked.expect(200);
    let file = asked["existing_url"].as_str().unwrap().to_owned();
    wait_until("idle accounts are refreshed", || async {
        own.refreshes() > 0 && other.refreshes() > 0
    })
    .await;

    // The erasure fails at its second step, and requests are refused nevertheless.
    database.say(
        "create function cut_off() returns trigger language plpgsql as $$ begin raise exception 'cut off'; end $$; \
         create trigger cut_off before delete on credentials for each row execute function cut_off();",
    );
    host.delete_project(&id).await;
    project.get("/connected_accounts").await.expect(401);
    let granted = own.issuer.granted("authorization_code");
    assert_eq!(given::open(&project, &link).await.status, 400);
    assert_eq!(given::open(&project, &back).await.status, 400);
    let spent = own.issuer.granted("authorization_code") - granted;
    assert_eq!(spent, 0, "the code is not spent");
    assert_eq!(given::open(&project, &file).await.status, 404);
    let put = project.exchange(Method::PUT, files::url(&asked), &[], b"bytes".to_vec());
    assert_eq!(put.await.status, 404);
    assert!(secrets_of(database, &id) > 0, "it was cut off");
    // A refresh that was running at that moment has ended once the neighbor's token has been
    // refreshed again.
    let later = async |more: usize| {
        let wanted = other.refreshes() + more;
        wait_until("the neighbor is refreshed", || async {
            other.refreshes() >= wanted
        })
        .await;
        own.refreshes()
    };
    let renewed = [later(1).await, later(2).await];
    assert_eq!(renewed[0], renewed[1], "nothing of the project is renewed");

    database.say("drop trigger cut_off on credentials");
    wait_until("the job has erased the rest", || async {
        secrets_of(database, &id) == 0
    })
    .await;
    neighbor.get("/connected_accounts").await.expect(200);
}

#[tokio::test]
async fn deleted_project_leaves_no_record() {
    let host = given::on_its_own_database().start().await;
    let project = host.new_project().await;
    let id = project.project_id().await;
    let oauth = Oauth::new(&host, &project).await;
    oauth.connect(&project).await;
    oauth.begin(&project, "https://app.example/done").await;
    assert!(secrets_of(host.setup().database(), &id) > 5);
    host.delete_project(&id).await;
    assert_eq!(
        secrets_of(host.setup().database(), &id),
        0,
        "the same call has erased all of it"
    );
}
