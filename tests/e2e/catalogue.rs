//! Lists of the catalog: filters, order and pages, and the OAuth scopes that tools need.

use std::collections::BTreeSet;

use harness::{Answer, Client, Dice, Guest, Host, fake_app::percent, guest, host::Setup};
use serde_json::{Value, json};

use crate::given;

const DRAWN_WORDS: [&str; 5] = ["letter", "parcel", "calendar", "invoice", "needle"];
const DRAWN_TAGS: [&str; 3] = ["important", "daily", "Beta"];
const DRAWN_SCOPES: [&str; 3] = ["read", "write", "admin:all"];

/// A tool in the model of the test.
#[derive(Debug, Clone)]
struct Tool {
    slug: String,
    toolkit: String,
    text: String,
    tags: Vec<&'static str>,
    read_only: bool,
    scopes: Vec<&'static str>,
}

/// Returns a random subset, each element with a probability of one half.
fn some(dice: &mut Dice, all: &[&'static str]) -> Vec<&'static str> {
    all.iter().copied().filter(|_| dice.below(2) == 0).collect()
}

/// Publishes random toolkits and returns their tools in list order: newest toolkit first.
async fn published(host: &Host, dice: &mut Dice, toolkits: u64) -> Vec<Tool> {
    let mut all: Vec<Tool> = Vec::new();
    for _ in 0..toolkits {
        let (slug, mut manifest) = given::manifest();
        let mut tools = Vec::new();
        for number in 0..=dice.below(4) {
            tools.push(Tool {
                slug: format!("{}_T{number}", slug.to_uppercase()),
                toolkit: slug.clone(),
                text: format!("Sends one {}.", DRAWN_WORDS[dice.below(5) as usize]),
                tags: some(dice, &DRAWN_TAGS),
                read_only: dice.below(2) == 0,
                scopes: some(dice, &DRAWN_SCOPES),
            });
        }
        let record = |tool: &Tool| {
            json!({
                "slug": tool.slug, "name": "Send", "description": tool.text, "tags": tool.tags, "scopes": tool.scopes,
                "hints": { "read_only": tool.read_only }, "input": { "type": "object" }, "output": { "type": "object" },
            })
        };
        manifest["tools"] = tools.iter().map(record).collect();
        host.publish(Guest::echo().component(), &manifest).await;
        tools.append(&mut all);
        all = tools;
    }
    all
}

/// A query condition, and the equivalent predicate.
type Condition = (String, Box<dyn Fn(&Tool) -> bool>);

fn condition(dice: &mut Dice, toolkits: &[String]) -> Condition {
    let pick = |dice: &mut Dice, all: &[&'static str]| all[dice.below(all.len() as u64) as usize];
    match dice.below(5) {
        0 => {
            let wanted =
                [0; 2].map(|_| toolkits[dice.below(toolkits.len() as u64) as usize].clone());
            (
                format!("toolkit_slug={}", wanted.join(",")),
                Box::new(move |tool| wanted.contains(&tool.toolkit)),
            )
        }
        1 => {
            let wanted = [
                pick(dice, &DRAWN_TAGS),
                pick(dice, &["readOnlyHint", "none"]),
            ];
            (
                format!("tags={}", wanted.join("&tags=")),
                Box::new(move |tool| {
                    tool.tags.contains(&wanted[0])
                        || (wanted[1] == "readOnlyHint" && tool.read_only)
                }),
            )
        }
        2 => {
            let wanted = dice.below(2) == 0;
            (
                format!("important={wanted}"),
                Box::new(move |tool| tool.tags.contains(&"important") == wanted),
            )
        }
        3 => {
            let wanted = [pick(dice, &DRAWN_SCOPES), pick(dice, &DRAWN_SCOPES)];
            (
                format!("scopes[]={}&scopes[]={}", wanted[0], wanted[1]),
                Box::new(move |tool| wanted.iter().any(|scope| tool.scopes.contains(scope))),
            )
        }
        _ => {
            let word = pick(dice, &DRAWN_WORDS);
            (
                format!("search={}", word.to_uppercase()),
                Box::new(move |tool| tool.text.contains(word)),
            )
        }
    }
}

/// Returns a member of each item of a page.
fn members(page: &Answer, name: &str) -> Vec<String> {
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|item| item[name].as_str().unwrap().to_owned())
        .collect()
}

fn slugs(page: &Answer) -> Vec<String> {
    members(page, "slug")
}

/// Returns the slugs on the first page of a list.
async fn listed(client: &Client, path: &str) -> Vec<String> {
    slugs(&client.get(path).await.expect(200))
}

async fn next_page(client: &Client, path: &str, cursor: &str) -> Answer {
    let path = format!("{path}&cursor={}", percent(cursor));
    client.get(&path).await.expect(200)
}

/// Returns the slugs of all pages, beginning with the given first page.
async fn rest(client: &Client, path: &str, first: &Answer) -> Vec<String> {
    let mut all = slugs(first);
    let (mut next, mut number) = (first["next_cursor"].clone(), 1);
    let total = &first["total_items"];
    while let Some(cursor) = next.as_str() {
        let page = next_page(client, path, cursor).await;
        number += 1;
        assert_eq!(
            (&page["total_items"], &page["current_page"]),
            (total, &number.into()),
            "{path}: {page:#?}"
        );
        all.extend(slugs(&page));
        next = page["next_cursor"].clone();
    }
    assert_eq!(first["total_pages"], json!(number), "{path}");
    all
}

#[tokio::test]
async fn tool_lists_match_a_plain_filter() {
    let (host, seed) = (Setup::new().start().await, Dice::seed());
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let tools = published(&host, &mut dice, 7).await;
    let toolkits: BTreeSet<_> = tools.iter().map(|tool| tool.toolkit.clone()).collect();
    let toolkits: Vec<_> = toolkits.into_iter().collect();
    let project = host.as_project();
    for _ in 0..60 {
        let conditions: Vec<_> = (0..dice.below(4))
            .map(|_| condition(&mut dice, &toolkits))
            .collect();
        // A repeated parameter adds values or takes the last one, depending on the parameter. Each
        // parameter is therefore used once.
        let names: BTreeSet<_> = conditions
            .iter()
            .map(|(text, _)| text[..4].to_owned())
            .collect();
        if names.len() < conditions.len() {
            continue;
        }
        let matching = tools
            .iter()
            .filter(|tool| conditions.iter().all(|(_, lets)| lets(tool)));
        let mut expected: Vec<_> = matching.map(|tool| tool.slug.clone()).collect();
        let query: Vec<_> = conditions.iter().map(|(text, _)| text.as_str()).collect();
        let path = format!("/tools?limit={}&{}", 1 + dice.below(6), query.join("&"));
        let first = project.get(&path).await.expect(200);
        let mut found = rest(&project, &path, &first).await;
        if path.contains("search=") {
            // A search ranks by more than the words of the reference.
            found.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(found, expected, "{path}");
    }
}

#[tokio::test]
async fn toolkit_lists_match_a_plain_filter() {
    let (host, seed) = (Setup::new().start().await, Dice::seed());
    println!("seed {seed}");
    let mut dice = Dice::new(seed);
    let mut toolkits = Vec::new();
    for _ in 0..7 {
        let mut manifest = guest::manifest(&given::slug());
        manifest["categories"] = json!(some(&mut dice, &["mail-boxes", "files"]));
        let letter = ["b", "A", "c"][dice.below(3) as usize];
        manifest["name"] = json!(format!("{letter}{}", dice.below(1_000)));
        manifest["description"] = json!(DRAWN_WORDS[dice.below(5) as usize]);
        host.publish(Guest::echo().component(), &manifest).await;
        let gone = dice.below(3) == 0;
        if gone {
            let deprecated = host.as_org().delete(&guest::address(&manifest)).await;
            deprecated.expect(200);
        }
        toolkits.insert(0, (manifest, gone));
    }
    let text = |manifest: &Value, field: &str| manifest[field].as_str().unwrap().to_owned();
    for _ in 0..40 {
        let category = [
            "",
            "mail-boxes",
            "MAIL-boxes",
            "Mail boxes",
            "files",
            "shoes",
        ][dice.below(6) as usize];
        let (search, gone) = (
            if dice.below(2) == 0 {
                ""
            } else {
                DRAWN_WORDS[dice.below(5) as usize]
            },
            dice.below(2) == 0,
        );
        let by_name = dice.below(2) == 0;
        let mut expected: Vec<_> = toolkits
            .iter()
            .filter(|(manifest, is_gone)| {
                let folded = category.to_lowercase().replace(' ', "-");
                (category.is_empty()
                    || manifest["categories"]
                        .as_array()
                        .unwrap()
                        .contains(&json!(folded)))
                    && (search.is_empty() || text(manifest, "description") == search)
                    && (gone || !is_gone)
            })
            .collect();
        if by_name {
            expected.sort_by_key(|(manifest, _)| {
                (
                    text(manifest, "name").to_lowercase(),
                    text(manifest, "slug"),
                )
            });
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(manifest, _)| text(manifest, "slug"))
            .collect();
        let order = if by_name {
            "&sort_by=alphabetically"
        } else {
            ""
        };
        let of_category = match category {
            "" => String::new(),
            category => format!("&category={}", category.replace(' ', "%20")),
        };
        let path = format!(
            "/toolkits?limit={}&search={search}&include_deprecated={gone}{order}{of_category}",
            1 + dice.below(4),
        );
        let project = host.as_project();
        let first = project.get(&path).await.expect(200);
        assert_eq!(first["total_items"], expected.len(), "{path}");
        assert_eq!(rest(&project, &path, &first).await, expected, "{path}");
    }
}

#[tokio::test]
async fn publishing_between_pages_skips_and_repeats_nothing() {
    let (host, seed) = (Setup::new().start().await, Dice::seed());
    println!("seed {seed}");
    let tools = published(&host, &mut Dice::new(seed), 4).await;
    let expected: Vec<_> = tools.iter().map(|tool| tool.slug.clone()).collect();
    let project = host.as_project();
    let newest = project.clone().with_newer_prefix();
    let (one_tool, one_toolkit) = ("/tools?limit=1", "/toolkits?limit=1&sort_by=alphabetically");
    let first_tool = newest.get(one_tool).await.expect(200);
    let first_toolkit = project.get(one_toolkit).await.expect(200);
    let before = listed(&project, "/toolkits?limit=100&sort_by=alphabetically").await;
    published(&host, &mut Dice::new(seed + 1), 1).await;
    let mut newer = guest::manifest(&tools[0].toolkit);
    newer["version"] = json!("20260202_00");
    host.publish(Guest::constant().component(), &newer).await;
    assert_eq!(rest(&newest, one_tool, &first_tool).await, expected);
    assert_eq!(rest(&project, one_toolkit, &first_toolkit).await, before);
    let now = listed(&newest, "/tools?limit=100").await;
    assert!(
        now.contains(&guest::tool(&tools[0].toolkit)),
        "the next list has what is new: {now:?}"
    );
}

#[tokio::test]
async fn insertion_between_pages_skips_and_repeats_nothing() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = async |user: &str| {
        given::auth_config(&project).await;
        given::made_account(&project, &config, user, &harness::secret()).await;
    };
    for user in ["a", "b", "c", "d"] {
        made(user).await;
    }
    for path in ["/auth_configs?limit=2", "/connected_accounts?limit=2"] {
        let whole = project.get(&path.replace("=2", "=100")).await.expect(200);
        let expected = members(&whole, "id");
        let mut page = project.get(path).await.expect(200);
        let mut told = members(&page, "id");
        while let Some(cursor) = page["next_cursor"].as_str() {
            made("later").await;
            page = next_page(&project, path, cursor).await;
            assert_eq!(page["total_items"], json!(expected.len()), "{path}");
            told.extend(members(&page, "id"));
        }
        assert_eq!(told, expected, "{path}");
    }
}

#[tokio::test]
async fn search_finds_all_tools_with_its_words() {
    let host = Host::shared().await;
    let (slug, word) = (given::slug(), format!("w{}", harness::unique(4)));
    let mut manifest = guest::manifest(&slug);
    let tool = |slug: String, name: &str, description: &str| json!({ "slug": slug, "name": name, "description": description, "input": { "type": "object" }, "output": {} });
    let named = |end: &str| format!("{}_{}", slug.to_uppercase(), end.to_uppercase());
    manifest["tools"] = json!([
        tool(named("A"), "Post", &format!("Posts a {word}.")),
        tool(named("B"), &format!("Post {word}"), "Posts."),
        tool(named(&word), "Post", "Posts."),
        tool(named("C"), "Post", "Posts."),
    ]);
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.new_project().await;
    let found = listed(&project, &format!("/tools?query={word}%20POST")).await;
    assert_eq!(found[0], named(&word));
    let expected = [named(&word), named("A"), named("B")];
    let found: BTreeSet<_> = found.into_iter().take(3).collect();
    assert_eq!(found, BTreeSet::from(expected));
    let absent = format!("/tools?query={}", harness::unique(12));
    assert!(listed(&project, &absent).await.is_empty());
}

#[tokio::test]
async fn invalid_cursor_is_refused() {
    let project = Host::shared().await.new_project().await;
    given::shared_echo().await;
    given::keyed().await;
    let first = project.get("/toolkits?limit=1").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let one = next_page(&project, "/toolkits?", cursor).await;
    let other = next_page(&project, "/toolkits?limit=50", cursor).await;
    assert_eq!(one["items"].as_array().unwrap().len(), 1);
    assert_eq!(one["current_page"], 2);
    assert_eq!(slugs(&one), slugs(&other), "the cursor's own limit counts");
    // A cursor of page and limit is one that clients may write themselves.
    let plain = project.get("/toolkits?cursor=MS0x").await.expect(200);
    assert_eq!(plain["items"].as_array().unwrap().len(), 1);
    for wrong in ["x", "MS0xLXg", "MS0xLW5vdGhpbmc%3D", "MC0x", "%20"] {
        let answer = project.get(&format!("/toolkits?cursor={wrong}")).await;
        assert!(
            wrong == "%20" || answer.status == 400,
            "{wrong}: {answer:#?}"
        );
    }
    let wrong = json!({ "cursor": "MS0xLW5vdGhpbmc=" });
    let refused = project.post("/logs/tool_execution", &wrong).await;
    refused.expect(400);
}

#[tokio::test]
async fn usage_order_of_toolkits_survives_a_restart() {
    let host = Setup::new().start().await;
    let mut tools = Vec::new();
    for _ in 0..3 {
        tools.push(given::echo(&host).await);
    }
    let project = host.as_project();
    for (tool, runs) in [(&tools[1], 3), (&tools[0], 1)] {
        for _ in 0..runs {
            project.execute(tool, json!({})).await.expect(200);
        }
    }
    let by_usage = "/toolkits?sort_by=usage";
    let order = [1, 0, 2].map(|place| tools[place].trim_end_matches("_RUN").to_lowercase());
    assert_eq!(listed(&project, by_usage).await, order);
    let host = host.terminate().await.0.start().await;
    let project = host.as_project();
    assert_eq!(listed(&project, by_usage).await, order);
    let several =
        json!({ "toolkits": [order[2], order[0], "no_such_toolkit"], "sort_by": "usage" });
    let several = project.post("/toolkits/multi", &several).await.expect(200);
    assert_eq!(slugs(&several), [order[0].clone(), order[2].clone()]);
}

#[tokio::test]
async fn named_toolkits_are_listed_even_if_deprecated() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, mut manifest) = given::manifest();
    let category = format!("kind-{}", harness::unique(4));
    manifest["categories"] = json!([category]);
    host.publish(Guest::echo().component(), &manifest).await;
    let named = async |body: Value| {
        let several = project.post("/toolkits/multi", &body).await;
        slugs(&several.expect(200))
    };
    let upper = json!({ "toolkits": [slug.to_uppercase()] });
    let of_category = json!({ "category": category });
    let of_project = json!({ "toolkits": [slug], "managed_by": "project" });
    assert_eq!(named(upper).await, [slug.as_str()]);
    assert_eq!(named(of_category.clone()).await, [slug.as_str()]);
    assert!(named(of_project).await.is_empty());
    let by_name = category.replacen("kind-", "Kind%20", 1);
    let by_name = format!("/toolkits?category={by_name}");
    assert_eq!(listed(&project, &by_name).await, [slug.as_str()]);
    let deprecated = host.as_org().delete(&guest::address(&manifest)).await;
    deprecated.expect(200);
    assert!(named(of_category).await.is_empty());
    assert_eq!(named(json!({ "toolkits": [slug] })).await, [slug.as_str()]);
    let search = format!("/toolkits?search={slug}");
    assert!(listed(&project, &search).await.is_empty());
    let all = format!("{search}&include_deprecated=true");
    assert_eq!(listed(&project, &all).await, [slug]);
    for wrong in [
        json!({ "sort_by": "colour" }),
        json!({ "managed_by": "nobody" }),
    ] {
        project.post("/toolkits/multi", &wrong).await.expect(400);
    }
}

