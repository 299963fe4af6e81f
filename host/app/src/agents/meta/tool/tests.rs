//! Tests of `tool`.

use super::*;
use crate::agents::{ManageConnections, Workbench};

fn slugs(config: &Config) -> Vec<&'static str> {
    MetaTool::in_force(config).map(MetaTool::slug).collect()
}

#[test]
fn switches_of_a_session_remove_meta_tools() {
    let connected = |enabled, wait_for_connections| Config {
        manage_connections: ManageConnections {
            enabled,
            wait_for_connections,
            ..ManageConnections::default()
        },
        ..Config::default()
    };
    let with_proxy = Config {
        proxy_execute: Some(true),
        ..connected(true, true)
    };
    assert!(slugs(&with_proxy).contains(&"SERVICE_PROXY_EXECUTE"));
    let all = slugs(&connected(true, true));
    assert_eq!(all.len(), 9);
    let without = |config: &Config| -> Vec<_> {
        let left = slugs(config);
        let gone = all.iter().filter(|slug| !left.contains(slug));
        gone.copied().collect()
    };
    assert_eq!(
        without(&Config::default()),
        ["SERVICE_WAIT_FOR_CONNECTIONS"]
    );
    let unmanaged = ["SERVICE_MANAGE_CONNECTIONS", "SERVICE_WAIT_FOR_CONNECTIONS"];
    assert_eq!(without(&connected(false, true)), unmanaged);
    let rest = Config {
        workbench: Workbench {
            enabled: false,
            ..Workbench::default()
        },
        search_disabled: true,
        multi_execute_disabled: true,
        ..connected(true, true)
    };
    let off = [
        "SERVICE_SEARCH_TOOLS",
        "SERVICE_MULTI_EXECUTE_TOOL",
        "SERVICE_REMOTE_WORKBENCH",
        "SERVICE_REMOTE_BASH_TOOL",
    ];
    assert_eq!(without(&rest), off);
}

#[test]
fn every_meta_tool_has_a_definition() {
    for tool in MetaTool::all() {
        assert_eq!(MetaTool::from_slug(tool.slug()), Some(tool));
        let definition = tool.definition();
        assert_eq!(definition.input["type"], "object", "{tool:?}");
        assert_eq!(definition.output["type"], "object", "{tool:?}");
    }
    assert_eq!(MetaTool::from_slug("SERVICE_OTHER"), None);
}
