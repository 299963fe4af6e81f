//! Older versions of recipes: how many are kept, and when they are erased.

use harness::{Host, Postgres, wait_until};
use serde_json::{Value, json};

use super::{Given, recipe};
use crate::given;

#[tokio::test]
async fn older_versions_of_recipe_are_kept() {
    let given = Given::new(Host::shared().await).await;
    let slug = "RECIPE_NUMBERED";
    let store = async |number: usize| {
        let step = given.step("one", &given.read, &format!("/echo/{number}"));
        let stored = given.upsert(recipe("Numbered", json!([step]))).await;
        stored.expect(200)["data"]["version"].clone()
    };
    let get = async |version: usize| {
        let named = json!({ "slug": slug, "version": version });
        given.get(named).await
    };
    let check = async |version: usize| {
        let found = get(version).await.expect(200);
        let found = &found["data"]["recipe"];
        assert_eq!(found["version"], version);
        let url = found["steps"][0]["arguments"]["url"].as_str().unwrap();
        assert!(url.ends_with(&format!("/echo/{version}")), "{found:#}");
        assert!(found["updated_at"].is_string(), "{found:#}");
    };
    for number in 1..=22 {
        assert_eq!(store(number).await, number);
    }
    for version in [3, 21, 22] {
        check(version).await;
    }
    for version in [2, 23] {
        let refused = get(version).await;
        refused.expect_error(404, "ToolRouterV2_RecipeNotFound");
    }
    given.get(json!({ "version": 3 })).await.expect(400);
    let deleted = given.upsert(json!({ "slug": slug, "delete": true })).await;
    deleted.expect(200);
    get(21).await.expect(404);
    for number in [1, 2] {
        assert_eq!(store(number).await, number);
    }
    check(1).await;
    get(21).await.expect(404);
}

#[tokio::test]
async fn deleted_project_leaves_no_recipe() {
    let setup = given::with_application().on(Postgres::shared().database(None));
    let host = setup.start().await;
    let (id, project) = given::project(&host, json!({})).await;
    let given = Given::with(&host, project).await;
    let stored = recipe("A", json!([given.step("one", &given.read, "/echo/a")]));
    for _ in 0..2 {
        given.upsert(stored.clone()).await.expect(200);
    }
    let ran = given.execute("RECIPE_A", json!({})).await.expect(200);
    assert_eq!(ran["error"], Value::Null, "{ran:#?}");
    let tables = ["recipes", "recipe_versions", "recipe_runs", "recipe_calls"];
    let count = |table: &str| {
        let count = format!("select count(*) from {table}");
        host.setup().database().say(&count)[0].clone()
    };
    let counts = || tables.map(count);
    assert_eq!(counts(), ["1"; 4]);
    assert_eq!(count("recipe_plans"), "0", "an ended run keeps no plan");
    host.delete_project(&id).await;
    wait_until("the recipe is erased", async || counts() == ["0"; 4]).await;
}