#[tokio::test]
async fn version_selector_applies_globally_or_per_toolkit() {
    let host = Host::shared().await;
    let project = host.new_project().await.with_newer_prefix();
    let slugs = [given::slug(), given::slug()];
    for slug in &slugs {
        for version in ["20260101_00", "20260202_00"] {
            let mut manifest = guest::manifest(slug);
            manifest["version"] = json!(version);
            host.publish(Guest::echo().component(), &manifest).await;
        }
    }
    let versions = async |query: &str| {
        let path = format!("/tools?toolkit_slug={}&{query}", slugs.join(","));
        members(&project.get(&path).await.expect(200), "version")
    };
    let (old, new) = ("20260101_00", "20260202_00");
    // The second toolkit was published last and is listed first.
    let of_second = format!("toolkit_versions%5B{}%5D=20260101_00", slugs[1]);
    for (query, expected) in [
        ("", &[new, new][..]),
        ("toolkit_versions=20260101_00", &[old, old]),
        ("toolkit_versions=00000000_00", &[old, old]),
        (&of_second, &[old, new]),
        ("toolkit_versions=20300101_00", &[]),
    ] {
        assert_eq!(versions(query).await, expected, "{query}");
    }
    let of_first = format!("toolkit_versions[{}]=20260101_00", slugs[0]);
    for (query, expected) in [
        ("toolkit_versions=20260101_00&version=latest", new),
        (&of_first, old),
    ] {
        let path = format!("/tools/{}?{query}", guest::tool(&slugs[0]));
        let tool = project.get(&path).await.expect(200);
        assert_eq!(tool["version"], expected, "{query}");
    }
}

