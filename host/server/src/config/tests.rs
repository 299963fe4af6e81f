//! Tests of reading and printing settings.

use std::path::Path;

use anyhow::Result;

use super::{Allocator, Config, Flags, all, effective, example, load};

fn read(pairs: &[(&str, &str)], flags: &Flags) -> Result<Config> {
    let variables = pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Ok(load::read(flags, None, variables)?.config)
}

#[test]
fn the_environment_sets_nested_keys_and_lists() {
    let config = read(
        &[
            ("TOOLHOST_LISTEN", "127.0.0.1:0"),
            ("TOOLHOST_NET__ALLOW", "127.0.0.0/8,10.0.0.7"),
            (
                "TOOLHOST_NET__REWRITE",
                "https://api.example.com=http://127.0.0.1:1234",
            ),
            ("TOOLHOST_LIMITS__RATE", "0"),
            ("TOOLHOST_LOGS__WAIT", "true"),
            ("TOOLHOST_SANDBOX__ALLOCATOR", "on_demand"),
            ("TOOLHOST_SANDBOX__THREADS", "3"),
            ("TOOLHOST_DATA", "0012"),
            ("HOME", "/root"),
        ],
        &Flags::default(),
    )
    .unwrap();
    assert_eq!(config.listen, "127.0.0.1:0");
    assert_eq!(config.limits.rate, 0);
    assert!(config.logs.wait);
    assert_eq!(config.sandbox.allocator, Allocator::OnDemand);
    assert_eq!(config.sandbox.threads, Some(3));
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
    let config = read(&[("TOOLHOST_DATA", "/srv/b")], &flags).unwrap();
    assert_eq!(config.data, Path::new("/srv/a"));
    assert_eq!(config.key_file(), Path::new("/srv/a.key"));
    assert_eq!(config.env_file(), Path::new("/srv/a.env"));
}

#[test]
fn unknown_key_is_refused_but_client_names_pass() {
    let error = read(&[("TOOLHOST_LIMITS__RATES", "1")], &Flags::default()).unwrap_err();
    assert!(format!("{error:#}").contains("rates"), "{error:#}");
    read(
        &[("TOOLHOST_API_KEY", "ak_x"), ("TOOLHOST_URL", "http://x")],
        &Flags::default(),
    )
    .unwrap();
}

#[test]
fn key_file_inside_data_directory_is_refused() {
    let flags = Flags {
        data: Some("/srv/a".into()),
        key_file: Some("/srv/b/../a/k".into()),
        ..Flags::default()
    };
    assert!(
        read(&[], &flags)
            .unwrap_err()
            .to_string()
            .contains("inside the data directory")
    );
}

