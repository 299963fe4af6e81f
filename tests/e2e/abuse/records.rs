//! Concurrent writers of one record, and records that are deleted while they are in use.

use futures::future::join_all;
use harness::{
    Answer, BucketService, Client, Database, Host, Postgres,
    fake_app::{self, percent},
    guest,
    host::Setup,
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files,
    given::{self, Oauth},
};

/// Number of concurrent writers of one record: as many requests as a project may have.
const WRITER_COUNT: usize = 64;
/// Number of records in a list read page by page.
const LISTED_RECORDS: usize = 16;

fn on_its_own_database() -> Setup {
    Setup::embedded()
        .on(Postgres::shared().database(None))
        .with_application(&fake_app::FAKE_APP_HOSTS, Host::application())
}

/// Publishes a toolkit that requires an API key and returns its slug.
async fn keyed(host: &Host) -> String {
    let manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    host.publish(harness::Guest::fetch().component(), &manifest)
        .await;
    manifest["slug"].as_str().unwrap().to_owned()
}

/// Creates an account with a key and returns its id.
async fn account(project: &Client, config: &str, user: &str) -> String {
    let made = project
        .post(
            "/connected_accounts",
            &given::account(config, user, &harness::secret()),
        )
        .await;
    made.expect(201)["id"].as_str().unwrap().to_owned()
}