#[tokio::test]
async fn tool_scopes_are_listed_and_recommended() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, mut manifest) = given::manifest();
    manifest["auth"] = json!([{
        "mode": "OAUTH2", "name": "OAuth",
        "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
        "oauth2": {
            "authorize_url": "https://api.example.com/authorize", "token_url": "https://api.example.com/token",
            "scopes": ["offline"],
        },
    }]);
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["tools"][0]["scopes"] = json!(["write", "read"]);
    let mut second = manifest["tools"][0].clone();
    second["slug"] = json!(format!("{}_SECOND", slug.to_uppercase()));
    second["scopes"] = json!([]);
    manifest["tools"]
        .as_array_mut()
        .unwrap()
        .push(second.clone());
    host.publish(Guest::echo().component(), &manifest).await;

    let both = json!([guest::tool(&slug), second["slug"]]);
    let required = "/tools/scopes/required";
    let body = json!({ "tools": both, "version": "latest" });
    let needed = project.post(required, &body).await.expect(200);
    assert_eq!(needed["scopes_required"], json!(["read", "write"]));
    let each = &needed["per_tool_requirements"];
    let of_first = json!({ "all_of": ["write", "read"] });
    for (index, expected) in [of_first, Value::Null].into_iter().enumerate() {
        let expected = json!({ "tool": both[index], "scope_requirements": expected });
        assert_eq!(each[index], expected);
    }
    let unknown = json!({ "tools": ["NO_SUCH_TOOL"] });
    let refused = project.post(required, &unknown).await.expect(400);
    assert!(
        refused.problems()[0].contains("NO_SUCH_TOOL"),
        "{refused:?}"
    );
    let none = json!({ "tools": [] });
    project.post(required, &none).await.expect(400);

    let grant_context = |slug: &str| format!("/toolkits/{slug}/scopes/grant_context");
    let context = project.get(&grant_context(&slug)).await.expect(200);
    assert_eq!(context["auth_scheme"], "OAUTH2");
    assert_eq!(context["toolkit_version"], "20260101_00");
    assert_eq!(
        (
            &context["grant_context_dimensions"],
            &context["default_grant_context"]
        ),
        (&json!([]), &json!({}))
    );
    let other_scheme = format!("{}?auth_scheme=API_KEY", grant_context(&slug));
    project.get(&other_scheme).await.expect(400);
    let nowhere = grant_context("no_such_toolkit");
    project.get(&nowhere).await.expect(404);

    let path = format!("/toolkits/{slug}/scopes/recommended");
    let recommend = async |body: Value| {
        let recommended = project.post(&path, &body).await;
        recommended.expect(200)["scopes"].clone()
    };
    let scopes = recommend(json!({ "tools": [guest::tool(&slug)] })).await;
    assert_eq!(
        scopes["least_privilege"],
        json!(["offline", "read", "write"])
    );
    assert_eq!(scopes["fewest"], scopes["least_privilege"]);
    assert_eq!(scopes["conditional"], json!([]));
    let some = json!({ "tools": [guest::tool(&slug)], "include": ["extra"], "exclude": ["write"] });
    assert_eq!(
        recommend(some).await["fewest"],
        json!(["extra", "offline", "read"])
    );
    let some = json!({ "tools": [second["slug"]], "include": ["extra"], "available_scopes": ["offline", "read"] });
    assert_eq!(recommend(some).await["fewest"], json!(["offline"]));
    project.post(&path, &unknown).await.expect(400);

    let detail = project.get(&format!("/toolkits/{slug}")).await.expect(200);
    let scheme = &detail["auth_config_details"][0];
    assert_eq!(scheme["required_scopes"], json!(["offline"]));
    let fields = &scheme["fields"]["auth_config_creation"]["required"];
    let names = [0, 1].map(|index| &fields[index]["name"]);
    assert_eq!(names, ["client_id", "client_secret"]);
    assert_eq!(fields[2], Value::Null);
    assert_eq!(
        scheme["deprecated_auth_provider_details"]["token_url"],
        "https://api.example.com/token"
    );
}
