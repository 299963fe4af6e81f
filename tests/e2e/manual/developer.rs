//! The page of application developers: each of its blocks is run against a server.

use harness::{
    Browser, Inbox,
    inbox::INBOX_ORIGIN,
    manual::{Step, steps},
    wait_until,
};
use serde_json::Value;

use super::{
    answers, known_by, left, page,
    providers::{USER_CONNECTS, github, news, resend},
    served,
};
use crate::documents;

/// Enters a key on the page of a link, as its user does.
fn connect_in_browser(link: &Value) {
    let mut browser = Browser::open(link["redirect_url"].as_str().unwrap());
    browser.order("type", &format!("re_{}", harness::secret()));
    browser.order("send", "Enter");
    assert_eq!(browser.says("alert"), "", "{}", browser.page);
}

/// Returns a part of a block's output, if the output is not JSON.
fn printed_text(mark: &str) -> Option<&'static str> {
    match mark {
        "toolhost oauth-apps set" => Some("projects can connect accounts of github"),
        "= INITIATED" => Some("ACTIVE"),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_developer_page_work() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::start();
    let rewrite = format!(
        "https://api.resend.com={},{INBOX_ORIGIN}={},https://hacker-news.firebaseio.com={},{}",
        resend(),
        inbox.origin,
        news(),
        github()
    );
    let toolkits = documents::folder_with(&["documents", "github", "hackernews", "resend"]);
    let mut shell = served(folder.path(), toolkits.path(), &rewrite).await;
    shell.run(". ./toolhost-data.env").await;
    shell.run(USER_CONNECTS).await;
    shell
        .run("GITHUB_CLIENT_ID=client GITHUB_CLIENT_SECRET=a-secret")
        .await;
    let page = steps(&page("docs/developer.md"));
    assert_eq!(left(&page), ["it needs an assistant"]);
    let mut ran = Vec::new();
    for step in &page {
        let Step::Type(commands) = step else { continue };
        let marks = [
            "HACKERNEWS_NEW_STORY",
            "toolhost oauth-apps set",
            "use_service_managed_auth",
            "= INITIATED",
            "GITHUB_GET_ME",
            "auth_configs",
            "connected_accounts/link",
            "RESEND_LIST_DOMAINS",
            "grace",
            "files/upload/request",
            "mcp/servers",
            "tools/call",
            "toolhost events tail",
        ];
        let mark = known_by(commands, &marks);
        ran.push(mark);
        if mark == "toolhost events tail" {
            shell.leave(commands, "HACKERNEWS_NEW_STORY").await;
            continue;
        }
        let said = shell.run(commands).await;
        if let Some(text) = printed_text(mark) {
            assert!(said.contains(text), "{said}");
            continue;
        }
        let said = answers(&said);
        let known = match mark {
            "auth_configs" => {
                let id = said[0]["auth_config"]["id"].as_str().unwrap();
                format!("AUTH_CONFIG_ID={id} RESEND_API_KEY=re_0123456789")
            }
            "mcp/servers" => {
                let line = said[0]["commands"]["claude"].as_str().unwrap();
                assert!(line.starts_with("claude mcp add --transport http"));
                format!("MCP_URL='{}'", said[0]["mcp_url"].as_str().unwrap())
            }
            "use_service_managed_auth" => {
                format!("connects '{}'", said[0]["redirect_url"].as_str().unwrap())
            }
            _ => "true".to_owned(),
        };
        shell.run(&known).await;
        match mark {
            "connected_accounts/link" => connect_in_browser(&said[0]),
            "GITHUB_GET_ME" => assert_eq!(said[0]["data"]["login"], "octocat"),
            "RESEND_LIST_DOMAINS" => {
                let domains = &said[0]["data"]["data"];
                assert_eq!(domains[0]["name"], "mail.acme.com", "{said:?}");
                assert!(said[1].to_string().contains(mark), "{said:?}");
            }
            "grace" => assert_eq!(said[0]["connectionData"]["val"]["status"], "ACTIVE"),
            "files/upload/request" => {
                let hash = said.last().unwrap();
                assert_eq!(hash["data"]["size"], "Hello\n".len(), "{said:?}");
            }
            "tools/call" => {
                let result = &said[0]["result"]["structuredContent"];
                assert_eq!(result["markdown"], "**Hello**", "{said:?}");
            }
            "HACKERNEWS_NEW_STORY" => {
                assert_eq!(said.len(), 3, "{said:?}");
                let arrived = async || !inbox.received().is_empty();
                wait_until("a new story arrives", arrived).await;
                let message = inbox.received().remove(0);
                assert!(message.is_signed_with(said[0]["secret"].as_str().unwrap()));
                assert_eq!(message.json()["data"]["title"], "A story");
            }
            _ => {}
        }
    }
    assert_eq!(ran.len(), 13, "{ran:?}");
}
