//! Tests of texts about settings.

use super::{
    super::{Config, all, effective, example},
    Flags, SettingsFile, load, read_file, variables,
};

#[test]
fn errors_show_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhost.toml");
    for text in [
        "store = \"postgres://u:0012e7@h",
        "llm.base_url = \"https://u:0012e7@host:99999/\"",
        "oauth_apps.github = \"0012e7\"",
        "llm.key = [\"0012e7\"]",
    ] {
        std::fs::write(&file, text).unwrap();
        let error = format!("{:#}", read_file(&file, &[]).unwrap_err());
        assert!(!error.contains("0012e7"), "{error}");
        assert!(error.contains("toolhost.toml"), "{error}");
    }
}

#[test]
fn example_file_is_accepted_without_comment_signs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhost.toml");
    let lines = example();
    let lines = lines.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with(' ') => setting,
        _ => line,
    });
    std::fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let loaded = read_file(&file, &[]).unwrap();
    for setting in all() {
        let is_set = loaded.sources.contains(&setting.key);
        assert!(is_set, "{} is missing", setting.key);
    }
}

#[test]
fn printed_settings_can_be_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhost.toml");
    let pairs = [
        ("TOOLHOST_NET__ALLOW", "10.0.0.0/8, 127.0.0.1"),
        ("TOOLHOST_OPERATOR_WORD", "acme"),
        (
            "TOOLHOST_OAUTH_APPS__MY_APP__CLIENT_ID",
            "quote \" and \u{7f}",
        ),
    ];
    let first = load::read(&Flags::default(), SettingsFile::Missing, variables(&pairs)).unwrap();
    let printed = effective(&first.config, &first.sources).unwrap();
    std::fs::write(&file, &printed).unwrap();
    let second = read_file(&file, &[]).unwrap();
    let value = |config: &Config| serde_json::to_value(config).unwrap();
    assert_eq!(value(&first.config), value(&second.config), "{printed}");
}