#[test]
fn bucket_keys_come_from_environment_and_stay_hidden() {
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "0012e7"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let with = |more: &[(&'static str, &'static str)]| {
        read(
            &[
                keys.as_slice(),
                &[("TOOLHOST_BLOBS", "s3://bucket/a/b/")],
                more,
            ]
            .concat(),
            &Flags::default(),
        )
    };
    let config = with(&[("TOOLHOST_S3__ENDPOINT", "http://127.0.0.1:9000")]).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    let bucket = config.bucket().unwrap().unwrap();
    assert_eq!(
        (&*bucket.bucket, &*bucket.prefix, &*bucket.region),
        ("bucket", "a/b", "eu-west-1")
    );
    assert_eq!(bucket.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
    assert_eq!(
        (&*bucket.access_key_id, &*bucket.secret_access_key),
        ("AKID", "0012e7")
    );
    let own = with(&[("TOOLHOST_S3__SECRET_ACCESS_KEY", "00042")])
        .unwrap()
        .bucket()
        .unwrap()
        .unwrap();
    assert_eq!((&*own.secret_access_key, own.endpoint), ("00042", None));
    for blobs in ["bucket", "s3://", "https://bucket"] {
        let error = read(
            &[keys.as_slice(), &[("TOOLHOST_BLOBS", blobs)]].concat(),
            &Flags::default(),
        )
        .unwrap_err();
        assert!(error.to_string().contains("s3://bucket/prefix"), "{error}");
    }
    let error = read(&[("TOOLHOST_BLOBS", "s3://bucket")], &Flags::default()).unwrap_err();
    assert!(
        error.to_string().contains("AWS_SECRET_ACCESS_KEY"),
        "{error}"
    );
}

#[test]
fn language_model_settings_hide_the_key() {
    let pairs = [
        ("TOOLHOST_LLM__BASE_URL", "http://127.0.0.1:9/v1/"),
        ("TOOLHOST_LLM__MODEL", "small"),
        ("TOOLHOST_LLM__KEY", "0012"),
        ("TOOLHOST_LLM__HEADERS", "X-Trace,x-team"),
    ];
    let config = read(&pairs, &Flags::default()).unwrap();
    assert!(!format!("{config:?}").contains("0012"), "{config:?}");
    let model = config.model().unwrap().unwrap();
    assert_eq!(model.url.as_str(), "http://127.0.0.1:9/v1/chat/completions");
    assert_eq!(model.key.unwrap().as_str(), "0012");
    assert_eq!(model.headers, ["x-trace", "x-team"]);
    assert!(
        read(&[], &Flags::default())
            .unwrap()
            .model()
            .unwrap()
            .is_none()
    );
}

#[test]
fn oauth_apps_from_environment_hide_secrets() {
    let pairs = [
        ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_ID", "007"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__CLIENT_SECRET", "0012e7"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__SCOPES", "repo, user"),
        ("TOOLHOST_OAUTH_APPS__GOOGLE_DRIVE__CLIENT_ID", "public"),
    ];
    let config = read(&pairs, &Flags::default()).unwrap();
    assert!(!format!("{config:?}").contains("0012e7"), "{config:?}");
    let [github, drive] = &config.oauth_apps().collect::<Vec<_>>()[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        (&*drive.toolkit, &*drive.client_id, &*drive.client_secret),
        ("google_drive", "public", "")
    );
    assert_eq!(
        (&*github.toolkit, &*github.client_id, &*github.client_secret),
        ("github", "007", "0012e7")
    );
    assert_eq!(github.scopes, ["repo", "user"]);
    for (name, wrong) in [
        ("TOOLHOST_OAUTH_APPS__GITHUB__SECRET", "`secret`"),
        ("TOOLHOST_OAUTH_APPS__GITHUB__SCOPES", "client_id"),
    ] {
        let error = read(&[(name, "x")], &Flags::default()).unwrap_err();
        assert!(format!("{error:#}").contains(wrong), "{error:#}");
    }
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
    let pairs = pairs
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let config = load::read(&Flags::default(), Some(&file), pairs)
        .unwrap()
        .config;
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
        ("TOOLHOST_LIMITS__BODY_KIB", "99999"),
        ("TOOLHOST_LIMITS__IN_FLIGHT", "many"),
        ("TOOLHOST_LLM__MODEL", "alone"),
        ("TOOLHOST_LLM__TIMEOUT_S", "0"),
        ("TOOLHOST_LLM__HEADERS", "x-team,Host"),
        ("TOOLHOST_LLM__AT_ONCE_PER_PROJECT", "0"),
        ("TOOLHOST_LOGS__BUFFER_MIB", "0"),
        ("TOOLHOST_LOGS__PAYLOAD_KIB", "999999"),
        ("TOOLHOST_LOGS__QUOTA_MIB", "1048577"),
        ("TOOLHOST_FILES__QUOTA_MIB", "-1"),
    ] {
        read(&[(name, value)], &Flags::default()).unwrap_err();
    }
    for (name, value, expected) in [
        ("TOOLHOST_NET__ALLOW", "nowhere", "nowhere"),
        ("TOOLHOST_LIMITS__BODY_KIB", "0", "1 to 16384"),
        ("TOOLHOST_LIMITS__RATES", "1", "rate_per_project"),
        ("TOOLHOST_LIMITS", "1", "not a setting"),
        ("TOOLHOST_LOG_FORMAT", "xml", "json"),
        ("TOOLHOST_LIMITS__RATE", "few", "integer"),
    ] {
        let error = read(&[(name, value)], &Flags::default()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
}

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
        let error = load::read(&Flags::default(), Some(&file), none).unwrap_err();
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
    let loaded = load::read(&Flags::default(), Some(&file), std::iter::empty()).unwrap();
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
    let first = load::read(&Flags::default(), None, pairs.into_iter()).unwrap();
    let printed = effective(&first.config, &first.sources).unwrap();
    std::fs::write(&file, &printed).unwrap();
    let second = load::read(&Flags::default(), Some(&file), std::iter::empty()).unwrap();
    let value = |config: &Config| serde_json::to_value(config).unwrap();
    assert_eq!(value(&first.config), value(&second.config), "{printed}");
}
