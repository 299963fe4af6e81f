//! `toolhost config` and the pages that are made from the declared settings.

use std::{fs, path::Path};

use harness::{MachineSettings, host::Setup, secret};

/// Reads a page of the repository.
pub(crate) fn page(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(name)).unwrap()
}

/// Returns the line of a setting in a printed settings file.
fn line<'a>(printed: &'a str, group: &str, name: &str) -> &'a str {
    let mut lines = printed.lines();
    if !group.is_empty() {
        lines.find(|line| *line == format!("[{group}]"));
    }
    let starts = [format!("{name} "), format!("# {name} ")];
    lines
        .find(|line| starts.iter().any(|start| line.starts_with(start)))
        .unwrap_or_else(|| panic!("no {group}.{name}:\n{printed}"))
}

#[test]
fn example_settings_file_is_current() {
    let printed = Setup::embedded().command(&["config", "--example"]);
    assert_eq!(
        printed.succeeded(),
        page("docs/toolhost.example.toml"),
        "settings have changed: `toolhost config --example > docs/toolhost.example.toml`"
    );
}

#[test]
fn settings_table_in_manual_is_current() {
    let table = Setup::embedded()
        .command(&["config", "--table"])
        .succeeded();
    assert!(
        page("docs/configuration.md").ends_with(&format!("\n\n{table}")),
        "settings have changed: end docs/configuration.md with `toolhost config --table`:\n{table}"
    );
}

#[test]
fn config_command_names_the_source_of_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    fs::write(&file, "limits = { rate_per_key = 7, idle_s = 8 }\n").unwrap();
    let file = file.display().to_string();
    let setup = Setup::embedded().with("limits.idle_s", "9");
    let arguments = ["config", "--config", &file, "--listen", "127.0.0.1:1"];
    let printed = setup.command(&arguments).succeeded();
    for (group, name, expected) in [
        (
            "",
            "listen",
            "listen = \"127.0.0.1:1\"  # flag --listen".to_owned(),
        ),
        (
            "limits",
            "idle_s",
            "idle_s = 9  # s, environment TOOLHOST_LIMITS__IDLE_S".to_owned(),
        ),
        (
            "limits",
            "rate_per_key",
            format!("rate_per_key = 7  # file {file}"),
        ),
        (
            "limits",
            "connections",
            "connections = 4096  # default".to_owned(),
        ),
        ("sink", "url", "# url is not set: no sink".to_owned()),
    ] {
        assert_eq!(line(&printed, group, name), expected);
    }
}

#[test]
fn settings_of_the_machine_count_without_others() {
    let Some(machine) = MachineSettings::with("operator_word = \"acme\"\n") else {
        eprintln!("no namespace can be made here");
        return;
    };
    let setup = machine.hold(Setup::embedded());
    let config = || setup.command(&["config"]).succeeded();
    let printed = config();
    for line in [
        "# Settings file: /etc/toolhost/toolhost.toml",
        "operator_word = \"acme\"  # file /etc/toolhost/toolhost.toml",
    ] {
        assert!(printed.lines().any(|own| own == line), "{line}: {printed}");
    }
    let working = setup.data().with_file_name("toolhost.toml");
    fs::write(&working, "log = \"info\"\n").unwrap();
    let printed = config();
    let file = format!("# Settings file: {}", working.display());
    assert!(printed.lines().any(|own| own == file), "{printed}");
    assert_eq!(
        line(&printed, "", "operator_word"),
        "operator_word = \"service\"  # default"
    );
}

#[test]
fn config_command_masks_secrets() {
    let key = secret();
    let setup = Setup::embedded()
        .with("store", format!("postgres://user:{key}@127.0.0.1/none"))
        .with("llm.key", &key)
        .with("llm.base_url", format!("https://user:{key}@127.0.0.1/v1"))
        .with("llm.model", "small")
        .with("oauth_apps.github.client_id", "public")
        .with("oauth_apps.github.client_secret", &key)
        .with_variable("AWS_SECRET_ACCESS_KEY", &key);
    let printed = setup.command(&["config"]).succeeded();
    assert!(!printed.contains(&key), "{printed}");
    for (group, name, variable) in [
        ("", "store", "TOOLHOST_STORE"),
        ("s3", "secret_access_key", "AWS_SECRET_ACCESS_KEY"),
        ("llm", "base_url", "TOOLHOST_LLM__BASE_URL"),
        ("llm", "key", "TOOLHOST_LLM__KEY"),
        (
            "oauth_apps.github",
            "client_secret",
            "TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_SECRET",
        ),
    ] {
        let expected = format!("# {name} = \"(hidden)\"  # environment {variable}");
        assert_eq!(line(&printed, group, name), expected);
    }
}

#[test]
fn setting_error_names_source_and_range() {
    for (name, value, expected) in [
        (
            "limits.idle_s",
            "0",
            "`limits.idle_s` is 0: it must be 1 to 600 (from environment TOOLHOST_LIMITS__IDLE_S)",
        ),
        (
            "metrics.listen",
            "9464",
            "`metrics.listen` must be an address and a port, for example `127.0.0.1:8080`",
        ),
    ] {
        let finished = Setup::embedded().with(name, value).command(&["config"]);
        assert_ne!(finished.code, Some(0));
        assert!(finished.stderr.contains(expected), "{finished:?}");
    }
}

#[test]
fn removed_setting_is_warned_of() {
    let setup = Setup::embedded()
        .with("limits.body_kib", "9")
        .with("log", "off");
    let printed = setup.command(&["config"]);
    let warning = "setting `limits.body_kib` was removed in this version and has no effect; it is now fixed at 1 MiB";
    assert!(printed.stderr.contains(warning), "{printed:?}");
    assert!(!printed.succeeded().contains("body_kib"));
}

#[test]
fn failed_start_reports_its_cause_alone() {
    let setup = Setup::embedded().with("toolkits", "/nonexistent");
    let finished = setup.command(&["serve", "--listen", "127.0.0.1:0"]);
    let printed = finished.failed();
    assert!(printed.contains("/nonexistent"), "{printed}");
    assert!(!printed.contains("panicked"), "{printed}");
    assert!(!setup.data().exists(), "nothing is created");
}
