//! Tests of texts about settings.

use super::super::{Config, Flags, all, effective, example, load, sources::SettingsFile};

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
        let none = std::iter::empty();
        let error =
            load::read(&Flags::default(), SettingsFile::Read(file.clone()), none).unwrap_err();
        let error = format!("{error:#}");
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
    let loaded = load::read(
        &Flags::default(),
        SettingsFile::Read(file.clone()),
        std::iter::empty(),
    )
    .unwrap();
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
    let pairs = pairs.map(|(name, value)| (name.into(), value.into()));
    let first = load::read(&Flags::default(), SettingsFile::Missing, pairs.into_iter()).unwrap();
    let printed = effective(&first.config, &first.sources).unwrap();
    std::fs::write(&file, &printed).unwrap();
    let second = load::read(
        &Flags::default(),
        SettingsFile::Read(file.clone()),
        std::iter::empty(),
    )
    .unwrap();
    let value = |config: &Config| serde_json::to_value(config).unwrap();
    assert_eq!(value(&first.config), value(&second.config), "{printed}");
}
