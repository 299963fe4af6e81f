//! Tests of sources, precedence and errors.

use std::path::Path;

use super::{
    super::{Allocator, Setting, all, removed},
    Flags, SettingsFile, load, read, read_file, read_with,
};

#[test]
fn the_environment_sets_nested_keys_and_lists() {
    let config = read(&[
        ("TOOLHOST_LISTEN", "127.0.0.1:0"),
        ("TOOLHOST_NET__ALLOW", "127.0.0.0/8,10.0.0.7"),
        (
            "TOOLHOST_NET__REWRITE",
            "https://api.example.com=http://127.0.0.1:1234",
        ),
        ("TOOLHOST_LIMITS__RATE_PER_PROJECT", "20"),
        ("TOOLHOST_LOGS__WAIT", "true"),
        ("TOOLHOST_SANDBOX__ALLOCATOR", "on_demand"),
        ("TOOLHOST_DATA", "0012"),
        ("HOME", "/root"),
    ])
    .unwrap();
    assert_eq!(config.listen, "127.0.0.1:0");
    assert_eq!(config.limits.rate_per_project, 20);
    assert!(config.logs.wait);
    assert_eq!(config.sandbox.allocator, Allocator::OnDemand);
    assert_eq!(
        config.data,
        Path::new("0012"),
        "a name of digits is no number"
    );
    let net = config.net().unwrap();
    assert_eq!(net.allow.len(), 2);
    assert_eq!(net.rewrite.len(), 1);
}

#[test]
fn a_flag_stands_above_the_environment() {
    let flags = Flags {
        data: Some("/srv/a".into()),
        ..Flags::default()
    };
    let config = read_with(&[("TOOLHOST_DATA", "/srv/b")], &flags).unwrap();
    assert_eq!(config.data, Path::new("/srv/a"));
    assert_eq!(config.key_file(), Path::new("/srv/a.key"));
    assert_eq!(config.env_file(), Path::new("/srv/a.env"));
}

#[test]
fn unknown_key_is_refused_but_client_names_pass() {
    let error = read(&[("TOOLHOST_LIMITS__IN_FLIGHTS", "1")]).unwrap_err();
    assert!(format!("{error:#}").contains("in_flights"), "{error:#}");
    let question = "did you mean `TOOLHOST_LIMITS__IN_FLIGHT`?";
    assert!(format!("{error:#}").contains(question), "{error:#}");
    let error = read(&[("TOOLHOST_NET_ALLOW", "10.0.0.0/8")]).unwrap_err();
    let question = "did you mean `TOOLHOST_NET__ALLOW`?";
    assert!(format!("{error:#}").contains(question), "{error:#}");
    for name in ["TOOLHOST_LOGS_KEEP_COUNT", "TOOLHOST_LOGS__KEEP_COUNTS"] {
        let error = read(&[(name, "1")]).unwrap_err();
        let advice = "`TOOLHOST_LOGS__KEEP_COUNT` was removed in this version: executions are now erased by `logs.keep_days` alone";
        assert!(format!("{error:#}").contains(advice), "{error:#}");
    }
    read(&[("TOOLHOST_API_KEY", "ak_x"), ("TOOLHOST_URL", "http://x")]).unwrap();
}

#[test]
fn removed_settings_warn_instead_of_failing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhost.toml");
    std::fs::write(&file, "plain = true\n[sink]\nevents = ['x']\n").unwrap();
    let loaded = read_file(&file, &[("TOOLHOST_LOGS__BUFFER", "many")]);
    let expected = [
        "setting `logs.buffer` was removed in this version and has no effect; it is now fixed at 4096 (from environment TOOLHOST_LOGS__BUFFER)",
        "setting `plain` was removed",
        "setting `sink.events` was removed",
    ];
    let warnings = loaded.unwrap().warnings;
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.starts_with(expected), "{warning}");
    }
}

#[test]
fn removed_setting_stays_a_warning_with_other_problems() {
    let variables = [
        ("TOOLHOST_LOGS__BUFFER", "many"),
        ("TOOLHOST_LIMITS__IDLE_S", "0"),
    ];
    let error = format!("{:#}", read(&variables).unwrap_err());
    assert!(error.starts_with("`limits.idle_s` is 0"), "{error}");
    assert!(
        error.contains("\nwarning: setting `logs.buffer` was removed"),
        "{error}"
    );
}

#[test]
fn no_removed_setting_is_known() {
    let is_removed = |setting: &Setting| removed::replacement(&setting.key).is_some();
    assert!(!all().iter().any(is_removed));
}

#[test]
fn settings_stay_few() {
    let count = all().len();
    assert!(
        count <= 70,
        "{count} settings: prefer a constant, or a part of another setting"
    );
}

#[test]
fn key_file_inside_data_directory_is_refused() {
    let flags = Flags {
        data: Some("/srv/a".into()),
        key_file: Some("/srv/b/../a/k".into()),
        ..Flags::default()
    };
    assert!(
        read_with(&[], &flags)
            .unwrap_err()
            .to_string()
            .contains("inside the data directory")
    );
}

