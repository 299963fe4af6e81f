//! Commands that add an MCP server to assistants.
//!
//! The name and the address of a server contain no character that a shell interprets inside of
//! quotes. A command of a project that requires its key reads the key from the environment, so that
//! no response contains it.

/// Program that adds a server to a JSON file of settings, below the home directory. Its arguments
/// are the file, the name of the server, and names with values of its settings.
const ADD_TO_FILE: &str = "import json,pathlib,sys; p,n,*a=sys.argv[1:]; \
    f=pathlib.Path.home()/p; c=json.loads(f.read_text()) if f.exists() else {}; \
    s=c.setdefault(\"mcpServers\",{})[n]=dict(zip(a[::2],a[1::2])); \
    k=s.pop(\"key\",None); s.update({\"headers\":{\"x-api-key\":k}} if k else {}); \
    f.parent.mkdir(parents=True,exist_ok=True); f.write_text(json.dumps(c,indent=2))";
/// Variable of the environment with the key of the project.
const KEY_VARIABLE: &str = "$TOOLHOST_API_KEY";

/// Server that commands add.
pub(super) struct Added {
    name: String,
    url: String,
    needs_key: bool,
}

impl Added {
    /// Takes the display name and the address of a server.
    pub(super) fn new(name: &str, url: String, needs_key: bool) -> Self {
        Self {
            name: name.to_lowercase().replace(' ', "-"),
            url,
            needs_key,
        }
    }

    /// Returns the command for the assistant Claude Code.
    pub(super) fn claude(&self) -> String {
        let Self { name, url, .. } = self;
        let header = format!(" --header \"x-api-key: {KEY_VARIABLE}\"");
        let header = if self.needs_key { &*header } else { "" };
        format!("claude mcp add --transport http \"{name}\" \"{url}\"{header}")
    }

    /// Returns the command for the assistant Cursor.
    pub(super) fn cursor(&self) -> String {
        self.add_to_file(".cursor/mcp.json", "url")
    }

    /// Returns the command for the assistant Windsurf.
    pub(super) fn windsurf(&self) -> String {
        self.add_to_file(".codeium/windsurf/mcp_config.json", "serverUrl")
    }

    fn add_to_file(&self, file: &str, setting: &str) -> String {
        let Self { name, url, .. } = self;
        let key = format!(" key \"{KEY_VARIABLE}\"");
        let key = if self.needs_key { &*key } else { "" };
        format!("python3 -c '{ADD_TO_FILE}' {file} \"{name}\" {setting} \"{url}\"{key}")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn pasted_commands_keep_other_servers() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".cursor/mcp.json");
        fs::create_dir(home.path().join(".cursor")).unwrap();
        fs::write(&file, r#"{"mcpServers":{"other":{"url":"u"}},"more":1}"#).unwrap();
        let url = "http://127.0.0.1:8080/v3/mcp/1?user_id=default";
        let added = Added::new("My Mail", url.to_owned(), true);
        for command in [added.cursor(), added.windsurf()] {
            let status = Command::new("sh")
                .args(["-c", &command])
                .env("HOME", home.path())
                .env("TOOLHOST_API_KEY", "ak_x")
                .status();
            assert!(status.unwrap().success(), "{command}");
        }
        let read = |path: &str| -> serde_json::Value {
            serde_json::from_str(&fs::read_to_string(home.path().join(path)).unwrap()).unwrap()
        };
        let headers = serde_json::json!({ "x-api-key": "ak_x" });
        let servers = &read(".cursor/mcp.json")["mcpServers"];
        assert_eq!(servers["other"]["url"], "u");
        assert_eq!(servers["my-mail"]["url"], url);
        assert_eq!(servers["my-mail"]["headers"], headers);
        let servers = &read(".codeium/windsurf/mcp_config.json")["mcpServers"];
        assert_eq!(servers["my-mail"]["serverUrl"], url);
    }

    #[test]
    fn command_without_key_sends_no_header() {
        let added = Added::new("Mail", "http://h/v3/mcp/1".to_owned(), false);
        let expected = "claude mcp add --transport http \"mail\" \"http://h/v3/mcp/1\"";
        assert_eq!(added.claude(), expected);
        assert!(!added.cursor().contains("TOOLHOST_API_KEY"));
    }
}
