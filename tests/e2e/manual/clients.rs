//! The page with the same calls in three languages: each of them runs against a server.

use std::{fs, path::Path};

use harness::{
    host::Setup,
    manual::{Shell, Step, steps},
};
use serde_json::{Value, json};

use super::{
    REPOSITORY_ROOT, page,
    providers::{USER_CONNECTS, github},
    variables_with_node,
};
use crate::documents;

/// Login of the user at the provider.
const PROVIDER_LOGIN: &str = "octocat";

/// Asserts that the tests use the versions of the libraries that the page installs.
fn assert_versions(package: &str) {
    let tested = fs::read_to_string(page("tests/node/package.json")).unwrap();
    let [shown, tested] =
        [package, &tested].map(|text| -> Value { serde_json::from_str(text).unwrap() });
    for group in ["dependencies", "overrides"] {
        for (name, version) in shown[group].as_object().unwrap() {
            assert_eq!(tested[group][name], *version, "{name}");
        }
    }
    let text = fs::read_to_string(page("docs/clients.md")).unwrap();
    assert!(text.contains("pip install composio==0.30.0"));
}

/// Runs a program that prints a link, connects the account, and waits until it prints the user.
async fn program_works(shell: &mut Shell, command: &str) {
    let terminal = shell.leave(command, "/link/").await;
    shell.until(&terminal, "\nhttp").await;
    let printed = fs::read_to_string(&terminal).unwrap();
    assert!(printed.contains("GITHUB_LIST_ISSUES"), "{printed}");
    let link = printed.lines().find(|line| line.starts_with("http"));
    shell.run(&format!("connects '{}'", link.unwrap())).await;
    shell.until(&terminal, PROVIDER_LOGIN).await;
    let printed = fs::read_to_string(&terminal).unwrap();
    assert!(printed.contains("ACTIVE"), "{printed}");
}

#[tokio::test]
async fn calls_of_clients_page_work() {
    let folder = tempfile::tempdir().unwrap();
    let toolkits = documents::folder_with(&["github"]);
    let host = Setup::new()
        .with("operator_word", "composio")
        .with("sandbox.compile_cpu_s", "600")
        .with("toolkits", toolkits.path().to_str().unwrap())
        .with("net.rewrite", github())
        .start()
        .await;
    let app = json!({ "client_id": "client", "client_secret": harness::secret() });
    host.as_org()
        .put_json("/org/oauth_apps/github", &app)
        .await
        .expect(200);
    let mut known = variables_with_node();
    known.extend([
        ("TOOLHOST_URL", host.url.clone()),
        ("TOOLHOST_API_KEY", host.project_key.clone()),
    ]);
    let mut shell = Shell::open(folder.path(), &known);
    shell.run(USER_CONNECTS).await;
    let modules = Path::new(REPOSITORY_ROOT).join("target/parts/node/node_modules");
    shell.run(&format!("ln -s '{}' .", modules.display())).await;

    let steps = steps(&page("docs/clients.md"));
    let [Step::Type(begin), Step::Type(end), files @ ..] = steps.as_slice() else {
        panic!("the page begins with curl: {steps:?}");
    };
    let said = shell.run(begin).await;
    assert!(said.contains("GITHUB_LIST_ISSUES"), "{said}");
    shell
        .run(r#"connects "$(jq -r .redirect_url <<<"$LINK")""#)
        .await;
    let said = shell.run(end).await;
    assert!(
        said.contains("ACTIVE") && said.contains(PROVIDER_LOGIN),
        "{said}"
    );

    for file in files {
        match file {
            Step::Write(path, package) if path == "package.json" => assert_versions(package),
            Step::Write(..) => {}
            _ => panic!("this block is new: {file:?}"),
        }
        shell.follow(file).await;
    }
    let python = Path::new(REPOSITORY_ROOT).join("target/parts/composio-0.30.0/bin/python");
    program_works(&mut shell, &format!("'{}' accounts.py", python.display())).await;
    program_works(&mut shell, "node accounts.ts").await;
}