#[test]
fn the_environment_stands_above_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolhost.toml");
    let text = "net.allow = ['10.0.0.0/8']\ns3 = { access_key_id = 'old', secret_access_key = 'old' }\n[oauth_apps.github]\nclient_id = 'old'\nscopes = ['repo']";
    std::fs::write(&file, text).unwrap();
    let pairs = [
        ("TOOLHOST_S3__ACCESS_KEY_ID", "07"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_ID", "new"),
        ("AWS_SECRET_ACCESS_KEY", "other"),
    ];
    let config = read_file(&file, &pairs).unwrap().config;
    assert_eq!(config.s3.access_key_id.as_deref(), Some("07"));
    assert_eq!(
        config.s3.secret_access_key.unwrap().expose().as_str(),
        "old",
        "names of others only fill in"
    );
    assert_eq!(
        (&*config.net.allow[0], config.net.allow.len()),
        ("10.0.0.0/8", 1)
    );
    let github = &config.oauth_apps["github"];
    assert_eq!(
        (&*github.client_id, &github.scopes[..]),
        ("new", &["repo".to_owned()][..])
    );
}

#[test]
fn a_bad_value_names_what_is_wrong() {
    for (name, value) in [
        ("TOOLHOST_OPERATOR_WORD", "No Good"),
        ("TOOLHOST_LIMITS__DEADLINE_S", "99999"),
        ("TOOLHOST_LIMITS__IN_FLIGHT", "many"),
        ("TOOLHOST_LLM__MODEL", "alone"),
        ("TOOLHOST_LLM__TIMEOUT_S", "0"),
        ("TOOLHOST_LLM__HEADERS", "x-team,Host"),
        ("TOOLHOST_LIMITS__RECORDS_MIB", "1048577"),
        ("TOOLHOST_FILES__QUOTA_MIB", "-1"),
    ] {
        read(&[(name, value)]).unwrap_err();
    }
    for (name, value, expected) in [
        ("TOOLHOST_NET__ALLOW", "nowhere", "nowhere"),
        ("TOOLHOST_NET__ALLOW", "nowhere", "127.0.0.0/8"),
        ("TOOLHOST_LIMITS__DEADLINE_S", "0", "1 to 300"),
        ("TOOLHOST_LIMITS__RATES", "1", "rate_per_project"),
        ("TOOLHOST_LIMITS", "1", "not a setting"),
        ("TOOLHOST_LOG_FORMAT", "xml", "it is `xml`"),
        (
            "TOOLHOST_LOG_FORMAT",
            "xml",
            "must be one of `text`, `json`",
        ),
        ("TOOLHOST_LOG", "a=b=c", "a=b=c"),
        ("TOOLHOST_LOG", "warning", "levels off, error, warn"),
        ("TOOLHOST_LOG", "info,oci-client=debug", "`oci-client`"),
        ("TOOLHOST_PUBLIC_URL", "a.example", "scheme"),
        ("TOOLHOST_PUBLIC_URL", "ftp://a.example", "https"),
        ("TOOLHOST_PUBLIC_URL", "https://a.example/?b", "query"),
        ("TOOLHOST_SINK__URL", "http://a.example", "nats://"),
        ("TOOLHOST_LIMITS__RATE_PER_KEY", "few", "integer"),
    ] {
        let error = read(&[(name, value)]).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
}

#[test]
fn every_problem_has_a_line() {
    let pairs = [
        ("TOOLHOST_LIMITS__IN_FLIGHTS", "1"),
        ("TOOLHOST_LIMITS__RATE_PER_KEY", "few"),
        ("TOOLHOST_LIMITS__DEADLINE_S", "0"),
        ("TOOLHOST_LLM__BASE_URL", "nowhere"),
        ("TOOLHOST_LOG_FORMAT", "xml"),
        ("TOOLHOST_OPERATOR_WORD", "No Good"),
        ("TOOLHOST_LOGS__BUFFER", "many"),
    ];
    // It lacks its address only because that is wrong.
    let consequence = [("TOOLHOST_LLM__MODEL", "small")];
    let error = read(&[&pairs[..], &consequence].concat()).unwrap_err();
    let text = format!("{error:#}");
    let lines: Vec<_> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), pairs.len(), "{text}");
    for (name, _) in pairs {
        let source = format!("(from environment {name})");
        let of_name = lines.iter().filter(|line| line.contains(&source));
        assert_eq!(of_name.count(), 1, "{name}: {text}");
    }
}

#[test]
fn log_filter_hides_only_what_it_names() {
    let config = read(&[("TOOLHOST_LOG", "app=debug, toolhost::settings=off")]).unwrap();
    let filter = config.log_filter("sled=error").unwrap().to_string();
    let directives: Vec<_> = filter.split(',').collect();
    for expected in ["warn", "app=debug", "sled=error", "toolhost::settings=warn"] {
        assert!(directives.contains(&expected), "{filter}");
    }
}

#[test]
fn unreadable_settings_file_is_refused_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let error = format!("{:#}", read_file(folder.path(), &[]).unwrap_err());
    assert!(error.contains("Is a directory"), "{error}");
}

#[test]
fn file_of_the_machine_counts_without_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let [working, machine] = ["working.toml", "machine.toml"].map(|name| folder.path().join(name));
    let found = || load::default_file(&working, &machine);
    assert_eq!(found(), SettingsFile::Missing);
    std::fs::write(&machine, "").unwrap();
    assert_eq!(found(), SettingsFile::Read(machine.clone()));
    std::fs::write(&working, "").unwrap();
    assert_eq!(found(), SettingsFile::Read(working.clone()));
}