/// Lets all writers change one auth config, one account, one project and one file concurrently,
/// alternating between the clients of a project. Returns the statuses of the refused requests.
async fn refused(clients: &[Client], slug: &str) -> Vec<u16> {
    let project = &clients[0];
    let client = |writer: usize| &clients[writer % clients.len()];
    let config = project.auth_config(slug, "API_KEY", json!({})).await;
    let id = account(project, &config, "default").await;
    let (config, id) = (
        format!("/auth_configs/{config}"),
        format!("/connected_accounts/{id}"),
    );
    let name = |writer: usize| format!("writer {writer}");
    let renamed = (0..WRITER_COUNT).map(async |writer| {
        client(writer)
            .patch(&config, &json!({ "type": "custom", "name": name(writer) }))
            .await
            .status
    });
    let mut statuses = join_all(renamed).await;
    let aliased = (0..WRITER_COUNT).map(async |writer| {
        client(writer)
            .patch(&id, &json!({ "alias": name(writer) }))
            .await
            .status
    });
    statuses.extend(join_all(aliased).await);
    let shown = (0..WRITER_COUNT).map(async |writer| {
        client(writer)
            .patch(
                "/org/project/config",
                &json!({ "display_name": name(writer) }),
            )
            .await
            .status
    });
    statuses.extend(join_all(shown).await);
    let asked = files::ask(project, slug, b"the same", json!({}))
        .await
        .expect(200);
    let put = (0..WRITER_COUNT).map(async |writer| {
        client(writer)
            .exchange(Method::PUT, files::url(&asked), &[], b"the same".to_vec())
            .await
            .status
    });
    statuses.extend(join_all(put).await);
    statuses.retain(|status| *status != 200);
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn all_writers_of_one_record_succeed() {
    let host = Setup::new().start().await;
    let slug = keyed(&host).await;
    assert_eq!(
        refused(&[host.as_project()], &slug).await,
        Vec::<u16>::new()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_writers_on_two_servers_succeed() {
    let bucket = BucketService::start();
    let one = on_its_own_database().in_bucket(&bucket).start().await;
    let slug = keyed(&one).await;
    let two = one.setup().another().start().await;
    let clients = [one.as_project(), two.with_key(&one.project_key)];
    let path = format!("/toolkits/{slug}");
    wait_until("the toolkit is seen", || async {
        clients[1].get(&path).await.status == 200
    })
    .await;
    assert_eq!(refused(&clients, &slug).await, Vec::<u16>::new());
}

/// Starts two servers on one database that holds up new versions of toolkits while its gate is shut.
async fn two_with_a_gate() -> [Host; 2] {
    let one = on_its_own_database().start().await;
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
        let component = guest::with_manifest(harness::Guest::echo().component(), manifest);
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
    assert_eq!(
        second.expect(422)["error"]["slug"],
        "Toolkit_BreakingChange"
    );

    let same = with_tool(&slug, "20260102_00", &tool);
    let [first, second] = published_together(&hosts, [&same, &same]).await;
    assert_eq!((first.status, second.status), (201, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_made_while_their_auth_config_changes() {
    let project = Host::shared().await.new_project().await;
    let config = project
        .auth_config(given::keyed().await, "API_KEY", json!({}))
        .await;
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
    let (older, newer) = (
        project.auth_config(slug, "API_KEY", json!({})).await,
        project.auth_config(slug, "API_KEY", json!({})).await,
    );
    let kept = harness::secret();
    given::made_account(&project, &older, "default", &kept).await;
    for _ in 0..3 {
        account(&project, &newer, "default").await;
    }
    let tag = unique(8);
    let url = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    project
        .delete(&format!("/auth_configs/{newer}"))
        .await
        .expect(200);
    project
        .execute(&guest::tool(slug), url.clone())
        .await
        .data();
    let seen = Host::application().seen(&tag);
    assert_eq!(
        seen.last().unwrap().header("authorization"),
        format!("Bearer {kept}")
    );
    project
        .delete(&format!("/auth_configs/{older}"))
        .await
        .expect(200);
    let none = project.execute(&guest::tool(slug), url).await.expect(404);
    assert_eq!(
        none["error"]["slug"],
        "ActionExecute_ConnectedAccountNotFound"
    );
}

/// Reads a list in pages of five and deletes the items of each page except the first one. Returns
/// the number of items read.
async fn read_and_delete(
    client: &Client,
    path: &str,
    items: &str,
    delete: impl AsyncFn(&Value),
) -> usize {
    let (mut read, mut pages, mut cursor) = (0, 0, String::new());
    loop {
        let page = client
            .get(&format!("{path}limit=5{cursor}"))
            .await
            .expect(200);
        let shown = page[items].as_array().unwrap();
        (read, pages) = (read + shown.len(), pages + 1);
        assert_eq!(page["current_page"], pages);
        assert!(
            page["total_pages"].as_u64().unwrap() >= pages,
            "{}",
            page.text
        );
        for item in shown.iter().skip(1) {
            delete(item).await;
        }
        let Some(next) = page["next_cursor"].as_str() else {
            return read;
        };
        cursor = format!("&cursor={}", percent(next));
    }
}

#[tokio::test]
async fn lists_miss_nothing_while_records_are_deleted() {
    let host = Setup::new().start().await;
    let slug = keyed(&host).await;
    let (org, project) = (host.as_org(), host.as_project());
    let by_id = async |client: &Client, path: &str, id: &Value| {
        client
            .delete(&format!("{path}/{}", id.as_str().unwrap()))
            .await
            .expect(200);
    };
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    for query in ["?", "?order_by=updated_at&", "?order_direction=asc&"] {
        let before = project.get("/connected_accounts").await.expect(200)["total_items"]
            .as_u64()
            .unwrap() as usize;
        for _ in before..LISTED_RECORDS {
            account(&project, &config, "default").await;
        }
        let delete = async |item: &Value| by_id(&project, "/connected_accounts", &item["id"]).await;
        let read = read_and_delete(
            &project,
            &format!("/connected_accounts{query}"),
            "items",
            delete,
        )
        .await;
        assert_eq!(read, LISTED_RECORDS, "{query}");
    }
    for _ in 1..LISTED_RECORDS {
        project.auth_config(&slug, "API_KEY", json!({})).await;
    }
    let delete = async |item: &Value| by_id(&project, "/auth_configs", &item["id"]).await;
    assert_eq!(
        read_and_delete(&project, "/auth_configs?", "items", delete).await,
        LISTED_RECORDS
    );
    for _ in 1..LISTED_RECORDS {
        host.new_project().await;
    }
    let delete = async |item: &Value| by_id(&org, "/org/owner/project", &item["id"]).await;
    assert_eq!(
        read_and_delete(&org, "/org/owner/project/list?", "data", delete).await,
        LISTED_RECORDS
    );
    for _ in 0..LISTED_RECORDS {
        host.new_member("viewer").await;
    }
    let delete = async |item: &Value| by_id(&org, "/org/members", &item["id"]).await;
    assert_eq!(
        read_and_delete(&org, "/org/members?", "items", delete).await,
        LISTED_RECORDS
    );
}

#[tokio::test]
async fn cursors_that_count_pages_are_still_read() {
    let project = Host::shared().await.new_project().await;
    let config = project
        .auth_config(given::keyed().await, "API_KEY", json!({}))
        .await;
    let mut made = Vec::new();
    for user in ["a", "b", "c"] {
        made.insert(0, account(&project, &config, user).await);
    }
    // The second page of two: an older cursor without a page token, and one with the time of the
    // first page.
    for cursor in ["Mi0y", "Mi0yLTk5OTk5OTk5OTk5OTk="] {
        let page = project
            .get(&format!("/connected_accounts?cursor={cursor}"))
            .await
            .expect(200);
        let ids: Vec<_> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].clone())
            .collect();
        assert_eq!(
            (ids, &page["current_page"], &page["total_pages"]),
            (vec![json!(made[2])], &json!(2), &json!(2))
        );
        assert_eq!(page["next_cursor"], Value::Null);
    }
    let first = project.get("/connected_accounts?limit=2").await.expect(200);
    let foreign = format!(
        "/connected_accounts?order_by=updated_at&cursor={}",
        percent(first["next_cursor"].as_str().unwrap())
    );
    assert_eq!(
        project.get(&foreign).await.expect(400)["error"]["slug"],
        "Request_CursorInvalid"
    );
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
    let host = on_its_own_database()
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
    project
        .delete(&format!("/connected_accounts/{gone}"))
        .await
        .expect(200);
    let link = project
        .post(
            "/connected_accounts/link",
            &json!({ "auth_config_id": config, "user_id": "u" }),
        )
        .await;
    let link = link.expect(201)["redirect_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let begun = own.begin(&project, "https://app.example/done").await;
    let back = own.visit(&begun).await;
    let (asked, bytes) = (
        files::ask(&project, &slug, b"bytes", json!({}))
            .await
            .expect(200),
        b"bytes".to_vec(),
    );
    let put = project
        .exchange(Method::PUT, files::url(&asked), &[], bytes.clone())
        .await;
    assert_eq!(put.status, 200);
    let asked = files::ask(&project, &slug, b"bytes", json!({}))
        .await
        .expect(200);
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
    assert_eq!(
        own.issuer.granted("authorization_code"),
        granted,
        "the code is not spent"
    );
    assert_eq!(given::open(&project, &file).await.status, 404);
    assert_eq!(
        project
            .exchange(Method::PUT, files::url(&asked), &[], bytes)
            .await
            .status,
        404
    );
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
    assert_eq!(
        later(1).await,
        later(2).await,
        "nothing of the project is renewed"
    );

    database.say("drop trigger cut_off on credentials");
    wait_until("the job has erased the rest", || async {
        secrets_of(database, &id) == 0
    })
    .await;
    neighbor.get("/connected_accounts").await.expect(200);
}

#[tokio::test]
async fn deleted_project_leaves_no_record() {
    let host = on_its_own_database().start().await;
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
